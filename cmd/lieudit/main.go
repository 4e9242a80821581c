// Command lieudit is the program: the service, the node that shares a log between instances, and the command line that
// works with a running service. Everything it does is in package cli; main connects that to the process.
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
)

func main() {
	ctx := newInterruptContext()
	os.Exit(cli.Program{
		Version:       service.Version(),
		In:            os.Stdin,
		Out:           os.Stdout,
		Err:           os.Stderr,
		IsTerminal:    isatty.IsTerminal(os.Stdout.Fd()) || isatty.IsCygwinTerminal(os.Stdout.Fd()),
		LookupEnv:     os.LookupEnv,
		TimeZone:      time.Local,
		Serve:         service.Run,
		LowerPriority: lowerPriority,
	}.Run(ctx, os.Args))
}

// newInterruptContext returns a context that ends with the first interrupt, so that running requests can end. The second
// interrupt ends the process at once, by the runtime.
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
