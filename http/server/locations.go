package server

import (
	"context"
	"errors"
	"time"

	"lieudit/commands"
	"lieudit/eventstore"
	"lieudit/http/problem"
	"lieudit/queries/places"
)

// maxWork is how long a command tries to learn what became of it.
const maxWork = 60 * time.Second

// intent is who wants something done.
func (c call) intent() commands.Intent { return commands.Intent{Actor: "key:" + c.grant.Key} }

func (c call) account() string    { return c.grant.Account }
func (c call) code() string       { return c.vars["code"] }
func (c call) externalID() string { return c.vars["external_id"] }

// writing is an endpoint's work that changes places. It was counted before, durably, and goes on until it is settled,
// though its client goes away; it ends, whatever the log does.
func writing[T any](a *api, do func(context.Context, call, T) (any, error)) func(context.Context, call, T) (any, error) {
	return func(ctx context.Context, c call, in T) (any, error) {
		if a.Locations == nil {
			return nil, problem.Internal()
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), maxWork)
		defer cancel()
		return do(ctx, c, in)
	}
}

// reading is an endpoint's work that reads places.
func reading[T any](a *api, do func(context.Context, call, T) (any, error)) func(context.Context, call, T) (any, error) {
	return func(ctx context.Context, c call, in T) (any, error) {
		if a.Places == nil {
			return nil, problem.Internal()
		}
		return do(ctx, c, in)
	}
}

// shows waits until the read models show what a command, or its refusal, left on the log up to a position.
func (a *api) shows(ctx context.Context, at eventstore.Position, err error) error {
	if at > 0 && a.Wait != nil {
		a.Wait(ctx, at)
	}
	return err
}

// unlisted is the answer to a list that could not be made.
func unlisted(err error, cursor string) error {
	if errors.Is(err, places.ErrCursor) {
		return noCursor(cursor)
	}
	return err
}

// noCursor: the cursor is none that was given to this account for this question.
func noCursor(cursor string) error {
	return problem.Violations(problem.Violation{
		Type: "value_error", Loc: []any{"query", "curseur"}, Msg: "Value error, not a cursor that was given",
		Input: map[string]any{"curseur": cursor},
	})
}
