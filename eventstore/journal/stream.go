package journal

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"lieudit/eventstore"
)

// ReadStream reads by the index: what it costs grows with the events it yields, not with the log.
func (j *Journal) ReadStream(ctx context.Context, stream string, from eventstore.Revision, dir eventstore.Direction) iter.Seq2[eventstore.Recorded, error] {
	return func(yield func(eventstore.Recorded, error) bool) {
		types := names{}
		for f, err := range j.frames(stream, keyOf(stream), from, dir) {
			if err == nil {
				err = ctx.Err()
			}
			if err != nil {
				yield(eventstore.Recorded{}, err)
				return
			}
			if !yield(types.recorded(f, stream), nil) {
				return
			}
		}
		if err := ctx.Err(); err != nil {
			yield(eventstore.Recorded{}, err)
		}
	}
}

// Last is the newest event of a stream; false when it has none. It costs two small reads at most.
func (j *Journal) Last(ctx context.Context, stream string) (eventstore.Recorded, bool, error) {
	for r, err := range j.ReadStream(ctx, stream, eventstore.End, eventstore.Backward) {
		return r, err == nil, err
	}
	return eventstore.Recorded{}, false, nil
}

// frames yields the durable events of a stream.
func (j *Journal) frames(stream string, key streamKey, from eventstore.Revision, dir eventstore.Direction) iter.Seq2[frame, error] {
	return func(yield func(frame, error) bool) {
		s := streamReader{j: j, stream: stream, yield: yield}
		err := j.stopped()
		if err == nil {
			err = s.read(key, from, dir)
		}
		if err != nil {
			yield(nil, j.readError(err))
		}
	}
}

// streamReader follows a stream through the segments.
type streamReader struct {
	j      *Journal
	view   view
	stream string
	yield  func(frame, error) bool
	block  window
	reach  eventstore.Position // how far a window goes: little at first, for those who want one event
}

var errEnough = errors.New("the caller wants no more")

func (s *streamReader) read(key streamKey, from eventstore.Revision, dir eventstore.Direction) error {
	e, active := s.j.index.last(key, func() { s.view = s.j.tail.load() })
	var err error
	if !active {
		e, err = s.extent(e.base, key)
	}
	if dir == eventstore.Backward {
		err = s.backward(e, err, key, from)
	} else {
		err = s.forward(e, err, key, from)
	}
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// extent looks into the index of the segment that begins at base. The extent of nowhere is empty.
func (s *streamReader) extent(base eventstore.Position, key streamKey) (extent, error) {
	if base == nowhere {
		return extent{base: nowhere}, nil
	}
	seg, err := s.segment(base)
	if err != nil {
		return extent{}, err
	}
	return seg.index.Load().find(seg, key)
}

func (s *streamReader) segment(base eventstore.Position) (*segment, error) {
	i := s.view.holding(base)
	if i < 0 || s.view.segs[i].base != base {
		return nil, damage(base, "index names a segment that is not there")
	}
	return s.view.segs[i], nil
}

func (s *streamReader) backward(e extent, err error, key streamKey, from eventstore.Revision) error {
	for ; err == nil && e.base != nowhere; e, err = s.extent(e.prev, key) {
		n := e.count
		if from != eventstore.End && from < e.first+eventstore.Revision(n) {
			n = max(0, int(from-e.first)+1)
		}
		if err := s.pieces(e, 0, n, eventstore.Backward); err != nil {
			return err
		}
	}
	return err
}

func (s *streamReader) forward(e extent, err error, key streamKey, from eventstore.Revision) error {
	if from == eventstore.End {
		return err
	}
	var run []extent
	for ; err == nil && e.base != nowhere; e, err = s.extent(e.prev, key) {
		run = append(run, e)
		if e.first <= from {
			break
		}
	}
	for _, e := range slices.Backward(run) {
		if err == nil {
			err = s.pieces(e, max(0, int(from-e.first)), e.count, eventstore.Forward)
		}
	}
	return err
}

// pieceSize is how many offsets are taken from an index at once.
const pieceSize = 1024

func (s *streamReader) pieces(e extent, lo, hi int, dir eventstore.Direction) error {
	for lo < hi {
		from, to := lo, min(hi, lo+pieceSize)
		if dir == eventstore.Backward {
			from, to = max(lo, hi-pieceSize), hi
		}
		if err := s.piece(e, from, to, dir); err != nil {
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

func (s *streamReader) piece(e extent, lo, hi int, dir eventstore.Direction) error {
	offsets, err := e.offsets(lo, hi)
	if err != nil {
		return fmt.Errorf("read index: %w", err)
	}
	seg, err := s.segment(e.base)
	if err != nil {
		return err
	}
	for n := range offsets {
		i := n
		if dir == eventstore.Backward {
			i = len(offsets) - 1 - n
		}
		f, err := s.frame(seg, offsets, i, dir)
		if err != nil {
			return err
		}
		if string(f.stream()) != s.stream || f.revision() != e.first+eventstore.Revision(lo+i) {
			return damage(f.position(), "index names another event")
		}
		if !s.yield(f, nil) {
			return errEnough
		}
	}
	return nil
}
