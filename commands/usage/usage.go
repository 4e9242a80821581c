// Package usage admits requests and bills them by one and the same event: a tick in the stream of the contract's
// period. Ticks are appended whatever the stream holds, and whether one counts is what the fold of the stream up to it says
// (schemas/ledger); so any number of instances share a cap exactly, without a lease, a lock or a conflict. Requests
// that wait while an append is on its way share the next tick. What became of an append is always found out
// before the next one of the same stream, however long the log takes; each request waits only its own time, and what
// is counted for one that left without an answer is refunded.
package usage

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"lieudit/eventstore"
	"lieudit/eventstore/waiting"
	"lieudit/schemas/event"
	"lieudit/schemas/grant"
)

var (
	// ErrRevoked: the key, its account or the account's agency ended a moment ago.
	ErrRevoked = errors.New("key or account has ended")
	// ErrUnavailable: it could not be counted, so it must not be served.
	ErrUnavailable = errors.New("usage cannot be counted")
)

// SpentError says that the requests of the period are used up.
type SpentError struct{ Limit int64 }

func (e *SpentError) Error() string {
	return fmt.Sprintf("all %d requests of the period are used", e.Limit)
}

// Terms are what accounts may use, as their own streams say.
type Terms interface {
	// Volume is an account's own monthly requests at an instant, and the position of the last event of its stream.
	Volume(ctx context.Context, account string, at time.Time) (requests int64, asOf eventstore.Position, err error)
}

// Ledger counts the requests of one instance. It is safe for concurrent use; Run must be running.
type Ledger struct {
	store       eventstore.Store
	codec       *eventstore.Codec
	terms       Terms
	clock       func() time.Time
	log         *slog.Logger
	incarnation uuid.UUID
	sequence    atomic.Int64 // of what the incarnation says, in all streams: never used twice, whatever becomes of a log

	room     *waiting.Room
	epoch    time.Time    // what troubled counts from
	troubled atomic.Int64 // since when the log does not answer; 0: it does
	waiters  sync.Pool
	tasks    tasks

	failing   atomic.Bool  // since the last flight that did not
	events    atomic.Int64 // that were appended
	requests  atomic.Int64 // that were counted
	contracts sync.Map     // id -> *contract
	idle      chan *book   // to the workers that have none
	idlers    atomic.Int32
	serving   context.Context // ends when no request comes any more
	close     context.CancelFunc
	life      context.Context
	end       context.CancelFunc
	flights   sync.WaitGroup
}

// New is the ledger of an instance that has just begun, over the log that holds the ticks.
func New(store eventstore.Store, codec *eventstore.Codec, terms Terms, clock func() time.Time, log *slog.Logger) *Ledger {
	l := &Ledger{
		store: store, codec: codec, terms: terms, clock: clock, log: log, incarnation: uuid.New(),
		room: waiting.NewRoom(waiting.Places), epoch: time.Now().Add(-time.Hour),
		waiters: sync.Pool{New: func() any { return newWaiter() }}, tasks: tasks{running: map[string]*task{}},
	}
	l.idle = make(chan *book)
	l.serving, l.close = context.WithCancel(context.Background())
	l.life, l.end = context.WithCancel(context.Background())
	return l
}

// WaitIn has requests wait in a room that others use too, instead of one of the ledger's own. Nothing may have been
// asked of the ledger yet.
func (l *Ledger) WaitIn(room *waiting.Room) { l.room = room }

// Written is how many events this instance has written to count, and how many requests it has counted, since it began.
func (l *Ledger) Written() (events, requests int64) { return l.events.Load(), l.requests.Load() }

// Admit says whether a request would count as things stand, and counts nothing. It is never refused on what an
// instance merely remembers.
func (l *Ledger) Admit(ctx context.Context, g grant.Grant, endpoint string) error {
	_, err := l.pass(ctx, g, endpoint, func(b *book, e entry, came time.Time) (entry, error) {
		if b.hasRoom(e) {
			return e, nil
		}
		return b.pass(ctx, probe, e, came)
	})
	return err
}

// Spending is how much of a quota is used.
type Spending struct {
	Used, Limit int64
	Position    eventstore.Position // of the last event that was folded to know

	counted Receipt // the request it was asked with; zero: none was counted
}

// TakeBack refunds the request that was counted last. It returns when that is durable; where it fails, it is tried on
// behind.
func (s Spending) TakeBack(ctx context.Context) error {
	if s.counted.book == nil {
		return nil
	}
	_, err := s.counted.book.pass(ctx, refund, s.counted.entry, time.Now())
	return err
}

// Count counts one request, durably, or says why it must not be served. The spending is its account's, this request
// and those before it included.
func (l *Ledger) Count(ctx context.Context, g grant.Grant, endpoint string) (Spending, error) {
	r, err := l.pass(ctx, g, endpoint, func(b *book, e entry, came time.Time) (entry, error) {
		return b.pass(ctx, charge, e, came)
	})
	if err != nil {
		return Spending{}, err
	}
	s := r.book.spending(g.Account)
	s.counted = r
	return s, nil
}

// Receipt is what was counted for one request that may still have to be refunded.
type Receipt struct {
	book  *book
	entry entry
}

// Hold is Count for a request whose work comes after. Keep or Refund has to be called once.
func (l *Ledger) Hold(ctx context.Context, g grant.Grant, endpoint string) (Receipt, error) {
	return l.pass(ctx, g, endpoint, func(b *book, e entry, came time.Time) (entry, error) {
		e, err := b.pass(ctx, charge, e, came)
		if err == nil {
			b.held.Add(1)
		}
		return e, err
	})
}

// Keep ends the hold: the request is answered, and stays counted.
func (r Receipt) Keep() { r.book.held.Add(-1) }

// Refund takes back what was counted. It returns when that is durable; where it fails, it is tried on behind.
func (r Receipt) Refund(ctx context.Context) error {
	_, err := r.book.pass(ctx, refund, r.entry, time.Now())
	r.Keep()
	return err
}

// maxTries is how many books a request may find ended: one closed, and one put away, are already unusual.
const maxTries = 5

// pass does something in the book of the grant's contract at this moment, and again in the next one when that has
// just ended. Books that go on ending are of a log that is being restored. A request waits once for all of it, from when
// it came.
func (l *Ledger) pass(ctx context.Context, g grant.Grant, endpoint string, do func(*book, entry, time.Time) (entry, error)) (Receipt, error) {
	came := time.Now()
	for tries := 1; ; tries++ {
		b, err := l.book(ctx, g, came)
		if err != nil {
			return Receipt{}, fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		e := entry{b.day(l.clock()), event.UsageCount{Account: g.Account, Key: g.Key, Endpoint: endpoint, Requests: 1}}
		if e, err = do(b, e, came); !errors.Is(err, errGone) {
			return Receipt{b, e}, err
		}
		if tries == maxTries || ctx.Err() != nil {
			return Receipt{}, fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
	}
}

// Spending is how much the grant's account has used of its quota in the period, by all that is on the log.
func (l *Ledger) Spending(ctx context.Context, g grant.Grant) (Spending, error) {
	came := time.Now()
	b, err := l.book(ctx, g, came)
	if err != nil {
		return Spending{}, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	_, err = b.pass(ctx, probe, entry{count: event.UsageCount{Account: g.Account, Key: g.Key}}, came)
	if spent := new(SpentError); err != nil && !errors.As(err, &spent) {
		return Spending{}, err
	}
	return b.spending(g.Account), nil
}
