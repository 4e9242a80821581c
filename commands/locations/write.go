package locations

import (
	"context"

	"lieudit/commands"
	"lieudit/eventstore"
	"lieudit/schemas/event"
	"lieudit/schemas/site"
)

// Row is what a customer says of one site.
type Row struct {
	ExternalID string
	Content    site.Content
}

// Batch is rows to be written all or none, each external id once. A whole batch is all there is: active sites it omits
// become inactive, which must be confirmed when they are more than half. With a Key the same Request within 24 hours is
// answered as it was the first time; the key counts within its referential.
type Batch struct {
	Rows      []Row
	Whole     bool
	Confirmed bool
	DryRun    bool // nothing is written and Key is not looked at
	Key       string
	Request   []byte // digest of what was asked for
}

// Placement is a site that its address gave a position.
type Placement struct {
	ExternalID string
	Score      float64
}

// Outcome is what a batch did, or would do. Placements and NotPlaced are among the rows it wrote, in the order of their
// external ids. Refused is why a dry run would be refused: ErrArchived, *SiteCapError or *ReductionError.
type Outcome struct {
	event.SitesWritten
	Placements []Placement
	NotPlaced  []string
	Refused    error
}

// tell notes where a site that was written is, or that it is nowhere.
func (o *Outcome) tell(r event.SiteRow, p *site.Position) {
	switch {
	case r.Lost:
		o.NotPlaced = append(o.NotPlaced, r.ExternalID)
	case r.Placed && p != nil:
		o.Placements = append(o.Placements, Placement{r.ExternalID, p.Score})
	case r.Placed:
		o.Placements = append(o.Placements, Placement{ExternalID: r.ExternalID})
	}
}

// Write creates, updates and reactivates the sites of a batch, and writes nothing of those that are the same. It is
// refused, in this order, with ErrArchived, *SiteCapError, *ReductionError.
func (l *Locations) Write(ctx context.Context, account string, in commands.Intent, code string, b Batch) (Outcome, eventstore.Position, error) {
	action := "upsert"
	if b.Whole {
		action = "sync"
	}
	j, err := newJob(account, code, action, b)
	if err != nil {
		return Outcome{}, 0, err
	}
	return l.run(ctx, in, j)
}

// run takes a job to its end.
func (l *Locations) run(ctx context.Context, in commands.Intent, j *job) (Outcome, eventstore.Position, error) {
	var err error
	if j.limit, err = l.plans.PlanOf(ctx, j.account); err != nil {
		return Outcome{}, 0, err
	}
	if err = l.ready(ctx, j); err != nil {
		return Outcome{}, 0, err
	}
	stage := l.stager(j.account, in)
	var v verdict
	at, err := l.desk.Do(ctx, j.account, in, func(s *State) commands.Result {
		var refusal, err error
		v, refusal, err = j.decide(ctx, s, l.placer, l.now())
		switch {
		case err != nil:
			return commands.Fail(err)
		case refusal != nil:
			return commands.Refuse(refusal)
		case v.before != nil || j.DryRun:
			return commands.Result{}
		}
		return stage.result(ctx, v.change)
	})
	if err == nil && v.before != nil {
		v.outcome, err = l.recall(ctx, j.account, v.before.revision)
	}
	return v.outcome, at, err
}

// ready has what the job would write on the state of this moment at hand, so that the decision is not kept waiting
// for it. What is refused now is refused.
func (l *Locations) ready(ctx context.Context, j *job) error {
	if len(j.rows) == 1 && j.rows[0].Content.Own() != nil {
		return nil // the decision is as quick
	}
	var v verdict
	var refusal, err error
	if viewed := l.desk.View(ctx, j.account, func(s *State) { v, refusal, err = j.survey(s, l.now()) }); viewed != nil {
		return viewed
	}
	if err == nil && !j.DryRun {
		err = refusal
	}
	if err != nil || v.before != nil {
		return err
	}
	return j.prepare(ctx, l.placer)
}
