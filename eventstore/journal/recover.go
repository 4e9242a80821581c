package journal

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"lieudit/eventstore"
)

// recovery finds out what a folder holds. After it every byte that is taken for written is on disk, every byte after
// them is zero, and an append is there whole or not at all.
type recovery struct {
	options  Options
	segments []*segment
	logID    uuid.UUID
	crcSeed  uint32

	index      *streamIndex
	recent     *recentAppends
	tailReplay *replay // of the last segment
	lastTime   int64   // of the last event, in microseconds
}

// run opens every segment, leaves the last of segs as the one to write on, and marks the last event.
func (r *recovery) run() (eventstore.Checkpoint, error) {
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

// readLastEvent reads the last event of the log once more.
func (r *recovery) readLastEvent() (eventstore.Checkpoint, error) {
	final := r.tailReplay.lastPosition
	if final == 0 && len(r.segments) > 1 {
		final = r.segments[len(r.segments)-2].lastPosition
	}
	if final == 0 {
		return eventstore.Checkpoint{Log: r.logID}, nil
	}
	s := r.segments[view{segments: r.segments}.findSegment(final)]
	f, err := s.readFrameAt(final, s.nextBase(), r.crcSeed)
	if err != nil {
		return eventstore.Checkpoint{}, err
	}
	if !f.isEvent() {
		return eventstore.Checkpoint{}, newCorruptError(final, "index names a mark as the last event")
	}
	r.lastTime = int64(littleEndian.Uint64(f[32:]))
	return f.checkpoint(r.logID), nil
}

// listSegments lists the segments and removes unfinished work.
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

func (r *recovery) openSegments(bases []eventstore.Position) error {
	want := eventstore.Position(0)
	for _, base := range bases {
		if base != want {
			return newCorruptError(want, "segment is missing")
		}
		s, h, err := openSegment(r.options.FS, base, r.logID)
		if err != nil {
			return err
		}
		r.segments = append(r.segments, s)
		r.logID, r.crcSeed = h.logID, newCRCSeed(h.logID)
		want = s.nextBase()
	}
	// Only what a sync has confirmed may be believed: the pages of a killed process are not on disk yet. The last few:
	// the very last may be spares that no append has reached.
	for _, s := range r.segments[max(0, len(r.segments)-4):] {
		if err := s.file.Sync(); err != nil {
			return fmt.Errorf("sync segment: %w", err)
		}
	}
	return nil
}

// readFirstMark reads the mark a segment begins with; nil when there is none.
func (r *recovery) readFirstMark(s *segment) (frame, error) {
	f, err := s.readFrameAt(s.dataStart(), s.nextBase(), r.crcSeed)
	var corrupt *eventstore.CorruptError
	if errors.As(err, &corrupt) || err == nil && f.isEvent() {
		return nil, nil
	}
	return f, err
}

// removeSpares removes the last segments as long as nothing that counts was written on them: they were made ahead, or
// their first group never got to the disk whole.
func (r *recovery) removeSpares() error {
	for n := len(r.segments) - 1; n > 0; n-- {
		f, err := r.readFirstMark(r.segments[n])
		if err != nil || f != nil {
			return err
		}
		if err := r.removeSpare(r.segments[n]); err != nil {
			return err
		}
		r.segments = r.segments[:n]
	}
	return nil
}

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

// loadSealedSegment takes in a full segment: by its index, or frame by frame when that is of no use.
func (r *recovery) loadSealedSegment(i int) error {
	s, next := r.segments[i], r.segments[i+1]
	f, err := r.readFirstMark(next)
	if err != nil {
		return err
	}
	if f == nil {
		return newCorruptError(next.dataStart(), "segment does not begin with a mark")
	}
	s.end, s.lastCRC = f.durableEnd(), f.prevCRC()
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

func (r *recovery) rebuildIndex(i int) error {
	s := r.segments[i]
	c := &cursor{segment: s, seed: r.crcSeed, pos: s.dataStart(), end: s.end, prevCRC: view{segments: r.segments}.crcBefore(i, r.crcSeed)}
	r.index.activeBase = s.base
	p := newReplay(c, r.index.addAppend)
	if err := p.run(); err != nil {
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

// recoverTail walks the last segment, cuts what a power cut left half done, and makes the rest durable for good.
func (r *recovery) recoverTail() error {
	i := len(r.segments) - 1
	s := r.segments[i]
	r.index.activeBase = s.base
	c := &cursor{segment: s, seed: r.crcSeed, pos: s.dataStart(), end: s.nextBase(), prevCRC: view{segments: r.segments}.crcBefore(i, r.crcSeed)}
	r.tailReplay = newReplay(c, func(b replayedAppend) error {
		r.recent.addAppend(b.key, b.firstRevision, b.lastPosition, b.ids)
		return r.index.addAppend(b)
	})
	err := r.tailReplay.run()
	var corrupt *eventstore.CorruptError
	if err != nil && !errors.As(err, &corrupt) {
		return r.tailReplay.asCorrupt(err)
	}
	if err := r.checkNoMarkBeyond(s, c.pos); err != nil {
		return err
	}
	return r.cutTornTail(s)
}
