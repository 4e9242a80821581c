package node

import (
	"context"
	"errors"
	"io"
	"math"
	"sync"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"

	"lieudit/eventstore"
)

const maxAppendEvents = 1 << 16 // in one append: bounds what many empty events cost in memory

// streamsService is the Streams streamsService of one Serve.
type streamsService struct {
	streams.UnimplementedStreamsServer
	node      *Node
	drainCtx  context.Context // ends first: subscriptions and pipelines are over
	killCtx   context.Context // ends last: nothing goes on
	receivers sync.WaitGroup  // of pipelines, which outlive their call by a moment
}

// Append reads one append to its end and makes it.
func (s *streamsService) Append(call streams.Streams_AppendServer) error {
	first, err := call.Recv()
	if err != nil {
		return incompleteRequestError(err)
	}
	o := first.GetOptions()
	if o == nil {
		return invalidArgument("An append begins with its options.")
	}
	stream, err := parseStreamName(o.GetStreamIdentifier())
	if err != nil {
		return err
	}
	expected, err := parseExpectation(o)
	if err != nil {
		return err
	}
	events, err := receiveEvents(call)
	if err != nil {
		return err
	}
	result, err := s.node.append(call.Context(), stream, expected, events)
	var conflict *eventstore.ConflictError
	if errors.As(err, &conflict) {
		return call.SendAndClose(appendWrongVersion(expected, conflict.Current))
	}
	if err != nil {
		return err
	}
	return call.SendAndClose(appendSuccess(result))
}

// incompleteRequestError names a request that ended before it was whole.
func incompleteRequestError(err error) error {
	if errors.Is(err, io.EOF) {
		return invalidArgument("The request is empty.")
	}
	return err
}

// receiveEvents collects the proposed events, no more of them than an append may hold.
func receiveEvents(call streams.Streams_AppendServer) ([]eventstore.ProposedEvent, error) {
	var events []eventstore.ProposedEvent
	total := 0
	for {
		req, err := call.Recv()
		if errors.Is(err, io.EOF) {
			return events, nil
		}
		if err != nil {
			return nil, err
		}
		m := req.GetProposedMessage()
		if m == nil {
			return nil, invalidArgument("What follows an append's options are proposed messages.")
		}
		e, err := parseProposed(m)
		if err != nil {
			return nil, err
		}
		if total += eventSize(e); total > eventstore.MaxAppendBytes || len(events) == maxAppendEvents {
			return nil, appendTooLarge()
		}
		events = append(events, e)
	}
}

// expectationOptions are the options of append, delete and tombstone alike. Their oneofs have types of their own.
type expectationOptions interface {
	GetRevision() uint64
	GetNoStream() *shared.Empty
	GetAny() *shared.Empty
	GetStreamExists() *shared.Empty
}

func parseExpectation(o expectationOptions) (eventstore.Revision, error) {
	switch {
	case o.GetAny() != nil:
		return eventstore.Any, nil
	case o.GetNoStream() != nil:
		return eventstore.NoStream, nil
	case o.GetStreamExists() != nil:
		return streamExists, nil
	case !hasExpectation(o):
		return 0, invalidArgument("An expected revision is missing.")
	}
	return parseStreamRevision(o.GetRevision())
}

// hasExpectation tells revision 0 from no expectation at all.
func hasExpectation(o expectationOptions) bool {
	switch o := o.(type) {
	case *streams.AppendReq_Options:
		return o.GetExpectedStreamRevision() != nil
	case *streams.DeleteReq_Options:
		return o.GetExpectedStreamRevision() != nil
	case *streams.TombstoneReq_Options:
		return o.GetExpectedStreamRevision() != nil
	}
	return false
}

func appendSuccess(c eventstore.AppendResult) *streams.AppendResp {
	success := &streams.AppendResp_Success{
		CurrentRevisionOption: &streams.AppendResp_Success_CurrentRevision{CurrentRevision: uint64(c.Revision)},
		PositionOption: &streams.AppendResp_Success_Position{Position: &streams.AppendResp_Position{
			CommitPosition: uint64(c.Position), PreparePosition: uint64(c.Position),
		}},
	}
	if c.Revision < 0 {
		success.CurrentRevisionOption = &streams.AppendResp_Success_NoStream{NoStream: &shared.Empty{}}
	}
	if c.Position == 0 {
		success.PositionOption = &streams.AppendResp_Success_NoPosition{NoPosition: &shared.Empty{}}
	}
	return &streams.AppendResp{Result: &streams.AppendResp_Success_{Success: success}}
}

// appendWrongVersion says a conflict twice, in the fields of today and in those of clients before 20.6.
func appendWrongVersion(expected, current eventstore.Revision) *streams.AppendResp {
	w, none := &streams.AppendResp_WrongExpectedVersion{}, &shared.Empty{}
	switch expected {
	case eventstore.Any:
		w.ExpectedRevisionOption = &streams.AppendResp_WrongExpectedVersion_ExpectedAny{ExpectedAny: none}
		w.ExpectedRevisionOption_20_6_0 = &streams.AppendResp_WrongExpectedVersion_Any_20_6_0{Any_20_6_0: none}
	case streamExists:
		w.ExpectedRevisionOption = &streams.AppendResp_WrongExpectedVersion_ExpectedStreamExists{ExpectedStreamExists: none}
		w.ExpectedRevisionOption_20_6_0 = &streams.AppendResp_WrongExpectedVersion_StreamExists_20_6_0{StreamExists_20_6_0: none}
	case eventstore.NoStream:
		w.ExpectedRevisionOption = &streams.AppendResp_WrongExpectedVersion_ExpectedNoStream{ExpectedNoStream: none}
		w.ExpectedRevisionOption_20_6_0 = &streams.AppendResp_WrongExpectedVersion_ExpectedRevision_20_6_0{ExpectedRevision_20_6_0: math.MaxUint64}
	default:
		w.ExpectedRevisionOption = &streams.AppendResp_WrongExpectedVersion_ExpectedRevision{ExpectedRevision: uint64(expected)}
		w.ExpectedRevisionOption_20_6_0 = &streams.AppendResp_WrongExpectedVersion_ExpectedRevision_20_6_0{ExpectedRevision_20_6_0: uint64(expected)}
	}
	if current < 0 {
		w.CurrentRevisionOption = &streams.AppendResp_WrongExpectedVersion_CurrentNoStream{CurrentNoStream: none}
		w.CurrentRevisionOption_20_6_0 = &streams.AppendResp_WrongExpectedVersion_NoStream_20_6_0{NoStream_20_6_0: none}
	} else {
		w.CurrentRevisionOption = &streams.AppendResp_WrongExpectedVersion_CurrentRevision{CurrentRevision: uint64(current)}
		w.CurrentRevisionOption_20_6_0 = &streams.AppendResp_WrongExpectedVersion_CurrentRevision_20_6_0{CurrentRevision_20_6_0: uint64(current)}
	}
	return &streams.AppendResp{Result: &streams.AppendResp_WrongExpectedVersion_{WrongExpectedVersion: w}}
}

// Delete makes a stream unreadable until it is written to again.
func (s *streamsService) Delete(ctx context.Context, req *streams.DeleteReq) (*streams.DeleteResp, error) {
	at, err := s.runDeletion(ctx, req.GetOptions(), req.GetOptions().GetStreamIdentifier(), s.node.delete)
	if err != nil {
		return nil, err
	}
	return &streams.DeleteResp{PositionOption: &streams.DeleteResp_Position_{Position: &streams.DeleteResp_Position{
		CommitPosition: uint64(at), PreparePosition: uint64(at),
	}}}, nil
}

// Tombstone ends a stream for good.
func (s *streamsService) Tombstone(ctx context.Context, req *streams.TombstoneReq) (*streams.TombstoneResp, error) {
	at, err := s.runDeletion(ctx, req.GetOptions(), req.GetOptions().GetStreamIdentifier(), s.node.tombstone)
	if err != nil {
		return nil, err
	}
	return &streams.TombstoneResp{PositionOption: &streams.TombstoneResp_Position_{Position: &streams.TombstoneResp_Position{
		CommitPosition: uint64(at), PreparePosition: uint64(at),
	}}}, nil
}

type deletion func(context.Context, string, eventstore.Revision) (eventstore.Position, error)

// runDeletion runs a deletion to its end even when its caller goes away: one that landed after the stream's lock was let go
// would take later events with it.
func (s *streamsService) runDeletion(ctx context.Context, o expectationOptions, id *shared.StreamIdentifier, apply deletion) (eventstore.Position, error) {
	stream, err := parseStreamName(id)
	if err != nil {
		return 0, err
	}
	expected, err := parseExpectation(o)
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(s.killCtx, cancel)()
	at, err := apply(ctx, stream, expected)
	var conflict *eventstore.ConflictError
	if errors.As(err, &conflict) {
		conflict.Expected = expected
		return 0, wrongExpectedVersion("Delete", conflict)
	}
	return at, err
}
