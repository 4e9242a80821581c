package usage

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"lieudit/eventstore"
	"lieudit/eventstore/waiting"
	"lieudit/schemas/event"
	"lieudit/schemas/ledger"
	"lieudit/schemas/plan"
)

// book is the ledger's own copy of one stream, with the requests that wait for it. Only a flight changes the fold;
// flights take turns.
type book struct {
	ledger *Ledger
	stream string
	period plan.Period
	queue  queue
	held   atomic.Int64 // receipts that may still be refunded
	used   atomic.Int64 // when it was last asked for, Unix seconds

	mu       sync.RWMutex // of what follows
	fold     *ledger.Book
	revision eventstore.Revision
	position eventstore.Position  // of the event at revision
	last     uuid.UUID            // its id, noEvent where it was not read; flights alone use it
	since    int                  // events since the last balance
	checked  map[string]time.Time // by account: when its cap was last looked up
	asked    batch                // what was frozen last
	told     bool                 // its tick was folded,
	came     ledger.Verdict       // and came to this
}

func (b *book) hasRoom(e entry) bool {
	b.mu.RLock()
	defer b.mu.RUnlock()
	_, v := b.fold.Room(e.count.Account, e.count.Key)
	return v == ledger.Counts
}

func (b *book) spending(account string) Spending {
	b.mu.RLock()
	defer b.mu.RUnlock()
	limit, _, _ := b.fold.Cap(account)
	return Spending{Used: b.fold.Used(account), Limit: limit, Position: b.position}
}

// day is the day a request made now is kept under. A clock that is off does not carry it out of its period.
func (b *book) day(now time.Time) plan.Date {
	switch {
	case now.Before(b.period.Start()):
		return b.period.First
	case now.Before(b.period.End()):
		return plan.DateOf(now)
	}
	return plan.DateOf(b.period.End().Add(-time.Nanosecond))
}

// forward folds what others, and this instance, have appended since. A stream that is not the one that was folded is
// errGone.
func (b *book) forward(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	for r, err := range func(yield func(eventstore.Recorded, error) bool) { b.readOn(ctx, yield) } {
		if err != nil {
			return fmt.Errorf("read %s: %w", b.stream, err)
		}
		if r.Revision != b.revision+1 {
			return fmt.Errorf("%w: %s goes on at %d after %d", errGone, b.stream, r.Revision, b.revision)
		}
		e, err := event.Decode(r.Type, r.Data)
		if err != nil {
			return fmt.Errorf("%s@%d: %w", r.Stream, r.Revision, err)
		}
		b.advance(e, r.Revision, r.Position, r.Time)
		b.last = r.ID
	}
	return nil
}

func (b *book) advance(e event.Event, at eventstore.Revision, position eventstore.Position, recorded time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	v := b.fold.Apply(e, recorded)
	b.revision, b.position = at, position
	b.since++
	switch e := e.(type) {
	case event.UsageTicked:
		b.note(e.Incarnation, e.Sequence, v)
	case event.UsageBalanced:
		b.since = 0
	}
}

// note keeps the first verdict on the last tick of this instance: a repetition changes nothing.
func (b *book) note(incarnation string, sequence int64, v ledger.Verdict) {
	if b.asked.charged == sequence && !b.told && incarnation == b.ledger.incarnation.String() {
		b.told, b.came = true, v
	}
}

// verdict is what the tick of a batch came to, once that is folded.
func (b *book) verdict(p batch) (ledger.Verdict, error) {
	switch {
	case p.charged == 0:
		return ledger.Counts, nil
	case !b.told:
		return 0, fmt.Errorf("%w: %s does not hold what was appended to it", errGone, b.stream)
	}
	return b.came, nil
}

// batch is events that are frozen: whatever becomes of an append, the very same bytes are sent again.
type batch struct {
	proposed []eventstore.Proposed
	events   []event.Event
	charged  int64 // sequence of the tick; 0: there is none
}

// freeze makes one append of a tick, refunds, and a balance when one is due.
func (b *book) freeze(ctx context.Context, counts []event.UsageCount, day plan.Date, refunds []event.UsageRefunded) (batch, error) {
	var p batch
	incarnation, name := b.ledger.incarnation.String(), b.ledger.sequence.Add(1)
	if len(counts) > 0 {
		limit, _, _ := b.fold.Cap(b.fold.Contract)
		p.charged = name
		p.events = append(p.events, event.UsageTicked{
			Incarnation: incarnation, Sequence: name, Day: day, Counts: counts,
			AsOf: int64(b.revision), Used: b.fold.Used(b.fold.Contract), Cap: limit,
		})
	}
	for _, r := range refunds {
		r.Incarnation, r.Sequence = incarnation, b.ledger.sequence.Add(1)
		p.events = append(p.events, r)
	}
	if b.since >= balanceEvery && b.fold.Opened() {
		p.events = append(p.events, b.fold.Balance(int64(b.revision)))
	}
	var err error
	p.proposed, err = b.ledger.encode(ctx, b.stream, strconv.FormatInt(name, 10), p.events...)
	b.asked, b.told = p, false
	return p, err
}

// balanceEvery is after how many events a balance is due: a reader that begins there reads hardly more than that.
const balanceEvery = 1000

// encode makes one append whose ids follow from this incarnation, the stream and a name.
func (l *Ledger) encode(ctx context.Context, stream, name string, events ...event.Event) ([]eventstore.Proposed, error) {
	id := uuid.NewSHA1(l.incarnation, []byte(stream+" "+name))
	return l.codec.Encode(ctx, stream, id, eventstore.Metadata{Actor: "system"}, events)
}

// readLimit ends a read that a server has forgotten. A log that is silent altogether is given up sooner by its store, and
// so is an append that got no answer.
const readLimit = waiting.Lost + waiting.Lost/2

// append appends a batch, and sends it again as long as its fate is not known and there is time.
func (l *Ledger) append(ctx context.Context, stream string, expected eventstore.Revision, batch []eventstore.Proposed) (eventstore.Committed, error) {
	unknown := false
	for pause := time.Millisecond; ; pause = min(2*pause, retryAfter) {
		done, err := l.store.Append(ctx, stream, expected, batch)
		unknown = unknown || errors.Is(err, eventstore.ErrUnknown)
		switch {
		case err == nil || !unknown || errors.Is(err, eventstore.ErrConflict):
			return done, err
		case !sleep(ctx, pause):
			return done, fmt.Errorf("%w: %w", eventstore.ErrUnknown, err)
		}
	}
}
