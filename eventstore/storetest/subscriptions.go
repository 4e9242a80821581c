package storetest

import (
	"context"
	"errors"
	"fmt"

	"lieudit/eventstore"
)

func subscriptionRules() []rule {
	return []rule{
		{name: "a subscription yields what there is, says CaughtUp, and goes on with what comes", check: pastThenLive},
		{name: "the first CaughtUp comes after all that was acknowledged before", check: notTooEarly},
		{name: "a subscription has no gap between past and live while many write", check: noGapWhileWriting},
		{name: "a subscription that resumes after each of its marks has no gap and no repetition", check: resumesSubscription},
		{name: "Progress goes on while unwanted events go by, and its mark can be checked", check: checkpointsGoOn},
		{name: "a subscription started at the end yields only what comes", check: fromTheEnd},
	}
}

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
	s, err := l.subscribe(ctx, from, eventstore.Filter{c})
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
		s, err := l.subscribe(ctx, from, eventstore.Filter{c})
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
		s, err := l.subscribe(ctx, from, eventstore.Filter{c})
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

// checkAgainstRead says whether a read of the log tells what the subscription told.
func (l *storeUnderTest) checkAgainstRead(ctx context.Context, from eventstore.Checkpoint, s *subscription) error {
	read, err := l.readLog(ctx, from, s.filter)
	if err != nil {
		return err
	}
	return checkOrder("subscription", idsOf(s.events, recordedID), idsOf(read.events, recordedID))
}

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
	for mark, turn := from, 1; len(whole.events) < 400; turn++ {
		s, err := l.subscribe(ctx, mark, whole.filter)
		if err != nil {
			return errors.Join(err, <-done)
		}
		signals := 0
		err = s.readUntil(func(eventstore.Signal) bool { signals++; return signals == turn })
		s.stop()
		if err != nil {
			return errors.Join(err, <-done)
		}
		whole.events = append(whole.events, s.events...)
		mark = s.last
	}
	if err := <-done; err != nil {
		return err
	}
	return l.checkAgainstRead(ctx, from, whole)
}

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

func (l *storeUnderTest) checkThreeCheckpoints(ctx context.Context, from eventstore.Checkpoint) error {
	f := eventstore.Filter{newCategory()}
	s, err := l.subscribe(ctx, from, f)
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
			return fmt.Errorf("waiting for Progress: %w", err)
		}
		if _, err := l.readLog(ctx, s.last, f); err != nil {
			return fmt.Errorf("the mark of a Progress: %w", err)
		}
	}
	return nil
}

func fromTheEnd(ctx context.Context, l *storeUnderTest) error {
	c := newCategory()
	if _, err := l.appendEvents(ctx, c+"-1", 10); err != nil {
		return err
	}
	end, err := l.appendCheckpoint(ctx)
	if err != nil {
		return err
	}
	s, err := l.subscribe(ctx, end, eventstore.Filter{c})
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
