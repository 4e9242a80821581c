package server

import (
	"context"
	"time"

	"lieudit/commands/locations"
	"lieudit/eventstore"
	"lieudit/queries/places"
	"lieudit/schemas/body"
)

func (a *api) openReferential(ctx context.Context, c call, in body.OpenReferential) (any, error) {
	r, at, err := a.Locations.Open(ctx, c.account(), c.intent(), in.Code, in.Name)
	shown, err := a.changed(ctx, r, at, err)
	return created{shown}, err
}

func (a *api) renameReferential(ctx context.Context, c call, in body.RenameReferential) (any, error) {
	name := ""
	if in.Name.Value != nil {
		name = *in.Name.Value
	}
	r, at, err := a.Locations.Rename(ctx, c.account(), c.intent(), c.code(), name)
	return a.changed(ctx, r, at, err)
}

func (a *api) archiveReferential(ctx context.Context, c call, _ body.Empty) (any, error) {
	r, at, err := a.Locations.Archive(ctx, c.account(), c.intent(), c.code())
	return a.changed(ctx, r, at, err)
}

// changed is a referential after a command.
func (a *api) changed(ctx context.Context, r locations.Referential, at eventstore.Position, err error) (any, error) {
	if err := a.shows(ctx, at, err); err != nil {
		return nil, err
	}
	return referential(places.Referential(r)), nil
}

func (a *api) listReferentials(ctx context.Context, c call, in body.ReferentialsQuery) (any, error) {
	found, err := a.Places.Referentials(ctx, c.account(), in.Status)
	return body.Referentials{Envelope: body.OK, Results: each(found, referential)}, err
}

func (a *api) showReferential(ctx context.Context, c call, _ body.Empty) (any, error) {
	r, err := a.Places.Referential(ctx, c.account(), c.code())
	return referential(r), err
}

func referential(r places.Referential) body.Referential {
	shown := body.Referential{
		Code: r.Code, Name: r.Name, Status: "active", Created: r.Created, Archived: r.Archived, Active: r.Active,
	}
	if r.Archived != (time.Time{}) {
		shown.Status = "archived"
	}
	return shown
}
