package esdb_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"runtime/pprof"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"lieudit/eventstore"
	"lieudit/eventstore/esdb"
)

func TestNothingIsLeftAfterClose(t *testing.T) {
	t.Parallel()
	r := serveFolder(t, t.TempDir(), "127.0.0.1:0")
	p := newProxy(t, r.addr)
	id := uuid.NewString()
	pprof.Do(t.Context(), pprof.Labels("esdb", id), func(ctx context.Context) {
		s, err := esdb.Open(ctx, p.connection(), slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		checkpoint := mustCheckpoint(t, s)
		for i := range 20 {
			go func() {
				for range s.Subscribe(ctx, checkpoint, eventstore.Filter{"a"}) {
				}
			}()
			_, _ = appendUntilKnown(ctx, s, "a-1", eventstore.Any, proposals(1))
			if i%5 == 0 {
				p.closeAll()
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	eventually(t, "goroutines", func() error {
		var profile bytes.Buffer
		_ = pprof.Lookup("goroutine").WriteTo(&profile, 1)
		if n := strings.Count(profile.String(), id); n > 0 {
			return fmt.Errorf("%d kinds are left:\n%s", n, profile.String())
		}
		return nil
	})
	eventually(t, "connections", func() error {
		p.mu.Lock()
		defer p.mu.Unlock()
		if n := len(p.openConns); n > 0 {
			return fmt.Errorf("%d are left", n)
		}
		return nil
	})
}

func TestCloseAmongCallsIsSafeEveryTime(t *testing.T) {
	t.Parallel()
	r := serveFolder(t, t.TempDir(), "unix:"+filepath.Join(shortTempDir(t), "s"))
	for i := range 30 {
		s, err := esdb.Open(t.Context(), r.connectionString, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		var work errgroup.Group
		for _, call := range serverCalls(s) {
			work.Go(func() error {
				for {
					err := call(withTimeout(t, limit))
					if errors.Is(err, eventstore.ErrClosed) {
						return nil
					}
					if err != nil && !errors.Is(err, eventstore.ErrUnknown) && !errors.Is(err, eventstore.ErrUnavailable) {
						return err
					}
				}
			})
		}
		time.Sleep(time.Duration(i) * time.Millisecond) // the moment is what varies
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := work.Wait(); err != nil {
			t.Fatalf("round %d: %v", i, err)
		}
	}
}
