package journal

import (
	"fmt"

	"lieudit/eventstore"
)

// writer is the goroutine that decides what is added to the log, each append against all that came before it. It gathers
// those it accepts into a group and flushes it. A large group is flushed by a second goroutine while
// the next one gathers; there is never more than one on its way to the disk.
type writer struct {
	j    *Journal
	segs []*segment
	pos  eventstore.Position // where the group begins
	prev uint32              // crc of the frame before pos
	last eventstore.Mark     // the latest event placed
	time int64               // and its time, in microseconds

	recent *recent
	group  *group
	crc    uint32     // of the group's last frame
	left   []*request // taken from the queue, not decided yet
	spent  []*request // for the queue to fill again
	asked  bool       // for the next segment
	marked bool       // the mark at pos is written

	away    *group // with the other goroutine, on its way to the disk
	free    []*group
	flushes chan *group
	flushed chan error
}

// handOver is from how many appends on a group is worth a second goroutine: below, waking it would
// cost more than deciding the next group meanwhile.
const handOver = 64

func (w *writer) active() *segment { return w.segs[len(w.segs)-1] }

func (w *writer) run() {
	defer close(w.j.written)
	w.group, w.free = &group{}, []*group{{}, {}}
	w.flushes, w.flushed = make(chan *group, 1), make(chan error, 1)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for g := range w.flushes {
			w.flushed <- g.write()
		}
	}()
	err := w.write()
	close(w.flushes)
	<-ended
	if err != nil {
		w.fail(err)
		return
	}
	w.finish()
}

// write goes on until the queue is closed and all that was taken from it is answered, or until a group could not
// be written.
func (w *writer) write() (err error) {
	for open := true; err == nil; {
		if len(w.left) == 0 && open {
			open = w.take()
		}
		w.fill()
		switch full := len(w.left) > 0 || !open; {
		case w.away == nil && !w.group.empty():
			err = w.flush()
		case w.away == nil && full:
			return nil
		case w.away == nil:
			if err = w.rest(); err == nil {
				<-w.j.queue.filled
			}
		case full:
			err = w.land(<-w.flushed)
		default:
			select {
			case e := <-w.flushed:
				err = w.land(e)
			case <-w.j.queue.filled:
			}
		}
	}
	return err
}

func (w *writer) take() (open bool) {
	clear(w.spent)
	w.left, open = w.j.queue.swap(w.spent)
	if len(w.left) > 0 {
		w.spent = w.left
	}
	return open
}

// flush makes the group durable: here when it is small, else beside the next one.
func (w *writer) flush() error {
	g := w.launch()
	if len(g.answers) >= handOver {
		w.flushes <- g
		return nil
	}
	return w.landed(g.write())
}

// land takes in what became of the group that was away. The next one leaves before its callers are answered, so that
// the disk does not wait for them.
func (w *writer) land(err error) error {
	if err != nil || w.group.empty() {
		return w.landed(err)
	}
	g := w.away
	w.flushes <- w.launch()
	w.done(g)
	return nil
}

func (w *writer) landed(err error) error {
	if err == nil {
		g := w.away
		w.away = nil
		w.done(g)
	}
	return err
}

// launch closes the group and begins the next.
func (w *writer) launch() *group {
	g := w.group
	g.segs, g.pos, g.last = w.segs, w.pos, w.last
	if len(g.placed) > 0 {
		w.pos += eventstore.Position(len(g.buf))
		w.prev, w.marked = w.crc, false
	}
	n := len(w.free) - 1
	w.group, w.free, w.away = w.free[n], w.free[:n], g
	if !w.asked && w.pos-w.active().base > eventstore.Position(w.active().size/2) {
		w.asked = true
		w.j.keeper.want()
	}
	return g
}

// done shows a group that is durable to readers and answers its callers.
func (w *writer) done(g *group) {
	if len(g.placed) > 0 {
		w.j.show(g)
	}
	for _, a := range g.answers {
		a.to.done <- a.outcome
	}
	g.reset()
	w.free = append(w.free, g)
}

// rest uses a quiet moment to write the next group's mark ahead of it, which proves what was written last.
func (w *writer) rest() error {
	if w.marked || w.pos == w.active().data() {
		return nil
	}
	w.marked = true
	s := w.active()
	if _, err := s.file.WriteAt(w.mark(nil), int64(w.pos-s.base)); err != nil {
		return fmt.Errorf("write log at %d: %w", w.pos, err)
	}
	return nil
}

func (w *writer) mark(b []byte) []byte { return appendMark(b, w.pos, w.durable(), w.prev, w.j.seed) }

// durable is what the mark of the group may promise: the end of the segment before when it is a segment's first frame.
func (w *writer) durable() eventstore.Position {
	if n := len(w.segs); n > 1 && w.pos == w.active().data() {
		return w.segs[n-2].end
	}
	return w.pos
}

// fail stops writing for good. Nothing is known of the group that was away but that nobody was told of it; what comes
// after it was never written.
func (w *writer) fail(cause error) {
	stopped := w.j.stop(cause)
	for _, a := range w.away.takeAnswers() {
		a.to.done <- outcome{err: unknown(cause)}
	}
	for _, a := range w.group.answers {
		a.to.done <- outcome{err: stopped}
	}
	for _, r := range w.left {
		r.done <- outcome{err: stopped}
	}
	w.j.queue.close(stopped)
}

// finish leaves a log that proves all of itself.
func (w *writer) finish() {
	err := w.rest()
	if err == nil {
		err = w.active().file.Sync()
	}
	if err != nil {
		w.j.o.Logger.Warn("the end of the log could not be marked", "position", uint64(w.pos), "error", err)
	}
}
