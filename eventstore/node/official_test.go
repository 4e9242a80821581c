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

// official is the official client as a store, so that the contract can be held to a node through it. It works around
// two of the client's faults: calls during Close make it panic, so Close ends them first; and it does not look at
// the context before it connects. Outages, which make the client useless for good, are left to esdb.
type official struct {
	server server
	client *esdb.Client
	life   context.Context
	end    context.CancelFunc
	mu     sync.RWMutex // held for reading by running calls
	once   sync.Once
	id     uuid.UUID
}

const identityStream = "official-identity"

func (s server) store(ctx context.Context, client *esdb.Client) (*official, error) {
	o := &official{server: s, client: client}
	o.life, o.end = context.WithCancel(context.Background())
	return o, o.name(ctx)
}

// name gives the log an identity, unless it has one.
func (o *official) name(ctx context.Context) error {
	_, err := o.client.AppendToStream(ctx, identityStream, esdb.AppendToStreamOptions{ExpectedRevision: esdb.NoStream{}}, event("named"))
	if err != nil && kind(err) != esdb.ErrorCodeWrongExpectedVersion {
		return err
	}
	first, err := drain(o.client.ReadStream(ctx, identityStream, esdb.ReadStreamOptions{}, 1))
	if err == nil {
		o.id = first[0].EventID
	}
	return err
}

// call runs f, with a context that ends with the caller's or the store's, and says which of the two ended it.
func (o *official) call(ctx context.Context, f func(context.Context) error) error {
	o.mu.RLock()
	defer o.mu.RUnlock()
	if o.life.Err() != nil {
		return eventstore.ErrClosed
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	within, cancel := context.WithCancel(context.WithoutCancel(ctx)) // hides the deadline from the server, which may be quicker
	defer cancel()
	defer context.AfterFunc(ctx, cancel)()
	defer context.AfterFunc(o.life, cancel)()
	err := f(within)
	switch {
	case err == nil || errors.Is(err, errEnough):
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case o.life.Err() != nil:
		return eventstore.ErrClosed
	}
	return err
}

var errEnough = errors.New("the reader wants no more")

func (o *official) Identity(ctx context.Context) (uuid.UUID, error) {
	return o.id, o.call(ctx, func(context.Context) error { return nil })
}

func (o *official) Health() error {
	return o.call(context.Background(), func(context.Context) error { return nil })
}

func (o *official) Close() error {
	o.end()
	o.mu.Lock()
	defer o.mu.Unlock()
	var err error
	o.once.Do(func() { err = o.client.Close() })
	return err
}

func (o *official) Append(ctx context.Context, stream string, expected eventstore.Revision, events []eventstore.Proposed) (done eventstore.Committed, err error) {
	all, size := make([]esdb.EventData, len(events)), 0
	for i, e := range events {
		all[i] = esdb.EventData{EventID: e.ID, EventType: e.Type, ContentType: esdb.ContentTypeJson, Data: e.Data, Metadata: e.Metadata}
		size += len(e.Type) + len(e.Data) + len(e.Metadata)
	}
	if size > eventstore.MaxAppend { // the client turns the server's refusal into an unknown error
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
			return o.refused(ctx, err, stream, expected, events)
		}
		done = eventstore.Committed{Revision: eventstore.Revision(result.NextExpectedVersion), Position: eventstore.Position(result.CommitPosition)}
		return nil
	})
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("%w: %w", eventstore.ErrUnknown, err)
	}
	return done, err
}

// refused tells a conflict from ids that came back in another batch.
func (o *official) refused(ctx context.Context, err error, stream string, expected eventstore.Revision, events []eventstore.Proposed) error {
	if status.Code(err) == codes.InvalidArgument || kind(err) == esdb.ErrorCodeWrongExpectedVersion && expected == eventstore.Any {
		return eventstore.ErrMismatch
	}
	if kind(err) != esdb.ErrorCodeWrongExpectedVersion {
		return fmt.Errorf("%w: %w", eventstore.ErrUnknown, err)
	}
	there, e := drain(o.client.ReadStream(ctx, stream, esdb.ReadStreamOptions{From: esdb.Revision(uint64(expected + 1))}, 1))
	if e == nil && len(there) == 1 && there[0].EventID == events[0].ID {
		return eventstore.ErrMismatch
	}
	c := &eventstore.ConflictError{Stream: stream, Expected: expected, Current: eventstore.NoStream}
	_, got, _ := strings.Cut(err.Error(), "but got '") // the client keeps the number in the text only
	_, _ = fmt.Sscanf(got, "%d", &c.Current)
	return c
}

func plain(e *esdb.RecordedEvent) eventstore.Recorded {
	return eventstore.Recorded{
		Position: eventstore.Position(e.Position.Commit), Stream: e.StreamID, Revision: eventstore.Revision(e.EventNumber),
		ID: e.EventID, Type: e.EventType, Time: e.CreatedDate, Data: e.Data, Metadata: e.UserMetadata,
	}
}

func (o *official) ReadStream(ctx context.Context, stream string, from eventstore.Revision, dir eventstore.Direction) iter.Seq2[eventstore.Recorded, error] {
	options := esdb.ReadStreamOptions{From: esdb.End{}}
	if dir == eventstore.Backward {
		options.Direction = esdb.Backwards
	}
	if from >= 0 {
		options.From = esdb.Revision(uint64(from))
	}
	return func(yield func(eventstore.Recorded, error) bool) {
		err := o.call(ctx, func(ctx context.Context) error {
			return each(o.client.ReadStream(ctx, stream, options, math.MaxUint64))(func(e eventstore.Recorded) bool { return yield(e, nil) })
		})
		if err != nil && kind(err) != esdb.ErrorCodeResourceNotFound {
			yield(eventstore.Recorded{}, err)
		}
	}
}

// each gives what a read finds until it is told to stop.
func each(r *esdb.ReadStream, err error) func(func(eventstore.Recorded) bool) error {
	return func(do func(eventstore.Recorded) bool) error {
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
			if !do(plain(e.OriginalEvent())) {
				return errEnough
			}
		}
	}
}
