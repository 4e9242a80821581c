// Command bench measures lieudit and runs its chaos tests. It is a program of its own, so that the one that ships holds
// none of it.
//
//	go run ./cmd/bench log|address|api|locations|usage|chaos
//
// A command turns its flags into the Options of a package and calls its Run. The first four report figures (figures.go), the
// last two a proof: what did not hold, and exit code 1 for it (proofs.go). Most of them start services through package
// harness; these are processes of this very program (child.go).
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

// main ends gently at the first signal and at once at the second.
func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	os.Exit(program{terminal.Terminal{
		Name: "bench", In: os.Stdin, Out: os.Stdout, Err: os.Stderr, IsTerminal: isatty.IsTerminal(os.Stdout.Fd()),
		LookupEnv: os.LookupEnv, TimeZone: time.Local,
	}}.run(ctx, os.Args))
}

// program is the command line of bench.
type program struct{ terminal.Terminal }

// run runs one command line and returns the exit code: 0 done, 1 failed or a check did not hold, 2 wrong usage.
func (p program) run(ctx context.Context, args []string) int {
	if code, isChild := p.runChild(ctx, args[1:]); isChild {
		return code
	}
	root := &cli.Command{
		Name:  "bench",
		Usage: "Measure lieudit on this machine, the raw limit beside every figure, and prove what it promises",
		Commands: []*cli.Command{
			p.journalCommand(), p.addressCommand(), p.apiCommand(), p.locationsCommand(), p.usageCommand(), p.chaosCommand(),
		},
	}
	return p.RunCommand(ctx, root, args, error.Error)
}
