package node

import (
	"context"
	"errors"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"google.golang.org/genproto/googleapis/rpc/code"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/emptypb"

	"lieudit/eventstore"
)

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
	s := &status.Status{Code: int32(c), Message: message}
	if packed, err := anypb.New(details); err == nil {
		s.Details = []*anypb.Any{packed}
	}
	return &streams.BatchAppendResp{Result: &streams.BatchAppendResp_Error{Error: s}}
}
