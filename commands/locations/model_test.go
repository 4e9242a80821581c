package locations

import (
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"lieudit/schemas/event"
	"lieudit/schemas/locations"
	"lieudit/schemas/plan"
	"lieudit/schemas/refusal"
)

// model is an account's locations as the commands ought to keep them, written as plainly as possible.
type model struct {
	plan         plan.Plan
	ban          *fakeBan
	referentials map[string]*modelReferential
	answers      map[string]modelAnswer // by referential and key
}

type modelReferential struct {
	name     string
	archived bool
	sites    map[string]modelSite
}

type modelSite struct {
	locations.StoredSite
	active  bool
	version int64
}

type modelAnswer struct {
	request string
	outcome Outcome
}

func (r *modelReferential) active() (n int) {
	for _, s := range r.sites {
		if s.active {
			n++
		}
	}
	return n
}

func (m *model) count() (f Counts) {
	for _, r := range m.referentials {
		f.Sites += r.active()
		if !r.archived {
			f.Referentials++
		}
	}
	return f
}

func (m *model) open(code, name string) error {
	if active := m.count().Referentials; active >= m.plan.MaxReferentials {
		return refusal.ReferentialsOverCapacity.With(refusal.Details{Active: active, Ceiling: m.plan.MaxReferentials})
	}
	if m.referentials[code] != nil {
		return refusal.ReferentialCodeTaken
	}
	m.referentials[code] = &modelReferential{name: name, sites: map[string]modelSite{}}
	return nil
}

// findWritable returns a referential that takes writes.
func (m *model) findWritable(code string) (*modelReferential, error) {
	r := m.referentials[code]
	switch {
	case r == nil:
		return nil, ErrUnknownReferential
	case r.archived:
		return r, refusal.ReferentialArchived
	}
	return r, nil
}

func (m *model) archive(code string) error {
	r := m.referentials[code]
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

func (m *model) toggle(code, id string, active bool) error {
	r, err := m.findWritable(code)
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
	if n := m.count().Sites; active && n+1 > m.plan.SiteCeiling() {
		return refusal.SitesOverCapacity.With(refusal.Details{Active: n, Capacity: m.plan.SiteCapacity, Ceiling: m.plan.SiteCeiling()})
	}
	s.active = active
	s.version++
	r.sites[id] = s
	return nil
}

// write does what a batch ought to do. It changes the referential unless the batch is refused or a dry run.
func (m *model) write(code, action string, b Batch) (Outcome, error) {
	r, err := m.findWritable(code)
	if errors.Is(err, ErrUnknownReferential) {
		return Outcome{}, err
	}
	if !b.DryRun && b.IdempotencyKey != "" {
		if k, ok := m.answers[code+"/"+b.IdempotencyKey]; ok {
			if k.request != action+string(b.RequestDigest) {
				return Outcome{}, refusal.IdempotencyMismatch
			}
			return k.outcome, nil
		}
	}
	next := maps.Clone(r.sites)
	o := Outcome{SiteWriteSummary: event.SiteWriteSummary{Referential: code, Action: action,
		ActiveBefore: r.active(), AccountActive: m.count().Sites, Capacity: m.plan.SiteCapacity, Ceiling: m.plan.SiteCeiling()}}
	for _, row := range slices.SortedFunc(slices.Values(b.Rows), func(a, b Row) int { return cmp.Compare(a.ExternalID, b.ExternalID) }) {
		m.writeRow(&o, next, row, action == "patch")
	}
	if b.IsSync {
		deactivateOmitted(&o, next, b.Rows)
	}
	slices.SortFunc(o.Changes, func(a, b SiteChange) int { return cmp.Compare(a.ExternalID, b.ExternalID) })
	after := modelReferential{sites: next}
	o.ActiveAfter = after.active()
	switch account := o.AccountActive + o.ActiveAfter - o.ActiveBefore; {
	case err != nil:
	case account > o.Ceiling && account > o.AccountActive:
		err = refusal.SitesOverCapacity.With(refusal.Details{Active: o.AccountActive, Capacity: o.Capacity, Ceiling: o.Ceiling})
	case b.IsSync && !b.Confirmed && o.Deactivated*2 > o.ActiveBefore:
		err = refusal.SuspiciousReduction.With(refusal.Details{Before: o.ActiveBefore, After: o.ActiveAfter})
	}
	if b.DryRun {
		o.Refused = err
		return o, nil
	}
	if err != nil {
		return Outcome{}, err
	}
	r.sites = next
	if b.IdempotencyKey != "" {
		kept := o
		kept.Changes = slices.Clone(o.Changes)
		for i := range kept.Changes {
			kept.Changes[i].Fields = nil
		}
		m.answers[code+"/"+b.IdempotencyKey] = modelAnswer{action + string(b.RequestDigest), kept}
	}
	return o, nil
}

func deactivateOmitted(o *Outcome, sites map[string]modelSite, rows []Row) {
	for id, s := range sites {
		if s.active && !slices.ContainsFunc(rows, func(r Row) bool { return r.ExternalID == id }) {
			s.active = false
			s.version++
			sites[id] = s
			o.Deactivated++
			o.Changes = append(o.Changes, SiteChange{id, event.SiteDeactivated, nil})
		}
	}
}

// writeRow does what one row ought to do.
func (m *model) writeRow(o *Outcome, sites map[string]modelSite, row Row, keepsInactive bool) {
	old, known := sites[row.ExternalID]
	next := modelSite{StoredSite: m.stored(row.Content), active: !known || old.active || !keepsInactive, version: old.version + 1}
	shown := old.ShownContent()
	isSameBody := encodeFields(row.Content) == encodeFields(old.Content)
	isAsGiven, isAsShown := encodePosition(row.Content) == encodePosition(old.Content), encodePosition(row.Content) == encodePosition(shown)
	switch same := isSameBody && (isAsGiven || isAsShown); {
	case !known:
		o.Created++
		o.Changes = append(o.Changes, SiteChange{row.ExternalID, event.SiteCreated, nil})
	case same && (old.Position != nil || next.Position == nil):
		if old.active == next.active {
			o.Unchanged++
			return
		}
		next.StoredSite = old.StoredSite
		o.Reactivated++
		o.Changes = append(o.Changes, SiteChange{row.ExternalID, event.SiteReactivated, nil})
		sites[row.ExternalID] = next
		if old.Position == nil {
			o.UnlocatedSites = append(o.UnlocatedSites, row.ExternalID)
		}
		return
	case !same && isAsShown && !isAsGiven && old.Position.Source == locations.SourceBAN:
		withoutPosition := row.Content
		withoutPosition.Lat, withoutPosition.Lon = nil, nil
		if withoutPosition.Address != nil {
			withoutPosition.IDBan = ""
		}
		next.StoredSite = m.stored(withoutPosition)
	}
	if known && old.active == next.active {
		o.Updated++
		o.Changes = append(o.Changes, SiteChange{row.ExternalID, event.SiteUpdated, fieldsByHand(old.ShownContent(), next.ShownContent())})
	} else if known {
		o.Reactivated++
		o.Changes = append(o.Changes, SiteChange{row.ExternalID, event.SiteReactivated, fieldsByHand(old.ShownContent(), next.ShownContent())})
	}
	sites[row.ExternalID] = next
	switch p := next.Position; {
	case p == nil:
		o.UnlocatedSites = append(o.UnlocatedSites, row.ExternalID)
	case p.Source == locations.SourceBAN:
		o.Geocoded++
		o.GeocodedSites = append(o.GeocodedSites, GeocodedSite{row.ExternalID, p.Score, p.Precision})
	}
}

func (m *model) stored(c locations.Content) locations.StoredSite {
	s := locations.StoredSite{Content: c, Position: c.OwnPosition()}
	if s.Position != nil {
		return s
	}
	if p, ok := m.ban.find(c); ok {
		s.Position = &p
	}
	return s
}

// fieldsByHand names the members of two contents whose JSON differs.
func fieldsByHand(a, b locations.Content) (fields []string) {
	members := func(c locations.Content) (m struct {
		all     map[string]json.RawMessage
		address map[string]json.RawMessage
	}) {
		text, _ := json.Marshal(c)
		_ = json.Unmarshal(text, &m.all)
		_ = json.Unmarshal(m.all["adresse"], &m.address)
		return m
	}
	x, y := members(a), members(b)
	for _, name := range []string{"nom", "adresse.ligne_1", "adresse.ligne_2", "adresse.code_postal", "adresse.commune", "adresse.code_insee", "adresse.pays",
		"id_ban", "lat", "lon", "horaires", "telephone", "email", "site_web", "tags", "proprietes"} {
		from, to := x.all[name], y.all[name]
		if part, ok := strings.CutPrefix(name, "adresse."); ok {
			from, to = x.address[part], y.address[part]
		}
		if string(from) != string(to) {
			fields = append(fields, name)
		}
	}
	return fields
}

func encodeFields(c locations.Content) string {
	c.Lat, c.Lon, c.IDBan = nil, nil, ""
	text, _ := json.Marshal(c)
	return string(text)
}

func encodePosition(c locations.Content) string {
	text, _ := json.Marshal([]any{c.Lat, c.Lon, c.IDBan})
	return string(text)
}
