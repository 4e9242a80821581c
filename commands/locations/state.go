// Package locations decides what may happen to an account's places: its referentials and their sites. One account is one
// stream; unique codes, the cap of referentials, the capacity of sites and suspicious reductions are decided on that
// stream alone. States hold no contents: a digest says whether one is the same, and the log where it stands.
package locations

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"lieudit/commands"
	"lieudit/eventstore"
	"lieudit/schemas/event"
	"lieudit/schemas/locations"
)

// State is an account's places as its stream tells them.
type State struct {
	referentials     map[string]*referentialState // by code
	openReferentials int                          // referentials that are not archived
	activeSites      int                          // sites
	totalSites       int                          // sites, active or not
	idempotency      idempotencyCache
	pendingRows      [][]event.SiteRow // staged rows whose commit comes next
}

// referentialState is a referential with its sites.
type referentialState struct {
	code, name        string
	created, archived time.Time
	active            int
	sites             map[string]siteState // by external id
}

// siteState is what decisions need of a site.
type siteState struct {
	digest            locations.Digest
	contentAt         contentRef
	version           int64
	created, modified int64 // Unix microseconds by the log
	deactivated       int64 // likewise, of an inactive site
	active            bool
	isGeocoded        bool // its position is its address's
	isUnlocated       bool // it has no position
}

// contentRef is where on the log a content stands: the event of the account's stream; where that is a commit, which of the
// staged events; and which of its rows.
type contentRef struct {
	revision         eventstore.Revision
	stagedEvent, row int32
}

// maxCachedWeight is how many sites the states in memory hold together, of all accounts: some 170 bytes each.
const maxCachedWeight = 500_000

// Aggregate is how streams of places are folded.
var Aggregate = commands.Aggregate[State]{
	Category: "locations", Evolve: Evolve, Weight: weighState, MaxWeight: maxCachedWeight,
	SnapshotFormat: snapshotFormat, MarshalSnapshot: marshalSnapshot, UnmarshalSnapshot: unmarshalSnapshot,
}

func weighState(s *State) int {
	return 8 + len(s.referentials) + s.totalSites + len(s.idempotency.requests)
}

// Evolve changes the state by one fact.
func Evolve(s *State, rec commands.Record) {
	switch e := rec.Event.(type) {
	case event.ReferentialOpened:
		s.addReferential(&referentialState{code: e.Code, name: e.Name, created: rec.At, sites: map[string]siteState{}})
	case event.ReferentialRenamed:
		s.findOrAddReferential(e.Code, rec.At).name = e.Name
	case event.ReferentialArchived:
		s.findOrAddReferential(e.Code, rec.At).archived = rec.At
		s.openReferentials--
	case event.SyncStaged:
		s.pendingRows = append(s.pendingRows, e.Rows)
	case event.SyncCommitted:
		s.applySiteRows(rec, e.SiteWriteSummary, s.pendingRows)
		s.pendingRows = nil
	case event.SitesChanged:
		s.applySiteRows(rec, e.SiteWriteSummary, [][]event.SiteRow{e.Rows})
	case event.UnchangedWriteRecorded:
		s.idempotency.remember(rec, e.SiteWriteSummary)
	}
}

func (s *State) applySiteRows(rec commands.Record, w event.SiteWriteSummary, staged [][]event.SiteRow) {
	ref := s.findOrAddReferential(w.Referential, rec.At)
	sites, active := len(ref.sites), ref.active
	for i, rows := range staged {
		for n, r := range rows {
			ref.applyRow(r, rec.At.UnixMicro(), contentRef{rec.Revision, int32(i), int32(n)})
		}
	}
	s.totalSites += len(ref.sites) - sites
	s.activeSites += ref.active - active
	s.idempotency.remember(rec, w)
}

func (ref *referentialState) applyRow(r event.SiteRow, at int64, contentAt contentRef) {
	state := ref.sites[r.ExternalID]
	if state.active {
		ref.active--
	}
	switch r.Operation {
	case event.SiteCreated, event.SiteReactivated:
		state.active, state.deactivated = true, 0
	case event.SiteDeactivated:
		state.active, state.deactivated = false, at
	}
	if state.active {
		ref.active++
	}
	if state.version == 0 {
		state.created = at
	}
	state.version, state.modified = r.Version, at
	if len(r.Digest) > 0 { // else its content stays as it was
		state.digest, state.contentAt, state.isGeocoded, state.isUnlocated = locations.Digest(r.Digest), contentAt, r.Geocoded, r.Unlocated
	}
	ref.sites[r.ExternalID] = state
}

// findOrAddReferential is a referential of an account. Where a correction names the event that opened it, the next that speaks of it
// does.
func (s *State) findOrAddReferential(code string, at time.Time) *referentialState {
	if _, ok := s.referentials[code]; !ok {
		s.addReferential(&referentialState{code: code, created: at, sites: map[string]siteState{}})
	}
	return s.referentials[code]
}

func (s *State) addReferential(ref *referentialState) {
	if s.referentials == nil {
		s.referentials = map[string]*referentialState{}
	}
	if s.referentials[ref.code] = ref; ref.archived.IsZero() {
		s.openReferentials++
	}
	s.activeSites += ref.active
	s.totalSites += len(ref.sites)
}

// findReferential is a referential that exists.
func (s *State) findReferential(code string) (*referentialState, error) {
	if ref, ok := s.referentials[code]; ok {
		return ref, nil
	}
	return nil, ErrUnknownReferential
}

// findWritableReferential is a referential that takes writes.
func (s *State) findWritableReferential(code string) (*referentialState, error) {
	ref, err := s.findReferential(code)
	if err == nil && !ref.archived.IsZero() {
		err = ErrArchived
	}
	return ref, err
}

// findWritableSite is a site of a referential that takes writes.
func (s *State) findWritableSite(code, externalID string) (*referentialState, siteState, error) {
	ref, err := s.findWritableReferential(code)
	if err != nil {
		return ref, siteState{}, err
	}
	state, err := ref.findSite(externalID)
	return ref, state, err
}

func (ref *referentialState) findSite(externalID string) (siteState, error) {
	state, ok := ref.sites[externalID]
	if !ok {
		return state, ErrUnknownSite
	}
	return state, nil
}

// idempotencyWindow is how long the answer to a request with an Idempotency-Key is given again.
const idempotencyWindow = 24 * time.Hour

// idempotencyCache are the requests with an Idempotency-Key of the last day of the stream.
type idempotencyCache struct {
	requests    map[string]answeredRequest // by referential and key
	oldestFirst []requestAge               // the oldest first
}

// answeredRequest is what was asked under a key, and the event that says what came of it.
type answeredRequest struct {
	action, request string
	at              time.Time
	revision        eventstore.Revision
}

type requestAge struct {
	key        string
	answeredAt time.Time
}

// remember notes the answer to a request with a key, and forgets those that a day has passed since.
func (c *idempotencyCache) remember(rec commands.Record, w event.SiteWriteSummary) {
	for len(c.oldestFirst) > 0 && rec.At.Sub(c.oldestFirst[0].answeredAt) >= idempotencyWindow {
		if oldest := c.oldestFirst[0]; c.requests[oldest.key].at.Equal(oldest.answeredAt) {
			delete(c.requests, oldest.key)
		}
		c.oldestFirst = c.oldestFirst[1:]
	}
	if w.IdempotencyKeyHash == "" {
		return
	}
	c.insert(requestAge{requestKey(w.Referential, w.IdempotencyKeyHash), rec.At}, answeredRequest{w.Action, w.RequestHash, rec.At, rec.Revision})
}

func (c *idempotencyCache) insert(age requestAge, request answeredRequest) {
	if c.requests == nil {
		c.requests = map[string]answeredRequest{}
	}
	c.requests[age.key] = request
	c.oldestFirst = append(c.oldestFirst, age)
}

// findAnswered is the answer that a request was given before, if it was.
func (c *idempotencyCache) findAnswered(w event.SiteWriteSummary, now time.Time) (answeredRequest, bool, error) {
	answered, ok := c.requests[requestKey(w.Referential, w.IdempotencyKeyHash)]
	if w.IdempotencyKeyHash == "" || !ok || now.Sub(answered.at) >= idempotencyWindow {
		return answeredRequest{}, false, nil
	}
	if answered.action != w.Action || answered.request != w.RequestHash {
		return answeredRequest{}, false, ErrKeyReused
	}
	return answered, true, nil
}

func requestKey(referential, key string) string { return referential + "/" + key }

// hashIdempotencyKey is a key as the log keeps it: "" for none.
func hashIdempotencyKey(key string) string {
	if key == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}
