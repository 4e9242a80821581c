package node

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"math"
	"strings"

	"github.com/google/uuid"

	"lieudit/eventstore"
)

// namespace is that of the ids a node gives to events of its own.
var namespace = uuid.MustParse("0b6f2c0e-2f3e-5f0a-9d55-6e1f4b8a7c21")

// softDeleted is the $tb of a stream that was deleted and may come back.
const softDeleted = math.MaxInt64

// limits is what a stream's metadata says about which of its events are read.
type limits struct {
	MaxCount *int64 `json:"$maxCount"`
	MaxAge   *int64 `json:"$maxAge"` // seconds
	Before   *int64 `json:"$tb"`
}

// state is where a stream stands.
type state struct {
	last    eventstore.Revision // NoStream when it holds nothing
	tomb    bool                // ended for good
	limits  limits              // in force
	deleted bool                // softly: nothing to read until the next append
	reopen  *reopening          // the metadata lags behind: see reopening
	meta    eventstore.Revision // last revision of the metadata stream
}

// reopening is the metadata that is due when a softly deleted stream was written to: first is the first revision that
// is read from then on. It is a function of the log alone: a node that died before it wrote the metadata reads the
// stream as if it had.
type reopening struct {
	from  eventstore.Recorded // the metadata event it amends
	first eventstore.Revision
}

// metaOf is the stream that holds the metadata of stream.
func metaOf(stream string) string { return "$$" + stream }

// owner is the stream whose metadata a stream holds.
func owner(stream string) (string, bool) { return strings.CutPrefix(stream, "$$") }

// state reads where a stream stands. Whoever acts upon it holds the stream's lock.
func (n *Node) state(ctx context.Context, stream string) (state, error) {
	last, err := n.tail(ctx, stream, 1)
	if err != nil {
		return state{}, err
	}
	s := state{last: eventstore.NoStream, meta: eventstore.NoStream}
	if len(last) > 0 {
		s.last, s.tomb = last[0].Revision, isTombstone(last[0])
	}
	if of, ok := owner(stream); ok { // of a stream's metadata only the last event is read, and it ends with the stream
		one := int64(1)
		s.limits.MaxCount = &one
		end, err := n.tail(ctx, of, 1)
		s.tomb = s.tomb || len(end) > 0 && isTombstone(end[0])
		return s, err
	}
	metas, err := n.tail(ctx, metaOf(stream), 2)
	if err != nil || len(metas) == 0 {
		return s, err
	}
	return n.governed(ctx, s, stream, metas)
}

// governed adds to s what the last metadata events of the stream, newest first, say.
func (n *Node) governed(ctx context.Context, s state, stream string, metas []eventstore.Recorded) (state, error) {
	s.meta, s.limits = metas[0].Revision, limitsOf(metas[0])
	var deletion eventstore.Recorded
	switch {
	case isDeletion(metas[0]):
		deletion = metas[0]
	case len(metas) > 1 && isDeletion(metas[1]) && metas[0].ID != reopeningID(metas[1]):
		deletion = metas[1]
	default:
		return s, nil
	}
	first, err := n.firstAfter(ctx, stream, deletion.Position)
	if err != nil {
		return s, err
	}
	if first > s.last && isDeletion(metas[0]) {
		s.deleted = true
		return s, nil
	}
	before := int64(first)
	s.reopen = &reopening{from: metas[0], first: first}
	s.limits.Before = &before
	return s, nil
}

// firstAfter is the first revision of stream that stands after a position.
func (n *Node) firstAfter(ctx context.Context, stream string, after eventstore.Position) (eventstore.Revision, error) {
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

// tail reads the last events of a stream, newest first.
func (n *Node) tail(ctx context.Context, stream string, count int) ([]eventstore.Recorded, error) {
	var events []eventstore.Recorded
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

// limitsOf reads a metadata event. What cannot be read limits nothing, as on EventStoreDB.
func limitsOf(e eventstore.Recorded) limits {
	var l limits
	if _, isJSON := unmark(e.Metadata); !isJSON || json.Unmarshal(e.Data, &l) != nil {
		return limits{}
	}
	if l.MaxCount != nil && *l.MaxCount <= 0 || l.MaxAge != nil && *l.MaxAge <= 0 || l.Before != nil && *l.Before < 0 {
		return limits{}
	}
	return l
}

func isDeletion(e eventstore.Recorded) bool {
	l := limitsOf(e)
	return l.Before != nil && *l.Before == softDeleted
}

// reopeningID is the id of the event that amends the metadata event e, by which it is known again.
func reopeningID(e eventstore.Recorded) uuid.UUID {
	return uuid.NewSHA1(namespace, binary.BigEndian.AppendUint64([]byte("reopen "), uint64(e.Position)))
}

// amended is the content of metadata with another $tb.
func amended(e eventstore.Recorded, before eventstore.Revision) ([]byte, error) {
	fields := map[string]json.RawMessage{}
	if _, isJSON := unmark(e.Metadata); isJSON && json.Unmarshal(e.Data, &fields) != nil {
		fields = map[string]json.RawMessage{}
	}
	tb, err := json.Marshal(before)
	if err != nil {
		return nil, err
	}
	fields["$tb"] = tb
	return json.Marshal(fields)
}
