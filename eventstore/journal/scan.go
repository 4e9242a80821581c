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
		v, changed := j.tail.watch()
		if j.isClosed() {
			return 0, eventstore.ErrClosed
		}
		if v.last.Position > after {
			return v.last.Position, ctx.Err()
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
func (j *Journal) Scan(ctx context.Context, from eventstore.Position, dir eventstore.Direction) iter.Seq2[eventstore.Recorded, error] {
	return func(yield func(eventstore.Recorded, error) bool) {
		s := &scan{j: j, ctx: ctx, view: j.tail.load(), yield: yield, streams: names{}, types: names{}}
		if err := s.run(from, dir); err != nil && !errors.Is(err, errEnough) {
			yield(eventstore.Recorded{}, j.readError(err))
		}
	}
}

// scan goes through what one view shows.
type scan struct {
	j       *Journal
	ctx     context.Context
	view    view
	yield   func(eventstore.Recorded, error) bool
	streams names
	types   names
}

func (s *scan) run(from eventstore.Position, dir eventstore.Direction) error {
	last := s.view.last.Position
	if err := s.stopped(); err != nil || last == 0 || from > last && dir == eventstore.Forward {
		return err
	}
	if 0 < from && from <= last {
		if err := s.stands(from); err != nil {
			return err
		}
	}
	if dir == eventstore.Forward {
		return s.forward(from)
	}
	if from > last {
		if err := s.one(last); err != nil {
			return err
		}
		from = last
	}
	return s.backward(from)
}

// stands makes sure that an event begins at a position.
func (s *scan) stands(pos eventstore.Position) error {
	mark := eventstore.Mark{Log: s.j.id, Position: pos}
	stray := &eventstore.DivergedError{Mark: mark, Why: "no event begins there"}
	i := s.view.holding(pos)
	if i < 0 || pos < s.view.segs[i].data() || pos >= s.view.endOf(i) {
		return stray
	}
	f, err := s.view.segs[i].at(pos, s.view.endOf(i), s.j.seed)
	if err != nil {
		return (&allReader{j: s.j}).stray(s.view, i, mark, err)
	}
	if !f.isEvent() {
		return stray
	}
	return nil
}

func (s *scan) forward(from eventstore.Position) error {
	first := max(0, s.view.holding(from))
	c, err := s.cursor(first, from)
	for i := first; err == nil && i < len(s.view.segs); i++ {
		if i > first {
			c.seg, c.pos, c.block = s.view.segs[i], s.view.segs[i].data(), nil
		}
		c.end = s.view.endOf(i)
		err = s.each(c, s.event)
	}
	return err
}

// cursor stands at an event of segment i, or at the beginning of the segment.
func (s *scan) cursor(i int, from eventstore.Position) (*cursor, error) {
	seg := s.view.segs[i]
	c := &cursor{seg: seg, seed: s.j.seed, pos: max(from, seg.data()), end: s.view.endOf(i), prev: s.view.before(i, s.j.seed)}
	if c.pos == seg.data() {
		return c, nil
	}
	f, err := seg.at(c.pos, c.end, c.seed)
	if err == nil {
		c.prev = f.prev()
	}
	return c, err
}

// each gives the events from the cursor to its end.
func (s *scan) each(c *cursor, do func(frame) error) error {
	for n := 0; ; n++ {
		if n%64 == 0 {
			if err := s.stopped(); err != nil {
				return err
			}
		}
		f, err := c.next()
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

func (s *scan) stopped() error {
	if s.j.isClosed() {
		return eventstore.ErrClosed
	}
	return s.ctx.Err()
}

func (s *scan) event(f frame) error {
	if !s.yield(s.types.recorded(f, s.streams.of(f.stream())), nil) {
		return errEnough
	}
	return nil
}

// backward notes where the events of a segment are before it yields them, last first.
func (s *scan) backward(before eventstore.Position) error {
	for i := s.view.holding(before - 1); before > 0 && i >= 0; i-- {
		c, err := s.cursor(i, 0)
		if err != nil {
			return err
		}
		var offsets []uint32
		c.end = min(c.end, before)
		err = s.each(c, func(f frame) error {
			offsets = append(offsets, uint32(f.position()-c.seg.base))
			return nil
		})
		for n := len(offsets) - 1; err == nil && n >= 0; n-- {
			err = s.one(c.seg.base + eventstore.Position(offsets[n]))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *scan) one(pos eventstore.Position) error {
	if err := s.stopped(); err != nil {
		return err
	}
	i := s.view.holding(pos)
	f, err := s.view.segs[i].at(pos, s.view.endOf(i), s.j.seed)
	if err != nil {
		return err
	}
	return s.event(f)
}
