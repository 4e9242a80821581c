package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"lieudit/cmd/lieudit/backoffice"
	"lieudit/schemas/body"
	"lieudit/schemas/site"
)

// checkers is how many accounts are checked at a time.
const checkers = 4

// check holds what is there against what was acknowledged. No client sends anything meanwhile, and nothing fails.
func (r *run) check(ctx context.Context) {
	began := time.Now()
	before := r.found()
	defer func() {
		if r.found() > before {
			r.tellComplaints()
		}
	}()
	if !r.healthy(ctx) || !r.caughtUp(ctx) {
		return
	}
	dice := rand.New(rand.NewPCG(r.Seed, uint64(r.round.Load())))
	var work errgroup.Group
	work.SetLimit(checkers)
	for _, a := range r.working() {
		at, probe := r.any(dice), int(dice.Int32())
		work.Go(func() error {
			r.checkAccount(ctx, at, a, probe)
			return nil
		})
	}
	work.Wait()
	r.caughtUp(ctx)
	r.checkBills(ctx, r.any(dice))
	r.count(func(t *Totals) { t.Rounds++ })
	r.note("checked in %.1f s: %d accounts, %d violations", time.Since(began).Seconds(), len(r.working()), r.found()-before)
}

// eventually tries until there is no error any more, or the time is up.
func eventually(ctx context.Context, patience time.Duration, try func() error) error {
	for late := time.Now().Add(patience); ; {
		err := try()
		if err == nil || time.Now().After(late) || !sleep(ctx, 50*time.Millisecond) {
			return err
		}
	}
}

// healthy waits until every part of every instance is well and every account is answered.
func (r *run) healthy(ctx context.Context) bool {
	well := true
	for _, i := range r.instances {
		at := i.current.Load()
		if err := eventually(ctx, r.healthTime, func() error { return ready(ctx, at) }); err != nil {
			r.violate("%s is not well %v after everything is: %v", at.name, r.healthTime, err)
			well = false
			continue
		}
		for _, a := range r.working() {
			if err := eventually(ctx, r.healthTime, func() error { return r.answers(ctx, at, a) }); err != nil {
				r.violate("%s does not answer %s: %v", at.name, a.id, err)
				a.broken = true
			}
		}
	}
	return well
}

// working are the accounts that no violation was told of.
func (r *run) working() []*account {
	return slices.DeleteFunc(slices.Clone(r.opened()), func(a *account) bool { return a.broken })
}

// tellComplaints tells what the instances said last: it may explain a violation.
func (r *run) tellComplaints() {
	for _, i := range r.instances {
		if l := i.current.Load(); l != nil {
			said := l.process.Complaint()
			r.note("%s said last: %s", l.name, said[max(0, len(said)-800):])
		}
	}
}

// ready is nil when an instance is ready, and each of its parts says that it is well.
func ready(ctx context.Context, at *life) error {
	a := exchange(ctx, "http://"+at.process.Ops, request{method: http.MethodGet, path: "/readyz"})
	if a.status != http.StatusOK {
		return fmt.Errorf("readiness: %s", a)
	}
	var told struct{ Parts map[string]string }
	if err := json.Unmarshal(a.body, &told); err != nil {
		return err
	}
	for part, state := range told.Parts {
		if state != "ok" {
			return fmt.Errorf("readiness: %s: %s", part, state)
		}
	}
	return nil
}

// answers asks for /me: of an account whose quota is used up, 429 is an answer.
func (r *run) answers(ctx context.Context, at *life, a *account) error {
	got := r.get(ctx, at, a, "GET /me", "/me")
	if got.status == http.StatusOK || a.spent && got.status == http.StatusTooManyRequests {
		return nil
	}
	return fmt.Errorf("GET /me: %s", got)
}

// persist asks again what failed, as a client may: on a machine that is busy a request may fail without any fault.
func (r *run) persist(ctx context.Context, ask func() answer) (last answer) {
	eventually(ctx, r.foundTime, func() error {
		if last = ask(); last.status == 0 || last.status >= http.StatusInternalServerError {
			return errors.New("failed")
		}
		return nil
	})
	return last
}

// get asks the API with an account's key.
func (r *run) get(ctx context.Context, at *life, a *account, endpoint, path string) answer {
	return r.persist(ctx, func() answer {
		return r.send(ctx, at, request{account: a, key: a.key, endpoint: endpoint, method: http.MethodGet, path: path})
	})
}

// askArea asks the customer area.
func (r *run) askArea(ctx context.Context, at *life, method, path string, body any) answer {
	return r.persist(ctx, func() answer { return r.sendArea(ctx, at, method, path, body) })
}

// checkAccount reads every referential, writes to it, and asks with every key.
func (r *run) checkAccount(ctx context.Context, at *life, a *account, probe int) {
	for _, f := range a.referentials {
		if f.broken {
			continue
		}
		if err := r.checkReferential(ctx, at, f, probe); err != nil {
			f.broken = true
			r.violate("%v", err)
		}
	}
	if err := r.checkMe(ctx, at, a); err != nil {
		r.violate("%s: %v", a.id, err)
	}
	if err := r.checkKeys(ctx, at, a); err != nil {
		r.violate("%s: %v", a.id, err)
	}
}

// checkReferential compares what it lists with what it may hold; then the write side says that nothing of that would
// change, takes a write, and the search finds it.
func (r *run) checkReferential(ctx context.Context, at *life, f *referential, probe int) error {
	got, err := r.list(ctx, at, f)
	if err != nil {
		return err
	}
	if err := f.find(got); err != nil {
		return err
	}
	if err := r.checkUnchanged(ctx, at, f); err != nil {
		return err
	}
	f.edition++
	w := write{action: put, rows: []row{{probe % f.rows, f.edition}}}
	if had := f.possible[0].sites[w.rows[0].id]; !had.active && f.possible[0].active >= f.account.limits.ceiling {
		return nil // there is no room
	}
	a := r.persist(ctx, func() answer {
		got := r.send(ctx, at, w.request(f))
		if got.status == 0 || got.status >= http.StatusInternalServerError {
			f.doubt(w)
		}
		return got
	})
	said, err := outcomeOf(w, a.status, a.body)
	if a.status != http.StatusOK && a.status != http.StatusCreated || err != nil {
		return fmt.Errorf("%s/%s takes no write: %s", f.account.id, f.code, a)
	}
	if err := f.acknowledge(w, said); err != nil {
		return err
	}
	return eventually(ctx, r.foundTime, func() error { return r.search(ctx, at, f, w.rows[0]) })
}

// list is what a referential holds, as its list says.
func (r *run) list(ctx context.Context, at *life, f *referential) (state, error) {
	var all []site.Site
	ask := func(path string) answer {
		return r.get(ctx, at, f.account, "GET /locations/referentiels/{code}/sites", path)
	}
	err := readPages("/locations/referentiels/"+f.code+"/sites?statut=tous&limit=1000", ask, func(one json.RawMessage) error {
		var s site.Site
		err := json.Unmarshal(one, &s)
		all = append(all, s)
		return err
	})
	if err != nil {
		return state{}, err
	}
	return stateOf(all)
}

// checkUnchanged asks the write side what a sync of the sites there are would do.
func (r *run) checkUnchanged(ctx context.Context, at *life, f *referential) error {
	now := f.possible[0]
	w := write{action: syncSites}
	for id := range f.rows {
		if had := now.sites[id]; had.active {
			w.rows = append(w.rows, row{id, had.edition})
		}
	}
	q := w.request(f)
	q.body = w.batch(true)
	a := r.persist(ctx, func() answer { return r.send(ctx, at, q) })
	said, err := outcomeOf(w, a.status, a.body)
	want := outcome{Status: http.StatusOK, Unchanged: now.active, Before: now.active, After: now.active}
	if err != nil || said != want {
		return fmt.Errorf("a dry run of what %s/%s lists is answered %s; want %+v", f.account.id, f.code, a, want)
	}
	return nil
}

// search looks for a site by its name.
func (r *run) search(ctx context.Context, at *life, f *referential, w row) error {
	want := contentOf(w).Name
	a := r.get(ctx, at, f.account, "GET /locations/search", "/locations/search?referentiel="+f.code+"&q="+url.QueryEscape(want))
	var found body.Locations
	if a.status != http.StatusOK {
		return fmt.Errorf("%s/%s: search: %s", f.account.id, f.code, a)
	}
	if err := json.Unmarshal(a.body, &found); err != nil {
		return err
	}
	for _, s := range found.Results {
		if s.ExternalID == name(w.id) && s.Name == want {
			return nil
		}
	}
	return fmt.Errorf("%s/%s: %s was written and is not found", f.account.id, f.code, want)
}

// checkMe compares the figures an account is told with those of its referentials.
func (r *run) checkMe(ctx context.Context, at *life, a *account) error {
	got := r.get(ctx, at, a, "GET /me", "/me")
	if a.spent && got.status == http.StatusTooManyRequests {
		return nil
	}
	var me body.Me
	if err := json.Unmarshal(got.body, &me); err != nil || got.status != http.StatusOK {
		return fmt.Errorf("GET /me: %s", got)
	}
	active := 0
	for _, f := range a.referentials {
		if f.broken {
			return nil
		}
		active += f.possible[0].active
	}
	if me.Sites.Active != nil && *me.Sites.Active != active || active > a.limits.ceiling {
		return fmt.Errorf("it has %d sites, /me tells %d of at most %d", active, *me.Sites.Active, a.limits.ceiling)
	}
	return nil
}

// checkKeys: a key whose revocation was acknowledged is refused by every instance, one that nobody revoked is served, and
// the list says so too.
func (r *run) checkKeys(ctx context.Context, at *life, a *account) error {
	listed := map[string]body.Key{}
	ask := func(path string) answer { return r.askArea(ctx, at, http.MethodGet, path, nil) }
	err := readPages(backoffice.Path("", "accounts", a.id, "keys")+"?limit=1000", ask, func(one json.RawMessage) error {
		var k body.Key
		err := json.Unmarshal(one, &k)
		listed[k.ID] = k
		return err
	})
	if err != nil {
		return err
	}
	for _, k := range a.keys {
		shown, found := listed[k.id]
		switch {
		case !found:
			return fmt.Errorf("key %s was issued and is not listed", k.id)
		case !k.revoked.IsZero() && shown.Revoked.IsZero():
			return fmt.Errorf("key %s was revoked and is listed without that", k.id)
		case !k.asked && !shown.Revoked.IsZero():
			return fmt.Errorf("key %s is listed as revoked, and nobody revoked it", k.id)
		case k.revoked.IsZero() && !shown.Revoked.IsZero():
			k.revoked = shown.Revoked // it was in doubt
		}
		for _, i := range r.instances {
			if err := r.checkKey(ctx, i.current.Load(), a, k); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkKey asks one instance with a key.
func (r *run) checkKey(ctx context.Context, at *life, a *account, k *key) error {
	if !k.revoked.IsZero() {
		r.mustRefuse(ctx, at, a, k)
		return nil
	}
	return eventually(ctx, r.foundTime, func() error {
		got := r.send(ctx, at, request{account: a, key: k.token, endpoint: "GET /me", method: http.MethodGet, path: "/me"})
		if got.status == http.StatusOK || a.spent && got.status == http.StatusTooManyRequests {
			return nil
		}
		return fmt.Errorf("key %s: GET /me: %s", k.id, got)
	})
}

// caughtUp waits until every read model has caught up: what is listed then is what the log holds.
func (r *run) caughtUp(ctx context.Context) bool {
	all := true
	for _, i := range r.instances {
		at := i.current.Load()
		if err := eventually(ctx, r.healthTime, func() error {
			_, err := r.copies(ctx, at)
			return err
		}); err != nil {
			r.violate("%s: %v", at.name, err)
			all = false
		}
	}
	return all
}

// copies are the copies of read models that serve, by model. The error says which does not go on or is behind.
func (r *run) copies(ctx context.Context, at *life) (map[string]string, error) {
	a := r.sendArea(ctx, at, http.MethodGet, "/projections", nil)
	var all body.Projections
	if err := json.Unmarshal(a.body, &all); err != nil || a.status != http.StatusOK {
		return nil, fmt.Errorf("projections: %s", a)
	}
	serving := map[string]string{}
	for _, p := range all.Results {
		if p.State != "serving" {
			continue
		}
		serving[p.Name] = p.Copy
		switch {
		case p.Reason != "":
			return serving, fmt.Errorf("projection %s stands still: %s", p.Copy, p.Reason)
		case p.Lag == nil || *p.Lag > 0:
			return serving, fmt.Errorf("projection %s is behind: %s", p.Copy, lag(p.Lag))
		}
	}
	if len(serving) == 0 {
		return nil, fmt.Errorf("no projection serves: %s", a)
	}
	return serving, nil
}

func lag(events *int) string {
	if events == nil {
		return "nobody knows by how many events"
	}
	return fmt.Sprintf("by %d events", *events)
}
