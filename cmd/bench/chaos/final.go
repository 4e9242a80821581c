package chaos

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"lieudit/cmd/bench/harness"
	"lieudit/cmd/bench/model"
	"lieudit/cmd/lieudit/adminclient"
	"lieudit/schemas/body"
)

// checkAtEnd runs the checks that are done once, after the last round: the history has every version of every site, rebuilt read models answer
// the same, and every process stops cleanly. The clients have ended. Its first check reduces each referential to one possible state, on which
// the others rely.
func (r *run) checkAtEnd(ctx context.Context) {
	r.checkLock.Lock()
	defer r.checkLock.Unlock()
	r.checkSystem(ctx)
	if !r.hasNoViolations() {
		return
	}
	at := r.instances[0].current.Load()
	for _, a := range r.openedAccounts() {
		if err := r.checkHistory(ctx, at, a); err != nil {
			r.reportViolation("history of %s: %v", a.id, err)
		}
	}
	if err := r.checkRebuild(ctx, at); err != nil {
		r.reportViolation("%v", err)
	}
	r.checkSystem(ctx)
	r.updateTotals(r.recordSize)
	for _, i := range r.instances {
		if p := i.current.Load(); p != nil {
			// Stop is not a crash: endedByItself must not report one.
			p.killed.Store(true)
			if err := p.process.Stop(); err != nil {
				r.reportViolation("%s: %v", p.name, err)
			}
			i.current.Store(nil)
		}
	}
}

// recordSize adds the number of accounts and active sites to the totals. It is called with recordLock held, once.
func (r *run) recordSize(t *Totals) {
	t.Accounts = len(r.accounts)
	for _, a := range r.accounts {
		t.Sites += r.activeSites(a)
	}
}

// checkHistory checks that the history has each version of a site once, in order. The model compares their number, and that of the changes of
// keys and referentials, with its own. The subject of an entry about a site is referential/external id.
func (r *run) checkHistory(ctx context.Context, at *serverProcess, a *account) error {
	versions := map[string]int64{}
	var history []model.Incident
	get := func(path string) answer { return r.retryArea(ctx, at, http.MethodGet, path, nil) }
	err := readPages(adminclient.JoinPath("", "accounts", a.id, "history")+"?limit=1000", get, func(one json.RawMessage) error {
		var e body.Incident
		if err := json.Unmarshal(one, &e); err != nil {
			return err
		}
		history = append(history, model.Incident{Type: e.Type, Subject: e.Subject})
		if !strings.Contains(e.Subject, "/") {
			return nil
		}
		var shown struct{ Version int64 }
		if err := json.Unmarshal(e.Data, &shown); err != nil {
			return err
		}
		if shown.Version != versions[e.Subject]+1 {
			return fmt.Errorf("version %d of %s follows version %d", shown.Version, e.Subject, versions[e.Subject])
		}
		versions[e.Subject]++
		return nil
	})
	if err != nil {
		return err
	}
	r.model.CheckAudit(a.id, history)
	return nil
}

// rebuildTimeout is how long the rebuild of all read models may take.
const rebuildTimeout = 10 * time.Minute

// checkRebuild rebuilds every read model from the log and compares its answers with those before the rebuild. No client
// writes meanwhile, so any difference means that a read model depends on more than the log.
func (r *run) checkRebuild(ctx context.Context, at *serverProcess) error {
	began := time.Now()
	before, err := r.digestLists(ctx, at)
	if err != nil {
		return fmt.Errorf("before the rebuild: %w", err)
	}
	if !r.waitCaughtUp(ctx) {
		return nil // waitCaughtUp has reported it
	}
	served, err := r.servingGenerations(ctx, at)
	if err != nil {
		return err
	}
	if err := r.rebuild(ctx, at, served); err != nil {
		return err
	}
	after, err := r.digestLists(ctx, at)
	if err != nil {
		return fmt.Errorf("after the rebuild: %w", err)
	}
	for _, path := range slices.Sorted(maps.Keys(before)) {
		if before[path] != after[path] {
			return fmt.Errorf("%s is another once the read models are made again: %s, was %s", path, after[path], before[path])
		}
	}
	r.logf("read models made again in %.1f s: %d lists are the same", time.Since(began).Seconds(), len(before))
	return nil
}

// rebuild requests a rebuild of every read model, and waits until every instance serves the new copies. served are the copies that serve now,
// by model.
func (r *run) rebuild(ctx context.Context, at *serverProcess, served map[string]string) error {
	for name := range served {
		if a := r.sendArea(ctx, at, request{method: http.MethodPost, path: "/projections/" + name + ":rebuild"}, struct{}{}); a.status != http.StatusAccepted {
			return fmt.Errorf("rebuild of %s: %s", name, a)
		}
	}
	// A rebuilt model serves under a new generation once it has caught up with the log.
	for _, i := range r.instances {
		if err := harness.Retry(ctx, rebuildTimeout, retryInterval, func() error {
			now, err := r.servingGenerations(ctx, i.current.Load())
			for name, generation := range now {
				if err == nil && generation == served[name] {
					err = fmt.Errorf("%s still serves, not the rebuilt copy", generation)
				}
			}
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// digestLists returns digests of the lists in the answers of the read models, by path: accounts, keys, histories and sites. Usage is excluded,
// because these reads are billed themselves.
func (r *run) digestLists(ctx context.Context, at *serverProcess) (map[string]string, error) {
	digests := map[string]string{}
	area := func(path string) answer { return r.retryArea(ctx, at, http.MethodGet, path, nil) }
	if err := digestList(digests, "/accounts?limit=1000", area); err != nil {
		return nil, err
	}
	for _, a := range r.openedAccounts() {
		account := adminclient.JoinPath("", "accounts", a.id)
		for _, path := range []string{account + "/keys?limit=1000", account + "/history?limit=1000"} {
			if err := digestList(digests, path, area); err != nil {
				return nil, err
			}
		}
		api := func(path string) answer {
			return r.getAPI(ctx, at, a, "GET /locations/referentiels/{code}/sites", path)
		}
		for _, f := range a.referentials {
			if err := digestList(digests, "/locations/referentiels/"+f.code+"/sites?statut=tous&limit=1000", api, a.id); err != nil {
				return nil, err
			}
		}
	}
	return digests, nil
}

// digestList reads a list and puts its number of items and its digest into the map under the path. Words in of come before the path, if it does
// not name the account by itself.
func digestList(into map[string]string, path string, get func(string) answer, of ...string) error {
	sum, n := sha256.New(), 0
	err := readPages(path, get, func(one json.RawMessage) error {
		n++
		sum.Write(harness.WithoutLastUse(one))
		return nil
	})
	into[strings.Join(append(of, path), " ")] = fmt.Sprintf("%d items, %x", n, sum.Sum(nil)[:8])
	return err
}
