// Package locations decides what may happen to an account's places: its referentials and their sites. One account is one
// stream; unique codes, the cap of referentials, the capacity of sites and suspicious reductions are decided on that
// stream alone. States hold no contents: a digest says whether one is the same, and the log where it stands.
package locations

import (
	"time"

	"lieudit/commands"
	"lieudit/eventstore"
	"lieudit/schemas/event"
	"lieudit/schemas/site"
)

// State is an account's places as its stream tells them.
type State struct {
	groups  map[string]*group // by code
	open    int               // referentials that are not archived
	active  int               // sites
	held    int               // sites, active or not
	answers answers
	pending [][]event.SiteRow // staged rows whose commit comes next
}

// group is a referential with its sites.
type group struct {
	code, name        string
	created, archived time.Time
	active            int
	sites             map[string]standing // by external id
}

// standing is what decisions need of a site.
type standing struct {
	digest            site.Digest
	content           place
	version           int64
	created, modified int64 // Unix microseconds by the log
	deactivated       int64 // likewise, of an inactive site
	active            bool
	placed            bool // its position is its address's
	lost              bool // it has no position
}

// place is where on the log a content stands: the event of the account's stream; where that is a commit, which of the
// staged events; and which of its rows.
type place struct {
	revision    eventstore.Revision
	staged, row int32
}

// room is how many sites the states in memory hold together, of all accounts: some 170 bytes each.
const room = 500_000

// Aggregate is how streams of places are folded.
var Aggregate = commands.Aggregate[State]{
	Category: "locations", Evolve: Evolve, Weight: weight, Room: room,
	Form: freezing, Freeze: freeze, Thaw: thaw,
}

func weight(s *State) int { return 8 + len(s.groups) + s.held + len(s.answers.kept) }

// Evolve changes the state by one fact.
func Evolve(s *State, f commands.Fact) {
	switch e := f.Event.(type) {
	case event.ReferentialOpened:
		s.add(&group{code: e.Code, name: e.Name, created: f.At, sites: map[string]standing{}})
	case event.ReferentialRenamed:
		s.group(e.Code, f.At).name = e.Name
	case event.ReferentialArchived:
		s.group(e.Code, f.At).archived = f.At
		s.open--
	case event.SyncStaged:
		s.pending = append(s.pending, e.Rows)
	case event.SyncCommitted:
		s.evolveSites(f, e.SitesWritten, s.pending)
		s.pending = nil
	case event.SitesChanged:
		s.evolveSites(f, e.SitesWritten, [][]event.SiteRow{e.Rows})
	case event.RequestKept:
		s.answers.keep(f, e.SitesWritten)
	}
}

func (s *State) evolveSites(f commands.Fact, w event.SitesWritten, staged [][]event.SiteRow) {
	g := s.group(w.Referential, f.At)
	sites, active := len(g.sites), g.active
	for i, rows := range staged {
		for n, r := range rows {
			g.evolve(r, f.At.UnixMicro(), place{f.Revision, int32(i), int32(n)})
		}
	}
	s.held += len(g.sites) - sites
	s.active += g.active - active
	s.answers.keep(f, w)
}

func (g *group) evolve(r event.SiteRow, at int64, content place) {
	x := g.sites[r.ExternalID]
	if x.active {
		g.active--
	}
	switch r.Op {
	case event.SiteCreated, event.SiteReactivated:
		x.active, x.deactivated = true, 0
	case event.SiteDeactivated:
		x.active, x.deactivated = false, at
	}
	if x.active {
		g.active++
	}
	if x.version == 0 {
		x.created = at
	}
	x.version, x.modified = r.Version, at
	if len(r.Digest) > 0 { // else its content stays as it was
		x.digest, x.content, x.placed, x.lost = site.Digest(r.Digest), content, r.Placed, r.Lost
	}
	g.sites[r.ExternalID] = x
}

// group is a referential of an account. Where a correction names the event that opened it, the next that speaks of it
// does.
func (s *State) group(code string, at time.Time) *group {
	if _, ok := s.groups[code]; !ok {
		s.add(&group{code: code, created: at, sites: map[string]standing{}})
	}
	return s.groups[code]
}

func (s *State) add(g *group) {
	if s.groups == nil {
		s.groups = map[string]*group{}
	}
	if s.groups[g.code] = g; g.archived.IsZero() {
		s.open++
	}
	s.active += g.active
	s.held += len(g.sites)
}

// find is a referential that exists.
func (s *State) find(code string) (*group, error) {
	if g, ok := s.groups[code]; ok {
		return g, nil
	}
	return nil, ErrUnknownReferential
}

// writable is a referential that takes writes.
func (s *State) writable(code string) (*group, error) {
	g, err := s.find(code)
	if err == nil && !g.archived.IsZero() {
		err = ErrArchived
	}
	return g, err
}

// site is a site of a referential that takes writes.
func (s *State) site(code, externalID string) (*group, standing, error) {
	g, err := s.writable(code)
	if err != nil {
		return g, standing{}, err
	}
	x, err := g.site(externalID)
	return g, x, err
}

func (g *group) site(externalID string) (standing, error) {
	x, ok := g.sites[externalID]
	if !ok {
		return x, ErrUnknownSite
	}
	return x, nil
}
