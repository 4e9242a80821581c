package storetest

import (
	"context"
	"errors"
	"fmt"

	"lieudit/eventstore"
)

func followers() []rule {
	return []rule{
		{name: "many subscribers at once are told the same", check: manySubscribers},
		{name: "a subscriber that does not look holds up nobody", check: slowSubscriber},
		{name: "a slow subscriber misses nothing", check: slowMissesNothing},
		{name: "what a subscriber was told can be read at once", check: toldIsReadable},
		{name: "a subscription yields big appends whole and in order", check: bigAppends},
		{name: "CaughtUp is said again after a burst", check: caughtUpAgain},
	}
}

func manySubscribers(ctx context.Context, l *log) error {
	from, err := l.here(ctx)
	if err != nil {
		return err
	}
	c := category()
	done := make(chan error, 1)
	go func() {
		_, err := l.fill(ctx, c+"-1", 200)
		done <- err
	}()
	err = parallel(50, func(i int) error {
		f := eventstore.Filter{c}
		if i%2 == 1 {
			f = append(f, category())
		}
		s, err := l.subscribe(ctx, from, f)
		if err != nil {
			return err
		}
		defer s.stop()
		if err := s.untilEvents(200); err != nil {
			return err
		}
		return l.agrees(ctx, from, s)
	})
	return errors.Join(err, <-done)
}

func slowSubscriber(ctx context.Context, l *log) error {
	from, err := l.here(ctx)
	if err != nil {
		return err
	}
	c := category()
	var slow, quick *subscription
	for _, s := range []**subscription{&slow, &quick} {
		if *s, err = l.subscribe(ctx, from, eventstore.Filter{c}); err != nil {
			return err
		}
		defer (*s).stop()
		if err := (*s).untilCaughtUp(0); err != nil {
			return err
		}
	}
	for i := range 6 { // slow does not look meanwhile
		if _, err := l.Append(ctx, c+"-1", eventstore.Any, sized(20, eventstore.MaxAppend)); err != nil {
			return err
		}
		if err := quick.untilEvents(20 * (i + 1)); err != nil {
			return err
		}
	}
	if err := slow.untilEvents(120); err != nil {
		return err
	}
	return l.agrees(ctx, from, slow)
}

func slowMissesNothing(ctx context.Context, l *log) error {
	from, err := l.here(ctx)
	if err != nil {
		return err
	}
	c := category()
	s, err := l.subscribe(ctx, from, eventstore.Filter{c})
	if err != nil {
		return err
	}
	defer s.stop()
	if err := s.untilCaughtUp(0); err != nil {
		return err
	}
	sent := 0
	for n := 1; n <= 512; n *= 2 { // one look for ever more events
		if _, err := l.Append(ctx, c+"-1", eventstore.Any, events(n)); err != nil {
			return err
		}
		sent += n
		if err := s.untilEvents(len(s.events) + 1); err != nil {
			return err
		}
	}
	if err := s.untilEvents(sent); err != nil {
		return err
	}
	return l.agrees(ctx, from, s)
}

func toldIsReadable(ctx context.Context, l *log) error {
	from, err := l.here(ctx)
	if err != nil {
		return err
	}
	c := category()
	done := make(chan error, 1)
	go func() {
		done <- parallel(4, func(i int) error {
			_, err := l.fill(ctx, fmt.Sprintf("%s-%d", c, i), 50)
			return err
		})
	}()
	s, err := l.subscribe(ctx, from, eventstore.Filter{c})
	if err != nil {
		return errors.Join(err, <-done)
	}
	defer s.stop()
	for i := range 200 {
		if err := s.untilEvents(i + 1); err != nil {
			return errors.Join(err, <-done)
		}
		if err := l.readable(ctx, s.events[i]); err != nil {
			return errors.Join(err, <-done)
		}
	}
	return <-done
}

// readable says whether the event stands in its stream.
func (l *log) readable(ctx context.Context, e eventstore.Recorded) error {
	for got, err := range l.ReadStream(ctx, e.Stream, e.Revision, eventstore.Forward) {
		if err != nil {
			return err
		}
		if got.ID != e.ID || got.Position != e.Position {
			return fmt.Errorf("the stream holds %s at %d where the subscriber was told %s at %d", got.ID, got.Position, e.ID, e.Position)
		}
		return nil
	}
	return fmt.Errorf("%s@%d was told before it can be read", e.Stream, e.Revision)
}

func caughtUpAgain(ctx context.Context, l *log) error {
	from, err := l.here(ctx)
	if err != nil {
		return err
	}
	c := category()
	s, err := l.subscribe(ctx, from, eventstore.Filter{c})
	if err != nil {
		return err
	}
	defer s.stop()
	if err := s.untilCaughtUp(0); err != nil {
		return err
	}
	var all []eventstore.Proposed
	var last eventstore.Committed
	for i := range 8 { // more than any reader's buffers hold, while the subscriber does not look
		batch := sized(40, eventstore.MaxAppend)
		if last, err = l.Append(ctx, c+"-1", eventstore.Revision(40*i-1), batch); err != nil {
			return err
		}
		all = append(all, batch...)
	}
	if err := s.untilCaughtUp(last.Position); err != nil {
		return fmt.Errorf("waiting for CaughtUp: %w", err)
	}
	return same(s.events, c+"-1", all)
}

func bigAppends(ctx context.Context, l *log) error {
	from, err := l.here(ctx)
	if err != nil {
		return err
	}
	c := category()
	s, err := l.subscribe(ctx, from, eventstore.Filter{c})
	if err != nil {
		return err
	}
	defer s.stop()
	if err := s.untilCaughtUp(0); err != nil {
		return err
	}
	var all []eventstore.Proposed
	for _, n := range []int{1, 3000, 2, 500} {
		batch := sized(n, eventstore.MaxAppend)
		if _, err := l.Append(ctx, c+"-1", eventstore.Revision(len(all)-1), batch); err != nil {
			return err
		}
		all = append(all, batch...)
		if err := s.untilEvents(len(all)); err != nil {
			return err
		}
	}
	return same(s.events, c+"-1", all)
}
