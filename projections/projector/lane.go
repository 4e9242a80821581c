package projector

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"lieudit/eventstore"
	"lieudit/eventstore/feed"
	"lieudit/schemas/table"
)

// lane is this instance's part in filling one copy: as its owner, or waiting to become it.
type lane struct {
	model      Model
	lease      lease
	store      eventstore.Store
	codec      *eventstore.Codec
	log        *slog.Logger
	logged     *loggedIncidents
	refoldWake chan struct{}               // wakes runRefolds: an account is to be refolded
	serve      func(context.Context) error // makes the copy answer, when it may; tried again until it does

	setAstray func(bool) // see astray.go
	isAstray  func() bool
	verify    func(context.Context)

	mu       sync.Mutex
	standing standing
}

// maxWrite is how long writing a batch may take: a database that does not answer is as good as away.
const maxWrite = 30 * time.Second

// standing is where a lane is.
type standing struct {
	reading bool   // it was the owner when it began, and has met no fence since
	owns    bool   // it was the owner a moment ago
	reason  string // why the copy cannot be filled, "" when it can
	mark    eventstore.Mark
	caught  time.Time     // when the owner had caught up, zero before
	changed chan struct{} // closed at the next change of any of these
}

func (l *lane) now() standing {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.standing
}

func (l *lane) set(change func(*standing)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(&l.standing)
	close(l.standing.changed)
	l.standing.changed = make(chan struct{})
}

func disown(s *standing) { s.reading, s.owns, s.caught = false, false, time.Time{} }

// from is the feed's question where to go on. It waits until this instance owns the copy.
func (l *lane) from(ctx context.Context) (eventstore.Mark, error) {
	for {
		l.set(disown)
		c, err := l.lease.claim(ctx)
		if err != nil {
			return eventstore.Mark{}, err
		}
		if c.Owner == l.lease.owner {
			return l.begin(ctx, c)
		}
		l.set(func(s *standing) { s.reason = c.Reason })
		l.verifyAgain(ctx, c)
		select {
		case <-ctx.Done():
			return eventstore.Mark{}, ctx.Err()
		case <-time.After(askEvery):
		}
	}
}

// begin goes on where the copy stands. An erasure that was cut between its rows and the files is finished first.
func (l *lane) begin(ctx context.Context, c table.Checkpoint) (eventstore.Mark, error) {
	mark, err := markOf(c)
	if err == nil && l.model.Personal {
		err = l.lease.db.Scrub(ctx)
	}
	if err == nil {
		l.set(func(s *standing) { s.reading, s.owns, s.mark, s.reason = true, true, mark, c.Reason })
	}
	return mark, err
}

// take is the handler: it writes a batch and its checkpoint.
func (l *lane) take(m *message.Message) error {
	b, ok := feed.BatchOf(m)
	if !ok {
		return errors.New("the message holds no batch")
	}
	ctx := m.Context()
	if err := l.apply(ctx, b); err != nil {
		if ctx.Err() == nil { // else this instance stops, and the lease is given back with the rest
			l.ended(err)
		}
		return err
	}
	if b.CaughtUp {
		l.serve(ctx)
	}
	return nil
}

func (l *lane) apply(ctx context.Context, b feed.Batch) error {
	if b.To == b.From && l.now().reason == "" {
		l.advanced(b)
		return nil
	}
	facts, err := l.model.facts(ctx, l.codec, b.Events)
	if err != nil {
		return err
	}
	for p := range parts(b, facts) {
		if p.facts, err = l.model.whole(ctx, l, p.facts); err != nil {
			return err
		}
		if err := l.write(ctx, p); err != nil {
			return err
		}
		l.advanced(p.Batch)
	}
	return nil
}

// write does what one transaction is to do.
func (l *lane) write(ctx context.Context, p part) error {
	ctx, cancel := context.WithTimeout(ctx, maxWrite)
	defer cancel()
	erases := false
	var filter *accountFilter
	err := l.lease.db.Tx(ctx, func(tx *table.Tx) error {
		if err := l.lease.advance(ctx, tx, p.Batch); err != nil {
			return err
		}
		var err error
		if filter, err = filterFacts(ctx, tx, p.facts); err != nil {
			return err
		}
		rows, err := l.model.fold(ctx, tx, filter.kept, filter.repaired)
		if err != nil {
			return err
		}
		filter.dropErased(l.model, rows)
		erases = rows.erases
		return rows.flush(ctx, tx)
	})
	if err != nil {
		return err
	}
	l.logAccounts(filter.toLog)
	if filter.needsRefold() {
		wake(l.refoldWake)
	}
	if erases {
		err = l.lease.db.Scrub(ctx)
	}
	return err
}

func (l *lane) advanced(b feed.Batch) {
	l.setAstray(false)
	if l.now().reason != "" {
		l.log.Info("projection goes on", "position", b.To.Position)
	}
	l.set(func(s *standing) {
		s.owns = s.owns || b.To != b.From // the fence let it pass
		s.mark, s.reason = b.To, ""
		if b.CaughtUp {
			s.caught = time.Now()
		}
	})
}

// ended notes why the copy cannot be filled now. The feed asks from again after a while.
func (l *lane) ended(err error) {
	l.set(disown)
	if errors.Is(err, errFenced) || errors.Is(err, context.Canceled) {
		return
	}
	reason := l.stopReason(err)
	if l.now().reason == "" { // one line an incident; the status has its latest reason
		l.log.Error("projection stopped", "reason", reason)
	}
	l.set(func(s *standing) { s.reason = reason })
	l.quit(reason)
}

// quit gives the lease back. Where that fails it runs out.
func (l *lane) quit(reason string) {
	ctx, cancel := context.WithTimeout(context.Background(), leaseFor/3)
	defer cancel()
	l.lease.release(ctx, reason)
}

// keep renews the lease for as long as the lane runs.
func (l *lane) keep(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(renewEvery):
		}
		if !l.now().reading {
			continue
		}
		held := l.lease.renew(ctx)
		l.set(func(s *standing) { s.owns = s.reading && held })
		if held {
			l.serve(ctx)
		}
	}
}
