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

	"lieudit/cmd/bench/harness"
	"lieudit/cmd/lieudit/adminclient"
	"lieudit/schemas/body"
	"lieudit/schemas/locations"
)

// concurrentChecks is how many accounts are checked concurrently.
const concurrentChecks = 4

// checkSystem compares what the service holds with what it acknowledged, and reports violations. No client sends a request
// and no fault is injected meanwhile: the caller holds checkLock. Accounts come first and bills last, so that the requests of
// the checks are billed and compared too. Where an instance does not become healthy, the rest is not checked.
func (r *run) checkSystem(ctx context.Context) {
	began := time.Now()
	before := r.violationCount()
	defer func() {
		if r.violationCount() > before {
			r.logLastOutput()
		}
	}()
	if !r.waitHealthy(ctx) || !r.waitCaughtUp(ctx) {
		return
	}
	rng := rand.New(rand.NewPCG(r.Seed, uint64(r.round.Load())))
	var work errgroup.Group
	work.SetLimit(concurrentChecks)
	for _, a := range r.workingAccounts() {
		at, probe := r.anyRunning(rng), int(rng.Int32())
		work.Go(func() error {
			r.checkAccount(ctx, at, a, probe)
			return nil
		})
	}
	work.Wait()
	r.waitCaughtUp(ctx)
	r.checkBills(ctx, r.anyRunning(rng))
	r.updateTotals(func(t *Totals) { t.Rounds++ })
	r.logf("checked in %.1f s: %d accounts, %d violations", time.Since(began).Seconds(), len(r.workingAccounts()), r.violationCount()-before)
}

// waitHealthy waits until every part of every instance is healthy and every instance answers every account. It reports
// what does not become healthy within healthTimeout, and returns false where that is an instance. An account that is not
// answered is excluded from now on.
func (r *run) waitHealthy(ctx context.Context) bool {
	allHealthy := true
	for _, i := range r.instances {
		at := i.current.Load()
		if err := harness.Retry(ctx, r.healthTimeout, retryInterval, func() error { return r.checkReadiness(ctx, at) }); err != nil {
			r.reportViolation("%s is not well %v after everything is: %v", at.name, r.healthTimeout, err)
			allHealthy = false
			continue
		}
		for _, a := range r.workingAccounts() {
			if err := harness.Retry(ctx, r.healthTimeout, retryInterval, func() error { return r.checkAnswered(ctx, at, a) }); err != nil {
				r.reportViolation("%s does not answer %s: %v", at.name, a.id, err)
				a.excluded = true
			}
		}
	}
	return allHealthy
}

// workingAccounts returns the accounts that are not excluded from the checks.
func (r *run) workingAccounts() []*account {
	return slices.DeleteFunc(slices.Clone(r.openedAccounts()), func(a *account) bool { return a.excluded })
}

// logLastOutput logs the last 800 bytes of each instance's error output: they may explain a violation.
func (r *run) logLastOutput() {
	for _, i := range r.instances {
		if p := i.current.Load(); p != nil {
			stderr := p.process.LastStderr()
			r.logf("%s said last: %s", p.name, stderr[max(0, len(stderr)-800):])
		}
	}
}

// checkReadiness returns nil when an instance is ready and each of its parts is "ok". The instances of a run have no road network, so
// what readiness says of routes does not count.
func (r *run) checkReadiness(ctx context.Context, at *serverProcess) error {
	a := r.doRequest(ctx, "http://"+at.process.Ops, request{method: http.MethodGet, path: "/readyz"})
	if a.status != http.StatusOK {
		return fmt.Errorf("readiness: %s", a)
	}
	var readiness struct{ Parts map[string]string }
	if err := json.Unmarshal(a.body, &readiness); err != nil {
		return err
	}
	for part, state := range readiness.Parts {
		if state != "ok" && part != "routes" {
			return fmt.Errorf("readiness: %s: %s", part, state)
		}
	}
	return nil
}

// checkAnswered requests /me for an account. If its quota is exhausted, 429 is right too.
func (r *run) checkAnswered(ctx context.Context, at *serverProcess, a *account) error {
	got := r.getAPI(ctx, at, a, "GET /me", "/me")
	if got.status == http.StatusOK || a.exhausted && got.status == http.StatusTooManyRequests {
		return nil
	}
	return fmt.Errorf("GET /me: %s", got)
}

// retryFailed calls send until its answer is neither missing nor 5xx, for searchTimeout at most, and returns the last
// answer. A client may retry as well: on a busy machine a request can fail without any fault.
func (r *run) retryFailed(ctx context.Context, send func() answer) (last answer) {
	harness.Retry(ctx, r.searchTimeout, retryInterval, func() error {
		if last = send(); last.status == 0 || last.status >= http.StatusInternalServerError {
			return errors.New("failed")
		}
		return nil
	})
	return last
}

// getAPI sends a GET to the API with an account's key, and retries where it fails. endpoint is the name under which the
// request is billed.
func (r *run) getAPI(ctx context.Context, at *serverProcess, a *account, endpoint, path string) answer {
	return r.retryFailed(ctx, func() answer {
		return r.sendAPI(ctx, at, request{account: a, key: a.key, endpoint: endpoint, method: http.MethodGet, path: path})
	})
}

// retryArea sends a request to the customer area, and retries where it fails.
func (r *run) retryArea(ctx context.Context, at *serverProcess, method, path string, body any) answer {
	return r.retryFailed(ctx, func() answer { return r.sendArea(ctx, at, method, path, body) })
}

// checkAccount checks every referential of an account, the number of sites in /me, and its keys. probe is a random number
// that picks the site that is written. A referential that fails is excluded from now on.
func (r *run) checkAccount(ctx context.Context, at *serverProcess, a *account, probe int) {
	for _, f := range a.referentials {
		if f.excluded {
			continue
		}
		if err := r.checkReferential(ctx, at, f, probe); err != nil {
			f.excluded = true
			r.reportViolation("%v", err)
		}
	}
	if err := r.checkMe(ctx, at, a); err != nil {
		r.reportViolation("%s: %v", a.id, err)
	}
	if err := r.checkKeys(ctx, at, a); err != nil {
		r.reportViolation("%s: %v", a.id, err)
	}
}

// checkReferential checks one referential in four steps: its list is a possible state; a dry run of a sync of that list
// changes nothing; a write succeeds; the search finds what was written. The list comes from a read model, the dry run from
// the write side: so both must hold the same sites. The write is retried, and is in doubt until it is acknowledged.
func (r *run) checkReferential(ctx context.Context, at *serverProcess, f *referential, probe int) error {
	got, err := r.listSites(ctx, at, f)
	if err != nil {
		return err
	}
	if err := f.matchState(got); err != nil {
		return err
	}
	if err := r.checkUnchanged(ctx, at, f); err != nil {
		return err
	}
	f.edition++
	// The edition is new, so no earlier write can have put this content there.
	w := write{action: put, rows: []row{{probe % f.rows, f.edition}}}
	if had := f.possible[0].sites[w.rows[0].id]; !had.active && f.possible[0].active >= f.account.limits.ceiling {
		return nil // another active site would exceed the ceiling
	}
	a := r.retryFailed(ctx, func() answer {
		got := r.sendAPI(ctx, at, w.newRequest(f))
		if got.status == 0 || got.status >= http.StatusInternalServerError {
			f.recordDoubt(w)
		}
		return got
	})
	answered, err := outcomeOf(w, a.status, a.body)
	if a.status != http.StatusOK && a.status != http.StatusCreated || err != nil {
		return fmt.Errorf("%s/%s takes no write: %s", f.account.id, f.code, a)
	}
	if err := f.acknowledge(w, answered); err != nil {
		return err
	}
	return harness.Retry(ctx, r.searchTimeout, retryInterval, func() error { return r.searchSite(ctx, at, f, w.rows[0]) })
}

// listSites reads the state of a referential from its list, inactive sites included.
func (r *run) listSites(ctx context.Context, at *serverProcess, f *referential) (state, error) {
	var all []locations.Site
	get := func(path string) answer {
		return r.getAPI(ctx, at, f.account, "GET /locations/referentiels/{code}/sites", path)
	}
	err := readPages("/locations/referentiels/"+f.code+"/sites?statut=tous&limit=1000", get, func(one json.RawMessage) error {
		var s locations.Site
		err := json.Unmarshal(one, &s)
		all = append(all, s)
		return err
	})
	if err != nil {
		return state{}, err
	}
	return stateOf(all)
}

// checkUnchanged sends a dry run of a sync of the active sites: the write side must answer that nothing would change. It must
// follow matchState, which leaves one possible state.
func (r *run) checkUnchanged(ctx context.Context, at *serverProcess, f *referential) error {
	now := f.possible[0]
	w := write{action: syncSites}
	for id := range f.rows {
		if had := now.sites[id]; had.active {
			w.rows = append(w.rows, row{id, had.edition})
		}
	}
	q := w.newRequest(f)
	q.body = w.batchBody(true)
	a := r.retryFailed(ctx, func() answer { return r.sendAPI(ctx, at, q) })
	answered, err := outcomeOf(w, a.status, a.body)
	want := outcome{Status: http.StatusOK, Unchanged: now.active, Before: now.active, After: now.active}
	if err != nil || answered != want {
		return fmt.Errorf("a dry run of what %s/%s lists is answered %s; want %+v", f.account.id, f.code, a, want)
	}
	return nil
}

// searchSite searches for a site by its name. The error says that it was not found.
func (r *run) searchSite(ctx context.Context, at *serverProcess, f *referential, w row) error {
	want := contentOf(w).Name
	a := r.getAPI(ctx, at, f.account, "GET /locations/search", "/locations/search?referentiel="+f.code+"&q="+url.QueryEscape(want))
	var found body.Locations
	if a.status != http.StatusOK {
		return fmt.Errorf("%s/%s: search: %s", f.account.id, f.code, a)
	}
	if err := json.Unmarshal(a.body, &found); err != nil {
		return err
	}
	for _, s := range found.Results {
		if s.ExternalID == externalID(w.id) && s.Name == want {
			return nil
		}
	}
	return fmt.Errorf("%s/%s: %s was written and is not found", f.account.id, f.code, want)
}

// checkMe compares the number of active sites that /me shows with the sum over the account's referentials, and this sum
// with the ceiling. Where a referential is excluded the sum is not known, so nothing is compared.
func (r *run) checkMe(ctx context.Context, at *serverProcess, a *account) error {
	got := r.getAPI(ctx, at, a, "GET /me", "/me")
	if a.exhausted && got.status == http.StatusTooManyRequests {
		return nil
	}
	var me body.Me
	if err := json.Unmarshal(got.body, &me); err != nil || got.status != http.StatusOK {
		return fmt.Errorf("GET /me: %s", got)
	}
	active := 0
	for _, f := range a.referentials {
		if f.excluded {
			return nil
		}
		active += f.possible[0].active
	}
	if me.Sites.Active != nil && *me.Sites.Active != active || active > a.limits.ceiling {
		return fmt.Errorf("it has %d sites, /me tells %d of at most %d", active, *me.Sites.Active, a.limits.ceiling)
	}
	return nil
}

// checkKeys checks that every instance refuses a key whose revocation was acknowledged and serves a key that was never
// revoked, and that the list of keys agrees. Where a revocation was sent without an answer, the list reports whether it
// happened.
func (r *run) checkKeys(ctx context.Context, at *serverProcess, a *account) error {
	listed := map[string]body.Key{}
	get := func(path string) answer { return r.retryArea(ctx, at, http.MethodGet, path, nil) }
	err := readPages(adminclient.JoinPath("", "accounts", a.id, "keys")+"?limit=1000", get, func(one json.RawMessage) error {
		var k body.Key
		err := json.Unmarshal(one, &k)
		listed[k.ID] = k
		return err
	})
	if err != nil {
		return err
	}
	for _, k := range a.extraKeys {
		shown, found := listed[k.id]
		switch {
		case !found:
			return fmt.Errorf("key %s was issued and is not listed", k.id)
		case !k.revoked.IsZero() && shown.Revoked.IsZero():
			return fmt.Errorf("key %s was revoked and is listed without that", k.id)
		case !k.revokeSent && !shown.Revoked.IsZero():
			return fmt.Errorf("key %s is listed as revoked, and nobody revoked it", k.id)
		case k.revoked.IsZero() && !shown.Revoked.IsZero():
			k.revoked = shown.Revoked // the revocation was sent without an answer, and has happened
		}
		for _, i := range r.instances {
			if err := r.checkKey(ctx, i.current.Load(), a, k); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkKey checks that one instance serves or refuses a key.
func (r *run) checkKey(ctx context.Context, at *serverProcess, a *account, k *issuedKey) error {
	if !k.revoked.IsZero() {
		r.checkRefused(ctx, at, a, k)
		return nil
	}
	return harness.Retry(ctx, r.searchTimeout, retryInterval, func() error {
		got := r.sendAPI(ctx, at, request{account: a, key: k.token, endpoint: "GET /me", method: http.MethodGet, path: "/me"})
		if got.status == http.StatusOK || a.exhausted && got.status == http.StatusTooManyRequests {
			return nil
		}
		return fmt.Errorf("key %s: GET /me: %s", k.id, got)
	})
}

// waitCaughtUp waits until the serving read models of every instance have caught up with the log. It reports an instance
// whose read models have not within healthTimeout, and returns false.
func (r *run) waitCaughtUp(ctx context.Context) bool {
	allCaughtUp := true
	for _, i := range r.instances {
		at := i.current.Load()
		if err := harness.Retry(ctx, r.healthTimeout, retryInterval, func() error {
			_, err := r.servingGenerations(ctx, at)
			return err
		}); err != nil {
			r.reportViolation("%s: %v", at.name, err)
			allCaughtUp = false
		}
	}
	return allCaughtUp
}

// servingGenerations returns the names of the generations of read models that serve on an instance, by model. A generation is
// one copy of a read model; a rebuild fills a new one while the old one serves. The error names one that is stopped or behind
// the log.
func (r *run) servingGenerations(ctx context.Context, at *serverProcess) (map[string]string, error) {
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
		serving[p.Name] = p.Generation
		switch {
		case p.Reason != "":
			return serving, fmt.Errorf("projection %s stands still: %s", p.Generation, p.Reason)
		case p.Lag == nil || *p.Lag > 0:
			return serving, fmt.Errorf("projection %s is behind: %s", p.Generation, lagText(p.Lag))
		}
	}
	if len(serving) == 0 {
		return nil, fmt.Errorf("no projection serves: %s", a)
	}
	return serving, nil
}

// lagText returns a lag as text for an error; nil means that the service does not know it.
func lagText(events *int) string {
	if events == nil {
		return "nobody knows by how many events"
	}
	return fmt.Sprintf("by %d events", *events)
}
