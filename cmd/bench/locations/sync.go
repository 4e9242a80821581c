package locations

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"lieudit/cmd/bench/loadclient"
)

// measureSyncs measures whole sets: the first of an account by address and with positions, the same again, and one of which
// a hundredth has changed; and how soon one more site is found.
func (r *run) measureSyncs(ctx context.Context) error {
	latencies := map[string]loadclient.Latencies{}
	var last account
	for turn := range r.Rounds {
		for _, withPositions := range []bool{false, true} {
			r.Progress(fmt.Sprintf("sync, turn %d", turn+1))
			c, err := r.openAccount(ctx, fmt.Sprintf("sync-%d-%v", turn, withPositions))
			if err != nil {
				return err
			}
			if err := r.measureThreeSyncs(ctx, c, withPositions, latencies); err != nil {
				return err
			}
			last = c
		}
	}
	for _, what := range []string{"first sync, by address", "first sync, with positions", "sync of the same", "sync with 1 % changed"} {
		if err := r.report(newFigure(what, 1, r.Sites, latencies[what])); err != nil {
			return err
		}
	}
	if err := r.measureSyncFreshness(ctx, last); err != nil {
		return err
	}
	return r.measureWriteFreshness(ctx, last)
}

// measureSyncFreshness measures how long after the last sync what it wrote is found: the search may have a backlog by then.
func (r *run) measureSyncFreshness(ctx context.Context, c account) error {
	r.Progress("time until the syncs are found")
	s := r.makeSites(r.Sites, 0, true).Rows
	s[0].Name = "Clôture des synchronisations"
	if _, err := c.syncSites(ctx, syncRequest{s}); err != nil {
		return err
	}
	answered := time.Now()
	if err := c.waitUntilFound(ctx, s[0].Name); err != nil {
		return err
	}
	return r.report(newFigure("until the last sync is found", 1, r.Sites, loadclient.Latencies{time.Since(answered)}))
}

func (r *run) measureThreeSyncs(ctx context.Context, c account, withPositions bool, latencies map[string]loadclient.Latencies) error {
	first := "first sync, by address"
	if withPositions {
		first = "first sync, with positions"
	}
	s := r.makeSites(r.Sites, 0, withPositions)
	if err := measureSync(ctx, c, s, syncResult{Created: r.Sites}, latencies, first); err != nil {
		return err
	}
	if err := measureSync(ctx, c, s, syncResult{Unchanged: r.Sites}, latencies, "sync of the same"); err != nil {
		return err
	}
	changed := 0
	for i := 0; i < len(s.Rows); i += 100 {
		s.Rows[i].Phone = "04 66 11 11 11"
		changed++
	}
	return measureSync(ctx, c, s, syncResult{Updated: changed, Unchanged: r.Sites - changed}, latencies, "sync with 1 % changed")
}

// measureSync sends a set that must do what is wanted, and notes how long it took.
func measureSync(ctx context.Context, c account, s syncRequest, want syncResult, latencies map[string]loadclient.Latencies, what string) error {
	began := time.Now()
	result, err := c.syncSites(ctx, s)
	took := time.Since(began)
	result.Placed = 0 // not every address that was invented can be meant alone
	if err == nil && result != want {
		err = fmt.Errorf("%s did %+v, want %+v", what, result, want)
	}
	latencies[what] = append(latencies[what], took)
	return err
}

const freshWrites = 100

// measureWriteFreshness measures how long after its answer a write is found.
func (r *run) measureWriteFreshness(ctx context.Context, c account) error {
	r.Progress("time until a write is found")
	var puts, found loadclient.Latencies
	for n := range freshWrites {
		s := r.makeSites(1, n, true).Rows[0]
		s.Name = fmt.Sprintf("Fraîcheur %05d", 10000+n)
		text, err := json.Marshal(s.Content)
		if err != nil {
			return err
		}
		began := time.Now()
		if err := c.send(ctx, http.MethodPut, fmt.Sprintf("/referentiels/%s/sites/fresh-%d", referential, n), text, nil); err != nil {
			return err
		}
		answered := time.Now()
		puts = append(puts, answered.Sub(began))
		if err := c.waitUntilFound(ctx, s.Name); err != nil {
			return err
		}
		found = append(found, time.Since(answered))
	}
	if err := r.report(newFigure("write of one site", 1, r.Sites, puts)); err != nil {
		return err
	}
	return r.report(newFigure("until it is found, the search with it", 1, r.Sites, found))
}

const searchTimeout = 5 * time.Minute

// waitUntilFound searches until a site is found.
func (c account) waitUntilFound(ctx context.Context, name string) error {
	for deadline := time.Now().Add(searchTimeout); ; {
		var got struct {
			Results []struct {
				Name string `json:"nom"`
			} `json:"results"`
		}
		if err := c.send(ctx, http.MethodGet, "/search?q="+url.QueryEscape(name), nil, &got); err != nil {
			return err
		}
		if len(got.Results) > 0 && got.Results[0].Name == name {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s is not found %v after it was written", name, searchTimeout)
		}
	}
}
