package node

import (
	"cmp"
	"context"
	"errors"
	"hash/maphash"
	"math"
	"sync"
	"unicode/utf8"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"github.com/google/uuid"

	"lieudit/eventstore"
)

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

// settleMetadata is the state of a stream after the metadata that was due is written. For metadata it settles the stream
// it belongs to.
func (n *Node) settleMetadata(ctx context.Context, stream string) (streamState, error) {
	governed := stream
	if owner, ok := metadataOwner(stream); ok {
		governed = owner
	}
	for {
		s, err := n.loadState(ctx, governed)
		if err != nil {
			return s, err
		}
		if s.dueMetadata == nil && governed == stream {
			return s, nil
		}
		if s.dueMetadata == nil {
			return n.loadState(ctx, stream)
		}
		if err := n.writeDueMetadata(ctx, governed, s.dueMetadata); err != nil && !errors.Is(err, eventstore.ErrConflict) {
			return s, err
		}
	}
}

func (n *Node) writeDueMetadata(ctx context.Context, stream string, r *dueMetadata) error {
	data, err := withTruncateBefore(r.base, r.truncateBefore)
	if err != nil {
		return err
	}
	_, err = n.log.Append(ctx, metadataStream(stream), r.base.Revision, []eventstore.ProposedEvent{{ID: dueMetadataID(r.base), Type: metadataType, Data: data}})
	return err
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

// delete makes a stream unreadable until it is written to again.
func (n *Node) delete(ctx context.Context, stream string, expected eventstore.Revision) (eventstore.Position, error) {
	return n.deleteExclusively(ctx, stream, expected, func(s streamState) (eventstore.AppendResult, error) {
		if s.last < 0 && s.metadataRevision < 0 {
			return eventstore.AppendResult{}, wrongExpectedVersion("Delete", &eventstore.ConflictError{Stream: stream, Expected: expected, Current: eventstore.NoStream})
		}
		return n.log.Append(ctx, metadataStream(stream), s.metadataRevision, []eventstore.ProposedEvent{{
			ID: uuid.New(), Type: metadataType, Data: []byte(`{"$tb":9223372036854775807}`),
		}})
	})
}

// tombstone ends a stream for good.
func (n *Node) tombstone(ctx context.Context, stream string, expected eventstore.Revision) (eventstore.Position, error) {
	return n.deleteExclusively(ctx, stream, expected, func(s streamState) (eventstore.AppendResult, error) {
		return n.log.Append(ctx, stream, s.last, []eventstore.ProposedEvent{{
			ID: uuid.New(), Type: tombstoneType, Metadata: encodeMetadata(nil, false),
		}})
	})
}

// deleteExclusively decides alone, with no append to the stream on its way but those whose callers went away: what they leave behind
// is looked at again.
func (n *Node) deleteExclusively(ctx context.Context, stream string, expected eventstore.Revision, write func(streamState) (eventstore.AppendResult, error)) (eventstore.Position, error) {
	mu := n.streamLock(stream)
	mu.Lock()
	defer mu.Unlock()
	for {
		s, err := n.settleMetadata(ctx, stream)
		if err != nil {
			return 0, err
		}
		if err := cmp.Or(s.checkWritable(stream, expected), s.checkExpectation(stream, expected)); err != nil {
			return 0, err
		}
		result, err := write(s)
		if !errors.Is(err, eventstore.ErrConflict) {
			return result.Position, err
		}
	}
}

func parseStreamName(id *shared.StreamIdentifier) (string, error) {
	name := string(id.GetStreamName())
	if name == "" || name == "$$" || name == "$all" || !utf8.ValidString(name) {
		return "", invalidArgument("'%s' is not a stream name.", printableHeader(name))
	}
	return name, nil
}

func parseStreamRevision(r uint64) (eventstore.Revision, error) {
	if r > math.MaxInt64 {
		return 0, invalidArgument("'%d' is not a revision.", r)
	}
	return eventstore.Revision(r), nil
}
