package journal

import (
	"fmt"

	"lieudit/eventstore"
)

// groupSize is about how much one write and one sync take in.
const groupSize = 4 << 20

// writer is the one goroutine that adds to the log. It takes what waits, decides each append against all that came
// before it, writes the accepted ones as a group, and tells everyone once the group is on disk.
type writer struct {
	j    *Journal
	segs []*segment
	pos  eventstore.Position // the end of the log
	prev uint32              // crc of the frame before pos
	last eventstore.Mark
	time int64 // of the latest event, in microseconds

	recent *recent
	group  group
	asked  bool // for the next segment
}

// group is what one sync makes durable.
type group struct {
	buf     []byte
	crc     uint32 // of its last frame
	placed  []placed
	answers []answer
}

// placed is an append of the group.
type placed struct {
	key     streamKey
	first   eventstore.Revision
	offsets []uint32
}

// answer is what a caller hears once the group is durable: even a refusal, since what it is based on may
// be in the group.
type answer struct {
	to *request
	outcome
}

func (w *writer) active() *segment { return w.segs[len(w.segs)-1] }

func (w *writer) run() {
	defer close(w.j.written)
	var spent []*request
	for {
		waiting, open := w.j.queue.take(spent)
		if !open {
			w.finish()
			return
		}
		for rest := waiting; len(rest) > 0; {
			var err error
			if rest, err = w.commit(rest); err != nil {
				w.fail(rest, err)
				return
			}
		}
		clear(waiting)
		spent = waiting
		if err := w.rest(); err != nil {
			w.fail(nil, err)
			return
		}
	}
}

// commit writes one group of the requests and returns those that are left.
func (w *writer) commit(waiting []*request) ([]*request, error) {
	w.begin()
	now := max(w.time, w.j.o.Clock().UnixMicro())
	for len(waiting) > 0 && len(w.group.buf) < groupSize {
		r := waiting[0]
		out, fresh := w.decide(r)
		if fresh && !w.fits(r) {
			if len(w.group.placed) > 0 {
				break
			}
			if out.err = w.roll(); out.err == nil {
				continue
			}
			fresh = false
		}
		if fresh {
			out.committed = w.place(r, now)
		}
		w.group.answers = append(w.group.answers, answer{r, out})
		waiting = waiting[1:]
	}
	if err := w.flush(); err != nil {
		return waiting, err
	}
	w.publish()
	return waiting, nil
}

func (w *writer) begin() {
	g := &w.group
	clear(g.answers)
	g.placed, g.answers = g.placed[:0], g.answers[:0]
	w.head()
}

// head puts the mark that every group begins with.
func (w *writer) head() {
	w.group.buf = appendMark(w.group.buf[:0], w.pos, w.durable(), w.prev, w.j.seed)
	w.group.crc = frame(w.group.buf).crc()
}

// durable is what a mark written now may promise: the end of the segment before when it is a segment's first frame.
func (w *writer) durable() eventstore.Position {
	if n := len(w.segs); n > 1 && w.pos == w.active().data() {
		return w.segs[n-2].end
	}
	return w.pos
}

func (w *writer) fits(r *request) bool {
	return w.pos+eventstore.Position(len(w.group.buf)+len(r.frames)) <= w.active().room()
}

// place gives an append its revisions and its bytes in the group.
func (w *writer) place(r *request, now int64) eventstore.Committed {
	first := w.j.index.revision(r.key) + 1
	p := placed{key: r.key, first: first, offsets: make([]uint32, 0, len(r.ids))}
	at, rev, crc := len(w.group.buf), first, w.group.crc
	w.group.buf = append(w.group.buf, r.frames...)
	pos := w.pos
	for at < len(w.group.buf) {
		f := frame(w.group.buf[at:])
		f = f[:f.size()]
		pos = w.pos + eventstore.Position(at)
		f.stamp(rev, now)
		f.seal(pos, crc, w.j.seed)
		p.offsets = append(p.offsets, uint32(pos-w.active().base))
		at, rev, crc = at+len(f), rev+1, f.crc()
	}
	w.group.placed = append(w.group.placed, p)
	w.recent.add(r.key, first, pos, r.ids)
	w.j.index.advance(r.key, rev-1)
	w.last = eventstore.Mark{Log: w.j.id, Position: pos, Event: r.ids[len(r.ids)-1]}
	w.group.crc, w.time = crc, now
	return eventstore.Committed{Revision: rev - 1, Position: pos}
}

// flush makes the group durable. After an error nothing is known of the disk but what was durable before.
func (w *writer) flush() error {
	if len(w.group.placed) == 0 {
		return nil
	}
	s := w.active()
	if _, err := s.file.WriteAt(w.group.buf, int64(w.pos-s.base)); err != nil {
		return fmt.Errorf("write log at %d: %w", w.pos, err)
	}
	if err := s.file.Sync(); err != nil {
		return fmt.Errorf("sync log at %d: %w", w.pos, err)
	}
	return nil
}

// publish shows the group, which is durable now, to readers and answers its callers.
func (w *writer) publish() {
	if len(w.group.placed) > 0 {
		w.pos += eventstore.Position(len(w.group.buf))
		w.prev = w.group.crc
		w.j.index.publish(w.group.placed, func() {
			w.j.tail.publish(view{segs: w.segs, end: w.pos, last: w.last})
		})
	}
	for _, a := range w.group.answers {
		a.to.done <- a.outcome
	}
	if !w.asked && w.pos-w.active().base > eventstore.Position(w.active().size/2) {
		w.asked = true
		w.j.keeper.want()
	}
}

// roll goes on to the next segment. All before is durable.
func (w *writer) roll() error {
	next, err := w.j.keeper.take()
	if err != nil {
		return fmt.Errorf("%w: %w", eventstore.ErrUnavailable, err)
	}
	full := w.active()
	full.end, full.final, full.last = w.pos, w.last.Position, w.prev
	full.index.Store(&sealed{runs: w.j.index.roll(next.base)})
	w.segs = append(w.segs[:len(w.segs):len(w.segs)], next)
	w.pos, w.asked = next.data(), false
	w.j.keeper.seal(full)
	w.head()
	return nil
}

// fail stops writing for good: a page whose write failed may look clean, so trying again would prove nothing.
func (w *writer) fail(rest []*request, cause error) {
	w.j.o.Logger.Error("the log cannot write any more", "position", uint64(w.pos), "error", cause)
	w.j.failure.Store(&cause)
	for _, a := range w.group.answers {
		a.to.done <- outcome{err: fmt.Errorf("%w: %w", eventstore.ErrUnknown, cause)}
	}
	stopped := fmt.Errorf("%w: the log stopped writing: %w", eventstore.ErrUnavailable, cause)
	for _, r := range rest {
		r.done <- outcome{err: stopped}
	}
	w.j.queue.close(stopped)
}

// rest uses a quiet moment to write the next group's mark ahead of it, which proves what was written last.
func (w *writer) rest() error {
	if !w.j.queue.idle() || w.pos == w.active().data() {
		return nil
	}
	return w.mark()
}

func (w *writer) mark() error {
	w.begin()
	s := w.active()
	if _, err := s.file.WriteAt(w.group.buf, int64(w.pos-s.base)); err != nil {
		return fmt.Errorf("write log at %d: %w", w.pos, err)
	}
	return nil
}

// finish leaves a log that proves all of itself.
func (w *writer) finish() {
	err := w.mark()
	if err == nil {
		err = w.active().file.Sync()
	}
	if err != nil {
		w.j.o.Logger.Warn("the end of the log could not be marked", "position", uint64(w.pos), "error", err)
	}
}
