package locations

import (
	"context"

	"lieudit/commands"
	"lieudit/eventstore"
	"lieudit/schemas/event"
	"lieudit/schemas/locations"
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
// external ids. Refused is why a dry run would be refused: refusal.ReferentialArchived, refusal.SitesOverCapacity or refusal.SuspiciousReduction.
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
// refused, in this order, with refusal.ReferentialArchived, refusal.SitesOverCapacity, refusal.SuspiciousReduction.
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
		var refused, err error
		v, refused, err = j.decide(ctx, s, l.geocoder, l.now())
		switch {
		case err != nil:
			return commands.Fail(err)
		case refused != nil:
			return commands.Refuse(refused)
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
	var refused, err error
	if viewErr := l.handler.View(ctx, j.account, func(s *State) { v, refused, err = j.classifyRows(s, l.now()) }); viewErr != nil {
		return viewErr
	}
	if err == nil && !j.DryRun {
		err = refused
	}
	if err != nil || v.answered != nil {
		return err
	}
	return j.prepareContents(ctx, l.geocoder)
}
