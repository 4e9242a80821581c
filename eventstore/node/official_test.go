package node_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"strings"
	"sync"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/google/uuid"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"lieudit/eventstore"
)

// officialStore is the officialStore client as a store, so that the contract can be held to a node through it. It works around
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

// call runs f, with a context that ends with the caller's or the store's, and says which of the two ended it.
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

// forEachEvent gives what a read finds until it is told to stop.
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
