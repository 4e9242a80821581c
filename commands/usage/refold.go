package usage

import (
	"bytes"
	"context"
	"fmt"
	"reflect"
	"strings"
	"time"

	"lieudit/eventstore"
	"lieudit/schemas/event"
	"lieudit/schemas/ledger"
)

// Refold is what the log itself says was counted, folded from its first event on.
type Refold struct {
	Streams      map[string]*Refolded
	Incarnations map[string]*Incarnation // those that have not ended in good order

	store  eventstore.Store
	period string
	ended  map[string]bool // incarnations that have said their last word: what is said again after it is a repeat
}

// Refolded is one stream, and where what it says of itself is not what its events come to.
type Refolded struct {
	ledger.Folding
	Revision eventstore.Revision // of the last event that was folded
	Closing  *event.UsageClosed  // what closed it; nil before
	Wrong    []Misstatement
}

// Misstatement is a balance or a closing that is not what the events before it come to.
type Misstatement struct {
	Revision eventstore.Revision
	Type     string
}

// Incarnation is an instance that has begun to count, and may have ended without having answered all it had counted.
type Incarnation struct {
	Started time.Time           // zero where its start is not told
	Last    map[string]LastTick // by stream: its last tick there, if that counts
}

// LastTick is when and for what an incarnation ticked last.
type LastTick struct {
	At   time.Time
	Tick event.UsageTicked
}

// Refold folds the periods whose first day begins so, all for "", as far as the log goes now.
func (l *Ledger) Refold(ctx context.Context, period string) (*Refold, error) {
	f := &Refold{Streams: map[string]*Refolded{}, Incarnations: map[string]*Incarnation{}, store: l.store, period: period, ended: map[string]bool{}}
	for s, err := range l.store.ReadAll(ctx, eventstore.Mark{}, eventstore.Filter{"usage", "incarnation"}) {
		if err == nil && s.Kind == eventstore.Event {
			err = f.take(ctx, s.Event)
		}
		if err != nil {
			return nil, fmt.Errorf("refold: %w", err)
		}
	}
	return f, nil
}

func (f *Refold) take(ctx context.Context, r eventstore.Recorded) error {
	e, err := event.Decode(r.Type, r.Data)
	if err != nil {
		return fmt.Errorf("%s@%d: %w", r.Stream, r.Revision, err)
	}
	switch e := e.(type) {
	case event.IncarnationStarted:
		if i := f.incarnation(e.Incarnation); i.Started.IsZero() {
			i.Started = r.Time
		}
		f.clear(e.Incarnation)
		return nil
	case event.IncarnationEnded: // the last thing it says
		f.ended[e.Incarnation] = true
		f.clear(e.Incarnation)
		return nil
	}
	if !strings.HasPrefix(firstDay(r.Stream), f.period) {
		return nil
	}
	s := f.stream(r.Stream)
	verdict, err := s.take(ctx, f.store, r, e)
	if tick, ok := e.(event.UsageTicked); ok && err == nil {
		f.incarnation(tick.Incarnation).note(r, tick, verdict)
		f.clear(tick.Incarnation)
	}
	return err
}

// clear forgets an incarnation that has ended in good order.
func (f *Refold) clear(incarnation string) {
	if f.ended[incarnation] {
		delete(f.Incarnations, incarnation)
	}
}

func (f *Refold) stream(name string) *Refolded {
	s := f.Streams[name]
	if s == nil {
		s = &Refolded{Folding: *ledger.NewFolding(), Revision: eventstore.NoStream}
		f.Streams[name] = s
	}
	return s
}

func (f *Refold) incarnation(id string) *Incarnation {
	i := f.Incarnations[id]
	if i == nil {
		i = &Incarnation{Last: map[string]LastTick{}}
		f.Incarnations[id] = i
	}
	return i
}

// note keeps a tick while it is the last. A repetition is not another tick.
func (i *Incarnation) note(r eventstore.Recorded, tick event.UsageTicked, v ledger.Verdict) {
	switch v {
	case ledger.Counts:
		i.Last[r.Stream] = LastTick{r.Time, tick}
	case ledger.Repeated:
	default:
		delete(i.Last, r.Stream)
	}
}

// firstDay is the end of a usage stream's name.
func firstDay(stream string) string { return stream[max(len(stream)-len(time.DateOnly), 0):] }

// take folds an event. What the stream says of itself there is compared with what it comes to.
func (s *Refolded) take(ctx context.Context, store eventstore.Store, r eventstore.Recorded, e event.Event) (ledger.Verdict, error) {
	right := true
	var err error
	switch e := e.(type) {
	case event.UsageBalanced:
		right, err = s.balances(ctx, store, r, e)
	case event.UsageClosed:
		c := s.Lines.Closing()
		if s.Opened() {
			s.Closing, right = &e, c.Total == e.Total && c.Lines == e.Lines && bytes.Equal(c.Digest, e.Digest)
		}
	}
	if !right {
		s.Wrong = append(s.Wrong, Misstatement{r.Revision, r.Type})
	}
	s.Revision = r.Revision
	return s.Apply(e, r.Time), err
}

// balances says whether a balance is that of the revision it is as of: with what came since it must be the book of now.
func (s *Refolded) balances(ctx context.Context, store eventstore.Store, r eventstore.Recorded, e event.UsageBalanced) (bool, error) {
	if e.AsOf < 0 || e.AsOf >= int64(r.Revision) || !s.Opened() && !s.Closed() {
		return false, nil
	}
	book := ledger.Resume(e)
	if from := eventstore.Revision(e.AsOf) + 1; from < r.Revision {
		for since, err := range store.ReadStream(ctx, r.Stream, from, eventstore.Forward) {
			if err != nil {
				return false, err
			}
			if since.Revision >= r.Revision {
				break
			}
			e, err := event.Decode(since.Type, since.Data)
			if err != nil {
				return false, err
			}
			book.Apply(e, since.Time)
		}
	}
	return reflect.DeepEqual(book.Balance(0), s.Balance(0)), nil
}

// Forward folds a stream on, up to a revision. It may have begun meanwhile.
func (f *Refold) Forward(ctx context.Context, stream string, to eventstore.Revision) error {
	from := eventstore.Revision(0)
	if s := f.Streams[stream]; s != nil {
		from = s.Revision + 1
	}
	for r, err := range f.store.ReadStream(ctx, stream, from, eventstore.Forward) {
		if err != nil {
			return fmt.Errorf("read %s: %w", stream, err)
		}
		if r.Revision > to {
			return nil
		}
		e, err := event.Decode(r.Type, r.Data)
		if err != nil {
			return fmt.Errorf("%s@%d: %w", stream, r.Revision, err)
		}
		if _, err := f.stream(stream).take(ctx, f.store, r, e); err != nil {
			return err
		}
	}
	return nil
}

// Incarnation is what this instance is called in all it says.
func (l *Ledger) Incarnation() string { return l.incarnation.String() }
