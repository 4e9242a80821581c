package searchindex

import (
	"context"
	"errors"
	"fmt"
	"time"

	"lieudit/eventstore"
	"lieudit/eventstore/sqldb"
	"lieudit/schemas/table"
)

// ErrDown: the index is not being written at the moment, or is so far behind that waiting for it is useless.
var ErrDown = errors.New("site search is not told of changes")

const (
	remotePollInterval = 10 * time.Millisecond   // if another instance writes the index
	localPollInterval  = 10 * remotePollInterval // if this one does, which also signals its progress
	maxAwaitedRows     = 5000                    // with this many rows pending, waiting is useless
)

// AwaitPosition returns once the index holds everything that the sites' read model held at a position, except what the index
// refused: it waits until no outbox row up to the position is left. Call AwaitPosition of the read model first. It fails with
// ErrDown at once while the index is not being written or is far behind, and with ctx's error if ctx ends first.
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

// pendingRows is the work left up to a position.
type pendingRows struct {
	rows   int // counted up to maxAwaitedRows
	oldest int64
}

// countPending counts the rows up to a position that are still in the outbox.
func (o *Indexer) countPending(ctx context.Context, position eventstore.Position) (q pendingRows, err error) {
	err = o.registry.Read(ctx, table.LocationsModel, func(db *sqldb.DB) error {
		row := db.QueryRow(ctx, "select count(*), coalesce(min(position), 0) from (select position from {outbox} where position > 0 and position <= ? order by position limit ?) as waiting",
			int64(position), maxAwaitedRows)
		return row.Scan(&q.rows, &q.oldest)
	})
	return q, err
}

// progressSignal returns a channel that is closed when this instance next indexes rows, and how often to poll as well.
func (o *Indexer) progressSignal() (progressed <-chan struct{}, poll time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.isActive {
		return o.progressed, localPollInterval
	}
	return nil, remotePollInterval
}

// signalProgress wakes all who wait.
func (o *Indexer) signalProgress() {
	o.mu.Lock()
	defer o.mu.Unlock()
	close(o.progressed)
	o.progressed = make(chan struct{})
}

// isStalled reports whether the index is known to be stuck: this instance cannot write it, or a caller has waited in vain for
// the same oldest row. One caller that waits until its context ends is enough; the others fail at once.
func (o *Indexer) isStalled(oldest int64) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.reason != "" || o.stalledPosition == oldest
}

// recordStall notes the oldest row that a caller waited for in vain; 0 clears it.
func (o *Indexer) recordStall(oldest int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if oldest > 0 {
		o.stalledPosition = oldest
	}
}

// Backlog is how many sites are in the outbox.
type Backlog struct {
	Pending int // sites to be indexed
	Refused int // sites that the index refused
}

// Backlog counts the outbox of the serving generation.
func (o *Indexer) Backlog(ctx context.Context) (s Backlog, err error) {
	err = o.registry.Read(ctx, table.LocationsModel, func(db *sqldb.DB) error {
		return db.QueryRow(ctx, "select (select count(*) from {outbox} where position > 0), (select count(*) from {outbox} where position < 0)").
			Scan(&s.Pending, &s.Refused)
	})
	return s, err
}

// Ready returns nil if the index gets all changes; otherwise it describes the obstacle.
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

// readyPending is how many sites may be pending for the search to count as ready.
const readyPending = 5000
