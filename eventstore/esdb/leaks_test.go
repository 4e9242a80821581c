package esdb_test

import (
	"bytes"
	"context"
	"fmt"
	"runtime/pprof"
	"strings"
	"testing"

	"github.com/google/uuid"

	"lieudit/eventstore"
	"lieudit/eventstore/esdb"
)

func TestNothingIsLeftAfterClose(t *testing.T) {
	t.Parallel()
	r := serve(t, t.TempDir(), "127.0.0.1:0")
	p := newProxy(t, r.at)
	id := uuid.NewString()
	pprof.Do(t.Context(), pprof.Labels("esdb", id), func(ctx context.Context) {
		s, err := esdb.Open(ctx, p.connection())
		if err != nil {
			t.Fatal(err)
		}
		mark := here(t, s)
		for i := range 20 {
			go func() {
				for range s.Subscribe(ctx, mark, eventstore.Filter{"a"}) {
				}
			}()
			_, _ = settle(ctx, s, "a-1", eventstore.Any, proposals(1))
			if i%5 == 0 {
				p.cut()
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
		if n := len(p.open); n > 0 {
			return fmt.Errorf("%d are left", n)
		}
		return nil
	})
}
