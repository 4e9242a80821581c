package api

import (
	"context"
	"errors"
	"time"

	"lieudit/commands"
	"lieudit/eventstore"
	"lieudit/http/problem"
	"lieudit/queries/locations"
)

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
	if errors.Is(err, locations.ErrInvalidCursor) {
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
