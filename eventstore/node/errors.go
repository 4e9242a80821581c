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

// statusError is an answer that refuses: a status, and the trailers by which clients tell EventStoreDB's errors apart.
type statusError struct {
	code    codes.Code
	text    string
	trailer metadata.MD
}

func (f *statusError) Error() string              { return f.text }
func (f *statusError) GRPCStatus() *status.Status { return status.New(f.code, f.text) }

func invalidArgument(format string, args ...any) *statusError {
	return &statusError{code: codes.InvalidArgument, text: fmt.Sprintf(format, args...)}
}

func streamDeleted(stream string) *statusError {
	return &statusError{codes.FailedPrecondition, fmt.Sprintf("Event stream '%s' is deleted.", printableHeader(stream)),
		metadata.Pairs("exception", "stream-deleted", "stream-name", printableHeader(stream))}
}

func appendTooLarge() *statusError {
	size := strconv.Itoa(eventstore.MaxAppendBytes)
	return &statusError{codes.InvalidArgument, "Maximum Append Size of " + size + " Exceeded.",
		metadata.Pairs("exception", "maximum-append-size-exceeded", "maximum-append-size", size)}
}

func missing(property string) *statusError {
	return &statusError{codes.InvalidArgument, fmt.Sprintf("Required Metadata Property '%s' is missing", property),
		metadata.Pairs("exception", "missing-required-metadata-property", "required-metadata-properties", "type,content-type")}
}

func wrongExpectedVersion(operation string, c *eventstore.ConflictError) *statusError {
	expected, actual := strconv.FormatInt(int64(c.Expected), 10), strconv.FormatInt(int64(c.Current), 10)
	text := fmt.Sprintf("%s failed due to WrongExpectedVersion. Stream: %s, Expected version: %s, Actual version: %s",
		operation, printableHeader(c.Stream), expected, actual)
	return &statusError{codes.FailedPrecondition, text, metadata.Pairs("exception", "wrong-expected-version",
		"stream-name", printableHeader(c.Stream), "expected-version", expected, "actual-version", actual)}
}

func invalidTransaction() *statusError {
	return &statusError{codes.InvalidArgument, "Invalid Transaction", metadata.Pairs("exception", "invalid-transaction")}
}

// unhandledException is what EventStoreDB says where it does not look at what it is asked.
func unhandledException() *statusError {
	return &statusError{code: codes.Unknown, text: "Exception was thrown by handler."}
}

// notReady says that nothing was done.
func notReady() *statusError {
	return &statusError{code: codes.Unavailable, text: "Server Is Not Ready"}
}

// printableHeader keeps a stream name inside what a header may hold.
func printableHeader(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, s)
}

// toStatusError turns any error into the answer EventStoreDB gives. Aborted is its word for an append whose outcome is
// unknown; Unavailable is said only when certainly nothing was added.
func toStatusError(err error) error {
	var f *statusError
	var diverged *eventstore.DivergedError
	switch {
	case err == nil || errors.As(err, &f):
		return err
	case errors.Is(err, eventstore.ErrUnknown):
		return &statusError{code: codes.Aborted, text: "Operation timed out: " + err.Error()}
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
	return &statusError{code: codes.Internal, text: err.Error()}
}

// batchSuccess is the answer to a batch that was made.
func batchSuccess(c eventstore.AppendResult) *streams.BatchAppendResp {
	success := &streams.BatchAppendResp_Success{
		CurrentRevisionOption: &streams.BatchAppendResp_Success_CurrentRevision{CurrentRevision: uint64(c.Revision)},
		PositionOption: &streams.BatchAppendResp_Success_Position{Position: &shared.AllStreamPosition{
			CommitPosition: uint64(c.Position), PreparePosition: uint64(c.Position),
		}},
	}
	if c.Revision < 0 {
		success.CurrentRevisionOption = &streams.BatchAppendResp_Success_NoStream{NoStream: &emptypb.Empty{}}
	}
	if c.Position == 0 {
		success.PositionOption = &streams.BatchAppendResp_Success_NoPosition{NoPosition: &emptypb.Empty{}}
	}
	return &streams.BatchAppendResp{Result: &streams.BatchAppendResp_Success_{Success: success}}
}

// batchFailure is the answer to a batch that was not made, or may not have been: EventStoreDB's words for it differ from
// those of a single append.
func batchFailure(item *batch, err error) *streams.BatchAppendResp {
	var conflict *eventstore.ConflictError
	if errors.As(err, &conflict) {
		return batchWrongVersion(item.expected, conflict.Current)
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, eventstore.ErrUnknown) {
		return batchTimeout()
	}
	f := &statusError{code: codes.Canceled, text: err.Error()}
	errors.As(toStatusError(err), &f)
	switch exceptionName(f) {
	case "stream-deleted":
		return newBatchError(code.Code_NOT_FOUND, "StreamDeleted", &shared.StreamDeleted{StreamIdentifier: streamIdentifier(item.stream)})
	case "maximum-append-size-exceeded":
		return newBatchError(code.Code_INVALID_ARGUMENT, "MaximumAppendSizeExceeded", &shared.MaximumAppendSizeExceeded{MaxAppendSize: eventstore.MaxAppendBytes})
	case "invalid-transaction":
		return newBatchError(code.Code_FAILED_PRECONDITION, "InvalidTransaction", &shared.InvalidTransaction{})
	}
	if f.code == codes.InvalidArgument {
		return batchBadRequest(f.text)
	}
	return newBatchError(code.Code(f.code), f.text, &emptypb.Empty{})
}

func exceptionName(f *statusError) string {
	if is := f.trailer.Get("exception"); len(is) > 0 {
		return is[0]
	}
	return ""
}

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
	return newBatchError(code.Code_ALREADY_EXISTS, "WrongExpectedVersion", w)
}

// batchTimeout is also said of an append whose outcome is unknown.
func batchTimeout() *streams.BatchAppendResp {
	return newBatchError(code.Code_DEADLINE_EXCEEDED, "Timeout", &shared.Timeout{})
}

func batchBadRequest(why string) *streams.BatchAppendResp {
	return newBatchError(code.Code_INVALID_ARGUMENT, "BadRequest", &shared.BadRequest{Message: why})
}

func newBatchError(c code.Code, message string, details proto.Message) *streams.BatchAppendResp {
	s := &rpc.Status{Code: int32(c), Message: message}
	if packed, err := anypb.New(details); err == nil {
		s.Details = []*anypb.Any{packed}
	}
	return &streams.BatchAppendResp{Result: &streams.BatchAppendResp_Error{Error: s}}
}
