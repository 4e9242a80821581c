package locations

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"lieudit/commands"
	"lieudit/eventstore"
	"lieudit/schemas/event"
	"lieudit/schemas/locations"
	"lieudit/schemas/refusal"
)

// State is the fold of an account's stream. The zero State has no referentials.
type State struct {
	referentials     map[string]*referentialState // by code
	openReferentials int                          // those that are not archived
	activeSites      int                          // of all referentials
	totalSites       int                          // of all referentials, active or not
	idempotency      idempotencyCache
	pendingRows      [][]event.SiteRow // of the SyncStaged events before their SyncCommitted; empty between two commands
}

// referentialState is a referential with its sites, active or not: a site is never deleted.
type referentialState struct {
	code              string
	name              event.Personal // sealed, or marked as clear
	created, archived time.Time
	active            int                  // sites
	sites             map[string]siteState // by external id
}

// siteState is what decisions need of a site, in some 170 bytes.
type siteState struct {
	digest            locations.Digest
	contentAt         contentRef
	version           int64 // 1 for a new site, and 1 more with each row
	created, modified int64 // Unix microseconds of the log's clock
	deactivated       int64 // Unix microseconds; 0 for an active site
	active            bool
	isGeocoded        bool // its position was found by its address
	isUnlocated       bool // it has no position: its address was not found
}

// contentRef is where a content is on the log: the revision of the event in the account's stream and the row in that event. If
// the event is a commit, the row is in the staged event of that number.
type contentRef struct {
	revision         eventstore.Revision
	stagedEvent, row int32
}

// maxCachedWeight is the maximum number of sites in all states in memory: at some 170 bytes each, about 85 MB.
const maxCachedWeight = 500_000

// Aggregate describes how the streams of sites are folded.
var Aggregate = commands.Aggregate[State]{
	Category: "locations", Evolve: Evolve, Weight: weighState, MaxWeight: maxCachedWeight,
	SnapshotFormat: snapshotFormat, MarshalSnapshot: marshalSnapshot, UnmarshalSnapshot: unmarshalSnapshot,
}

// weighState is in the unit of maxCachedWeight. An empty state has a weight too, so that even many empty ones are evicted.
func weighState(s *State) int {
	return 8 + len(s.referentials) + s.totalSites + len(s.idempotency.requests)
}

// Evolve changes the state by one record. Records of one commit come one after the other: its SyncStaged events and then its
// SyncCommitted.
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

// applySiteRows applies the rows of one append, one slice for each event that has rows. It adds the growth of the
// referential's sums to those of the account.
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

// applyRow takes version and digest from the row without a check: they were decided when it was written. at is in Unix
// microseconds.
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
	if len(r.Digest) > 0 { // otherwise the row leaves the content unchanged
		state.digest, state.contentAt, state.isGeocoded, state.isUnlocated = locations.Digest(r.Digest), contentAt, r.Geocoded, r.Unlocated
	}
	ref.sites[r.ExternalID] = state
}

// findOrAddReferential returns a referential. If the event that opened it was voided, the next event about it opens it.
func (s *State) findOrAddReferential(code string, at time.Time) *referentialState {
	if _, ok := s.referentials[code]; !ok {
		s.addReferential(&referentialState{code: code, created: at, sites: map[string]siteState{}})
	}
	return s.referentials[code]
}

// addReferential adds the referential's sites to the sums of the account. It has sites if it comes from a snapshot.
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

// findReferential returns a referential, archived or not, or ErrUnknownReferential.
func (s *State) findReferential(code string) (*referentialState, error) {
	if ref, ok := s.referentials[code]; ok {
		return ref, nil
	}
	return nil, ErrUnknownReferential
}

// findWritableReferential returns a referential that takes writes. With refusal.ReferentialArchived it returns the referential too.
func (s *State) findWritableReferential(code string) (*referentialState, error) {
	ref, err := s.findReferential(code)
	if err == nil && !ref.archived.IsZero() {
		err = refusal.ReferentialArchived
	}
	return ref, err
}

// findWritableSite returns a site, active or not, of a referential that takes writes.
func (s *State) findWritableSite(code, externalID string) (*referentialState, siteState, error) {
	ref, err := s.findWritableReferential(code)
	if err != nil {
		return ref, siteState{}, err
	}
	state, err := ref.findSite(externalID)
	return ref, state, err
}

// findSite returns a site, active or not, or ErrUnknownSite.
func (ref *referentialState) findSite(externalID string) (siteState, error) {
	state, ok := ref.sites[externalID]
	if !ok {
		return state, ErrUnknownSite
	}
	return state, nil
}

// idempotencyWindow is how long a request with an Idempotency-Key gets the answer of the first one again.
const idempotencyWindow = 24 * time.Hour

// idempotencyCache has the requests with an Idempotency-Key of the stream's last day, by the log's clock. It is part of the
// state, so every instance gives the same answer.
type idempotencyCache struct {
	requests    map[string]answeredRequest // by referential and key
	oldestFirst []requestAge               // may name a key twice, if it was used again after a day
}

// answeredRequest is the request that came with a key, and the revision of the event that has its outcome. request is
// event.SiteWriteSummary.RequestHash.
type answeredRequest struct {
	action, request string
	at              time.Time
	revision        eventstore.Revision
}

type requestAge struct {
	key        string
	answeredAt time.Time
}

// remember keeps the answer to a request with a key, and forgets those that are a day old. It only uses the times of the log,
// so that every instance forgets the same.
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

// insert is called with requests in the order of their answers. A key that is used again after a day has two entries in
// oldestFirst, which remember distinguishes by their times.
func (c *idempotencyCache) insert(age requestAge, request answeredRequest) {
	if c.requests == nil {
		c.requests = map[string]answeredRequest{}
	}
	c.requests[age.key] = request
	c.oldestFirst = append(c.oldestFirst, age)
}

// findAnswered returns the answer that the same request got in the last day, if any. It fails with refusal.IdempotencyMismatch
// if the key came with another request. It uses the clock of this instance: the cache may hold older requests, because
// remember only forgets when something is written.
func (c *idempotencyCache) findAnswered(w event.SiteWriteSummary, now time.Time) (answeredRequest, bool, error) {
	answered, ok := c.requests[requestKey(w.Referential, w.IdempotencyKeyHash)]
	if w.IdempotencyKeyHash == "" || !ok || now.Sub(answered.at) >= idempotencyWindow {
		return answeredRequest{}, false, nil
	}
	if answered.action != w.Action || answered.request != w.RequestHash {
		return answeredRequest{}, false, refusal.IdempotencyMismatch
	}
	return answered, true, nil
}

// requestKey is the key of idempotencyCache.requests. A key that a customer uses in two referentials is two keys.
func requestKey(referential, key string) string { return referential + "/" + key }

// hashIdempotencyKey returns a key as the log keeps it, or "". It is hashed because a customer may put anything into a key,
// even personal data.
func hashIdempotencyKey(key string) string {
	if key == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}
