package node

import (
	"context"
	"errors"
	"hash/maphash"
	"io"
	"sync"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"google.golang.org/protobuf/types/known/emptypb"

	"lieudit/eventstore"
)

const maxAppendEvents = 1 << 16 // in one append: bounds what many empty events cost in memory

// Append reads one append to its end and makes it.
func (s *streamsService) Append(call streams.Streams_AppendServer) error {
	stream, expected, err := receiveAppendOptions(call)
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

// receiveAppendOptions reads the first message of an append, which has its options.
func receiveAppendOptions(call streams.Streams_AppendServer) (stream string, expected eventstore.Revision, err error) {
	first, err := call.Recv()
	if errors.Is(err, io.EOF) {
		return "", 0, invalidArgument("The request is empty.")
	}
	if err != nil {
		return "", 0, err
	}
	o := first.GetOptions()
	if o == nil {
		return "", 0, invalidArgument("An append begins with its options.")
	}
	if stream, err = parseStreamName(o.GetStreamIdentifier()); err != nil {
		return "", 0, err
	}
	expected, err = parseExpectation(o)
	return stream, expected, err
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
	return &streams.AppendResp{Result: &streams.AppendResp_Success_{Success: success}}
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
	return &streams.BatchAppendResp{Result: &streams.BatchAppendResp_Success_{Success: success}}
}

// appendWrongVersion answers a conflict. It is not an error of the call: EventStoreDB answers it with a message of its own.
func appendWrongVersion(expected, current eventstore.Revision) *streams.AppendResp {
	w, none := &streams.AppendResp_WrongExpectedVersion{}, &shared.Empty{}
	switch expected {
	case eventstore.Any:
		w.ExpectedRevisionOption = &streams.AppendResp_WrongExpectedVersion_ExpectedAny{ExpectedAny: none}
	case streamExists:
		w.ExpectedRevisionOption = &streams.AppendResp_WrongExpectedVersion_ExpectedStreamExists{ExpectedStreamExists: none}
	case eventstore.NoStream:
		w.ExpectedRevisionOption = &streams.AppendResp_WrongExpectedVersion_ExpectedNoStream{ExpectedNoStream: none}
	default:
		w.ExpectedRevisionOption = &streams.AppendResp_WrongExpectedVersion_ExpectedRevision{ExpectedRevision: uint64(expected)}
	}
	w.CurrentRevisionOption = &streams.AppendResp_WrongExpectedVersion_CurrentRevision{CurrentRevision: uint64(current)}
	if current < 0 {
		w.CurrentRevisionOption = &streams.AppendResp_WrongExpectedVersion_CurrentNoStream{CurrentNoStream: none}
	}
	return &streams.AppendResp{Result: &streams.AppendResp_WrongExpectedVersion_{WrongExpectedVersion: w}}
}

// streamExists is the expectation that eventstore does not have, by EventStoreDB's own number.
const streamExists eventstore.Revision = -4

// streamLock is the lock of a stream and of its metadata.
func (n *Node) streamLock(stream string) *sync.RWMutex {
	if owner, ok := metadataOwner(stream); ok {
		stream = owner
	}
	return &n.streamLocks[maphash.String(n.lockSeed, stream)%uint64(len(n.streamLocks))]
}

// append adds events to a stream as EventStoreDB does: never to a tombstoned one, and a softly deleted one comes back.
func (n *Node) append(ctx context.Context, stream string, expected eventstore.Revision, events []eventstore.ProposedEvent) (eventstore.AppendResult, error) {
	mu := n.streamLock(stream)
	mu.RLock()
	defer mu.RUnlock()
	s, err := n.settleMetadata(ctx, stream)
	if err != nil {
		return eventstore.AppendResult{}, err
	}
	if err := s.checkWritable(stream, expected); err != nil {
		return eventstore.AppendResult{}, err
	}
	if len(events) == 0 {
		return n.appendNoEvents(ctx, s, stream, expected)
	}
	result, err := n.appendToLog(ctx, s, stream, expected, events)
	if err != nil {
		return result, err
	}
	if _, ok := metadataOwner(stream); ok || s.isDeleted {
		_, err = n.settleMetadata(ctx, stream)
	}
	return result, unknownOutcome(err)
}

// appendNoEvents checks the expectation alone. EventStoreDB answers it with a position; the log's end is one that
// whoever waits for it will see passed.
func (n *Node) appendNoEvents(ctx context.Context, s streamState, stream string, expected eventstore.Revision) (eventstore.AppendResult, error) {
	if err := s.checkExpectation(stream, expected); err != nil {
		return eventstore.AppendResult{}, err
	}
	end, err := n.endPosition(ctx)
	return eventstore.AppendResult{Revision: s.last, Position: end}, err
}

// appendToLog hands events to the log, with the two expectations that mean something else there.
func (n *Node) appendToLog(ctx context.Context, s streamState, stream string, expected eventstore.Revision, events []eventstore.ProposedEvent) (eventstore.AppendResult, error) {
	if expected == streamExists {
		expected = eventstore.Any
	}
	result, err := n.log.Append(ctx, stream, expected, events)
	var conflict *eventstore.ConflictError
	if expected == eventstore.NoStream && s.isDeleted && errors.As(err, &conflict) {
		return n.log.Append(ctx, stream, s.last, events)
	}
	if errors.Is(err, eventstore.ErrIDReused) {
		return result, n.mismatchError(ctx, stream, expected)
	}
	return result, err
}

// mismatchError names the refusal of events whose ids are taken: EventStoreDB calls it a wrong version, unless the
// stream is where the append expected it.
func (n *Node) mismatchError(ctx context.Context, stream string, expected eventstore.Revision) error {
	s, err := n.loadState(ctx, stream)
	if err != nil {
		return err
	}
	if s.last == expected {
		return invalidTransaction()
	}
	return &eventstore.ConflictError{Stream: stream, Expected: expected, Current: s.last}
}

// unknownOutcome is the error of an append that was made but whose reader would not be told so: the same append settles it.
func unknownOutcome(err error) error {
	if err == nil {
		return nil
	}
	return errors.Join(eventstore.ErrUnknown, err)
}

// checkWritable refuses what no revision could make right.
func (s streamState) checkWritable(stream string, expected eventstore.Revision) error {
	switch {
	case s.isTombstoned, expected == streamExists && s.isDeleted:
		return streamDeleted(stream)
	case expected == streamExists && s.last < 0 && s.metadataRevision < 0:
		return &eventstore.ConflictError{Stream: stream, Expected: expected, Current: eventstore.NoStream}
	}
	return nil
}

// checkExpectation compares an expectation with the state, for what is not decided by the log.
func (s streamState) checkExpectation(stream string, expected eventstore.Revision) error {
	revivesDeleted := expected == eventstore.NoStream && s.isDeleted
	if expected == eventstore.Any || expected == streamExists || expected == s.last || revivesDeleted {
		return nil
	}
	return &eventstore.ConflictError{Stream: stream, Expected: expected, Current: s.last}
}
