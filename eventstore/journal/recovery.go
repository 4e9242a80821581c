package journal

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"lieudit/eventstore"
)

// recovery reads the folder of a log when the journal opens:
//
//	listSegments ──► openSegments ──► removeSpares ──► loadSealedSegment ──► recoverTail ──► readLastEvent
//	                 or createLog                      each full one by      the last one
//	                                                   its index, or replay  by replay
//
// Afterwards every byte that counts as written is on disk, every byte behind them is zero, and every append is complete or
// absent.
type recovery struct {
	options  Options
	segments []*segment
	logID    uuid.UUID
	crcSeed  uint32

	index      *streamIndex
	recent     *recentAppends
	tailReplay *replay // of the last segment, to its end
	lastTime   int64   // of the last event, in microseconds
}

// recoverLog opens every segment, the last one for writing, and returns the checkpoint of the last event.
func (r *recovery) recoverLog() (eventstore.Checkpoint, error) {
	bases, err := r.listSegments()
	if err == nil && len(bases) == 0 {
		err = r.createLog()
	} else if err == nil {
		err = r.openSegments(bases)
	}
	if err == nil {
		err = r.removeSpares()
	}
	for i := 0; err == nil && i < len(r.segments)-1; i++ {
		err = r.loadSealedSegment(i)
	}
	if err == nil {
		err = r.recoverTail()
	}
	if err != nil {
		return eventstore.Checkpoint{}, err
	}
	return r.readLastEvent()
}

// readLastEvent rereads the last event of the log for its checkpoint and its time. If the last segment holds no event, the
// index of the segment before names it. In an empty log the checkpoint names no event.
func (r *recovery) readLastEvent() (eventstore.Checkpoint, error) {
	last := r.tailReplay.lastPosition
	if last == 0 && len(r.segments) > 1 {
		last = r.segments[len(r.segments)-2].lastPosition
	}
	if last == 0 {
		return eventstore.Checkpoint{Log: r.logID}, nil
	}
	s := r.segments[view{segments: r.segments}.findSegment(last)]
	f, err := s.readFrameAt(last, s.nextBase(), r.crcSeed)
	if err != nil {
		return eventstore.Checkpoint{}, err
	}
	if !f.isEvent() {
		return eventstore.Checkpoint{}, newCorruptError(last, "index names a mark as the last event")
	}
	r.lastTime = int64(littleEndian.Uint64(f[32:]))
	return f.checkpoint(r.logID), nil
}

// listSegments returns the bases of the segments, in order, and removes unfinished files. An index without its segment shows
// that the segment was lost, since an index is made only when its segment is full.
func (r *recovery) listSegments() (bases []eventstore.Position, err error) {
	names, err := r.options.FS.Names()
	if err != nil {
		return nil, err
	}
	for _, n := range names {
		if base, ok := parseSegmentName(n); ok {
			bases = append(bases, base)
		}
		if strings.HasSuffix(n, ".tmp") {
			if err := r.options.FS.Remove(n); err != nil {
				return nil, err
			}
		}
	}
	slices.Sort(bases)
	for _, n := range names {
		base, ok := parseSegmentName(strings.TrimSuffix(n, ".idx") + ".log")
		if ok && strings.HasSuffix(n, ".idx") && !slices.Contains(bases, base) {
			return nil, newCorruptError(base, "segment is missing, its index is there")
		}
	}
	return bases, nil
}

// createLog makes the first segment of a new log, in an empty folder.
func (r *recovery) createLog() error {
	logID, err := uuid.NewRandom()
	if err != nil {
		return err
	}
	s, err := createSegment(r.options.FS, segmentHeader{logID: logID, size: uint64(r.options.SegmentSize)}, nil)
	if err != nil {
		return err
	}
	r.logID, r.crcSeed, r.segments = logID, newCRCSeed(logID), []*segment{s}
	return nil
}

// openSegments opens the segments at bases, which must follow each other from 0 on.
func (r *recovery) openSegments(bases []eventstore.Position) error {
	next := eventstore.Position(0)
	for _, base := range bases {
		if base != next {
			return newCorruptError(next, "segment is missing")
		}
		s, h, err := openSegment(r.options.FS, base, r.logID)
		if err != nil {
			return err
		}
		r.segments = append(r.segments, s)
		if err := s.checkNotCut(); err != nil {
			return err
		}
		r.logID, r.crcSeed = h.logID, newCRCSeed(h.logID)
		next = s.nextBase()
	}
	return r.syncLastSegments()
}

// maxUnsyncedSegments is how many segments at the end may hold bytes that are not on disk: the last one with appends, and
// spares behind it that no append has reached.
const maxUnsyncedSegments = 4

// syncLastSegments puts on disk what a killed process wrote and did not sync. Otherwise recovery would count bytes as written
// that a power cut can still take.
func (r *recovery) syncLastSegments() error {
	for _, s := range r.segments[max(0, len(r.segments)-maxUnsyncedSegments):] {
		if err := s.file.Sync(); err != nil {
			return fmt.Errorf("sync segment: %w", err)
		}
	}
	return nil
}

// readFirstMark reads the mark at the beginning of a segment. It returns nil if there is no valid one.
func (r *recovery) readFirstMark(s *segment) (frame, error) {
	f, err := s.readFrameAt(s.dataStart(), s.nextBase(), r.crcSeed)
	var corrupt *eventstore.CorruptError
	if errors.As(err, &corrupt) || err == nil && f.isEvent() {
		return nil, nil
	}
	return f, err
}

// removeSpares removes the segments at the end that hold no valid mark: they were made ahead, or their first group did not
// reach the disk whole. The index of a segment shows that its successor was in use: an index is made once the successor's
// first group is durable.
func (r *recovery) removeSpares() error {
	names, err := r.options.FS.Names()
	if err != nil {
		return err
	}
	if last := r.segments[len(r.segments)-1]; slices.Contains(names, indexName(last.base)) {
		return newCorruptError(last.nextBase(), "segment is missing, the index of the one before is there")
	}
	for n := len(r.segments) - 1; n > 0; n-- {
		s := r.segments[n]
		f, err := r.readFirstMark(s)
		if err != nil || f != nil {
			return err
		}
		if slices.Contains(names, indexName(r.segments[n-1].base)) {
			return newCorruptError(s.dataStart(), "segment does not begin with a mark")
		}
		if err := r.removeSpare(s); err != nil {
			return err
		}
		r.segments = r.segments[:n]
	}
	return nil
}

// removeSpare removes a segment without a valid mark, unless a later mark in it shows that it is damaged.
func (r *recovery) removeSpare(s *segment) error {
	if err := r.checkNoMarkBeyond(s, s.dataStart()); err != nil {
		return err
	}
	if from, to, err := findNonZero(s, s.dataStart()); err != nil {
		return err
	} else if to > from {
		r.options.Logger.Warn("cut the torn tail of the log", "position", uint64(s.dataStart()), "bytes", uint64(to-s.dataStart()))
	}
	return errors.Join(s.file.Close(), r.options.FS.Remove(segmentName(s.base)), r.options.FS.SyncDir())
}

// loadSealedSegment adds full segment i to the index: from its index file, or frame by frame if that is missing or damaged.
// It trusts the index file and does not read the segment, which keeps the start short.
func (r *recovery) loadSealedSegment(i int) error {
	s, next := r.segments[i], r.segments[i+1]
	f, err := r.readFirstMark(next)
	if err != nil {
		return err
	}
	if f == nil {
		return newCorruptError(next.dataStart(), "segment does not begin with a mark")
	}
	s.end, s.lastCRC = f.durableEnd(), f.prevCRC() // the first mark of a segment proves how the one before ends
	if s.end < s.dataStart() || s.end > s.nextBase() {
		return newCorruptError(next.dataStart(), "mark names an end that is not in the segment before")
	}
	file, b, err := openSegmentIndex(r.options.FS, s, r.logID)
	if err == nil {
		s.lastPosition = eventstore.Position(littleEndian.Uint64(b[48:]))
		s.index.Store(newSegmentIndex(file, b))
		if err = r.index.loadSegmentIndex(s.base, b); err == nil {
			return nil
		}
		return newCorruptError(s.base, "index does not follow from those before")
	}
	r.options.Logger.Warn("make the index of a segment again", "segment", segmentName(s.base), "why", err)
	return r.rebuildIndex(i)
}

// rebuildIndex replays full segment i, which gives it an index in memory.
func (r *recovery) rebuildIndex(i int) error {
	s := r.segments[i]
	c := view{segments: r.segments}.newCursor(i, r.crcSeed)
	r.index.activeBase = s.base
	p := newReplay(&c, r.index.addAppend)
	if err := p.replayAppends(); err != nil {
		return p.asCorrupt(err)
	}
	if p.wholeEnd != s.end || p.lastCRC != s.lastCRC {
		return newCorruptError(p.wholeEnd, "segment does not lead to the next")
	}
	if s.lastPosition = p.lastPosition; s.lastPosition == 0 && i > 0 {
		s.lastPosition = r.segments[i-1].lastPosition
	}
	r.index.rollSegment(noSegment, s.seal)
	return nil
}

// recoverTail replays the last segment, cuts off what a crash left half written, and makes the rest durable.
func (r *recovery) recoverTail() error {
	i := len(r.segments) - 1
	s := r.segments[i]
	r.index.activeBase = s.base
	c := view{segments: r.segments, end: s.nextBase()}.newCursor(i, r.crcSeed)
	r.tailReplay = newReplay(&c, func(a replayedAppend) error {
		r.recent.addAppend(a.key, a.firstRevision, a.lastPosition, a.ids)
		return r.index.addAppend(a)
	})
	// An invalid frame is the usual end, since zeros follow the last one. The marks behind it decide whether it is a torn
	// tail or damage.
	err := r.tailReplay.replayAppends()
	var corrupt *eventstore.CorruptError
	if err != nil && !errors.As(err, &corrupt) {
		return r.tailReplay.asCorrupt(err)
	}
	if err := r.checkNoMarkBeyond(s, c.pos); err != nil {
		return err
	}
	return r.cutTornTail(s)
}

// cutTornTail zeroes everything behind the last whole append. It also rewrites the bytes that no mark proves durable: a page
// whose write-back failed under an earlier process looks clean but is not on disk.
func (r *recovery) cutTornTail(s *segment) error {
	from, to, err := findNonZero(s, r.tailReplay.keepEnd)
	if err != nil {
		return err
	}
	if to > from {
		r.options.Logger.Warn("cut the torn tail of the log", "position", uint64(r.tailReplay.keepEnd), "bytes", uint64(to-r.tailReplay.keepEnd))
	}
	if err := writeZeros(s, from, to); err != nil {
		return fmt.Errorf("cut the torn tail: %w", err)
	}
	b := make([]byte, r.tailReplay.keepEnd-r.tailReplay.provenEnd)
	if _, err := s.file.ReadAt(b, int64(r.tailReplay.provenEnd-s.base)); err != nil {
		return fmt.Errorf("read the tail: %w", err)
	}
	if _, err := s.file.WriteAt(b, int64(r.tailReplay.provenEnd-s.base)); err != nil {
		return fmt.Errorf("write the tail again: %w", err)
	}
	if err := s.file.Sync(); err != nil {
		return fmt.Errorf("sync the tail: %w", err)
	}
	return nil
}

// checkNoMarkBeyond fails with a *CorruptError if a mark in s declares a position beyond bad durable. bad is where the valid
// frames of s end: without such a mark the rest is a torn tail, with it the log is damaged.
func (r *recovery) checkNoMarkBeyond(s *segment, bad eventstore.Position) error {
	mark, durable, err := findMarkBeyond(s, bad, bad, r.crcSeed)
	if err == nil && durable > 0 {
		err = newCorruptError(bad, fmt.Sprintf("the log goes on at %d", mark))
	}
	return err
}

// errMarkFound ends a search.
var errMarkFound = errors.New("a mark is found")

// findMarkBeyond returns the first mark of s, from a position on, that declares a position beyond bad durable, and the
// position it declares. It returns 0 if there is none.
func findMarkBeyond(s *segment, from, bad eventstore.Position, seed uint32) (mark, durable eventstore.Position, err error) {
	err = readChunks(s, from, durableMarkSize, func(pos eventstore.Position, b []byte) error {
		for at := 0; ; {
			i := bytes.Index(b[at:], []byte(durableMarkMagic))
			if i < 0 {
				return nil
			}
			at += i + len(durableMarkMagic) // the magic ends the mark
			if at < durableMarkSize {
				continue // the chunk before held all of this mark, or it is not a mark
			}
			mark = pos + eventstore.Position(at-durableMarkSize)
			if f, _, _ := parseFrame(b[at-durableMarkSize:at], mark, seed); f != nil && f.durableEnd() > bad {
				durable = f.durableEnd()
				return errMarkFound
			}
		}
	})
	if errors.Is(err, errMarkFound) {
		err = nil
	}
	return mark, durable, err
}

// replay reads a segment append by append, for recovery and Verify. Unlike a logReader it may meet torn appends.
type replay struct {
	cursor   *cursor
	onAppend func(replayedAppend) error // called for every append that has its last event

	openAppend   replayedAppend      // the append that has begun and not ended
	wholeEnd     eventstore.Position // behind the last whole append
	lastCRC      uint32              // of the frame before wholeEnd
	lastPosition eventstore.Position // of that frame; 0 if there is none
	provenEnd    eventstore.Position // of the last mark: everything before it was on disk
	keepEnd      eventstore.Position // wholeEnd, or behind the mark at wholeEnd
}

// replayedAppend is one append of the log. Its slices are reused for the next one.
type replayedAppend struct {
	key           streamKey
	stream        string
	firstRevision eventstore.Revision
	ids           []uuid.UUID
	offsets       []uint32
	lastPosition  eventstore.Position
}

// newReplay returns a replay of the frames up to the cursor's end.
func newReplay(c *cursor, onAppend func(replayedAppend) error) *replay {
	return &replay{cursor: c, onAppend: onAppend, wholeEnd: c.pos, lastCRC: c.prevCRC, provenEnd: c.pos, keepEnd: c.pos}
}

// replayAppends continues to the cursor's end, or to the first frame that is invalid or out of order. It returns nil, the
// *CorruptError that names that frame, or the error of a read or of onAppend. The cursor stays at a refused frame.
func (r *replay) replayAppends() error {
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

// asCorrupt turns errRevisionOrder, which no power cut causes, into a *CorruptError at the cursor.
func (r *replay) asCorrupt(err error) error {
	if errors.Is(err, errRevisionOrder) {
		return newCorruptError(r.cursor.pos, errRevisionOrder.Error())
	}
	return err
}

// addFrame adds a frame to the open append, or begins one.
func (r *replay) addFrame(f frame) error {
	if !f.isEvent() {
		return r.addMark(f)
	}
	a := &r.openAppend
	if len(a.ids) == 0 {
		if string(f.stream()) != a.stream || a.key == (streamKey{}) {
			a.stream = string(f.stream())
			a.key = newStreamKey(a.stream)
		}
		a.firstRevision = f.revision()
	} else if string(f.stream()) != a.stream || f.revision() != a.firstRevision+eventstore.Revision(len(a.ids)) {
		return newCorruptError(f.position(), "append is not in one piece")
	}
	a.ids = append(a.ids, f.id())
	a.offsets = append(a.offsets, uint32(f.position()-r.cursor.segment.base))
	if !f.isLastOfAppend() {
		return nil
	}
	return r.endAppend(f)
}

// endAppend reports the append whose last event is f.
func (r *replay) endAppend(f frame) error {
	a := &r.openAppend
	a.lastPosition = f.position()
	if err := r.onAppend(*a); err != nil {
		return err
	}
	r.wholeEnd, r.keepEnd, r.lastCRC, r.lastPosition = r.cursor.pos, r.cursor.pos, f.crc(), f.position()
	a.ids, a.offsets = a.ids[:0], a.offsets[:0]
	return nil
}

// addMark records what a mark proves. A mark inside an append means that the append is torn.
func (r *replay) addMark(f frame) error {
	if len(r.openAppend.ids) > 0 {
		return newCorruptError(f.position(), "append without its last event")
	}
	r.provenEnd, r.keepEnd = f.position(), r.cursor.pos
	return nil
}
