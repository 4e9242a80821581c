package node_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/google/uuid"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"lieudit/eventstore"
	"lieudit/eventstore/storetest"
)

// TestContract runs every rule of the contract on a node through the official client. The rules need no outages, after
// which this client is of no use.
func TestContract(t *testing.T) {
	t.Parallel()
	t.Run("official client", func(t *testing.T) {
		t.Parallel()
		storetest.Run(t, func(t *testing.T) eventstore.Store {
			return startServer(t).asStore(t)
		}, storetest.Options{Reopen: reopen})
	})
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

// officialStore is the official Go client as a store, so that the contract of a store can be tested on a node through it. It works around
// two of the client's faults: calls during Close make it panic, so Close ends them first; and it does not look at
// the context before it connects. Outages, which make the client useless for good, are left to esdb.
type officialStore struct {
	server nodeServer
	client *esdb.Client
	ctx    context.Context
	cancel context.CancelFunc
	mu     sync.RWMutex // held for reading by running calls
	once   sync.Once
	id     uuid.UUID
}

const identityStream = "official-identity"

func (s nodeServer) newOfficialStore(ctx context.Context, client *esdb.Client) (*officialStore, error) {
	o := &officialStore{server: s, client: client}
	o.ctx, o.cancel = context.WithCancel(context.Background())
	return o, o.createIdentity(ctx)
}

// createIdentity gives the log an identity, unless it has one.
func (o *officialStore) createIdentity(ctx context.Context) error {
	_, err := o.client.AppendToStream(ctx, identityStream, esdb.AppendToStreamOptions{ExpectedRevision: esdb.NoStream{}}, newEvent("named"))
	if err != nil && errorCode(err) != esdb.ErrorCodeWrongExpectedVersion {
		return err
	}
	first, err := readEvents(o.client.ReadStream(ctx, identityStream, esdb.ReadStreamOptions{}, 1))
	if err == nil {
		o.id = first[0].EventID
	}
	return err
}

// call runs f with a context that ends with the caller's or the store's, and returns the error of the one that ended.
func (o *officialStore) call(ctx context.Context, f func(context.Context) error) error {
	o.mu.RLock()
	defer o.mu.RUnlock()
	if o.ctx.Err() != nil {
		return eventstore.ErrClosed
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	callCtx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // hides the deadline from the server, which may be quicker
	defer cancel()
	defer context.AfterFunc(ctx, cancel)()
	defer context.AfterFunc(o.ctx, cancel)()
	err := f(callCtx)
	switch {
	case err == nil || errors.Is(err, errEnough):
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case o.ctx.Err() != nil:
		return eventstore.ErrClosed
	}
	return err
}

var errEnough = errors.New("the reader wants no more")

func (o *officialStore) Identity(ctx context.Context) (uuid.UUID, error) {
	return o.id, o.call(ctx, func(context.Context) error { return nil })
}

func (o *officialStore) Health() error {
	return o.call(context.Background(), func(context.Context) error { return nil })
}

func (o *officialStore) Close() error {
	o.cancel()
	o.mu.Lock()
	defer o.mu.Unlock()
	var err error
	o.once.Do(func() { err = o.client.Close() })
	return err
}

func (o *officialStore) Append(ctx context.Context, stream string, expected eventstore.Revision, events []eventstore.ProposedEvent) (done eventstore.AppendResult, err error) {
	all, size := make([]esdb.EventData, len(events)), 0
	for i, e := range events {
		all[i] = esdb.EventData{EventID: e.ID, EventType: e.Type, ContentType: esdb.ContentTypeJson, Data: e.Data, Metadata: e.Metadata}
		size += len(e.Type) + len(e.Data) + len(e.Metadata)
	}
	if size > eventstore.MaxAppendBytes { // the client turns the server's refusal into an unknown error
		return done, eventstore.ErrTooLarge
	}
	options := esdb.AppendToStreamOptions{ExpectedRevision: esdb.Any{}}
	if expected == eventstore.NoStream {
		options.ExpectedRevision = esdb.NoStream{}
	} else if expected >= 0 {
		options.ExpectedRevision = esdb.Revision(uint64(expected))
	}
	err = o.call(ctx, func(ctx context.Context) error {
		result, err := o.client.AppendToStream(ctx, stream, options, all...)
		if err != nil {
			return o.classifyConflict(ctx, err, stream, expected, events)
		}
		done = eventstore.AppendResult{Revision: eventstore.Revision(result.NextExpectedVersion), Position: eventstore.Position(result.CommitPosition)}
		return nil
	})
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("%w: %w", eventstore.ErrUnknown, err)
	}
	return done, err
}

// classifyConflict tells a conflict from ids that came back in another batch.
func (o *officialStore) classifyConflict(ctx context.Context, err error, stream string, expected eventstore.Revision, events []eventstore.ProposedEvent) error {
	if status.Code(err) == codes.InvalidArgument || errorCode(err) == esdb.ErrorCodeWrongExpectedVersion && expected == eventstore.Any {
		return eventstore.ErrIDReused
	}
	if errorCode(err) != esdb.ErrorCodeWrongExpectedVersion {
		return fmt.Errorf("%w: %w", eventstore.ErrUnknown, err)
	}
	there, e := readEvents(o.client.ReadStream(ctx, stream, esdb.ReadStreamOptions{From: esdb.Revision(uint64(expected + 1))}, 1))
	if e == nil && len(there) == 1 && there[0].EventID == events[0].ID {
		return eventstore.ErrIDReused
	}
	c := &eventstore.ConflictError{Stream: stream, Expected: expected, Current: eventstore.NoStream}
	_, got, _ := strings.Cut(err.Error(), "but got '") // the client keeps the number in the text only
	_, _ = fmt.Sscanf(got, "%d", &c.Current)
	return c
}

func toRecordedEvent(e *esdb.RecordedEvent) eventstore.RecordedEvent {
	return eventstore.RecordedEvent{
		Position: eventstore.Position(e.Position.Commit), Stream: e.StreamID, Revision: eventstore.Revision(e.EventNumber),
		ID: e.EventID, Type: e.EventType, Time: e.CreatedDate, Data: e.Data, Metadata: e.UserMetadata,
	}
}

func (o *officialStore) ReadStream(ctx context.Context, stream string, from eventstore.Revision, dir eventstore.Direction) iter.Seq2[eventstore.RecordedEvent, error] {
	options := esdb.ReadStreamOptions{From: esdb.End{}}
	if dir == eventstore.Backward {
		options.Direction = esdb.Backwards
	}
	if from >= 0 {
		options.From = esdb.Revision(uint64(from))
	}
	return func(yield func(eventstore.RecordedEvent, error) bool) {
		err := o.call(ctx, func(ctx context.Context) error {
			return forEachEvent(o.client.ReadStream(ctx, stream, options, math.MaxUint64))(func(e eventstore.RecordedEvent) bool { return yield(e, nil) })
		})
		if err != nil && errorCode(err) != esdb.ErrorCodeResourceNotFound {
			yield(eventstore.RecordedEvent{}, err)
		}
	}
}

// forEachEvent passes the events of a read to do until do returns false.
func forEachEvent(r *esdb.ReadStream, err error) func(func(eventstore.RecordedEvent) bool) error {
	return func(do func(eventstore.RecordedEvent) bool) error {
		if err != nil {
			return err
		}
		defer r.Close()
		for {
			e, err := r.Recv()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			if !do(toRecordedEvent(e.OriginalEvent())) {
				return errEnough
			}
		}
	}
}

// verifyCheckpoint fails when a checkpoint is not on the log.
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

// signalEmitter yields signals, each with its checkpoint.
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

// readSignals verifies a checkpoint and then yields what run emits, and its error last.
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

// emitMessage yields the signal of one message of a subscription. It returns false when the reader wants no more.
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
