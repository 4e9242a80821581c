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

	"lieudit/cmd/lieudit/backoffice"
	"lieudit/schemas/body"
	"lieudit/schemas/plan"
	"lieudit/schemas/token"
)

// client does one kind of thing over and over.
type client struct {
	*run
	dice *rand.Rand
	rest time.Duration // between two requests, on average
}

// load starts the clients. They end when they have their answers once end is closed.
func (r *run) load(ctx context.Context, end <-chan struct{}) *sync.WaitGroup {
	var all sync.WaitGroup
	begin := func(rest time.Duration, step func(*client, context.Context)) {
		c := &client{r, rand.New(rand.NewPCG(r.dice.Uint64(), 3)), rest}
		all.Go(func() { c.repeat(end, func() { step(c, ctx) }) })
	}
	for _, a := range r.opened() {
		for _, f := range a.referentials {
			begin(120*time.Millisecond, func(c *client, ctx context.Context) { c.write(ctx, f) })
		}
		begin(60*time.Millisecond, func(c *client, ctx context.Context) { c.read(ctx, a) })
	}
	begin(400*time.Millisecond, (*client).rotateKey)
	begin(200*time.Millisecond, (*client).readArea)
	begin(time.Second, (*client).newcomer)
	return &all
}

// repeat does steps until the end, none while the system is checked.
func (c *client) repeat(end <-chan struct{}, step func()) {
	for {
		select {
		case <-end:
			return
		case <-time.After(between(c.dice, 0, 2*c.rest)):
		}
		c.quiet.RLock()
		step()
		c.quiet.RUnlock()
	}
}

// write sends one write to a referential: a new one, or the one that was not acknowledged again.
func (c *client) write(ctx context.Context, f *referential) {
	at := c.any(c.dice)
	switch {
	case at == nil || f.broken:
	case f.last != nil && f.pending == nil && c.dice.IntN(15) == 0:
		c.sendAgain(ctx, at, f)
	case f.pending != nil && (len(f.possible) > 3 || c.dice.IntN(3) > 0):
		c.sendWrite(ctx, at, f, *f.pending)
	default:
		c.sendWrite(ctx, at, f, f.draw(c.dice))
	}
}

// sendWrite sends a write and notes what its answer promises: an acknowledgement, or a doubt.
func (c *client) sendWrite(ctx context.Context, at *life, f *referential, w write) {
	a := c.send(ctx, at, w.request(f))
	switch a.status {
	case http.StatusOK, http.StatusCreated, http.StatusConflict, http.StatusNotFound:
		said, err := outcomeOf(w, a.status, a.body)
		if err == nil {
			err = f.acknowledge(w, said)
		}
		if err != nil {
			f.broken = true
			c.violate("%v", err)
		}
		c.count(func(t *Totals) { t.Acknowledged++ })
	case 0:
		if a.sent {
			f.doubt(w)
			c.count(func(t *Totals) { t.Cut += count(len(w.rows) >= staged) })
		}
	default:
		if a.status < http.StatusInternalServerError {
			f.broken = true
			c.violate("%s of %s/%s: %s", w.action, f.account.id, f.code, a)
			return
		}
		f.doubt(w)
	}
	if a.sent && f.pending != nil {
		c.count(func(t *Totals) { t.InDoubt++ })
	}
}

// staged is how many rows are surely too many for one event: they are staged.
const staged = 500

// sendAgain sends the last sync with an Idempotency-Key again.
func (c *client) sendAgain(ctx context.Context, at *life, f *referential) {
	a := c.send(ctx, at, f.last.write.request(f))
	if a.status == 0 || a.status >= http.StatusInternalServerError {
		return
	}
	said, err := outcomeOf(f.last.write, a.status, a.body)
	if err == nil {
		err = f.repeat(said)
	}
	if err != nil {
		f.broken = true
		c.violate("%v", err)
	}
}

// request is a write as it is sent.
func (w write) request(f *referential) request {
	base := "/locations/referentiels/" + f.code + "/sites"
	const oneSite = "/locations/referentiels/{code}/sites"
	q := request{account: f.account, key: f.account.key, method: http.MethodPost, idempotencyKey: w.key}
	switch w.action {
	case syncSites, upsert:
		q.path, q.endpoint, q.body = base+":"+string(w.action), "POST "+oneSite+":"+string(w.action), w.batch(false)
	case put:
		q.method, q.path, q.endpoint = http.MethodPut, base+"/"+name(w.rows[0].id), "PUT "+oneSite+"/{external_id}"
		q.body, _ = json.Marshal(contentOf(w.rows[0])) // of our own
	case patch:
		q.method, q.path, q.endpoint = http.MethodPatch, base+"/"+name(w.rows[0].id), "PATCH "+oneSite+"/{external_id}"
		said := contentOf(w.rows[0])
		q.body, _ = json.Marshal(map[string]string{"nom": said.Name, "telephone": said.Phone}) // of our own
	default:
		verb := ":" + string(w.action)
		q.path, q.endpoint, q.body = base+"/"+name(w.rows[0].id)+verb, "POST "+oneSite+"/{external_id}"+verb, []byte("{}")
	}
	return q
}

// batch is the body of a sync or an upsert.
func (w write) batch(dry bool) []byte {
	all := body.SyncSites{Sites: make([]body.SiteRow, len(w.rows)), Confirm: w.confirmed, DryRun: dry}
	for i, r := range w.rows {
		all.Sites[i] = body.SiteRow{ExternalID: name(r.id), Content: contentOf(r)}
	}
	text, _ := json.Marshal(all) // of our own
	return text
}

// draw makes a write up.
func (f *referential) draw(dice *rand.Rand) write {
	now := f.possible[dice.IntN(len(f.possible))]
	f.edition++
	if die := dice.IntN(10); die < 4 || now.active == 0 {
		return f.drawSync(now, dice)
	} else if die < 6 {
		return f.drawUpsert(now, dice)
	}
	one := write{
		action: []action{put, put, patch, deactivate, reactivate}[dice.IntN(5)],
		rows:   []row{{dice.IntN(f.rows), f.edition}},
	}
	return one
}

// drawSync is a whole set: mostly the sites there are, some of them changed, left out or new; now and then far fewer, or as
// many as there can be.
func (f *referential) drawSync(now state, dice *rand.Rand) write {
	w := write{action: syncSites, confirmed: dice.IntN(4) > 0}
	changed := []float64{0, 0.01, 0.2, 1}[dice.IntN(4)]
	keeps := []float64{1, 0.98, 0.7, 0.3}[dice.IntN(4)]
	grows := []float64{0, 0.02, 0.5, 1}[dice.IntN(4)]
	for id := range f.rows {
		had, known := now.sites[id]
		there := known && had.active
		switch {
		case there && dice.Float64() < keeps:
			r := row{id, had.edition}
			if dice.Float64() < changed {
				r.edition = f.edition
			}
			w.rows = append(w.rows, r)
		case !there && dice.Float64() < grows:
			w.rows = append(w.rows, row{id, f.edition})
		}
	}
	if dice.IntN(3) == 0 {
		w.key = fmt.Sprintf("sync-%s-%d", f.code, f.edition)
	}
	return w
}

// drawUpsert is some sites, one edition for all.
func (f *referential) drawUpsert(now state, dice *rand.Rand) write {
	w := write{action: upsert}
	share := []float64{0.01, 0.1, 0.4}[dice.IntN(3)]
	for id := range f.rows {
		if dice.Float64() < share {
			w.rows = append(w.rows, row{id, f.edition})
		}
	}
	return w
}

// reads are what a client asks for, and how it is billed.
func reads(f *referential, dice *rand.Rand) []request {
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
		request{endpoint: "GET /locations/search", path: "/locations/search?q=comptoir+" + fmt.Sprint(dice.IntN(f.rows))},
		request{endpoint: "GET /locations/search", path: "/locations/search?lat=44.5&lon=3.5&radius=50000"},
		request{endpoint: "GET /locations/referentiels", path: "/locations/referentiels"},
		request{endpoint: oneReferential + "/sites", path: base + "/sites?limit=50&statut=tous"},
		request{endpoint: oneReferential + "/sites/{external_id}", path: base + "/sites/" + name(dice.IntN(f.rows))},
	)
}

// read asks for something. Whatever fails meanwhile, no answer may say that the key or the referential is not there.
func (c *client) read(ctx context.Context, a *account) {
	at := c.any(c.dice)
	if at == nil {
		return
	}
	var f *referential
	if len(a.referentials) > 0 {
		f = a.referentials[c.dice.IntN(len(a.referentials))]
	}
	choice := reads(f, c.dice)
	q := choice[c.dice.IntN(len(choice))]
	q.account, q.key, q.method = a, a.key, http.MethodGet
	got := c.send(ctx, at, q)
	allowed := []int{0, http.StatusOK, http.StatusInternalServerError, http.StatusServiceUnavailable}
	if f != nil && q.path != "/me" {
		allowed = append(allowed, http.StatusNotFound) // read models may be behind
	}
	if a.spent {
		allowed = append(allowed, http.StatusTooManyRequests)
	}
	if !slices.Contains(allowed, got.status) {
		c.violate("%s of %s: %s", q.endpoint, a.id, got)
	}
}

// bound is how soon a revoked key is refused by every instance.
const bound = time.Second

// rotateKey issues a key, or revokes one and asks with it.
func (c *client) rotateKey(ctx context.Context) {
	at := c.any(c.dice)
	if at == nil {
		return
	}
	all := c.opened()
	a := all[c.dice.IntN(len(all))]
	a.mu.Lock()
	defer a.mu.Unlock()
	if live := a.unrevoked(); live != nil && c.dice.IntN(2) == 0 {
		c.revoke(ctx, at, a, live)
		return
	}
	if len(a.keys) < 8 {
		c.issue(ctx, at, a)
	}
}

// unrevoked is a key whose revocation is not acknowledged, or nil.
func (a *account) unrevoked() *key {
	for _, k := range a.keys {
		if k.revoked.IsZero() {
			return k
		}
	}
	return nil
}

// issue issues a key. One whose answer did not come is known to nobody.
func (c *client) issue(ctx context.Context, at *life, a *account) {
	got := c.sendArea(ctx, at, http.MethodPost, backoffice.Path("", "accounts", a.id, "keys"), body.IssueKey{Kind: token.Secret, Label: "rotated"})
	switch {
	case got.status == http.StatusCreated:
		var k body.Key
		if err := json.Unmarshal(got.body, &k); err != nil {
			c.violate("issue of a key of %s: %v", a.id, err)
			return
		}
		a.keys = append(a.keys, &key{id: k.ID, token: k.Token})
	case got.status >= 400 && got.status < 500:
		c.violate("issue of a key of %s: %s", a.id, got)
	}
}

// revoke revokes a key and asks with it once the bound has passed.
func (c *client) revoke(ctx context.Context, at *life, a *account, k *key) {
	k.asked = true
	got := c.sendArea(ctx, at, http.MethodPost, backoffice.Path("revoke", "accounts", a.id, "keys", k.id), body.RevokeKey{Reason: "rotation"})
	if got.status >= 400 && got.status < 500 {
		c.violate("revocation of key %s of %s: %s", k.id, a.id, got)
	}
	if got.status != http.StatusOK {
		return
	}
	k.revoked = time.Now()
	c.count(func(t *Totals) { t.Revocations++ })
	sleep(ctx, bound)
	for _, i := range c.instances {
		if l := i.current.Load(); l != nil {
			c.mustRefuse(ctx, l, a, k)
		}
	}
}

// mustRefuse asks with a key that was revoked.
func (c *run) mustRefuse(ctx context.Context, at *life, a *account, k *key) {
	got := c.send(ctx, at, request{account: a, key: k.token, endpoint: "GET /me", method: http.MethodGet, path: "/me"})
	if got.status != http.StatusUnauthorized && got.status != http.StatusServiceUnavailable && got.status != 0 {
		c.violate("key %s of %s was revoked %.1f s ago; %s answers it %s", k.id, a.id, time.Since(k.revoked).Seconds(), at.name, got)
	}
}

// readArea asks the customer area for something.
func (c *client) readArea(ctx context.Context) {
	at := c.any(c.dice)
	if at == nil {
		return
	}
	all := c.opened()
	account := backoffice.Path("", "accounts", all[c.dice.IntN(len(all))].id)
	paths := []string{"/accounts", "/projections", account, account + "/keys", account + "/usage", account + "/history?limit=50", account + "/state"}
	path := paths[c.dice.IntN(len(paths))]
	got := c.sendArea(ctx, at, http.MethodGet, path, nil)
	if got.status >= 400 && got.status < 500 && got.status != http.StatusNotFound {
		c.violate("GET %s in the customer area: %s", path, got)
	}
}

// newcomers is how many accounts are opened in a round at most.
const newcomers = 2

// newcomer opens an account and gives it its first sites: its keys are made while things fail.
func (c *client) newcomer(ctx context.Context) {
	n := len(c.opened())
	if n >= 5+newcomers*int(c.round.Load()) || c.any(c.dice) == nil || c.dice.IntN(3) > 0 {
		return
	}
	a := accountOf(fmt.Sprintf("new-%d", n), plan.Growth, plenty, min(c.Rows, 1500))
	patient, cancel := context.WithTimeout(ctx, maxAnswer)
	defer cancel()
	if err := c.open(patient, a, c.dice); err != nil {
		if ctx.Err() == nil && patient.Err() == nil {
			c.violate("%v", err)
		}
		return
	}
	for range 5 {
		c.write(ctx, a.referentials[0])
	}
}
