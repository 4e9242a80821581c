// Command lieudit is the whole program: the service, the node through which several instances share a log, and the command
// line that works with a running service. Its one job is to connect package cli, which does all of this, with the process:
// its streams, its environment, its signals, its priority and its exit code. Nothing here can be tested in a process of
// the tests, so nothing here decides anything.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/mattn/go-isatty"
	"golang.org/x/term"

	"lieudit/cmd/lieudit/cli"
	"lieudit/cmd/lieudit/service"
	"lieudit/cmd/terminal"
	"lieudit/schemas/plan"
)

func main() {
	ctx := newInterruptContext()
	enableEscapes(os.Stdout)
	enableEscapes(os.Stderr)
	os.Exit(cli.Program{
		Terminal: terminal.Terminal{
			Name:       "lieudit",
			In:         os.Stdin,
			Out:        os.Stdout,
			Err:        os.Stderr,
			IsTerminal: isatty.IsTerminal(os.Stdout.Fd()) || isatty.IsCygwinTerminal(os.Stdout.Fd()),
			Columns:    terminalColumns(os.Stdout),
			LookupEnv:  os.LookupEnv,
			TimeZone:   plan.Paris, // days and periods are French ones, wherever the command runs
		},
		Version:       service.Version(),
		Serve:         service.Run,
		LowerPriority: lowerPriority,
	}.Run(ctx, os.Args))
}

// newInterruptContext returns a context that ends with the first interrupt or termination signal, so that running requests
// can end. By then signals have their default effect again: a second one ends the process at once. signal.NotifyContext
// would swallow every further signal until its stop function is called.
func newInterruptContext() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 1) // a signal is dropped if the channel has no room
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		signal.Stop(signals)
		cancel()
	}()
	return ctx
}

// terminalColumns returns the width of the terminal behind a file, 0 if the file is not a terminal.
func terminalColumns(f *os.File) int {
	columns, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return columns
}
