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
	journal     *Journal
	recent      *recentAppends
	undecided   []*appendRequest    // taken from the queue, not decided yet
	recycled    []*appendRequest    // for the queue to fill again
	markedAt    eventstore.Position // where a mark was written ahead
	failedGroup *group              // whose write failed

	mu               sync.Mutex // for what follows: of the group that gathers, and where it begins
	openGroup        *group
	segments         []*segment
	pos              eventstore.Position
	prevCRC          uint32                // crc of the frame before pos
	groupCRC         uint32                // of the group's last frame
	lastCheckpoint   eventstore.Checkpoint // the latest event placed
	lastTime         int64                 // and its time, in microseconds
	isSpareRequested bool                  // for the next segment
	freeGroups       []*group
	inFlight         int // groups launched and not landed

	toFlush chan *group
	flushed chan flushResult
}

// flushResult is a group that came back from the disk.
type flushResult struct {
	*group
	err error
}

// minFlusherAppends is from how many appends on a group is worth a second goroutine: below, waking it would
// cost more than deciding the next group meanwhile.
const minFlusherAppends = 64

func (w *writer) activeSegment() *segment { return w.segments[len(w.segments)-1] }

func (w *writer) run() {
	defer close(w.journal.writerDone)
	w.openGroup, w.failedGroup, w.markedAt = &group{}, &group{}, noSegment
	w.toFlush, w.flushed = make(chan *group, 1), make(chan flushResult, 4)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for g := range w.toFlush {
			w.flushGroups(g)
		}
	}()
	err := w.processAppends()
	close(w.toFlush)
	<-ended
	if err != nil {
		w.failPending(err)
		return
	}
	w.writeLastMark()
}

// flushGroups writes a group, and then whatever has gathered meanwhile.
func (w *writer) flushGroups(g *group) {
	for g != nil {
		result := flushResult{g, g.writeAndSync()}
		g = nil
		if result.err == nil {
			g = w.nextGroup()
		}
		w.flushed <- result
	}
}

// nextGroup is the group to write at once after another, nil when nothing has gathered.
func (w *writer) nextGroup() *group {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.openGroup.isEmpty() {
		return nil
	}
	return w.dispatchGroup()
}

// processAppends goes on until the queue is closed and all that was taken from it is answered, or until a group could not
// be written.
func (w *writer) processAppends() (err error) {
	for isOpen := true; err == nil; {
		if len(w.undecided) == 0 && isOpen {
			isOpen = w.takeRequests()
		}
		small, isIdle := w.gatherGroup()
		switch ignoreQueue := len(w.undecided) > 0 || !isOpen; {
		case small != nil:
			err = w.completeGroup(flushResult{small, small.writeAndSync()})
		case isIdle && ignoreQueue:
			return nil
		case isIdle:
			if err = w.writeMarkAhead(); err == nil {
				<-w.journal.queue.notEmpty
			}
		case ignoreQueue:
			err = w.completeGroup(<-w.flushed)
		default:
			select {
			case result := <-w.flushed:
				err = w.completeGroup(result)
			case <-w.journal.queue.notEmpty:
			}
		}
	}
	return err
}

func (w *writer) takeRequests() (isOpen bool) {
	clear(w.recycled)
	w.undecided, isOpen = w.journal.queue.takePending(w.recycled)
	if len(w.undecided) > 0 {
		w.recycled = w.undecided
	}
	return isOpen
}

// gatherGroup decides what is left. When no group is aloft it sends this one off, or returns it when it is too small for
// that; quiet when there is none and nothing to do.
func (w *writer) gatherGroup() (small *group, isIdle bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.decidePending()
	if w.inFlight > 0 || w.openGroup.isEmpty() {
		return nil, w.inFlight == 0
	}
	g := w.dispatchGroup()
	if len(g.replies) < minFlusherAppends {
		return g, false
	}
	w.toFlush <- g
	return nil, false
}

// dispatchGroup closes the group and begins the next.
func (w *writer) dispatchGroup() *group {
	g := w.openGroup
	w.inFlight++
	g.segments, g.pos, g.lastCheckpoint = w.segments, w.pos, w.lastCheckpoint
	if len(g.appends) > 0 {
		w.pos += eventstore.Position(len(g.buf))
		w.prevCRC = w.groupCRC
	}
	if n := len(w.freeGroups) - 1; n >= 0 {
		w.openGroup, w.freeGroups = w.freeGroups[n], w.freeGroups[:n]
	} else {
		w.openGroup = &group{}
	}
	return g
}

// completeGroup shows a group that is durable to readers and answers its callers.
func (w *writer) completeGroup(result flushResult) error {
	g := result.group
	if result.err != nil {
		w.failedGroup = g
		return result.err
	}
	if len(g.appends) > 0 {
		w.journal.publishGroup(g)
	}
	for _, a := range g.replies {
		a.request.done <- a.outcome
	}
	s := g.segments[len(g.segments)-1]
	isHalfFull := g.pos+eventstore.Position(len(g.buf)) > s.base+eventstore.Position(s.size/2)
	g.reset()
	w.mu.Lock()
	defer w.mu.Unlock()
	if isHalfFull && !w.isSpareRequested && s == w.activeSegment() {
		w.isSpareRequested = true
		w.journal.segmentManager.requestSpare()
	}
	w.inFlight--
	w.freeGroups = append(w.freeGroups, g)
	return nil
}

// writeMarkAhead uses a quiet moment to write the next group's mark ahead of it, which proves what was written last.
func (w *writer) writeMarkAhead() error {
	if w.markedAt == w.pos || w.pos == w.activeSegment().dataStart() {
		return nil
	}
	w.markedAt = w.pos
	s := w.activeSegment()
	if _, err := s.file.WriteAt(w.appendMark(nil), int64(w.pos-s.base)); err != nil {
		return fmt.Errorf("write log at %d: %w", w.pos, err)
	}
	return nil
}

func (w *writer) appendMark(b []byte) []byte {
	return appendDurableMark(b, w.pos, w.durableEnd(), w.prevCRC, w.journal.crcSeed)
}

// durableEnd is what the mark of the group may promise: the end of the segment before when it is a segment's first frame.
func (w *writer) durableEnd() eventstore.Position {
	if n := len(w.segments); n > 1 && w.pos == w.activeSegment().dataStart() {
		return w.segments[n-2].end
	}
	return w.pos
}

// failPending stops writing for good. Nothing is known of the group whose write failed; what comes after it was never
// written.
func (w *writer) failPending(cause error) {
	stopped := w.journal.stopWriting(cause)
	unresolved := unresolvedAppends{map[uuid.UUID]struct{}{}, unknownOutcome(cause)}
	for _, a := range w.failedGroup.replies {
		unresolved.firstIDs[a.request.ids[0]] = struct{}{}
		a.request.done <- outcome{err: unresolved.err}
	}
	var taken []*appendRequest
	for _, a := range w.openGroup.replies {
		taken = append(taken, a.request)
	}
	w.journal.queue.failAll(append(taken, w.undecided...), stopped, unresolved)
}

// writeLastMark leaves a log that proves all of itself.
func (w *writer) writeLastMark() {
	err := w.writeMarkAhead()
	if err == nil {
		err = w.activeSegment().file.Sync()
	}
	if err != nil {
		w.journal.options.Logger.Warn("the end of the log could not be marked", "position", uint64(w.pos), "error", err)
	}
}
