// Command lieudit is the whole program: the service, the node that a log can be shared through, and the command
// line that works with a running service. Everything it does is in package console; here it meets the process.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/mattn/go-isatty"

	"lieudit/cmd/lieudit/console"
	"lieudit/cmd/lieudit/service"
)

func main() {
	// After the first signal the next one is the runtime's again: it ends the process at once.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	os.Exit(console.Program{
		Version:  service.Version(),
		In:       os.Stdin,
		Out:      os.Stdout,
		Err:      os.Stderr,
		Terminal: isatty.IsTerminal(os.Stdout.Fd()) || isatty.IsCygwinTerminal(os.Stdout.Fd()),
		Env:      os.LookupEnv,
		Zone:     time.Local,
		Serve:    service.Run,
		Meek:     meek,
	}.Run(ctx, os.Args))
}
