package journal

import (
	"errors"
	"fmt"

	"lieudit/eventstore"
)

// decidePending decides what waits, in order, until the group or the segment is full. What is left then stays in left.
func (w *writer) decidePending() {
	now := max(w.lastTime, w.journal.options.Clock().UnixMicro())
	for len(w.undecided) > 0 && len(w.openGroup.buf) < maxGroupBytes && len(w.openGroup.replies) < maxGroupAppends {
		r := w.undecided[0]
		s, known := w.journal.index.slots[r.key]
		out, isNew := w.decideAppend(r, w.journal.index.currentRevision(s, known))
		if isNew && !w.fitsActiveSegment(r) {
			if len(w.openGroup.appends) > 0 {
				return
			}
			if out.err = w.rollSegment(); out.err == nil {
				continue
			}
			isNew = false
		}
		if isNew {
			if !known {
				s = w.journal.index.slotFor(r.key)
			}
			out.result = w.placeAppend(r, s, now)
		}
		w.openGroup.replies = append(w.openGroup.replies, reply{r, out})
		w.undecided = w.undecided[1:]
	}
}

func (w *writer) fitsActiveSegment(r *appendRequest) bool {
	used := max(len(w.openGroup.buf), durableMarkSize)
	return w.pos+eventstore.Position(used+len(r.frames)) <= w.activeSegment().appendLimit()
}

// rollSegment goes on to the next segment. Nothing is placed in the group.
func (w *writer) rollSegment() error {
	next, err := w.journal.segmentManager.takeSpare()
	if err != nil {
		return fmt.Errorf("%w: %w", eventstore.ErrUnavailable, err)
	}
	full := w.activeSegment()
	full.end, full.lastPosition, full.lastCRC = w.pos, w.lastCheckpoint.Position, w.prevCRC
	w.segments = append(w.segments[:len(w.segments):len(w.segments)], next)
	w.pos, w.isSpareRequested, w.openGroup.filledSegment = next.dataStart(), false, full
	return nil
}

// placeAppend gives an append its revisions and its bytes in the group.
func (w *writer) placeAppend(r *appendRequest, s slot, now int64) eventstore.AppendResult {
	g, h := w.openGroup, w.journal.index.head(s)
	if len(g.appends) == 0 {
		g.buf = w.appendMark(g.buf)
		w.groupCRC = frame(g.buf).crc()
	}
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

// decideAppend says what becomes of an append to a stream at revision current, given all appends before it, those not
// durable yet included. It is fresh when its events have to be added.
func (w *writer) decideAppend(r *appendRequest, current eventstore.Revision) (out outcome, isNew bool) {
	if r.isAbandoned.Load() {
		return outcome{err: eventstore.ErrUnknown}, false
	}
	if m, ok := w.recent.findByFirstID(r.ids[0]); ok {
		return w.answerRepeat(r, m), false
	}
	if w.recent.containsAny(r.ids) {
		return outcome{err: eventstore.ErrIDReused}, false
	}
	if r.expected == eventstore.Any || r.expected == current {
		return outcome{}, true
	}
	if r.expected < current {
		if out := w.compareWithStored(r, r.expected+1); !errors.Is(out.err, eventstore.ErrConflict) {
			return out, false
		}
	}
	return outcome{err: &eventstore.ConflictError{Stream: r.stream, Expected: r.expected, Current: current}}, false
}

// answerRepeat answers a batch whose first id is that of a remembered append.
func (w *writer) answerRepeat(r *appendRequest, m recentAppend) outcome {
	mismatch := outcome{err: eventstore.ErrIDReused}
	if m.key != r.key || r.expected != eventstore.Any && r.expected != m.firstRevision-1 {
		return mismatch
	}
	same, known := w.recent.hasSameIDs(m, r.ids)
	if !known {
		if out := w.compareWithStored(r, m.firstRevision); !errors.Is(out.err, eventstore.ErrConflict) {
			return out
		}
	}
	if !same {
		return mismatch
	}
	return outcome{result: eventstore.AppendResult{Revision: m.firstRevision + eventstore.Revision(m.eventCount) - 1, Position: m.lastPosition}}
}

// compareWithStored compares a batch with what stands durably in its stream from first on: the very same append is what
// was committed then, one that shares an id with it is a mismatch, and any other a conflict. What is not durable yet
// need not be looked at: all its ids are remembered.
func (w *writer) compareWithStored(r *appendRequest, first eventstore.Revision) outcome {
	from, sharedIDs, matching := max(first-1, 0), 0, 0
	var last frame
	for f, err := range w.journal.streamFrames(r.stream, r.key, from, eventstore.Forward) {
		if err != nil {
			return outcome{err: fmt.Errorf("%w: %w", eventstore.ErrUnavailable, err)}
		}
		i := int(f.revision() - first)
		if i < 0 {
			if !f.isLastOfAppend() {
				matching = -1 // the batch would begin inside an append
			}
			continue
		}
		if f.id() == r.ids[i] {
			sharedIDs++
			if f.isLastOfAppend() == (i == len(r.ids)-1) {
				matching++
			}
		}
		if last = f; i == len(r.ids)-1 {
			break
		}
	}
	switch {
	case matching == len(r.ids):
		return outcome{result: eventstore.AppendResult{Revision: last.revision(), Position: last.position()}}
	case sharedIDs > 0:
		return outcome{err: eventstore.ErrIDReused}
	}
	return outcome{err: eventstore.ErrConflict}
}
