package main

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"time"

	"lieudit/cmd/bench/fairness"
	"lieudit/cmd/bench/harness"
	"lieudit/cmd/bench/places"
	"lieudit/cmd/lieudit/cli"
	"lieudit/cmd/lieudit/service"
)

// runChild runs a command that package harness starts in a process of its own, and returns its exit code: lieudit itself with
// the arguments that follow, the empty handler, the reader of places, or the flood. isChild is false for any other command line, which is then not run.
//
// The process ends in good order when its standard input ends. The parent holds the other end of that pipe, and the system
// closes it when the parent ends, even by a kill. So no child outlives its parent.
func (p program) runChild(ctx context.Context, args []string) (code int, isChild bool) {
	if len(args) == 0 || !slices.Contains([]string{harness.LieuditCommand, harness.EmptyHandlerCommand, harness.ReadPlacesCommand, harness.FloodCommand}, args[0]) {
		return 0, false
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // ends with its input, or with the process
		io.Copy(io.Discard, p.In)
		cancel()
	}()
	// The name is the program's own in messages. The arguments begin with the word lieudit, which stands for its name here
	// too.
	if args[0] == harness.LieuditCommand {
		t := p.Terminal
		t.Name = "lieudit"
		return cli.Program{Terminal: t, Version: service.Version(), Serve: service.Run}.Run(ctx, args), true
	}
	work := p.serveEmptyHandler
	switch args[0] {
	case harness.ReadPlacesCommand:
		work = func(context.Context) error { return places.ReadAndMeasure(p.Out, args[1]) }
	case harness.FloodCommand:
		work = func(ctx context.Context) error { return fairness.Flood(ctx, args[1], p.PrintLine) }
	}
	if err := work(ctx); err != nil {
		p.PrintError(err.Error())
		return 1, true
	}
	return 0, true
}

// serveEmptyHandler serves a handler that does nothing, on a free port, until ctx ends. Its speed is the raw limit of the
// API. Package harness reads the address from the line that is printed.
func (p program) serveEmptyHandler(ctx context.Context) error {
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	if err := p.PrintLine("An empty handler is served at %s", ln.Addr()); err != nil {
		return errors.Join(err, ln.Close())
	}
	// The end of ctx closes the server, and Serve then returns ErrServerClosed.
	s := http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), ReadHeaderTimeout: 10 * time.Second}
	defer context.AfterFunc(ctx, func() { s.Close() })()
	if err := s.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
