package api_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"lieudit/commands/usage"
	"lieudit/eventstore"
	"lieudit/eventstore/waitlimit"
	"lieudit/http/api"
	"lieudit/http/budget"
	"lieudit/schemas/grant"
)

// stalledLogs is a key ring and a meter whose logs do not answer until an instant each.
type stalledLogs struct {
	*fakeKeyRing
	ringUntil time.Time // the ring is stale from the begin on,
	ringFrom  time.Time // and again from here on; zero: it is not
	check     time.Duration
	charge    time.Duration
	refund    time.Duration
}

func (s *stalledLogs) IsFresh(now time.Time) bool {
	return !now.Before(s.ringUntil) && (s.ringFrom.IsZero() || now.Before(s.ringFrom))
}

func (s *stalledLogs) FreshUntil() time.Time {
	now := time.Now()
	if s.IsFresh(now) {
		return now.Add(eventstore.MaxStaleness)
	}
	return now
}

func (s *stalledLogs) AwaitFresh(ctx context.Context) error {
	if !s.IsFresh(time.Now()) && time.Now().After(s.ringUntil) {
		<-ctx.Done()
		return ctx.Err()
	}
	return sleepOrCancel(ctx, time.Until(s.ringUntil))
}

// sleepOrCancel is a log that answers after a while.
func sleepOrCancel(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// waitForLog waits as a meter does for a log that answers after d: as long as the request may, then it refuses.
func waitForLog(ctx context.Context, wait *waitlimit.Wait, d time.Duration) error {
	defer wait.Begin(waitlimit.UncountedWait)()
	waiting, stop := wait.Start(ctx, 0)
	defer stop()
	if sleepOrCancel(waiting, d) != nil {
		return usage.ErrUnavailable
	}
	return nil
}

func (s *stalledLogs) CheckQuota(ctx context.Context, wait *waitlimit.Wait, _ grant.Grant, _ string) error {
	return waitForLog(ctx, wait, s.check)
}

func (s *stalledLogs) Charge(ctx context.Context, wait *waitlimit.Wait, _ grant.Grant, _ string, _ int64) (usage.Charge, error) {
	return usage.Charge{}, waitForLog(ctx, wait, s.charge)
}

func (s *stalledLogs) Settle(ctx context.Context, _ usage.Charge, refunded int64) error {
	if refunded == 0 {
		return nil
	}
	return sleepOrCancel(ctx, s.refund)
}

// TestARequestWaitsThreeSecondsOverAllThatItWaitsFor: waitlimit.UncountedWait for each wait comes on top.
func TestARequestWaitsThreeSecondsOverAllThatItWaitsFor(t *testing.T) {
	t.Parallel()
	const never = time.Minute
	for name, c := range map[string]struct {
		stale        time.Duration
		logs         stalledLogs
		method, path string
		large        bool
		silentAgain  bool // the ring is stale again once the meter has answered
	}{
		"ring, then meter":                    {2 * time.Second, stalledLogs{check: never}, "GET", "/me", false, false},
		"meter twice":                         {0, stalledLogs{check: 2 * time.Second, charge: never}, "GET", "/me", false, false},
		"ring, then a refusal that counts":    {2 * time.Second, stalledLogs{charge: never}, "GET", "/nowhere", false, false},
		"ring, then what is known of a cap":   {2 * time.Second, stalledLogs{check: never}, "POST", syncPath, true, false},
		"what is known of a cap, then a tick": {0, stalledLogs{check: 2 * time.Second, charge: never}, "POST", syncPath, true, false},
		"a tick, then a refund":               {0, stalledLogs{charge: 2 * time.Second, refund: never}, "POST", syncPath, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newTestAPI(t)
				s := c.logs
				s.fakeKeyRing, s.ringUntil = b.keyRing, time.Now().Add(c.stale)
				if c.silentAgain {
					s.ringFrom = time.Now().Add(s.charge - time.Millisecond)
				}
				b.replaceHandler(func(p *fakeParts) {
					p.keyRing, p.meter, p.env.Now, p.env.Counting = &s, &s, time.Now, api.CountingPolicy{Refusals: true}
				})
				text := `{"sites":[]}`
				if c.large {
					text = padTo(text, budget.SmallBody+1)
				}
				r := httptest.NewRequest(c.method, api.Base+c.path, strings.NewReader(text))
				r.Header.Set("Authorization", "Bearer "+b.keys["GROWTH secret"])
				w, came := httptest.NewRecorder(), time.Now()
				b.ServeHTTP(w, r)
				took := time.Since(came)
				if w.Code != http.StatusServiceUnavailable || took < waitlimit.MaxWait || took > waitlimit.MaxWait+2*waitlimit.UncountedWait {
					t.Errorf("%d after %v, want 503 after %v", w.Code, took, waitlimit.MaxWait)
				}
			})
		})
	}
}
