// Command lieudit is the whole program: the service, the node that a log can be shared through, and the command
// line that works with a running service. Everything it does is in package cli; here it meets the process.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/mattn/go-isatty"

	"lieudit/cmd/lieudit/cli"
	"lieudit/cmd/lieudit/service"
	"lieudit/cmd/terminal"
)

func main() {
	ctx := newInterruptContext()
	os.Exit(cli.Program{
		Terminal: terminal.Terminal{
			Name:       "lieudit",
			In:         os.Stdin,
			Out:        os.Stdout,
			Err:        os.Stderr,
			IsTerminal: isatty.IsTerminal(os.Stdout.Fd()) || isatty.IsCygwinTerminal(os.Stdout.Fd()),
			LookupEnv:  os.LookupEnv,
			TimeZone:   time.Local,
		},
		Version:       service.Version(),
		Serve:         service.Run,
		LowerPriority: lowerPriority,
	}.Run(ctx, os.Args))
}

// newInterruptContext is a context that ends with the first signal. By then the next signal is the runtime's again: it
// ends the process at once.
func newInterruptContext() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		signal.Stop(signals)
		cancel()
	}()
	return ctx
}
