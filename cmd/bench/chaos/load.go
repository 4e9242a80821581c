package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"lieudit/cmd/lieudit/adminclient"
	"lieudit/eventstore/clock"
	"lieudit/schemas/body"
	"lieudit/schemas/plan"
	"lieudit/schemas/token"
)

// client is a load client: it repeats one kind of request with random pauses. It is one goroutine, with random numbers of its
// own.
type client struct {
	*run
	rng       *rand.Rand
	meanPause time.Duration // average time between two requests
}

// startClients starts the load clients: a writer for each referential, a reader for each account, and one each for keys,
// for the customer area and for new accounts. Once end is closed, each finishes its running step and ends; the caller waits
// for the group. ctx is that of their requests, and so is not the one that ends them.
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

// writeOnce sends one write to a referential: a new one, the last sync with an Idempotency-Key again, or the write in doubt
// again. The latter is sent again in two of three cases, and always where more than three states are possible, because each
// further write in doubt would multiply them.
func (c *client) writeOnce(ctx context.Context, f *referential) {
	at := c.anyRunning(c.rng)
	switch {
	case at == nil || f.excluded:
	case f.lastKeyedSync != nil && f.pending == nil && c.rng.IntN(15) == 0:
		c.repeatLastSync(ctx, at, f)
	case f.pending != nil && (len(f.possible) > 3 || c.rng.IntN(3) > 0):
		c.sendWrite(ctx, at, f, *f.pending)
	default:
		c.sendWrite(ctx, at, f, f.drawWrite(c.rng))
	}
}

// sendWrite sends a write and records its answer in the referential. 200, 201, 404 and 409 are decisions of the service and
// must follow from a possible state. Without an answer, or after 5xx, the write is in doubt. Any other answer is a
// violation. After a violation the referential is excluded: later ones would only follow from it.
func (c *client) sendWrite(ctx context.Context, at *serverProcess, f *referential, w write) {
	a := c.sendAPI(ctx, at, w.newRequest(f))
	switch a.status {
	case http.StatusOK, http.StatusCreated, http.StatusConflict, http.StatusNotFound:
		answered, err := outcomeOf(w, a.status, a.body)
		if err == nil {
			err = f.acknowledge(w, answered)
		}
		if err != nil {
			f.excluded = true
			c.reportViolation("%v", err)
		}
		c.updateTotals(func(t *Totals) { t.Acknowledged++ })
	case 0:
		if a.sent {
			f.recordDoubt(w)
			c.updateTotals(func(t *Totals) { t.Cut += intOf(len(w.rows) >= stagedRows) })
		}
	default:
		if a.status < http.StatusInternalServerError {
			f.excluded = true
			c.reportViolation("%s of %s/%s: %s", w.action, f.account.id, f.code, a)
			return
		}
		f.recordDoubt(w)
	}
	if a.sent && f.pending != nil {
		c.updateTotals(func(t *Totals) { t.InDoubt++ })
	}
}

// stagedRows is a number of rows that never fits into one event, so that the service stages them: it appends them in several
// events and makes them real by one more. Totals.Cut counts the syncs that were interrupted on the way.
const stagedRows = 500

// repeatLastSync sends the last sync with an Idempotency-Key again. The service must repeat its first answer and change
// nothing, so the possible states stay as they are, even without an answer.
func (c *client) repeatLastSync(ctx context.Context, at *serverProcess, f *referential) {
	a := c.sendAPI(ctx, at, f.lastKeyedSync.write.newRequest(f))
	if a.status == 0 || a.status >= http.StatusInternalServerError {
		return
	}
	answered, err := outcomeOf(f.lastKeyedSync.write, a.status, a.body)
	if err == nil {
		err = f.checkRepeat(answered)
	}
	if err != nil {
		f.excluded = true
		c.reportViolation("%v", err)
	}
}

// newRequest returns the request that sends a write. A patch sends only the name and the phone, the fields that depend on the
// edition.
func (w write) newRequest(f *referential) request {
	base := "/locations/referentiels/" + f.code + "/sites"
	const oneSite = "/locations/referentiels/{code}/sites"
	q := request{account: f.account, key: f.account.key, method: http.MethodPost, idempotencyKey: w.key}
	switch w.action {
	case syncSites, upsert:
		q.path, q.endpoint, q.body = base+":"+string(w.action), "POST "+oneSite+":"+string(w.action), w.batchBody(false)
	case put:
		q.method, q.path, q.endpoint = http.MethodPut, base+"/"+externalID(w.rows[0].id), "PUT "+oneSite+"/{external_id}"
		q.body, _ = json.Marshal(contentOf(w.rows[0])) // never fails for this type
	case patch:
		q.method, q.path, q.endpoint = http.MethodPatch, base+"/"+externalID(w.rows[0].id), "PATCH "+oneSite+"/{external_id}"
		content := contentOf(w.rows[0])
		q.body, _ = json.Marshal(map[string]string{"nom": content.Name, "telephone": content.Phone}) // never fails for strings
	default:
		verb := ":" + string(w.action)
		q.path, q.endpoint, q.body = base+"/"+externalID(w.rows[0].id)+verb, "POST "+oneSite+"/{external_id}"+verb, []byte("{}")
	}
	return q
}

// batchBody returns the body of a sync or an upsert, with the content of each row in its edition.
func (w write) batchBody(isDryRun bool) []byte {
	all := body.SyncSites{Sites: make([]body.SiteRow, len(w.rows)), ConfirmReduction: w.confirmed, DryRun: isDryRun}
	for i, r := range w.rows {
		all.Sites[i] = body.SiteRow{ExternalID: externalID(r.id), Content: contentOf(r)}
	}
	text, _ := json.Marshal(all) // never fails for this type
	return text
}

// drawWrite returns a random write in a new edition: four of ten are syncs, two are upserts, four concern one site. It starts
// from one of the possible states, so that the write fits the sites that may exist.
func (f *referential) drawWrite(rng *rand.Rand) write {
	now := f.possible[rng.IntN(len(f.possible))]
	f.edition++
	if kind := rng.IntN(10); kind < 4 || now.active == 0 {
		return f.drawSync(now, rng)
	} else if kind < 6 {
		return f.drawUpsert(now, rng)
	}
	one := write{
		action: []action{put, put, patch, deactivate, reactivate}[rng.IntN(5)],
		rows:   []row{{rng.IntN(f.rows), f.edition}},
	}
	return one
}

// drawSync returns a random sync. Usually most of its sites exist already, some are changed, missing or new; sometimes it
// has far fewer sites, or all that the referential may have. The three shares say which part of the active sites it
// changes, which part it keeps, and which part of the other sites it adds. One in four does not confirm a large reduction,
// so it may be refused; one in three has an Idempotency-Key.
func (f *referential) drawSync(now state, rng *rand.Rand) write {
	w := write{action: syncSites, confirmed: rng.IntN(4) > 0}
	changeShare := []float64{0, 0.01, 0.2, 1}[rng.IntN(4)]
	keepShare := []float64{1, 0.98, 0.7, 0.3}[rng.IntN(4)]
	addShare := []float64{0, 0.02, 0.5, 1}[rng.IntN(4)]
	for id := range f.rows {
		had, known := now.sites[id]
		isActive := known && had.active
		switch {
		case isActive && rng.Float64() < keepShare:
			r := row{id, had.edition}
			if rng.Float64() < changeShare {
				r.edition = f.edition
			}
			w.rows = append(w.rows, r)
		case !isActive && rng.Float64() < addShare:
			w.rows = append(w.rows, row{id, f.edition})
		}
	}
	if rng.IntN(3) == 0 {
		w.key = fmt.Sprintf("sync-%s-%d", f.code, f.edition)
	}
	return w
}

// drawUpsert returns a random upsert, whose sites all have the same edition.
func (f *referential) drawUpsert(now state, rng *rand.Rand) write {
	w := write{action: upsert}
	share := []float64{0.01, 0.1, 0.4}[rng.IntN(3)]
	for id := range f.rows {
		if rng.Float64() < share {
			w.rows = append(w.rows, row{id, f.edition})
		}
	}
	return w
}

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

// readOnce sends one random read. During a fault it may fail with 500 or 503; but no answer may say that the key is unknown.
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
	q.account, q.key, q.method = a, a.key, http.MethodGet
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

// rotateKey issues a key to a random account, or revokes one and checks that it is refused. An account gets at most eight
// keys in a run.
func (c *client) rotateKey(ctx context.Context) {
	at := c.anyRunning(c.rng)
	if at == nil {
		return
	}
	all := c.openedAccounts()
	a := all[c.rng.IntN(len(all))]
	a.keysLock.Lock()
	defer a.keysLock.Unlock()
	if live := a.unrevokedKey(); live != nil && c.rng.IntN(2) == 0 {
		c.revokeKey(ctx, at, a, live)
		return
	}
	if len(a.extraKeys) < 8 {
		c.issueKey(ctx, at, a)
	}
}

// unrevokedKey returns a key whose revocation is not acknowledged, or nil.
func (a *account) unrevokedKey() *issuedKey {
	for _, k := range a.extraKeys {
		if k.revoked.IsZero() {
			return k
		}
	}
	return nil
}

// issueKey issues a key. Without an answer the run cannot learn the key, and does not check it.
func (c *client) issueKey(ctx context.Context, at *serverProcess, a *account) {
	got := c.sendArea(ctx, at, http.MethodPost, adminclient.JoinPath("", "accounts", a.id, "keys"), body.IssueKey{Kind: token.Secret, Label: "rotated"})
	switch {
	case got.status == http.StatusCreated:
		var k body.Key
		if err := json.Unmarshal(got.body, &k); err != nil {
			c.reportViolation("issue of a key of %s: %v", a.id, err)
			return
		}
		a.extraKeys = append(a.extraKeys, &issuedKey{id: k.ID, token: k.Token})
	case got.status >= 400 && got.status < 500:
		c.reportViolation("issue of a key of %s: %s", a.id, got)
	}
}

// revokeKey revokes a key and, after maxRevocationDelay, checks that every instance refuses it. Without an acknowledgement
// the key stays unrevoked here; checkKeys finds out what happened.
func (c *client) revokeKey(ctx context.Context, at *serverProcess, a *account, k *issuedKey) {
	k.revokeSent = true
	got := c.sendArea(ctx, at, http.MethodPost, adminclient.JoinPath("revoke", "accounts", a.id, "keys", k.id), body.RevokeKey{Reason: "rotation"})
	if got.status >= 400 && got.status < 500 {
		c.reportViolation("revocation of key %s of %s: %s", k.id, a.id, got)
	}
	if got.status != http.StatusOK {
		return
	}
	k.revoked = time.Now()
	c.updateTotals(func(t *Totals) { t.Revocations++ })
	clock.Sleep(ctx, maxRevocationDelay)
	for _, i := range c.instances {
		if p := i.current.Load(); p != nil {
			c.checkRefused(ctx, p, a, k)
		}
	}
}

// checkRefused sends a request with a revoked key, and reports a violation if it is accepted. An instance that is not
// available (503, or no answer) is no violation.
func (r *run) checkRefused(ctx context.Context, at *serverProcess, a *account, k *issuedKey) {
	got := r.sendAPI(ctx, at, request{account: a, key: k.token, endpoint: "GET /me", method: http.MethodGet, path: "/me"})
	if got.status != http.StatusUnauthorized && got.status != http.StatusServiceUnavailable && got.status != 0 {
		r.reportViolation("key %s of %s was revoked %.1f s ago; %s answers it %s", k.id, a.id, time.Since(k.revoked).Seconds(), at.name, got)
	}
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
	got := c.sendArea(ctx, at, http.MethodGet, path, nil)
	if got.status >= 400 && got.status < 500 && got.status != http.StatusNotFound {
		c.reportViolation("GET %s in the customer area: %s", path, got)
	}
}

// newAccountsPerRound is how many accounts are opened in a round at most. The bound in openNewAccount adds the five of
// openAccounts.
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
