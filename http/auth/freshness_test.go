package auth_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"lieudit/eventstore"
	"lieudit/eventstore/waitlimit"
	"lieudit/http/auth"
	"lieudit/http/problem"
	"lieudit/schemas/grant"
	"lieudit/schemas/token"
)

// pollingKeyRing is a ring that reads its log when a test calls poll.
type pollingKeyRing struct {
	mu       sync.Mutex
	keys     map[token.Hash]grant.Grant
	lastPoll time.Time
	polled   chan struct{}
}

func newPollingKeyRing() *pollingKeyRing {
	return &pollingKeyRing{keys: map[token.Hash]grant.Grant{}, lastPoll: time.Now(), polled: make(chan struct{})}
}

func (f *pollingKeyRing) FindKey(h token.Hash, _ time.Time) (grant.Grant, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	g, ok := f.keys[h]
	return g, ok
}

func (f *pollingKeyRing) IsFresh(now time.Time) bool { return now.Before(f.FreshUntil()) }

func (f *pollingKeyRing) FreshUntil() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lastPoll.Add(eventstore.MaxStaleness)
}

func (f *pollingKeyRing) AwaitFresh(ctx context.Context) error {
	for {
		f.mu.Lock()
		polled := f.polled
		f.mu.Unlock()
		if f.IsFresh(time.Now()) {
			return nil
		}
		select {
		case <-polled:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// poll reads the log again. The revoked keys are no longer in it.
func (f *pollingKeyRing) poll(revoked ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, text := range revoked {
		delete(f.keys, token.HashOf(text))
	}
	f.lastPoll = time.Now()
	close(f.polled)
	f.polled = make(chan struct{})
}

// addKey makes a key of an account.
func (f *pollingKeyRing) addKey(account string) string {
	text := token.DefaultPrefixes.New(token.Secret)
	f.keys[token.HashOf(text)] = grant.Grant{Kind: token.Secret, Account: account}
	return text
}

// authResult is the result of authenticating a request, and how long that took.
type authResult struct {
	auth.Authentication
	err  error
	took time.Duration
}

// authenticate authenticates a request with a key, and sends the result on the channel.
func authenticate(ctx context.Context, g *auth.Authenticator, text string) <-chan authResult {
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/services/v1/me", nil)
	r.Header.Set("Authorization", "Bearer "+text)
	result, started := make(chan authResult, 1), time.Now()
	go func() {
		a, err := g.Authenticate(http.Header{}, r)
		result <- authResult{a, err, time.Since(started)}
	}()
	return result
}

func (e authResult) status() int { return problem.StatusOf(e.err) }

func TestOnlyRequestsWithAKnownKeyWaitForAStaleRing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newPollingKeyRing()
		g := auth.NewAuthenticator(f, waitlimit.New(waitlimit.MaxRequests), token.DefaultPrefixes, searchPath, time.Now)
		stays, goes, unknown := f.addKey("a"), f.addKey("a"), token.DefaultPrefixes.New(token.Secret)
		time.Sleep(2 * time.Second)
		kept, revoked := authenticate(t.Context(), g, stays), authenticate(t.Context(), g, goes)
		if e := <-authenticate(t.Context(), g, unknown); e.status() != 503 || e.took != 0 {
			t.Errorf("unknown to the stale ring: %d after %v, want 503 at once", e.status(), e.took)
		}
		if e := <-authenticate(t.Context(), g, "ld_sk_x"); e.status() != 401 || e.took != 0 {
			t.Errorf("no key at all: %d after %v, want 401 at once", e.status(), e.took)
		}
		time.Sleep(2500 * time.Millisecond)
		f.poll(goes)
		if e := <-kept; e.status() != 200 || e.took != 2500*time.Millisecond {
			t.Errorf("a key that stays: %d after %v", e.status(), e.took)
		} else {
			defer expectWait(t, g, e, waitlimit.MaxWait-e.took)
		}
		if e := <-revoked; e.status() != 401 {
			t.Errorf("a key revoked meanwhile: %d, want 401", e.status())
		}
		if e := <-authenticate(t.Context(), g, unknown); e.status() != 401 {
			t.Errorf("unknown to the fresh ring: %d, want 401", e.status())
		}
	})
}

// expectWait checks how long a request may still wait for a ring that nothing makes fresh again.
func expectWait(t *testing.T, g *auth.Authenticator, e authResult, want time.Duration) {
	t.Helper()
	time.Sleep(2 * eventstore.MaxStaleness)
	started := time.Now()
	err := g.Revalidate(t.Context(), &e.Authentication)
	if took := time.Since(started); (authResult{err: err}).status() != 503 || took != want {
		t.Errorf("on a stale ring: %v after %v, want a 503 after %v", err, took, want)
	}
}

func TestNobodyWaitsLongerThanThreeSecondsNorForALostLog(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newPollingKeyRing()
		g := auth.NewAuthenticator(f, waitlimit.New(waitlimit.MaxRequests), token.DefaultPrefixes, searchPath, time.Now)
		key := f.addKey("a")
		for _, c := range []struct{ silence, want time.Duration }{
			{2 * time.Second, waitlimit.MaxWait}, {8 * time.Second, 2 * time.Second}, {waitlimit.MaxSilence, 0}, {time.Minute, 0},
		} {
			f.poll()
			time.Sleep(c.silence)
			if e := <-authenticate(t.Context(), g, key); e.status() != 503 || e.took != c.want {
				t.Errorf("after %v of silence: %d after %v, want 503 after %v", c.silence, e.status(), e.took, c.want)
			}
		}
	})
}

func TestWaitsForARingAreLimitedInAllAndForEachAccount(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, limiter := newPollingKeyRing(), waitlimit.New(4)
		g := auth.NewAuthenticator(f, limiter, token.DefaultPrefixes, searchPath, time.Now)
		one, other := f.addKey("a"), f.addKey("b")
		time.Sleep(2 * time.Second)
		ctx, goAway := context.WithCancel(t.Context())
		waits := []<-chan authResult{authenticate(ctx, g, one), authenticate(t.Context(), g, one), authenticate(t.Context(), g, other)}
		synctest.Wait()
		if e := <-authenticate(t.Context(), g, one); e.status() != 503 || e.took != 0 {
			t.Errorf("the third of an account: %d after %v, want 503 at once", e.status(), e.took)
		}
		goAway()
		<-waits[0]
		waits[0] = authenticate(t.Context(), g, one)
		synctest.Wait()
		if got := limiter.Waiting(); got != 3 {
			t.Errorf("%d wait, want 3: one went, and another came", got)
		}
		f.poll()
		for i, w := range waits {
			if e := <-w; e.status() != 200 {
				t.Errorf("waiter %d: %d", i, e.status())
			}
		}
		if got := limiter.Waiting(); got != 0 {
			t.Errorf("%d places are still taken", got)
		}
	})
}

func TestRevalidateUsesARingNoOlderThanASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newPollingKeyRing()
		g := auth.NewAuthenticator(f, waitlimit.New(waitlimit.MaxRequests), token.DefaultPrefixes, searchPath, time.Now)
		stays, goes := f.addKey("a"), f.addKey("a")
		spent, kept, revoked := <-authenticate(t.Context(), g, stays), <-authenticate(t.Context(), g, stays), <-authenticate(t.Context(), g, goes)
		if err := g.Revalidate(t.Context(), &revoked.Authentication); err != nil {
			t.Errorf("within the second: %v", err)
		}
		expectWait(t, g, spent, waitlimit.MaxWait)
		expectWait(t, g, spent, 0)
		time.AfterFunc(time.Second, func() { f.poll(goes) })
		if err := g.Revalidate(t.Context(), &kept.Authentication); err != nil {
			t.Errorf("a key that stays: %v", err)
		}
		if err := g.Revalidate(t.Context(), &revoked.Authentication); (authResult{err: err}).status() != 401 {
			t.Errorf("a key revoked meanwhile: %v, want a 401", err)
		}
	})
}

// resettingKeyRing is a ring that begins to read its log again from zero during each look-up.
type resettingKeyRing struct{ *pollingKeyRing }

func (a resettingKeyRing) FindKey(token.Hash, time.Time) (grant.Grant, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lastPoll = time.Time{}
	return grant.Grant{}, false
}

func TestARingThatRestartsDuringALookUpRefusesNoKey(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newPollingKeyRing()
		g := auth.NewAuthenticator(resettingKeyRing{f}, waitlimit.New(waitlimit.MaxRequests), token.DefaultPrefixes, searchPath, time.Now)
		if e := <-authenticate(t.Context(), g, f.addKey("a")); e.status() != 503 {
			t.Errorf("a key that the new ring does not have yet: %d, want 503", e.status())
		}
	})
}
