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

// errDeleted: the stream has a tombstone, which this program never writes.
var errDeleted = errors.New("stream was deleted")

// notLeaderError is the refusal of a node that does not lead. It names the leader's address. Nothing was done.
type notLeaderError struct{ leader string }

func (e *notLeaderError) Error() string { return "the leader is " + e.leader }

// leaderFrom returns the leader that an error names; redirected is false if it names none.
func leaderFrom(err error) (leader string, redirected bool) {
	if e, ok := errors.AsType[*notLeaderError](err); ok {
		return e.leader, true
	}
	return "", false
}

// errorFromTrailer returns the refusal that a call's trailers name: EventStoreDB distinguishes its refusals by them and not
// by the status alone. It returns nil if they name none that matters here.
func errorFromTrailer(trailer metadata.MD) error {
	switch firstValue(trailer, "exception") {
	case "not-leader":
		return &notLeaderError{joinHostPort(firstValue(trailer, "leader-endpoint-host"), firstValue(trailer, "leader-endpoint-port"))}
	case "stream-deleted":
		return errDeleted
	}
	return nil
}

// firstValue is the first value of a header or trailer, or "".
func firstValue(md metadata.MD, key string) string {
	if v := md.Get(key); len(v) > 0 {
		return v[0]
	}
	return ""
}

// readError is the error of a call that changes nothing: the caller's own, a refusal with a meaning, or
// ErrUnavailable.
func readError(ctx context.Context, err error, trailer metadata.MD) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if refusal := errorFromTrailer(trailer); refusal != nil {
		return refusal
	}
	return fmt.Errorf("%w: %w", eventstore.ErrUnavailable, err)
}

// pipelineError is the meaning of a pipeline's end for the appends in flight. Their outcome is unknown, unless the server
// refused the call at once, before the first append, and for a reason unrelated to appends.
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

// appendError turns the server's refusal of one append into an error of eventstore. Unknown details leave the outcome
// unknown, unless classifyStatus decides it.
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

// classifyStatus is the kind of failure that a status without known details means: ErrUnavailable if the server certainly did
// nothing, ErrUnknown if it may have. nil: the request itself is wrong.
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
	case codes.Unavailable: // how EventStoreDB refuses a request that it did not process
		if s.GetMessage() == "Server Is Not Ready" || s.GetMessage() == "Server Is Too Busy" {
			return eventstore.ErrUnavailable
		}
	}
	return eventstore.ErrUnknown
}

// newConflictError is a conflict at the revision that the server names.
func newConflictError(w *shared.WrongExpectedVersion, stream string, expected eventstore.Revision) error {
	c := &eventstore.ConflictError{Stream: stream, Expected: expected, Current: eventstore.Revision(w.GetCurrentStreamRevision())}
	if w.GetCurrentNoStream() != nil {
		c.Current = eventstore.NoStream
	}
	return c
}

// reportAppendError reports the error of an append to the connector, and returns the one for the caller. An append whose
// context ended may still be made, so its outcome is unknown.
func (s *Store) reportAppendError(ctx context.Context, c *conn, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return fmt.Errorf("%w: %w", eventstore.ErrUnknown, ctx.Err())
	}
	if _, redirected := leaderFrom(err); redirected {
		err = errors.Join(eventstore.ErrUnavailable, err)
	}
	if err = s.reportError(ctx, c, err); errors.Is(err, eventstore.ErrUnavailable) || errors.Is(err, eventstore.ErrUnknown) {
		s.connector.recordAppendResult(err)
	}
	return err
}

// reportError asks for a probe of the connection if a call failed in a way that may be its end. An unavailable call that
// failed because of Close gets ErrClosed; an append of unknown outcome stays ErrUnknown.
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

// reportReadError reports the error of a read to the connector, and returns the one for the caller. A read is not repeated at
// the leader: its caller may have received events already.
func (s *Store) reportReadError(ctx context.Context, c *conn, err error) error {
	if leader, redirected := leaderFrom(err); redirected {
		s.connector.setLeaderHint(leader)
		err = errors.Join(eventstore.ErrUnavailable, err)
	}
	return s.reportError(ctx, c, err)
}
