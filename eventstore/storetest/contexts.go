package storetest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"time"

	"lieudit/eventstore"
	"lieudit/schemas/deadlinetest"
)

// promptly is what a call may take to notice the end of its context on a machine that is busy with other tests.
func promptly() time.Duration { return deadlinetest.Limit(2 * time.Second) }

func contexts() []rule {
	return []rule{
		{name: "a call whose context is over ends with the context's error", check: overAlready},
		{name: "an append cut short is unknown and sending it again settles it", check: cutShort},
		{name: "a read cut short ends with the context's error, promptly", check: readCutShort},
		{name: "a waiting subscription ends with the context's error, promptly", check: waitCutShort},
		{name: "calls that end, stop early or are cut short leave no goroutine", check: leavesNoGoroutine},
	}
}

func overAlready(ctx context.Context, l *log) error {
	stream := category() + "-1"
	held, err := l.fill(ctx, stream, 3)
	if err != nil {
		return err
	}
	over, cancel := context.WithCancel(ctx)
	cancel()
	_, err = l.Append(over, stream, eventstore.Any, events(1))
	if err := errors.Join(want("append", err, context.Canceled), want("append", err, eventstore.ErrUnknown)); err != nil {
		return err
	}
	_, err = collect(l.ReadStream(over, stream, 0, eventstore.Forward))
	if err := want("read of a stream", err, context.Canceled); err != nil {
		return err
	}
	_, err = collect(l.ReadAll(over, eventstore.Mark{}, nil))
	if err := want("read of the log", err, context.Canceled); err != nil {
		return err
	}
	_, err = collect(l.Subscribe(over, eventstore.Mark{}, nil))
	if err := want("subscription", err, context.Canceled); err != nil {
		return err
	}
	got, err := l.stream(ctx, stream)
	if err != nil || len(got) > len(held)+1 {
		return fmt.Errorf("the stream holds %d events (%v), want %d or one more", len(got), err, len(held))
	}
	return nil
}

func cutShort(ctx context.Context, l *log) error {
	return parallel(8, func(i int) error {
		stream := category() + "-1"
		var all []eventstore.Proposed
		for range 25 {
			batch := events(1 + rand.IntN(3))
			expected := eventstore.Revision(len(all) - 1)
			if i%2 == 0 {
				expected = eventstore.Any
			}
			if err := l.settle(ctx, stream, expected, batch); err != nil {
				return err
			}
			all = append(all, batch...)
		}
		return l.holds(ctx, stream, all)
	})
}

// settle sends a batch with a context that ends at a bad moment, then the same batch until its fate is known.
func (l *log) settle(ctx context.Context, stream string, expected eventstore.Revision, batch []eventstore.Proposed) error {
	for try := 0; ; try++ {
		limit := time.Duration(rand.IntN(2000)) * time.Microsecond
		if try > 2 {
			limit = time.Minute
		}
		short, cancel := context.WithTimeout(ctx, limit)
		_, err := l.Append(short, stream, expected, batch)
		cancel()
		if err == nil || ctx.Err() != nil {
			return err
		}
		if !errors.Is(err, eventstore.ErrUnknown) {
			return fmt.Errorf("append cut short, try %d: got error %v, want it unknown", try, err)
		}
	}
}

// endsPromptly cancels once ready says so and wants the sequence to end soon with the context's error.
func endsPromptly(ctx context.Context, read func(context.Context) iter.Seq2[eventstore.Signal, error], ready func(eventstore.Signal) bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var cancelled time.Time
	var last error
	for s, err := range read(ctx) {
		last = err
		if err == nil && cancelled.IsZero() && ready(s) {
			cancelled = time.Now()
			cancel()
		}
	}
	if took := time.Since(cancelled); took > promptly() {
		return fmt.Errorf("ended %v after its context", took)
	}
	return want("sequence whose context was cancelled", last, context.Canceled)
}

func readCutShort(ctx context.Context, l *log) error {
	from, err := l.here(ctx)
	if err != nil {
		return err
	}
	c := category()
	for i := range 8 {
		if _, err := l.Append(ctx, c+"-1", eventstore.Revision(40*i-1), sized(40, eventstore.MaxAppend)); err != nil {
			return err
		}
	}
	first := func(eventstore.Signal) bool { return true }
	return errors.Join(
		endsPromptly(ctx, func(ctx context.Context) iter.Seq2[eventstore.Signal, error] {
			return l.ReadAll(ctx, from, eventstore.Filter{c})
		}, first),
		endsPromptly(ctx, func(ctx context.Context) iter.Seq2[eventstore.Signal, error] {
			return signals(l.ReadStream(ctx, c+"-1", 0, eventstore.Forward))
		}, first),
	)
}

// signals is a stream's events as a reader of the log would be told them.
func signals(seq iter.Seq2[eventstore.Recorded, error]) iter.Seq2[eventstore.Signal, error] {
	return func(yield func(eventstore.Signal, error) bool) {
		for e, err := range seq {
			if !yield(eventstore.Signal{Event: e}, err) {
				return
			}
		}
	}
}

func waitCutShort(ctx context.Context, l *log) error {
	from, err := l.here(ctx)
	if err != nil {
		return err
	}
	return endsPromptly(ctx, func(ctx context.Context) iter.Seq2[eventstore.Signal, error] {
		return l.Subscribe(ctx, from, eventstore.Filter{category()})
	}, func(s eventstore.Signal) bool { return s.Kind == eventstore.CaughtUp })
}

func leavesNoGoroutine(ctx context.Context, l *log) error {
	if err := pastThenLive(ctx, l); err != nil { // whatever the store sets up once is set up by now
		return err
	}
	return leftBehind(ctx, func(ctx context.Context) error {
		for _, check := range []func(context.Context, *log) error{stopsAnywhere, stopsReadingAnywhere, pastThenLive, waitCutShort, cutShort, otherEvent} {
			if err := check(ctx, l); err != nil {
				return err
			}
		}
		return nil
	})
}
