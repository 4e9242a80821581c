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
	"lieudit/schemas/locations"
)

// This file is the model of a referential: what each write makes of its sites, and what the service must answer. It repeats
// the rules of commands/locations in as few lines as possible, so that a defect there shows as a difference.

// siteRecord is one site in the model. Its content follows from its id and its edition (contentOf).
type siteRecord struct {
	edition int
	version int64
	active  bool
}

// state is the content of a referential: every site it ever had, active or not. States are immutable: write.apply copies. The
// zero state has no site.
type state struct {
	sites  map[int]siteRecord
	active int
	sum    uint64 // XOR of the records' hashes: equal states have equal sums
}

// with returns the state with another record of a site. It changes the map of s, so the caller must be its only owner.
func (s state) with(id int, r siteRecord) state {
	before, had := s.sites[id]
	if had {
		s.sum ^= before.hash(id)
		s.active -= intOf(before.active)
	}
	s.sum ^= r.hash(id)
	s.active += intOf(r.active)
	s.sites[id] = r
	return s
}

// intOf returns 1 for true, 0 for false.
func intOf(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// hash returns what the record adds to the sum of a state by XOR, which does not depend on the order of records.
func (r siteRecord) hash(id int) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%d %d %d %v", id, r.edition, r.version, r.active) // a hash takes everything
	return h.Sum64()
}

// action is a kind of write. The values of all but put and patch are the verbs in the paths of the API.
type action string

const (
	syncSites  action = "sync"
	upsert     action = "upsert"
	put        action = "put"
	patch      action = "patch"
	deactivate action = "deactivate"
	reactivate action = "reactivate"
)

// row is one site of a write, and the edition that it gets.
type row struct{ id, edition int }

// write is a request that changes sites of one referential. Writes of one site have one row.
type write struct {
	action    action
	rows      []row // by id
	confirmed bool
	key       string // Idempotency-Key
}

// limits are how many sites the account may have. The model counts the sites of one referential only, so an account with
// several referentials must never reach the ceiling.
type limits struct{ capacity, ceiling int }

// outcome is what the answer to a write says was done. Two outcomes are the same answer where they are equal.
type outcome struct {
	Status                                                int
	Code                                                  string // of a refusal
	Created, Updated, Unchanged, Reactivated, Deactivated int    // of a sync or an upsert
	Before, After                                         int
	Edition                                               int // of one site
	Version                                               int64
	Active                                                bool
}

// appends reports whether a write with this outcome appended an event to the log. One with an Idempotency-Key always does,
// because the service has to keep its answer.
func (o outcome) appends(w write) bool {
	if o.Status >= http.StatusBadRequest {
		return false
	}
	return w.key != "" || o.Created+o.Updated+o.Reactivated+o.Deactivated > 0
}

// apply returns the state after a write to s, and the outcome that the service must answer. A refused write leaves s as it
// is.
func (w write) apply(s state, l limits) (state, outcome) {
	next := state{maps.Clone(s.sites), s.active, s.sum}
	if next.sites == nil {
		next.sites = map[int]siteRecord{}
	}
	o := outcome{Status: http.StatusOK, Before: s.active}
	if isSingleSite := w.action != syncSites && w.action != upsert; isSingleSite {
		return w.applyOne(s, next, o, l)
	}
	named := make(map[int]bool, len(w.rows))
	for _, r := range w.rows {
		named[r.id] = true
		next = o.applyRow(next, r, false)
	}
	// A sync replaces the whole list: what it does not name becomes inactive.
	if w.action == syncSites {
		for id, r := range s.sites {
			if r.active && !named[id] {
				next = next.with(id, siteRecord{r.edition, r.version + 1, false})
				o.Deactivated++
			}
		}
	}
	o.After = next.active
	return w.refuseExcess(s, next, o, l)
}

// refuseExcess refuses a write that exceeds the ceiling, and an unconfirmed sync that removes more than half of the sites.
// Above the ceiling, a write that adds no site is allowed.
func (w write) refuseExcess(s, next state, o outcome, l limits) (state, outcome) {
	switch {
	case next.active > s.active && next.active > l.ceiling:
		return s, outcome{Status: http.StatusConflict, Code: "capacite_sites_depassee"}
	case w.action == syncSites && !w.confirmed && o.Deactivated*2 > s.active:
		return s, outcome{Status: http.StatusConflict, Code: "reduction_suspecte"}
	}
	return next, o
}

// applyRow writes a row to its site, in s, and counts what it did. If keepsInactive is set, an inactive site stays inactive.
func (o *outcome) applyRow(s state, r row, keepsInactive bool) state {
	had, known := s.sites[r.id]
	switch {
	case !known:
		o.Created++
		return s.with(r.id, siteRecord{r.edition, 1, true})
	case !had.active && !keepsInactive:
		o.Reactivated++
		return s.with(r.id, siteRecord{r.edition, had.version + 1, true})
	case had.edition != r.edition:
		o.Updated++
		return s.with(r.id, siteRecord{r.edition, had.version + 1, had.active})
	}
	o.Unchanged++
	return s
}

// applyOne is apply for a write of one site. It can be refused only for an unknown site or for the ceiling.
func (w write) applyOne(s, next state, o outcome, l limits) (state, outcome) {
	r := w.rows[0]
	had, known := s.sites[r.id]
	if !known && w.action != put {
		return s, outcome{Status: http.StatusNotFound}
	}
	switch w.action {
	case put:
		next = o.applyRow(next, r, false)
		if !known {
			o.Status = http.StatusCreated
		}
	case patch:
		next = o.applyRow(next, r, true)
	case deactivate:
		if had.active {
			next = next.with(r.id, siteRecord{had.edition, had.version + 1, false})
			o.Deactivated++
		}
	case reactivate:
		if !had.active {
			next = next.with(r.id, siteRecord{had.edition, had.version + 1, true})
			o.Reactivated++
		}
	}
	next, o = w.refuseExcess(s, next, o, l)
	if o.Status < http.StatusBadRequest {
		now := next.sites[r.id]
		o.Edition, o.Version, o.Active, o.After = now.edition, now.version, now.active, next.active
	}
	return next, o
}

// visible returns the part of an outcome that the answer to the write contains. The answer to a write of one site is the
// site, without counts.
func (o outcome) visible(w write) outcome {
	if w.action == syncSites || w.action == upsert || o.Status >= http.StatusBadRequest {
		return o
	}
	return outcome{Status: o.Status, Edition: o.Edition, Version: o.Version, Active: o.Active}
}

// outcomeOf decodes the answer to a write.
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
		o.Before, o.After = did.ActiveBefore, did.ActiveAfter
	default:
		var shown locations.Site
		if err = json.Unmarshal(text, &shown); err == nil {
			_, o.Edition, err = editionOf(shown)
		}
		o.Version, o.Active = shown.Version, shown.Active
	}
	return o, err
}

// externalID returns the external id of a site.
func externalID(id int) string { return fmt.Sprintf("site-%05d", id) }

// contentOf returns the content of a site in an edition.
func contentOf(r row) locations.Content {
	lat, lon := 42+float64(r.id%900)/100, 1+float64(r.id%700)/100
	return locations.Content{
		Name:    fmt.Sprintf("Comptoir %d édition %d", r.id, r.edition),
		Address: &locations.SiteAddress{Line1: fmt.Sprintf("%d rue des Essais", r.id+1), PostalCode: "48000", City: "Mende"},
		Lat:     &lat, Lon: &lon, Phone: phoneOf(r), Tags: []string{"comptoir"},
	}
}

// phoneOf returns a phone number that depends on the edition, as the name does: if a site shows the name of one edition and
// the phone of another, two writes were mixed.
func phoneOf(r row) string { return fmt.Sprintf("04 66 %06d", (r.id*31+r.edition)%1_000_000) }

// editionOf returns the id and the edition of a site that was read. The error says that no write sent this content.
func editionOf(s locations.Site) (id, edition int, err error) {
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

// stateOf returns the state that consists of the sites that were read.
func stateOf(sites []locations.Site) (state, error) {
	s := state{sites: make(map[int]siteRecord, len(sites))}
	for _, shown := range sites {
		id, edition, err := editionOf(shown)
		if err != nil {
			return s, err
		}
		if _, twice := s.sites[id]; twice {
			return s, fmt.Errorf("site %s is listed twice", shown.ExternalID)
		}
		s = s.with(id, siteRecord{edition, shown.Version, shown.Active})
	}
	return s, nil
}

// differences returns how many sites differ between two states, and a text about the first of them.
func differences(want, got state) (n int, first string) {
	ids := map[int]siteRecord{}
	maps.Copy(ids, want.sites)
	maps.Copy(ids, got.sites)
	for _, id := range slices.Sorted(maps.Keys(ids)) {
		w, wanted := want.sites[id]
		g, found := got.sites[id]
		if w == g && wanted == found {
			continue
		}
		if n++; n == 1 {
			first = fmt.Sprintf("%s: acknowledged %s, found %s", externalID(id), w.format(wanted), g.format(found))
		}
	}
	return n, first
}

// format returns a record as text for a violation.
func (r siteRecord) format(exists bool) string {
	if !exists {
		return "nothing"
	}
	return fmt.Sprintf("edition %d version %d active %v", r.edition, r.version, r.active)
}
