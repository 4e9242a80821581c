package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"sync"
	"time"

	"lieudit/cmd/bench/model"
	"lieudit/cmd/lieudit/adminclient"
	"lieudit/eventstore/clock"
	"lieudit/schemas/body"
	"lieudit/schemas/plan"
)

// client is a load client: it repeats one kind of request with random pauses. It is one goroutine, with random numbers of its
// own.
type client struct {
	*run
	rng       *rand.Rand
	meanPause time.Duration // average time between two requests
}

// startClients starts the load clients: a writer for each referential, a reader for each account, and one each for keys, for the customer area
// and for new accounts. Once end is closed, each finishes its running step and ends; the caller waits for the group. ctx is that of their
// requests, so its end is not what stops them.
func (r *run) startClients(ctx context.Context, end <-chan struct{}) *sync.WaitGroup {
	var all sync.WaitGroup
	begin := func(meanPause time.Duration, step func(*client, context.Context)) {
		c := &client{r, rand.New(rand.NewPCG(r.rng.Uint64(), 3)), meanPause}
		all.Go(func() { c.repeatStep(end, func() { step(c, ctx) }) })
	}
	for _, a := range r.openedAccounts() {
		for _, f := range a.referentials {
			begin(120*time.Millisecond, func(c *client, ctx context.Context) { c.writeOnce(ctx, f) })
		}
		begin(60*time.Millisecond, func(c *client, ctx context.Context) { c.readOnce(ctx, a) })
	}
	begin(400*time.Millisecond, (*client).rotateKey)
	begin(200*time.Millisecond, (*client).readAreaOnce)
	begin(time.Second, (*client).openNewAccount)
	return &all
}

// repeatStep calls step until end is closed, but not while a check runs: a check holds checkLock for writing. The pause
// before a step is random, meanPause on average.
func (c *client) repeatStep(end <-chan struct{}, step func()) {
	for {
		select {
		case <-end:
			return
		case <-time.After(randomDuration(c.rng, 0, 2*c.meanPause)):
		}
		c.checkLock.RLock()
		step()
		c.checkLock.RUnlock()
	}
}

// writeOnce sends one write to a referential: a new one, the last sync with an Idempotency-Key again, or a repetition of the write whose answer
// is missing. The latter is repeated in two of three cases, and always from the second on, because the possible states multiply with each
// further write of unknown fate.
func (c *client) writeOnce(ctx context.Context, f *referential) {
	at := c.anyRunning(c.rng)
	switch {
	case at == nil:
	case f.lastKeyedSync != nil && f.lost == nil && c.rng.IntN(15) == 0:
		// The service must repeat its first answer and change nothing.
		c.sendAPI(ctx, at, f.newRequest(*f.lastKeyedSync))
	case f.lost != nil && (f.lostWrites > 1 || c.rng.IntN(3) > 0):
		c.sendWrite(ctx, at, f, f.lost)
	default:
		c.sendWrite(ctx, at, f, f.drawWrite(c.model.KnownSites(f.account.id, f.code, c.rng.Int()), c.rng))
	}
}

// sendWrite sends a write. The model checks the answer. Without an answer, or after 5xx, it is unknown whether the write happened.
func (c *client) sendWrite(ctx context.Context, at *serverProcess, f *referential, w model.PlacesCommand) answer {
	a := c.sendAPI(ctx, at, f.newRequest(w))
	sync, isSync := w.(model.SyncSites)
	switch {
	case a.status == 0 && !a.sent:
		return a
	case a.status == 0 || a.status >= http.StatusInternalServerError:
		if f.lost == nil || !reflect.DeepEqual(f.lost, w) {
			f.lostWrites++
		}
		f.lost = w
		c.updateTotals(func(t *Totals) {
			t.InDoubt++
			if a.status == 0 && len(sync.Rows) >= stagedRows {
				t.Cut++
			}
		})
		return a
	case isSync && sync.IdempotencyKey != "" && a.status == http.StatusOK:
		f.lastKeyedSync = &sync
	}
	f.lost, f.lostWrites = nil, 0
	c.updateTotals(func(t *Totals) { t.Acknowledged++ })
	return a
}

// stagedRows is a number of rows that never fits into one event, so that the service stages them: it appends them in several events and commits
// them with one more. Totals.Cut counts the syncs that were interrupted on the way.
const stagedRows = 500

// readRequests returns the reads that a client chooses from, with the endpoints under which they are billed. Without a
// referential (nil) these are the reads that need none.
func readRequests(f *referential, rng *rand.Rand) []request {
	all := []request{
		{endpoint: "GET /me", path: "/me"},
		{endpoint: "GET /address/verify", path: "/address/verify?q=" + url.QueryEscape("12 rue de la mairie Mende")},
		{endpoint: "GET /address/autocomplete", path: "/address/autocomplete?q=rue+de+la"},
	}
	if f == nil {
		return all
	}
	const oneReferential = "GET /locations/referentiels/{code}"
	base := "/locations/referentiels/" + f.code
	return append(all,
		request{endpoint: "GET /locations/search", path: "/locations/search?q=comptoir+" + fmt.Sprint(rng.IntN(f.rows))},
		request{endpoint: "GET /locations/search", path: "/locations/search?lat=44.5&lon=3.5&radius=50000"},
		request{endpoint: "GET /locations/referentiels", path: "/locations/referentiels"},
		request{endpoint: oneReferential + "/sites", path: base + "/sites?limit=50&statut=tous"},
		request{endpoint: oneReferential + "/sites/{external_id}", path: base + "/sites/" + externalID(rng.IntN(f.rows))},
	)
}

// readOnce sends one random read. During a fault it may fail with 500 or 503, but no answer may call the key unknown.
func (c *client) readOnce(ctx context.Context, a *account) {
	at := c.anyRunning(c.rng)
	if at == nil {
		return
	}
	var f *referential
	if len(a.referentials) > 0 {
		f = a.referentials[c.rng.IntN(len(a.referentials))]
	}
	choice := readRequests(f, c.rng)
	q := choice[c.rng.IntN(len(choice))]
	q.account, q.label, q.key, q.method = a, a.label, a.key, http.MethodGet
	got := c.sendAPI(ctx, at, q)
	// Status 0 is a request without an answer.
	allowed := []int{0, http.StatusOK, http.StatusInternalServerError, http.StatusServiceUnavailable}
	if f != nil && q.path != "/me" {
		allowed = append(allowed, http.StatusNotFound) // read models may be behind
	}
	if a.exhausted {
		allowed = append(allowed, http.StatusTooManyRequests)
	}
	if !slices.Contains(allowed, got.status) {
		c.reportViolation("%s of %s: %s", q.endpoint, a.id, got)
	}
}

// maxRevocationDelay is how long after its revocation an instance may still accept a key: answers rely on data of the log
// that is at most a second old.
const maxRevocationDelay = time.Second

// rotateKey issues a key to a random account, or revokes one and uses it. An account gets at most eight keys in a run.
func (c *client) rotateKey(ctx context.Context) {
	at := c.anyRunning(c.rng)
	if at == nil {
		return
	}
	all := c.openedAccounts()
	a := all[c.rng.IntN(len(all))]
	a.keysLock.Lock()
	defer a.keysLock.Unlock()
	// Clients use the key of the account throughout the run.
	rotated := slices.DeleteFunc(c.model.Secrets(a.id), func(k model.Secret) bool { return !k.IsActive || k.Label == a.label })
	if len(rotated) > 0 && c.rng.IntN(2) == 0 {
		c.revokeKey(ctx, at, a, rotated[0])
	} else if a.keys < 8 {
		c.issueKey(ctx, at, a)
	}
}

// revokeKey revokes a key and, after maxRevocationDelay, uses it on every instance: the model reports an instance that accepts it. Without an
// acknowledgement the list of keys shows what happened.
func (c *client) revokeKey(ctx context.Context, at *serverProcess, a *account, k model.Secret) {
	got := c.sendArea(ctx, at, request{
		account: a, method: http.MethodPost, path: adminclient.JoinPath("revoke", "accounts", a.id, "keys", k.ID), onAccount: model.RevokeKey{Label: k.Label},
	}, body.RevokeKey{Reason: "rotation"})
	if got.status != http.StatusOK {
		return
	}
	c.updateTotals(func(t *Totals) { t.Revocations++ })
	clock.Sleep(ctx, maxRevocationDelay)
	for _, i := range c.instances {
		if p := i.current.Load(); p != nil {
			c.useKey(ctx, p, a, k)
		}
	}
}

// useKey sends a request with a key. The model reports a key that is accepted or refused without reason. An instance that is
// not available (5xx, or no answer) does neither.
func (r *run) useKey(ctx context.Context, at *serverProcess, a *account, k model.Secret) answer {
	return r.sendAPI(ctx, at, request{account: a, label: k.Label, key: k.Token, endpoint: "GET /me", method: http.MethodGet, path: "/me"})
}

// readAreaOnce sends one random read to the customer area. 404 is allowed: the read model may not have the account yet.
func (c *client) readAreaOnce(ctx context.Context) {
	at := c.anyRunning(c.rng)
	if at == nil {
		return
	}
	all := c.openedAccounts()
	account := adminclient.JoinPath("", "accounts", all[c.rng.IntN(len(all))].id)
	paths := []string{"/accounts", "/projections", account, account + "/keys", account + "/usage", account + "/history?limit=50", account + "/state"}
	path := paths[c.rng.IntN(len(paths))]
	got := c.sendArea(ctx, at, request{method: http.MethodGet, path: path}, nil)
	if got.status >= 400 && got.status < 500 && got.status != http.StatusNotFound {
		c.reportViolation("GET %s in the customer area: %s", path, got)
	}
}

// newAccountsPerRound limits the accounts opened in a round. The bound in openNewAccount adds the five of openAccounts.
const newAccountsPerRound = 2

// openNewAccount opens an account and writes its first sites during a fault, so that its data key is created then.
func (c *client) openNewAccount(ctx context.Context) {
	n := len(c.openedAccounts())
	if n >= 5+newAccountsPerRound*int(c.round.Load()) || c.anyRunning(c.rng) == nil || c.rng.IntN(3) > 0 {
		return
	}
	a := newAccount(fmt.Sprintf("new-%d", n), plan.Growth, unlimitedQuota, min(c.Rows, 1500))
	requestCtx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if err := c.openAccount(requestCtx, a, c.rng); err != nil {
		if ctx.Err() == nil && requestCtx.Err() == nil {
			c.reportViolation("%v", err)
		}
		return
	}
	for range 5 {
		c.writeOnce(ctx, a.referentials[0])
	}
}
