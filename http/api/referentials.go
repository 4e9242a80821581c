package api

import (
	"context"
	"errors"
	"time"

	"lieudit/commands"
	"lieudit/commands/locations"
	"lieudit/eventstore"
	"lieudit/http/problem"
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

// commandTimeout is how long a command tries to learn what became of it.
const commandTimeout = 60 * time.Second

// metadata is who wants something done.
func (c call) metadata() commands.Metadata { return commands.Metadata{Actor: "key:" + c.grant.KeyID} }

func (c call) account() string    { return c.grant.Account }
func (c call) code() string       { return c.vars["code"] }
func (c call) externalID() string { return c.vars["external_id"] }

// wrapWrite is an endpoint's work that changes places. It was counted before, durably, and goes on until it is settled,
// though its client goes away; it ends, whatever the log does.
func wrapWrite[T any](h *handler, do func(context.Context, call, T) (any, error)) func(context.Context, call, T) (any, error) {
	return func(ctx context.Context, c call, in T) (any, error) {
		if h.LocationCommands == nil {
			return nil, problem.Internal()
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commandTimeout)
		defer cancel()
		return do(ctx, c, in)
	}
}

// wrapRead is an endpoint's work that reads places.
func wrapRead[T any](h *handler, do func(context.Context, call, T) (any, error)) func(context.Context, call, T) (any, error) {
	return func(ctx context.Context, c call, in T) (any, error) {
		if h.LocationQueries == nil {
			return nil, problem.Internal()
		}
		return do(ctx, c, in)
	}
}

// awaitLocations waits until the read models show what a command, or its refusal, left on the log up to a position.
func (h *handler) awaitLocations(ctx context.Context, at eventstore.Position, err error) error {
	if at > 0 && h.WaitForLocations != nil {
		h.WaitForLocations(ctx, at)
	}
	return err
}

// toListError is the answer to a list that could not be made.
func toListError(err error, cursor string) error {
	if errors.Is(err, locationsqueries.ErrInvalidCursor) {
		return invalidCursor(cursor)
	}
	return err
}

// invalidCursor: the cursor is none that was given to this account for this question.
func invalidCursor(cursor string) error {
	return problem.Violations(problem.Violation{
		Type: "value_error", Loc: []any{"query", "curseur"}, Msg: "Value error, not a cursor that was given",
		Input: map[string]any{"curseur": cursor},
	})
}
