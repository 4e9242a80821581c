// Command bench measures lieudit and runs its chaos tests. It is a program of its own, so that the one that ships holds
// none of it.
//
//	go run ./cmd/bench log|address|placing|api|fairness|scale|starts|locations|places|route|usage|chaos|stranger|upgrade|simulate
//
// Each command turns its flags into the Options of a package below and calls the Run of that package:
//
//	log, address, placing, api, locations, route   figures.go   measure.Figure, printed as tables or JSON
//	fairness, scale                                accountscommand.go   the same
//	starts                                         startscommand.go   the same
//	places                                         placescommand.go   a table of files, or JSON
//	usage, chaos, stranger, upgrade, simulate      proofs.go, strangercommand.go, upgradecommand.go, simulatecommand.go    a report with its violations, and exit code 1 if there are any; usage prints the figures of api too
//
// All but log, address, placing and route start services through package harness. These services are processes of this very program, so that
// they always have the code under test: child.go runs them. Its constraint: no command leaves a process or a file behind,
// unless a flag says so.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/urfave/cli/v3"

	"lieudit/cmd/terminal"
)

// main cancels the command at the first signal, so that it removes what it made. The second signal ends the program at once,
// because stop gives signals their usual effect again.
func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	os.Exit(program{terminal.Terminal{
		Name: "bench", In: os.Stdin, Out: os.Stdout, Err: os.Stderr, IsTerminal: isatty.IsTerminal(os.Stdout.Fd()),
		LookupEnv: os.LookupEnv, TimeZone: time.Local,
	}}.runCommand(ctx, os.Args))
}

// program is the command line of bench on a terminal, which tests replace.
type program struct{ terminal.Terminal }

// runCommand runs one command line, the program's name first, and returns the exit code: 0 done, 1 failed or a check did not hold, 2
// wrong usage. A command line of package harness is not listed in the help.
func (p program) runCommand(ctx context.Context, args []string) int {
	if code, isChild := p.runChild(ctx, args[1:]); isChild {
		return code
	}
	root := &cli.Command{
		Name:  "bench",
		Usage: "Measure lieudit on this machine, the raw limit beside every figure, and prove what it promises",
		Commands: []*cli.Command{
			p.journalCommand(), p.addressCommand(), p.placingCommand(), p.apiCommand(), p.fairnessCommand(), p.scaleCommand(), p.startsCommand(), p.locationsCommand(), p.placesCommand(),
			p.routeCommand(),
			p.usageCommand(), p.chaosCommand(), p.strangerCommand(), p.upgradeCommand(), p.simulateCommand(),
		},
	}
	return p.RunCommand(ctx, root, args, error.Error)
}
