package journal

import (
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"

	"lieudit/eventstore"
)

// writer is the goroutine that decides on every append, each against all earlier ones, and collects the accepted ones in a
// group. It writes a small group itself. Large ones go to a second goroutine, the flusher:
//
//	writer   decides group 2, publishes group 1   decides group 3, publishes group 2 ...
//	flusher  writes and syncs group 1 ──flushed──► writes and syncs group 2 ──flushed──► ...
//
// The flusher takes the next group itself (nextGroup), without waiting for the writer; the writer publishes the groups that
// come back and answers the callers (completeGroup), in the order of the log. Both use the fields that mu guards. Only one of
// the two writes at a time: the writer does so only while the flusher has no group.
type writer struct {
	journal     *Journal
	recent      *recentAppends
	undecided   []*appendRequest    // taken from the queue, not decided yet
	recycled    []*appendRequest    // a slice for the queue to fill again
	markedAt    eventstore.Position // where a mark was written ahead of its group
	markTimer   *time.Timer         // see awaitAppends; stopped in between
	failedGroup *group              // the group whose write failed

	mu               sync.Mutex            // guards the fields below
	openGroup        *group                // collects accepted appends
	segments         []*segment            // the log with the open group
	pos              eventstore.Position   // where the open group begins
	prevCRC          uint32                // CRC of the frame before pos
	groupCRC         uint32                // CRC of the open group's last frame
	lastCheckpoint   eventstore.Checkpoint // of the last event placed
	lastTime         int64                 // its time, in microseconds
	isSpareRequested bool                  // the next segment was requested from the segmentManager
	freeGroups       []*group
	filledSegment    *segment // the segment before, until an append is placed in its successor
	inFlight         int      // groups dispatched and not completed

	toFlush chan *group      // large groups to the flusher; closed when the writer ends
	flushed chan flushResult // what the flusher has written, in the order of the log
}

// flushResult is a group that the flusher has written, or could not write.
type flushResult struct {
	*group
	err error
}

// minFlusherAppends is the size from which a group goes to the flusher. For fewer appends, waking it takes longer than the
// time saved by deciding the next group meanwhile.
const minFlusherAppends = 64

// activeSegment is the segment that the open group is in.
func (w *writer) activeSegment() *segment { return w.segments[len(w.segments)-1] }

// writeGroups is the writer's goroutine. It ends when the queue is closed or a write has failed.
func (w *writer) writeGroups() {
	defer close(w.journal.writerDone)
	w.openGroup, w.failedGroup, w.markedAt = &group{}, &group{}, noSegment
	w.markTimer = time.NewTimer(markDelay)
	w.markTimer.Stop()
	// The buffer for a few results lets the flusher keep writing while the writer decides.
	w.toFlush, w.flushed = make(chan *group, 1), make(chan flushResult, 4)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for g := range w.toFlush {
			w.flushGroups(g)
		}
	}()
	// When processAppends returns, the flusher has nothing left to write: no group is in flight, or the last one failed.
	err := w.processAppends()
	close(w.toFlush)
	<-ended
	if err != nil {
		w.failPending(err)
		return
	}
	w.writeLastMark()
}

// flushGroups writes a group, and then whatever was collected meanwhile, until there is nothing more.
func (w *writer) flushGroups(g *group) {
	for g != nil {
		result := flushResult{g, g.writeAndSync(w.journal.options.ObserveSync)}
		g = nil
		if result.err == nil {
			g = w.nextGroup()
		}
		w.flushed <- result
	}
}

// nextGroup dispatches the open group for the flusher to write next. It returns nil if the group is empty.
func (w *writer) nextGroup() *group {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.openGroup.isEmpty() {
		return nil
	}
	return w.dispatchGroup()
}

// processAppends runs until the queue is closed and everything taken from it is answered, or until a group could not be
// written. Each turn takes appends, decides on them, and then does one thing: it writes a small group, ends, sleeps until the
// queue has appends, or waits for the flusher.
func (w *writer) processAppends() (err error) {
	for isOpen := true; err == nil; {
		if len(w.undecided) == 0 && isOpen {
			isOpen = w.takeRequests()
		}
		small, isIdle := w.collectGroup()
		ignoreQueue := len(w.undecided) > 0 || !isOpen
		switch {
		case small != nil:
			err = w.completeGroup(flushResult{small, small.writeAndSync(w.journal.options.ObserveSync)})
		case isIdle && ignoreQueue:
			return nil
		case isIdle:
			err = w.awaitAppends()
		default:
			err = w.awaitFlush(ignoreQueue)
		}
	}
	return err
}

// markDelay is how long the writer is idle before it writes the mark of the next group. With one append at a time there would otherwise be
// as many marks ahead as groups.
const markDelay = 20 * time.Millisecond

// awaitAppends sleeps until the queue has appends. If they are long in coming it writes the mark of the next group ahead.
func (w *writer) awaitAppends() error {
	if w.isMarkAheadDue() {
		w.markTimer.Reset(markDelay)
		select {
		case <-w.journal.queue.notEmpty:
			w.markTimer.Stop()
			return nil
		case <-w.markTimer.C:
		}
		if err := w.writeMarkAhead(); err != nil {
			return err
		}
	}
	<-w.journal.queue.notEmpty
	return nil
}

// awaitFlush waits until a group comes back from the flusher or, unless ignoreQueue, more appends arrive.
func (w *writer) awaitFlush(ignoreQueue bool) error {
	notEmpty := w.journal.queue.notEmpty
	if ignoreQueue {
		notEmpty = nil
	}
	select {
	case result := <-w.flushed:
		return w.completeGroup(result)
	case <-notEmpty:
		return nil
	}
}

// takeRequests takes the appends waiting in the queue. It reports false once the queue is closed.
func (w *writer) takeRequests() (isOpen bool) {
	clear(w.recycled)
	w.undecided, isOpen = w.journal.queue.takePending(w.recycled)
	if len(w.undecided) > 0 {
		w.recycled = w.undecided
	}
	return isOpen
}

// collectGroup decides on the appends taken from the queue. If no group is in flight, it sends the open group to the flusher,
// or returns it if it is too small for that. isIdle means that no group is in flight and none was collected.
func (w *writer) collectGroup() (small *group, isIdle bool) {
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

// dispatchGroup closes the open group, which is written next, and begins another. The caller holds mu.
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

// completeGroup publishes a durable group and then answers its callers, in this order: a caller that has its answer can read
// its events. It returns the error of a group that could not be written.
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
	// Half a segment is enough time to make the next one.
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

// writeMarkAhead writes the next group's mark while the writer is idle. The mark proves that the last group was durable, so
// that recovery treats later damage to it as damage and not as a torn tail.
func (w *writer) writeMarkAhead() error {
	if !w.isMarkAheadDue() {
		return nil
	}
	w.markedAt = w.pos
	s := w.activeSegment()
	if _, err := s.file.WriteAt(w.appendMark(nil), int64(w.pos-s.base)); err != nil {
		return fmt.Errorf("write log at %d: %w", w.pos, err)
	}
	return nil
}

// isMarkAheadDue reports whether the next group's mark is not written yet and has something before it to prove.
func (w *writer) isMarkAheadDue() bool {
	return w.markedAt != w.pos && w.pos != w.activeSegment().dataStart()
}

// appendMark appends the mark of the open group to b.
func (w *writer) appendMark(b []byte) []byte {
	return appendDurableMark(b, w.pos, w.durableEnd(), w.prevCRC, w.journal.crcSeed)
}

// durableEnd is the position that the open group's mark declares durable: its own, or the end of the segment before if it is
// the first frame of a segment.
func (w *writer) durableEnd() eventstore.Position {
	if n := len(w.segments); n > 1 && w.pos == w.activeSegment().dataStart() {
		return w.segments[n-2].end
	}
	return w.pos
}

// failPending permanently stops writing and answers every waiting append. Those of the group whose write failed are
// ErrUnknown; the later ones were never written and are ErrUnavailable.
func (w *writer) failPending(cause error) {
	stopped := w.journal.stopWriting(cause)
	unresolved := unresolvedAppends{map[uuid.UUID]struct{}{}, unknownOutcome(fmt.Errorf("%w: %w", eventstore.ErrStopped, cause))}
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

// writeLastMark writes and syncs a mark behind the last group when the journal closes, so that the marks prove the whole log.
// A failure is only logged: every answered append is durable without the mark.
func (w *writer) writeLastMark() {
	err := w.writeMarkAhead()
	if err == nil {
		err = w.activeSegment().file.Sync()
	}
	if err != nil {
		w.journal.options.Logger.Warn("the end of the log could not be marked", "position", uint64(w.pos), "error", err)
	}
}

const (
	// A group that has reached maxGroupBytes gets no more appends.
	maxGroupBytes = 4 << 20
	// maxGroupAppends bounds a group too. It is far less than maxRecentAppends: a repeat of an append that is not published
	// yet can only be found among the remembered ids.
	maxGroupAppends = 4096
)

// group is the appends that one sync makes durable, and all answers that depend on it. It lies in one segment. A group with
// only refusals has no bytes and is not written.
type group struct {
	segments       []*segment // the log including the group; the last one holds it
	pos            eventstore.Position
	buf            []byte
	appends        []placedAppend
	offsets        []uint32 // of the placed events
	lastCheckpoint eventstore.Checkpoint
	replies        []reply
	filledSegment  *segment // the segment before, if this is the first group of its segment
}

// placedAppend is an append of the group. Its events are offsets[offsetsFrom:offsetsTo] of the group.
type placedAppend struct {
	key                    streamKey
	slot                   slot
	firstRevision          eventstore.Revision
	offsetsFrom, offsetsTo uint32
}

// reply is an answer that the caller gets once the group is durable. A refusal waits too: the event it is based on may be in
// this group or in the one before.
type reply struct {
	request *appendRequest
	outcome
}

// isEmpty reports whether there is nothing to write and nobody to answer.
func (g *group) isEmpty() bool { return len(g.replies) == 0 }

// reset empties the group and keeps its memory for the next use.
func (g *group) reset() {
	clear(g.replies)
	*g = group{buf: g.buf[:0], appends: g.appends[:0], offsets: g.offsets[:0], replies: g.replies[:0]}
}

// writeAndSync makes the group durable and reports to observe how long the sync took. After an error only what was durable
// before is certain.
func (g *group) writeAndSync(observe func(time.Duration)) error {
	if len(g.appends) == 0 {
		return nil
	}
	s := g.segments[len(g.segments)-1]
	if _, err := s.file.WriteAt(g.buf, int64(g.pos-s.base)); err != nil {
		return fmt.Errorf("write log at %d: %w", g.pos, err)
	}
	startedAt := time.Now()
	if err := s.file.Sync(); err != nil {
		return fmt.Errorf("sync log at %d: %w", g.pos, err)
	}
	observe(time.Since(startedAt))
	return nil
}

// publishGroup shows a durable group to readers. Before the first group of a segment it closes the index of the segment that
// is now full.
func (j *Journal) publishGroup(g *group) {
	if g.filledSegment != nil {
		j.index.rollSegment(g.segments[len(g.segments)-1].base, g.filledSegment.seal)
		j.segmentManager.requestIndex(g.filledSegment)
	}
	end := g.pos + eventstore.Position(len(g.buf))
	j.index.addGroup(g, func() { j.views.publish(view{segments: g.segments, end: end, lastCheckpoint: g.lastCheckpoint}) })
}
