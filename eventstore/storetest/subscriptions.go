package storetest

import (
	"context"
	"errors"
	"fmt"

	"lieudit/eventstore"
)

func subscriptions() []rule {
	return []rule{
		{name: "a subscription yields what there is, says CaughtUp, and goes on with what comes", check: pastThenLive},
		{name: "the first CaughtUp comes after all that was acknowledged before", check: notTooEarly},
		{name: "a subscription has no gap between past and live while many write", check: noGapWhileWriting},
		{name: "a subscription that resumes after each of its marks has no gap and no repetition", check: resumesSubscription},
		{name: "Progress goes on while unwanted events go by, and its mark can be checked", check: progressGoesOn},
		{name: "a subscription started at the end yields only what comes", check: fromTheEnd},
	}
}

func pastThenLive(ctx context.Context, l *log) error {
	from, err := l.here(ctx)
	if err != nil {
		return err
	}
	c := category()
	all, err := l.fill(ctx, c+"-1", 50)
	if err != nil {
		return err
	}
	s, err := l.subscribe(ctx, from, eventstore.Filter{c})
	if err != nil {
		return err
	}
	defer s.stop()
	if err := s.untilCaughtUp(0); err != nil {
		return err
	}
	if err := same(s.events, c+"-1", all); err != nil {
		return fmt.Errorf("at CaughtUp: %w", err)
	}
	for i := range 50 {
		batch := events(1 + i%3)
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

func notTooEarly(ctx context.Context, l *log) error {
	from, err := l.here(ctx)
	if err != nil {
		return err
	}
	c := category()
	all, err := l.fill(ctx, c+"-1", 2000)
	if err != nil {
		return err
	}
	return parallel(4, func(int) error {
		s, err := l.subscribe(ctx, from, eventstore.Filter{c})
		if err != nil {
			return err
		}
		defer s.stop()
		if err := s.untilCaughtUp(0); err != nil {
			return err
		}
		return same(s.events, c+"-1", all)
	})
}

func noGapWhileWriting(ctx context.Context, l *log) error {
	const writers, each = 8, 100
	from, err := l.here(ctx)
	if err != nil {
		return err
	}
	c := category()
	done := make(chan error, 1)
	go func() {
		done <- parallel(writers, func(i int) error {
			for range each {
				if _, err := l.Append(ctx, fmt.Sprintf("%s-%d", c, i), eventstore.Any, events(1)); err != nil {
					return err
				}
			}
			return nil
		})
	}()
	err = parallel(6, func(int) error {
		s, err := l.subscribe(ctx, from, eventstore.Filter{c})
		if err != nil {
			return err
		}
		defer s.stop()
		if err := s.untilEvents(writers * each); err != nil {
			return err
		}
		return l.agrees(ctx, from, s)
	})
	return errors.Join(err, <-done)
}

// agrees says whether a read of the log tells what the subscription told.
func (l *log) agrees(ctx context.Context, from eventstore.Mark, s *subscription) error {
	read, err := l.all(ctx, from, s.want)
	if err != nil {
		return err
	}
	return sameOrder("subscription", ids(s.events, recordedID), ids(read.events, recordedID))
}

func resumesSubscription(ctx context.Context, l *log) error {
	from, err := l.here(ctx)
	if err != nil {
		return err
	}
	c := category()
	done := make(chan error, 1)
	go func() {
		_, err := l.fill(ctx, c+"-1", 400)
		done <- err
	}()
	whole := &subscription{reading: reading{want: eventstore.Filter{c}}}
	for mark, turn := from, 1; len(whole.events) < 400; turn++ {
		s, err := l.subscribe(ctx, mark, whole.want)
		if err != nil {
			return errors.Join(err, <-done)
		}
		signals := 0
		err = s.until(func(eventstore.Signal) bool { signals++; return signals == turn })
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
	return l.agrees(ctx, from, whole)
}

func progressGoesOn(ctx context.Context, l *log) error {
	from, err := l.here(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	writing := make(chan error, 1)
	unwanted := category()
	go func() {
		for ctx.Err() == nil {
			if _, err := l.Append(ctx, unwanted+"-1", eventstore.Any, events(20)); err != nil && ctx.Err() == nil {
				writing <- err
				return
			}
		}
		writing <- nil
	}()
	err = l.threeProgresses(ctx, from)
	cancel()
	return errors.Join(err, <-writing)
}

func (l *log) threeProgresses(ctx context.Context, from eventstore.Mark) error {
	f := eventstore.Filter{category()}
	s, err := l.subscribe(ctx, from, f)
	if err != nil {
		return err
	}
	defer s.stop()
	for range 3 {
		last := s.last.Position
		err := s.until(func(s eventstore.Signal) bool { return s.Kind == eventstore.Progress && s.Mark.Position > last })
		if err != nil {
			return fmt.Errorf("waiting for Progress: %w", err)
		}
		if _, err := l.all(ctx, s.last, f); err != nil {
			return fmt.Errorf("the mark of a Progress: %w", err)
		}
	}
	return nil
}

func fromTheEnd(ctx context.Context, l *log) error {
	c := category()
	if _, err := l.fill(ctx, c+"-1", 10); err != nil {
		return err
	}
	end, err := l.here(ctx)
	if err != nil {
		return err
	}
	s, err := l.subscribe(ctx, end, eventstore.Filter{c})
	if err != nil {
		return err
	}
	defer s.stop()
	if err := s.untilCaughtUp(0); err != nil {
		return err
	}
	if _, err := l.fill(ctx, c+"-2", 3); err != nil {
		return err
	}
	if err := s.untilEvents(3); err != nil {
		return err
	}
	return l.agrees(ctx, end, s)
}
