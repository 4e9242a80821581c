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
// Every step is a transaction of its own that only the owner of the copy can make. The account stays stopped until the
// last one, so nobody sees rows that are half there, and one that is cut begins anew.
type refold struct {
	*lane
	owner  string
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
		if l.now().owns {
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

func (l *lane) mendAll(ctx context.Context) error {
	due, err := table.Select(ctx, l.lease.db, table.AccountStatuses, "where kind = ? order by account", table.AccountRefolds)
	if err != nil {
		return nil // the lane says that the database is away
	}
	for _, s := range due {
		if err := (&refold{lane: l, owner: s.Account}).run(ctx); err != nil {
			return fmt.Errorf("%s: %w", s.Account, err)
		}
	}
	return nil
}

// run ends with the account running, or stopped again by what its streams still hold.
func (r *refold) run(ctx context.Context) error {
	if err := r.begin(ctx); err != nil {
		return err
	}
	for {
		bound, err := r.lane.lease.checkpoint(ctx)
		if err != nil {
			return err
		}
		again, err := r.correct(ctx, eventstore.Position(bound.Position))
		if err == nil && again {
			err = r.begin(ctx)
		}
		if err != nil {
			return err
		}
		stop, err := r.write(ctx, eventstore.Position(bound.Position))
		if err != nil {
			return err
		}
		if done, err := r.end(ctx, stop); done || err != nil {
			return err
		}
	}
}

// begin drops the rows.
func (r *refold) begin(ctx context.Context) error {
	r.read = 0
	b := newBatch()
	return r.transact(ctx, func(ctx context.Context, tx *table.Tx) (bool, error) {
		position := int64(0)
		if err := tx.QueryRow(ctx, "select position from checkpoint").Scan(&position); err != nil {
			return false, err
		}
		r.model.Drop(b, r.owner, eventstore.Position(position))
		return b.erases, b.flush(ctx, tx)
	})
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

// end lets the account run again, unless more of its events were passed over or one of its events stops it again.
func (r *refold) end(ctx context.Context, stop *fact) (done bool, err error) {
	err = r.transact(ctx, func(ctx context.Context, tx *table.Tx) (bool, error) {
		s, err := table.StatusOf(ctx, tx, r.owner)
		if err != nil || stop == nil && s.Passed > int64(r.read) {
			return false, err
		}
		done = true
		if s.Refolds++; stop != nil {
			s = stop.status(s)
		} else {
			s = table.AccountStatus{Account: r.owner, Refolds: s.Refolds, Voided: int64(len(r.voided)), Empty: s.Empty}
		}
		r.status = s
		return false, table.Upsert(ctx, tx, table.AccountStatuses, []table.AccountStatus{s})
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
		for _, account := range accounts {
			if _, err := db.Exec(ctx, "update account_status set kind = ? where account = ? and kind <> ''", table.AccountRefolds, account); err != nil {
				return err
			}
		}
		if l := p.laneOf(c.Name); l != nil {
			wake(l.mending)
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
