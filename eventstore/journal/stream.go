package journal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"

	"lieudit/eventstore"
)

// ReadStream finds the events by the index: its cost grows with the events it yields and the segments that hold the stream,
// not with the log.
func (j *Journal) ReadStream(ctx context.Context, stream string, from eventstore.Revision, dir eventstore.Direction) iter.Seq2[eventstore.RecordedEvent, error] {
	return func(yield func(eventstore.RecordedEvent, error) bool) {
		types := interner{}
		for f, err := range j.streamFrames(stream, newStreamKey(stream), from, dir) {
			if err == nil {
				err = ctx.Err()
			}
			if err != nil {
				yield(eventstore.RecordedEvent{}, err)
				return
			}
			if !yield(types.decodeEvent(f, stream), nil) {
				return
			}
		}
		if err := ctx.Err(); err != nil {
			yield(eventstore.RecordedEvent{}, err)
		}
	}
}

// streamFrames yields the durable events of a stream as frames. key must be that of stream. Each frame is compared with the
// stream's name and the expected revision, and each extent must begin where the one before ends, so a damaged index is a
// *CorruptError and never another stream's event, or one too few.
func (j *Journal) streamFrames(stream string, key streamKey, from eventstore.Revision, dir eventstore.Direction) iter.Seq2[frame, error] {
	return func(yield func(frame, error) bool) {
		s := streamReader{j: j, stream: stream, yield: yield}
		err := j.checkOpen()
		if err == nil {
			err = s.readFrom(key, from, dir)
		}
		if err != nil {
			yield(nil, j.translateReadError(err))
		}
	}
}

// streamReader reads one stream by the index, segment by segment:
//
//	lastExtent, findExtent ──extent──► yieldRange ──offsets──► yieldChunk ──► readFrame (window) ──frame──► yield
type streamReader struct {
	j           *Journal
	view        view
	stream      string
	yield       func(frame, error) bool
	window      readWindow
	windowBytes eventstore.Position // how far the next window reaches: small at first, since many callers want one event
}

// readFrom yields the stream's events from a revision on. The index only leads from newer extents to older ones, so a forward
// read first walks back through the extents.
func (s *streamReader) readFrom(key streamKey, from eventstore.Revision, dir eventstore.Direction) error {
	e, active := s.j.index.lastExtent(key, func() { s.view = s.j.views.load() })
	var err error
	if !active {
		e, err = s.findExtent(e.base, key)
	}
	if dir == eventstore.Backward {
		err = s.readBackward(e, err, key, from)
	} else {
		err = s.readForward(e, err, key, from)
	}
	if errors.Is(err, errReaderDone) {
		return nil
	}
	return err
}

// findExtent finds the stream in the index of the segment at base. For noSegment it returns an extent with that base.
func (s *streamReader) findExtent(base eventstore.Position, key streamKey) (extent, error) {
	if base == noSegment {
		return extent{base: noSegment}, nil
	}
	seg, err := s.findSegment(base)
	if err != nil {
		return extent{}, err
	}
	return seg.index.Load().findExtent(seg, key)
}

// findOlderExtent finds the extent before e, which ends where e begins.
func (s *streamReader) findOlderExtent(e extent, key streamKey) (extent, error) {
	if e.prevSegment != noSegment && e.prevSegment >= e.base {
		return extent{}, newCorruptError(e.base, "index names a later segment for older events")
	}
	older, err := s.findExtent(e.prevSegment, key)
	if end := older.firstRevision + eventstore.Revision(older.count); err == nil && end != e.firstRevision {
		return extent{}, newCorruptError(e.base, fmt.Sprintf("index lacks events of a stream, from revision %d to %d", end, e.firstRevision))
	}
	return older, err
}

// findSegment finds the segment with a base in the view.
func (s *streamReader) findSegment(base eventstore.Position) (*segment, error) {
	i := s.view.findSegment(base)
	if i < 0 || s.view.segments[i].base != base {
		return nil, newCorruptError(base, "index names a segment that is not there")
	}
	return s.view.segments[i], nil
}

// readBackward yields the events from e back to the first one. err is the error of finding e.
func (s *streamReader) readBackward(e extent, err error, key streamKey, from eventstore.Revision) error {
	for ; err == nil && e.base != noSegment; e, err = s.findOlderExtent(e, key) {
		n := e.count
		if from != eventstore.End && from < e.firstRevision+eventstore.Revision(n) {
			n = max(0, int(from-e.firstRevision)+1)
		}
		if err := s.yieldRange(e, 0, n, eventstore.Backward); err != nil {
			return err
		}
	}
	return err
}

// readForward walks back from e to the segment that holds the revision from, and then yields forward. err is the error of
// finding e.
func (s *streamReader) readForward(e extent, err error, key streamKey, from eventstore.Revision) error {
	if from == eventstore.End {
		return err
	}
	var extents []extent
	for ; err == nil && e.base != noSegment; e, err = s.findOlderExtent(e, key) {
		extents = append(extents, e)
		if e.firstRevision <= from {
			break
		}
	}
	for _, e := range slices.Backward(extents) {
		if err == nil {
			err = s.yieldRange(e, max(0, int(from-e.firstRevision)), e.count, eventstore.Forward)
		}
	}
	return err
}

// offsetsPerChunk is how many offsets are read from an index at once.
const offsetsPerChunk = 1024

// yieldRange yields the events lo to hi, exclusive, of an extent.
func (s *streamReader) yieldRange(e extent, lo, hi int, dir eventstore.Direction) error {
	for lo < hi {
		from, to := lo, min(hi, lo+offsetsPerChunk)
		if dir == eventstore.Backward {
			from, to = max(lo, hi-offsetsPerChunk), hi
		}
		if err := s.yieldChunk(e, from, to, dir); err != nil {
			return err
		}
		if dir == eventstore.Backward {
			hi = from
		} else {
			lo = to
		}
	}
	return nil
}

// yieldChunk is yieldRange for at most offsetsPerChunk events.
func (s *streamReader) yieldChunk(e extent, lo, hi int, dir eventstore.Direction) error {
	offsets, err := e.readOffsets(lo, hi)
	if err != nil {
		return fmt.Errorf("read index: %w", err)
	}
	seg, err := s.findSegment(e.base)
	if err != nil {
		return err
	}
	for n := range offsets {
		i := n
		if dir == eventstore.Backward {
			i = len(offsets) - 1 - n
		}
		f, err := s.readFrame(seg, offsets, i, dir)
		if err != nil {
			return err
		}
		if string(f.stream()) != s.stream || f.revision() != e.firstRevision+eventstore.Revision(lo+i) {
			return newCorruptError(f.position(), "index names another event")
		}
		if !s.yield(f, nil) {
			return errReaderDone
		}
	}
	return nil
}

// readWindow is a piece of a segment read at once, for several events of a stream that lie close together.
type readWindow struct {
	segment *segment
	start   eventstore.Position
	bytes   []byte
}

// readFrame returns event i of offsets. If the window does not hold it, it reads a new one, which also covers the next events
// of the stream in the direction of reading, as long as they are close.
func (s *streamReader) readFrame(seg *segment, offsets []uint32, i int, dir eventstore.Direction) (frame, error) {
	pos := seg.base + eventstore.Position(offsets[i])
	if f, err := s.window.frameAt(seg, pos, s.j.crcSeed); f != nil || err != nil {
		return f, err
	}
	lo, hi := i, i
	s.windowBytes = min(blockSize, max(1<<10, 4*s.windowBytes))
	for dir == eventstore.Forward && hi+1 < len(offsets) && offsets[hi+1]-offsets[i] < uint32(s.windowBytes) {
		hi++
	}
	for dir == eventstore.Backward && lo > 0 && offsets[i]-offsets[lo-1] < uint32(s.windowBytes) {
		lo--
	}
	// An offset does not give the length of the last event: the slack is enough for most. A longer event is read alone below.
	const slack = 2 << 10
	from := seg.base + eventstore.Position(offsets[lo])
	if err := s.loadWindow(seg, from, seg.base+eventstore.Position(offsets[hi])+slack); err != nil {
		return nil, err
	}
	if f, err := s.window.frameAt(seg, pos, s.j.crcSeed); f != nil || err != nil {
		return f, err
	}
	return seg.readFrameAt(pos, s.segmentEnd(seg), s.j.crcSeed)
}

func (s *streamReader) segmentEnd(seg *segment) eventstore.Position {
	return s.view.segmentEnd(s.view.findSegment(seg.base))
}

// loadWindow reads the range from-to of a segment, as far as it is durable, into the window.
func (s *streamReader) loadWindow(seg *segment, from, to eventstore.Position) error {
	to = min(to, s.segmentEnd(seg))
	if from >= to {
		return newCorruptError(from, "index names an event behind the end")
	}
	b := make([]byte, to-from)
	if _, err := seg.file.ReadAt(b, int64(from-seg.base)); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read log at %d: %w", from, err)
	}
	s.window = readWindow{seg, from, b}
	return nil
}

// frameAt returns the event at pos if the window holds all of it, otherwise nil.
func (w readWindow) frameAt(seg *segment, pos eventstore.Position, seed uint32) (frame, error) {
	if w.segment != seg || pos < w.start || pos >= w.start+eventstore.Position(len(w.bytes)) {
		return nil, nil
	}
	f, _, invalid := parseFrame(w.bytes[pos-w.start:], pos, seed)
	switch {
	case invalid != "":
		return nil, newCorruptError(pos, invalid)
	case f != nil && !f.isEvent():
		return nil, newCorruptError(pos, "index names a mark")
	}
	return f, nil
}
