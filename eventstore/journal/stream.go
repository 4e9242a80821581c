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

// LastEvent is the newest event of a stream; false when it has none. It costs two small reads at most.
func (j *Journal) LastEvent(ctx context.Context, stream string) (eventstore.RecordedEvent, bool, error) {
	for r, err := range j.ReadStream(ctx, stream, eventstore.End, eventstore.Backward) {
		return r, err == nil, err
	}
	return eventstore.RecordedEvent{}, false, nil
}

// streamFrames yields the durable events of a stream.
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

// streamReader follows a stream through the segments.
type streamReader struct {
	j           *Journal
	view        view
	stream      string
	yield       func(frame, error) bool
	window      readWindow
	windowBytes eventstore.Position // how far a window goes: little at first, for those who want one event
}

var errReaderDone = errors.New("the caller wants no more")

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

// findExtent looks into the index of the segment that begins at base. The findExtent of nowhere is empty.
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

func (s *streamReader) findSegment(base eventstore.Position) (*segment, error) {
	i := s.view.findSegment(base)
	if i < 0 || s.view.segments[i].base != base {
		return nil, newCorruptError(base, "index names a segment that is not there")
	}
	return s.view.segments[i], nil
}

func (s *streamReader) readBackward(e extent, err error, key streamKey, from eventstore.Revision) error {
	for ; err == nil && e.base != noSegment; e, err = s.findExtent(e.prevSegment, key) {
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

func (s *streamReader) readForward(e extent, err error, key streamKey, from eventstore.Revision) error {
	if from == eventstore.End {
		return err
	}
	var extents []extent
	for ; err == nil && e.base != noSegment; e, err = s.findExtent(e.prevSegment, key) {
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

// offsetsPerChunk is how many offsets are taken from an index at once.
const offsetsPerChunk = 1024

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
