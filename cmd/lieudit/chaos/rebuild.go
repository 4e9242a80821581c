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

	"lieudit/cmd/lieudit/backoffice"
	"lieudit/schemas/body"
)

// last is what is checked once, at the end: the history tells every version of every site, read models that are made
// again from the log hold the same rows, and everything ends in good order.
func (r *run) last(ctx context.Context) {
	r.quiet.Lock()
	defer r.quiet.Unlock()
	r.check(ctx)
	if !r.clean() {
		return
	}
	at := r.instances[0].current.Load()
	for _, a := range r.opened() {
		if err := r.checkHistory(ctx, at, a); err != nil {
			r.violate("history of %s: %v", a.id, err)
		}
	}
	if err := r.checkRebuild(ctx, at); err != nil {
		r.violate("%v", err)
	}
	r.check(ctx)
	r.count(r.size)
	for _, i := range r.instances {
		if l := i.current.Load(); l != nil {
			l.killed.Store(true)
			if err := l.process.End(); err != nil {
				r.violate("%s: %v", l.name, err)
			}
			i.current.Store(nil)
		}
	}
}

// size notes how much there is in the end.
func (r *run) size(t *Totals) {
	t.Accounts = len(r.accounts)
	for _, a := range r.accounts {
		for _, f := range a.referentials {
			t.Sites += f.possible[0].active
		}
	}
}

// checkHistory: each version of a site is told once, in order, and the last is the one it has.
func (r *run) checkHistory(ctx context.Context, at *life, a *account) error {
	versions := map[string]int64{}
	ask := func(path string) answer { return r.askArea(ctx, at, http.MethodGet, path, nil) }
	err := readPages(backoffice.Path("", "accounts", a.id, "history")+"?limit=1000&kind=sites", ask, func(one json.RawMessage) error {
		var e body.Incident
		if err := json.Unmarshal(one, &e); err != nil || !strings.Contains(e.Subject, "/") {
			return err
		}
		var told struct{ Version int64 }
		if err := json.Unmarshal(e.Data, &told); err != nil {
			return err
		}
		if told.Version != versions[e.Subject]+1 {
			return fmt.Errorf("version %d of %s follows version %d", told.Version, e.Subject, versions[e.Subject])
		}
		versions[e.Subject]++
		return nil
	})
	if err != nil {
		return err
	}
	for _, f := range a.referentials {
		for id, had := range f.possible[0].sites {
			if n := versions[f.code+"/"+name(id)]; n != had.version {
				return fmt.Errorf("%s of %s has version %d, the last that is told is %d", name(id), f.code, had.version, n)
			}
		}
	}
	return nil
}

// rebuildTime is how long all read models may take to be made again.
const rebuildTime = 10 * time.Minute

// checkRebuild makes every read model again from the log and compares what it answers with what the one before did.
func (r *run) checkRebuild(ctx context.Context, at *life) error {
	began := time.Now()
	before, err := r.rows(ctx, at)
	if err != nil {
		return fmt.Errorf("before the rebuild: %w", err)
	}
	if !r.caughtUp(ctx) {
		return nil // told
	}
	served, err := r.copies(ctx, at)
	if err != nil {
		return err
	}
	if err := r.rebuild(ctx, at, served); err != nil {
		return err
	}
	after, err := r.rows(ctx, at)
	if err != nil {
		return fmt.Errorf("after the rebuild: %w", err)
	}
	for _, path := range slices.Sorted(maps.Keys(before)) {
		if before[path] != after[path] {
			return fmt.Errorf("%s is another once the read models are made again: %s, was %s", path, after[path], before[path])
		}
	}
	r.note("read models made again in %.1f s: %d lists are the same", time.Since(began).Seconds(), len(before))
	return nil
}

// rebuild has every read model made again, and waits until every instance answers from the fresh copies.
func (r *run) rebuild(ctx context.Context, at *life, served map[string]string) error {
	for model := range served {
		if a := r.sendArea(ctx, at, http.MethodPost, "/projections/"+model+":rebuild", struct{}{}); a.status != http.StatusAccepted {
			return fmt.Errorf("rebuild of %s: %s", model, a)
		}
	}
	for _, i := range r.instances {
		if err := eventually(ctx, rebuildTime, func() error {
			now, err := r.copies(ctx, i.current.Load())
			for model, name := range now {
				if err == nil && name == served[model] {
					err = fmt.Errorf("%s still serves, not the rebuilt copy", name)
				}
			}
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// rows are the digests of what the read models answer, by path.
func (r *run) rows(ctx context.Context, at *life) (map[string]string, error) {
	digests := map[string]string{}
	area := func(path string) answer { return r.askArea(ctx, at, http.MethodGet, path, nil) }
	if err := digest(digests, "/accounts?limit=1000", area); err != nil {
		return nil, err
	}
	for _, a := range r.opened() {
		account := backoffice.Path("", "accounts", a.id)
		for _, path := range []string{account + "/keys?limit=1000", account + "/history?limit=1000"} {
			if err := digest(digests, path, area); err != nil {
				return nil, err
			}
		}
		api := func(path string) answer {
			return r.get(ctx, at, a, "GET /locations/referentiels/{code}/sites", path)
		}
		for _, f := range a.referentials {
			if err := digest(digests, "/locations/referentiels/"+f.code+"/sites?statut=tous&limit=1000", api, a.id); err != nil {
				return nil, err
			}
		}
	}
	return digests, nil
}

// digest notes the digest of a list, with how many items it has.
func digest(into map[string]string, path string, ask func(string) answer, of ...string) error {
	sum, n := sha256.New(), 0
	err := readPages(path, ask, func(one json.RawMessage) error {
		n++
		sum.Write(withoutUse(one))
		return nil
	})
	into[strings.Join(append(of, path), " ")] = fmt.Sprintf("%d items, %x", n, sum.Sum(nil)[:8])
	return err
}

// withoutUse is an item without the time of a key's last use, which the run's own questions move.
func withoutUse(item json.RawMessage) []byte {
	var fields map[string]json.RawMessage
	if json.Unmarshal(item, &fields) != nil {
		return item
	}
	delete(fields, "utilise_le")
	text, err := json.Marshal(fields)
	if err != nil {
		return item
	}
	return text
}
