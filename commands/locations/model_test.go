package locations

import (
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"lieudit/schemas/event"
	"lieudit/schemas/plan"
	"lieudit/schemas/site"
)

// model is what an account's places ought to be, said as plainly as can be.
type model struct {
	plan plan.Plan
	ban  *ban
	refs map[string]*modelRef
	kept map[string]modelAnswer // by referential and key
}

type modelRef struct {
	name     string
	archived bool
	sites    map[string]modelSite
}

type modelSite struct {
	site.Stored
	active  bool
	version int64
}

type modelAnswer struct {
	request string
	outcome Outcome
}

func (r *modelRef) active() (n int) {
	for _, s := range r.sites {
		if s.active {
			n++
		}
	}
	return n
}

func (m *model) figures() (f Figures) {
	for _, r := range m.refs {
		f.Sites += r.active()
		if !r.archived {
			f.Referentials++
		}
	}
	return f
}

func (m *model) open(code, name string) error {
	if active := m.figures().Referentials; active >= m.plan.Referentials {
		return &ReferentialCapError{active, m.plan.Referentials}
	}
	if m.refs[code] != nil {
		return ErrCodeTaken
	}
	m.refs[code] = &modelRef{name: name, sites: map[string]modelSite{}}
	return nil
}

// ref is a referential for a write.
func (m *model) ref(code string) (*modelRef, error) {
	r := m.refs[code]
	switch {
	case r == nil:
		return nil, ErrUnknownReferential
	case r.archived:
		return r, ErrArchived
	}
	return r, nil
}

func (m *model) archive(code string) error {
	r := m.refs[code]
	if r == nil {
		return ErrUnknownReferential
	}
	if r.archived {
		return nil
	}
	for id, s := range r.sites {
		if s.active {
			s.active = false
			s.version++
			r.sites[id] = s
		}
	}
	r.archived = true
	return nil
}

func (m *model) turn(code, id string, active bool) error {
	r, err := m.ref(code)
	if err != nil {
		return err
	}
	s, ok := r.sites[id]
	if !ok {
		return ErrUnknownSite
	}
	if s.active == active {
		return nil
	}
	if n := m.figures().Sites; active && n+1 > m.plan.Ceiling() {
		return &SiteCapError{n, m.plan.Sites, m.plan.Ceiling()}
	}
	s.active = active
	s.version++
	r.sites[id] = s
	return nil
}

// write is what a batch ought to do. The referential is changed when all goes well and nothing is dry.
func (m *model) write(code, action string, b Batch) (Outcome, error) {
	r, err := m.ref(code)
	if errors.Is(err, ErrUnknownReferential) {
		return Outcome{}, err
	}
	if !b.DryRun && b.Key != "" {
		if k, ok := m.kept[code+"/"+b.Key]; ok {
			if k.request != action+string(b.Request) {
				return Outcome{}, ErrOtherRequest
			}
			return k.outcome, nil
		}
	}
	next := maps.Clone(r.sites)
	o := Outcome{SitesWritten: event.SitesWritten{Referential: code, Action: action,
		Before: r.active(), Active: m.figures().Sites, Capacity: m.plan.Sites, Ceiling: m.plan.Ceiling()}}
	for _, row := range slices.SortedFunc(slices.Values(b.Rows), func(a, b Row) int { return cmp.Compare(a.ExternalID, b.ExternalID) }) {
		m.row(&o, next, row, action == "patch")
	}
	if b.Whole {
		omit(&o, next, b.Rows)
	}
	after := modelRef{sites: next}
	o.After = after.active()
	switch account := o.Active + o.After - o.Before; {
	case err != nil:
	case account > o.Ceiling && account > o.Active:
		err = &SiteCapError{o.Active, o.Capacity, o.Ceiling}
	case b.Whole && !b.Confirmed && o.Deactivated*2 > o.Before:
		err = &ReductionError{o.Before, o.After}
	}
	if b.DryRun {
		o.Refused = err
		return o, nil
	}
	if err != nil {
		return Outcome{}, err
	}
	r.sites = next
	if b.Key != "" {
		m.kept[code+"/"+b.Key] = modelAnswer{action + string(b.Request), o}
	}
	return o, nil
}

func omit(o *Outcome, sites map[string]modelSite, rows []Row) {
	for id, s := range sites {
		if s.active && !slices.ContainsFunc(rows, func(r Row) bool { return r.ExternalID == id }) {
			s.active = false
			s.version++
			sites[id] = s
			o.Deactivated++
		}
	}
}

// row is what one row ought to do.
func (m *model) row(o *Outcome, sites map[string]modelSite, row Row, quiet bool) {
	old, known := sites[row.ExternalID]
	next := modelSite{Stored: m.stored(row.Content), active: !known || old.active || !quiet, version: old.version + 1}
	shown, source, _ := old.Show()
	sameBody := bodyOf(row.Content) == bodyOf(old.Content)
	said, seen := whereOf(row.Content) == whereOf(old.Content), whereOf(row.Content) == whereOf(shown)
	switch same := sameBody && (said || seen); {
	case !known:
		o.Created++
	case same && (old.Position != nil || next.Position == nil):
		if old.active == next.active {
			o.Unchanged++
			return
		}
		next.Stored = old.Stored
		o.Reactivated++
		sites[row.ExternalID] = next
		if old.Position == nil {
			o.NotPlaced = append(o.NotPlaced, row.ExternalID)
		}
		return
	case !same && seen && !said && source == site.FromBan:
		bare := row.Content
		bare.Lat, bare.Lon = nil, nil
		if bare.Address != nil {
			bare.IDBan = ""
		}
		next.Stored = m.stored(bare)
	}
	if known && old.active == next.active {
		o.Updated++
	} else if known {
		o.Reactivated++
	}
	sites[row.ExternalID] = next
	switch p := next.Position; {
	case p == nil:
		o.NotPlaced = append(o.NotPlaced, row.ExternalID)
	case p.Source == site.FromBan:
		o.Placed++
		o.Placements = append(o.Placements, Placement{row.ExternalID, p.Score})
	}
}

func (m *model) stored(c site.Content) site.Stored {
	s := site.Stored{Content: c, Position: c.Own()}
	if s.Position != nil {
		return s
	}
	if p, ok := m.ban.find(c); ok {
		s.Position = &p
	}
	return s
}

func bodyOf(c site.Content) string {
	c.Lat, c.Lon, c.IDBan = nil, nil, ""
	text, _ := json.Marshal(c)
	return string(text)
}

func whereOf(c site.Content) string {
	text, _ := json.Marshal([]any{c.Lat, c.Lon, c.IDBan})
	return string(text)
}
