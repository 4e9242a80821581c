package esdb

import (
	"context"
	"errors"
	"fmt"

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

func asNotLeader(err error, to **notLeaderError) bool { return errors.As(err, to) }

// named turns the trailers by which EventStoreDB tells its refusals apart into errors; nil when they name none.
func named(trailer metadata.MD) error {
	switch first(trailer, "exception") {
	case "not-leader":
		return &notLeaderError{join(first(trailer, "leader-endpoint-host"), first(trailer, "leader-endpoint-port"))}
	case "stream-deleted":
		return errDeleted
	case "maximum-append-size-exceeded":
		return eventstore.ErrTooLarge
	case "invalid-transaction":
		return eventstore.ErrMismatch
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

// unappended is the error of an append: complete says whether the server may have had the whole request.
func unappended(ctx context.Context, err error, trailer metadata.MD, complete bool) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%w: %w", eventstore.ErrUnknown, ctx.Err())
	}
	if refusal := named(trailer); refusal != nil {
		return refusal
	}
	switch status.Code(err) {
	case codes.InvalidArgument, codes.FailedPrecondition:
		return err
	case codes.ResourceExhausted:
		return fmt.Errorf("%w: %w", eventstore.ErrTooLarge, err)
	case codes.PermissionDenied, codes.Unauthenticated, codes.Unimplemented:
		return fmt.Errorf("%w: %w", eventstore.ErrUnavailable, err)
	}
	if complete && !unhandled(err) {
		return fmt.Errorf("%w: %w", eventstore.ErrUnknown, err)
	}
	return fmt.Errorf("%w: %w", eventstore.ErrUnavailable, err)
}

// unhandled says whether the server itself says that it did not look at the request. No transport uses these words.
func unhandled(err error) bool {
	switch status.Convert(err).Message() {
	case "Server Is Not Ready", "Server Is Too Busy":
		return status.Code(err) == codes.Unavailable
	}
	return false
}
