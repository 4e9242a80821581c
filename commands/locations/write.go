package locations

import (
	"cmp"
	"context"
	"encoding/hex"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"lieudit/commands"
	"lieudit/eventstore"
	"lieudit/schemas/event"
	"lieudit/schemas/locations"
	"lieudit/schemas/plan"
)

// Row is what a customer says of one site.
type Row struct {
	ExternalID string
	Content    locations.Content
}

// Batch is rows to be written all or none, each external id once. A whole batch is all there is: active sites it omits
// become inactive, which must be confirmed when they are more than half. With a Key the same Request within 24 hours is
// answered as it was the first time; the key counts within its referential.
type Batch struct {
	Rows           []Row
	IsSync         bool
	Confirmed      bool
	DryRun         bool // nothing is written and Key is not looked at
	IdempotencyKey string
	RequestDigest  []byte // digest of what was asked for
}

// GeocodedSite is a site that its address gave a position.
type GeocodedSite struct {
	ExternalID string
	Score      float64
}

// Outcome is what a batch did, or would do. Placements and NotPlaced are among the rows it wrote, in the order of their
// external ids. Refused is why a dry run would be refused: ErrArchived, *SiteCapError or *ReductionError.
type Outcome struct {
	event.SiteWriteSummary
	GeocodedSites  []GeocodedSite
	UnlocatedSites []string
	Refused        error
}

// addPosition notes where a site that was written is, or that it is nowhere.
func (o *Outcome) addPosition(r event.SiteRow, p *locations.Position) {
	switch {
	case r.Unlocated:
		o.UnlocatedSites = append(o.UnlocatedSites, r.ExternalID)
	case r.Geocoded && p != nil:
		o.GeocodedSites = append(o.GeocodedSites, GeocodedSite{r.ExternalID, p.Score})
	case r.Geocoded:
		o.GeocodedSites = append(o.GeocodedSites, GeocodedSite{ExternalID: r.ExternalID})
	}
}

// WriteBatch creates, updates and reactivates the sites of a batch, and writes nothing of those that are the same. It is
// refused, in this order, with ErrArchived, *SiteCapError, *ReductionError.
func (l *Locations) WriteBatch(ctx context.Context, account string, meta commands.Metadata, code string, b Batch) (Outcome, eventstore.Position, error) {
	action := "upsert"
	if b.IsSync {
		action = "sync"
	}
	j, err := newWriteJob(account, code, action, b)
	if err != nil {
		return Outcome{}, 0, err
	}
	return l.runJob(ctx, meta, j)
}

// runJob takes a job to its end.
func (l *Locations) runJob(ctx context.Context, meta commands.Metadata, j *writeJob) (Outcome, eventstore.Position, error) {
	var err error
	if j.limit, err = l.plans.PlanOf(ctx, j.account); err != nil {
		return Outcome{}, 0, err
	}
	if err = l.prepareJob(ctx, j); err != nil {
		return Outcome{}, 0, err
	}
	stager := l.newStager(j.account, meta)
	var v jobResult
	position, err := l.handler.Handle(ctx, j.account, meta, func(s *State) commands.Result {
		var refusal, err error
		v, refusal, err = j.decide(ctx, s, l.geocoder, l.now())
		switch {
		case err != nil:
			return commands.Fail(err)
		case refusal != nil:
			return commands.Refuse(refusal)
		case v.answered != nil || j.DryRun:
			return commands.Result{}
		}
		return stager.buildResult(ctx, v.siteChanges)
	})
	if err == nil && v.answered != nil {
		v.outcome, err = l.readOutcome(ctx, j.account, v.answered.revision)
	}
	return v.outcome, position, err
}

// prepareJob has what the job would write on the state of this moment at hand, so that the decision is not kept waiting
// for it. What is refused now is refused.
func (l *Locations) prepareJob(ctx context.Context, j *writeJob) error {
	if len(j.rows) == 1 && j.rows[0].Content.OwnPosition() != nil {
		return nil // the decision is as quick
	}
	var v jobResult
	var refusal, err error
	if viewErr := l.handler.View(ctx, j.account, func(s *State) { v, refusal, err = j.classifyRows(s, l.now()) }); viewErr != nil {
		return viewErr
	}
	if err == nil && !j.DryRun {
		err = refusal
	}
	if err != nil || v.answered != nil {
		return err
	}
	return j.prepareContents(ctx, l.geocoder)
}

// writeJob is a batch on its way to a decision.
type writeJob struct {
	Batch
	account, code, action string
	limit                 plan.Plan
	keyHash               string // as the log keeps it
	rows                  []*wantedSite
	externalIDs           map[string]bool // external ids, of a whole batch
	expectedVersion       int64           // where not 0: the version the only site must have
	keepsInactive         bool            // an inactive site stays inactive
}

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

// jobResult is what a job comes to on a state.
type jobResult struct {
	siteChanges
	outcome  Outcome
	answered *answeredRequest // the request was answered before
}

// classifyRows judges every row and counts what becomes of the sites, before any is placed. Sites that are omitted are in
// the change already. refused is a refusal that a dry run tells at the end, with its figures; refusal is one that has
// none.
func (j *writeJob) classifyRows(s *State, now time.Time) (v jobResult, dryRunRefusal, refusal error) {
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
	_, archived := s.findWritableReferential(j.code)
	return v, cmp.Or(archived, checkSiteCap(v.SiteWriteSummary), j.checkReduction(v.SiteWriteSummary)), nil
}

// countSites notes what becomes of a site that the batch names.
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

func (j *writeJob) checkReduction(w event.SiteWriteSummary) error {
	if j.IsSync && !j.Confirmed && w.Deactivated*2 > w.ActiveBefore {
		return &ReductionError{Before: w.ActiveBefore, After: w.ActiveAfter}
	}
	return nil
}

// decide is what the job does to a state, or which rule forbids it. A row that was not placed before is placed now; err
// is why one could not be.
func (j *writeJob) decide(ctx context.Context, s *State, geocoder Geocoder, now time.Time) (v jobResult, refusal, err error) {
	v, dryRunRefusal, refusal := j.classifyRows(s, now)
	if refusal == nil && !j.DryRun {
		refusal = dryRunRefusal
	}
	if refusal != nil || v.answered != nil {
		return v, refusal, nil
	}
	for _, w := range j.rows {
		if err := w.prepare(ctx, geocoder); err != nil {
			return v, nil, err
		}
		v.addWanted(j.account, w)
	}
	v.sortRows()
	v.outcome.SiteWriteSummary, v.outcome.Refused = v.SiteWriteSummary, dryRunRefusal
	return v, nil, nil
}

// addWanted adds a judged row to the change.
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

// prepareContents makes the contents that the job would write on the state it was surveyed on.
func (j *writeJob) prepareContents(ctx context.Context, geocoder Geocoder) error {
	return runInParallel(len(j.rows), func(i int) error { return j.rows[i].prepare(ctx, geocoder) })
}

// runInParallel does n pieces of work on all processors, until one fails.
func runInParallel(n int, work func(i int) error) error {
	const chunk = 16
	var next atomic.Int64
	var failed atomic.Pointer[error]
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), (n+chunk-1)/chunk) {
		wg.Go(func() {
			for start := int(next.Add(chunk)) - chunk; start < n; start = int(next.Add(chunk)) - chunk {
				for i := start; i < min(start+chunk, n) && failed.Load() == nil; i++ {
					if err := work(i); err != nil {
						failed.Store(&err)
					}
				}
			}
		})
	}
	wg.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}

// siteChanges is what a command does to the sites of one referential.
type siteChanges struct {
	event.SiteWriteSummary
	rows []event.SiteRow // contents in clear
}

// newWriteSummary is a change of nothing, with how things stand.
func (s *State) newWriteSummary(ref *referentialState, action string, limit plan.Plan) event.SiteWriteSummary {
	return event.SiteWriteSummary{
		Referential: ref.code, Action: action, ActiveBefore: ref.active, ActiveAfter: ref.active,
		AccountActive: s.activeSites, Capacity: limit.SiteCapacity, Ceiling: limit.SiteCeiling(),
	}
}

// addRow notes what becomes of a site. The row's content, if any, is the caller's.
func (c *siteChanges) addRow(account string, state siteState, r event.SiteRow) {
	r.SiteID, r.Version = siteID(account, c.Referential, r.ExternalID), state.version+1
	c.rows = append(c.rows, r)
}

func (c *siteChanges) deactivateSite(account, externalID string, state siteState) {
	c.addRow(account, state, event.SiteRow{ExternalID: externalID, Operation: event.SiteDeactivated})
	c.Deactivated++
	c.ActiveAfter--
}

func (c *siteChanges) sortRows() {
	slices.SortFunc(c.rows, func(a, b event.SiteRow) int { return cmp.Compare(a.ExternalID, b.ExternalID) })
}

// checkSiteCap is why the account cannot have as many sites as it would have then. What does not raise the count is never
// refused for it.
func checkSiteCap(w event.SiteWriteSummary) error {
	if grows := w.ActiveAfter > w.ActiveBefore; grows && w.AccountActive+w.ActiveAfter-w.ActiveBefore > w.Ceiling {
		return &SiteCapError{Active: w.AccountActive, Capacity: w.Capacity, Ceiling: w.Ceiling}
	}
	return nil
}

// siteIDNamespace is what the ids of sites are made in.
var siteIDNamespace = uuid.MustParse("6f1d1c1e-52d5-5c0a-9a53-0d2f6c6b8a11")

// siteID is the id of a site: the same for ever, for a site is never deleted.
func siteID(account, code, externalID string) string {
	return uuid.NewSHA1(siteIDNamespace, []byte(account+"/"+code+"/"+externalID)).String()
}
