package journal

import (
	"errors"
	"fmt"

	"lieudit/eventstore"
)

// decide says what becomes of an append, given all appends before it, those of the group included. It is fresh
// when its events have to be added.
func (w *writer) decide(r *request) (out outcome, fresh bool) {
	if r.gone.Load() {
		return outcome{err: eventstore.ErrUnknown}, false
	}
	if m, ok := w.recent.find(r.ids[0]); ok {
		return w.again(r, m), false
	}
	if w.recent.has(r.ids) {
		return outcome{err: eventstore.ErrMismatch}, false
	}
	current := w.j.index.revision(r.key)
	if r.expected == eventstore.Any || r.expected == current {
		return outcome{}, true
	}
	if r.expected < current {
		if out := w.before(r, r.expected+1); !errors.Is(out.err, eventstore.ErrConflict) {
			return out, false
		}
	}
	return conflict(r, current), false
}

func conflict(r *request, current eventstore.Revision) outcome {
	return outcome{err: &eventstore.ConflictError{Stream: r.stream, Expected: r.expected, Current: current}}
}

// again answers a batch whose first id is that of a remembered append.
func (w *writer) again(r *request, m remembered) outcome {
	mismatch := outcome{err: eventstore.ErrMismatch}
	if m.key != r.key || r.expected != eventstore.Any && r.expected != m.first-1 {
		return mismatch
	}
	same, known := w.recent.same(m, r.ids)
	switch {
	case !known:
		if out := w.before(r, m.first); out.err == nil || !errors.Is(out.err, eventstore.ErrConflict) {
			return out
		}
		return mismatch
	case !same:
		return mismatch
	}
	return outcome{committed: eventstore.Committed{Revision: m.first + eventstore.Revision(m.events) - 1, Position: m.last}}
}

// before compares a batch with what stands durably in its stream from first on: the very same append is what
// was committed then, one that shares an id with it is a mismatch, and any other a conflict.
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
