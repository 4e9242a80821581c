package node

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"google.golang.org/genproto/googleapis/rpc/code"
	rpc "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/emptypb"

	"lieudit/eventstore"
)

// refusal is an answer that refuses a call, in the two forms that clients tell EventStoreDB's errors apart by. The status
// and the trailers end a call (Append, Read, Delete, Tombstone); batch answers one batch of a BatchAppend call, which
// continues. Both forms of a refusal stand together in the function that makes it.
type refusal struct {
	code    codes.Code
	text    string
	trailer metadata.MD
	batch   *rpc.Status // nil means the code and the text, without details
}

func (r *refusal) Error() string              { return r.text }
func (r *refusal) GRPCStatus() *status.Status { return status.New(r.code, r.text) }

// batchResponse is the refusal as the answer to a batch.
func (r *refusal) batchResponse() *streams.BatchAppendResp {
	s := r.batch
	if s == nil {
		s = batchStatus(code.Code(r.code), r.text, &emptypb.Empty{})
	}
	return batchError(s)
}

// batchError is the answer to a batch that was refused.
func batchError(s *rpc.Status) *streams.BatchAppendResp {
	return &streams.BatchAppendResp{Result: &streams.BatchAppendResp_Error{Error: s}}
}

// batchStatus is a status with details, by whose type clients tell refusals apart.
func batchStatus(c code.Code, message string, details proto.Message) *rpc.Status {
	s := &rpc.Status{Code: int32(c), Message: message}
	if packed, err := anypb.New(details); err == nil {
		s.Details = []*anypb.Any{packed}
	}
	return s
}

// invalidArgument refuses a request that makes no sense. A batch gets the text as details of a bad request.
func invalidArgument(format string, args ...any) *refusal {
	text := fmt.Sprintf(format, args...)
	return &refusal{code: codes.InvalidArgument, text: text,
		batch: batchStatus(code.Code_INVALID_ARGUMENT, "BadRequest", &shared.BadRequest{Message: text})}
}

// streamDeleted refuses a call on a tombstoned stream.
func streamDeleted(stream string) *refusal {
	return &refusal{codes.FailedPrecondition, fmt.Sprintf("Event stream '%s' is deleted.", printableHeader(stream)),
		metadata.Pairs("exception", "stream-deleted", "stream-name", printableHeader(stream)),
		batchStatus(code.Code_NOT_FOUND, "StreamDeleted", &shared.StreamDeleted{StreamIdentifier: streamIdentifier(stream)})}
}

// appendTooLarge refuses an append of more than eventstore.MaxAppendBytes.
func appendTooLarge() *refusal {
	size := strconv.Itoa(eventstore.MaxAppendBytes)
	return &refusal{codes.InvalidArgument, "Maximum Append Size of " + size + " Exceeded.",
		metadata.Pairs("exception", "maximum-append-size-exceeded", "maximum-append-size", size),
		batchStatus(code.Code_INVALID_ARGUMENT, "MaximumAppendSizeExceeded", &shared.MaximumAppendSizeExceeded{MaxAppendSize: eventstore.MaxAppendBytes})}
}

// invalidTransaction refuses an append at the right revision whose ids are on the stream already, but not as this
// append.
func invalidTransaction() *refusal {
	return &refusal{codes.InvalidArgument, "Invalid Transaction", metadata.Pairs("exception", "invalid-transaction"),
		batchStatus(code.Code_FAILED_PRECONDITION, "InvalidTransaction", &shared.InvalidTransaction{})}
}

// deleteWrongVersion refuses a deletion. An append answers a wrong version with a message of its own instead: see
// appendWrongVersion and batchWrongVersion.
func deleteWrongVersion(c *eventstore.ConflictError) *refusal {
	expected, actual := strconv.FormatInt(int64(c.Expected), 10), strconv.FormatInt(int64(c.Current), 10)
	text := fmt.Sprintf("Delete failed due to WrongExpectedVersion. Stream: %s, Expected version: %s, Actual version: %s",
		printableHeader(c.Stream), expected, actual)
	return &refusal{code: codes.FailedPrecondition, text: text, trailer: metadata.Pairs("exception", "wrong-expected-version",
		"stream-name", printableHeader(c.Stream), "expected-version", expected, "actual-version", actual)}
}

// unhandledException is EventStoreDB's answer to an invalid request that it does not validate.
func unhandledException() *refusal {
	return &refusal{code: codes.Unknown, text: "Exception was thrown by handler."}
}

// notReady refuses a call of which certainly nothing was done. Clients may send it again.
func notReady() *refusal {
	return &refusal{code: codes.Unavailable, text: "Server Is Not Ready"}
}

// printableHeader replaces what a header cannot hold.
func printableHeader(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, s)
}

// toStatusError turns any error into the answer that EventStoreDB gives. An append whose outcome is unknown is Aborted;
// Unavailable is used only when certainly nothing was added.
func toStatusError(err error) error {
	var r *refusal
	var diverged *eventstore.DivergedError
	switch {
	case err == nil || errors.As(err, &r):
		return err
	case errors.Is(err, eventstore.ErrUnknown):
		return &refusal{code: codes.Aborted, text: "Operation timed out: " + err.Error()}
	case errors.Is(err, eventstore.ErrUnavailable), errors.Is(err, eventstore.ErrClosed):
		return notReady()
	case errors.Is(err, eventstore.ErrTooLarge):
		return appendTooLarge()
	case errors.Is(err, eventstore.ErrIDReused):
		return invalidTransaction()
	case errors.As(err, &diverged):
		return invalidArgument("Trying to read from an invalid position.")
	}
	if _, ok := status.FromError(err); ok {
		return err
	}
	if s := status.FromContextError(err); s.Code() != codes.Unknown {
		return s.Err()
	}
	return &refusal{code: codes.Internal, text: err.Error()}
}

// batchFailure answers a batch whose append failed with err. It differs from toStatusError in the cases in which
// EventStoreDB answers a batch differently from an Append: a conflict is an answer with details, and an unknown outcome
// is a timeout.
func batchFailure(b *batch, err error) *streams.BatchAppendResp {
	var conflict *eventstore.ConflictError
	switch {
	case errors.As(err, &conflict):
		return batchWrongVersion(b.expected, conflict.Current)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, eventstore.ErrUnknown):
		return batchTimeout()
	}
	r := &refusal{code: codes.Canceled, text: err.Error()}
	errors.As(toStatusError(err), &r)
	return r.batchResponse()
}

// batchWrongVersion answers a conflict to a batch: with the expected and the last revision of the stream.
func batchWrongVersion(expected, current eventstore.Revision) *streams.BatchAppendResp {
	w, none := &shared.WrongExpectedVersion{}, &emptypb.Empty{}
	switch expected {
	case eventstore.Any:
		w.ExpectedStreamPositionOption = &shared.WrongExpectedVersion_ExpectedAny{ExpectedAny: none}
	case eventstore.NoStream:
		w.ExpectedStreamPositionOption = &shared.WrongExpectedVersion_ExpectedNoStream{ExpectedNoStream: none}
	case streamExists:
		w.ExpectedStreamPositionOption = &shared.WrongExpectedVersion_ExpectedStreamExists{ExpectedStreamExists: none}
	default:
		w.ExpectedStreamPositionOption = &shared.WrongExpectedVersion_ExpectedStreamPosition{ExpectedStreamPosition: uint64(expected)}
	}
	w.CurrentStreamRevisionOption = &shared.WrongExpectedVersion_CurrentStreamRevision{CurrentStreamRevision: uint64(current)}
	if current < 0 {
		w.CurrentStreamRevisionOption = &shared.WrongExpectedVersion_CurrentNoStream{CurrentNoStream: none}
	}
	return batchError(batchStatus(code.Code_ALREADY_EXISTS, "WrongExpectedVersion", w))
}

// batchTimeout also answers an append whose outcome is unknown: clients repeat both.
func batchTimeout() *streams.BatchAppendResp {
	return batchError(batchStatus(code.Code_DEADLINE_EXCEEDED, "Timeout", &shared.Timeout{}))
}
