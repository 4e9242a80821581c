package esdb

import (
	"context"
	"errors"
	"iter"
	"math/rand/v2"
	"time"

	"lieudit/eventstore"
)

// Subscribe keeps the contract over any number of connections: each begins by checking the mark it resumes after.
func (s *Store) Subscribe(ctx context.Context, after eventstore.Mark, want eventstore.Filter) iter.Seq2[eventstore.Signal, error] {
	return func(yield func(eventstore.Signal, error) bool) {
		f := &follower{mark: after, want: want, yield: yield}
		pause := minPause
		for {
			c, err := s.link.wait(ctx)
			if err != nil {
				yield(eventstore.Signal{}, err)
				return
			}
			heard := f.mark
			err = f.follow(ctx, c)
			if f.stopped {
				return
			}
			if err = s.unread(ctx, c, err); final(ctx, err) {
				yield(eventstore.Signal{}, err)
				return
			}
			if f.mark != heard {
				pause = minPause
			}
			sleep(ctx, pause/2+rand.N(pause))
			pause = min(2*pause, maxPause)
		}
	}
}

// final says whether a subscription ends with the error instead of trying again.
func final(ctx context.Context, err error) bool {
	var diverged *eventstore.DivergedError
	return ctx.Err() != nil || errors.Is(err, eventstore.ErrClosed) || errors.As(err, &diverged)
}

const (
	silence = time.Second            // after which a subscription looks whether it missed something
	grace   = 250 * time.Millisecond // for what it seems to have missed to arrive after all
)

var errSilent = errors.New("the subscription was not told of an event that is in the log")

// follower is a subscriber: how far it was told, and what it still has to be told.
type follower struct {
	mark    eventstore.Mark
	want    eventstore.Filter
	yield   func(eventstore.Signal, error) bool
	stopped bool
	burst   bool                // events were told since the last CaughtUp
	missing eventstore.Position // of an event found in the log and not told yet
}

// follow is one subscription on one connection. It ends when that does, or when the subscriber stops.
func (f *follower) follow(ctx context.Context, c *conn) error {
	mark, err := c.check(ctx, f.mark)
	if err != nil {
		return err
	}
	f.mark, f.burst, f.missing = mark, true, 0
	p := c.subscribe(ctx, mark.Position, f.want)
	defer p.stop()
	idle := time.NewTimer(silence)
	defer idle.Stop()
	for {
		select {
		case m, ok := <-p.messages:
			if !ok {
				return p.err
			}
			err = f.take(ctx, c, m)
			idle.Reset(silence)
		case <-idle.C:
			err = f.look(ctx, c)
			idle.Reset(f.nextLook())
		}
		if err != nil || f.stopped {
			return err
		}
	}
}

func (f *follower) nextLook() time.Duration {
	if f.missing > f.mark.Position {
		return grace
	}
	return silence
}

// tell passes a signal on, at the mark where it stands.
func (f *follower) tell(s eventstore.Signal) {
	f.mark = s.Mark
	f.stopped = !f.yield(s, nil)
}

// take deals with one message of the subscription.
func (f *follower) take(ctx context.Context, c *conn, m message) error {
	switch m.kind {
	case eventstore.Event:
		f.event(m.event)
	case eventstore.Progress:
		return f.progress(ctx, c, m.position)
	case eventstore.CaughtUp:
		f.burst = false
		f.tell(eventstore.Signal{Kind: eventstore.CaughtUp, Mark: f.mark})
	}
	return nil
}

func (f *follower) event(e eventstore.Recorded) {
	if e.Position <= f.mark.Position {
		return
	}
	s := event(f.mark, e)
	if !f.want.Matches(e.Stream) {
		f.mark = s.Mark
		return
	}
	f.burst = true
	f.tell(s)
}

// progress tells of a checkpoint, once the event that stands there is known.
func (f *follower) progress(ctx context.Context, c *conn, p eventstore.Position) error {
	if p <= f.mark.Position {
		return nil
	}
	m, err := c.at(ctx, f.mark.Log, p)
	if err == nil && m.Position > f.mark.Position {
		f.tell(eventstore.Signal{Kind: eventstore.Progress, Mark: m})
	}
	return err
}

// look compares what was told with the log, because a server may stop telling without a word.
func (f *follower) look(ctx context.Context, c *conn) error {
	if f.missing > f.mark.Position {
		return errSilent
	}
	end, err := c.end(ctx, f.mark)
	if err != nil {
		return err
	}
	for e, err := range c.wanted(ctx, f.mark.Position, end.Position, f.want) {
		f.missing = e.Position
		return err
	}
	switch {
	case f.burst:
		f.burst = false
		f.tell(eventstore.Signal{Kind: eventstore.CaughtUp, Mark: end})
	case end.Position > f.mark.Position:
		f.tell(eventstore.Signal{Kind: eventstore.Progress, Mark: end})
	}
	return nil
}
