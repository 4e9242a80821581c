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

// verifyCheckpoint makes sure that a mark stands in the log.
func (o *officialStore) verifyCheckpoint(ctx context.Context, m eventstore.Checkpoint) error {
	diverged := &eventstore.DivergedError{Checkpoint: m, Reason: "another log, or another event"}
	if m.Log != uuid.Nil && m.Log != o.id {
		return diverged
	}
	if m.Position == 0 {
		return nil
	}
	e, err := o.readAt(ctx, m.Position)
	if err != nil {
		return err
	}
	if e.Position != m.Position || e.ID != m.Event {
		return diverged
	}
	return nil
}

func allPosition(p eventstore.Position) esdb.Position {
	return esdb.Position{Commit: uint64(p), Prepare: uint64(p)}
}

// readAt is the event at a position; the zero one when there is none.
func (o *officialStore) readAt(ctx context.Context, p eventstore.Position) (found eventstore.RecordedEvent, err error) {
	err = forEachEvent(o.client.ReadAll(ctx, esdb.ReadAllOptions{From: allPosition(p)}, 1))(func(e eventstore.RecordedEvent) bool {
		found = e
		return true
	})
	if err != nil && strings.Contains(err.Error(), "invalid position") {
		err = nil
	}
	return found, err
}

// signalEmitter turns events and words into signalEmitter, each with its mark.
type signalEmitter struct {
	checkpoint eventstore.Checkpoint
	yield      func(eventstore.Signal, error) bool
}

func (s *signalEmitter) emit(k eventstore.SignalKind, e eventstore.RecordedEvent) bool {
	if e.Position > 0 {
		s.checkpoint.Position, s.checkpoint.Event = e.Position, e.ID
	}
	if k != eventstore.EventAppeared {
		e = eventstore.RecordedEvent{}
	}
	return s.yield(eventstore.Signal{Kind: k, Event: e, Checkpoint: s.checkpoint}, nil)
}

// readSignals checks a mark and then lets run speak, whose error is the last word.
func (o *officialStore) readSignals(ctx context.Context, after eventstore.Checkpoint, run func(context.Context, *signalEmitter) error) iter.Seq2[eventstore.Signal, error] {
	return func(yield func(eventstore.Signal, error) bool) {
		s := &signalEmitter{eventstore.Checkpoint{Log: o.id, Position: after.Position, Event: after.Event}, yield}
		err := o.call(ctx, func(ctx context.Context) error {
			if err := o.verifyCheckpoint(ctx, after); err != nil {
				return err
			}
			return run(ctx, s)
		})
		if err != nil {
			yield(eventstore.Signal{}, err)
		}
	}
}

func (o *officialStore) ReadAll(ctx context.Context, after eventstore.Checkpoint, want eventstore.Filter) iter.Seq2[eventstore.Signal, error] {
	return o.readSignals(ctx, after, func(ctx context.Context, s *signalEmitter) error {
		var last eventstore.RecordedEvent
		err := forEachEvent(o.client.ReadAll(ctx, esdb.ReadAllOptions{From: allPosition(after.Position)}, math.MaxUint64))(func(e eventstore.RecordedEvent) bool {
			last = e
			return e.Position <= after.Position || !want.Matches(e.Stream) || s.emit(eventstore.EventAppeared, e)
		})
		if err == nil {
			s.emit(eventstore.CaughtUp, last)
		}
		return err
	})
}

// filterExpression is a filter as the server understands it.
func filterExpression(want eventstore.Filter) *esdb.SubscriptionFilter {
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

func (o *officialStore) Subscribe(ctx context.Context, after eventstore.Checkpoint, want eventstore.Filter) iter.Seq2[eventstore.Signal, error] {
	return o.readSignals(ctx, after, func(ctx context.Context, s *signalEmitter) error {
		from := esdb.SubscribeToAllOptions{From: allPosition(after.Position), Filter: filterExpression(want)}
		if after.Position == 0 {
			from.From = esdb.Start{}
		}
		sub, err := o.client.SubscribeToAll(ctx, from)
		if err != nil {
			return err
		}
		defer func() { _ = sub.Close() }()
		for {
			on, err := o.emitMessage(ctx, sub.Recv(), s)
			if err != nil || !on {
				return err
			}
		}
	})
}

// emitMessage passes one word of a subscription on; false: nobody listens any more.
func (o *officialStore) emitMessage(ctx context.Context, e *esdb.SubscriptionEvent, s *signalEmitter) (bool, error) {
	switch {
	case e.EventAppeared != nil:
		return s.emit(eventstore.EventAppeared, toRecordedEvent(e.EventAppeared.OriginalEvent())), nil
	case e.CaughtUp != nil:
		return s.emit(eventstore.CaughtUp, eventstore.RecordedEvent{}), nil
	case e.CheckPointReached != nil:
		seen, err := o.readAt(ctx, eventstore.Position(e.CheckPointReached.Commit))
		return err == nil && s.emit(eventstore.CheckpointReached, seen), err
	}
	return false, e.SubscriptionDropped.Error
}

func (s nodeServer) asStore(t *testing.T) *officialStore {
	t.Helper()
	o, err := s.newOfficialStore(t.Context(), connect(t, "esdb://unused?tls=false", s.addr))
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
		storetest.Run(t, func(t *testing.T) eventstore.Store {
			return startServer(t).asStore(t)
		}, storetest.Options{Reopen: reopen})
	})
}
