package journal

import (
	"errors"
	"fmt"

	"lieudit/eventstore"
)

// fill decides what waits, in order, until the group or the segment is full. What is left then stays in left.
func (w *writer) fill() {
	now := max(w.time, w.j.o.Clock().UnixMicro())
	for len(w.left) > 0 && len(w.group.buf) < groupSize && len(w.group.answers) < groupAppends {
		r := w.left[0]
		s, known := w.j.index.slots[r.key]
		out, fresh := w.decide(r, w.j.index.current(s, known))
		if fresh && !w.fits(r) {
			if len(w.group.placed) > 0 {
				return
			}
			if out.err = w.roll(); out.err == nil {
				continue
			}
			fresh = false
		}
		if fresh {
			if !known {
				s = w.j.index.slot(r.key)
			}
			out.committed = w.place(r, s, now)
		}
		w.group.answers = append(w.group.answers, answer{r, out})
		w.left = w.left[1:]
	}
}

func (w *writer) fits(r *request) bool {
	used := max(len(w.group.buf), markSize)
	return w.pos+eventstore.Position(used+len(r.frames)) <= w.active().room()
}

// roll goes on to the next segment. Nothing is placed in the group.
func (w *writer) roll() error {
	next, err := w.j.keeper.take()
	if err != nil {
		return fmt.Errorf("%w: %w", eventstore.ErrUnavailable, err)
	}
	full := w.active()
	full.end, full.final, full.last = w.pos, w.last.Position, w.prev
	w.segs = append(w.segs[:len(w.segs):len(w.segs)], next)
	w.pos, w.asked, w.group.full = next.data(), false, full
	return nil
}

// place gives an append its revisions and its bytes in the group.
func (w *writer) place(r *request, s slot, now int64) eventstore.Committed {
	g, h := w.group, w.j.index.head(s)
	if len(g.placed) == 0 {
		g.buf = w.mark(g.buf)
		w.crc = frame(g.buf).crc()
	}
	p := placed{key: r.key, slot: s, first: h.rev + 1, from: uint32(len(g.offsets))}
	at := len(g.buf)
	g.buf = append(g.buf, r.frames...)
	for at < len(g.buf) {
		f := frame(g.buf[at:])
		f = f[:f.size()]
		h.rev++
		w.last.Position, w.last.Event = w.pos+eventstore.Position(at), f.id()
		f.stamp(h.rev, now)
		f.seal(w.last.Position, w.crc, w.j.seed)
		g.offsets = append(g.offsets, uint32(w.last.Position-w.active().base))
		w.crc = f.crc()
		at += len(f)
	}
	p.to, w.time = uint32(len(g.offsets)), now
	g.placed = append(g.placed, p)
	w.recent.add(r.key, p.first, w.last.Position, r.ids)
	return eventstore.Committed{Revision: h.rev, Position: w.last.Position}
}

// decide says what becomes of an append to a stream at revision current, given all appends before it, those not
// durable yet included. It is fresh when its events have to be added.
func (w *writer) decide(r *request, current eventstore.Revision) (out outcome, fresh bool) {
	if r.gone.Load() {
		return outcome{err: eventstore.ErrUnknown}, false
	}
	if m, ok := w.recent.find(r.ids[0]); ok {
		return w.again(r, m), false
	}
	if w.recent.has(r.ids) {
		return outcome{err: eventstore.ErrMismatch}, false
	}
	if r.expected == eventstore.Any || r.expected == current {
		return outcome{}, true
	}
	if r.expected < current {
		if out := w.before(r, r.expected+1); !errors.Is(out.err, eventstore.ErrConflict) {
			return out, false
		}
	}
	return outcome{err: &eventstore.ConflictError{Stream: r.stream, Expected: r.expected, Current: current}}, false
}

// again answers a batch whose first id is that of a remembered append.
func (w *writer) again(r *request, m remembered) outcome {
	mismatch := outcome{err: eventstore.ErrMismatch}
	if m.key != r.key || r.expected != eventstore.Any && r.expected != m.first-1 {
		return mismatch
	}
	same, known := w.recent.same(m, r.ids)
	if !known {
		if out := w.before(r, m.first); !errors.Is(out.err, eventstore.ErrConflict) {
			return out
		}
	}
	if !same {
		return mismatch
	}
	return outcome{committed: eventstore.Committed{Revision: m.first + eventstore.Revision(m.events) - 1, Position: m.last}}
}

// before compares a batch with what stands durably in its stream from first on: the very same append is what
// was committed then, one that shares an id with it is a mismatch, and any other a conflict. What is not durable yet
// need not be looked at: all its ids are remembered.
func (w *writer) before(r *request, first eventstore.Revision) outcome {
	from, shared, same := max(first-1, 0), 0, 0
	var last frame
	for f, err := range w.j.frames(r.stream, r.key, from, eventstore.Forward) {
		if err != nil {
			return outcome{err: fmt.Errorf("%w: %w", eventstore.ErrUnavailable, err)}
		}
		i := int(f.revision() - first)
		if i < 0 {
			if !f.endsAppend() {
				same = -1 // the batch would begin inside an append
			}
			continue
		}
		if f.id() == r.ids[i] {
			shared++
			if f.endsAppend() == (i == len(r.ids)-1) {
				same++
			}
		}
		if last = f; i == len(r.ids)-1 {
			break
		}
	}
	switch {
	case same == len(r.ids):
		return outcome{committed: eventstore.Committed{Revision: last.revision(), Position: last.position()}}
	case shared > 0:
		return outcome{err: eventstore.ErrMismatch}
	}
	return outcome{err: eventstore.ErrConflict}
}
