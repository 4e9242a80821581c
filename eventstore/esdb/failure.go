package esdb

import (
	"context"
	"errors"
	"fmt"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	rpc "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"lieudit/eventstore"
)

// errDeleted: the stream was ended for good, by somebody else than this program.
var errDeleted = errors.New("stream was deleted")

// notLeaderError is a node that says another one leads; nothing was done.
type notLeaderError struct{ leader string }

func (e *notLeaderError) Error() string { return "the leader is " + e.leader }

// named turns the trailers by which EventStoreDB tells its refusals apart into errors; nil when they name none.
func named(trailer metadata.MD) error {
	switch first(trailer, "exception") {
	case "not-leader":
		return &notLeaderError{join(first(trailer, "leader-endpoint-host"), first(trailer, "leader-endpoint-port"))}
	case "stream-deleted":
		return errDeleted
	}
	return nil
}

func first(md metadata.MD, key string) string {
	if v := md.Get(key); len(v) > 0 {
		return v[0]
	}
	return ""
}

// unread is the error of a call that changes nothing.
func unread(ctx context.Context, err error, trailer metadata.MD) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if refusal := named(trailer); refusal != nil {
		return refusal
	}
	return fmt.Errorf("%w: %w", eventstore.ErrUnavailable, err)
}

// broken is what the end of a pipeline means for the appends on their way. Only one that is refused at once, for what
// was wrong before the first append, certainly made none.
func broken(err error, trailer metadata.MD, atOnce bool) error {
	if atOnce {
		if refusal := named(trailer); refusal != nil {
			return refusal
		}
		switch status.Code(err) {
		case codes.PermissionDenied, codes.Unauthenticated, codes.Unimplemented:
			return fmt.Errorf("%w: %w", eventstore.ErrUnavailable, err)
		}
	}
	return fmt.Errorf("%w: %w", eventstore.ErrUnknown, err)
}

// verdict is what a server says of one append that it did not make, or may not have made.
func verdict(s *rpc.Status, stream string, expected eventstore.Revision) error {
	for _, d := range s.GetDetails() {
		var wrong shared.WrongExpectedVersion
		switch {
		case d.UnmarshalTo(&wrong) == nil:
			return conflict(&wrong, stream, expected)
		case d.MessageIs(&shared.MaximumAppendSizeExceeded{}):
			return eventstore.ErrTooLarge
		case d.MessageIs(&shared.InvalidTransaction{}):
			return eventstore.ErrMismatch
		case d.MessageIs(&shared.StreamDeleted{}):
			return errDeleted
		}
	}
	err := status.Error(codes.Code(s.GetCode()), s.GetMessage())
	if kind := outcome(s); kind != nil {
		return fmt.Errorf("%w: %w", kind, err)
	}
	return fmt.Errorf("append refused: %w", err)
}

// outcome says which kind of failure a refusal without details of ours is; nil: the request itself is wrong.
func outcome(s *rpc.Status) error {
	for _, d := range s.GetDetails() {
		if d.MessageIs(&shared.AccessDenied{}) {
			return eventstore.ErrUnavailable
		}
	}
	switch codes.Code(s.GetCode()) {
	case codes.InvalidArgument:
		return nil
	case codes.PermissionDenied, codes.Unauthenticated:
		return eventstore.ErrUnavailable
	case codes.Unavailable: // EventStoreDB's words for a request that it did not look at
		if s.GetMessage() == "Server Is Not Ready" || s.GetMessage() == "Server Is Too Busy" {
			return eventstore.ErrUnavailable
		}
	}
	return eventstore.ErrUnknown
}

func conflict(w *shared.WrongExpectedVersion, stream string, expected eventstore.Revision) error {
	c := &eventstore.ConflictError{Stream: stream, Expected: expected, Current: eventstore.Revision(w.GetCurrentStreamRevision())}
	if w.GetCurrentNoStream() != nil {
		c.Current = eventstore.NoStream
	}
	return c
}
