package projector

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/google/uuid"

	"lieudit/eventstore"
	"lieudit/eventstore/feed"
	"lieudit/schemas/table"
)

// worker is this instance's part in filling one copy: as its owner, or waiting to become it.
type worker struct {
	model             Model
	lease             lease
	store             eventstore.Store
	codec             *eventstore.Codec
	log               *slog.Logger
	logged            *loggedIncidents
	refoldWake        chan struct{}               // wakes runRefolds: an account is to be refolded
	serveWhenCaughtUp func(context.Context) error // makes the copy answer, when it may; tried again until it does

	setDiverged      func(bool) // see astray.go
	isDiverged       func() bool
	verifyGeneration func(context.Context)

	mu    sync.Mutex
	state workerState
}

// writeTimeout is how long writing a batch may take: a database that does not answer is as good as away.
const writeTimeout = 30 * time.Second

// workerState is where a lane is.
type workerState struct {
	isReading  bool   // it was the owner when it began, and has met no fence since
	isOwner    bool   // it was the owner a moment ago
	reason     string // why the copy cannot be filled, "" when it can
	checkpoint eventstore.Checkpoint
	caughtUpAt time.Time     // when the owner had caught up, zero before
	changed    chan struct{} // closed at the next change of any of these
}

func (w *worker) currentState() workerState {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.state
}

func (w *worker) updateState(change func(*workerState)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change(&w.state)
	close(w.state.changed)
	w.state.changed = make(chan struct{})
}

func loseOwnership(s *workerState) { s.isReading, s.isOwner, s.caughtUpAt = false, false, time.Time{} }

// resumeWhenOwner is the feed's question where to go on. It waits until this instance owns the copy.
func (w *worker) resumeWhenOwner(ctx context.Context) (eventstore.Checkpoint, error) {
	for {
		w.updateState(loseOwnership)
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

// resumeFrom goes on where the copy stands. An erasure that was cut between its rows and the files is finished first.
func (w *worker) resumeFrom(ctx context.Context, c table.Checkpoint) (eventstore.Checkpoint, error) {
	checkpoint, err := checkpointOf(c)
	if err == nil && w.model.NeedsPersonalData {
		err = w.lease.db.TruncateWAL(ctx)
	}
	if err == nil {
		w.updateState(func(s *workerState) {
			s.isReading, s.isOwner, s.checkpoint, s.reason = true, true, checkpoint, c.StopReason
		})
	}
	return checkpoint, err
}

// handleMessage is the handler: it writes a batch and its checkpoint.
func (w *worker) handleMessage(m *message.Message) error {
	b, ok := feed.BatchOf(m)
	if !ok {
		return errors.New("the message holds no batch")
	}
	ctx := m.Context()
	if err := w.applyBatch(ctx, b); err != nil {
		if ctx.Err() == nil { // else this instance stops, and the lease is given back with the rest
			w.recordStop(err)
		}
		return err
	}
	if b.CaughtUp {
		w.serveWhenCaughtUp(ctx)
	}
	return nil
}

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

// writeTransaction does what one transaction is to do.
func (w *worker) writeTransaction(ctx context.Context, p batchPart) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	needsScrub := false
	var filter *accountFilter
	err := w.lease.db.RunInTx(ctx, func(tx *table.Tx) error {
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
	if err != nil {
		return err
	}
	w.logAccounts(filter.toLog)
	if filter.needsRefold() {
		wake(w.refoldWake)
	}
	if needsScrub {
		err = w.lease.db.TruncateWAL(ctx)
	}
	return err
}

func (w *worker) recordProgress(b feed.Batch) {
	w.setDiverged(false)
	if w.currentState().reason != "" {
		w.log.Info("projection goes on", "position", b.To.Position)
	}
	w.updateState(func(s *workerState) {
		s.isOwner = s.isOwner || b.To != b.From // the fence let it pass
		s.checkpoint, s.reason = b.To, ""
		if b.CaughtUp {
			s.caughtUpAt = time.Now()
		}
	})
}

// recordStop notes why the copy cannot be filled now. The feed asks from again after a while.
func (w *worker) recordStop(err error) {
	w.updateState(loseOwnership)
	if errors.Is(err, errFenced) || errors.Is(err, context.Canceled) {
		return
	}
	reason := w.stopReason(err)
	if w.currentState().reason == "" { // one line an incident; the status has its latest reason
		w.log.Error("projection stopped", "reason", reason)
	}
	w.updateState(func(s *workerState) { s.reason = reason })
	w.releaseLease(reason)
}

// releaseLease gives the lease back. Where that fails it runs out.
func (w *worker) releaseLease(reason string) {
	ctx, cancel := context.WithTimeout(context.Background(), leaseDuration/3)
	defer cancel()
	w.lease.release(ctx, reason)
}

// keepLease renews the lease for as long as the lane runs.
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
	leaseDuration = 1500 * time.Millisecond // a dead owner is replaced after that
	renewInterval = leaseDuration / 4
	claimInterval = leaseDuration / 6 // how often a follower asks for the lease
	claimTimeout  = 10 * time.Second
)

// errFenced: another instance fills the copy now, or has moved its checkpoint.
var errFenced = errors.New("another instance fills this copy now")

// lease is one instance's right to fill one copy. All times are those of the database's clock.
type lease struct {
	db             *table.DB
	owner          string
	isOnlyInstance bool // no other instance can be alive
}

// claim asks for the lease and gives the checkpoint, held by this instance or by another.
func (l lease) claim(ctx context.Context) (table.Checkpoint, error) {
	ctx, cancel := context.WithTimeout(ctx, claimTimeout)
	defer cancel()
	// A lease longer than any is from before the clock was set back.
	_, err := l.db.Exec(ctx, "update checkpoint set owner = ?, until = "+l.db.Now()+" + ? where ? or owner = '' or owner = ? or until not between "+
		l.db.Now()+" and "+l.db.Now()+" + ?", l.owner, leaseDuration.Microseconds(), l.isOnlyInstance, l.owner, leaseDuration.Microseconds())
	if err != nil {
		return table.Checkpoint{}, err
	}
	return l.readCheckpoint(ctx)
}

func (l lease) readCheckpoint(ctx context.Context) (table.Checkpoint, error) {
	rows, err := table.Select(ctx, l.db, table.Checkpoints, "")
	if err == nil && len(rows) != 1 {
		err = errors.New("the copy has no checkpoint")
	}
	if err != nil {
		return table.Checkpoint{}, err
	}
	return rows[0], nil
}

// renew keeps the lease and says whether it certainly is held.
func (l lease) renew(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, leaseDuration)
	defer cancel()
	n, err := l.db.Exec(ctx, "update checkpoint set until = "+l.db.Now()+" + ? where owner = ?", leaseDuration.Microseconds(), l.owner)
	return err == nil && n == 1
}

// release lets another instance try at once, and leaves the reason why this one could not go on.
func (l lease) release(ctx context.Context, reason string) error {
	_, err := l.db.Exec(ctx, "update checkpoint set owner = '', until = "+l.db.Now()+", reason = ? where owner = ?", reason, l.owner)
	return err
}

// advanceCheckpoint moves the checkpoint over a batch in the transaction of its rows; it fails when the lease or the place is not
// what the batch was read for.
func (l lease) advanceCheckpoint(ctx context.Context, tx *table.Tx, b feed.Batch) error {
	recorded := table.Instant(0)
	if n := len(b.Events); n > 0 {
		recorded = table.InstantOf(b.Events[n-1].Time)
	}
	n, err := tx.Exec(ctx, "update checkpoint set log = ?, position = ?, event = ?, recorded = case when cast(? as bigint) = 0 then recorded else ? end, reason = '', until = "+
		l.db.Now()+" + ? where position = ? and owner = ?",
		b.To.Log.String(), int64(b.To.Position), b.To.Event.String(), int64(recorded), int64(recorded), leaseDuration.Microseconds(), int64(b.From.Position), l.owner)
	if err == nil && n != 1 {
		err = errFenced
	}
	return err
}

// lockCheckpoint keeps the checkpoint as it is until a transaction ends; it fails when the lease is not this instance's any more.
func (l lease) lockCheckpoint(ctx context.Context, tx *table.Tx) error {
	n, err := tx.Exec(ctx, "update checkpoint set until = "+l.db.Now()+" + ? where owner = ?", leaseDuration.Microseconds(), l.owner)
	if err == nil && n != 1 {
		err = errFenced
	}
	return err
}

// checkpointOf is where a copy goes on.
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
