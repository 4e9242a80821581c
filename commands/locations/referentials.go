package locations

import (
	"context"
	"time"

	"lieudit/commands"
	"lieudit/eventstore"
	"lieudit/schemas/event"
	"lieudit/schemas/plan"
	"lieudit/schemas/refusal"
)

// Referential is a named group of an account's sites. Archived is zero while it takes writes. Its fields are those of the read
// side's Referential: package http/api converts one into the other.
type Referential struct {
	Code, Name        string
	Created, Archived time.Time
	Active            int // sites
}

// showReferential returns a referential with its name in clear.
func (l *Locations) showReferential(ctx context.Context, account string, ref *referentialState) (Referential, error) {
	name, err := l.codec.Unseal(ctx, streamOf(account), ref.name)
	return Referential{ref.code, string(name), ref.created, ref.archived, ref.active}, err
}

// OpenReferential opens a referential. It is refused with refusal.ReferentialsOverCapacity if all that the plan allows are in
// use, and otherwise with refusal.ReferentialCodeTaken if the account ever had a referential with that code. The cap has no
// tolerance, unlike that of sites.
func (l *Locations) OpenReferential(ctx context.Context, account string, meta commands.Metadata, code, name string) (Referential, eventstore.Position, error) {
	limit, err := l.plans.PlanOf(ctx, account)
	if err != nil {
		return Referential{}, 0, err
	}
	return l.handleReferential(ctx, account, meta, code, func(s *State) commands.Result {
		return openReferential(s, limit, event.ReferentialOpened{Code: code, Name: event.Personal(name)})
	})
}

func openReferential(s *State, limit plan.Plan, e event.ReferentialOpened) commands.Result {
	if s.openReferentials >= limit.MaxReferentials {
		return commands.Refuse(refusal.ReferentialsOverCapacity.With(refusal.Details{Active: s.openReferentials, Ceiling: limit.MaxReferentials}))
	}
	if _, taken := s.referentials[e.Code]; taken {
		return commands.Refuse(refusal.ReferentialCodeTaken)
	}
	return commands.Append(e)
}

// RenameReferential gives a referential another name. The name that it already has changes nothing. It is refused with
// ErrUnknownReferential or refusal.ReferentialArchived, and it fails if the vault cannot open the previous name.
func (l *Locations) RenameReferential(ctx context.Context, account string, meta commands.Metadata, code, name string) (Referential, eventstore.Position, error) {
	var before openedName
	return l.handleReferential(ctx, account, meta, code, func(s *State) commands.Result {
		sealed, result := renameReferential(s, code, event.Personal(name), before)
		if sealed == nil {
			return result
		}
		return commands.PrepareFirst(func(ctx context.Context) (err error) {
			before.sealed = *sealed
			before.text, err = l.codec.Unseal(ctx, streamOf(account), before.sealed)
			return err
		})
	})
}

// openedName is a name as it is in the state, and in clear.
type openedName struct{ sealed, text event.Personal }

// renameReferential decides on the previous name. If before is not the one that the state has, toOpen is the name to open
// first.
func renameReferential(s *State, code string, name event.Personal, before openedName) (toOpen *event.Personal, result commands.Result) {
	ref, err := s.findWritableReferential(code)
	switch {
	case err != nil:
		return nil, commands.Refuse(err)
	case ref.name != before.sealed:
		sealed := ref.name
		return &sealed, commands.Result{}
	case before.text == name:
		return nil, commands.Result{}
	}
	return nil, commands.Append(event.ReferentialRenamed{Code: code, Before: before.text, Name: name})
}

// ArchiveReferential ends a referential for writes and deactivates its sites, in one append. It is idempotent. It is refused
// only with ErrUnknownReferential, and it fails if the vault cannot open the name for the caller.
func (l *Locations) ArchiveReferential(ctx context.Context, account string, meta commands.Metadata, code string) (Referential, eventstore.Position, error) {
	limit, err := l.plans.PlanOf(ctx, account)
	if err != nil {
		return Referential{}, 0, err
	}
	stager := l.newStager(account, meta)
	return l.handleReferential(ctx, account, meta, code, func(s *State) commands.Result {
		ref, err := s.findReferential(code)
		switch {
		case err != nil:
			return commands.Refuse(err)
		case !ref.archived.IsZero():
			return commands.Result{}
		}
		shown, changes := *ref, deactivateAllSites(s, ref, account, limit)
		return commands.AppendBuilt(func(ctx context.Context) ([]event.Event, error) {
			if _, err := l.showReferential(ctx, account, &shown); err != nil {
				return nil, err
			}
			events, err := stager.buildEvents(ctx, changes)
			return append(events, event.ReferentialArchived{Code: code}), err
		})
	})
}

// deactivateAllSites returns the deactivation of each active site of a referential. limit only goes into the summary: a
// deactivation never exceeds a cap.
func deactivateAllSites(s *State, ref *referentialState, account string, limit plan.Plan) siteChanges {
	c := siteChanges{SiteWriteSummary: s.newWriteSummary(ref, "archive", limit)}
	for id, state := range ref.sites {
		if state.active {
			c.deactivateSite(account, id, state)
		}
	}
	c.sortRows()
	return c
}

// handleReferential handles a command on a referential and returns the referential as the command left it.
func (l *Locations) handleReferential(ctx context.Context, account string, meta commands.Metadata, code string, decision commands.Decision[State]) (Referential, eventstore.Position, error) {
	var found referentialState
	position, err := l.handler.HandleThen(ctx, account, meta, decision, func(s *State) {
		if ref, ok := s.referentials[code]; ok {
			found = *ref
		}
	})
	if err != nil {
		return Referential{}, position, err
	}
	referential, err := l.showReferential(ctx, account, &found)
	return referential, position, err
}
