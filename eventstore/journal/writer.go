package journal

import (
	"fmt"
	"sync"

	"github.com/google/uuid"

	"lieudit/eventstore"
)

// writer is the goroutine that decides what is added to the log, each append against all that came before it, and
// gathers what it accepts into a group. A small group it flushes itself. Large ones a second goroutine flushes, one after
// the other without waiting for anybody, while this one gathers the next and answers the callers of
// the last.
type writer struct {
	j      *Journal
	recent *recent
	left   []*request          // taken from the queue, not decided yet
	spent  []*request          // for the queue to fill again
	marked eventstore.Position // where a mark was written ahead
	failed *group              // whose write failed

	mu    sync.Mutex // for what follows: of the group that gathers, and where it begins
	group *group
	segs  []*segment
	pos   eventstore.Position
	prev  uint32          // crc of the frame before pos
	crc   uint32          // of the group's last frame
	last  eventstore.Mark // the latest event placed
	time  int64           // and its time, in microseconds
	asked bool            // for the next segment
	free  []*group
	aloft int // groups launched and not landed

	flights chan *group
	landed  chan landing
}

// landing is a group that came back from the disk.
type landing struct {
	*group
	err error
}

// handOver is from how many appends on a group is worth a second goroutine: below, waking it would
// cost more than deciding the next group meanwhile.
const handOver = 64

func (w *writer) active() *segment { return w.segs[len(w.segs)-1] }

func (w *writer) run() {
	defer close(w.j.written)
	w.group, w.failed, w.marked = &group{}, &group{}, nowhere
	w.flights, w.landed = make(chan *group, 1), make(chan landing, 4)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for g := range w.flights {
			w.fly(g)
		}
	}()
	err := w.write()
	close(w.flights)
	<-ended
	if err != nil {
		w.fail(err)
		return
	}
	w.finish()
}

// fly writes a group, and then whatever has gathered meanwhile.
func (w *writer) fly(g *group) {
	for g != nil {
		l := landing{g, g.write()}
		g = nil
		if l.err == nil {
			g = w.following()
		}
		w.landed <- l
	}
}

// following is the group to write at once after another, nil when nothing has gathered.
func (w *writer) following() *group {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.group.empty() {
		return nil
	}
	return w.launch()
}

// write goes on until the queue is closed and all that was taken from it is answered, or until a group could not
// be written.
func (w *writer) write() (err error) {
	for open := true; err == nil; {
		if len(w.left) == 0 && open {
			open = w.take()
		}
		own, quiet := w.gather()
		switch full := len(w.left) > 0 || !open; {
		case own != nil:
			err = w.land(landing{own, own.write()})
		case quiet && full:
			return nil
		case quiet:
			if err = w.rest(); err == nil {
				<-w.j.queue.filled
			}
		case full:
			err = w.land(<-w.landed)
		default:
			select {
			case l := <-w.landed:
				err = w.land(l)
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

// gather decides what is left. When no group is aloft it sends this one off, or returns it when it is too small for
// that; quiet when there is none and nothing to do.
func (w *writer) gather() (own *group, quiet bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fill()
	if w.aloft > 0 || w.group.empty() {
		return nil, w.aloft == 0
	}
	g := w.launch()
	if len(g.answers) < handOver {
		return g, false
	}
	w.flights <- g
	return nil, false
}

// launch closes the group and begins the next.
func (w *writer) launch() *group {
	g := w.group
	w.aloft++
	g.segs, g.pos, g.last = w.segs, w.pos, w.last
	if len(g.placed) > 0 {
		w.pos += eventstore.Position(len(g.buf))
		w.prev = w.crc
	}
	if n := len(w.free) - 1; n >= 0 {
		w.group, w.free = w.free[n], w.free[:n]
	} else {
		w.group = &group{}
	}
	return g
}

// land shows a group that is durable to readers and answers its callers.
func (w *writer) land(l landing) error {
	g := l.group
	if l.err != nil {
		w.failed = g
		return l.err
	}
	if len(g.placed) > 0 {
		w.j.show(g)
	}
	for _, a := range g.answers {
		a.to.done <- a.outcome
	}
	s := g.segs[len(g.segs)-1]
	half := g.pos+eventstore.Position(len(g.buf)) > s.base+eventstore.Position(s.size/2)
	g.reset()
	w.mu.Lock()
	defer w.mu.Unlock()
	if half && !w.asked && s == w.active() {
		w.asked = true
		w.j.keeper.want()
	}
	w.aloft--
	w.free = append(w.free, g)
	return nil
}

// rest uses a quiet moment to write the next group's mark ahead of it, which proves what was written last.
func (w *writer) rest() error {
	if w.marked == w.pos || w.pos == w.active().data() {
		return nil
	}
	w.marked = w.pos
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

// fail stops writing for good. Nothing is known of the group whose write failed; what comes after it was never
// written.
func (w *writer) fail(cause error) {
	stopped := w.j.stop(cause)
	d := doubts{map[uuid.UUID]struct{}{}, unknown(cause)}
	for _, a := range w.failed.answers {
		d.appends[a.to.ids[0]] = struct{}{}
		a.to.done <- outcome{err: d.answer}
	}
	var taken []*request
	for _, a := range w.group.answers {
		taken = append(taken, a.to)
	}
	w.j.queue.end(append(taken, w.left...), stopped, d)
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
