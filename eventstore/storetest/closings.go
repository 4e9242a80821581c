package storetest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"lieudit/eventstore"
)

func closings() []rule {
	return []rule{
		{name: "after Close every call says so", check: saysClosed, own: true},
		{name: "Close ends what is running, and is safe among calls", check: closeAmongCalls, own: true},
		{name: "Close may be called twice, and by many at once", check: closeTwice, own: true},
		{name: "a log opened again holds all it acknowledged, in the same places", check: holdsAfterReopen, reopens: true},
		{name: "a log opened again recognises an append with an expected revision", check: recognisesAfterReopen, reopens: true},
		{name: "a log opened again has the same identity and marks", check: sameAfterReopen, reopens: true},
	}
}

func saysClosed(ctx context.Context, l *log) error {
	if _, err := l.here(ctx); err != nil {
		return err
	}
	if err := l.Close(); err != nil {
		return fmt.Errorf("close: %w", err)
	}
	_, err := l.Append(ctx, category()+"-1", eventstore.Any, events(1))
	if err := want("append", err, eventstore.ErrClosed); err != nil {
		return err
	}
	_, err = collect(l.ReadStream(ctx, category()+"-1", 0, eventstore.Forward))
	if err := want("read of a stream", err, eventstore.ErrClosed); err != nil {
		return err
	}
	_, err = collect(l.ReadAll(ctx, eventstore.Mark{}, nil))
	if err := want("read of the log", err, eventstore.ErrClosed); err != nil {
		return err
	}
	_, err = collect(l.Subscribe(ctx, eventstore.Mark{}, nil))
	if err := want("subscription", err, eventstore.ErrClosed); err != nil {
		return err
	}
	return want("health", l.Health(), eventstore.ErrClosed)
}

func closeAmongCalls(ctx context.Context, l *log) error {
	from, err := l.here(ctx)
	if err != nil {
		return err
	}
	running := make(chan struct{}, 40)
	ended := make(chan error, 1)
	go func() {
		ended <- parallel(40, func(i int) error {
			return untilClosed(ctx, l, from, i, running)
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
	case <-time.After(promptly()):
		return errors.New("calls go on after Close")
	}
}

// untilClosed makes calls of the i-th kind until one fails, which must be because the store was closed.
func untilClosed(ctx context.Context, l *log, from eventstore.Mark, i int, running chan<- struct{}) error {
	stream := category() + "-1"
	for n := 0; ; n++ {
		var err error
		switch i % 4 {
		case 0:
			_, err = l.Append(ctx, stream, eventstore.Any, events(2))
		case 1:
			_, err = collect(l.ReadStream(ctx, stream, 0, eventstore.Forward))
		case 2:
			_, err = collect(l.ReadAll(ctx, from, eventstore.Filter{category()}))
		case 3:
			if err = l.follow(ctx, from, running); err == nil {
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

// follow subscribes until the subscription ends.
func (l *log) follow(ctx context.Context, from eventstore.Mark, running chan<- struct{}) error {
	told := false
	for s, err := range l.Subscribe(ctx, from, eventstore.Filter{category()}) {
		if err != nil {
			return err
		}
		if s.Kind == eventstore.CaughtUp && !told {
			told = true
			running <- struct{}{}
		}
	}
	return nil
}

func closeTwice(ctx context.Context, l *log) error {
	if _, err := l.here(ctx); err != nil {
		return err
	}
	if err := parallel(10, func(int) error { return l.Close() }); err != nil {
		return err
	}
	return l.Close()
}

// second is the log in its second life.
func (l *log) second() *log {
	return &log{Store: l.reopen(l.Store), reopen: l.reopen}
}

func holdsAfterReopen(ctx context.Context, l *log) error {
	from, err := l.here(ctx)
	if err != nil {
		return err
	}
	cats, sent, err := l.mixed(ctx, 20)
	if err != nil {
		return err
	}
	before, err := l.all(ctx, from, cats)
	if err != nil {
		return err
	}
	l = l.second()
	after, err := l.all(ctx, from, cats)
	if err != nil {
		return err
	}
	if err := sameOrder("log opened again", ids(after.events, recordedID), ids(before.events, recordedID)); err != nil {
		return err
	}
	for i := range after.events {
		if a, b := after.events[i], before.events[i]; a.Position != b.Position || a.Revision != b.Revision || !a.Time.Equal(b.Time) {
			return fmt.Errorf("event %s moved from %+v to %+v", a.ID, b, a)
		}
	}
	batch := events(2)
	if _, err := l.Append(ctx, cats[0]+"-0", eventstore.NoStream, batch); !errors.Is(err, eventstore.ErrConflict) {
		return fmt.Errorf("append to a stream of %d events expecting none: %v", len(sent[cats[0]]), err)
	}
	return nil
}

func recognisesAfterReopen(ctx context.Context, l *log) error {
	stream := category() + "-1"
	first, second := events(2), events(3)
	a, err := l.Append(ctx, stream, eventstore.NoStream, first)
	if err != nil {
		return err
	}
	b, err := l.Append(ctx, stream, 1, second)
	if err != nil {
		return err
	}
	l = l.second()
	if err := l.again(ctx, stream, eventstore.NoStream, first, a); err != nil {
		return err
	}
	if err := l.again(ctx, stream, 1, second, b); err != nil {
		return err
	}
	return l.holds(ctx, stream, append(first, second...))
}

func sameAfterReopen(ctx context.Context, l *log) error {
	m, err := l.here(ctx)
	if err != nil {
		return err
	}
	c := category()
	all, err := l.fill(ctx, c+"-1", 3)
	if err != nil {
		return err
	}
	l = l.second()
	if id, err := l.Identity(ctx); err != nil || id != m.Log {
		return fmt.Errorf("identity is %s (%v), was %s", id, err, m.Log)
	}
	return l.tells(ctx, m, eventstore.Filter{c}, ids(all, proposedID))
}
