package locations

import (
	"cmp"
	"context"
	"encoding/hex"
	"runtime"
	"slices"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"lieudit/commands"
	"lieudit/eventstore"
	"lieudit/schemas/event"
	"lieudit/schemas/locations"
	"lieudit/schemas/plan"
	"lieudit/schemas/refusal"
)

// Row is the content that a customer gives for one site.
type Row struct {
	ExternalID string
	Content    locations.Content
}

// Batch is a set of rows, all written or none, each external id once. A sync is the complete list of the referential's sites:
// active sites that it omits become inactive, which must be confirmed if they are more than half. With an IdempotencyKey the
// same request is answered within 24 hours with the counts and rows of the first time. A key belongs to its referential.
type Batch struct {
	Rows           []Row
	IsSync         bool
	Confirmed      bool
	DryRun         bool // nothing is written, and IdempotencyKey is ignored
	IdempotencyKey string
	RequestDigest  []byte // of the request, to recognize the same one
}

// GeocodedSite is a site whose position was found by its address. Score is the geocoder's, from 0 to 1.
type GeocodedSite struct {
	ExternalID string
	Score      float64
	Precision  locations.Precision
}

// Outcome is what a batch did, or what a dry run would do. Changes are all rows that were written, including deactivations by a sync,
// and GeocodedSites and UnlocatedSites are among them, in the order of their external ids. CommuneSites are among all rows of the batch.
// Refused is set for a dry run alone. It is why the batch would be refused if it were not a dry run: refusal.ReferentialArchived,
// refusal.SitesOverCapacity or refusal.SuspiciousReduction.
type Outcome struct {
	event.SiteWriteSummary
	Changes        []SiteChange // an outcome that is read back, for an IdempotencyKey, names no fields
	GeocodedSites  []GeocodedSite
	UnlocatedSites []string
	CommuneSites   []string // external ids of the sites that were placed at the centre of a commune, now or earlier
	Refused        error
}

// addPosition adds a row that was written to GeocodedSites, to UnlocatedSites, or to neither. p is the row's position, or nil if
// it was erased. Only a geocoded row needs it.
func (o *Outcome) addPosition(r event.SiteRow, p *locations.Position) {
	switch {
	case r.Unlocated:
		o.UnlocatedSites = append(o.UnlocatedSites, r.ExternalID)
	case r.Geocoded && p != nil:
		o.GeocodedSites = append(o.GeocodedSites, GeocodedSite{r.ExternalID, p.Score, p.Precision})
	case r.Geocoded:
		o.GeocodedSites = append(o.GeocodedSites, GeocodedSite{ExternalID: r.ExternalID})
	}
}

// WriteBatch creates, updates and reactivates the sites of a batch. Nothing is written for sites that stay the same. It is
// refused, in this order, with ErrDuplicateExternalID, ErrUnknownReferential, refusal.IdempotencyMismatch, *ContentError,
// refusal.ReferentialArchived, refusal.SitesOverCapacity or refusal.SuspiciousReduction.
func (l *Locations) WriteBatch(ctx context.Context, account string, meta commands.Metadata, code string, b Batch) (Outcome, eventstore.Position, error) {
	action := "upsert"
	if b.IsSync {
		action = "sync"
	}
	j, err := newWriteJob(account, code, action, b)
	if err != nil {
		return Outcome{}, 0, err
	}
	o, position, err := l.runJob(ctx, meta, j)
	if err != nil {
		return o, position, err
	}
	if err := l.nameChangedFields(ctx, j, o.Changes); err != nil {
		return o, position, err
	}
	o.CommuneSites, err = l.findCommuneSites(ctx, j, o)
	return o, position, err
}

// runJob prepares a job, decides it on the stream's state, and returns its outcome. A request that was answered before gets the
// outcome that its event recorded; nothing is written for it.
func (l *Locations) runJob(ctx context.Context, meta commands.Metadata, j *writeJob) (Outcome, eventstore.Position, error) {
	var err error
	if j.limit, err = l.plans.PlanOf(ctx, j.account); err != nil {
		return Outcome{}, 0, err
	}
	if err = l.prepareJob(ctx, j); err != nil {
		return Outcome{}, 0, err
	}
	stager := l.newStager(j.account, meta)
	var result jobResult
	position, err := l.handler.Handle(ctx, j.account, meta, func(s *State) commands.Result {
		var refusal error
		result, refusal = j.decide(s, l.now())
		switch {
		case refusal != nil:
			return commands.Refuse(refusal)
		case result.isUnprepared:
			return commands.PrepareFirst(func(ctx context.Context) error { return l.prepareChosen(ctx, j) })
		case result.answered != nil:
			j.recallStates(s, result.answered.revision)
			return commands.Result{}
		case j.DryRun:
			return commands.Result{}
		}
		return stager.appendChanges(result.siteChanges)
	})
	if err == nil && result.answered != nil {
		result.outcome, err = l.readOutcome(ctx, j.account, result.answered.revision)
	}
	return result.outcome, position, err
}

// prepareJob geocodes and encodes what the job would write on the current state, so that the decision need not do so while it
// holds the stream's lock. A job that the current state refuses is refused here already, in the order of WriteBatch. A single row with a position is prepared as it was given, and the decision asks for more only if its position is the one
// that the site shows.
func (l *Locations) prepareJob(ctx context.Context, j *writeJob) error {
	if len(j.rows) == 1 && j.rows[0].Content.OwnPosition() != nil && j.rows[0].Content.FindFaults() == nil {
		return j.rows[0].prepareAsGiven(ctx, l.geocoder)
	}
	var v jobResult
	var refusal, err error
	if viewErr := l.handler.View(ctx, j.account, func(s *State) { v, refusal, err = j.classifyRows(s, l.now()) }); viewErr != nil {
		return viewErr
	}
	if err != nil || v.answered != nil {
		return err
	}
	if err := l.checkContents(ctx, j); err != nil {
		return err
	}
	if refusal != nil && !j.DryRun {
		return refusal
	}
	return j.prepareContents(ctx, l.geocoder)
}

// prepareChosen prepares contents that a decision chose because another command changed their sites after prepareJob.
func (l *Locations) prepareChosen(ctx context.Context, j *writeJob) error {
	if err := l.checkContents(ctx, j); err != nil {
		return err
	}
	return j.prepareContents(ctx, l.geocoder)
}

// writeJob is a batch on its way to a decision: a WriteBatch, a PutSite or a PatchSite.
type writeJob struct {
	Batch
	account, code, action string
	limit                 plan.Plan       // read before the stream is locked
	keyHash               string          // of IdempotencyKey; "" without one and for a dry run
	rows                  []*wantedSite   // sorted by external id
	externalIDs           map[string]bool // of the rows
	expectedVersion       int64           // the version that the only site must have; 0: any
	keepsInactive         bool            // an inactive site stays inactive
}

// newWriteJob hashes the contents in parallel. It fails with ErrDuplicateExternalID.
func newWriteJob(account, code, action string, b Batch) (*writeJob, error) {
	j := &writeJob{Batch: b, account: account, code: code, action: action, externalIDs: make(map[string]bool, len(b.Rows))}
	if !b.DryRun {
		j.keyHash = hashIdempotencyKey(b.IdempotencyKey)
	}
	for _, r := range b.Rows {
		if j.externalIDs[r.ExternalID] {
			return nil, ErrDuplicateExternalID
		}
		j.externalIDs[r.ExternalID] = true
	}
	j.rows = make([]*wantedSite, len(b.Rows))
	runInParallel(len(j.rows), func(i int) error {
		j.rows[i] = newWantedSite(b.Rows[i])
		return nil
	})
	slices.SortFunc(j.rows, func(a, b *wantedSite) int { return cmp.Compare(a.ExternalID, b.ExternalID) })
	return j, nil
}

// jobResult is what a job does to a state.
type jobResult struct {
	siteChanges
	outcome      Outcome
	answered     *answeredRequest // the same request was answered before; no counts and rows are set then
	isUnprepared bool             // the rows are classified, and contents that they chose are not prepared: nothing is decided
}

// classifyRows decides what each row does to its site and counts that, before any content is prepared. The result has the
// deactivations of a sync; the job's own rows are not in it yet. refused is a refusal that a dry run reports next to its counts:
// v is complete with it. err refuses a dry run too: there is no result to show.
func (j *writeJob) classifyRows(s *State, now time.Time) (v jobResult, refused, err error) {
	ref, err := s.findReferential(j.code)
	if err != nil {
		return v, nil, err
	}
	v.SiteWriteSummary = s.newWriteSummary(ref, j.action, j.limit)
	if v.IdempotencyKeyHash = j.keyHash; v.IdempotencyKeyHash != "" {
		v.RequestHash = hex.EncodeToString(j.RequestDigest)
	}
	if answered, isAnswered, err := s.idempotency.findAnswered(v.SiteWriteSummary, now); isAnswered || err != nil {
		v.answered = &answered
		return v, nil, err
	}
	for _, w := range j.rows {
		state, known := ref.sites[w.ExternalID]
		if j.expectedVersion != 0 && state.version != j.expectedVersion {
			return v, nil, errVersionChanged
		}
		w.classify(state, known, j.keepsInactive)
		v.countSites(w.operation, 1)
	}
	if j.IsSync {
		for id, state := range ref.sites {
			if state.active && !j.externalIDs[id] {
				v.deactivateSite(j.account, id, state)
			}
		}
	}
	_, archived := s.findWritableReferential(j.code) // the referential exists: only refusal.ReferentialArchived is left
	return v, cmp.Or(archived, checkSiteCap(v.SiteWriteSummary), j.checkReduction(v.SiteWriteSummary)), nil
}

// countSites counts n sites under an operation of event.SiteRow; "" is unchanged. A negative n takes them back. Deactivations
// are counted by deactivateSite.
func (c *siteChanges) countSites(op string, n int) {
	switch op {
	case event.SiteCreated:
		c.Created += n
		c.ActiveAfter += n
	case event.SiteReactivated:
		c.Reactivated += n
		c.ActiveAfter += n
	case event.SiteUpdated:
		c.Updated += n
	default:
		c.Unchanged += n
	}
}

// checkReduction returns refusal.SuspiciousReduction for an unconfirmed sync that deactivates more than half of the active sites.
func (j *writeJob) checkReduction(w event.SiteWriteSummary) error {
	if j.IsSync && !j.Confirmed && w.Deactivated*2 > w.ActiveBefore {
		return refusal.SuspiciousReduction.With(refusal.Details{Before: w.ActiveBefore, After: w.ActiveAfter})
	}
	return nil
}

// decide returns what the job does to a state, or which rule forbids it. If it chooses contents that no earlier classification chose, the
// result is only that they must be prepared. It may be called again on a later state: only the prepared contents are
// kept from one call to the next.
func (j *writeJob) decide(s *State, now time.Time) (v jobResult, refusal error) {
	v, dryRunRefusal, refusal := j.classifyRows(s, now)
	if refusal == nil && !j.DryRun {
		refusal = dryRunRefusal
	}
	if refusal != nil || v.answered != nil {
		return v, refusal
	}
	if v.isUnprepared = slices.ContainsFunc(j.rows, (*wantedSite).isUnprepared); v.isUnprepared {
		return v, nil
	}
	for _, w := range j.rows {
		v.addWanted(j.account, w)
	}
	v.sortRows()
	v.outcome.SiteWriteSummary, v.outcome.Refused, v.outcome.Changes = v.SiteWriteSummary, dryRunRefusal, listChanges(v.rows)
	return v, nil
}

// addWanted adds a row with its prepared content to the changes. Geocoding may have changed the row's operation since it was
// counted: a retry that found a position is an update, so the counts are corrected.
func (v *jobResult) addWanted(account string, w *wantedSite) {
	classifiedOp := w.operation
	r, isWritten := w.eventRow()
	if w.operation != classifiedOp {
		v.countSites(classifiedOp, -1)
		v.countSites(w.operation, 1)
	}
	if !isWritten {
		return
	}
	v.addRow(account, w.current, r)
	if r.Geocoded {
		v.Geocoded++
	}
	var p *locations.Position
	if w.chosen != nil {
		p = w.chosen.position
	}
	v.outcome.addPosition(r, p)
}

// prepareContents prepares the contents that the last classification chose.
func (j *writeJob) prepareContents(ctx context.Context, geocoder Geocoder) error {
	return runInParallel(len(j.rows), func(i int) error { return j.rows[i].prepare(ctx, geocoder) })
}

// runInParallel calls work for 0 to n-1 on all processors, 16 numbers to a goroutine at a time, and returns the first error.
// After an error no work is begun.
func runInParallel(n int, work func(i int) error) error {
	const chunk = 16
	group, failed := errgroup.WithContext(context.Background())
	group.SetLimit(runtime.GOMAXPROCS(0))
	for start := 0; start < n; start += chunk {
		group.Go(func() error {
			for i := start; i < min(start+chunk, n) && failed.Err() == nil; i++ {
				if err := work(i); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

// siteChanges is what a command does to the sites of one referential: the summary and the rows of its events. It is the value
// between a decision and the stager.
type siteChanges struct {
	event.SiteWriteSummary
	rows []event.SiteRow // contents in clear
}

// newWriteSummary returns the summary of a change that does nothing yet.
func (s *State) newWriteSummary(ref *referentialState, action string, limit plan.Plan) event.SiteWriteSummary {
	return event.SiteWriteSummary{
		Referential: ref.code, Action: action, ActiveBefore: ref.active, ActiveAfter: ref.active,
		AccountActive: s.activeSites, Capacity: limit.SiteCapacity, Ceiling: limit.SiteCeiling(),
	}
}

// addRow adds the row of a site, and fills in the site's id and its next version. state is the site before the change, zero for
// a new one.
func (c *siteChanges) addRow(account string, state siteState, r event.SiteRow) {
	r.SiteID, r.Version = siteID(account, c.Referential, r.ExternalID), state.version+1
	c.rows = append(c.rows, r)
}

// deactivateSite adds the deactivation of an active site and counts it.
func (c *siteChanges) deactivateSite(account, externalID string, state siteState) {
	c.addRow(account, state, event.SiteRow{ExternalID: externalID, Operation: event.SiteDeactivated})
	c.Deactivated++
	c.ActiveAfter--
}

// sortRows gives the events an order that does not depend on the order of a map.
func (c *siteChanges) sortRows() {
	slices.SortFunc(c.rows, func(a, b event.SiteRow) int { return cmp.Compare(a.ExternalID, b.ExternalID) })
}

// checkSiteCap returns refusal.SitesOverCapacity if the account would have more active sites than its ceiling. A change that
// does not raise their number is never refused, even if a smaller plan has put the account above its ceiling.
func checkSiteCap(w event.SiteWriteSummary) error {
	if grows := w.ActiveAfter > w.ActiveBefore; grows && w.AccountActive+w.ActiveAfter-w.ActiveBefore > w.Ceiling {
		return refusal.SitesOverCapacity.With(refusal.Details{Active: w.AccountActive, Capacity: w.Capacity, Ceiling: w.Ceiling})
	}
	return nil
}

// siteIDNamespace is the UUID namespace of site ids. It must never change.
var siteIDNamespace = uuid.MustParse("6f1d1c1e-52d5-5c0a-9a53-0d2f6c6b8a11")

// siteID returns the id of a site. It follows from its names and is the same for ever: a site is never deleted.
func siteID(account, code, externalID string) string {
	return uuid.NewSHA1(siteIDNamespace, []byte(account+"/"+code+"/"+externalID)).String()
}
