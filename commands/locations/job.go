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

	"lieudit/schemas/event"
	"lieudit/schemas/locations"
	"lieudit/schemas/plan"
	"lieudit/schemas/refusal"
)

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
// the change already. dryRunRefusal is a refusal that a dry run shows in its answer, with its figures; refused
// is one that has none.
func (j *writeJob) classifyRows(s *State, now time.Time) (v jobResult, dryRunRefusal, refused error) {
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
		return refusal.SuspiciousReduction.With(refusal.Details{Before: w.ActiveBefore, After: w.ActiveAfter})
	}
	return nil
}

// decide is what the job does to a state, or which rule forbids it. A row that was not placed before is placed now; err
// is why one could not be.
func (j *writeJob) decide(ctx context.Context, s *State, geocoder Geocoder, now time.Time) (v jobResult, refused, err error) {
	v, dryRunRefusal, refused := j.classifyRows(s, now)
	if refused == nil && !j.DryRun {
		refused = dryRunRefusal
	}
	if refused != nil || v.answered != nil {
		return v, refused, nil
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
