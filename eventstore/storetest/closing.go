package storetest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"lieudit/eventstore"
)

// closeRules are about Close, and about what a log that is opened again still knows.
func closeRules() []rule {
	return []rule{
		{name: "after Close every call is ErrClosed", check: failsOnceClosed, needsOwnStore: true},
		{name: "Close ends running calls and may be called among them", check: closeAmongCalls, needsOwnStore: true},
		{name: "Close may be called twice, and by many at once", check: closeTwice, needsOwnStore: true},
		{name: "a log opened again holds all it acknowledged, at the same positions", check: holdsAfterReopen, needsReopen: true},
		{name: "a log opened again recognises an append with an expected revision", check: recognisesAfterReopen, needsReopen: true},
		{name: "a log opened again has the same identity and checkpoints", check: sameAfterReopen, needsReopen: true},
	}
}

// failsOnceClosed closes a store and makes each call but Identity once.
func failsOnceClosed(ctx context.Context, l *storeUnderTest) error {
	if _, err := l.appendCheckpoint(ctx); err != nil {
		return err
	}
	if err := l.Close(); err != nil {
		return fmt.Errorf("close: %w", err)
	}
	_, err := l.Append(ctx, newCategory()+"-1", eventstore.Any, newEvents(1))
	if err := checkErrorIs("append", err, eventstore.ErrClosed); err != nil {
		return err
	}
	_, err = collect(l.ReadStream(ctx, newCategory()+"-1", 0, eventstore.Forward))
	if err := checkErrorIs("read of a stream", err, eventstore.ErrClosed); err != nil {
		return err
	}
	_, err = collect(l.ReadAll(ctx, eventstore.Checkpoint{}, nil))
	if err := checkErrorIs("read of the log", err, eventstore.ErrClosed); err != nil {
		return err
	}
	_, err = collect(l.Subscribe(ctx, eventstore.Checkpoint{}, nil))
	if err := checkErrorIs("subscription", err, eventstore.ErrClosed); err != nil {
		return err
	}
	return checkErrorIs("health", l.Health(), eventstore.ErrClosed)
}

// closeAmongCalls closes the store while 40 callers are calling, ten of each kind.
// closeAmongCalls closes a store while 40 goroutines call it, ten for each kind of call. All have to end soon, and with
// ErrClosed; an append may also be ErrUnknown.
func closeAmongCalls(ctx context.Context, l *storeUnderTest) error {
	from, err := l.appendCheckpoint(ctx)
	if err != nil {
		return err
	}
	running := make(chan struct{}, 40)
	ended := make(chan error, 1)
	go func() {
		ended <- runParallel(40, func(i int) error {
			return callUntilClosed(ctx, l, from, i, running)
		})
	}()
	for range 40 {
		select {
		case <-running:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if err := l.Close(); err != nil {
		return fmt.Errorf("close: %w", err)
	}
	select {
	case err := <-ended:
		return err
	case <-time.After(cancelLimit()):
		return errors.New("calls go on after Close")
	}
}

// callUntilClosed makes calls of kind i until one fails. The failure must be that the store was closed. It signals running
// once its first call has succeeded, or its subscription has caught up.
func callUntilClosed(ctx context.Context, l *storeUnderTest, from eventstore.Checkpoint, i int, running chan<- struct{}) error {
	stream := newCategory() + "-1"
	for n := 0; ; n++ {
		var err error
		switch i % 4 {
		case 0:
			_, err = l.Append(ctx, stream, eventstore.Any, newEvents(2))
		case 1:
			_, err = collect(l.ReadStream(ctx, stream, 0, eventstore.Forward))
		case 2:
			_, err = collect(l.ReadAll(ctx, from, eventstore.Filter{newCategory()}))
		case 3:
			if err = l.subscribeToEnd(ctx, from, running); err == nil {
				err = errors.New("a subscription ended without an error")
			}
		}
		if errors.Is(err, eventstore.ErrClosed) || i%4 == 0 && errors.Is(err, eventstore.ErrUnknown) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("call of kind %d among Close: %w", i%4, err)
		}
		if n == 0 {
			running <- struct{}{}
		}
	}
}

// subscribeToEnd subscribes until the subscription ends, and returns its error. It signals running at the first CaughtUp.
func (l *storeUnderTest) subscribeToEnd(ctx context.Context, from eventstore.Checkpoint, running chan<- struct{}) error {
	isReported := false
	for s, err := range l.Subscribe(ctx, from, eventstore.Filter{newCategory()}) {
		if err != nil {
			return err
		}
		if s.Kind == eventstore.CaughtUp && !isReported {
			isReported = true
			running <- struct{}{}
		}
	}
	return nil
}

// closeTwice closes a store ten times at once and then once more. No call may return an error.
func closeTwice(ctx context.Context, l *storeUnderTest) error {
	if _, err := l.appendCheckpoint(ctx); err != nil {
		return err
	}
	if err := runParallel(10, func(int) error { return l.Close() }); err != nil {
		return err
	}
	return l.Close()
}

// holdsAfterReopen reads the same events before and after the log is reopened. Their order, positions, revisions and times
// must be the same, and the log must still know which streams exist.
func holdsAfterReopen(ctx context.Context, l *storeUnderTest) error {
	from, err := l.appendCheckpoint(ctx)
	if err != nil {
		return err
	}
	cats, sent, err := l.appendMixed(ctx, 20)
	if err != nil {
		return err
	}
	before, err := l.readLog(ctx, from, cats)
	if err != nil {
		return err
	}
	l = l.reopenedBy(l.reopen)
	after, err := l.readLog(ctx, from, cats)
	if err != nil {
		return err
	}
	if err := checkOrder("log opened again", idsOf(after.events, recordedID), idsOf(before.events, recordedID)); err != nil {
		return err
	}
	for i := range after.events {
		if a, b := after.events[i], before.events[i]; a.Position != b.Position || a.Revision != b.Revision || !a.Time.Equal(b.Time) {
			return fmt.Errorf("event %s moved from %+v to %+v", a.ID, b, a)
		}
	}
	batch := newEvents(2)
	if _, err := l.Append(ctx, cats[0]+"-0", eventstore.NoStream, batch); !errors.Is(err, eventstore.ErrConflict) {
		return fmt.Errorf("append to a stream of %d events expecting none: %v", len(sent[cats[0]]), err)
	}
	return nil
}

// sameAfterReopen resumes after a checkpoint that was taken before the log was reopened.
func sameAfterReopen(ctx context.Context, l *storeUnderTest) error {
	checkpoint, err := l.appendCheckpoint(ctx)
	if err != nil {
		return err
	}
	c := newCategory()
	all, err := l.appendEvents(ctx, c+"-1", 3)
	if err != nil {
		return err
	}
	l = l.reopenedBy(l.reopen)
	if id, err := l.Identity(ctx); err != nil || id != checkpoint.Log {
		return fmt.Errorf("identity is %s (%v), was %s", id, err, checkpoint.Log)
	}
	return l.checkDelivered(ctx, checkpoint, eventstore.Filter{c}, idsOf(all, proposedID))
}
