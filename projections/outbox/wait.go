package outbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"lieudit/eventstore"
	"lieudit/schemas/table"
)

// ErrDown: the index is not told at the moment, or is so far behind that waiting for it is no use.
var ErrDown = errors.New("site search is not told of changes")

const (
	pollEvery = 10 * time.Millisecond // where another instance tells the index
	tellsHere = 10 * pollEvery        // where this one does, and says when it did
	longQueue = 5000                  // rows that nobody waits for
)

// Wait returns when the index was told of all that the places read model held at a position, but for what it refused. Wait
// for the read model first. It fails with ErrDown at once while nothing is told or too much is to be, and with ctx's
// error when that ends first.
func (o *Outbox) Wait(ctx context.Context, position eventstore.Position) error {
	for {
		told, poll := o.signal()
		q, err := o.queue(ctx, position)
		switch {
		case err != nil:
			return fmt.Errorf("site search: %w", err)
		case q.rows == 0:
			return nil
		case q.rows >= longQueue || o.idle(q.oldest):
			return ErrDown
		}
		timer := time.NewTimer(poll)
		select {
		case <-ctx.Done():
			o.inVain(q.oldest)
			timer.Stop()
			return ctx.Err()
		case <-told:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// queue is what is to be told up to a position.
type queue struct {
	rows   int // counted up to longQueue
	oldest int64
}

func (o *Outbox) queue(ctx context.Context, position eventstore.Position) (q queue, err error) {
	err = o.shelf.Read(ctx, table.Places, func(db *table.DB) error {
		row := db.QueryRow(ctx, "select count(*), coalesce(min(position), 0) from (select position from outbox where position > 0 and position <= ? order by position limit ?) as waiting",
			int64(position), longQueue)
		return row.Scan(&q.rows, &q.oldest)
	})
	return q, err
}

// signal is closed when this instance next tells something, and says how often to look all the same.
func (o *Outbox) signal() (told <-chan struct{}, poll time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.telling {
		return o.told, tellsHere
	}
	return nil, pollEvery
}

// advanced wakes those that wait.
func (o *Outbox) advanced() {
	o.mu.Lock()
	defer o.mu.Unlock()
	close(o.told)
	o.told = make(chan struct{})
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
