package api_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"lieudit/commands/usage"
	"lieudit/eventstore"
	"lieudit/eventstore/journal"
	"lieudit/http/api"
	"lieudit/schemas/access"
	"lieudit/schemas/token"
)

// fixedVolume is what every account may use.
type fixedVolume int64

func (v fixedVolume) QuotaAt(context.Context, string, time.Time) (int64, eventstore.Position, error) {
	return int64(v), 1, nil
}

// noVault is a vault that nothing needs.
type noVault struct{}

func (noVault) Key(context.Context, string, bool) ([]byte, error) { return nil, eventstore.ErrNoKey }
func (noVault) DestroyKey(context.Context, string) error          { return nil }

// newMeteredAPI is an API with a ledger of its own.
func newMeteredAPI(t *testing.T, c api.CountingPolicy) (*testAPI, *usage.Meter) {
	t.Helper()
	j, err := journal.Open(t.TempDir(), journal.Options{SegmentSize: 1 << 20, Clock: func() time.Time { return noon }})
	if err != nil {
		t.Fatal(err)
	}
	log, now := slog.New(slog.DiscardHandler), func() time.Time { return noon }
	l := usage.New(j, eventstore.NewCodec(noVault{}), fixedVolume(6), now, log)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { l.Run(ctx, j, eventstore.Checkpoint{}) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
		j.Close()
	})
	b := newTestAPI(t)
	for h, g := range b.keyRing.keys {
		g.Quota = 6
		b.keyRing.keys[h] = g
	}
	b.replaceHandler(func(p *fakeParts) { p.meter = api.NewRequestMeter(l, c, log) })
	return b, l
}

func TestWhatCounts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		method, target, key string
		status              int
		favour, letter      int64
	}{
		{"GET", "/me", "GROWTH secret", 200, 1, 1},
		{"GET", "/me?x=1", "GROWTH secret", 422, 1, 1},
		{"GET", "/version", "GROWTH secret", 200, 0, 0},
		{"GET", "/me?x=%zz", "GROWTH secret", 400, 0, 0},
		{"GET", "/nowhere", "GROWTH secret", 404, 0, 1},
		{"POST", "/me", "GROWTH secret", 405, 0, 1},
		{"GET", "/route/compute", "GROWTH secret", 403, 0, 1},
		{"GET", "/route/matrix", "GROWTH secret", 500, 0, 1},
		{"GET", "/me", "GROWTH publishable", 403, 0, 0},
	} {
		for counting, want := range map[api.CountingPolicy]int64{{}: c.favour, api.CountAll: c.letter} {
			b, l := newMeteredAPI(t, counting)
			if w := b.send(c.method, api.Base+c.target, c.key); w.Code != c.status {
				t.Errorf("%s %s: %d, want %d", c.method, c.target, w.Code, c.status)
			}
			s, err := l.ReadQuotaUsage(t.Context(), b.keyRing.keys[token.HashOf(b.keys["GROWTH secret"])])
			if err != nil || s.Used != want {
				t.Errorf("%s %s with %+v: %d counted, %v, want %d", c.method, c.target, counting, s.Used, err, want)
			}
		}
	}
}

func TestTheRequestAfterTheLastIsRefusedAndNothingBefore(t *testing.T) {
	t.Parallel()
	b, _ := newMeteredAPI(t, api.CountingPolicy{})
	for plan, want := range map[string]string{
		"DISCOVERY": `{"detail":"Rate limit exceeded. Max allowed usage for plan DISCOVERY is 6 requests."}`,
		"GROWTH":    `{"detail":"Your plan (GROWTH) has exceeded the rate limit for this service. Please upgrade your plan."}`,
	} {
		h := token.HashOf(b.keys[plan+" secret"])
		b.keyRing.keys[h] = withAccount(b.keyRing.keys[h], plan)
		for range 6 {
			expectResponse(t, plan, b.send("GET", api.Base+"/me", plan+" secret"), 200, `"limite":6`)
			expectResponse(t, plan, b.send("GET", api.Base+"/me?x=%zz", plan+" secret"), 400, badRequest)
		}
		w := b.send("GET", api.Base+"/me", plan+" secret")
		expectResponse(t, plan, w, 429, want)
		if w.Header().Get("Retry-After") != "" {
			t.Errorf("%s: Retry-After is sent", plan)
		}
	}
}

func withAccount(g access.Grant, account string) access.Grant {
	g.Account = account
	return g
}
