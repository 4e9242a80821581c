package journal

import (
	"errors"

	"github.com/google/uuid"

	"lieudit/eventstore"
)

// replay walks a segment append by append.
type replay struct {
	cursor *cursor
	// onAppend is told of every append that has its last event.
	onAppend func(replayedAppend) error

	openAppend   replayedAppend      // the append that has begun and not ended
	wholeEnd     eventstore.Position // after the last whole append
	lastCRC      uint32              // of the frame before end
	lastPosition eventstore.Position // of that frame, 0 when there is none
	provenEnd    eventstore.Position // of the last mark: all before it was on disk
	keepEnd      eventstore.Position // end, or the end of the mark that stands there
}

// replayedAppend is one append, as found.
type replayedAppend struct {
	key           streamKey
	stream        string
	firstRevision eventstore.Revision
	ids           []uuid.UUID
	offsets       []uint32
	lastPosition  eventstore.Position
}

func newReplay(c *cursor, onAppend func(replayedAppend) error) *replay {
	return &replay{cursor: c, onAppend: onAppend, wholeEnd: c.pos, lastCRC: c.prevCRC, provenEnd: c.pos, keepEnd: c.pos}
}

// run goes on to the cursor's end or to the first frame that is not as it must be. It returns nil, the *CorruptError
// that names that frame, or the error of a read or of whole.
func (r *replay) run() error {
	for {
		before := r.cursor.pos
		f, err := r.cursor.nextFrame()
		if err != nil || f == nil {
			return err
		}
		if err := r.addFrame(f); err != nil {
			r.cursor.pos = before
			return err
		}
	}
}

// asCorrupt turns revisions out of order, which no power cut leaves behind, into the damage they are.
func (r *replay) asCorrupt(err error) error {
	if errors.Is(err, errRevisionOrder) {
		return newCorruptError(r.cursor.pos, errRevisionOrder.Error())
	}
	return err
}

func (r *replay) addFrame(f frame) error {
	if !f.isEvent() {
		return r.addMark(f)
	}
	b := &r.openAppend
	if len(b.ids) == 0 {
		if string(f.stream()) != b.stream || b.key == (streamKey{}) {
			b.stream = string(f.stream())
			b.key = newStreamKey(b.stream)
		}
		b.firstRevision = f.revision()
	} else if string(f.stream()) != b.stream || f.revision() != b.firstRevision+eventstore.Revision(len(b.ids)) {
		return newCorruptError(f.position(), "append is not in one piece")
	}
	b.ids = append(b.ids, f.id())
	b.offsets = append(b.offsets, uint32(f.position()-r.cursor.segment.base))
	if !f.isLastOfAppend() {
		return nil
	}
	return r.endAppend(f)
}

func (r *replay) endAppend(f frame) error {
	b := &r.openAppend
	b.lastPosition = f.position()
	if err := r.onAppend(*b); err != nil {
		return err
	}
	r.wholeEnd, r.keepEnd, r.lastCRC, r.lastPosition = r.cursor.pos, r.cursor.pos, f.crc(), f.position()
	b.ids, b.offsets = b.ids[:0], b.offsets[:0]
	return nil
}

func (r *replay) addMark(f frame) error {
	if len(r.openAppend.ids) > 0 {
		return newCorruptError(f.position(), "append without its last event")
	}
	r.provenEnd, r.keepEnd = f.position(), r.cursor.pos
	return nil
}

// addAppend makes a batch known to an index that knows all before it.
func (x *streamIndex) addAppend(b replayedAppend) error {
	n := x.slotFor(b.key)
	if x.head(n).revision+1 != b.firstRevision {
		return errRevisionOrder
	}
	x.head(n).revision += eventstore.Revision(len(b.offsets))
	x.addEvents(b.key, n, b.firstRevision, b.offsets)
	return nil
}

var errRevisionOrder = errors.New("revisions of a stream do not follow each other")

// loadSegmentIndex makes the streams of a full segment known from its index file.
func (x *streamIndex) loadSegmentIndex(base eventstore.Position, b []byte) error {
	streams := int(littleEndian.Uint32(b[60:]))
	for e := b[indexHeaderSize:][:streams*indexEntrySize]; len(e) > 0; e = e[indexEntrySize:] {
		h := x.head(x.slotFor(streamKey(e[:16])))
		if h.revision+1 != eventstore.Revision(littleEndian.Uint64(e[16:])) || h.segmentBase != eventstore.Position(littleEndian.Uint64(e[24:])) {
			return errIndexMismatch
		}
		h.revision += eventstore.Revision(littleEndian.Uint32(e[32:]))
		h.segmentBase = base
	}
	return nil
}
