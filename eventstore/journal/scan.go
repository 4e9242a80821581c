package journal

import (
	"context"
	"errors"
	"iter"

	"lieudit/eventstore"
)

// Wait returns the position of the last durable event as soon as that is after the given one.
func (j *Journal) Wait(ctx context.Context, after eventstore.Position) (eventstore.Position, error) {
	for {
		v, changed := j.views.watch()
		if j.isClosed() {
			return 0, eventstore.ErrClosed
		}
		if v.lastCheckpoint.Position > after {
			return v.lastCheckpoint.Position, ctx.Err()
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-j.closing:
			return 0, eventstore.ErrClosed
		}
	}
}

// Scan yields the events of every stream, "$" streams too, in the order of their positions, or against it: forward
// those from a position on that are durable when it is called, backward those before it. The position may be 0,
// that of an event or beyond the last; another is a *DivergedError. Going backward costs a pass over the
// segment that an event is in, but for the last event of all.
func (j *Journal) Scan(ctx context.Context, from eventstore.Position, dir eventstore.Direction) iter.Seq2[eventstore.RecordedEvent, error] {
	return func(yield func(eventstore.RecordedEvent, error) bool) {
		s := &logScan{j: j, ctx: ctx, view: j.views.load(), yield: yield, streamNames: interner{}, typeNames: interner{}}
		if err := s.run(from, dir); err != nil && !errors.Is(err, errReaderDone) {
			yield(eventstore.RecordedEvent{}, j.translateReadError(err))
		}
	}
}

// logScan goes through what one view shows.
type logScan struct {
	j           *Journal
	ctx         context.Context
	view        view
	yield       func(eventstore.RecordedEvent, error) bool
	streamNames interner
	typeNames   interner
}

func (s *logScan) run(from eventstore.Position, dir eventstore.Direction) error {
	last := s.view.lastCheckpoint.Position
	if err := s.checkRunning(); err != nil || last == 0 || from > last && dir == eventstore.Forward {
		return err
	}
	if 0 < from && from <= last {
		if err := s.checkEventAt(from); err != nil {
			return err
		}
	}
	if dir == eventstore.Forward {
		return s.scanForward(from)
	}
	if from > last {
		if err := s.yieldEventAt(last); err != nil {
			return err
		}
		from = last
	}
	return s.scanBackward(from)
}

// checkEventAt makes sure that an event begins at a position.
func (s *logScan) checkEventAt(pos eventstore.Position) error {
	mark := eventstore.Checkpoint{Log: s.j.logID, Position: pos}
	diverged := &eventstore.DivergedError{Checkpoint: mark, Reason: "no event begins there"}
	i := s.view.findSegment(pos)
	if i < 0 || pos < s.view.segments[i].dataStart() || pos >= s.view.segmentEnd(i) {
		return diverged
	}
	f, err := s.view.segments[i].readFrameAt(pos, s.view.segmentEnd(i), s.j.crcSeed)
	if err != nil {
		return (&logReader{j: s.j}).explainBadCheckpoint(s.view, i, mark, err)
	}
	if !f.isEvent() {
		return diverged
	}
	return nil
}

func (s *logScan) scanForward(from eventstore.Position) error {
	first := max(0, s.view.findSegment(from))
	c, err := s.newCursor(first, from)
	for i := first; err == nil && i < len(s.view.segments); i++ {
		if i > first {
			c.segment, c.pos, c.block = s.view.segments[i], s.view.segments[i].dataStart(), nil
		}
		c.end = s.view.segmentEnd(i)
		err = s.forEachEvent(c, s.yieldEvent)
	}
	return err
}

// newCursor stands at an event of segment i, or at the beginning of the segment.
func (s *logScan) newCursor(i int, from eventstore.Position) (*cursor, error) {
	seg := s.view.segments[i]
	c := &cursor{segment: seg, seed: s.j.crcSeed, pos: max(from, seg.dataStart()), end: s.view.segmentEnd(i), prevCRC: s.view.crcBefore(i, s.j.crcSeed)}
	if c.pos == seg.dataStart() {
		return c, nil
	}
	f, err := seg.readFrameAt(c.pos, c.end, c.seed)
	if err == nil {
		c.prevCRC = f.prevCRC()
	}
	return c, err
}

// forEachEvent gives the events from the cursor to its end.
func (s *logScan) forEachEvent(c *cursor, do func(frame) error) error {
	for n := 0; ; n++ {
		if n%64 == 0 {
			if err := s.checkRunning(); err != nil {
				return err
			}
		}
		f, err := c.nextFrame()
		if err != nil || f == nil {
			return err
		}
		if !f.isEvent() {
			continue
		}
		if err := do(f); err != nil {
			return err
		}
	}
}

func (s *logScan) checkRunning() error {
	if s.j.isClosed() {
		return eventstore.ErrClosed
	}
	return s.ctx.Err()
}

func (s *logScan) yieldEvent(f frame) error {
	if !s.yield(s.typeNames.decodeEvent(f, s.streamNames.intern(f.stream())), nil) {
		return errReaderDone
	}
	return nil
}

// scanBackward notes where the events of a segment are before it yields them, last first.
func (s *logScan) scanBackward(before eventstore.Position) error {
	for i := s.view.findSegment(before - 1); before > 0 && i >= 0; i-- {
		c, err := s.newCursor(i, 0)
		if err != nil {
			return err
		}
		var offsets []uint32
		c.end = min(c.end, before)
		err = s.forEachEvent(c, func(f frame) error {
			offsets = append(offsets, uint32(f.position()-c.segment.base))
			return nil
		})
		for n := len(offsets) - 1; err == nil && n >= 0; n-- {
			err = s.yieldEventAt(c.segment.base + eventstore.Position(offsets[n]))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *logScan) yieldEventAt(pos eventstore.Position) error {
	if err := s.checkRunning(); err != nil {
		return err
	}
	i := s.view.findSegment(pos)
	f, err := s.view.segments[i].readFrameAt(pos, s.view.segmentEnd(i), s.j.crcSeed)
	if err != nil {
		return err
	}
	return s.yieldEvent(f)
}
