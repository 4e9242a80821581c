package node

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"strings"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"github.com/google/uuid"

	"lieudit/eventstore"
)

// idNamespace is the namespace of the ids of events that a node writes by itself. A node recognizes such events by
// their ids, so it never changes.
var idNamespace = uuid.MustParse("0b6f2c0e-2f3e-5f0a-9d55-6e1f4b8a7c21")

// softDeleteTruncation is the $tb of a softly deleted stream: no event is readable until the stream is appended to.
const softDeleteTruncation = math.MaxInt64

// readLimits are the parts of a stream's metadata that limit which of its events are read. nil: no limit.
type readLimits struct {
	MaxCount       *int64 `json:"$maxCount"`
	MaxAge         *int64 `json:"$maxAge"` // seconds
	TruncateBefore *int64 `json:"$tb"`
}

// streamState is what a node has read of a stream from the log: its end, its metadata and its deletion.
type streamState struct {
	last             eventstore.Revision // NoStream when it has no events
	isTombstoned     bool                // never readable or writable again
	limits           readLimits          // in force
	isDeleted        bool                // softly: nothing is readable until the next append
	dueMetadata      *dueMetadata        // nil: the stored metadata is up to date
	metadataRevision eventstore.Revision // last revision of the metadata stream
}

// dueMetadata is metadata that a node has to write because a softly deleted stream was appended to: the stream is
// readable again from the revision truncateBefore on. It follows from the log alone. If a node dies before it
// writes the metadata, the next one finds it due again, and reads apply it meanwhile as if it were written.
type dueMetadata struct {
	base           eventstore.RecordedEvent // the metadata event it amends
	truncateBefore eventstore.Revision
}

// metadataStream is the name of the stream that holds a stream's metadata.
func metadataStream(stream string) string { return "$$" + stream }

// metadataOwner is the inverse of metadataStream; ok is false for a stream that holds no metadata.
func metadataOwner(stream string) (string, bool) { return strings.CutPrefix(stream, "$$") }

// loadState reads the state of a stream. A caller that writes because of it holds the lock of the stream.
func (n *Node) loadState(ctx context.Context, stream string) (streamState, error) {
	last, err := n.readLast(ctx, stream, 1)
	if err != nil {
		return streamState{}, err
	}
	s := streamState{last: eventstore.NoStream, metadataRevision: eventstore.NoStream}
	if len(last) > 0 {
		s.last, s.isTombstoned = last[0].Revision, isTombstone(last[0])
	}
	if owner, ok := metadataOwner(stream); ok { // only the last event of a metadata stream is read, and a tombstone ends both streams
		one := int64(1)
		s.limits.MaxCount = &one
		end, err := n.readLast(ctx, owner, 1)
		s.isTombstoned = s.isTombstoned || len(end) > 0 && isTombstone(end[0])
		return s, err
	}
	metas, err := n.readLast(ctx, metadataStream(stream), 2)
	if err != nil || len(metas) == 0 {
		return s, err
	}
	return n.applyMetadata(ctx, s, stream, metas)
}

// applyMetadata adds to s what the last two metadata events say, newest first. A deletion that is followed by
// another metadata event still counts, unless that event is the one that a node wrote to end the deletion. Two events
// are enough, because every write settles what is due first.
func (n *Node) applyMetadata(ctx context.Context, s streamState, stream string, metas []eventstore.RecordedEvent) (streamState, error) {
	s.metadataRevision, s.limits = metas[0].Revision, parseReadLimits(metas[0])
	var deletion eventstore.RecordedEvent
	switch {
	case isSoftDeletion(metas[0]):
		deletion = metas[0]
	// The metadata was written after the deletion, by a client and not by a node: the deletion's end is still due.
	case len(metas) > 1 && isSoftDeletion(metas[1]) && metas[0].ID != dueMetadataID(metas[1]):
		deletion = metas[1]
	default:
		return s, nil
	}
	first, err := n.firstRevisionAfter(ctx, stream, deletion.Position)
	if err != nil {
		return s, err
	}
	// Without an append since, a deleted stream stays deleted, unless a client gave it new metadata: that revives it empty.
	if first > s.last && isSoftDeletion(metas[0]) {
		s.isDeleted = true
		return s, nil
	}
	// The stream is back: only the events after the deletion are readable, and metadata that says so is due.
	before := int64(first)
	s.dueMetadata = &dueMetadata{base: metas[0], truncateBefore: first}
	s.limits.TruncateBefore = &before
	return s, nil
}

// firstRevisionAfter returns the first revision of a stream whose event is after a log position.
func (n *Node) firstRevisionAfter(ctx context.Context, stream string, after eventstore.Position) (eventstore.Revision, error) {
	first := eventstore.Revision(0)
	for e, err := range n.log.ReadStream(ctx, stream, eventstore.End, eventstore.Backward) {
		if err != nil {
			return 0, err
		}
		if e.Position < after {
			return e.Revision + 1, nil
		}
		first = e.Revision
	}
	return first, nil
}

// readLast reads the last events of a stream, newest first.
func (n *Node) readLast(ctx context.Context, stream string, count int) ([]eventstore.RecordedEvent, error) {
	var events []eventstore.RecordedEvent
	for e, err := range n.log.ReadStream(ctx, stream, eventstore.End, eventstore.Backward) {
		if err != nil {
			return nil, err
		}
		if events = append(events, e); len(events) == count {
			break
		}
	}
	return events, nil
}

// settleMetadata returns the state of a stream after writing the metadata that is due. For a metadata stream it
// settles the stream that the metadata belongs to.
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
		// A conflict means that other metadata was written meanwhile: the next turn reads what is due now.
		if err := n.writeDueMetadata(ctx, governed, s.dueMetadata); err != nil && !errors.Is(err, eventstore.ErrConflict) {
			return s, err
		}
	}
}

// writeDueMetadata appends at the revision after the metadata that it amends. It conflicts when another goroutine
// or a client has written metadata first.
func (n *Node) writeDueMetadata(ctx context.Context, stream string, due *dueMetadata) error {
	data, err := withTruncateBefore(due.base, due.truncateBefore)
	if err != nil {
		return err
	}
	_, err = n.log.Append(ctx, metadataStream(stream), due.base.Revision, []eventstore.ProposedEvent{{ID: dueMetadataID(due.base), Type: metadataType, Data: data}})
	return err
}

// Delete deletes a stream softly: it is unreadable until the next append, which continues its revisions.
func (s *streamsService) Delete(ctx context.Context, req *streams.DeleteReq) (*streams.DeleteResp, error) {
	at, err := s.runDeletion(ctx, req.GetOptions(), req.GetOptions().GetStreamIdentifier(), s.node.delete)
	if err != nil {
		return nil, err
	}
	return &streams.DeleteResp{PositionOption: &streams.DeleteResp_Position_{Position: &streams.DeleteResp_Position{
		CommitPosition: uint64(at), PreparePosition: uint64(at),
	}}}, nil
}

// Tombstone ends a stream permanently: it is never readable or writable again.
func (s *streamsService) Tombstone(ctx context.Context, req *streams.TombstoneReq) (*streams.TombstoneResp, error) {
	at, err := s.runDeletion(ctx, req.GetOptions(), req.GetOptions().GetStreamIdentifier(), s.node.tombstone)
	if err != nil {
		return nil, err
	}
	return &streams.TombstoneResp{PositionOption: &streams.TombstoneResp_Position_{Position: &streams.TombstoneResp_Position{
		CommitPosition: uint64(at), PreparePosition: uint64(at),
	}}}, nil
}

// deletion deletes a stream at an expected revision and returns the position of the event that does so. It returns a
// *ConflictError when the stream is at another revision.
type deletion func(context.Context, string, eventstore.Revision) (eventstore.Position, error)

// runDeletion runs a deletion to its end even when its client goes away. Otherwise its event could land after the
// stream's lock is free, and hide events that were appended meanwhile.
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
		return 0, deleteWrongVersion(conflict)
	}
	return at, err
}

// delete deletes a stream softly, by metadata that hides all its events.
func (n *Node) delete(ctx context.Context, stream string, expected eventstore.Revision) (eventstore.Position, error) {
	return n.deleteExclusively(ctx, stream, expected, func(s streamState) (eventstore.AppendResult, error) {
		if s.last < 0 && s.metadataRevision < 0 {
			return eventstore.AppendResult{}, deleteWrongVersion(&eventstore.ConflictError{Stream: stream, Expected: expected, Current: eventstore.NoStream})
		}
		return n.log.Append(ctx, metadataStream(stream), s.metadataRevision, []eventstore.ProposedEvent{{
			ID: uuid.New(), Type: metadataType, Data: []byte(`{"$tb":9223372036854775807}`),
		}})
	})
}

// tombstone ends a stream with an event of a type that clients cannot write.
func (n *Node) tombstone(ctx context.Context, stream string, expected eventstore.Revision) (eventstore.Position, error) {
	return n.deleteExclusively(ctx, stream, expected, func(s streamState) (eventstore.AppendResult, error) {
		return n.log.Append(ctx, stream, s.last, []eventstore.ProposedEvent{{
			ID: uuid.New(), Type: tombstoneType, Metadata: encodeMetadata(nil, false),
		}})
	})
}

// deleteExclusively holds the stream's lock, so that no append runs between the check and the write. An append
// whose client went away may still land; write then conflicts, and the state is read again.
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

// parseReadLimits reads a metadata event. Metadata that cannot be read or makes no sense limits nothing, as on
// EventStoreDB.
func parseReadLimits(e eventstore.RecordedEvent) readLimits {
	var l readLimits
	if _, isJSON := decodeMetadata(e.Metadata); !isJSON || json.Unmarshal(e.Data, &l) != nil {
		return readLimits{}
	}
	if l.MaxCount != nil && *l.MaxCount <= 0 || l.MaxAge != nil && *l.MaxAge <= 0 || l.TruncateBefore != nil && *l.TruncateBefore < 0 {
		return readLimits{}
	}
	return l
}

// isSoftDeletion reports whether a metadata event deletes its stream softly.
func isSoftDeletion(e eventstore.RecordedEvent) bool {
	l := parseReadLimits(e)
	return l.TruncateBefore != nil && *l.TruncateBefore == softDeleteTruncation
}

// dueMetadataID is the id of the event that amends the metadata event e. It depends on e alone: a second node that
// writes the same due metadata adds no second event, and a reader recognizes the event by it.
func dueMetadataID(e eventstore.RecordedEvent) uuid.UUID {
	return uuid.NewSHA1(idNamespace, binary.BigEndian.AppendUint64([]byte("reopen "), uint64(e.Position)))
}

// withTruncateBefore returns the content of a metadata event with another $tb.
func withTruncateBefore(e eventstore.RecordedEvent, before eventstore.Revision) ([]byte, error) {
	fields := map[string]json.RawMessage{}
	if _, isJSON := decodeMetadata(e.Metadata); isJSON && json.Unmarshal(e.Data, &fields) != nil {
		fields = map[string]json.RawMessage{}
	}
	tb, err := json.Marshal(before)
	if err != nil {
		return nil, err
	}
	fields["$tb"] = tb
	return json.Marshal(fields)
}
