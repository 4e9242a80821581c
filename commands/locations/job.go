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
	"lieudit/schemas/plan"
	"lieudit/schemas/site"
)

// job is a batch on its way to a decision.
type job struct {
	Batch
	account, code, action string
	limit                 plan.Plan
	key                   string // as the log keeps it
	rows                  []*wanted
	named                 map[string]bool // external ids, of a whole batch
	seen                  int64           // where not 0: the version the only site must have
	quiet                 bool            // an inactive site stays inactive
}

func newJob(account, code, action string, b Batch) (*job, error) {
	j := &job{Batch: b, account: account, code: code, action: action, named: make(map[string]bool, len(b.Rows))}
	if !b.DryRun {
		j.key = fingerprint(b.Key)
	}
	for _, r := range b.Rows {
		if j.named[r.ExternalID] {
			return nil, ErrTwice
		}
		j.named[r.ExternalID] = true
	}
	j.rows = make([]*wanted, len(b.Rows))
	everywhere(len(j.rows), func(i int) error {
		j.rows[i] = newWanted(b.Rows[i])
		return nil
	})
	slices.SortFunc(j.rows, func(a, b *wanted) int { return cmp.Compare(a.ExternalID, b.ExternalID) })
	return j, nil
}

// verdict is what a job comes to on a state.
type verdict struct {
	change
	outcome Outcome
	before  *answer // the request was answered before
}

// survey judges every row and counts what becomes of the sites, before any is placed. Sites that are omitted are in
// the change already. refused is a refusal that a dry run tells at the end, with its figures; refusal is one that has
// none.
func (j *job) survey(s *State, now time.Time) (v verdict, refused, refusal error) {
	g, err := s.find(j.code)
	if err != nil {
		return v, nil, err
	}
	v.SitesWritten = s.figures(g, j.action, j.limit)
	if v.Key = j.key; v.Key != "" {
		v.Request = hex.EncodeToString(j.Request)
	}
	if k, again, err := s.answers.first(v.SitesWritten, now); again || err != nil {
		v.before = &k
		return v, nil, err
	}
	for _, w := range j.rows {
		x, known := g.sites[w.ExternalID]
		if j.seen != 0 && x.version != j.seen {
			return v, nil, errMoved
		}
		w.judge(x, known, j.quiet)
		v.count(w.op, 1)
	}
	if j.Whole {
		for id, x := range g.sites {
			if x.active && !j.named[id] {
				v.deactivate(j.account, id, x)
			}
		}
	}
	_, archived := s.writable(j.code)
	return v, cmp.Or(archived, crowded(v.SitesWritten), j.reduced(v.SitesWritten)), nil
}

// count notes what becomes of a site that the batch names.
func (c *change) count(op string, n int) {
	switch op {
	case event.SiteCreated:
		c.Created += n
		c.After += n
	case event.SiteReactivated:
		c.Reactivated += n
		c.After += n
	case event.SiteUpdated:
		c.Updated += n
	default:
		c.Unchanged += n
	}
}

func (j *job) reduced(w event.SitesWritten) error {
	if j.Whole && !j.Confirmed && w.Deactivated*2 > w.Before {
		return &ReductionError{Before: w.Before, After: w.After}
	}
	return nil
}

// decide is what the job does to a state, or which rule forbids it. A row that was not placed before is placed now; err
// is why one could not be.
func (j *job) decide(ctx context.Context, s *State, placer Placer, now time.Time) (v verdict, refusal, err error) {
	v, refused, refusal := j.survey(s, now)
	if refusal == nil && !j.DryRun {
		refusal = refused
	}
	if refusal != nil || v.before != nil {
		return v, refusal, nil
	}
	for _, w := range j.rows {
		if err := w.make(ctx, placer); err != nil {
			return v, nil, err
		}
		v.take(j.account, w)
	}
	v.sort()
	v.outcome.SitesWritten, v.outcome.Refused = v.SitesWritten, refused
	return v, nil, nil
}

// take adds a judged row to the change.
func (v *verdict) take(account string, w *wanted) {
	judged := w.op
	r, written := w.row()
	if w.op != judged {
		v.count(judged, -1)
		v.count(w.op, 1)
	}
	if !written {
		return
	}
	v.add(account, w.stands, r)
	if r.Placed {
		v.Placed++
	}
	var p *site.Position
	if w.form != nil {
		p = w.form.position
	}
	v.outcome.tell(r, p)
}

// prepare makes the contents that the job would write on the state it was surveyed on.
func (j *job) prepare(ctx context.Context, placer Placer) error {
	return everywhere(len(j.rows), func(i int) error { return j.rows[i].make(ctx, placer) })
}

// everywhere does n pieces of work on all processors, until one fails.
func everywhere(n int, work func(i int) error) error {
	const share = 16
	var next atomic.Int64
	var failed atomic.Pointer[error]
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), (n+share-1)/share) {
		wg.Go(func() {
			for from := int(next.Add(share)) - share; from < n; from = int(next.Add(share)) - share {
				for i := from; i < min(from+share, n) && failed.Load() == nil; i++ {
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
