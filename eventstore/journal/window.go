package journal

import (
	"errors"
	"fmt"
	"io"

	"lieudit/eventstore"
)

// readWindow is a piece of a segment that was read at once.
type readWindow struct {
	segment *segment
	start   eventstore.Position
	bytes   []byte
}

// readFrame reads event i and, with it, its neighbours in the stream as long as they are close.
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

// frameAt is the frameAt at pos when the window holds all of it.
func (w readWindow) frameAt(seg *segment, pos eventstore.Position, seed uint32) (frame, error) {
	if w.segment != seg || pos < w.start || pos+durableMarkSize > w.start+eventstore.Position(len(w.bytes)) {
		return nil, nil
	}
	f := frame(w.bytes[pos-w.start:])
	size := f.size()
	if size < durableMarkSize {
		return nil, newCorruptError(pos, fmt.Sprintf("frame of %d bytes", size))
	}
	if size > len(f) {
		return nil, nil
	}
	f = f[:size:size]
	if why := f.invalidReason(pos, seed); why != "" {
		return nil, newCorruptError(pos, why)
	}
	if !f.isEvent() {
		return nil, newCorruptError(pos, "index names a mark")
	}
	return f, nil
}
