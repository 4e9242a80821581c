package faults

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/google/uuid"

	"lieudit/eventstore"
)

// Log is one instance's view of a log, struck by its Injector. Closing it leaves the underlying log open.
type Log struct {
	ForgetIDs func() // makes the log forget the ids of events appended with Any; nil if it cannot

	inner    eventstore.Store
	part     string // CoreLog or UsageLog
	injector *Injector
	closing  context.Context // ends with Close
	close    context.CancelFunc

	mu   sync.Mutex
	sent map[uuid.UUID]bool // first ids of appends that were added while RepeatDropped struck
}

// NewLog puts faults in front of a log.
func NewLog(inner eventstore.Store, part string, injector *Injector) *Log {
	l := &Log{inner: inner, part: part, injector: injector, sent: map[uuid.UUID]bool{}}
	l.closing, l.close = context.WithCancel(context.Background())
	return l
}

// Close implements eventstore.Store.
func (l *Log) Close() error {
	l.close()
	return nil
}

// begin starts each call: it waits for its turn, and while the instance is paused or the log is silent, and fails if the log is unavailable.
func (l *Log) begin(ctx context.Context) error {
	if err := l.injector.awaitTurn(ctx); err != nil {
		return err
	}
	if err := l.awaitEnds(ctx, LogSilent); err != nil {
		return err
	}
	if l.injector.strikes(LogUnavailable, l.part) {
		return eventstore.ErrUnavailable
	}
	return nil
}

// awaitEnds waits until no fault of some kinds strikes any more, nor a pause of the instance. Close ends the wait.
func (l *Log) awaitEnds(ctx context.Context, kinds ...Kind) error {
	if ctx.Done() != nil { // otherwise a call of a dead instance must fail at once, see awaitContext
		waiting, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(l.closing, cancel)()
		ctx = waiting
	}
	var err error
	for _, kind := range kinds {
		for a := l.injector.find(kind, l.part); a != nil && err == nil; a = l.injector.find(kind, l.part) {
			err = l.injector.awaitEnd(ctx, a)
		}
	}
	if err == nil {
		err = l.injector.awaitPause(ctx)
	}
	if l.closing.Err() != nil {
		return eventstore.ErrClosed
	}
	return err
}

// Identity implements eventstore.Store.
func (l *Log) Identity(ctx context.Context) (uuid.UUID, error) {
	if err := l.begin(ctx); err != nil {
		return uuid.Nil, err
	}
	return l.inner.Identity(ctx)
}

// Health implements eventstore.Store.
func (l *Log) Health() error {
	if l.closing.Err() != nil {
		return eventstore.ErrClosed
	}
	if a := l.injector.find(LogSilent, l.part); a != nil {
		return &eventstore.StallError{Duration: time.Since(a.since)}
	}
	if l.injector.strikes(LogUnavailable, l.part) {
		return eventstore.ErrUnavailable
	}
	return l.inner.Health()
}

// Append implements eventstore.Store.
func (l *Log) Append(ctx context.Context, stream string, expected eventstore.Revision, events []eventstore.ProposedEvent) (eventstore.AppendResult, error) {
	if err := l.begin(ctx); err != nil {
		if errors.Is(err, eventstore.ErrUnavailable) || errors.Is(err, eventstore.ErrClosed) {
			return eventstore.AppendResult{}, err
		}
		return eventstore.AppendResult{}, fmt.Errorf("%w: %w", eventstore.ErrUnknown, err)
	}
	strikes := func(kind Kind) bool { return l.injector.findOf(kind, l.part, categoryOf(stream)) != nil }
	switch {
	case strikes(AppendRefused):
		return eventstore.AppendResult{}, eventstore.ErrUnavailable
	case strikes(AppendUnknownLost):
		return eventstore.AppendResult{}, eventstore.ErrUnknown
	case l.wasAdded(events) && strikes(RepeatDropped):
		err := l.injector.sleep(ctx, l.injector.randomDuration(2*time.Second))
		return eventstore.AppendResult{}, errors.Join(eventstore.ErrUnknown, err)
	case l.injector.killAt(DiesBeforeAppend, l.part, stream):
		return eventstore.AppendResult{}, errors.Join(eventstore.ErrUnknown, l.injector.awaitContext(ctx))
	case strikes(AppendLate):
		return l.appendLate(ctx, stream, expected, events)
	}
	made, err := l.inner.Append(ctx, stream, expected, events)
	if err != nil {
		return made, err
	}
	return made, l.loseAnswer(ctx, stream, expected, events)
}

// loseAnswer returns ErrUnknown if a fault strikes an append that was added.
func (l *Log) loseAnswer(ctx context.Context, stream string, expected eventstore.Revision, events []eventstore.ProposedEvent) error {
	strikes := func(kind Kind) bool { return l.injector.findOf(kind, l.part, categoryOf(stream)) != nil }
	switch {
	case l.injector.killAt(DiesAfterAppend, l.part, stream):
		return errors.Join(eventstore.ErrUnknown, l.injector.awaitContext(ctx))
	case l.ForgetIDs != nil && expected == eventstore.Any && strikes(IDsForgotten):
		l.ForgetIDs()
		return eventstore.ErrUnknown
	case strikes(RepeatDropped):
		l.noteAdded(events)
		return eventstore.ErrUnknown
	case strikes(AppendUnknownMade):
		return eventstore.ErrUnknown
	}
	return nil
}

// appendLate appends after a while, even if the caller has given up meanwhile; but not for a dead instance, half of whose requests were never
// sent.
func (l *Log) appendLate(ctx context.Context, stream string, expected eventstore.Revision, events []eventstore.ProposedEvent) (eventstore.AppendResult, error) {
	type outcome struct {
		made eventstore.AppendResult
		err  error
	}
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Second)
	done := make(chan outcome, 1) // the receiver may be gone
	delay := l.injector.randomDuration(3 * time.Second)
	go func() {
		defer cancel()
		var o outcome
		if o.err = l.injector.sleep(late, delay); o.err == nil {
			o.made, o.err = l.inner.Append(late, stream, expected, events)
		}
		if o.err != nil && late.Err() != nil {
			o.err = fmt.Errorf("%w: %w", eventstore.ErrUnknown, o.err)
		}
		done <- o
	}()
	select {
	case o := <-done:
		return o.made, o.err
	case <-ctx.Done():
		return eventstore.AppendResult{}, fmt.Errorf("%w: %w", eventstore.ErrUnknown, ctx.Err())
	}
}

// noteAdded and wasAdded remember the appends that were added but reported as unknown.
func (l *Log) noteAdded(events []eventstore.ProposedEvent) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(events) > 0 {
		l.sent[events[0].ID] = true
	}
}

func (l *Log) wasAdded(events []eventstore.ProposedEvent) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(events) > 0 && l.sent[events[0].ID]
}

// errCut is the error of a read that is cut short.
var errCut = fmt.Errorf("the read was cut short: %w", eventstore.ErrUnavailable)

// ReadStream implements eventstore.Store.
func (l *Log) ReadStream(ctx context.Context, stream string, from eventstore.Revision, dir eventstore.Direction) iter.Seq2[eventstore.RecordedEvent, error] {
	return func(yield func(eventstore.RecordedEvent, error) bool) {
		left, err := l.beginRead(ctx)
		if err != nil {
			yield(eventstore.RecordedEvent{}, err)
			return
		}
		rename := l.renaming()
		for e, err := range l.inner.ReadStream(ctx, stream, from, dir) {
			if left == 0 && err == nil {
				yield(eventstore.RecordedEvent{}, errCut)
				return
			}
			left--
			rename(&e)
			if !yield(e, err) {
				return
			}
		}
	}
}

// renaming returns a function that reads apply to each event: it renames events of a type that the instance lacks to an unknown type.
func (l *Log) renaming() func(*eventstore.RecordedEvent) {
	a := l.injector.findType(l.part)
	return func(e *eventstore.RecordedEvent) {
		if a != nil && e.Type == a.Of {
			e.Type += "-unknown"
		}
	}
}

// beginRead returns how many events a read may yield before it is cut; negative: all.
func (l *Log) beginRead(ctx context.Context) (limit int, err error) {
	if err := l.awaitEnds(ctx, ReadStalled); err != nil {
		return 0, err
	}
	if err := l.begin(ctx); err != nil {
		return 0, err
	}
	if l.injector.strikes(ReadCut, l.part) {
		return int(l.injector.randomDuration(5)), nil
	}
	return -1, nil
}

// ReadAll implements eventstore.Store.
func (l *Log) ReadAll(ctx context.Context, after eventstore.Checkpoint, filter eventstore.Filter) iter.Seq2[eventstore.Signal, error] {
	return func(yield func(eventstore.Signal, error) bool) {
		left, err := l.beginRead(ctx)
		if err != nil {
			yield(eventstore.Signal{}, err)
			return
		}
		rename := l.renaming()
		for s, err := range l.inner.ReadAll(ctx, after, filter) {
			if left == 0 && err == nil {
				yield(eventstore.Signal{}, errCut)
				return
			}
			left--
			rename(&s.Event)
			if !yield(s, err) {
				return
			}
		}
	}
}

// Subscribe implements eventstore.Store. It survives outages: all faults but one make it wait, without ending it.
func (l *Log) Subscribe(ctx context.Context, after eventstore.Checkpoint, filter eventstore.Filter) iter.Seq2[eventstore.Signal, error] {
	return func(yield func(eventstore.Signal, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(l.closing, cancel)()
		rename := l.renaming()
		for s, err := range l.inner.Subscribe(ctx, after, filter) {
			if err == nil {
				err = l.delaySignal(ctx)
			}
			if err == nil && l.injector.strikes(SubscriptionEnds, l.part) {
				err = &eventstore.CorruptError{Position: s.Checkpoint.Position, Reason: "wrong bytes were read"}
			}
			rename(&s.Event)
			if err != nil && l.closing.Err() != nil {
				err = eventstore.ErrClosed
			}
			if err != nil {
				yield(eventstore.Signal{}, err)
				return
			}
			if !yield(s, nil) {
				return
			}
			if s.Kind == eventstore.CaughtUp && l.injector.strikes(CaughtUpRepeated, l.part) && !yield(s, nil) {
				return
			}
		}
	}
}

// delaySignal waits, as long as faults want it to, before a signal is yielded.
func (l *Log) delaySignal(ctx context.Context) error {
	if l.injector.strikes(SubscriptionBehind, l.part) {
		if err := l.injector.sleep(ctx, l.injector.randomDuration(500*time.Millisecond)); err != nil {
			return err
		}
	}
	return l.awaitEnds(ctx, LogSilent, LogUnavailable)
}
