package main

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"time"

	"lieudit/cmd/bench/harness"
	"lieudit/cmd/lieudit/cli"
	"lieudit/cmd/lieudit/service"
)

// runChild runs what package harness starts this program for, and returns its exit code: lieudit itself with the arguments
// after the word, or the empty handler. It ends when its standard input does. The parent holds the other end of that, so no
// child outlives it, even when it is killed.
func (p program) runChild(ctx context.Context, args []string) (code int, isChild bool) {
	if len(args) == 0 || args[0] != harness.LieuditCommand && args[0] != harness.EmptyHandlerCommand {
		return 0, false
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // ends with its input, or with the process
		io.Copy(io.Discard, p.In)
		cancel()
	}()
	if args[0] == harness.LieuditCommand {
		t := p.Terminal
		t.Name = "lieudit"
		return cli.Program{Terminal: t, Version: service.Version(), Serve: service.Run}.Run(ctx, args), true
	}
	if err := p.serveEmptyHandler(ctx); err != nil {
		p.PrintError(err.Error())
		return 1, true
	}
	return 0, true
}

// serveEmptyHandler serves a handler that does nothing, which the service is compared with.
func (p program) serveEmptyHandler(ctx context.Context) error {
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	if err := p.PrintLine("An empty handler is served at %s", ln.Addr()); err != nil {
		return errors.Join(err, ln.Close())
	}
	s := http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), ReadHeaderTimeout: 10 * time.Second}
	defer context.AfterFunc(ctx, func() { s.Close() })()
	if err := s.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
