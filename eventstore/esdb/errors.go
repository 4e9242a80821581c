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

// errorFromTrailer turns the trailers by which EventStoreDB tells its refusals apart into errors; nil when they name none.
func errorFromTrailer(trailer metadata.MD) error {
	switch firstValue(trailer, "exception") {
	case "not-leader":
		return &notLeaderError{joinHostPort(firstValue(trailer, "leader-endpoint-host"), firstValue(trailer, "leader-endpoint-port"))}
	case "stream-deleted":
		return errDeleted
	}
	return nil
}

func firstValue(md metadata.MD, key string) string {
	if v := md.Get(key); len(v) > 0 {
		return v[0]
	}
	return ""
}

// readError is the error of a call that changes nothing.
func readError(ctx context.Context, err error, trailer metadata.MD) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if refusal := errorFromTrailer(trailer); refusal != nil {
		return refusal
	}
	return fmt.Errorf("%w: %w", eventstore.ErrUnavailable, err)
}

// pipelineError is what the end of a pipeline means for the appends on their way. Only one that is refused at once, for what
// was wrong before the first append, certainly made none.
func pipelineError(err error, trailer metadata.MD, atOnce bool) error {
	if atOnce {
		if refusal := errorFromTrailer(trailer); refusal != nil {
			return refusal
		}
		switch status.Code(err) {
		case codes.PermissionDenied, codes.Unauthenticated, codes.Unimplemented:
			return fmt.Errorf("%w: %w", eventstore.ErrUnavailable, err)
		}
	}
	return fmt.Errorf("%w: %w", eventstore.ErrUnknown, err)
}

// appendError is what a server says of one append that it did not make, or may not have made.
func appendError(s *rpc.Status, stream string, expected eventstore.Revision) error {
	for _, d := range s.GetDetails() {
		var wrong shared.WrongExpectedVersion
		switch {
		case d.UnmarshalTo(&wrong) == nil:
			return newConflictError(&wrong, stream, expected)
		case d.MessageIs(&shared.MaximumAppendSizeExceeded{}):
			return eventstore.ErrTooLarge
		case d.MessageIs(&shared.InvalidTransaction{}):
			return eventstore.ErrIDReused
		case d.MessageIs(&shared.StreamDeleted{}):
			return errDeleted
		}
	}
	err := status.Error(codes.Code(s.GetCode()), s.GetMessage())
	if kind := classifyStatus(s); kind != nil {
		return fmt.Errorf("%w: %w", kind, err)
	}
	return fmt.Errorf("append refused: %w", err)
}

// classifyStatus says which kind of failure a refusal without details of ours is; nil: the request itself is wrong.
func classifyStatus(s *rpc.Status) error {
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

func newConflictError(w *shared.WrongExpectedVersion, stream string, expected eventstore.Revision) error {
	c := &eventstore.ConflictError{Stream: stream, Expected: expected, Current: eventstore.Revision(w.GetCurrentStreamRevision())}
	if w.GetCurrentNoStream() != nil {
		c.Current = eventstore.NoStream
	}
	return c
}

// reportAppendError is the error of an append as its caller sees it.
func (s *Store) reportAppendError(ctx context.Context, c *conn, err error) error {
	var notLeader *notLeaderError
	switch {
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return fmt.Errorf("%w: %w", eventstore.ErrUnknown, ctx.Err())
	case errors.As(err, &notLeader):
		err = errors.Join(eventstore.ErrUnavailable, err)
	}
	if err = s.reportError(ctx, c, err); errors.Is(err, eventstore.ErrUnavailable) || errors.Is(err, eventstore.ErrUnknown) {
		s.connector.recordAppendResult(err)
	}
	return err
}

// reportError reports what a call tells of the connection, and says ErrClosed for what Close did.
func (s *Store) reportError(ctx context.Context, c *conn, err error) error {
	unknown, unavailable := errors.Is(err, eventstore.ErrUnknown), errors.Is(err, eventstore.ErrUnavailable)
	switch {
	case ctx.Err() != nil:
		return err
	case s.connector.ctx.Err() != nil && unavailable:
		return eventstore.ErrClosed
	case unknown || unavailable:
		s.connector.requestProbe(c)
	}
	return err
}

// reportReadError is failed for a read, which follows the leader for the calls to come.
func (s *Store) reportReadError(ctx context.Context, c *conn, err error) error {
	var notLeader *notLeaderError
	if errors.As(err, &notLeader) {
		s.connector.setLeaderHint(notLeader.leader)
		err = errors.Join(eventstore.ErrUnavailable, err)
	}
	return s.reportError(ctx, c, err)
}
