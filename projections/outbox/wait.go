package outbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"lieudit/eventstore"
	"lieudit/schemas/table"
)

// ErrDown: the index is not told at the moment; waiting for it is no use.
var ErrDown = errors.New("site search is not told of changes")

const pollEvery = 5 * time.Millisecond

// Wait returns when the index was told of all that the places read model held at a position, but for what it refused. Wait
// for the read model first. It fails with ErrDown at once while nothing is told, and with ctx's error when that ends first.
func (o *Outbox) Wait(ctx context.Context, position eventstore.Position) error {
	for {
		oldest, err := o.oldest(ctx)
		switch {
		case err != nil:
			return fmt.Errorf("site search: %w", err)
		case oldest == 0 || oldest > int64(position):
			return nil
		case o.idle(oldest):
			return ErrDown
		}
		select {
		case <-ctx.Done():
			o.inVain(oldest)
			return ctx.Err()
		case <-time.After(pollEvery):
		}
	}
}

// oldest is the position of the oldest row that is still to be told, 0 for none.
func (o *Outbox) oldest(ctx context.Context) (at int64, err error) {
	err = o.shelf.Read(ctx, table.Places, func(db *table.DB) error {
		return db.QueryRow(ctx, "select coalesce(min(position), 0) from outbox where position > 0").Scan(&at)
	})
	return at, err
}

// idle says whether the index is known not to be told: by this instance, or by whichever does, since somebody waited.
func (o *Outbox) idle(oldest int64) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.reason != "" || o.stuck == oldest
}

func (o *Outbox) inVain(oldest int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.stuck = oldest
}

// State is how an outbox stands.
type State struct {
	Waiting int // sites to be told of
	Aside   int // sites that were refused
}

// State counts the outbox of the copy this instance answers from.
func (o *Outbox) State(ctx context.Context) (s State, err error) {
	err = o.shelf.Read(ctx, table.Places, func(db *table.DB) error {
		return db.QueryRow(ctx, "select (select count(*) from outbox where position > 0), (select count(*) from outbox where position < 0)").
			Scan(&s.Waiting, &s.Aside)
	})
	return s, err
}

// Ready is nil when the index is told of all changes; else it says what keeps it.
func (o *Outbox) Ready(ctx context.Context) error {
	s, err := o.State(ctx)
	switch {
	case err != nil:
		return err
	case o.halt() != "":
		return fmt.Errorf("%d sites to be told of: %s", s.Waiting, o.halt())
	case s.Aside > 0:
		return fmt.Errorf("%d sites refused, %d to be told of", s.Aside, s.Waiting)
	case s.Waiting > readyWaiting:
		return fmt.Errorf("%d sites to be told of", s.Waiting)
	}
	return nil
}

// readyWaiting is how many sites may wait to be told of and the search still be called ready.
const readyWaiting = 5000
