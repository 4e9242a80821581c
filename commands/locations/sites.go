package locations

import (
	"context"
	"errors"
	"time"

	"lieudit/commands"
	"lieudit/eventstore"
	"lieudit/schemas/event"
	"lieudit/schemas/locations"
	"lieudit/schemas/plan"
)

// errVersionChanged: the site was changed after PatchSite read it.
var errVersionChanged = errors.New("site was changed meanwhile")

// PutSite writes the whole content of one site, which is created, updated, reactivated or left unchanged. It is refused as
// WriteBatch is. created reports whether the site is new.
func (l *Locations) PutSite(ctx context.Context, account string, meta commands.Metadata, code string, r Row) (s locations.Site, created bool, position eventstore.Position, err error) {
	j, err := newWriteJob(account, code, "put", Batch{Rows: []Row{r}})
	if err != nil {
		return locations.Site{}, false, 0, err
	}
	o, position, err := l.runJob(ctx, meta, j)
	if err != nil {
		return locations.Site{}, false, position, err
	}
	s, err = l.readSite(ctx, account, code, r.ExternalID)
	return s, o.Created > 0, position, err
}

// PatchSite writes the content that edit makes of a site's current content. It calls edit again if the site was changed
// meanwhile, and returns edit's error unchanged. An inactive site stays inactive: a correction to the entry of a closed shop
// does not reopen it. It is refused with ErrUnknownReferential, ErrUnknownSite, refusal.ReferentialArchived or a
// *ContentError.
func (l *Locations) PatchSite(ctx context.Context, account string, meta commands.Metadata, code, externalID string, edit func(locations.Content) (locations.Content, error)) (locations.Site, eventstore.Position, error) {
	position, err := l.tryPatchSite(ctx, account, meta, code, externalID, edit)
	for errors.Is(err, errVersionChanged) {
		position, err = l.tryPatchSite(ctx, account, meta, code, externalID, edit)
	}
	if err != nil {
		return locations.Site{}, position, err
	}
	s, err := l.readSite(ctx, account, code, externalID)
	return s, position, err
}

// tryPatchSite patches the version of the site that it reads, and fails with errVersionChanged if the decision finds another.
// edit runs without the stream's lock, so it may be slow.
func (l *Locations) tryPatchSite(ctx context.Context, account string, meta commands.Metadata, code, externalID string, edit func(locations.Content) (locations.Content, error)) (eventstore.Position, error) {
	state, err := l.viewSite(ctx, account, func(s *State) (siteState, error) {
		_, state, err := s.findWritableSite(code, externalID)
		return state, err
	})
	if err != nil {
		return 0, err
	}
	current, err := l.readContent(ctx, account, state.contentAt)
	if err != nil {
		return 0, err
	}
	content, err := edit(current.Content)
	if err != nil {
		return 0, err
	}
	j, err := newWriteJob(account, code, "patch", Batch{Rows: []Row{{externalID, content}}})
	if err != nil {
		return 0, err
	}
	j.expectedVersion, j.keepsInactive = state.version, true
	_, position, err := l.runJob(ctx, meta, j)
	return position, err
}

// DeactivateSite makes a site inactive, so that it no longer counts. The site keeps its content and its id. A second time changes
// nothing. It is refused with ErrUnknownReferential, ErrUnknownSite or refusal.ReferentialArchived.
func (l *Locations) DeactivateSite(ctx context.Context, account string, meta commands.Metadata, code, externalID string) (locations.Site, eventstore.Position, error) {
	return l.toggleSite(ctx, meta, toggle{account: account, code: code, externalID: externalID, action: "deactivate"})
}

// ReactivateSite makes a site active again, with the content that it had. A second time changes nothing. It is refused as
// DeactivateSite is, and with refusal.SitesOverCapacity.
func (l *Locations) ReactivateSite(ctx context.Context, account string, meta commands.Metadata, code, externalID string) (locations.Site, eventstore.Position, error) {
	return l.toggleSite(ctx, meta, toggle{account: account, code: code, externalID: externalID, action: "reactivate"})
}

// toggle is a command that deactivates or reactivates one site. action is "deactivate" or "reactivate".
type toggle struct {
	account, code, externalID string
	action                    string
	limit                     plan.Plan
}

// toggleSite writes no content: the site keeps its content on the log.
func (l *Locations) toggleSite(ctx context.Context, meta commands.Metadata, t toggle) (locations.Site, eventstore.Position, error) {
	var err error
	if t.limit, err = l.plans.PlanOf(ctx, t.account); err != nil {
		return locations.Site{}, 0, err
	}
	stager := l.newStager(t.account, meta)
	position, err := l.handler.Handle(ctx, t.account, meta, func(s *State) commands.Result {
		c, err := t.decide(s)
		if err != nil {
			return commands.Refuse(err)
		}
		return stager.appendChanges(c)
	})
	if err != nil {
		return locations.Site{}, position, err
	}
	shown, err := l.readSite(ctx, t.account, t.code, t.externalID)
	return shown, position, err
}

// decide changes nothing for a site that already is in the wanted state. Only a reactivation can exceed the cap.
func (t toggle) decide(s *State) (siteChanges, error) {
	ref, state, err := s.findWritableSite(t.code, t.externalID)
	if err != nil {
		return siteChanges{}, err
	}
	c := siteChanges{SiteWriteSummary: s.newWriteSummary(ref, t.action, t.limit)}
	switch {
	case state.active && t.action == "deactivate":
		c.deactivateSite(t.account, t.externalID, state)
	case !state.active && t.action == "reactivate":
		c.addRow(t.account, state, event.SiteRow{ExternalID: t.externalID, Operation: event.SiteReactivated, Unlocated: state.isUnlocated})
		c.countSites(event.SiteReactivated, 1)
		return c, checkSiteCap(c.SiteWriteSummary)
	}
	return c, nil
}

// readSite returns a site as it is now, with its content read from the log. If another command has changed it after the
// caller's, the caller is shown the later state.
func (l *Locations) readSite(ctx context.Context, account, code, externalID string) (locations.Site, error) {
	state, err := l.viewSite(ctx, account, func(s *State) (siteState, error) {
		ref, err := s.findReferential(code)
		if err != nil {
			return siteState{}, err
		}
		return ref.findSite(externalID)
	})
	if err != nil {
		return locations.Site{}, err
	}
	stored, err := l.readContent(ctx, account, state.contentAt)
	if err != nil {
		return locations.Site{}, err
	}
	s := locations.Site{
		ID: siteID(account, code, externalID), Referential: code, ExternalID: externalID,
		Active: state.active, Version: state.version, Created: timeOfMicros(state.created), Modified: timeOfMicros(state.modified),
	}
	s.Show(stored)
	if !state.active {
		s.Deactivated = timeOfMicros(state.deactivated)
	}
	return s, nil
}

// viewSite returns what find returns for the current state. It fails with the error of the view or with that of find.
func (l *Locations) viewSite(ctx context.Context, account string, find func(*State) (siteState, error)) (state siteState, err error) {
	if viewErr := l.handler.View(ctx, account, func(s *State) { state, err = find(s) }); viewErr != nil {
		return state, viewErr
	}
	return state, err
}

func timeOfMicros(micros int64) time.Time { return time.UnixMicro(micros).UTC() }
