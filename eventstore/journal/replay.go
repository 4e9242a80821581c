package journal

import (
	"errors"

	"github.com/google/uuid"

	"lieudit/eventstore"
)

// replay walks a segment append by append.
type replay struct {
	cursor *cursor
	// whole is told of every append that has its last event.
	whole func(batch) error

	open   batch               // the append that has begun and not ended
	end    eventstore.Position // after the last whole append
	crc    uint32              // of the frame before end
	final  eventstore.Position // of that frame, 0 when there is none
	proven eventstore.Position // of the last mark: all before it was on disk
	keep   eventstore.Position // end, or the end of the mark that stands there
}

// batch is one append, as found.
type batch struct {
	key     streamKey
	stream  string
	first   eventstore.Revision
	ids     []uuid.UUID
	offsets []uint32
	last    eventstore.Position
}

func newReplay(c *cursor, whole func(batch) error) *replay {
	return &replay{cursor: c, whole: whole, end: c.pos, crc: c.prev, proven: c.pos, keep: c.pos}
}

// run goes on to the cursor's end or to the first frame that is not as it must be. It returns nil, the *CorruptError
// that names that frame, or the error of a read or of whole.
func (r *replay) run() error {
	for {
		before := r.cursor.pos
		f, err := r.cursor.next()
		if err != nil || f == nil {
			return err
		}
		if err := r.take(f); err != nil {
			r.cursor.pos = before
			return err
		}
	}
}

// fatal turns revisions out of order, which no power cut leaves behind, into the damage they are.
func (r *replay) fatal(err error) error {
	if errors.Is(err, errOrder) {
		return damage(r.cursor.pos, errOrder.Error())
	}
	return err
}

func (r *replay) take(f frame) error {
	if !f.isEvent() {
		return r.mark(f)
	}
	b := &r.open
	if len(b.ids) == 0 {
		if string(f.stream()) != b.stream || b.key == (streamKey{}) {
			b.stream = string(f.stream())
			b.key = keyOf(b.stream)
		}
		b.first = f.revision()
	} else if string(f.stream()) != b.stream || f.revision() != b.first+eventstore.Revision(len(b.ids)) {
		return damage(f.position(), "append is not in one piece")
	}
	b.ids = append(b.ids, f.id())
	b.offsets = append(b.offsets, uint32(f.position()-r.cursor.seg.base))
	if !f.endsAppend() {
		return nil
	}
	return r.close(f)
}

func (r *replay) close(f frame) error {
	b := &r.open
	b.last = f.position()
	if err := r.whole(*b); err != nil {
		return err
	}
	r.end, r.keep, r.crc, r.final = r.cursor.pos, r.cursor.pos, f.crc(), f.position()
	b.ids, b.offsets = b.ids[:0], b.offsets[:0]
	return nil
}

func (r *replay) mark(f frame) error {
	if len(r.open.ids) > 0 {
		return damage(f.position(), "append without its last event")
	}
	r.proven, r.keep = f.position(), r.cursor.pos
	return nil
}

// enter makes a batch known to an index that knows all before it.
func (x *index) enter(b batch) error {
	n := x.slot(b.key)
	if x.head(n).rev+1 != b.first {
		return errOrder
	}
	x.head(n).rev += eventstore.Revision(len(b.offsets))
	x.add(b.key, n, b.first, b.offsets)
	return nil
}

var errOrder = errors.New("revisions of a stream do not follow each other")

// load makes the streams of a full segment known from its index file.
func (x *index) load(base eventstore.Position, b []byte) error {
	streams := int(le.Uint32(b[60:]))
	for e := b[indexHeader:][:streams*indexEntry]; len(e) > 0; e = e[indexEntry:] {
		h := x.head(x.slot(streamKey(e[:16])))
		if h.rev+1 != eventstore.Revision(le.Uint64(e[16:])) || h.seg != eventstore.Position(le.Uint64(e[24:])) {
			return errIndex
		}
		h.rev += eventstore.Revision(le.Uint32(e[32:]))
		h.seg = base
	}
	return nil
}
