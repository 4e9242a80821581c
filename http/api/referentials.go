package api

import (
	"context"
	"time"

	"lieudit/commands/locations"
	"lieudit/eventstore"
	locationsqueries "lieudit/queries/locations"
	"lieudit/schemas/body"
)

func (h *handler) openReferential(ctx context.Context, c call, in body.OpenReferential) (any, error) {
	r, at, err := h.LocationCommands.OpenReferential(ctx, c.account(), c.metadata(), in.Code, in.Name)
	shown, err := h.awaitReferential(ctx, r, at, err)
	return createdBody{shown}, err
}

func (h *handler) renameReferential(ctx context.Context, c call, in body.RenameReferential) (any, error) {
	name := ""
	if in.Name.Value != nil {
		name = *in.Name.Value
	}
	r, at, err := h.LocationCommands.RenameReferential(ctx, c.account(), c.metadata(), c.code(), name)
	return h.awaitReferential(ctx, r, at, err)
}

func (h *handler) archiveReferential(ctx context.Context, c call, _ body.Empty) (any, error) {
	r, at, err := h.LocationCommands.ArchiveReferential(ctx, c.account(), c.metadata(), c.code())
	return h.awaitReferential(ctx, r, at, err)
}

// awaitReferential is a referential after a command.
func (h *handler) awaitReferential(ctx context.Context, r locations.Referential, at eventstore.Position, err error) (any, error) {
	if err := h.awaitLocations(ctx, at, err); err != nil {
		return nil, err
	}
	return toReferential(locationsqueries.Referential(r)), nil
}

func (h *handler) listReferentials(ctx context.Context, c call, in body.ReferentialsQuery) (any, error) {
	found, err := h.LocationQueries.ListReferentials(ctx, c.account(), in.Status)
	return body.Referentials{Envelope: body.OKEnvelope, Results: mapSlice(found, toReferential)}, err
}

func (h *handler) showReferential(ctx context.Context, c call, _ body.Empty) (any, error) {
	r, err := h.LocationQueries.FindReferential(ctx, c.account(), c.code())
	return toReferential(r), err
}

func toReferential(r locationsqueries.Referential) body.Referential {
	shown := body.Referential{
		Code: r.Code, Name: r.Name, Status: "active", Created: r.Created, Archived: r.Archived, ActiveSites: r.Active,
	}
	if r.Archived != (time.Time{}) {
		shown.Status = "archived"
	}
	return shown
}
