package storetest

import (
	"context"
	"errors"
	"fmt"

	"lieudit/eventstore"
)

func subscriberRules() []rule {
	return []rule{
		{name: "many subscribers at once are told the same", check: manySubscribers},
		{name: "a subscriber that does not look holds up nobody", check: slowSubscriber},
		{name: "a slow subscriber misses nothing", check: slowMissesNothing},
		{name: "what a subscriber was told can be read at once", check: deliveredIsReadable},
		{name: "a subscription yields big appends whole and in order", check: bigAppends},
		{name: "CaughtUp is said again after a burst", check: caughtUpAgain},
	}
}

func manySubscribers(ctx context.Context, l *storeUnderTest) error {
	from, err := l.appendCheckpoint(ctx)
	if err != nil {
		return err
	}
	c := newCategory()
	done := make(chan error, 1)
	go func() {
		_, err := l.appendEvents(ctx, c+"-1", 200)
		done <- err
	}()
	err = runParallel(50, func(i int) error {
		f := eventstore.Filter{c}
		if i%2 == 1 {
			f = append(f, newCategory())
		}
		s, err := l.subscribe(ctx, from, f)
		if err != nil {
			return err
		}
		defer s.stop()
		if err := s.readUntilEvents(200); err != nil {
			return err
		}
		return l.checkAgainstRead(ctx, from, s)
	})
	return errors.Join(err, <-done)
}

func slowSubscriber(ctx context.Context, l *storeUnderTest) error {
	from, err := l.appendCheckpoint(ctx)
	if err != nil {
		return err
	}
	c := newCategory()
	var slow, quick *subscription
	for _, s := range []**subscription{&slow, &quick} {
		if *s, err = l.subscribe(ctx, from, eventstore.Filter{c}); err != nil {
			return err
		}
		defer (*s).stop()
		if err := (*s).readUntilCaughtUp(0); err != nil {
			return err
		}
	}
	for i := range 6 { // slow does not look meanwhile
		if _, err := l.Append(ctx, c+"-1", eventstore.Any, eventsOfSize(20, eventstore.MaxAppendBytes)); err != nil {
			return err
		}
		if err := quick.readUntilEvents(20 * (i + 1)); err != nil {
			return err
		}
	}
	if err := slow.readUntilEvents(120); err != nil {
		return err
	}
	return l.checkAgainstRead(ctx, from, slow)
}

func slowMissesNothing(ctx context.Context, l *storeUnderTest) error {
	from, err := l.appendCheckpoint(ctx)
	if err != nil {
		return err
	}
	c := newCategory()
	s, err := l.subscribe(ctx, from, eventstore.Filter{c})
	if err != nil {
		return err
	}
	defer s.stop()
	if err := s.readUntilCaughtUp(0); err != nil {
		return err
	}
	sent := 0
	for n := 1; n <= 512; n *= 2 { // one look for ever more events
		if _, err := l.Append(ctx, c+"-1", eventstore.Any, newEvents(n)); err != nil {
			return err
		}
		sent += n
		if err := s.readUntilEvents(len(s.events) + 1); err != nil {
			return err
		}
	}
	if err := s.readUntilEvents(sent); err != nil {
		return err
	}
	return l.checkAgainstRead(ctx, from, s)
}

func deliveredIsReadable(ctx context.Context, l *storeUnderTest) error {
	from, err := l.appendCheckpoint(ctx)
	if err != nil {
		return err
	}
	c := newCategory()
	done := make(chan error, 1)
	go func() {
		done <- runParallel(4, func(i int) error {
			_, err := l.appendEvents(ctx, fmt.Sprintf("%s-%d", c, i), 50)
			return err
		})
	}()
	s, err := l.subscribe(ctx, from, eventstore.Filter{c})
	if err != nil {
		return errors.Join(err, <-done)
	}
	defer s.stop()
	for i := range 200 {
		if err := s.readUntilEvents(i + 1); err != nil {
			return errors.Join(err, <-done)
		}
		if err := l.checkReadable(ctx, s.events[i]); err != nil {
			return errors.Join(err, <-done)
		}
	}
	return <-done
}

// checkReadable says whether the event stands in its stream.
func (l *storeUnderTest) checkReadable(ctx context.Context, e eventstore.RecordedEvent) error {
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

func caughtUpAgain(ctx context.Context, l *storeUnderTest) error {
	from, err := l.appendCheckpoint(ctx)
	if err != nil {
		return err
	}
	c := newCategory()
	s, err := l.subscribe(ctx, from, eventstore.Filter{c})
	if err != nil {
		return err
	}
	defer s.stop()
	if err := s.readUntilCaughtUp(0); err != nil {
		return err
	}
	var all []eventstore.ProposedEvent
	var last eventstore.AppendResult
	for i := range 8 { // more than any reader's buffers hold, while the subscriber does not look
		batch := eventsOfSize(40, eventstore.MaxAppendBytes)
		if last, err = l.Append(ctx, c+"-1", eventstore.Revision(40*i-1), batch); err != nil {
			return err
		}
		all = append(all, batch...)
	}
	if err := s.readUntilCaughtUp(last.Position); err != nil {
		return fmt.Errorf("waiting for CaughtUp: %w", err)
	}
	return checkEvents(s.events, c+"-1", all)
}

func bigAppends(ctx context.Context, l *storeUnderTest) error {
	from, err := l.appendCheckpoint(ctx)
	if err != nil {
		return err
	}
	c := newCategory()
	s, err := l.subscribe(ctx, from, eventstore.Filter{c})
	if err != nil {
		return err
	}
	defer s.stop()
	if err := s.readUntilCaughtUp(0); err != nil {
		return err
	}
	var all []eventstore.ProposedEvent
	for _, n := range []int{1, 3000, 2, 500} {
		batch := eventsOfSize(n, eventstore.MaxAppendBytes)
		if _, err := l.Append(ctx, c+"-1", eventstore.Revision(len(all)-1), batch); err != nil {
			return err
		}
		all = append(all, batch...)
		if err := s.readUntilEvents(len(all)); err != nil {
			return err
		}
	}
	return checkEvents(s.events, c+"-1", all)
}
