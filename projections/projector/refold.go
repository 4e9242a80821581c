package projector

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"lieudit/eventstore"
	"lieudit/eventstore/feed"
	"lieudit/eventstore/sqldb"
	"lieudit/schemas/table"
)

// refold rewrites the rows of one stopped account from its streams, while the batches of other accounts continue. It skips
// the events that corrections void.
//
//	refoldStoppedAccounts ──> refoldAccount: readCorrections ──> beginRound ──> writeRows ──> finish ──> the account runs
//	                               ^                 up to the checkpoint                        │
//	                               └──────────── batches skipped events since then ──────────────┘
//
// Each transaction fails unless this instance still owns the generation and no other refold of the account has begun since:
// the generation may have had another owner in between. The account stays stopped until the last transaction, so no query
// sees half of its rows. An interrupted refold starts again.
type refold struct {
	*worker
	owner     string               // table.StreamOwner of the refolded rows: an account, or the one stream of a token or period
	round     int64                // the number of this refold of the account
	writtenTo eventstore.Position  // the rows contain the account's events up to here
	voided    map[voidedEvent]bool // events that corrections void
	status    table.AccountStatus  // the one that finish wrote
}

// voidedEvent is an event that a correction voids.
type voidedEvent struct {
	stream   string
	revision eventstore.Revision
}

const (
	refoldInterval = time.Second // between two searches for accounts to refold; refoldWake shortens it
	refoldBatch    = 500         // events in one transaction
	refoldBytes    = 4 << 20     // a transaction also ends after this many bytes of events
)

// refoldStoppedAccounts refolds the accounts whose status asks for it, while this instance owns the generation, until ctx
// ends. It logs a reason only once, until the reason changes.
func (w *worker) refoldStoppedAccounts(ctx context.Context) {
	loggedErr := ""
	var scrubs scrubSchedule
	for ctx.Err() == nil {
		if w.currentState().isOwner && !w.isDiverged() {
			err := errors.Join(w.finishScrub(ctx, &scrubs), w.refoldDueAccounts(ctx))
			if err != nil && ctx.Err() == nil && !errors.Is(err, errFenced) && loggedErr != err.Error() {
				loggedErr = err.Error()
				what := "an account's rows cannot be written again yet"
				if errors.Is(err, errScrubFailed) {
					what = "the database's files cannot be scrubbed yet"
				}
				w.log.Warn(what, "reason", err)
			}
		}
		select {
		case <-ctx.Done():
		case <-w.refoldWake:
		case <-time.After(refoldInterval):
		}
	}
}

// A failed scrub is retried after scrubRetryInterval, and then after twice the pause each time, up to maxScrubPause: if the
// disk is too small for the copies, each attempt fills it.
const (
	scrubRetryInterval = time.Minute
	maxScrubPause      = time.Hour
)

// scrubSchedule decides when the next scrub may run, on a database where scrubs are not cheap.
type scrubSchedule struct {
	at    time.Time
	pause time.Duration // after the last one, if it failed
}

// finishScrub runs a due scrub of the database's files, unless the schedule makes it wait.
func (w *worker) finishScrub(ctx context.Context, s *scrubSchedule) error {
	if !w.isScrubDue.Load() || time.Now().Before(s.at) {
		return nil
	}
	later, err := w.scrubFiles(ctx)
	if err == nil || w.lease.db.ScrubsAtOnce() {
		*s = scrubSchedule{at: time.Now().Add(later)}
	} else {
		s.pause = nextScrubPause(s.pause)
		s.at = time.Now().Add(s.pause)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errScrubFailed, err)
	}
	return nil
}

// nextScrubPause is the pause after a failed scrub. last is the pause before it, 0 if there was none.
func nextScrubPause(last time.Duration) time.Duration {
	return min(max(2*last, scrubRetryInterval), maxScrubPause)
}

var errScrubFailed = errors.New("what was erased may still be in the database's files, and is scrubbed again later")

// refoldDueAccounts refolds the accounts whose status asks for it. One that cannot be refolded yet does not hold up the
// others; the error is the first one.
func (w *worker) refoldDueAccounts(ctx context.Context) (first error) {
	due, err := w.dueRefolds(ctx)
	if err != nil {
		return nil // the worker logs that the database is unavailable
	}
	for _, s := range due {
		err := (&refold{worker: w, owner: s.Account}).refoldAccount(ctx)
		if err != nil && first == nil {
			first = fmt.Errorf("%s: %w", s.Account, err)
		}
		if errors.Is(err, errFenced) || w.isDiverged() || ctx.Err() != nil {
			break
		}
	}
	if len(due) > 0 && first == nil {
		w.serveWhenCaughtUp(ctx) // a generation that is being built may have waited for this
	}
	return first
}

// dueRefolds returns the status of each account that is due for a refold.
func (w *worker) dueRefolds(ctx context.Context) ([]table.AccountStatus, error) {
	return sqldb.Select(ctx, w.lease.db, table.AccountStatuses, "where kind = ? order by account", table.AccountRefolding)
}

// refoldAccount refolds the account. It ends with the account running, or stopped again by another unusable event.
//
// The loop runs again if finish reports that it is not done. If events arrived meanwhile, the next pass adds them to the
// rows. If a correction arrived that may void the event which stopped the account, or if readCorrections finds new ones, the
// rows are dropped and rewritten (beginRound).
func (r *refold) refoldAccount(ctx context.Context) error {
	for hasBegun := false; ; {
		bound, err := r.verifiedCheckpoint(ctx)
		if err != nil {
			return err
		}
		again, err := r.readCorrections(ctx, bound)
		if err == nil && (again || !hasBegun) {
			err = r.beginRound(ctx)
		}
		if err != nil {
			return err
		}
		stop, err := r.writeRows(ctx, bound)
		if err != nil {
			return err
		}
		if done, err := r.finish(ctx, bound, stop); done || err != nil {
			return err
		}
		hasBegun = stop == nil
	}
}

// verifiedCheckpoint returns the position of the generation, whose checkpoint must be on the log: on a restored older copy of
// the log, the streams lack events that the generation believes to be in its rows.
func (r *refold) verifiedCheckpoint(ctx context.Context) (eventstore.Position, error) {
	row, err := r.worker.lease.readCheckpoint(ctx)
	if err != nil {
		return 0, err
	}
	checkpoint, err := checkpointOf(row)
	if err != nil {
		return 0, err
	}
	err = verifyCheckpoint(ctx, r.store, checkpoint, r.model)
	if _, diverged := errors.AsType[*eventstore.DivergedError](err); diverged {
		r.setDiverged(true)
	}
	return checkpoint.Position, err
}

// beginRound begins a refold of the account, which ends any earlier one, and deletes its rows.
func (r *refold) beginRound(ctx context.Context) error {
	r.writtenTo = 0
	return r.runTransaction(ctx, func(ctx context.Context, tx *sqldb.Tx) (bool, error) {
		s, err := sqldb.LoadAccountStatus(ctx, tx, r.owner)
		if err == nil && s.Kind != table.AccountRefolding {
			err = errFenced
		}
		if err != nil {
			return false, err
		}
		s.RefoldCount++
		r.round = s.RefoldCount
		if err := sqldb.Upsert(ctx, tx, table.AccountStatuses, []table.AccountStatus{s}); err != nil {
			return false, err
		}
		return r.dropRows(ctx, tx)
	})
}

// dropRows deletes the account's rows, and reports whether that deleted personal data.
func (r *refold) dropRows(ctx context.Context, tx *sqldb.Tx) (needsScrub bool, err error) {
	position := int64(0)
	if err := tx.QueryRow(ctx, "select position from {checkpoint}").Scan(&position); err != nil {
		return false, err
	}
	b := newChangeset()
	r.model.DropRows(b, r.owner, eventstore.Position(position))
	return b.needsScrub, b.flush(ctx, tx)
}

// currentStatus reads the account's status in a transaction of this refold. It fails with errFenced if another refold
// has begun since.
func (r *refold) currentStatus(ctx context.Context, tx *sqldb.Tx) (table.AccountStatus, error) {
	s, err := sqldb.LoadAccountStatus(ctx, tx, r.owner)
	if err == nil && (s.Kind != table.AccountRefolding || s.RefoldCount != r.round) {
		err = errFenced
	}
	return s, err
}

// runTransaction runs f in a transaction that fails if this instance no longer owns the generation. f reports whether it
// deleted personal data, which is then scrubbed from the database's files.
func (r *refold) runTransaction(ctx context.Context, f func(context.Context, *sqldb.Tx) (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	needsScrub := false
	err := r.lease.db.RunInTx(ctx, func(tx *sqldb.Tx) (err error) {
		if err = r.lease.lockCheckpoint(ctx, tx); err == nil {
			needsScrub, err = f(ctx, tx)
		}
		return err
	})
	if err == nil && needsScrub {
		err = r.startScrub(ctx)
	}
	return err
}

// readCorrections reads which events are voided by the corrections up to bound. again is true if there are new ones after
// rows were written: those rows may contain an event that is now void, and must be dropped.
func (r *refold) readCorrections(ctx context.Context, bound eventstore.Position) (again bool, err error) {
	found := map[voidedEvent]bool{}
	for _, stream := range table.OwnerStreams(r.owner, r.model.Categories()) {
		for e, err := range r.store.ReadStream(ctx, stream, 0, eventstore.Forward) {
			if err != nil {
				return false, fmt.Errorf("read %s: %w", stream, err)
			}
			if e.Position > bound {
				break
			}
			if revision, ok := eventstore.VoidedRevision(e); ok {
				found[voidedEvent{stream, revision}] = true
			}
		}
	}
	again = r.writtenTo > 0 && len(found) > len(r.voided)
	r.voided = found
	return again, nil
}

// writeRows folds the account's events after writtenTo up to bound into its rows. stop is the event that stops the account
// again, or nil.
func (r *refold) writeRows(ctx context.Context, bound eventstore.Position) (stop *decodedEvent, err error) {
	for chunk, err := range r.readChunks(ctx, bound) {
		if err != nil {
			return nil, err
		}
		decoded, err := r.model.decodeEvents(ctx, r.codec, chunk)
		if err != nil {
			return nil, err
		}
		for p := range splitBatch(feed.Batch{Events: chunk}, decoded) {
			if p.decoded, err = r.model.expandCommits(ctx, r.worker, p.decoded); err != nil {
				return nil, err
			}
			kept, stop := eventsBeforeStop(p.decoded)
			err := r.runTransaction(ctx, func(ctx context.Context, tx *sqldb.Tx) (bool, error) {
				if _, err := r.currentStatus(ctx, tx); err != nil {
					return false, err
				}
				rows, err := r.model.foldEvents(ctx, tx, kept, map[string]bool{r.owner: len(r.voided) > 0})
				if err != nil {
					return false, err
				}
				return rows.needsScrub, rows.flush(ctx, tx)
			})
			if stop != nil || err != nil {
				return stop, err
			}
		}
	}
	r.writtenTo = bound
	return nil, nil
}

// eventsBeforeStop returns the events to fold before the first one that stops the account, and that one, or nil.
func eventsBeforeStop(decoded []decodedEvent) (kept []decodedEvent, stop *decodedEvent) {
	for i, f := range decoded {
		switch {
		case f.stopErr != nil:
			return kept, &decoded[i]
		case !f.isEmptyCommit:
			kept = append(kept, f)
		}
	}
	return kept, nil
}

// readChunks yields the account's events after writtenTo up to bound in the order of the log, without voided ones, in chunks
// for one transaction each.
func (r *refold) readChunks(ctx context.Context, bound eventstore.Position) iter.Seq2[[]eventstore.RecordedEvent, error] {
	return func(yield func([]eventstore.RecordedEvent, error) bool) {
		var chunk []eventstore.RecordedEvent
		bytes := 0
		for e, err := range r.mergeStreams(ctx) {
			if err != nil {
				yield(nil, err)
				return
			}
			if e.Position <= r.writtenTo || e.Position > bound || r.voided[voidedEvent{e.Stream, e.Revision}] {
				continue
			}
			chunk, bytes = append(chunk, e), bytes+len(e.Data)
			if len(chunk) < refoldBatch && bytes < refoldBytes {
				continue
			}
			if !yield(chunk, nil) {
				return
			}
			chunk, bytes = nil, 0
		}
		if len(chunk) > 0 {
			yield(chunk, nil)
		}
	}
}

// mergeStreams yields the events of all streams of the account in the order of the log.
func (r *refold) mergeStreams(ctx context.Context) iter.Seq2[eventstore.RecordedEvent, error] {
	return func(yield func(eventstore.RecordedEvent, error) bool) {
		var heads []*streamHead
		for _, stream := range table.OwnerStreams(r.owner, r.model.Categories()) {
			next, stop := iter.Pull2(r.store.ReadStream(ctx, stream, 0, eventstore.Forward))
			defer stop()
			h := &streamHead{next: next}
			h.advance()
			heads = append(heads, h)
		}
		for {
			first := (*streamHead)(nil)
			for _, h := range heads {
				if h.err != nil {
					yield(eventstore.RecordedEvent{}, h.err)
					return
				}
				if h.hasEvent && (first == nil || h.event.Position < first.event.Position) {
					first = h
				}
			}
			if first == nil || !yield(first.event, nil) {
				return
			}
			first.advance()
		}
	}
}

// streamHead is the next event of a stream, for mergeStreams.
type streamHead struct {
	next     func() (eventstore.RecordedEvent, error, bool)
	event    eventstore.RecordedEvent
	err      error
	hasEvent bool
}

// advance reads the next event. At the end of the stream hasEvent is false.
func (h *streamHead) advance() { h.event, h.err, h.hasEvent = h.next() }

// finish lets the account run again, or stops it again because of the event stop. done is false if the batches have skipped
// more of its events than writeRows has read, or if a correction after bound may void stop: then the refold runs again. An
// account that is stopped again keeps no rows: its erasure may be among the skipped events.
func (r *refold) finish(ctx context.Context, bound eventstore.Position, stop *decodedEvent) (done bool, err error) {
	err = r.runTransaction(ctx, func(ctx context.Context, tx *sqldb.Tx) (needsScrub bool, err error) {
		s, err := r.currentStatus(ctx, tx)
		switch {
		case err != nil, stop == nil && s.LastSkipped > int64(r.writtenTo), stop != nil && s.Position > int64(bound):
			return false, err
		case stop != nil:
			s = stop.nextStatus(s)
			needsScrub, err = r.dropRows(ctx, tx)
		default:
			s = table.AccountStatus{Account: r.owner, RefoldCount: s.RefoldCount, VoidedEvents: int64(len(r.voided)), FirstEmptyCommit: s.FirstEmptyCommit}
		}
		if err != nil {
			return false, err
		}
		done, r.status = true, s
		return needsScrub, sqldb.Upsert(ctx, tx, table.AccountStatuses, []table.AccountStatus{s})
	})
	if !done || err != nil {
		return false, err
	}
	if r.status.IsStopped() {
		r.log.Error("account stopped again", "account", r.owner, "kind", r.status.Kind, "position", r.status.Position, "reason", r.status.Reason)
	} else {
		r.log.Info("account's rows were written again", "account", r.owner)
	}
	return true, nil
}

// Refold requests that the rows of stopped accounts be rewritten from their streams, in every generation that has stopped
// them. It does not wait for that. An account whose streams still hold an unusable event is stopped again. If a model says so
// (Model.NeedsRebuild), a new generation is built instead.
func (p *Projector) Refold(ctx context.Context, accounts ...string) error {
	rebuilt := map[string]bool{}
	return p.eachGeneration(ctx, func(g sqldb.Generation, db *sqldb.DB) error {
		refolded, rebuilds, err := p.divideRefold(ctx, g, db, accounts)
		if err == nil && rebuilds && !rebuilt[g.Model] {
			rebuilt[g.Model] = true
			_, err = p.Rebuild(ctx, g.Model)
		}
		if err == nil {
			err = requestRefold(ctx, db, refolded)
		}
		if err != nil {
			return err
		}
		if w := p.workerOf(g.Name); w != nil {
			wake(w.refoldWake)
		}
		return nil
	})
}

// divideRefold returns the accounts that a refold is enough for, and whether others that are stopped need a new generation.
func (p *Projector) divideRefold(ctx context.Context, g sqldb.Generation, db *sqldb.DB, accounts []string) (refolded []string, rebuilds bool, err error) {
	m, err := p.modelNamed(g.Model)
	if err != nil || m.NeedsRebuild == nil {
		return accounts, false, err
	}
	for _, account := range accounts {
		needsRebuild, err := m.NeedsRebuild(ctx, db, account)
		switch s, statusErr := sqldb.LoadAccountStatus(ctx, db, account); {
		case errors.Join(err, statusErr) != nil:
			return nil, false, errors.Join(err, statusErr)
		case !needsRebuild:
			refolded = append(refolded, account)
		case s.IsStopped():
			rebuilds = true
		}
	}
	return refolded, rebuilds, nil
}

// requestRefold marks the accounts in a transaction that first locks the checkpoint row, as every batch does: otherwise a
// batch that is being written would restore the status that it had read before. A refold in progress may have met the fault
// before the repair: it counts as an older round, and ends.
func requestRefold(ctx context.Context, db *sqldb.DB, accounts []string) error {
	return db.RunInTx(ctx, func(tx *sqldb.Tx) error {
		if _, err := tx.Exec(ctx, "update {checkpoint} set owner = owner"); err != nil {
			return err
		}
		for _, account := range accounts {
			if _, err := tx.Exec(ctx, "update {account_status} set kind = ?, refolds = refolds + 1 where account = ? and kind <> ''", table.AccountRefolding, account); err != nil {
				return err
			}
		}
		return nil
	})
}
