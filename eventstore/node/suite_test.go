package node_test

import (
	"context"
	"iter"
	"math"
	"regexp"
	"strings"
	"testing"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/google/uuid"

	"lieudit/eventstore"
	"lieudit/eventstore/storetest"
)

// check makes sure that a mark stands in the log.
func (o *official) check(ctx context.Context, m eventstore.Mark) error {
	diverged := &eventstore.DivergedError{Mark: m, Why: "another log, or another event"}
	if m.Log != uuid.Nil && m.Log != o.id {
		return diverged
	}
	if m.Position == 0 {
		return nil
	}
	e, err := o.at(ctx, m.Position)
	if err != nil {
		return err
	}
	if e.Position != m.Position || e.ID != m.Event {
		return diverged
	}
	return nil
}

func allFrom(p eventstore.Position) esdb.Position {
	return esdb.Position{Commit: uint64(p), Prepare: uint64(p)}
}

// at is the event at a position; the zero one when there is none.
func (o *official) at(ctx context.Context, p eventstore.Position) (found eventstore.Recorded, err error) {
	err = each(o.client.ReadAll(ctx, esdb.ReadAllOptions{From: allFrom(p)}, 1))(func(e eventstore.Recorded) bool {
		found = e
		return true
	})
	if err != nil && strings.Contains(err.Error(), "invalid position") {
		err = nil
	}
	return found, err
}

// signals turns events and words into signals, each with its mark.
type signals struct {
	mark  eventstore.Mark
	yield func(eventstore.Signal, error) bool
}

func (s *signals) say(k eventstore.Kind, e eventstore.Recorded) bool {
	if e.Position > 0 {
		s.mark.Position, s.mark.Event = e.Position, e.ID
	}
	if k != eventstore.Event {
		e = eventstore.Recorded{}
	}
	return s.yield(eventstore.Signal{Kind: k, Event: e, Mark: s.mark}, nil)
}

// follow checks a mark and then lets run speak, whose error is the last word.
func (o *official) follow(ctx context.Context, after eventstore.Mark, run func(context.Context, *signals) error) iter.Seq2[eventstore.Signal, error] {
	return func(yield func(eventstore.Signal, error) bool) {
		s := &signals{eventstore.Mark{Log: o.id, Position: after.Position, Event: after.Event}, yield}
		err := o.call(ctx, func(ctx context.Context) error {
			if err := o.check(ctx, after); err != nil {
				return err
			}
			return run(ctx, s)
		})
		if err != nil {
			yield(eventstore.Signal{}, err)
		}
	}
}

func (o *official) ReadAll(ctx context.Context, after eventstore.Mark, want eventstore.Filter) iter.Seq2[eventstore.Signal, error] {
	return o.follow(ctx, after, func(ctx context.Context, s *signals) error {
		var last eventstore.Recorded
		err := each(o.client.ReadAll(ctx, esdb.ReadAllOptions{From: allFrom(after.Position)}, math.MaxUint64))(func(e eventstore.Recorded) bool {
			last = e
			return e.Position <= after.Position || !want.Matches(e.Stream) || s.say(eventstore.Event, e)
		})
		if err == nil {
			s.say(eventstore.CaughtUp, last)
		}
		return err
	})
}

// expression is a filter as the server understands it.
func expression(want eventstore.Filter) *esdb.SubscriptionFilter {
	names := make([]string, len(want))
	for i, c := range want {
		names[i] = regexp.QuoteMeta(c)
	}
	text := "^(?:" + strings.Join(names, "|") + ")(?:-|$)"
	if len(want) == 0 {
		text = "^[^$]"
	}
	return &esdb.SubscriptionFilter{Type: esdb.StreamFilterType, Regex: text}
}

func (o *official) Subscribe(ctx context.Context, after eventstore.Mark, want eventstore.Filter) iter.Seq2[eventstore.Signal, error] {
	return o.follow(ctx, after, func(ctx context.Context, s *signals) error {
		from := esdb.SubscribeToAllOptions{From: allFrom(after.Position), Filter: expression(want)}
		if after.Position == 0 {
			from.From = esdb.Start{}
		}
		sub, err := o.client.SubscribeToAll(ctx, from)
		if err != nil {
			return err
		}
		defer func() { _ = sub.Close() }()
		for {
			on, err := o.tell(ctx, sub.Recv(), s)
			if err != nil || !on {
				return err
			}
		}
	})
}

// tell passes one word of a subscription on; false: nobody listens any more.
func (o *official) tell(ctx context.Context, e *esdb.SubscriptionEvent, s *signals) (bool, error) {
	switch {
	case e.EventAppeared != nil:
		return s.say(eventstore.Event, plain(e.EventAppeared.OriginalEvent())), nil
	case e.CaughtUp != nil:
		return s.say(eventstore.CaughtUp, eventstore.Recorded{}), nil
	case e.CheckPointReached != nil:
		seen, err := o.at(ctx, eventstore.Position(e.CheckPointReached.Commit))
		return err == nil && s.say(eventstore.Progress, seen), err
	}
	return false, e.SubscriptionDropped.Error
}

func (s server) asStore(t *testing.T) *official {
	t.Helper()
	o, err := s.store(t.Context(), connect(t, "esdb://unused?tls=false", s.addr))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := o.Close(); err != nil {
			t.Error(err)
		}
	})
	return o
}

// TestContract runs through the official client. Nothing of the contract is left out but what its rules do not reach:
// outages, after which this client is of no use.
func TestContract(t *testing.T) {
	t.Parallel()
	t.Run("official client", func(t *testing.T) {
		t.Parallel()
		storetest.RunWith(t, func(t *testing.T) eventstore.Store {
			return start(t).asStore(t)
		}, storetest.Options{Reopen: reopen})
	})
}
