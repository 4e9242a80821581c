package journal

import (
	"errors"
	"fmt"
	"io"

	"lieudit/eventstore"
)

// window is a piece of a segment that was read at once.
type window struct {
	seg  *segment
	from eventstore.Position
	b    []byte
}

// frame reads event i and, with it, its neighbours in the stream as long as they are close.
func (s *streamReader) frame(seg *segment, offsets []uint32, i int, dir eventstore.Direction) (frame, error) {
	pos := seg.base + eventstore.Position(offsets[i])
	if f, err := s.block.frame(seg, pos, s.j.seed); f != nil || err != nil {
		return f, err
	}
	lo, hi := i, i
	s.reach = min(blockSize, max(1<<10, 4*s.reach))
	for dir == eventstore.Forward && hi+1 < len(offsets) && offsets[hi+1]-offsets[i] < uint32(s.reach) {
		hi++
	}
	for dir == eventstore.Backward && lo > 0 && offsets[i]-offsets[lo-1] < uint32(s.reach) {
		lo--
	}
	const little = 2 << 10
	from := seg.base + eventstore.Position(offsets[lo])
	if err := s.fill(seg, from, seg.base+eventstore.Position(offsets[hi])+little); err != nil {
		return nil, err
	}
	if f, err := s.block.frame(seg, pos, s.j.seed); f != nil || err != nil {
		return f, err
	}
	return seg.at(pos, s.end(seg), s.j.seed)
}

func (s *streamReader) end(seg *segment) eventstore.Position {
	return s.view.endOf(s.view.holding(seg.base))
}

func (s *streamReader) fill(seg *segment, from, to eventstore.Position) error {
	to = min(to, s.end(seg))
	if from >= to {
		return damage(from, "index names an event behind the end")
	}
	b := make([]byte, to-from)
	if _, err := seg.file.ReadAt(b, int64(from-seg.base)); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read log at %d: %w", from, err)
	}
	s.block = window{seg, from, b}
	return nil
}

// frame is the frame at pos when the window holds all of it.
func (w window) frame(seg *segment, pos eventstore.Position, seed uint32) (frame, error) {
	if w.seg != seg || pos < w.from || pos+markSize > w.from+eventstore.Position(len(w.b)) {
		return nil, nil
	}
	f := frame(w.b[pos-w.from:])
	size := f.size()
	if size < markSize {
		return nil, damage(pos, fmt.Sprintf("frame of %d bytes", size))
	}
	if size > len(f) {
		return nil, nil
	}
	f = f[:size:size]
	if why := f.check(pos, seed); why != "" {
		return nil, damage(pos, why)
	}
	if !f.isEvent() {
		return nil, damage(pos, "index names a mark")
	}
	return f, nil
}
