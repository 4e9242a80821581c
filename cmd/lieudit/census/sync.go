package census

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"lieudit/cmd/lieudit/caller"
)

// syncs measures whole sets: the first of an account by address and with positions, the same again, and one of which
// a hundredth has changed; and how soon one more site is found.
func (r *run) syncs(ctx context.Context) error {
	kinds := map[string]caller.Times{}
	var last customer
	for turn := range r.Turns {
		for _, placed := range []bool{false, true} {
			r.Progress(fmt.Sprintf("sync, turn %d", turn+1))
			c, err := r.open(ctx, fmt.Sprintf("sync-%d-%v", turn, placed))
			if err != nil {
				return err
			}
			if err := r.threeSyncs(ctx, c, placed, kinds); err != nil {
				return err
			}
			last = c
		}
	}
	for _, what := range []string{"first sync, by address", "first sync, with positions", "sync of the same", "sync with 1 % changed"} {
		if err := r.tell(figure(what, 1, r.Sites, kinds[what])); err != nil {
			return err
		}
	}
	if err := r.settled(ctx, last); err != nil {
		return err
	}
	return r.fresh(ctx, last)
}

// settled measures how long after the last sync what it wrote is found: the search may have a backlog by then.
func (r *run) settled(ctx context.Context, c customer) error {
	r.Progress("time until the syncs are found")
	s := r.sites(r.Sites, 0, true).Rows
	s[0].Name = "Clôture des synchronisations"
	if _, err := c.sync(ctx, set{s}); err != nil {
		return err
	}
	answered := time.Now()
	if err := c.seek(ctx, s[0].Name); err != nil {
		return err
	}
	return r.tell(figure("until the last sync is found", 1, r.Sites, caller.Times{time.Since(answered)}))
}

func (r *run) threeSyncs(ctx context.Context, c customer, placed bool, kinds map[string]caller.Times) error {
	first := "first sync, by address"
	if placed {
		first = "first sync, with positions"
	}
	s := r.sites(r.Sites, 0, placed)
	if err := timed(ctx, c, s, synced{Created: r.Sites}, kinds, first); err != nil {
		return err
	}
	if err := timed(ctx, c, s, synced{Unchanged: r.Sites}, kinds, "sync of the same"); err != nil {
		return err
	}
	changed := 0
	for i := 0; i < len(s.Rows); i += 100 {
		s.Rows[i].Phone = "04 66 11 11 11"
		changed++
	}
	return timed(ctx, c, s, synced{Updated: changed, Unchanged: r.Sites - changed}, kinds, "sync with 1 % changed")
}

// timed sends a set that must do what is wanted, and notes how long it took.
func timed(ctx context.Context, c customer, s set, want synced, kinds map[string]caller.Times, what string) error {
	began := time.Now()
	did, err := c.sync(ctx, s)
	took := time.Since(began)
	did.Placed = 0 // not every address that was invented can be meant alone
	if err == nil && did != want {
		err = fmt.Errorf("%s did %+v, want %+v", what, did, want)
	}
	kinds[what] = append(kinds[what], took)
	return err
}

const freshSites = 100

// fresh measures how long after its answer a write is found.
func (r *run) fresh(ctx context.Context, c customer) error {
	r.Progress("time until a write is found")
	var puts, found caller.Times
	for n := range freshSites {
		s := r.sites(1, n, true).Rows[0]
		s.Name = fmt.Sprintf("Fraîcheur %05d", 10000+n)
		text, err := json.Marshal(s.Content)
		if err != nil {
			return err
		}
		began := time.Now()
		if err := c.do(ctx, http.MethodPut, fmt.Sprintf("/referentiels/%s/sites/fresh-%d", referential, n), text, nil); err != nil {
			return err
		}
		answered := time.Now()
		puts = append(puts, answered.Sub(began))
		if err := c.seek(ctx, s.Name); err != nil {
			return err
		}
		found = append(found, time.Since(answered))
	}
	if err := r.tell(figure("write of one site", 1, r.Sites, puts)); err != nil {
		return err
	}
	return r.tell(figure("until it is found, the search with it", 1, r.Sites, found))
}

const seekTime = 5 * time.Minute

// seek searches until a site is found.
func (c customer) seek(ctx context.Context, name string) error {
	for late := time.Now().Add(seekTime); ; {
		var got struct {
			Results []struct {
				Name string `json:"nom"`
			} `json:"results"`
		}
		if err := c.do(ctx, http.MethodGet, "/search?q="+url.QueryEscape(name), nil, &got); err != nil {
			return err
		}
		if len(got.Results) > 0 && got.Results[0].Name == name {
			return nil
		}
		if time.Now().After(late) {
			return fmt.Errorf("%s is not found %v after it was written", name, seekTime)
		}
	}
}
