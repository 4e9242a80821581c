package storetest

import (
	"context"
	"errors"
	"fmt"

	"lieudit/eventstore"
)

// subscriptionRules are about one subscription: the change from past events to new ones, with no gap and no repetition, and
// the signals between events.
func subscriptionRules() []rule {
	return []rule{
		{name: "a subscription yields what there is, then CaughtUp, then what comes", check: pastThenLive},
		{name: "the first CaughtUp comes after all that was acknowledged before", check: notTooEarly},
		{name: "a subscription has no gap between past and live while many write", check: noGapWhileWriting},
		{name: "a subscription that resumes after each of its checkpoints has no gap and no repetition", check: resumesSubscription},
		{name: "CheckpointReached comes while unwanted events are skipped, and a read may resume after it", check: checkpointsGoOn},
		{name: "a subscription started at the end yields only what comes", check: fromTheEnd},
	}
}

// pastThenLive appends before the subscription and after its CaughtUp, and waits for each batch.
func pastThenLive(ctx context.Context, l *storeUnderTest) error {
	from, err := l.appendCheckpoint(ctx)
	if err != nil {
		return err
	}
	c := newCategory()
	all, err := l.appendEvents(ctx, c+"-1", 50)
	if err != nil {
		return err
	}
	s, err := l.startSubscription(ctx, from, eventstore.Filter{c})
	if err != nil {
		return err
	}
	defer s.stop()
	if err := s.readUntilCaughtUp(0); err != nil {
		return err
	}
	if err := checkEvents(s.events, c+"-1", all); err != nil {
		return fmt.Errorf("at CaughtUp: %w", err)
	}
	for i := range 50 {
		batch := newEvents(1 + i%3)
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

// notTooEarly subscribes to 2,000 events that are there already. All must come before CaughtUp: a projection that has seen it
// may serve.
func notTooEarly(ctx context.Context, l *storeUnderTest) error {
	from, err := l.appendCheckpoint(ctx)
	if err != nil {
		return err
	}
	c := newCategory()
	all, err := l.appendEvents(ctx, c+"-1", 2000)
	if err != nil {
		return err
	}
	return runParallel(4, func(int) error {
		s, err := l.startSubscription(ctx, from, eventstore.Filter{c})
		if err != nil {
			return err
		}
		defer s.stop()
		if err := s.readUntilCaughtUp(0); err != nil {
			return err
		}
		return checkEvents(s.events, c+"-1", all)
	})
}

// noGapWhileWriting starts six subscriptions while eight writers append, so that the change from past to new events falls
// among appends. A read of the log afterwards says what each should have yielded.
func noGapWhileWriting(ctx context.Context, l *storeUnderTest) error {
	const writers, each = 8, 100
	from, err := l.appendCheckpoint(ctx)
	if err != nil {
		return err
	}
	c := newCategory()
	done := make(chan error, 1)
	go func() {
		done <- runParallel(writers, func(i int) error {
			for range each {
				if _, err := l.Append(ctx, fmt.Sprintf("%s-%d", c, i), eventstore.Any, newEvents(1)); err != nil {
					return err
				}
			}
			return nil
		})
	}()
	err = runParallel(6, func(int) error {
		s, err := l.startSubscription(ctx, from, eventstore.Filter{c})
		if err != nil {
			return err
		}
		defer s.stop()
		if err := s.readUntilEvents(writers * each); err != nil {
			return err
		}
		return l.checkAgainstRead(ctx, from, s)
	})
	return errors.Join(err, <-done)
}

// checkAgainstRead fails unless a read of the log yields the events that the subscription yielded.
func (l *storeUnderTest) checkAgainstRead(ctx context.Context, from eventstore.Checkpoint, s *subscription) error {
	read, err := l.readLog(ctx, from, s.filter)
	if err != nil {
		return err
	}
	return checkOrder("subscription", idsOf(s.events, recordedID), idsOf(read.events, recordedID))
}

// resumesSubscription reads one signal, resumes after it and reads two, and so on, while a writer appends.
func resumesSubscription(ctx context.Context, l *storeUnderTest) error {
	from, err := l.appendCheckpoint(ctx)
	if err != nil {
		return err
	}
	c := newCategory()
	done := make(chan error, 1)
	go func() {
		_, err := l.appendEvents(ctx, c+"-1", 400)
		done <- err
	}()
	whole := &subscription{readSignals: readSignals{filter: eventstore.Filter{c}}}
	for checkpoint, length := from, 1; len(whole.events) < 400; length++ {
		s, err := l.startSubscription(ctx, checkpoint, whole.filter)
		if err != nil {
			return errors.Join(err, <-done)
		}
		signals := 0
		err = s.readUntil(func(eventstore.Signal) bool { signals++; return signals == length })
		s.stop()
		if err != nil {
			return errors.Join(err, <-done)
		}
		whole.events = append(whole.events, s.events...)
		checkpoint = s.last
	}
	if err := <-done; err != nil {
		return err
	}
	return l.checkAgainstRead(ctx, from, whole)
}

// checkpointsGoOn appends unwanted events until a subscription has yielded three CheckpointReached. Without them a reader of
// a rare category would begin far back after each restart.
func checkpointsGoOn(ctx context.Context, l *storeUnderTest) error {
	from, err := l.appendCheckpoint(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	writing := make(chan error, 1)
	unwanted := newCategory()
	go func() {
		for ctx.Err() == nil {
			if _, err := l.Append(ctx, unwanted+"-1", eventstore.Any, newEvents(20)); err != nil && ctx.Err() == nil {
				writing <- err
				return
			}
		}
		writing <- nil
	}()
	err = l.checkThreeCheckpoints(ctx, from)
	cancel()
	return errors.Join(err, <-writing)
}

// checkThreeCheckpoints waits for three CheckpointReached, each later than the one before, and reads the log after each.
func (l *storeUnderTest) checkThreeCheckpoints(ctx context.Context, from eventstore.Checkpoint) error {
	f := eventstore.Filter{newCategory()}
	s, err := l.startSubscription(ctx, from, f)
	if err != nil {
		return err
	}
	defer s.stop()
	for range 3 {
		last := s.last.Position
		err := s.readUntil(func(s eventstore.Signal) bool {
			return s.Kind == eventstore.CheckpointReached && s.Checkpoint.Position > last
		})
		if err != nil {
			return fmt.Errorf("waiting for CheckpointReached: %w", err)
		}
		if _, err := l.readLog(ctx, s.last, f); err != nil {
			return fmt.Errorf("the checkpoint of a CheckpointReached: %w", err)
		}
	}
	return nil
}

// fromTheEnd subscribes after the last event and then appends to the same category.
func fromTheEnd(ctx context.Context, l *storeUnderTest) error {
	c := newCategory()
	if _, err := l.appendEvents(ctx, c+"-1", 10); err != nil {
		return err
	}
	end, err := l.appendCheckpoint(ctx)
	if err != nil {
		return err
	}
	s, err := l.startSubscription(ctx, end, eventstore.Filter{c})
	if err != nil {
		return err
	}
	defer s.stop()
	if err := s.readUntilCaughtUp(0); err != nil {
		return err
	}
	if _, err := l.appendEvents(ctx, c+"-2", 3); err != nil {
		return err
	}
	if err := s.readUntilEvents(3); err != nil {
		return err
	}
	return l.checkAgainstRead(ctx, end, s)
}

// subscriberRules are about many subscribers and slow ones.
func subscriberRules() []rule {
	return []rule{
		{name: "many subscribers at once get the same", check: manySubscribers},
		{name: "a subscriber that does not read delays nobody", check: slowSubscriber},
		{name: "a slow subscriber misses nothing", check: slowMissesNothing},
		{name: "an event that a subscriber got can be read at once", check: deliveredIsReadable},
		{name: "another CaughtUp comes after a burst", check: caughtUpAgain},
	}
}

// manySubscribers has 50 subscriptions with two different filters follow one writer.
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
		s, err := l.startSubscription(ctx, from, f)
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

// slowSubscriber leaves one subscription unread while six appends of MaxAppendBytes are made, more than buffers hold. Appends
// and another subscription must continue, and the unread one must yield everything afterwards.
func slowSubscriber(ctx context.Context, l *storeUnderTest) error {
	from, err := l.appendCheckpoint(ctx)
	if err != nil {
		return err
	}
	c := newCategory()
	var slow, quick *subscription
	for _, s := range []**subscription{&slow, &quick} {
		if *s, err = l.startSubscription(ctx, from, eventstore.Filter{c}); err != nil {
			return err
		}
		defer (*s).stop()
		if err := (*s).readUntilCaughtUp(0); err != nil {
			return err
		}
	}
	for i := range 6 { // slow does not read meanwhile
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

// slowMissesNothing appends batches of growing size and reads one event after each, so that the subscription falls further
// and further behind.
func slowMissesNothing(ctx context.Context, l *storeUnderTest) error {
	from, err := l.appendCheckpoint(ctx)
	if err != nil {
		return err
	}
	c := newCategory()
	s, err := l.startSubscription(ctx, from, eventstore.Filter{c})
	if err != nil {
		return err
	}
	defer s.stop()
	if err := s.readUntilCaughtUp(0); err != nil {
		return err
	}
	sent := 0
	for n := 1; n <= 512; n *= 2 { // one read for ever more events
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

// deliveredIsReadable reads each event from its stream as soon as a subscription has yielded it. A handler of the event may
// need the aggregate.
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
	s, err := l.startSubscription(ctx, from, eventstore.Filter{c})
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

// checkReadable fails unless the event is in its stream.
func (l *storeUnderTest) checkReadable(ctx context.Context, e eventstore.RecordedEvent) error {
	for got, err := range l.ReadStream(ctx, e.Stream, e.Revision, eventstore.Forward) {
		if err != nil {
			return err
		}
		if got.ID != e.ID || got.Position != e.Position {
			return fmt.Errorf("the stream holds %s at %d where the subscriber got %s at %d", got.ID, got.Position, e.ID, e.Position)
		}
		return nil
	}
	return fmt.Errorf("a subscriber got %s@%d before it can be read", e.Stream, e.Revision)
}

// caughtUpAgain makes eight appends of MaxAppendBytes while the subscription is not read. Another CaughtUp must follow those
// events.
func caughtUpAgain(ctx context.Context, l *storeUnderTest) error {
	from, err := l.appendCheckpoint(ctx)
	if err != nil {
		return err
	}
	c := newCategory()
	s, err := l.startSubscription(ctx, from, eventstore.Filter{c})
	if err != nil {
		return err
	}
	defer s.stop()
	if err := s.readUntilCaughtUp(0); err != nil {
		return err
	}
	var all []eventstore.ProposedEvent
	var last eventstore.AppendResult
	for i := range 8 { // more than any reader's buffers hold, while the subscriber does not read
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
