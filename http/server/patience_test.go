package server_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"lieudit/commands/usage"
	"lieudit/eventstore/waiting"
	"lieudit/http/bodies"
	"lieudit/http/problem"
	"lieudit/http/server"
	"lieudit/schemas/grant"
	"lieudit/schemas/token"
)

// stalled is a key ring and a meter of logs that are silent until an instant each.
type stalled struct {
	*ring
	ringUntil time.Time // the ring is stale from the begin on,
	ringFrom  time.Time // and again from here on; zero: it is not
	known     time.Duration
	admit     time.Duration
	settle    time.Duration
	undo      time.Duration // of a refund to be durable
}

func (s *stalled) Fresh(now time.Time) bool {
	return !now.Before(s.ringUntil) && (s.ringFrom.IsZero() || now.Before(s.ringFrom))
}

func (s *stalled) FreshUntil() time.Time {
	now := time.Now()
	if s.Fresh(now) {
		return now.Add(waiting.Staleness)
	}
	return now
}

func (s *stalled) AwaitFresh(ctx context.Context) error {
	if !s.Fresh(time.Now()) && time.Now().After(s.ringUntil) {
		<-ctx.Done()
		return ctx.Err()
	}
	return silence(ctx, time.Until(s.ringUntil))
}

// silence is a log that answers after a while.
func silence(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// waits is how long a meter waits for its log.
func waits(ctx context.Context, d time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, waiting.Longest)
	defer cancel()
	if silence(ctx, d) != nil {
		return problem.AuthUnavailable()
	}
	return nil
}

func (s *stalled) Admit(ctx context.Context, _ grant.Grant, _ string, writes bool) (server.Settle, error) {
	return func(ctx context.Context, status int) (usage.Spending, error) {
		if writes && status == http.StatusServiceUnavailable {
			return usage.Spending{}, waits(ctx, s.undo)
		}
		return usage.Spending{}, waits(ctx, s.settle)
	}, waits(ctx, s.admit)
}

func (s *stalled) Known(ctx context.Context, _ grant.Grant, _ string) error {
	return waits(ctx, s.known)
}

func (s *stalled) Refused(ctx context.Context, _ grant.Grant, _ string) error {
	return waits(ctx, s.settle)
}

// TestARequestWaitsThreeSecondsOverAllThatItWaitsFor, a moment for each wait set aside.
func TestARequestWaitsThreeSecondsOverAllThatItWaitsFor(t *testing.T) {
	t.Parallel()
	const never = time.Minute
	for name, c := range map[string]struct {
		stale        time.Duration
		logs         stalled
		method, path string
		large        bool
		silentAgain  bool // the ring is stale again once the meter has answered
	}{
		"ring, then meter":                    {2 * time.Second, stalled{admit: never}, "GET", "/me", false, false},
		"meter twice":                         {0, stalled{admit: 2 * time.Second, settle: never}, "GET", "/me", false, false},
		"ring, then a refusal that counts":    {2 * time.Second, stalled{settle: never}, "GET", "/nowhere", false, false},
		"ring, then what is known of a cap":   {2 * time.Second, stalled{known: never}, "POST", syncPath, true, false},
		"what is known of a cap, then a tick": {0, stalled{known: 2 * time.Second, admit: never}, "POST", syncPath, true, false},
		"a tick, then a refund":               {0, stalled{admit: 2 * time.Second, undo: never}, "POST", syncPath, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				s := c.logs
				s.ring, s.ringUntil = b.ring, time.Now().Add(c.stale)
				if c.silentAgain {
					s.ringFrom = time.Now().Add(s.admit - time.Millisecond)
				}
				log := slog.New(slog.DiscardHandler)
				b.Handler = server.New(server.Parts{
					Ring: &s, Meter: &s, Tokens: token.Default, Now: time.Now, Log: log, Bodies: bodies.NewBudget(1<<20, 1<<20),
				})
				text := `{"sites":[]}`
				if c.large {
					text = padded(text, bodies.Small+1)
				}
				r := httptest.NewRequest(c.method, server.Base+c.path, strings.NewReader(text))
				r.Header.Set("Authorization", "Bearer "+b.keys["GROWTH secret"])
				w, came := httptest.NewRecorder(), time.Now()
				b.ServeHTTP(w, r)
				took := time.Since(came)
				if w.Code != http.StatusServiceUnavailable || took < waiting.Longest || took > waiting.Longest+2*waiting.Brief {
					t.Errorf("%d after %v, want 503 after %v", w.Code, took, waiting.Longest)
				}
			})
		})
	}
}
