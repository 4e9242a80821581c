package searchindex

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
	remotePollInterval = 10 * time.Millisecond   // where another instance tells the index
	localPollInterval  = 10 * remotePollInterval // where this one does, and says when it did
	maxAwaitedRows     = 5000                    // rows that nobody waits for
)

// AwaitPosition returns when the index was told of all that the places read model held at a position, but for what it refused. AwaitPosition
// for the read model first. It fails with ErrDown at once while nothing is told or too much is to be, and with ctx's
// error when that ends first.
func (o *Indexer) AwaitPosition(ctx context.Context, position eventstore.Position) error {
	oldest := int64(0)
	for {
		progressed, poll := o.progressSignal()
		q, err := o.countPending(ctx, position)
		switch {
		case err != nil && ctx.Err() != nil:
			o.recordStall(oldest)
			return ctx.Err()
		case err != nil:
			return fmt.Errorf("site search: %w", err)
		case q.rows == 0:
			return nil
		case q.rows >= maxAwaitedRows || o.isStalled(q.oldest):
			return ErrDown
		}
		oldest = q.oldest
		timer := time.NewTimer(poll)
		select {
		case <-ctx.Done():
		case <-progressed:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// pendingRows is what is to be told up to a position.
type pendingRows struct {
	rows   int // counted up to longQueue
	oldest int64
}

func (o *Indexer) countPending(ctx context.Context, position eventstore.Position) (q pendingRows, err error) {
	err = o.registry.Read(ctx, table.LocationsModel, func(db *table.DB) error {
		row := db.QueryRow(ctx, "select count(*), coalesce(min(position), 0) from (select position from outbox where position > 0 and position <= ? order by position limit ?) as waiting",
			int64(position), maxAwaitedRows)
		return row.Scan(&q.rows, &q.oldest)
	})
	return q, err
}

// progressSignal is closed when this instance next tells something, and says how often to look all the same.
func (o *Indexer) progressSignal() (progressed <-chan struct{}, poll time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.isActive {
		return o.progressed, localPollInterval
	}
	return nil, remotePollInterval
}

// signalProgress wakes those that wait.
func (o *Indexer) signalProgress() {
	o.mu.Lock()
	defer o.mu.Unlock()
	close(o.progressed)
	o.progressed = make(chan struct{})
}

// isStalled says whether the index is known not to be told: by this instance, or by whichever does, since somebody waited.
func (o *Indexer) isStalled(oldest int64) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.reason != "" || o.stalledPosition == oldest
}

// recordStall notes the oldest row that somebody waited for in vain, if one was seen.
func (o *Indexer) recordStall(oldest int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if oldest > 0 {
		o.stalledPosition = oldest
	}
}

// Backlog is how an outbox stands.
type Backlog struct {
	Pending int // sites to be told of
	Refused int // sites that were refused
}

// Backlog counts the outbox of the copy this instance answers from.
func (o *Indexer) Backlog(ctx context.Context) (s Backlog, err error) {
	err = o.registry.Read(ctx, table.LocationsModel, func(db *table.DB) error {
		return db.QueryRow(ctx, "select (select count(*) from outbox where position > 0), (select count(*) from outbox where position < 0)").
			Scan(&s.Pending, &s.Refused)
	})
	return s, err
}

// Ready is nil when the index is told of all changes; else it says what keeps it.
func (o *Indexer) Ready(ctx context.Context) error {
	s, err := o.Backlog(ctx)
	switch {
	case err != nil:
		return err
	case o.failureReason() != "":
		return fmt.Errorf("%d sites to be told of: %s", s.Pending, o.failureReason())
	case s.Refused > 0:
		return fmt.Errorf("%d sites refused, %d to be told of", s.Refused, s.Pending)
	case s.Pending > readyPending:
		return fmt.Errorf("%d sites to be told of", s.Pending)
	}
	return nil
}

// readyPending is how many sites may wait to be told of and the search still be called ready.
const readyPending = 5000
