package auth_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"lieudit/eventstore/waiting"
	"lieudit/http/auth"
	"lieudit/http/problem"
	"lieudit/schemas/grant"
	"lieudit/schemas/token"
)

// follower is a ring that looks at its log when it is told to.
type follower struct {
	mu     sync.Mutex
	keys   map[token.Hash]grant.Grant
	looked time.Time
	turned chan struct{}
}

func newFollower() *follower {
	return &follower{keys: map[token.Hash]grant.Grant{}, looked: time.Now(), turned: make(chan struct{})}
}

func (f *follower) Find(h token.Hash, _ time.Time) (grant.Grant, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	g, ok := f.keys[h]
	return g, ok
}

func (f *follower) Fresh(now time.Time) bool { return now.Before(f.FreshUntil()) }

func (f *follower) FreshUntil() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.looked.Add(waiting.Staleness)
}

func (f *follower) AwaitFresh(ctx context.Context) error {
	for {
		f.mu.Lock()
		turned := f.turned
		f.mu.Unlock()
		if f.Fresh(time.Now()) {
			return nil
		}
		select {
		case <-turned:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// look reads the log anew, which no longer has some keys.
func (f *follower) look(revoked ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, text := range revoked {
		delete(f.keys, token.HashOf(text))
	}
	f.looked = time.Now()
	close(f.turned)
	f.turned = make(chan struct{})
}

// issue makes a key of an account.
func (f *follower) issue(account string) string {
	text := token.Default.New(token.Secret)
	f.keys[token.HashOf(text)] = grant.Grant{Kind: token.Secret, Account: account}
	return text
}

// entry is what becomes of a request at a gate, and after how long.
type entry struct {
	auth.Admission
	err  error
	took time.Duration
}

// enter asks at a gate with a key and gives what becomes of it once that is known.
func enter(ctx context.Context, g *auth.Gate, text string) <-chan entry {
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/services/v1/me", nil)
	r.Header.Set("Authorization", "Bearer "+text)
	known, came := make(chan entry, 1), time.Now()
	go func() {
		a, err := g.Admit(http.Header{}, r)
		known <- entry{a, err, time.Since(came)}
	}()
	return known
}

func (e entry) status() int {
	if p, ok := errors.AsType[problem.Problem](e.err); ok {
		return p.Status
	}
	return 200
}

func TestAStaleRingIsWaitedForByThoseWhoseKeyItKnows(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFollower()
		g := auth.NewGate(f, token.Default, search, time.Now)
		stays, goes, unknown := f.issue("a"), f.issue("a"), token.Default.New(token.Secret)
		time.Sleep(2 * time.Second)
		kept, revoked := enter(t.Context(), g, stays), enter(t.Context(), g, goes)
		if e := <-enter(t.Context(), g, unknown); e.status() != 503 || e.took != 0 {
			t.Errorf("unknown to the stale ring: %d after %v, want 503 at once", e.status(), e.took)
		}
		if e := <-enter(t.Context(), g, "ld_sk_x"); e.status() != 401 || e.took != 0 {
			t.Errorf("no key at all: %d after %v, want 401 at once", e.status(), e.took)
		}
		time.Sleep(2500 * time.Millisecond)
		f.look(goes)
		if e := <-kept; e.status() != 200 || e.took != 2500*time.Millisecond || e.Waited != e.took {
			t.Errorf("a key that stays: %d after %v, of them %v waited", e.status(), e.took, e.Waited)
		}
		if e := <-revoked; e.status() != 401 {
			t.Errorf("a key revoked meanwhile: %d, want 401", e.status())
		}
		if e := <-enter(t.Context(), g, unknown); e.status() != 401 {
			t.Errorf("unknown to the fresh ring: %d, want 401", e.status())
		}
	})
}

func TestNobodyWaitsLongerThanThreeSecondsNorForALostLog(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFollower()
		g := auth.NewGate(f, token.Default, search, time.Now)
		key := f.issue("a")
		for _, c := range []struct{ silence, want time.Duration }{
			{2 * time.Second, waiting.Longest}, {8 * time.Second, 2 * time.Second}, {waiting.Lost, 0}, {time.Minute, 0},
		} {
			f.look()
			time.Sleep(c.silence)
			if e := <-enter(t.Context(), g, key); e.status() != 503 || e.took != c.want {
				t.Errorf("after %v of silence: %d after %v, want 503 after %v", c.silence, e.status(), e.took, c.want)
			}
		}
	})
}

func TestOnlySoManyWaitForARingAndHalfOfThemForOneAccount(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, room := newFollower(), waiting.NewRoom(4)
		g := auth.NewGate(f, token.Default, search, time.Now)
		g.WaitIn(room)
		one, other := f.issue("a"), f.issue("b")
		time.Sleep(2 * time.Second)
		ctx, goAway := context.WithCancel(t.Context())
		waits := []<-chan entry{enter(ctx, g, one), enter(t.Context(), g, one), enter(t.Context(), g, other)}
		synctest.Wait()
		if e := <-enter(t.Context(), g, one); e.status() != 503 || e.took != 0 {
			t.Errorf("the third of an account: %d after %v, want 503 at once", e.status(), e.took)
		}
		goAway()
		<-waits[0]
		waits[0] = enter(t.Context(), g, one)
		synctest.Wait()
		if got := room.Taken(); got != 3 {
			t.Errorf("%d wait, want 3: one went, and another came", got)
		}
		f.look()
		for i, w := range waits {
			if e := <-w; e.status() != 200 {
				t.Errorf("waiter %d: %d", i, e.status())
			}
		}
		if got := room.Taken(); got != 0 {
			t.Errorf("%d places are still taken", got)
		}
	})
}

func TestWhatWasAdmittedIsConfirmedOnARingThatIsNoOlderThanASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFollower()
		g := auth.NewGate(f, token.Default, search, time.Now)
		stays, goes := f.issue("a"), f.issue("a")
		kept, revoked := <-enter(t.Context(), g, stays), <-enter(t.Context(), g, goes)
		if err := g.Confirm(t.Context(), &revoked.Admission, time.Now(), 0); err != nil {
			t.Errorf("within the second: %v", err)
		}
		time.Sleep(1500 * time.Millisecond)
		if err := g.Confirm(t.Context(), &kept.Admission, time.Now(), 0); (entry{err: err}).status() != 503 {
			t.Errorf("on a stale ring without any time left: %v, want a 503", err)
		}
		time.AfterFunc(time.Second, func() { f.look(goes) })
		if err := g.Confirm(t.Context(), &kept.Admission, time.Now(), waiting.Longest); err != nil {
			t.Errorf("a key that stays: %v", err)
		}
		if err := g.Confirm(t.Context(), &revoked.Admission, time.Now(), waiting.Longest); (entry{err: err}).status() != 401 {
			t.Errorf("a key revoked meanwhile: %v, want a 401", err)
		}
	})
}

// anew is a follower that begins again from zero whenever it is asked.
type anew struct{ *follower }

func (a anew) Find(token.Hash, time.Time) (grant.Grant, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.looked = time.Time{}
	return grant.Grant{}, false
}

func TestARingThatBeginsAgainFromZeroWhileItIsAskedRefusesNoKey(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFollower()
		g := auth.NewGate(anew{f}, token.Default, search, time.Now)
		if e := <-enter(t.Context(), g, f.issue("a")); e.status() != 503 {
			t.Errorf("a key that the new ring does not have yet: %d, want 503", e.status())
		}
	})
}
