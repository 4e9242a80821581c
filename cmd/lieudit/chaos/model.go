package chaos

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"lieudit/schemas/body"
	"lieudit/schemas/site"
)

// record is one site as the model knows it. What a site says follows from its id and its edition.
type record struct {
	edition int
	version int64
	active  bool
}

// state is what a referential holds: every site it ever had. A state is never changed; a write makes another one.
type state struct {
	sites  map[int]record
	active int
	sum    uint64 // tells states apart
}

// with is the state with another record of a site. It changes the map of s, which must be nobody else's.
func (s state) with(id int, r record) state {
	before, had := s.sites[id]
	if had {
		s.sum ^= before.hash(id)
		s.active -= count(before.active)
	}
	s.sum ^= r.hash(id)
	s.active += count(r.active)
	s.sites[id] = r
	return s
}

// count is 1 or 0.
func count(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// hash is XORed into the sum of a state: two states with the same records have the same sum, in whatever order they came.
func (r record) hash(id int) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%d %d %d %v", id, r.edition, r.version, r.active) // a hash takes everything
	return h.Sum64()
}

// action is a kind of write.
type action string

const (
	syncSites  action = "sync"
	upsert     action = "upsert"
	put        action = "put"
	patch      action = "patch"
	deactivate action = "deactivate"
	reactivate action = "reactivate"
)

// row is a site of a write.
type row struct{ id, edition int }

// write is a request that changes sites of one referential. Writes of one site have one row.
type write struct {
	action    action
	rows      []row // by id
	confirmed bool
	key       string // Idempotency-Key
}

// limits are what the account may have. Of an account with several referentials the ceiling is never reached.
type limits struct{ capacity, ceiling int }

// outcome is what an answer says that was done.
type outcome struct {
	Status                                                int
	Code                                                  string // of a refusal
	Created, Updated, Unchanged, Reactivated, Deactivated int    // of a sync or an upsert
	Before, After                                         int
	Edition                                               int // of one site
	Version                                               int64
	Active                                                bool
}

// changes says whether a write of that outcome appended to the log.
func (o outcome) changes(w write) bool {
	if o.Status >= http.StatusBadRequest {
		return false
	}
	return w.key != "" || o.Created+o.Updated+o.Reactivated+o.Deactivated > 0
}

// apply is what a write makes of a state, and what is answered.
func (w write) apply(s state, l limits) (state, outcome) {
	next := state{maps.Clone(s.sites), s.active, s.sum}
	if next.sites == nil {
		next.sites = map[int]record{}
	}
	o := outcome{Status: http.StatusOK, Before: s.active}
	if alone := w.action != syncSites && w.action != upsert; alone {
		return w.applyOne(s, next, o, l)
	}
	named := make(map[int]bool, len(w.rows))
	for _, r := range w.rows {
		named[r.id] = true
		next = o.say(next, r, false)
	}
	if w.action == syncSites {
		for id, r := range s.sites {
			if r.active && !named[id] {
				next = next.with(id, record{r.edition, r.version + 1, false})
				o.Deactivated++
			}
		}
	}
	o.After = next.active
	return w.judge(s, next, o, l)
}

// judge refuses what the state does not allow.
func (w write) judge(s, next state, o outcome, l limits) (state, outcome) {
	switch {
	case next.active > s.active && next.active > l.ceiling:
		return s, outcome{Status: http.StatusConflict, Code: "capacite_sites_depassee"}
	case w.action == syncSites && !w.confirmed && o.Deactivated*2 > s.active:
		return s, outcome{Status: http.StatusConflict, Code: "reduction_suspecte"}
	}
	return next, o
}

// say writes what a row says of its site. A quiet one leaves an inactive site inactive.
func (o *outcome) say(s state, r row, quiet bool) state {
	had, known := s.sites[r.id]
	switch {
	case !known:
		o.Created++
		return s.with(r.id, record{r.edition, 1, true})
	case !had.active && !quiet:
		o.Reactivated++
		return s.with(r.id, record{r.edition, had.version + 1, true})
	case had.edition != r.edition:
		o.Updated++
		return s.with(r.id, record{r.edition, had.version + 1, had.active})
	}
	o.Unchanged++
	return s
}

// applyOne is apply for a write of one site. A capacity is all that it can be refused for.
func (w write) applyOne(s, next state, o outcome, l limits) (state, outcome) {
	r := w.rows[0]
	had, known := s.sites[r.id]
	if !known && w.action != put {
		return s, outcome{Status: http.StatusNotFound}
	}
	switch w.action {
	case put:
		next = o.say(next, r, false)
		if !known {
			o.Status = http.StatusCreated
		}
	case patch:
		next = o.say(next, r, true)
	case deactivate:
		if had.active {
			next = next.with(r.id, record{had.edition, had.version + 1, false})
			o.Deactivated++
		}
	case reactivate:
		if !had.active {
			next = next.with(r.id, record{had.edition, had.version + 1, true})
			o.Reactivated++
		}
	}
	next, o = w.judge(s, next, o, l)
	if o.Status < http.StatusBadRequest {
		now := next.sites[r.id]
		o.Edition, o.Version, o.Active, o.After = now.edition, now.version, now.active, next.active
	}
	return next, o
}

// seen is the part of an outcome that the answer to a write tells.
func (o outcome) seen(w write) outcome {
	if w.action == syncSites || w.action == upsert || o.Status >= http.StatusBadRequest {
		return o
	}
	return outcome{Status: o.Status, Edition: o.Edition, Version: o.Version, Active: o.Active}
}

// outcomeOf reads an answer.
func outcomeOf(w write, status int, text []byte) (outcome, error) {
	o := outcome{Status: status}
	var err error
	switch {
	case status == http.StatusConflict:
		var refusal struct{ Detail struct{ Code string } }
		err = json.Unmarshal(text, &refusal)
		o.Code = refusal.Detail.Code
	case status >= http.StatusBadRequest:
	case w.action == syncSites || w.action == upsert:
		var did body.Synced
		err = json.Unmarshal(text, &did)
		o.Created, o.Updated, o.Unchanged, o.Reactivated, o.Deactivated = did.Created, did.Updated, did.Unchanged, did.Reactivated, did.Deactivated
		o.Before, o.After = did.Before, did.After
	default:
		var shown site.Site
		if err = json.Unmarshal(text, &shown); err == nil {
			_, o.Edition, err = editionOf(shown)
		}
		o.Version, o.Active = shown.Version, shown.Active
	}
	return o, err
}

// name is the external id of a site.
func name(id int) string { return fmt.Sprintf("site-%05d", id) }

// contentOf is what an edition says of a site.
func contentOf(r row) site.Content {
	lat, lon := 42+float64(r.id%900)/100, 1+float64(r.id%700)/100
	return site.Content{
		Name:    fmt.Sprintf("Comptoir %d édition %d", r.id, r.edition),
		Address: &site.Address{Line1: fmt.Sprintf("%d rue des Essais", r.id+1), PostalCode: "48000", City: "Mende"},
		Lat:     &lat, Lon: &lon, Phone: phoneOf(r), Tags: []string{"comptoir"},
	}
}

// phoneOf tells editions apart as the name does: a site whose name and phone are of two editions is a mixture.
func phoneOf(r row) string { return fmt.Sprintf("04 66 %06d", (r.id*31+r.edition)%1_000_000) }

// editionOf is the edition that a site shows, which has to be one as it was sent.
func editionOf(s site.Site) (id, edition int, err error) {
	if id, err = strconv.Atoi(strings.TrimPrefix(s.ExternalID, "site-")); err != nil {
		return 0, 0, fmt.Errorf("nobody wrote a site %q", s.ExternalID)
	}
	if _, err := fmt.Sscanf(s.Name, "Comptoir %d édition %d", new(int), &edition); err != nil {
		return 0, 0, fmt.Errorf("site %s is called %q", s.ExternalID, s.Name)
	}
	if want := contentOf(row{id, edition}); s.Name != want.Name || s.Phone != want.Phone {
		return 0, 0, fmt.Errorf("site %s is %q, %q: no one write said both", s.ExternalID, s.Name, s.Phone)
	}
	return id, edition, nil
}

// stateOf is a state as it was read.
func stateOf(sites []site.Site) (state, error) {
	s := state{sites: make(map[int]record, len(sites))}
	for _, shown := range sites {
		id, edition, err := editionOf(shown)
		if err != nil {
			return s, err
		}
		if _, twice := s.sites[id]; twice {
			return s, fmt.Errorf("site %s is listed twice", shown.ExternalID)
		}
		s = s.with(id, record{edition, shown.Version, shown.Active})
	}
	return s, nil
}

// differences is how many sites differ between two states, with the first of them in words.
func differences(want, got state) (n int, first string) {
	ids := map[int]record{}
	maps.Copy(ids, want.sites)
	maps.Copy(ids, got.sites)
	for _, id := range slices.Sorted(maps.Keys(ids)) {
		w, wanted := want.sites[id]
		g, found := got.sites[id]
		if w == g && wanted == found {
			continue
		}
		if n++; n == 1 {
			first = fmt.Sprintf("%s: acknowledged %s, found %s", name(id), w.text(wanted), g.text(found))
		}
	}
	return n, first
}

func (r record) text(there bool) string {
	if !there {
		return "nothing"
	}
	return fmt.Sprintf("edition %d version %d active %v", r.edition, r.version, r.active)
}
