package projector

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"lieudit/eventstore"
	"lieudit/eventstore/feed"
	"lieudit/schemas/table"
)

// refold writes the rows of one stopped account again, from its streams, while the batches of the others go on:
//
//	drop the rows ──> read up to the checkpoint ──> write in parts ──> passed over more since? ──> it runs again
//	                          ^                                              │ yes
//	                          └──────────────────────────────────────────────┘
//
// Every step is a transaction of its own that only the owner of the copy can make, and only while no other refold of the
// account has begun: the copy may have had another owner in between. The account stays stopped until the last one, so
// nobody sees rows that are half there, and one that is cut begins anew.
type refold struct {
	*lane
	owner  string
	round  int64               // which refold of the account this is
	read   eventstore.Position // events up to here are in the rows
	voided map[voided]bool     // events that corrections name
	status table.AccountStatus // as the last transaction saw it
}

// voided is an event that a correction names.
type voided struct {
	stream   string
	revision eventstore.Revision
}

const (
	mendEvery   = time.Second // how often the owner looks for accounts to refold, unless it knows of one
	refoldBatch = 500         // events in one transaction
	refoldBytes = 4 << 20     // or so many bytes of them
)

// mend refolds the accounts that are to be refolded, whenever this instance owns the copy.
func (l *lane) mend(ctx context.Context) {
	told := ""
	for ctx.Err() == nil {
		if l.now().owns && !l.isAstray() {
			err := l.mendAll(ctx)
			if err != nil && ctx.Err() == nil && !errors.Is(err, errFenced) && told != err.Error() {
				told = err.Error()
				l.log.Warn("an account's rows cannot be written again yet", "reason", err)
			}
		}
		select {
		case <-ctx.Done():
		case <-l.mending:
		case <-time.After(mendEvery):
		}
	}
}

// mendAll refolds what is due. An account that cannot be refolded yet keeps none of the others waiting; the error is the
// first one's.
func (l *lane) mendAll(ctx context.Context) (first error) {
	due, err := table.Select(ctx, l.lease.db, table.AccountStatuses, "where kind = ? order by account", table.AccountRefolds)
	if err != nil {
		return nil // the lane says that the database is away
	}
	for _, s := range due {
		err := (&refold{lane: l, owner: s.Account}).run(ctx)
		if err != nil && first == nil {
			first = fmt.Errorf("%s: %w", s.Account, err)
		}
		if errors.Is(err, errFenced) || l.isAstray() || ctx.Err() != nil {
			break
		}
	}
	return first
}

// run ends with the account running, or stopped again by what its streams still hold.
func (r *refold) run(ctx context.Context) error {
	for begun := false; ; {
		bound, err := r.bound(ctx)
		if err != nil {
			return err
		}
		again, err := r.correct(ctx, bound)
		if err == nil && (again || !begun) {
			err = r.begin(ctx)
		}
		if err != nil {
			return err
		}
		stop, err := r.write(ctx, bound)
		if err != nil {
			return err
		}
		if done, err := r.end(ctx, bound, stop); done || err != nil {
			return err
		}
		begun = stop == nil
	}
}

// bound is how far the copy is. That has to be on the log: of an older copy that was restored, the streams lack events
// that the copy takes to be in the rows.
func (r *refold) bound(ctx context.Context) (eventstore.Position, error) {
	c, err := r.lane.lease.checkpoint(ctx)
	if err != nil {
		return 0, err
	}
	mark, err := markOf(c)
	if err != nil {
		return 0, err
	}
	for _, err := range r.store.ReadAll(ctx, mark, r.model.Categories) {
		var diverged *eventstore.DivergedError
		if errors.As(err, &diverged) {
			r.setAstray(true)
		}
		return mark.Position, err
	}
	return mark.Position, ctx.Err()
}

// begin drops the rows.
func (r *refold) begin(ctx context.Context) error {
	r.read = 0
	return r.transact(ctx, func(ctx context.Context, tx *table.Tx) (bool, error) {
		s, err := table.StatusOf(ctx, tx, r.owner)
		if err == nil && s.Kind != table.AccountRefolds {
			err = errFenced
		}
		if err != nil {
			return false, err
		}
		s.Refolds++
		r.round = s.Refolds
		if err := table.Upsert(ctx, tx, table.AccountStatuses, []table.AccountStatus{s}); err != nil {
			return false, err
		}
		return r.drop(ctx, tx)
	})
}

// drop takes the rows away, and says whether that took personal data away.
func (r *refold) drop(ctx context.Context, tx *table.Tx) (erases bool, err error) {
	position := int64(0)
	if err := tx.QueryRow(ctx, "select position from checkpoint").Scan(&position); err != nil {
		return false, err
	}
	b := newBatch()
	r.model.Drop(b, r.owner, eventstore.Position(position))
	return b.erases, b.flush(ctx, tx)
}

// current is the account's status in a transaction of this refold. It fails where another one has begun since.
func (r *refold) current(ctx context.Context, tx *table.Tx) (table.AccountStatus, error) {
	s, err := table.StatusOf(ctx, tx, r.owner)
	if err == nil && (s.Kind != table.AccountRefolds || s.Refolds != r.round) {
		err = errFenced
	}
	return s, err
}

// transact runs f in a transaction that fails where this instance does not own the copy any more. f says whether it
// took personal data away.
func (r *refold) transact(ctx context.Context, f func(context.Context, *table.Tx) (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, maxWrite)
	defer cancel()
	erases := false
	err := r.lease.db.Tx(ctx, func(tx *table.Tx) (err error) {
		if err = r.lease.hold(ctx, tx); err == nil {
			erases, err = f(ctx, tx)
		}
		return err
	})
	if err == nil && erases {
		err = r.lease.db.Scrub(ctx)
	}
	return err
}

// correct notes which events corrections up to a position name. It says whether one of them is in the rows already.
func (r *refold) correct(ctx context.Context, bound eventstore.Position) (again bool, err error) {
	found := map[voided]bool{}
	for _, stream := range table.StreamsOf(r.owner, r.model.Categories) {
		for e, err := range r.store.ReadStream(ctx, stream, 0, eventstore.Forward) {
			if err != nil {
				return false, fmt.Errorf("read %s: %w", stream, err)
			}
			if e.Position > bound {
				break
			}
			if revision, ok := eventstore.Corrects(e); ok {
				found[voided{stream, revision}] = true
			}
		}
	}
	again = r.read > 0 && len(found) > len(r.voided)
	r.voided = found
	return again, nil
}

// write folds the events after those that are in the rows, up to a position. stop is the fact that stops the account
// again, if there is one.
func (r *refold) write(ctx context.Context, bound eventstore.Position) (stop *fact, err error) {
	for chunk, err := range r.chunks(ctx, bound) {
		if err != nil {
			return nil, err
		}
		facts, err := r.model.facts(ctx, r.codec, chunk)
		if err != nil {
			return nil, err
		}
		for p := range parts(feed.Batch{Events: chunk}, facts) {
			if p.facts, err = r.model.whole(ctx, r.lane, p.facts); err != nil {
				return nil, err
			}
			kept, stop := usable(p.facts)
			err := r.transact(ctx, func(ctx context.Context, tx *table.Tx) (bool, error) {
				if _, err := r.current(ctx, tx); err != nil {
					return false, err
				}
				rows, err := r.model.fold(ctx, tx, kept, map[string]bool{r.owner: len(r.voided) > 0})
				if err != nil {
					return false, err
				}
				return rows.erases, rows.flush(ctx, tx)
			})
			if stop != nil || err != nil {
				return stop, err
			}
		}
	}
	r.read = bound
	return nil, nil
}

// usable are the facts before the first that stops the account.
func usable(facts []fact) (kept []fact, stop *fact) {
	for i, f := range facts {
		switch {
		case f.stop != nil:
			return kept, &facts[i]
		case !f.empty:
			kept = append(kept, f)
		}
	}
	return kept, nil
}

// chunks are the account's events after those that are in the rows, up to a position, without those that corrections
// name, in the order of the log.
func (r *refold) chunks(ctx context.Context, bound eventstore.Position) iter.Seq2[[]eventstore.Recorded, error] {
	return func(yield func([]eventstore.Recorded, error) bool) {
		var chunk []eventstore.Recorded
		bytes := 0
		for e, err := range r.merged(ctx) {
			if err != nil {
				yield(nil, err)
				return
			}
			if e.Position <= r.read || e.Position > bound || r.voided[voided{e.Stream, e.Revision}] {
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

// merged are the events of the account's streams in the order of the log.
func (r *refold) merged(ctx context.Context) iter.Seq2[eventstore.Recorded, error] {
	return func(yield func(eventstore.Recorded, error) bool) {
		var heads []*head
		for _, stream := range table.StreamsOf(r.owner, r.model.Categories) {
			next, stop := iter.Pull2(r.store.ReadStream(ctx, stream, 0, eventstore.Forward))
			defer stop()
			h := &head{next: next}
			h.advance()
			heads = append(heads, h)
		}
		for {
			first := (*head)(nil)
			for _, h := range heads {
				if h.err != nil {
					yield(eventstore.Recorded{}, h.err)
					return
				}
				if h.there && (first == nil || h.event.Position < first.event.Position) {
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

// head is the next event of a stream.
type head struct {
	next  func() (eventstore.Recorded, error, bool)
	event eventstore.Recorded
	err   error
	there bool
}

func (h *head) advance() { h.event, h.err, h.there = h.next() }

// end lets the account run again, unless more of its events were passed over or one of its events stops it again. A
// correction that came after the bound may name that very event: then it begins anew. Of an account that is stopped again no
// rows are left: its erasure may be among the events that are passed over.
func (r *refold) end(ctx context.Context, bound eventstore.Position, stop *fact) (done bool, err error) {
	err = r.transact(ctx, func(ctx context.Context, tx *table.Tx) (erases bool, err error) {
		s, err := r.current(ctx, tx)
		switch {
		case err != nil, stop == nil && s.Passed > int64(r.read), stop != nil && s.Position > int64(bound):
			return false, err
		case stop != nil:
			s = stop.status(s)
			erases, err = r.drop(ctx, tx)
		default:
			s = table.AccountStatus{Account: r.owner, Refolds: s.Refolds, Voided: int64(len(r.voided)), Empty: s.Empty}
		}
		if err != nil {
			return false, err
		}
		done, r.status = true, s
		return erases, table.Upsert(ctx, tx, table.AccountStatuses, []table.AccountStatus{s})
	})
	if !done || err != nil {
		return false, err
	}
	if r.status.Stopped() {
		r.log.Error("account stopped again", "account", r.owner, "kind", r.status.Kind, "position", r.status.Position, "reason", r.status.Reason)
	} else {
		r.log.Info("account's rows were written again", "account", r.owner)
	}
	return true, nil
}

// Refold has the rows of stopped accounts written again from their streams, in every copy that has stopped them. It
// returns when that is asked for; accounts that cannot be refolded are stopped again.
func (p *Projector) Refold(ctx context.Context, accounts ...string) error {
	return p.eachCopy(ctx, func(c table.Copy, db *table.DB) error {
		if err := askRefold(ctx, db, accounts); err != nil {
			return err
		}
		if l := p.laneOf(c.Name); l != nil {
			wake(l.mending)
		}
		return nil
	})
}

// askRefold marks the accounts in a transaction that takes the checkpoint first, as every batch does: one that is being
// written would else put back what it read of their status before.
func askRefold(ctx context.Context, db *table.DB, accounts []string) error {
	return db.Tx(ctx, func(tx *table.Tx) error {
		if _, err := tx.Exec(ctx, "update checkpoint set owner = owner"); err != nil {
			return err
		}
		for _, account := range accounts {
			if _, err := tx.Exec(ctx, "update account_status set kind = ? where account = ? and kind <> ''", table.AccountRefolds, account); err != nil {
				return err
			}
		}
		return nil
	})
}

// StoppedAccount is an account that a copy of a model has stopped, or of which it passed over an empty commit.
type StoppedAccount struct {
	Copy string
	table.AccountStatus
}

// maxStopped bounds what is told of one copy.
const maxStopped = 100

// StoppedAccounts tells which accounts the copies that are filled have stopped, at most 100 of a copy.
func (p *Projector) StoppedAccounts(ctx context.Context) (all []StoppedAccount, err error) {
	err = p.eachCopy(ctx, func(c table.Copy, db *table.DB) error {
		rows, err := table.Select(ctx, db, table.AccountStatuses, "where kind <> '' or empty <> 0 order by kind desc, account limit ?", maxStopped)
		for _, s := range rows {
			all = append(all, StoppedAccount{c.Name, s})
		}
		return err
	})
	return all, err
}

// eachCopy runs f on the copies of this binary's models that are filled.
func (p *Projector) eachCopy(ctx context.Context, f func(table.Copy, *table.DB) error) error {
	copies, err := p.shelf.Copies(ctx)
	if err != nil {
		return err
	}
	for _, c := range copies {
		m, unknown := p.model(c.Model)
		if unknown != nil || !c.Of(m.Model) || c.State != table.Serving && c.State != table.Building {
			continue
		}
		if err := p.onCopy(ctx, c, f); err != nil {
			return fmt.Errorf("%s: %w", c.Name, err)
		}
	}
	return nil
}

func (p *Projector) onCopy(ctx context.Context, c table.Copy, f func(table.Copy, *table.DB) error) error {
	db, release, err := p.shelf.Use(ctx, c)
	if err != nil {
		return err
	}
	defer release()
	return f(c, db)
}
