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
	"lieudit/cmd/bench/model"
	"lieudit/cmd/lieudit/adminclient"
	"lieudit/schemas/body"
	"lieudit/schemas/locations"
	"lieudit/schemas/plan"
)

// concurrentChecks is how many accounts are checked concurrently.
const concurrentChecks = 4

// checkSystem compares the content of the service with what it acknowledged, and reports violations. No client sends a request and no fault is
// injected meanwhile: the caller holds checkLock. Accounts come first and bills last, so that the requests of the checks are billed and
// compared too. If an instance does not become healthy, the rest is not checked.
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

// waitHealthy waits until every part of every instance is healthy and every instance answers every account. It reports every part that does not
// become healthy within healthTimeout, and returns false if that is an instance. An account that is not answered is excluded from now on.
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

// checkReadiness returns nil if an instance is ready and each of its parts is "ok". The instances of a run have no road network, so readiness
// of routes does not count.
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

// getAPI sends a GET to the API with an account's key, and retries if it fails. endpoint is the name under which the request is billed.
func (r *run) getAPI(ctx context.Context, at *serverProcess, a *account, endpoint, path string) answer {
	return r.retryFailed(ctx, func() answer {
		return r.sendAPI(ctx, at, request{account: a, label: a.label, key: a.key, endpoint: endpoint, method: http.MethodGet, path: path})
	})
}

// retryArea sends a request to the customer area, and retries if it fails.
func (r *run) retryArea(ctx context.Context, at *serverProcess, method, path string, body any) answer {
	return r.retryFailed(ctx, func() answer { return r.sendArea(ctx, at, request{method: method, path: path}, body) })
}

// checkAccount has the model check an account, its keys and its sites, and then checks every referential and the number of sites in /me. probe
// is a random number that picks the site that is written. Afterwards the model considers only what it has seen possible.
func (r *run) checkAccount(ctx context.Context, at *serverProcess, a *account, probe int) {
	path := adminclient.JoinPath("", "accounts", a.id)
	shown := r.retryArea(ctx, at, http.MethodGet, path, nil)
	keys := r.retryArea(ctx, at, http.MethodGet, path+"/keys?limit=1000", nil)
	r.model.SettleAccount(a.id, shown.forModel(), keys.forModel(), time.Now())
	if len(a.referentials) > 0 {
		if err := r.settleSites(ctx, at, a); err != nil {
			r.reportViolation("%v", err)
			return
		}
	}
	for _, f := range a.referentials {
		if err := r.checkReferential(ctx, at, f, probe); err != nil {
			r.reportViolation("%v", err)
		}
	}
	if err := r.checkMe(ctx, at, a); err != nil {
		r.reportViolation("%s: %v", a.id, err)
	}
	if err := r.checkKeys(ctx, a); err != nil {
		r.reportViolation("%s: %v", a.id, err)
	}
}

// settleSites has the model compare the lists of an account's referentials and sites, including inactive ones, with the possible states.
func (r *run) settleSites(ctx context.Context, at *serverProcess, a *account) error {
	const oneReferential = "GET /locations/referentiels/{code}"
	list := r.getAPI(ctx, at, a, "GET /locations/referentiels", "/locations/referentiels")
	sites := map[string]model.Answer{}
	for _, f := range a.referentials {
		var all struct {
			Results []json.RawMessage `json:"results"`
		}
		get := func(path string) answer { return r.getAPI(ctx, at, a, oneReferential+"/sites", path) }
		seen := map[string]bool{}
		if err := readPages("/locations/referentiels/"+f.code+"/sites?statut=tous&limit=1000", get, func(one json.RawMessage) error {
			var s locations.Site
			if err := json.Unmarshal(one, &s); err != nil {
				return err
			}
			if seen[s.ExternalID] {
				return fmt.Errorf("%s/%s: site %s is listed twice", a.id, f.code, s.ExternalID)
			}
			seen[s.ExternalID] = true
			all.Results = append(all.Results, one)
			return nil
		}); err != nil {
			return err
		}
		text, err := json.Marshal(all)
		if err != nil {
			return err
		}
		sites[f.code] = model.Answer{Status: http.StatusOK, Body: text}
		f.lost, f.lostWrites = nil, 0
	}
	r.model.SettlePlaces(a.id, list.forModel(), sites)
	return nil
}

// checkReferential checks one referential, whose sites the model knows for certain, in three steps: a dry run of a sync of all its active sites
// changes nothing; a write succeeds; the search finds the written site. The list came from a read model and the dry run from the write side, so
// both must hold the same sites. The model checks both answers.
func (r *run) checkReferential(ctx context.Context, at *serverProcess, f *referential, probe int) error {
	dryRun := model.SyncSites{Code: f.code, Rows: activeRows(r.model.KnownSites(f.account.id, f.code, 0)), IsDryRun: true}
	if a := r.retryFailed(ctx, func() answer { return r.sendAPI(ctx, at, f.newRequest(dryRun)) }); a.status != http.StatusOK {
		return fmt.Errorf("a dry run of what %s/%s lists is answered %s", f.account.id, f.code, a)
	}
	f.edition++
	// The edition is new, so no earlier write can have stored this content.
	w := f.newPut(probe % f.rows)
	a := r.retryFailed(ctx, func() answer { return r.sendAPI(ctx, at, f.newRequest(w)) })
	switch a.status {
	case http.StatusConflict:
		return nil // the model knows whether another active site would exceed the ceiling
	case http.StatusOK, http.StatusCreated:
		return harness.Retry(ctx, r.searchTimeout, retryInterval, func() error { return r.searchSite(ctx, at, f, w) })
	}
	return fmt.Errorf("%s/%s takes no write: %s", f.account.id, f.code, a)
}

// searchSite searches for a site by its name. It returns an error if the site is not found.
func (r *run) searchSite(ctx context.Context, at *serverProcess, f *referential, w model.PutSite) error {
	a := r.getAPI(ctx, at, f.account, "GET /locations/search", "/locations/search?referentiel="+f.code+"&q="+url.QueryEscape(w.Name))
	var found body.Locations
	if a.status != http.StatusOK {
		return fmt.Errorf("%s/%s: search: %s", f.account.id, f.code, a)
	}
	if err := json.Unmarshal(a.body, &found); err != nil {
		return err
	}
	for _, s := range found.Results {
		if s.ExternalID == w.ExternalID && s.Name == w.Name {
			return nil
		}
	}
	return fmt.Errorf("%s/%s: %s was written and is not found", f.account.id, f.code, w.Name)
}

// activeSites returns how many active sites an account has, according to the model.
func (r *run) activeSites(a *account) (n int) {
	for _, f := range a.referentials {
		n += len(activeRows(r.model.KnownSites(a.id, f.code, 0)))
	}
	return n
}

// checkMe compares the number of active sites in /me with the model's, and with the limit of the plan.
func (r *run) checkMe(ctx context.Context, at *serverProcess, a *account) error {
	got := r.getAPI(ctx, at, a, "GET /me", "/me")
	if a.exhausted && got.status == http.StatusTooManyRequests {
		return nil
	}
	var me body.Me
	if err := json.Unmarshal(got.body, &me); err != nil || got.status != http.StatusOK {
		return fmt.Errorf("GET /me: %s", got)
	}
	p, _ := plan.Lookup(a.plan) // a constant of package plan
	active := r.activeSites(a)
	if me.Sites.Active != nil && *me.Sites.Active != active || active > p.SiteCeiling() {
		return fmt.Errorf("it has %d sites, /me tells %d of at most %d", active, *me.Sites.Active, p.SiteCeiling())
	}
	return nil
}

// checkKeys uses every key of an account on every instance. The model checks the answers.
func (r *run) checkKeys(ctx context.Context, a *account) error {
	for _, k := range r.model.Secrets(a.id) {
		for _, i := range r.instances {
			if got := r.retryFailed(ctx, func() answer { return r.useKey(ctx, i.current.Load(), a, k) }); k.IsActive && got.status != http.StatusOK &&
				(got.status != http.StatusTooManyRequests || !a.exhausted) {
				return fmt.Errorf("key %s: GET /me: %s", k.ID, got)
			}
		}
	}
	return nil
}

// waitCaughtUp waits until the serving read models of every instance have caught up with the log. If those of an instance do not within
// healthTimeout, it reports the instance and returns false.
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

// servingGenerations returns the names of the generations of read models that serve on an instance, by model. A generation is one copy of a
// read model; a rebuild fills a new one while the old one serves. The error names a generation that is stopped or behind the log.
func (r *run) servingGenerations(ctx context.Context, at *serverProcess) (map[string]string, error) {
	a := r.sendArea(ctx, at, request{method: http.MethodGet, path: "/projections"}, nil)
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

// lagText returns a lag as text for an error; nil means unknown.
func lagText(events *int) string {
	if events == nil {
		return "nobody knows by how many events"
	}
	return fmt.Sprintf("by %d events", *events)
}
