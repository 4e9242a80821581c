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

const maxAppendEvents = 1 << 16 // of one append: bounds the memory that many empty events take

// Append receives one append to its end and makes it. A conflict is not an error of the call: it is answered with a message
// of its own.
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

// receiveAppendOptions receives the first message of an append, which holds the stream and the expected revision.
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

// receiveEvents receives the proposed events until the client has sent them all. It stops at the size that an
// append may have, so that a client cannot fill the memory.
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

// streamExists is an expectation that package eventstore lacks: the stream has events or metadata. The number is
// EventStoreDB's own, which appears in its texts.
const streamExists eventstore.Revision = -4

// append adds events to a stream as EventStoreDB does. A tombstoned stream refuses them; a softly deleted one comes
// back, which changes its metadata. The log decides whether the expectation holds, except for appends of no events.
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
	// This append may have brought a deleted stream back, or changed the metadata of one: either makes metadata due.
	if _, ok := metadataOwner(stream); ok || s.isDeleted {
		_, err = n.settleMetadata(ctx, stream)
	}
	return result, unknownOutcome(err)
}

// appendNoEvents only checks the expectation. EventStoreDB answers such an append with a position too; a node gives the end
// of the log, so that a client that waits for this position on a subscription does not wait forever.
func (n *Node) appendNoEvents(ctx context.Context, s streamState, stream string, expected eventstore.Revision) (eventstore.AppendResult, error) {
	if err := s.checkExpectation(stream, expected); err != nil {
		return eventstore.AppendResult{}, err
	}
	end, err := n.endPosition(ctx)
	return eventstore.AppendResult{Revision: s.last, Position: end}, err
}

// appendToLog appends to the log after translating the expectations that the log does not have. streamExists becomes
// Any, since it was checked already. NoStream also fits a softly deleted stream, whose last revision is then expected
// instead.
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

// mismatchError is the refusal of an append whose ids are on the log in another order or batch. EventStoreDB calls it a
// wrong version, or an invalid transaction if the stream ends at the expected revision.
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

// unknownOutcome is the error of an append that was made but whose due metadata was not written. A client that
// repeats the append settles both.
func unknownOutcome(err error) error {
	if err == nil {
		return nil
	}
	return errors.Join(eventstore.ErrUnknown, err)
}

// checkWritable refuses an append or deletion that no revision could make right.
func (s streamState) checkWritable(stream string, expected eventstore.Revision) error {
	switch {
	case s.isTombstoned, expected == streamExists && s.isDeleted:
		return streamDeleted(stream)
	case expected == streamExists && s.last < 0 && s.metadataRevision < 0:
		return &eventstore.ConflictError{Stream: stream, Expected: expected, Current: eventstore.NoStream}
	}
	return nil
}

// checkExpectation compares an expectation with the state, for what the log does not check: appends of no events,
// and deletions.
func (s streamState) checkExpectation(stream string, expected eventstore.Revision) error {
	revivesDeleted := expected == eventstore.NoStream && s.isDeleted
	if expected == eventstore.Any || expected == streamExists || expected == s.last || revivesDeleted {
		return nil
	}
	return &eventstore.ConflictError{Stream: stream, Expected: expected, Current: s.last}
}

// streamLock returns the lock of a stream, which is that of its metadata stream too. Two streams may share a lock.
func (n *Node) streamLock(stream string) *sync.RWMutex {
	if owner, ok := metadataOwner(stream); ok {
		stream = owner
	}
	return &n.streamLocks[maphash.String(n.lockSeed, stream)%uint64(len(n.streamLocks))]
}

// expectationOptions are the options of Append, Delete and Tombstone. Each has generated types of its own for the
// same choice.
type expectationOptions interface {
	GetRevision() uint64
	GetNoStream() *shared.Empty
	GetAny() *shared.Empty
	GetStreamExists() *shared.Empty
}

// parseExpectation returns a revision, or one of eventstore.Any, eventstore.NoStream and streamExists.
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

// hasExpectation distinguishes revision 0 from no expectation: both read as 0 through the getters.
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

// appendSuccess answers an append that was made.
func appendSuccess(result eventstore.AppendResult) *streams.AppendResp {
	success := &streams.AppendResp_Success{
		CurrentRevisionOption: &streams.AppendResp_Success_CurrentRevision{CurrentRevision: uint64(result.Revision)},
		PositionOption: &streams.AppendResp_Success_Position{Position: &streams.AppendResp_Position{
			CommitPosition: uint64(result.Position), PreparePosition: uint64(result.Position),
		}},
	}
	if result.Revision < 0 {
		success.CurrentRevisionOption = &streams.AppendResp_Success_NoStream{NoStream: &shared.Empty{}}
	}
	return &streams.AppendResp{Result: &streams.AppendResp_Success_{Success: success}}
}

// batchSuccess is appendSuccess for a batch.
func batchSuccess(result eventstore.AppendResult) *streams.BatchAppendResp {
	success := &streams.BatchAppendResp_Success{
		CurrentRevisionOption: &streams.BatchAppendResp_Success_CurrentRevision{CurrentRevision: uint64(result.Revision)},
		PositionOption: &streams.BatchAppendResp_Success_Position{Position: &shared.AllStreamPosition{
			CommitPosition: uint64(result.Position), PreparePosition: uint64(result.Position),
		}},
	}
	if result.Revision < 0 {
		success.CurrentRevisionOption = &streams.BatchAppendResp_Success_NoStream{NoStream: &emptypb.Empty{}}
	}
	return &streams.BatchAppendResp{Result: &streams.BatchAppendResp_Success_{Success: success}}
}

// appendWrongVersion answers a conflict. For EventStoreDB that is not an error of the call but an answer with a message
// of its own.
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
