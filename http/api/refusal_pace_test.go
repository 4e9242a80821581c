package api_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"lieudit/commands/usage"
	"lieudit/eventstore/waitlimit"
	"lieudit/http/api"
	"lieudit/schemas/grant"
	"lieudit/schemas/plan"
	"lieudit/schemas/token"
)

// sendInLoop has clients that send a request again as soon as it is answered, for some seconds, and returns how many were answered.
func (b *testAPI) sendInLoop(clients int, duration time.Duration, method, path, key string) (answered int) {
	var mu sync.Mutex
	var all sync.WaitGroup
	for began := time.Now(); clients > 0; clients-- {
		all.Go(func() {
			for time.Since(began) < duration {
				b.send(method, api.Base+path, key)
				mu.Lock()
				answered++
				mu.Unlock()
				time.Sleep(time.Millisecond) // of the client and the network
			}
		})
	}
	all.Wait()
	return answered
}

// Refusals that cost nothing are paced: any client could otherwise send them in a loop and take the processor from others.
func TestRefusalsThatCostNothingAreAnsweredAtAPace(t *testing.T) {
	t.Parallel()
	spent := &usage.QuotaExceededError{Limit: 1}
	const (
		clients, duration = 16, 2 * time.Second
		unpaced           = clients * 2000        // a request of each client every millisecond
		most              = 1000 + 2*2000 + 2*16  // a burst, the pace, and the requests under way at both ends
		least             = 1000 + 2*2000 - 2*100 // the pace is reached
	)
	for _, c := range []struct {
		name, method, path, key string
		err                     error
		policy                  api.CountingPolicy
		isPaced                 bool
	}{
		{"a spent quota", "GET", "/me", "GROWTH secret", spent, api.CountingPolicy{}, true},
		{"an unknown route", "GET", "/nowhere", "GROWTH secret", nil, api.CountingPolicy{}, true},
		{"an unknown route that counts", "GET", "/nowhere", "GROWTH secret", nil, api.CountAll, false},
		{"a wrong method", "PUT", "/me", "GROWTH secret", nil, api.CountingPolicy{}, true},
		{"a plan", "GET", "/route/compute", "DISCOVERY secret", nil, api.CountingPolicy{}, true},
		{"syntax", "GET", "/me?x=%zz", "GROWTH secret", nil, api.CountingPolicy{}, true},
		{"a key that has ended", "GET", "/me", "GROWTH secret", usage.ErrRevoked, api.CountingPolicy{}, true},
		{"an invalid parameter, which counts", "GET", "/me?x=1", "GROWTH secret", nil, api.CountingPolicy{}, false},
		{"an answer", "GET", "/me", "GROWTH secret", nil, api.CountingPolicy{}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newTestAPI(t)
				b.replaceHandler(func(p *fakeParts) { p.meter, p.env.Counting = quietMeter{c.err}, c.policy })
				got := b.sendInLoop(clients, duration, c.method, c.path, c.key)
				if c.isPaced && (got < least || got > most) {
					t.Errorf("%d were answered in %v, want %d to %d", got, duration, least, most)
				}
				if !c.isPaced && got != unpaced {
					t.Errorf("%d were answered in %v, want all %d", got, duration, unpaced)
				}
			})
		})
	}
}

// quietMeter refuses every request with an error, and admits all without one. Unlike fakeMeter it records nothing.
type quietMeter struct{ refuse error }

func (m quietMeter) CheckQuota(context.Context, *waitlimit.Wait, grant.Grant, string) error {
	return m.refuse
}

func (m quietMeter) Charge(context.Context, *waitlimit.Wait, grant.Grant, string, int64) (usage.Charge, error) {
	return usage.Charge{}, m.refuse
}

func (m quietMeter) Settle(context.Context, usage.Charge, int64) error { return nil }

func TestRefusalsOfOneAccountDelayNoOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newTestAPI(t)
		b.replaceHandler(func(p *fakeParts) { p.meter = quietMeter{&usage.QuotaExceededError{Limit: 1}} })
		other := token.DefaultPrefixes.New(token.Secret)
		b.keys["other"] = other
		b.keyRing.keys[token.HashOf(other)] = grant.Grant{KeyID: "k", Kind: token.Secret, Account: "other", Terms: grant.Terms{Plan: plan.Growth}}
		var flood sync.WaitGroup
		flood.Go(func() { b.sendInLoop(400, time.Second, "GET", "/me", "GROWTH secret") })
		time.Sleep(750 * time.Millisecond)
		began := time.Now()
		expectResponse(t, "other account", b.send("GET", api.Base+"/me", "other"), 429, "")
		if waited := time.Since(began); waited != 0 {
			t.Errorf("the refusal of another account waited for %v", waited)
		}
		b.send("GET", api.Base+"/me", "GROWTH secret")
		if waited := time.Since(began); waited == 0 || waited > time.Second {
			t.Errorf("a refusal of the account that floods waited for %v, want up to a second", waited)
		}
		flood.Wait()
	})
}
