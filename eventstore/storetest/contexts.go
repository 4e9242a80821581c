package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"runtime/pprof"
	"strings"
	"time"

	"github.com/google/uuid"

	"lieudit/eventstore"
	"lieudit/eventstore/deadlinetest"
)

// cancelLimit is how long a call may take to notice the end of its context on a machine that is busy with other tests.
func cancelLimit() time.Duration { return deadlinetest.Scale(2 * time.Second) }

// contextRules are about calls whose context ends: they return promptly, call an append unknown that may have been made, and
// leave nothing running.
func contextRules() []rule {
	return []rule{
		{name: "a call whose context is over ends with the context's error", check: overAlready},
		{name: "an append cut short is unknown and sending it again settles it", check: cutShort},
		{name: "a read cut short ends with the context's error, promptly", check: readCutShort},
		{name: "a waiting subscription ends with the context's error, promptly", check: waitCutShort},
		{name: "calls that end, stop early or are cut short leave no goroutine", check: leavesNoGoroutine},
	}
}

// overAlready makes each call with a context that was cancelled before. The append may or may not have been made.
func overAlready(ctx context.Context, l *storeUnderTest) error {
	stream := newCategory() + "-1"
	held, err := l.appendEvents(ctx, stream, 3)
	if err != nil {
		return err
	}
	over, cancel := context.WithCancel(ctx)
	cancel()
	_, err = l.Append(over, stream, eventstore.Any, newEvents(1))
	if err := errors.Join(checkErrorIs("append", err, context.Canceled), checkErrorIs("append", err, eventstore.ErrUnknown)); err != nil {
		return err
	}
	_, err = collect(l.ReadStream(over, stream, 0, eventstore.Forward))
	if err := checkErrorIs("read of a stream", err, context.Canceled); err != nil {
		return err
	}
	_, err = collect(l.ReadAll(over, eventstore.Checkpoint{}, nil))
	if err := checkErrorIs("read of the log", err, context.Canceled); err != nil {
		return err
	}
	_, err = collect(l.Subscribe(over, eventstore.Checkpoint{}, nil))
	if err := checkErrorIs("subscription", err, context.Canceled); err != nil {
		return err
	}
	got, err := l.readStream(ctx, stream)
	if err != nil || len(got) > len(held)+1 {
		return fmt.Errorf("the stream holds %d events (%v), want %d or one more", len(got), err, len(held))
	}
	return nil
}

// cutShort has eight writers append to streams of their own with contexts that end at random moments, and repeat each append
// until its outcome is known. Every batch must be there once.
func cutShort(ctx context.Context, l *storeUnderTest) error {
	return runParallel(8, func(i int) error {
		stream := newCategory() + "-1"
		var all []eventstore.ProposedEvent
		for range 25 {
			batch := newEvents(1 + rand.IntN(3))
			expected := eventstore.Revision(len(all) - 1)
			if i%2 == 0 {
				expected = eventstore.Any
			}
			if err := l.appendCutShort(ctx, stream, expected, batch); err != nil {
				return err
			}
			all = append(all, batch...)
		}
		return l.checkStream(ctx, stream, all)
	})
}

// appendCutShort appends a batch with a context that ends at a random moment, then the same batch until the outcome is known.
// The first three contexts end within 2 ms, about as long as an append takes; later ones leave it enough time.
func (l *storeUnderTest) appendCutShort(ctx context.Context, stream string, expected eventstore.Revision, batch []eventstore.ProposedEvent) error {
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

// checkEndsPromptly cancels the context once ready is true. It fails unless the sequence then ends soon, with the context's
// error.
func checkEndsPromptly(ctx context.Context, read func(context.Context) iter.Seq2[eventstore.Signal, error], ready func(eventstore.Signal) bool) error {
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
	if took := time.Since(cancelled); took > cancelLimit() {
		return fmt.Errorf("ended %v after its context", took)
	}
	return checkErrorIs("sequence whose context was cancelled", last, context.Canceled)
}

// readCutShort cancels a read at its first event, of the log and of the stream. Eight appends of MaxAppendBytes are behind
// that event, more than a store reads ahead.
func readCutShort(ctx context.Context, l *storeUnderTest) error {
	from, err := l.appendCheckpoint(ctx)
	if err != nil {
		return err
	}
	c := newCategory()
	for i := range 8 {
		if _, err := l.Append(ctx, c+"-1", eventstore.Revision(40*i-1), eventsOfSize(40, eventstore.MaxAppendBytes)); err != nil {
			return err
		}
	}
	first := func(eventstore.Signal) bool { return true }
	return errors.Join(
		checkEndsPromptly(ctx, func(ctx context.Context) iter.Seq2[eventstore.Signal, error] {
			return l.ReadAll(ctx, from, eventstore.Filter{c})
		}, first),
		checkEndsPromptly(ctx, func(ctx context.Context) iter.Seq2[eventstore.Signal, error] {
			return asSignals(l.ReadStream(ctx, c+"-1", 0, eventstore.Forward))
		}, first),
	)
}

// asSignals makes signals of a stream's events.
func asSignals(seq iter.Seq2[eventstore.RecordedEvent, error]) iter.Seq2[eventstore.Signal, error] {
	return func(yield func(eventstore.Signal, error) bool) {
		for e, err := range seq {
			if !yield(eventstore.Signal{Event: e}, err) {
				return
			}
		}
	}
}

// waitCutShort cancels a subscription at its CaughtUp, when it waits for new events.
func waitCutShort(ctx context.Context, l *storeUnderTest) error {
	from, err := l.appendCheckpoint(ctx)
	if err != nil {
		return err
	}
	return checkEndsPromptly(ctx, func(ctx context.Context) iter.Seq2[eventstore.Signal, error] {
		return l.Subscribe(ctx, from, eventstore.Filter{newCategory()})
	}, func(s eventstore.Signal) bool { return s.Kind == eventstore.CaughtUp })
}

// leavesNoGoroutine runs the checks of other rules that stop calls early or cut them short, and looks at the goroutines that
// are left.
func leavesNoGoroutine(ctx context.Context, l *storeUnderTest) error {
	if err := pastThenLive(ctx, l); err != nil { // goroutines that the store starts once exist from now on
		return err
	}
	return checkNoGoroutineLeft(ctx, func(ctx context.Context) error {
		for _, check := range []func(context.Context, *storeUnderTest) error{stopsAnywhere, stopsReadingAnywhere, pastThenLive, waitCutShort, cutShort, otherEvent} {
			if err := check(ctx, l); err != nil {
				return err
			}
		}
		return nil
	})
}

// checkNoGoroutineLeft runs do and fails when goroutines that it started do not end. It tells them from those of other tests
// by a profiler label, which goroutines inherit.
func checkNoGoroutineLeft(ctx context.Context, do func(context.Context) error) error {
	id := uuid.NewString()
	var failed error
	pprof.Do(ctx, pprof.Labels("storetest", id), func(ctx context.Context) { failed = do(ctx) })
	if failed != nil {
		return failed
	}
	deadline := time.Now().Add(cancelLimit())
	for {
		left := goroutinesLabelled(id)
		if left == "" {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("goroutines left behind:\n%s", left)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// goroutinesLabelled returns the stacks in the goroutine profile that carry the label.
func goroutinesLabelled(id string) string {
	var profile bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&profile, 1); err != nil {
		return err.Error()
	}
	var left []string
	for stack := range strings.SplitSeq(profile.String(), "\n\n") {
		if strings.Contains(stack, id) {
			left = append(left, stack)
		}
	}
	return strings.Join(left, "\n\n")
}
