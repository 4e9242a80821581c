package journal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/google/uuid"

	"lieudit/eventstore"
)

// ErrNoLog: the folder holds no segment.
var ErrNoLog = errors.New("no log in the folder")

// WalkVisitor receives what WalkLog reads, in the order of the log. All functions must be set; an error from one ends the
// walk. The bytes passed to them are valid only during the call.
type WalkVisitor struct {
	Segment func(WalkedSegment) error // a segment begins
	Append  func(WalkedAppend) error  // one whole append
	// Sealed: the segment was full and the log continues in the next one. index is the expected content of its index file.
	Sealed func(s WalkedSegment, index []byte) error
}

// WalkedSegment is one segment file. Header is its first bytes.
type WalkedSegment struct {
	Name, IndexName string
	LogID           uuid.UUID
	Base            eventstore.Position
	Size            int64
	Header          []byte
}

// WalkedAppend is one whole append. Frames is its bytes on the log, with the marks before it, beginning at Position: where
// the append before ended, or behind the segment's header.
type WalkedAppend struct {
	Position eventstore.Position
	Frames   []byte
	Stream   string
	Events   int
	Time     time.Time // of all its events
	Last     eventstore.Checkpoint
}

// WalkEnd is how far a walk came: it visited all whole appends before End. Mark is a mark that may be written at End of a
// copy. It declares everything before it durable, which the copy must make true: the log itself may lose its last group. Both
// are zero if not even a header could be read.
type WalkEnd struct {
	LogID uuid.UUID
	End   eventstore.Position
	Mark  []byte
}

// WalkLog reads a log from its files, without its lock, while another process may write it. It visits every whole append,
// from the first to the last one present at the time of reading: everything acknowledged before the call, but no segment that
// is started later. It checks every CRC, the chain, the revisions and that appends are whole, and changes nothing.
//
// An incomplete append at the end is left out, as recovery would cut it off. A *eventstore.CorruptError means that the log is
// damaged where it had been durable; the WalkEnd returned with it shows how far it is whole. A damaged or missing index file
// is not damage: the visitor receives what it should hold.
func WalkLog(ctx context.Context, fs FS, v WalkVisitor) (WalkEnd, error) {
	w := &logWalk{ctx: ctx, fs: fs, visitor: v, index: newStreamIndex()}
	err := w.walkSegments()
	if w.logID == uuid.Nil {
		return WalkEnd{}, err
	}
	durable := w.end
	if w.end == w.index.activeBase+segmentHeaderSize && w.sealedEnd > 0 {
		durable = w.sealedEnd // a segment's first mark declares where the one before ends
	}
	return WalkEnd{LogID: w.logID, End: w.end, Mark: appendDurableMark(nil, w.end, durable, w.lastCRC, w.seed)}, err
}

// logWalk is one call of WalkLog. end, lastCRC and the index always stand behind the last whole append, so that a read that
// met the writer in the middle of its work can be repeated from there.
type logWalk struct {
	ctx     context.Context
	fs      FS
	visitor WalkVisitor
	logID   uuid.UUID
	seed    uint32

	index        *streamIndex
	end          eventstore.Position
	sealedEnd    eventstore.Position // end of the segment before
	lastCRC      uint32
	lastPosition eventstore.Position // of the last event
	frames       []byte              // read since end
}

// walkSegments walks the segments that exist now, one after the other.
func (w *logWalk) walkSegments() error {
	bases, err := listBases(w.fs)
	if err != nil {
		return err
	}
	if len(bases) == 0 {
		return ErrNoLog
	}
	base, continues := eventstore.Position(0), true
	for continues {
		s, err := w.openSegment(base)
		if err != nil {
			return err
		}
		continues, err = w.walkSegment(s, bases[len(bases)-1])
		if err = errors.Join(err, s.file.Close()); err != nil {
			return err
		}
		base = s.nextBase()
	}
	return nil
}

// openSegment opens the segment at base, where the log is known to continue.
func (w *logWalk) openSegment(base eventstore.Position) (*segment, error) {
	s, h, err := openSegment(w.fs, base, w.logID)
	if errors.Is(err, os.ErrNotExist) {
		return nil, newCorruptError(base, "segment is missing")
	}
	if err != nil {
		return nil, err
	}
	w.logID, w.seed = h.logID, newCRCSeed(h.logID)
	if base == 0 {
		w.lastCRC = w.seed
	}
	w.end, w.index.activeBase = s.dataStart(), base
	return s, w.visitor.Segment(w.describeSegment(s))
}

func (w *logWalk) describeSegment(s *segment) WalkedSegment {
	h := segmentHeader{logID: w.logID, base: uint64(s.base), size: uint64(s.size)}
	return WalkedSegment{
		Name: segmentName(s.base), IndexName: indexName(s.base), LogID: w.logID, Base: s.base, Size: s.size, Header: h.encode(),
	}
}

// walkSegment visits the appends of s. It reports whether the log continues in the next segment and the walk should go there.
//
// An invalid frame is the end of the log, damage, or a frame that the writer was just writing. A proof that the log continues
// decides: walkSegment looks for one after it read the invalid frame, and reads the frames again after it found one. A frame
// that is still invalid then was damaged later.
func (w *logWalk) walkSegment(s *segment, lastBase eventstore.Position) (continues bool, err error) {
	limit, err := readableEnd(s)
	if err != nil {
		return false, err
	}
	var earlier proofs
	for {
		invalid := w.walkAppends(s, limit)
		if invalid != nil && invalid.err != nil {
			return false, invalid.err
		}
		if limit < s.nextBase() { // a segment has its full size from the beginning
			if invalid == nil || invalid.isEmpty {
				return false, newCorruptError(limit, "segment file is too short")
			}
			return false, invalid.damage
		}
		next, err := w.readFirstMark(s.nextBase())
		if err != nil {
			return false, err
		}
		if next != nil && next.durableEnd() == w.end && next.prevCRC() == w.lastCRC {
			return s.base < lastBase, w.sealSegment(s, s.base < lastBase)
		}
		p, err := w.proveLonger(s, next, invalid)
		if err != nil {
			return false, err
		}
		if p == (proof{}) {
			return false, nil
		}
		if !earlier.add(p) {
			return false, p.damage
		}
	}
}

// readableEnd is where the file of s ends, at most the end of s: the file may have been truncated.
func readableEnd(s *segment) (eventstore.Position, error) {
	var b [1]byte
	lo, hi := int64(0), s.size // the file has at least lo bytes and at most hi
	for at := s.size - 1; lo < hi; at = (lo + hi) / 2 {
		n, err := s.file.ReadAt(b[:], at)
		switch {
		case n == 1:
			lo = at + 1
		case errors.Is(err, io.EOF):
			hi = at
		default:
			return 0, fmt.Errorf("read log at %d: %w", s.base+eventstore.Position(at), err)
		}
	}
	return s.base + eventstore.Position(lo), nil
}

// invalidFrame is the first position of a segment without a valid frame. isEmpty means that nothing was written there. err is
// an error of another kind, which ends the walk.
type invalidFrame struct {
	position eventstore.Position
	isEmpty  bool
	damage   error
	err      error
}

// walkAppends visits the appends from w.end on, up to the limit or to the first invalid frame.
func (w *logWalk) walkAppends(s *segment, limit eventstore.Position) *invalidFrame {
	c := cursor{segment: s, seed: w.seed, pos: w.end, end: limit, prevCRC: w.lastCRC}
	w.frames = w.frames[:0]
	r := newReplay(&c, nil)
	r.onAppend = func(a replayedAppend) error { return w.addAppend(r, a) }
	for {
		position := c.pos
		f, err := c.nextFrame()
		if err == nil && f == nil {
			return nil
		}
		if err == nil {
			w.frames = append(w.frames, f...)
			err = r.addFrame(f)
		}
		var corrupt *eventstore.CorruptError
		switch {
		case errors.As(err, &corrupt):
			isEmpty := f == nil && len(c.block) >= durableMarkSize && frame(c.block).size() == 0
			return &invalidFrame{position: position, isEmpty: isEmpty, damage: err}
		case errors.Is(err, errRevisionOrder):
			return &invalidFrame{err: newCorruptError(position, errRevisionOrder.Error())}
		case err != nil:
			return &invalidFrame{err: err}
		}
	}
}

// addAppend adds a whole append to the index and visits it. w.frames ends with its last frame.
func (w *logWalk) addAppend(r *replay, a replayedAppend) error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	if err := w.index.addAppend(a); err != nil {
		return err
	}
	n := len(a.ids)
	last := frame(w.frames[eventstore.Position(len(w.frames))-(r.cursor.pos-a.lastPosition):])
	err := w.visitor.Append(WalkedAppend{
		Position: w.end, Frames: w.frames, Stream: a.stream, Events: n, Time: last.time(), Last: last.checkpoint(w.logID),
	})
	w.end, w.lastCRC, w.lastPosition, w.frames = r.cursor.pos, last.crc(), a.lastPosition, w.frames[:0]
	return err
}

// readFirstMark reads the mark at the beginning of the segment at base. It returns nil if there is no such segment, or no
// valid mark in it.
func (w *logWalk) readFirstMark(base eventstore.Position) (frame, error) {
	s, _, err := openSegment(w.fs, base, w.logID)
	var corrupt *eventstore.CorruptError
	if errors.Is(err, os.ErrNotExist) || errors.As(err, &corrupt) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	f, err := w.readFirstFrame(s)
	if errors.As(err, &corrupt) || err == nil && f.isEvent() {
		f, err = nil, nil
	}
	return f, errors.Join(err, s.file.Close())
}

// readFirstFrame reads the first frame of a segment whose file may be truncated.
func (w *logWalk) readFirstFrame(s *segment) (frame, error) {
	limit, err := readableEnd(s)
	if err != nil {
		return nil, err
	}
	if limit < s.dataStart() {
		return nil, newCorruptError(limit, "segment file is too short")
	}
	return s.readFrameAt(s.dataStart(), limit, w.seed)
}

// sealSegment gives the visitor the index of a full segment if the walk continues behind it.
func (w *logWalk) sealSegment(s *segment, continues bool) (err error) {
	if !continues {
		return nil
	}
	s.end, s.lastCRC, s.lastPosition, w.sealedEnd = w.end, w.lastCRC, w.lastPosition, w.end
	w.index.rollSegment(noSegment, func(runs []streamRun) {
		err = w.visitor.Sealed(w.describeSegment(s), encodeSegmentIndex(w.logID, s, runs))
	})
	return err
}

// proof shows that the log continues: it was durable up to a position when the proof was found, or, if until is 0, the names
// of the files show it. damage is the error to report if the log cannot be read up to there. The zero proof shows nothing.
type proof struct {
	until  eventstore.Position
	damage error
}

// proofs is what was proven about one segment before its frames were read again.
type proofs struct {
	until  eventstore.Position
	byName bool
}

// add reports whether a proof shows more than those before it, which means that the writer has continued. Positions may prove
// that many times, the names of the files only once.
func (e *proofs) add(p proof) bool {
	if p.until == 0 {
		isNew := !e.byName
		e.byName = true
		return isNew
	}
	isNew := p.until > e.until
	e.until = max(e.until, p.until)
	return isNew
}

// proveLonger looks for a proof that the log continues behind the last whole append of s: the first mark of the next segment,
// a mark behind the invalid frame, the index of s, which is made only when s is full, or a later segment.
func (w *logWalk) proveLonger(s *segment, next frame, invalid *invalidFrame) (proof, error) {
	bad, damage := w.end, newCorruptError(w.end, "segment does not lead to the next")
	if invalid != nil {
		bad, damage = invalid.position, invalid.damage
	}
	if next != nil {
		return proof{until: max(1, next.durableEnd()), damage: damage}, nil
	}
	_, until, err := findMarkBeyond(s, bad, bad, w.seed)
	if err != nil {
		return proof{}, err
	}
	if until > 0 {
		return proof{until, damage}, nil
	}
	return w.proveByFiles(s, bad)
}

// proveByFiles looks for the proof in files other than that of s.
func (w *logWalk) proveByFiles(s *segment, bad eventstore.Position) (proof, error) {
	names, err := w.fs.Names()
	if err != nil {
		return proof{}, err
	}
	bases := basesIn(names)
	n, _ := slices.BinarySearch(bases, s.nextBase())
	later := bases[n:]
	if len(later) > 0 && !slices.Contains(names, segmentName(s.nextBase())) || slices.Contains(names, indexName(s.base)) {
		return proof{damage: w.explainMissing(s.nextBase(), names)}, nil
	}
	for _, base := range later {
		p, err := w.proveInSegment(base, bad)
		if err != nil || p != (proof{}) {
			return p, err
		}
	}
	return proof{}, nil
}

// explainMissing describes what is wrong with the segment at base, where the log must continue.
func (w *logWalk) explainMissing(base eventstore.Position, names []string) error {
	if !slices.Contains(names, segmentName(base)) {
		return newCorruptError(base, "segment is missing")
	}
	s, _, err := openSegment(w.fs, base, w.logID)
	if err != nil {
		return err
	}
	return errors.Join(newCorruptError(s.dataStart(), "segment does not begin with a mark"), s.file.Close())
}

// proveInSegment looks for a proof in a later segment that no valid first mark links to the one before: a mark anywhere in
// it, or a damaged header, since a segment gets its name once its header is on disk.
func (w *logWalk) proveInSegment(base, bad eventstore.Position) (proof, error) {
	s, _, err := openSegment(w.fs, base, w.logID)
	var corrupt *eventstore.CorruptError
	switch {
	case errors.Is(err, os.ErrNotExist):
		return proof{}, nil // a spare may disappear after the listing
	case errors.As(err, &corrupt):
		return proof{damage: err}, nil
	case err != nil:
		return proof{}, err
	}
	_, until, err := findMarkBeyond(s, s.dataStart(), bad, w.seed)
	if err = errors.Join(err, s.file.Close()); err != nil || until == 0 {
		return proof{}, err
	}
	return proof{until, newCorruptError(s.dataStart(), "segment does not begin with a mark")}, nil
}
