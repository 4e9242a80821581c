package projector

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/google/uuid"
	"golang.org/x/sync/semaphore"

	"lieudit/eventstore"
	"lieudit/eventstore/feed"
	"lieudit/eventstore/sqldb"
	"lieudit/schemas/table"
)

// worker is this instance's part in filling one generation: it owns the generation, or waits to own it. The fields above mu
// do not change after the start.
type worker struct {
	model             Model
	lease             lease
	store             eventstore.Store
	codec             *eventstore.Codec
	log               *slog.Logger
	logged            *loggedIncidents
	refoldWake        chan struct{}               // wakes refoldStoppedAccounts
	serveWhenCaughtUp func(context.Context) error // makes the generation serve as soon as it may
	hurryFeed         func()                      // feed.Feed.Hurry

	setDiverged      func(bool) // see status.go
	isDiverged       func() bool
	rebuild          func()      // begins a fresh generation, once
	noteDamage       func(error) // has the generation replaced if the error is damage to its file
	verifyGeneration func(context.Context)

	batchSlot chan struct{} // of capacity 1: holds a value while a batch is being applied

	scrub      func(context.Context) (later time.Duration, err error) // sqldb.Registry.Scrub
	scrubLock  *semaphore.Weighted                                    // a mutex that a context interrupts: held by scrubFiles, and while a batch is written
	isScrubDue atomic.Bool                                            // personal data that was deleted may still be in the database's files
	scrubErr   atomic.Pointer[error]                                  // why the last scrub failed; nil if it succeeded

	mu    sync.Mutex
	state workerState
}

// writeTimeout is how long one transaction may take: a database that does not answer is treated as unavailable.
const writeTimeout = 30 * time.Second

// workerState is the progress of a worker.
type workerState struct {
	isReading     bool   // the feed reads: this instance was the owner at the start, and has met no errFenced since
	isOwner       bool   // this instance was the owner a moment ago
	reason        string // why the generation cannot be filled, "" if it can
	checkpoint    eventstore.Checkpoint
	caughtUpAt    time.Time     // when this owner last caught up; zero before the first time
	caughtUpFirst time.Time     // when it first caught up
	changed       chan struct{} // closed at the next change of any of these
}

// currentState is a copy of the state.
func (w *worker) currentState() workerState {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.state
}

// updateState changes the state and wakes all who wait for a change.
func (w *worker) updateState(change func(*workerState)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change(&w.state)
	close(w.state.changed)
	w.state.changed = make(chan struct{})
}

// loseOwnership marks the state as that of a worker that does not own its generation.
func loseOwnership(s *workerState) {
	s.isReading, s.isOwner, s.caughtUpAt, s.caughtUpFirst = false, false, time.Time{}, time.Time{}
}

// resumeWhenOwner returns the checkpoint to continue from, once this instance owns the generation. The feed calls it before
// it subscribes, and again after each failure. It blocks until then, and fails if the database fails or ctx ends.
func (w *worker) resumeWhenOwner(ctx context.Context) (eventstore.Checkpoint, error) {
	for {
		w.updateState(loseOwnership)
		w.scrubErr.Store(nil) // whoever owns the generation now scrubs it
		c, err := w.lease.claim(ctx)
		if err != nil {
			return eventstore.Checkpoint{}, err
		}
		if c.LeaseHolder == w.lease.owner {
			return w.resumeFrom(ctx, c)
		}
		w.updateState(func(s *workerState) { s.reason = c.StopReason })
		w.reverifyGeneration(ctx, c)
		select {
		case <-ctx.Done():
			return eventstore.Checkpoint{}, ctx.Err()
		case <-time.After(claimInterval):
		}
	}
}

// resumeFrom continues at the generation's checkpoint. Why this instance could not continue before stays its reason until
// something is written, since the row may not have stored it. An erasure that was interrupted between its rows and the
// database's files is finished first. If another instance filled the generation meanwhile, it may have destroyed the keys of
// erased accounts: those still in memory here would open events after the erasures.
func (w *worker) resumeFrom(ctx context.Context, c table.Checkpoint) (eventstore.Checkpoint, error) {
	checkpoint, err := checkpointOf(c)
	if err == nil && w.model.NeedsPersonalData {
		if checkpoint != w.currentState().checkpoint {
			w.codec.ForgetKeys()
		}
		err = w.startScrub(ctx)
	}
	if err == nil {
		w.updateState(func(s *workerState) {
			s.isReading, s.isOwner, s.checkpoint, s.reason = true, true, checkpoint, cmp.Or(c.StopReason, s.reason)
		})
	}
	return checkpoint, err
}

// handleMessage is the Watermill handler: it writes a batch with its checkpoint. After an error the feed sends the batch
// again.
func (w *worker) handleMessage(m *message.Message) error {
	b, ok := feed.BatchOf(m)
	if !ok {
		return errors.New("the message holds no batch")
	}
	w.batchSlot <- struct{}{}
	defer func() { <-w.batchSlot }()
	ctx := m.Context()
	if err := w.applyBatch(ctx, b); err != nil {
		if ctx.Err() == nil { // otherwise this instance is stopping, and removeWorker gives the lease back
			w.recordStop(ctx, err)
		}
		return err
	}
	if b.CaughtUp {
		w.serveWhenCaughtUp(ctx)
	}
	return nil
}

// awaitBatch waits until no batch is being applied, or for closeTimeout.
func (w *worker) awaitBatch() {
	timeout := time.NewTimer(closeTimeout)
	defer timeout.Stop()
	select {
	case w.batchSlot <- struct{}{}:
		<-w.batchSlot
	case <-timeout.C:
	}
}

// applyBatch writes a batch in one or more transactions. A batch that does not move the checkpoint only reports that the
// worker has caught up with the log: it is written if the checkpoint row holds a reason to stop, which a transaction clears.
func (w *worker) applyBatch(ctx context.Context, b feed.Batch) error {
	if b.To == b.From && w.currentState().reason == "" {
		w.recordProgress(b)
		return nil
	}
	decoded, err := w.model.decodeEvents(ctx, w.codec, b.Events)
	if err != nil {
		return err
	}
	for p := range splitBatch(b, decoded) {
		if p.decoded, err = w.model.expandCommits(ctx, w, p.decoded); err != nil {
			return err
		}
		if err := w.writeTransaction(ctx, p); err != nil {
			return err
		}
		w.recordProgress(p.Batch)
	}
	return nil
}

// writeTransaction writes one part of a batch: its checkpoint, the statuses of accounts, and the rows. The checkpoint comes
// first, so that a worker that has lost the lease fails before it reads or writes anything else. Logging and wake-ups wait
// until the transaction is committed.
func (w *worker) writeTransaction(ctx context.Context, p batchPart) error {
	needsScrub, filter, err := w.writeRows(ctx, p)
	if err != nil {
		return err
	}
	w.logAccounts(filter.toLog)
	if filter.needsRefold() {
		wake(w.refoldWake)
	}
	if needsScrub {
		err = w.startScrub(ctx)
	}
	return err
}

// writeRows is the transaction of writeTransaction. It waits while tables are scrubbed.
func (w *worker) writeRows(ctx context.Context, p batchPart) (needsScrub bool, filter *accountFilter, err error) {
	if err := w.scrubLock.Acquire(ctx, 1); err != nil {
		return false, nil, err
	}
	defer w.scrubLock.Release(1)
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	err = w.lease.db.RunInTx(ctx, func(tx *sqldb.Tx) error {
		if err := w.lease.advanceCheckpoint(ctx, tx, p.Batch); err != nil {
			return err
		}
		var err error
		if filter, err = filterEvents(ctx, tx, p.decoded); err != nil {
			return err
		}
		rows, err := w.model.foldEvents(ctx, tx, filter.kept, filter.correctedOwners)
		if err != nil {
			return err
		}
		filter.dropErased(w.model, rows)
		needsScrub = rows.needsScrub
		return rows.flush(ctx, tx)
	})
	return needsScrub, filter, err
}

// startScrub runs a cheap scrub at once and leaves any other to finishScrub.
func (w *worker) startScrub(ctx context.Context) error {
	w.isScrubDue.Store(true)
	if w.lease.db.ScrubsAtOnce() {
		_, err := w.scrubFiles(ctx)
		return err
	}
	wake(w.refoldWake)
	return nil
}

// scrubFiles removes deleted rows from the database's files. It stays due until it succeeds, and is postponed if it ran a
// short time ago. No batch is written meanwhile.
func (w *worker) scrubFiles(ctx context.Context) (later time.Duration, err error) {
	if err := w.scrubLock.Acquire(ctx, 1); err != nil { // one at a time: a later one also removes what others have deleted by then
		return 0, err
	}
	defer w.scrubLock.Release(1)
	w.isScrubDue.Store(true)
	later, err = w.scrub(ctx)
	switch {
	case ctx.Err() != nil: // not the database's fault
	case err != nil:
		w.scrubErr.Store(&err)
	default:
		w.scrubErr.Store(nil)
	}
	if err == nil && later == 0 {
		w.isScrubDue.Store(false)
	}
	return later, err
}

// recordProgress notes that a batch is written.
func (w *worker) recordProgress(b feed.Batch) {
	w.setDiverged(false)
	if w.currentState().reason != "" {
		w.log.Info("projection goes on", "position", b.To.Position)
	}
	w.updateState(func(s *workerState) {
		s.isOwner = s.isOwner || b.To != b.From // advanceCheckpoint has proved the lease
		s.checkpoint, s.reason = b.To, ""
		if b.CaughtUp {
			if s.caughtUpAt = time.Now(); s.caughtUpFirst.IsZero() {
				s.caughtUpFirst = s.caughtUpAt
			}
		}
	})
}

// recordStop notes why the generation cannot be filled now, and gives back the lease. The feed calls resumeWhenOwner again
// after a while. It ends with ctx, so that a closing router waits for nobody.
func (w *worker) recordStop(ctx context.Context, err error) {
	w.updateState(loseOwnership)
	if errors.Is(err, errFenced) || errors.Is(err, context.Canceled) { // another instance has the lease, or this one is stopping
		return
	}
	w.noteDamage(err)
	reason := w.stopReason(err)
	if w.currentState().reason == "" { // one line per incident; the status shows the latest reason
		w.log.Error("projection stopped", "reason", reason)
	}
	w.updateState(func(s *workerState) { s.reason = reason })
	w.releaseLease(ctx, reason)
}

// releaseLease gives back the lease. If that fails, the lease runs out.
func (w *worker) releaseLease(ctx context.Context, reason string) {
	ctx, cancel := context.WithTimeout(ctx, leaseDuration/3)
	defer cancel()
	w.lease.release(ctx, reason)
}

// keepLease renews the lease until ctx ends. Each renewal is also another chance for a generation that waits to serve; if
// that fails, the next renewal tries again.
func (w *worker) keepLease(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(renewInterval):
		}
		if !w.currentState().isReading {
			continue
		}
		isHeld := w.lease.renew(ctx)
		w.updateState(func(s *workerState) { s.isOwner = s.isReading && isHeld })
		if isHeld {
			w.serveWhenCaughtUp(ctx)
		}
	}
}

const (
	leaseDuration = 1500 * time.Millisecond // after that another instance replaces a dead owner
	renewInterval = leaseDuration / 4
	claimInterval = leaseDuration / 6 // how often other instances try to claim it
	claimTimeout  = 10 * time.Second
)

// errFenced: another instance now fills the generation, or has moved its checkpoint.
var errFenced = errors.New("another instance fills this generation now")

// lease is one instance's right to fill one generation. It is stored in columns of the checkpoint row, so that a transaction
// that writes rows also proves the lease. All times are those of the database's clock.
type lease struct {
	db             *sqldb.DB
	owner          string
	isOnlyInstance bool // no other instance can be alive: the holder of a held lease is dead
}

// claim tries to take the lease, and returns the checkpoint with its present holder. It takes a lease that is free, its own
// or expired, and any lease if this is the only instance. If another instance holds it, it only reads: many instances ask
// often.
func (l lease) claim(ctx context.Context) (table.Checkpoint, error) {
	ctx, cancel := context.WithTimeout(ctx, claimTimeout)
	defer cancel()
	// A lease with an impossibly late end was taken before the clock was set back.
	isFree := "? or owner = '' or owner = ? or until not between " + l.db.Now() + " and " + l.db.Now() + " + ?"
	args := []any{l.isOnlyInstance, l.owner, leaseDuration.Microseconds()}
	others, err := sqldb.Select(ctx, l.db, table.Checkpoints, "where not ("+isFree+")", args...)
	if err != nil {
		return table.Checkpoint{}, err
	}
	if len(others) == 1 {
		return others[0], nil
	}
	_, err = l.db.Exec(ctx, "update {checkpoint} set owner = ?, until = "+l.db.Now()+" + ? where "+isFree,
		append([]any{l.owner, leaseDuration.Microseconds()}, args...)...)
	if err != nil {
		return table.Checkpoint{}, err
	}
	return l.readCheckpoint(ctx)
}

// readCheckpoint reads the one checkpoint row of a generation.
func (l lease) readCheckpoint(ctx context.Context) (table.Checkpoint, error) {
	rows, err := sqldb.Select(ctx, l.db, table.Checkpoints, "")
	if err == nil && len(rows) != 1 {
		err = errors.New("the generation has no checkpoint")
	}
	if err != nil {
		return table.Checkpoint{}, err
	}
	return rows[0], nil
}

// renew extends the lease, and reports whether this instance certainly holds it.
func (l lease) renew(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, leaseDuration)
	defer cancel()
	n, err := l.db.Exec(ctx, "update {checkpoint} set until = "+l.db.Now()+" + ? where owner = ?", leaseDuration.Microseconds(), l.owner)
	return err == nil && n == 1
}

// release lets another instance claim at once, and keeps the reason why this one stopped.
func (l lease) release(ctx context.Context, reason string) error {
	_, err := l.db.Exec(ctx, "update {checkpoint} set owner = '', until = "+l.db.Now()+", reason = ? where owner = ?", reason, l.owner)
	return err
}

// advanceCheckpoint moves the checkpoint over a batch, in the transaction of its rows. It fails with errFenced if the
// lease is lost or the checkpoint is not where the batch begins.
func (l lease) advanceCheckpoint(ctx context.Context, tx *sqldb.Tx, b feed.Batch) error {
	recorded := table.Instant(0)
	if n := len(b.Events); n > 0 {
		recorded = table.InstantOf(b.Events[n-1].Time)
	}
	n, err := tx.Exec(ctx, "update {checkpoint} set log = ?, position = ?, event = ?, recorded = case when cast(? as bigint) = 0 then recorded else ? end, reason = '', until = "+
		l.db.Now()+" + ? where position = ? and owner = ?",
		b.To.Log.String(), int64(b.To.Position), b.To.Event.String(), int64(recorded), int64(recorded), leaseDuration.Microseconds(), int64(b.From.Position), l.owner)
	if err == nil && n != 1 {
		err = errFenced
	}
	return err
}

// lockCheckpoint locks the checkpoint row until the transaction ends. It fails with errFenced if the lease is lost.
func (l lease) lockCheckpoint(ctx context.Context, tx *sqldb.Tx) error {
	n, err := tx.Exec(ctx, "update {checkpoint} set until = "+l.db.Now()+" + ? where owner = ?", leaseDuration.Microseconds(), l.owner)
	if err == nil && n != 1 {
		err = errFenced
	}
	return err
}

// checkpointOf is a row's log position, the zero Checkpoint for an empty generation.
func checkpointOf(c table.Checkpoint) (eventstore.Checkpoint, error) {
	if c.Position == 0 && c.Log == "" {
		return eventstore.Checkpoint{}, nil
	}
	log, err := uuid.Parse(c.Log)
	if err != nil {
		return eventstore.Checkpoint{}, err
	}
	id, err := uuid.Parse(c.Event)
	return eventstore.Checkpoint{Log: log, Position: eventstore.Position(c.Position), Event: id}, err
}
