package journal

import (
	"errors"
	"fmt"

	"github.com/google/uuid"

	"lieudit/eventstore"
	"lieudit/eventstore/clock"
)

// decidePending decides on pending appends, in order, until the group or the segment is full. The rest stay pending. Each
// decision becomes a reply of the open group, and each new append a part of its bytes. The caller holds mu.
func (w *writer) decidePending() {
	now := w.timeOfEvents()
	for len(w.undecided) > 0 && len(w.openGroup.buf) < maxGroupBytes && len(w.openGroup.replies) < maxGroupAppends {
		r := w.undecided[0]
		s, known := w.journal.index.slots[r.key]
		out, isNew := w.decideAppend(r, w.journal.index.currentRevision(s, known))
		if isNew && !w.fitsActiveSegment(r) {
			if len(w.openGroup.appends) > 0 {
				return // a group lies in one segment: the append begins the next group
			}
			if out.err = w.rollSegment(); out.err == nil {
				continue // decide again: the append fits the new segment
			}
			isNew = false
		}
		if isNew {
			if !known { // a stream gets a slot only when an append is made
				s = w.journal.index.slotFor(r.key)
			}
			out.result = w.placeAppend(r, s, now)
		}
		w.openGroup.replies = append(w.openGroup.replies, reply{r, out})
		w.undecided = w.undecided[1:]
	}
}

// timeOfEvents is the time of events that are placed now, in microseconds. It does not fall behind the last event's time,
// unless that is so far ahead that a wrong clock must have set it: the log's time would stay there until the clock caught up.
func (w *writer) timeOfEvents() int64 {
	now := w.journal.options.Clock().UnixMicro()
	if w.lastTime-now > clock.MaxJump.Microseconds() {
		return now
	}
	return max(w.lastTime, now)
}

// fitsActiveSegment reports whether the append still fits the active segment, behind the open group or behind its mark.
func (w *writer) fitsActiveSegment(r *appendRequest) bool {
	used := max(len(w.openGroup.buf), durableMarkSize)
	return w.pos+eventstore.Position(used+len(r.frames)) <= w.activeSegment().appendLimit()
}

// rollSegment continues in the next segment. The open group must hold no appends. If there is no next segment, it fails with
// ErrUnavailable and leaves the journal unchanged: the next append tries again.
func (w *writer) rollSegment() error {
	next, err := w.journal.segmentManager.takeSpare()
	if err != nil {
		return fmt.Errorf("%w: %w", eventstore.ErrUnavailable, err)
	}
	full := w.activeSegment()
	full.end, full.lastPosition, full.lastCRC = w.pos, w.lastCheckpoint.Position, w.prevCRC
	w.segments = append(w.segments[:len(w.segments):len(w.segments)], next) // a new array: views share the old one
	w.pos, w.isSpareRequested, w.filledSegment = next.dataStart(), false, full
	return nil
}

// placeAppend adds an append to the open group: its revisions, its time and its frames. now is the time of its events, in
// microseconds. From here on later decisions count the append, although it is not durable yet.
func (w *writer) placeAppend(r *appendRequest, s slot, now int64) eventstore.AppendResult {
	g, h := w.openGroup, w.journal.index.head(s)
	if len(g.appends) == 0 {
		g.filledSegment, w.filledSegment = w.filledSegment, nil
		g.buf = w.appendMark(g.buf)
		w.groupCRC = frame(g.buf).crc()
	}
	// The caller of Append has encoded the frames; they lack only revision, time, position and CRCs.
	p := placedAppend{key: r.key, slot: s, firstRevision: h.revision + 1, offsetsFrom: uint32(len(g.offsets))}
	at := len(g.buf)
	g.buf = append(g.buf, r.frames...)
	for at < len(g.buf) {
		f := frame(g.buf[at:])
		f = f[:f.size()]
		h.revision++
		w.lastCheckpoint.Position, w.lastCheckpoint.Event = w.pos+eventstore.Position(at), f.id()
		f.setRevisionAndTime(h.revision, now)
		f.finalize(w.lastCheckpoint.Position, w.groupCRC, w.journal.crcSeed)
		g.offsets = append(g.offsets, uint32(w.lastCheckpoint.Position-w.activeSegment().base))
		w.groupCRC = f.crc()
		at += len(f)
	}
	p.offsetsTo, w.lastTime = uint32(len(g.offsets)), now
	g.appends = append(g.appends, p)
	w.recent.addAppend(r.key, p.firstRevision, w.lastCheckpoint.Position, r.ids)
	return eventstore.AppendResult{Revision: h.revision, Position: w.lastCheckpoint.Position}
}

// decideAppend decides on an append to a stream at revision current. It counts all earlier appends, even those that are not
// durable yet. isNew means that the events must be added; otherwise out is the answer.
func (w *writer) decideAppend(r *appendRequest, current eventstore.Revision) (out outcome, isNew bool) {
	if r.isAbandoned.Load() {
		return outcome{err: eventstore.ErrUnknown}, false // nobody waits for it
	}
	// Compare the ids before the revision: a repeat gets its first answer even if the stream has moved on.
	if m, ok := w.recent.findByFirstID(r.ids[0]); ok {
		return w.answerRepeat(r, m), false
	}
	if w.recent.containsAny(r.ids) {
		return outcome{err: eventstore.ErrIDReused}, false
	}
	if r.expected == eventstore.Any || r.expected == current {
		return outcome{}, true
	}
	if r.expected < current { // perhaps a repeat whose ids are forgotten
		if out := w.compareWithStored(r, r.expected+1); !errors.Is(out.err, eventstore.ErrConflict) {
			return out, false
		}
	}
	return outcome{err: &eventstore.ConflictError{Stream: r.stream, Expected: r.expected, Current: current}}, false
}

// answerRepeat answers an append whose first id is that of the remembered append m: with the result of m if all ids are the
// same, otherwise with ErrIDReused. It does not compare contents: the same id means the same bytes.
func (w *writer) answerRepeat(r *appendRequest, m recentAppend) outcome {
	reused := outcome{err: eventstore.ErrIDReused}
	if m.key != r.key || r.expected != eventstore.Any && r.expected != m.firstRevision-1 {
		return reused
	}
	same, known := w.recent.hasSameIDs(m, r.ids)
	if !known { // its later ids are forgotten: compare with the stored events
		if out := w.compareWithStored(r, m.firstRevision); !errors.Is(out.err, eventstore.ErrConflict) {
			return out
		}
	}
	if !same {
		return reused
	}
	return outcome{result: eventstore.AppendResult{Revision: m.firstRevision + eventstore.Revision(m.eventCount) - 1, Position: m.lastPosition}}
}

// compareWithStored compares an append with the durable events of its stream from revision first on. The very same append
// gets its earlier result, one that shares an id is ErrIDReused, any other is ErrConflict. Events that are not durable yet
// need no comparison: all their ids are remembered.
func (w *writer) compareWithStored(r *appendRequest, first eventstore.Revision) outcome {
	shared, isSame, last, err := w.countShared(r, first)
	switch {
	case err != nil:
		return outcome{err: fmt.Errorf("%w: %w", eventstore.ErrUnavailable, err)}
	case isSame:
		return outcome{result: eventstore.AppendResult{Revision: last.revision(), Position: last.position()}}
	case shared > 0:
		return outcome{err: eventstore.ErrIDReused}
	}
	return outcome{err: eventstore.ErrConflict}
}

// countShared counts the ids that an append shares, position by position, with the stored events from revision first on.
// isSame means that all are shared and that the stored events are one whole append too; last is then its last event.
func (w *writer) countShared(r *appendRequest, first eventstore.Revision) (shared int, isSame bool, last frame, err error) {
	isSame = true
	for f, err := range w.journal.streamFrames(r.stream, r.key, max(first-1, 0), eventstore.Forward) {
		if err != nil {
			return 0, false, nil, err
		}
		i := int(f.revision() - first)
		if i < 0 { // the event before first
			isSame = f.isLastOfAppend() // otherwise the append would begin inside another
			continue
		}
		if f.id() == r.ids[i] {
			shared++
		}
		if last = f; f.isLastOfAppend() != (i == len(r.ids)-1) {
			isSame = false
		}
		if i == len(r.ids)-1 {
			break
		}
	}
	return shared, isSame && shared == len(r.ids), last, nil
}

const (
	maxRecentAppends = 16 << 10  // the contract asks for 10,000; after a restart those of the last segment are known
	maxRecentIDs     = 128 << 10 // of events after the first of their append
)

// recentAppends remembers the latest appends by their ids, even before they are durable. The first id is kept as long as the
// append. The later ids have a ring of their own, so that appends of thousands of events neither fill the memory nor evict
// the others. Only recovery and then the writer use it.
type recentAppends struct {
	appends  []recentAppend // one for each of firstIDs
	firstIDs *idRing
	laterIDs *idRing
}

// recentAppend is what is remembered of one append besides its ids.
type recentAppend struct {
	key            streamKey
	firstRevision  eventstore.Revision
	lastPosition   eventstore.Position
	eventCount     int
	laterIDsBefore uint64 // how many later ids were added before its own
}

func newRecentAppends() *recentAppends {
	return &recentAppends{
		appends:  make([]recentAppend, 0, 64),
		firstIDs: newIDRing(maxRecentAppends), laterIDs: newIDRing(maxRecentIDs),
	}
}

// addAppend remembers an append. At maxRecentAppends it replaces the oldest one. last is the position of its last event.
func (r *recentAppends) addAppend(key streamKey, first eventstore.Revision, last eventstore.Position, ids []uuid.UUID) {
	m := recentAppend{key: key, firstRevision: first, lastPosition: last, eventCount: len(ids), laterIDsBefore: r.laterIDs.added}
	if at := r.firstIDs.addID(ids[0]); at < len(r.appends) {
		r.appends[at] = m
	} else {
		r.appends = append(r.appends, m)
	}
	for _, id := range ids[1:] {
		r.laterIDs.addID(id)
	}
}

// findByFirstID returns the append whose first id is id.
func (r *recentAppends) findByFirstID(id uuid.UUID) (recentAppend, bool) {
	if at := r.firstIDs.indexOf(id); at >= 0 {
		return r.appends[at], true
	}
	return recentAppend{}, false
}

// containsAny reports whether any of ids is remembered. The caller has already asked findByFirstID about the first one.
func (r *recentAppends) containsAny(ids []uuid.UUID) bool {
	for i, id := range ids {
		if r.laterIDs.indexOf(id) >= 0 || i > 0 && r.firstIDs.indexOf(id) >= 0 {
			return true
		}
	}
	return false
}

// hasSameIDs reports whether the append m, whose first id is the first of ids, had exactly these ids. known is false if some
// of its ids are already forgotten.
func (r *recentAppends) hasSameIDs(m recentAppend, ids []uuid.UUID) (same, known bool) {
	if m.eventCount != len(ids) {
		return false, true
	}
	if len(ids) > 1 && r.laterIDs.added > m.laterIDsBefore+maxRecentIDs {
		return false, false
	}
	for i, id := range ids[1:] {
		if r.laterIDs.ids[(m.laterIDsBefore+uint64(i))%maxRecentIDs] != id {
			return false, true
		}
	}
	return true, true
}

// idRing keeps the last capacity ids and finds them by a map. Neither holds pointers, so the garbage collector does not scan
// them.
type idRing struct {
	capacity uint64
	ids      []uuid.UUID          // a ring
	places   map[uuid.UUID]uint32 // the last index of each id in the ring: an id may occur twice
	added    uint64               // how many ids were ever added
}

func newIDRing(capacity uint64) *idRing {
	return &idRing{capacity: capacity, places: map[uuid.UUID]uint32{}}
}

// addID stores id over the oldest one and returns its index in the ring.
func (r *idRing) addID(id uuid.UUID) int {
	at := uint32(r.added % r.capacity)
	if int(at) == len(r.ids) {
		r.ids = append(r.ids, id)
	} else {
		if oldest := r.ids[at]; r.places[oldest] == at {
			delete(r.places, oldest)
		}
		r.ids[at] = id
	}
	r.places[id] = at
	r.added++
	return int(at)
}

// indexOf returns an index of id in the ring, or a negative number.
func (r *idRing) indexOf(id uuid.UUID) int {
	if at, ok := r.places[id]; ok {
		return int(at)
	}
	return -1
}
