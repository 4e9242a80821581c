package journal

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"lieudit/eventstore"
)

// restore finds out what a folder holds. After it every byte that is taken for written is on disk, every byte after
// them is zero, and an append is there whole or not at all.
type restore struct {
	o    Options
	segs []*segment
	log  uuid.UUID
	seed uint32

	index  *index
	recent *recent
	tail   *replay // of the last segment
	time   int64   // of the last event, in microseconds
}

// run opens every segment, leaves the last of segs as the one to write on, and marks the last event.
func (r *restore) run() (eventstore.Mark, error) {
	bases, err := r.folder()
	if err == nil && len(bases) == 0 {
		err = r.create()
	} else if err == nil {
		err = r.open(bases)
	}
	if err == nil {
		err = r.dropSpares()
	}
	for i := 0; err == nil && i < len(r.segs)-1; i++ {
		err = r.sealed(i)
	}
	if err == nil {
		err = r.active()
	}
	if err != nil {
		return eventstore.Mark{}, err
	}
	return r.last()
}

// last reads the last event of the log once more.
func (r *restore) last() (eventstore.Mark, error) {
	final := r.tail.final
	if final == 0 && len(r.segs) > 1 {
		final = r.segs[len(r.segs)-2].final
	}
	if final == 0 {
		return eventstore.Mark{Log: r.log}, nil
	}
	s := r.segs[view{segs: r.segs}.holding(final)]
	f, err := s.at(final, s.next(), r.seed)
	if err != nil {
		return eventstore.Mark{}, err
	}
	if !f.isEvent() {
		return eventstore.Mark{}, damage(final, "index names a mark as the last event")
	}
	r.time = int64(le.Uint64(f[32:]))
	return f.mark(r.log), nil
}

// folder lists the segments and removes unfinished work.
func (r *restore) folder() (bases []eventstore.Position, err error) {
	names, err := r.o.FS.Names()
	if err != nil {
		return nil, err
	}
	for _, n := range names {
		if base, ok := baseOf(n); ok {
			bases = append(bases, base)
		}
		if strings.HasSuffix(n, ".tmp") {
			if err := r.o.FS.Remove(n); err != nil {
				return nil, err
			}
		}
	}
	slices.Sort(bases)
	for _, n := range names {
		base, ok := baseOf(strings.TrimSuffix(n, ".idx") + ".log")
		if ok && strings.HasSuffix(n, ".idx") && !slices.Contains(bases, base) {
			return nil, damage(base, "segment is missing, its index is there")
		}
	}
	return bases, nil
}

func (r *restore) create() error {
	log, err := uuid.NewRandom()
	if err != nil {
		return err
	}
	s, err := createSegment(r.o.FS, header{log: log, size: uint64(r.o.SegmentSize)}, nil)
	if err != nil {
		return err
	}
	r.log, r.seed, r.segs = log, seedOf(log), []*segment{s}
	return nil
}

func (r *restore) open(bases []eventstore.Position) error {
	want := eventstore.Position(0)
	for _, base := range bases {
		if base != want {
			return damage(want, "segment is missing")
		}
		s, h, err := openSegment(r.o.FS, base, r.log)
		if err != nil {
			return err
		}
		r.segs = append(r.segs, s)
		r.log, r.seed = h.log, seedOf(h.log)
		want = s.next()
	}
	// Only what a sync has confirmed may be believed: the pages of a killed process are not on disk yet. The last few:
	// the very last may be spares that no append has reached.
	for _, s := range r.segs[max(0, len(r.segs)-4):] {
		if err := s.file.Sync(); err != nil {
			return fmt.Errorf("sync segment: %w", err)
		}
	}
	return nil
}

// begun reads the mark a segment begins with; nil when there is none.
func (r *restore) begun(s *segment) (frame, error) {
	f, err := s.at(s.data(), s.next(), r.seed)
	var corrupt *eventstore.CorruptError
	if errors.As(err, &corrupt) || err == nil && f.isEvent() {
		return nil, nil
	}
	return f, err
}

// dropSpares removes the last segments as long as nothing that counts was written on them: they were made ahead, or
// their first group never got to the disk whole.
func (r *restore) dropSpares() error {
	for n := len(r.segs) - 1; n > 0; n-- {
		f, err := r.begun(r.segs[n])
		if err != nil || f != nil {
			return err
		}
		if err := r.dropSpare(r.segs[n]); err != nil {
			return err
		}
		r.segs = r.segs[:n]
	}
	return nil
}

func (r *restore) dropSpare(s *segment) error {
	if err := r.unproven(s, s.data()); err != nil {
		return err
	}
	if from, to, err := dirty(s, s.data()); err != nil {
		return err
	} else if to > from {
		r.o.Logger.Warn("cut the torn tail of the log", "position", uint64(s.data()), "bytes", uint64(to-s.data()))
	}
	return errors.Join(s.file.Close(), r.o.FS.Remove(segmentName(s.base)), r.o.FS.SyncDir())
}

// sealed takes in a full segment: by its index, or frame by frame when that is of no use.
func (r *restore) sealed(i int) error {
	s, next := r.segs[i], r.segs[i+1]
	f, err := r.begun(next)
	if err != nil {
		return err
	}
	if f == nil {
		return damage(next.data(), "segment does not begin with a mark")
	}
	s.end, s.last = f.durable(), f.prev()
	if s.end < s.data() || s.end > s.next() {
		return damage(next.data(), "mark names an end that is not in the segment before")
	}
	file, b, err := readIndex(r.o.FS, s, r.log)
	if err == nil {
		s.final = eventstore.Position(le.Uint64(b[48:]))
		s.index.Store(newSealed(file, b))
		if err = r.index.load(s.base, b); err == nil {
			return nil
		}
		return damage(s.base, "index does not follow from those before")
	}
	r.o.Logger.Warn("make the index of a segment again", "segment", segmentName(s.base), "why", err)
	return r.reindex(i)
}

func (r *restore) reindex(i int) error {
	s := r.segs[i]
	c := &cursor{seg: s, seed: r.seed, pos: s.data(), end: s.end, prev: view{segs: r.segs}.before(i, r.seed)}
	r.index.base = s.base
	p := newReplay(c, r.index.enter)
	if err := p.run(); err != nil {
		return p.fatal(err)
	}
	if p.end != s.end || p.crc != s.last {
		return damage(p.end, "segment does not lead to the next")
	}
	if s.final = p.final; s.final == 0 && i > 0 {
		s.final = r.segs[i-1].final
	}
	r.index.roll(nowhere, s.seal)
	return nil
}

// active walks the last segment, cuts what a power cut left half done, and makes the rest durable for good.
func (r *restore) active() error {
	i := len(r.segs) - 1
	s := r.segs[i]
	r.index.base = s.base
	c := &cursor{seg: s, seed: r.seed, pos: s.data(), end: s.next(), prev: view{segs: r.segs}.before(i, r.seed)}
	r.tail = newReplay(c, func(b batch) error {
		r.recent.add(b.key, b.first, b.last, b.ids)
		return r.index.enter(b)
	})
	err := r.tail.run()
	var corrupt *eventstore.CorruptError
	if err != nil && !errors.As(err, &corrupt) {
		return r.tail.fatal(err)
	}
	if err := r.unproven(s, c.pos); err != nil {
		return err
	}
	return r.cut(s)
}
