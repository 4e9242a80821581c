package model

import (
	"fmt"
	"hash/maphash"
	"maps"
)

// places is the state that an account keeps under /locations: SPEC 2.5, 2.6 and 3, DECISIONS 5.
type places struct {
	referentials map[string]referential // by code
	sites        map[siteID]site
	repeats      map[string]repeat // by Idempotency-Key
	sum          uint64            // of the hashes of everything above
}

type referential struct {
	name       string
	isArchived bool
	changes    int // counting its opening; 0: its origin is unknown
}

// changed returns the referential with one more change, if their number is known.
func (r referential) changed() referential {
	if r.changes > 0 {
		r.changes++
	}
	return r
}

type siteID struct{ code, externalID string }

// site is a site of a customer. Its name stands for its whole content except the note: customers give every content a name of its own, and a
// patch of the note alone leaves the rest.
type site struct {
	name, note string
	isActive   bool
	version    int
}

// isSameContent reports whether the content equals that of another site.
func (s site) isSameContent(other site) bool { return s.name == other.name && s.note == other.note }

// switched returns the site one version later, active or not.
func (s site) switched(isActive bool) site {
	s.isActive, s.version = isActive, s.version+1
	return s
}

// repeat is the request that an Idempotency-Key was used for, and its answer.
type repeat struct {
	request uint64 // the request's hash
	answer  string
}

// limits are what a plan allows, DECISIONS 2.
type limits struct{ capacity, referentials, publishableKeys int }

func (l limits) ceiling() int { return l.capacity + l.capacity/10 }

// PlacesCommand is a command on referentials or sites. It returns its possible outcomes.
type PlacesCommand interface {
	apply(p places, l limits) []outcome[places]
}

// OpenReferential is POST /locations/referentiels, RenameReferential PATCH and ArchiveReferential DELETE on one.
type (
	OpenReferential    struct{ Code, Name string }
	RenameReferential  struct{ Code, Name string }
	ArchiveReferential struct{ Code string }
)

// PutSite is PUT on a site, PatchSite a PATCH of its whole content, and PatchNote a PATCH of its note alone.
type (
	PutSite   struct{ Code, ExternalID, Name string }
	PatchSite struct{ Code, ExternalID, Name string }
	PatchNote struct{ Code, ExternalID, Note string }
)

// SwitchSite is :reactivate on a site, or :deactivate.
type SwitchSite struct {
	Code, ExternalID string
	On               bool
}

// SyncSites is sites:sync, or sites:upsert when IsUpsert.
type SyncSites struct {
	Code              string
	Rows              []Row
	IsUpsert          bool
	ConfirmsReduction bool
	IsDryRun          bool
	IdempotencyKey    string // "": none
}

// Row is a site of a sync.
type Row struct{ ExternalID, Name string }

func (p places) hash() uint64 { return p.sum }

// withReferential, withSite and withRepeat return copies with one thing set.
func (p places) withReferential(code string, r referential) places {
	if old, ok := p.referentials[code]; ok {
		p.sum ^= hashOf(code, old)
	}
	p.sum ^= hashOf(code, r)
	p.referentials = maps.Clone(p.referentials)
	if p.referentials == nil {
		p.referentials = map[string]referential{}
	}
	p.referentials[code] = r
	return p
}

func (p places) withSites(changed map[siteID]site) places {
	all := make(map[siteID]site, len(p.sites)+len(changed))
	maps.Copy(all, p.sites)
	for id, s := range changed {
		if old, ok := all[id]; ok {
			p.sum ^= hashOf(id, old)
		}
		p.sum ^= hashOf(id, s)
		all[id] = s
	}
	p.sites = all
	return p
}

func (p places) withRepeat(key string, r repeat) places {
	p.sum ^= hashOf("key "+key, r)
	p.repeats = maps.Clone(p.repeats)
	if p.repeats == nil {
		p.repeats = map[string]repeat{}
	}
	p.repeats[key] = r
	return p
}

// activeReferentials counts the referentials that count against the plan.
func (p places) activeReferentials() (n int) {
	for _, r := range p.referentials {
		if !r.isArchived {
			n++
		}
	}
	return n
}

// activeSites counts the active sites of a referential, or of all if code is "".
func (p places) activeSites(code string) (n int) {
	for id, s := range p.sites {
		if s.isActive && (code == "" || id.code == code) {
			n++
		}
	}
	return n
}

// answer returns the state as the only outcome, with an answer.
func (p places) answer(format string, args ...any) []outcome[places] {
	return []outcome[places]{{p, fmt.Sprintf(format, args...)}}
}

// checkWritable refuses writes to a missing or archived referential. It returns nil if they are allowed.
func (p places) checkWritable(code string) []outcome[places] {
	r, ok := p.referentials[code]
	switch {
	case !ok:
		return p.answer("404")
	case r.isArchived:
		return p.answer("409 referentiel_archive")
	}
	return nil
}

func (c OpenReferential) apply(p places, l limits) []outcome[places] {
	if n := p.activeReferentials(); n >= l.referentials {
		return p.answer("409 capacite_referentiels_depassee %d %d", n, l.referentials)
	}
	if _, isTaken := p.referentials[c.Code]; isTaken {
		return p.answer("409 code_deja_utilise")
	}
	return p.withReferential(c.Code, referential{name: c.Name, changes: 1}).answer("201 %s active %q", c.Code, c.Name)
}

func (c RenameReferential) apply(p places, _ limits) []outcome[places] {
	if refused := p.checkWritable(c.Code); refused != nil {
		return refused
	}
	r := p.referentials[c.Code]
	if r.name != c.Name {
		r = r.changed()
		r.name = c.Name
	}
	return p.withReferential(c.Code, r).answer("200 %s active %q", c.Code, c.Name)
}

func (c ArchiveReferential) apply(p places, _ limits) []outcome[places] {
	r, ok := p.referentials[c.Code]
	if !ok {
		return p.answer("404")
	}
	if r.isArchived {
		return p.answer("200 %s archived %q", c.Code, r.name)
	}
	r = r.changed()
	r.isArchived = true
	changed := map[siteID]site{}
	for id, s := range p.sites {
		if id.code == c.Code && s.isActive {
			changed[id] = s.switched(false)
		}
	}
	return p.withReferential(c.Code, r).withSites(changed).answer("200 %s archived %q", c.Code, r.name)
}

// set stores a site and answers with it. If nothing changes, nothing is written.
func (p places) set(status int, id siteID, after site) []outcome[places] {
	before, ok := p.sites[id]
	after.version = before.version
	if !ok || before != after {
		after.version++
		p = p.withSites(map[siteID]site{id: after})
	}
	return p.answer("%d %s v%d %v %q", status, id.externalID, after.version, after.isActive, after.name)
}

// checkCapacity refuses a write that raises the account's number of active sites above its limit.
func (p places) checkCapacity(more int, l limits) []outcome[places] {
	if n := p.activeSites(""); more > 0 && n+more > l.ceiling() {
		return p.answer("409 capacite_sites_depassee %d %d %d", n, l.capacity, l.ceiling())
	}
	return nil
}

func (c PutSite) apply(p places, l limits) []outcome[places] {
	id := siteID{c.Code, c.ExternalID}
	if refused := p.checkWritable(c.Code); refused != nil {
		return refused
	}
	before, ok := p.sites[id]
	if !ok {
		if refused := p.checkCapacity(1, l); refused != nil {
			return refused
		}
		return p.set(201, id, site{name: c.Name, isActive: true})
	}
	all := p.set(200, id, site{name: c.Name, isActive: before.isActive})
	if !before.isActive { // the specification leaves open whether a PUT reactivates
		if refused := p.checkCapacity(1, l); refused != nil {
			return append(all, refused...)
		}
		all = append(all, p.set(200, id, site{name: c.Name, isActive: true})...)
	}
	return all
}

func (c PatchSite) apply(p places, _ limits) []outcome[places] {
	id := siteID{c.Code, c.ExternalID}
	if refused := p.checkWritable(c.Code); refused != nil {
		return refused
	}
	before, ok := p.sites[id]
	if !ok {
		return p.answer("404")
	}
	return p.set(200, id, site{name: c.Name, isActive: before.isActive})
}

func (c PatchNote) apply(p places, _ limits) []outcome[places] {
	id := siteID{c.Code, c.ExternalID}
	if refused := p.checkWritable(c.Code); refused != nil {
		return refused
	}
	before, ok := p.sites[id]
	if !ok {
		return p.answer("404")
	}
	before.note = c.Note
	return p.set(200, id, before)
}

func (c SwitchSite) apply(p places, l limits) []outcome[places] {
	id := siteID{c.Code, c.ExternalID}
	if refused := p.checkWritable(c.Code); refused != nil {
		return refused
	}
	before, ok := p.sites[id]
	if !ok {
		return p.answer("404")
	}
	if c.On && !before.isActive {
		if refused := p.checkCapacity(1, l); refused != nil {
			return refused
		}
	}
	before.isActive = c.On
	return p.set(200, id, before)
}

// request returns a hash of those parts of a sync that must be the same when it is repeated.
func (c SyncSites) request() uint64 {
	return maphash.String(seed, fmt.Sprint(c.Code, c.IsUpsert, c.ConfirmsReduction, c.IsDryRun, c.Rows))
}

func (c SyncSites) apply(p places, l limits) []outcome[places] {
	if c.IsDryRun { // a dry run keeps nothing, so the key is ignored
		return c.applyOnce(p, l)
	}
	if before, isRepeat := p.repeats[c.IdempotencyKey]; isRepeat {
		if before.request == c.request() {
			return p.answer("%s", before.answer)
		}
		return p.answer("422 Idempotency-Key")
	}
	all := c.applyOnce(p, l)
	if c.IdempotencyKey == "" {
		return all
	}
	for i, out := range all {
		if out.answer[0] == '2' {
			all[i].state = out.state.withRepeat(c.IdempotencyKey, repeat{c.request(), out.answer})
		}
	}
	return all
}

// applyOnce applies a sync as if nothing had been asked before. The order of its refusals is that of DECISIONS 5.
func (c SyncSites) applyOnce(p places, l limits) []outcome[places] {
	r, ok := p.referentials[c.Code]
	if !ok {
		return p.answer("404")
	}
	n, changed := c.compare(p)
	n.accountBefore = p.activeSites("")
	after := n.accountBefore - n.before + n.after
	refusal := ""
	switch {
	case r.isArchived:
		refusal = "referentiel_archive"
	case after > l.ceiling() && after > n.accountBefore:
		refusal = fmt.Sprintf("capacite_sites_depassee %d %d %d", n.accountBefore, l.capacity, l.ceiling())
	case !c.IsUpsert && !c.ConfirmsReduction && n.deactivated*2 > n.before:
		refusal = fmt.Sprintf("reduction_suspecte %d %d", n.before, n.after)
	}
	switch {
	case refusal != "" && !c.IsDryRun:
		return p.answer("409 %s", refusal)
	case r.isArchived: // the specification leaves open what else a dry run answers for an archived referential without active sites
		return p.answer("200 refus referentiel_archive")
	case c.IsDryRun:
		return append(p.answer("200 %s refus %s", n.text(false), refusal), p.answer("200 %s refus %s", n.text(true), refusal)...)
	}
	after1 := p.withSites(changed)
	return append(after1.answer("200 %s", n.text(false)), after1.answer("200 %s", n.text(true))...)
}

// syncCounts are the counts in the answer of a sync.
type syncCounts struct {
	created, updated, unchanged, reactivated, deactivated int
	before, after, accountBefore                          int
	updatedToo                                            int // the reactivated sites whose content changed
}

// text returns the counts in short. The specification leaves open whether a site that is reactivated with another content counts as updated
// too.
func (n syncCounts) text(countsTwice bool) string {
	if countsTwice {
		n.updated += n.updatedToo
	}
	return fmt.Sprintf("+%d ~%d =%d ^%d -%d %d>%d of %d", n.created, n.updated, n.unchanged, n.reactivated, n.deactivated,
		n.before, n.after, n.accountBefore)
}

// compare counts the changes of a sync, and returns the changed sites.
func (c SyncSites) compare(p places) (n syncCounts, changed map[siteID]site) {
	n.before = p.activeSites(c.Code)
	changed = map[siteID]site{}
	named := map[siteID]bool{}
	for _, row := range c.Rows {
		id := siteID{c.Code, row.ExternalID}
		named[id] = true
		old, ok := p.sites[id]
		after := site{name: row.Name, isActive: true, version: old.version + 1}
		switch {
		case !ok:
			n.created++
		case !old.isActive:
			n.reactivated++
			if !old.isSameContent(after) {
				n.updatedToo++
			}
		case !old.isSameContent(after):
			n.updated++
		default:
			n.unchanged++
			continue
		}
		changed[id] = after
	}
	for id, old := range p.sites {
		if id.code == c.Code && old.isActive && !named[id] && !c.IsUpsert {
			n.deactivated++
			changed[id] = old.switched(false)
		}
	}
	n.after = n.before + n.created + n.reactivated - n.deactivated
	return n, changed
}
