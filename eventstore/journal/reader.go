package journal

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"sort"
	"sync"

	"github.com/google/uuid"

	"lieudit/eventstore"
)

// view is what readers may see: everything that was durable at one moment. It never changes, so a reader needs no lock.
type view struct {
	segments       []*segment
	end            eventstore.Position // where the frames of the last segment end; the others know their own end
	lastCheckpoint eventstore.Checkpoint
}

// segmentEnd is where the frames of segment i end.
func (v view) segmentEnd(i int) eventstore.Position {
	if i == len(v.segments)-1 {
		return v.end
	}
	return v.segments[i].end
}

// crcBefore is the CRC that the first frame of segment i links to.
func (v view) crcBefore(i int, seed uint32) uint32 {
	if i == 0 {
		return seed
	}
	return v.segments[i-1].lastCRC
}

// newCursor stands at the first frame of segment i.
func (v view) newCursor(i int, seed uint32) cursor {
	s := v.segments[i]
	return cursor{segment: s, seed: seed, pos: s.dataStart(), end: v.segmentEnd(i), prevCRC: v.crcBefore(i, seed)}
}

// findSegment returns the index of the segment that contains pos, or -1.
func (v view) findSegment(pos eventstore.Position) int {
	i := sort.Search(len(v.segments), func(i int) bool { return v.segments[i].base > pos }) - 1
	if i < 0 || pos >= v.segments[i].nextBase() {
		return -1
	}
	return i
}

// readEventAt reads the event at c, with the index of its segment. It fails with a *DivergedError if no event begins there,
// and with a *CorruptError if that event is damaged.
func (v view) readEventAt(c eventstore.Checkpoint, seed uint32) (f frame, segmentIndex int, err error) {
	i := v.findSegment(c.Position)
	switch {
	case c.Position >= v.end:
		return nil, 0, &eventstore.DivergedError{Checkpoint: c, Reason: fmt.Sprintf("the log ends at %d", v.end)}
	case i < 0 || c.Position < v.segments[i].dataStart() || c.Position >= v.segmentEnd(i):
		return nil, 0, newNoEventError(c)
	}
	f, err = v.segments[i].readFrameAt(c.Position, v.segmentEnd(i), seed)
	switch {
	case err != nil:
		return nil, 0, v.explainReadError(c, i, seed, err)
	case !f.isEvent():
		return nil, 0, newNoEventError(c)
	}
	return f, i, nil
}

func newNoEventError(c eventstore.Checkpoint) error {
	return &eventstore.DivergedError{Checkpoint: c, Reason: "no event begins there"}
}

// explainReadError finds out why no frame can be read at c, in segment i: the frame is damaged, which is cause; earlier
// frames are; or no frame begins there.
func (v view) explainReadError(c eventstore.Checkpoint, i int, seed uint32, cause error) error {
	var corrupt *eventstore.CorruptError
	if !errors.As(cause, &corrupt) {
		return cause
	}
	walk := v.newCursor(i, seed)
	for walk.pos < c.Position {
		if _, err := walk.nextFrame(); err != nil {
			return err
		}
	}
	if walk.pos == c.Position {
		return cause
	}
	return newNoEventError(c)
}

// viewNotifier holds the latest view and wakes those who wait for a later one. It is safe for concurrent use.
type viewNotifier struct {
	mu      sync.Mutex
	view    view
	changed chan struct{} // made by the first waiter
}

func (n *viewNotifier) load() view {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.view
}

// watch returns the latest view and a channel that is closed when a later one is published.
func (n *viewNotifier) watch() (view, <-chan struct{}) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.changed == nil {
		n.changed = make(chan struct{})
	}
	return n.view, n.changed
}

// publish replaces the view and wakes all who watch.
func (n *viewNotifier) publish(v view) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.view = v
	if n.changed != nil {
		close(n.changed)
		n.changed = nil
	}
}

// waitForChange returns nil when changed is closed, or why it stopped waiting.
func (j *Journal) waitForChange(ctx context.Context, changed <-chan struct{}) error {
	select {
	case <-changed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-j.closing:
		return eventstore.ErrClosed
	}
}

// Wait returns the position of the last durable event as soon as it is greater than after. It ends early with the context's
// error or ErrClosed.
func (j *Journal) Wait(ctx context.Context, after eventstore.Position) (eventstore.Position, error) {
	for {
		v, changed := j.views.watch()
		if j.isClosed() {
			return 0, eventstore.ErrClosed
		}
		if v.lastCheckpoint.Position > after {
			return v.lastCheckpoint.Position, ctx.Err()
		}
		if err := j.waitForChange(ctx, changed); err != nil {
			return 0, err
		}
	}
}

// logReader reads all durable events of the log in the order of their positions: signalReader filters them for ReadAll and
// Subscribe, scan yields them unfiltered. It remembers its position, so that it can continue with a later view.
type logReader struct {
	j            *Journal
	ctx          context.Context
	cursor       cursor
	segmentIndex int // of the cursor's segment in every view that shows it
	streamNames  interner
	typeNames    interner
}

func (j *Journal) newLogReader(ctx context.Context) logReader {
	return logReader{j: j, ctx: ctx, streamNames: interner{}, typeNames: interner{}}
}

// errReaderDone ends a read whose caller has stopped.
var errReaderDone = errors.New("the caller wants no more")

// checkRunning is nil unless the journal is closed or the caller's context has ended.
func (r *logReader) checkRunning() error {
	if err := r.j.checkOpen(); err != nil {
		return err
	}
	return r.ctx.Err()
}

// seekSegment moves the reader before the first event of segment i.
func (r *logReader) seekSegment(v view, i int) {
	r.segmentIndex, r.cursor = i, v.newCursor(i, r.j.crcSeed)
}

// seekEvent moves the reader before the event f of segment i.
func (r *logReader) seekEvent(v view, i int, f frame) {
	r.seekSegment(v, i)
	r.cursor.pos, r.cursor.prevCRC = f.position(), f.prevCRC()
}

// forEachEvent calls onEvent for every event from the reader's position to the end of v.
func (r *logReader) forEachEvent(v view, onEvent func(frame) error) error {
	for {
		r.cursor.end = v.segmentEnd(r.segmentIndex)
		if err := r.forEachEventInSegment(onEvent); err != nil {
			return err
		}
		if r.segmentIndex == len(v.segments)-1 {
			return nil
		}
		r.segmentIndex++ // prevCRC stays: the first frame of a segment links to the last one of the segment before
		s := v.segments[r.segmentIndex]
		r.cursor.segment, r.cursor.pos, r.cursor.block = s, s.dataStart(), nil
	}
}

// eventsBetweenChecks is how many frames a reader reads before it checks again that its caller is still there.
const eventsBetweenChecks = 64

// forEachEventInSegment calls onEvent for every event from the cursor to its end.
func (r *logReader) forEachEventInSegment(onEvent func(frame) error) error {
	for n := 0; ; n++ {
		if n%eventsBetweenChecks == 0 {
			if err := r.checkRunning(); err != nil {
				return err
			}
		}
		f, err := r.cursor.nextFrame()
		if err != nil || f == nil {
			return err
		}
		if !f.isEvent() {
			continue
		}
		if err := onEvent(f); err != nil {
			return err
		}
	}
}

// translateReadError turns the error of a file that Close has closed under a reader into ErrClosed.
func (j *Journal) translateReadError(err error) error {
	if errors.Is(err, os.ErrClosed) && j.isClosed() {
		return eventstore.ErrClosed
	}
	return err
}

// ReadAll reads what is durable now.
func (j *Journal) ReadAll(ctx context.Context, after eventstore.Checkpoint, filter eventstore.Filter) iter.Seq2[eventstore.Signal, error] {
	return func(yield func(eventstore.Signal, error) bool) {
		r, err := j.newSignalReader(ctx, after, filter, yield)
		if err == nil {
			err = r.readUpTo(j.views.load())
		}
		if err != nil && !errors.Is(err, errReaderDone) {
			yield(eventstore.Signal{}, j.translateReadError(err))
		}
	}
}

// Subscribe reads what is durable now and then whatever becomes durable, as soon as its group is published.
func (j *Journal) Subscribe(ctx context.Context, after eventstore.Checkpoint, filter eventstore.Filter) iter.Seq2[eventstore.Signal, error] {
	return func(yield func(eventstore.Signal, error) bool) {
		r, err := j.newSignalReader(ctx, after, filter, yield)
		for err == nil {
			v, changed := j.views.watch()
			if err = r.readUpTo(v); err == nil {
				err = j.waitForChange(ctx, changed)
			}
		}
		if !errors.Is(err, errReaderDone) {
			yield(eventstore.Signal{}, j.translateReadError(err))
		}
	}
}

// signalReader turns the events of a logReader into the signals of ReadAll and Subscribe.
type signalReader struct {
	logReader
	filter eventstore.Filter
	yield  func(eventstore.Signal, error) bool

	checkpoint   eventstore.Checkpoint // of the last event read
	skippedBytes int                   // of unwanted events since the last signal
	owesCaughtUp bool                  // an event was yielded since the last CaughtUp, or no CaughtUp was yielded yet
}

func (j *Journal) newSignalReader(ctx context.Context, after eventstore.Checkpoint, filter eventstore.Filter, yield func(eventstore.Signal, error) bool) (*signalReader, error) {
	r := &signalReader{logReader: j.newLogReader(ctx), filter: filter, yield: yield, owesCaughtUp: true}
	if err := r.checkRunning(); err != nil {
		return nil, err
	}
	r.checkpoint = eventstore.Checkpoint{Log: j.logID, Position: after.Position, Event: after.Event}
	return r, r.seekAfter(j.views.load(), after)
}

// seekAfter moves the reader behind a checkpoint, which must be on this log.
func (r *signalReader) seekAfter(v view, after eventstore.Checkpoint) error {
	if after.Log != uuid.Nil && after.Log != r.j.logID {
		return &eventstore.DivergedError{Checkpoint: after, Reason: "it is of log " + after.Log.String(), IsOtherLog: true}
	}
	if after.Position == 0 {
		r.seekSegment(v, 0)
		return nil
	}
	f, i, err := v.readEventAt(after, r.j.crcSeed)
	if err != nil {
		return err
	}
	if f.id() != after.Event {
		return &eventstore.DivergedError{Checkpoint: after, Reason: "another event stands there"}
	}
	r.seekEvent(v, i, f)
	_, err = r.cursor.nextFrame()
	return err
}

// readUpTo yields a signal for each wanted event in v, a CheckpointReached if unwanted events follow the last of them, and
// then CaughtUp if it is owed.
func (r *signalReader) readUpTo(v view) error {
	if err := r.forEachEvent(v, r.handleEvent); err != nil {
		return err
	}
	if err := r.reportCheckpoint(1); err != nil || !r.owesCaughtUp {
		return err
	}
	r.owesCaughtUp = false
	return r.yieldSignal(eventstore.Signal{Kind: eventstore.CaughtUp, Checkpoint: r.checkpoint})
}

// checkpointBytes is how many bytes of unwanted events are skipped before the reader yields a CheckpointReached.
const checkpointBytes = 1 << 20

// handleEvent yields an event if it is wanted, otherwise counts it as skipped.
func (r *signalReader) handleEvent(f frame) error {
	r.checkpoint.Position, r.checkpoint.Event = f.position(), f.id()
	if !matchesFilter(r.filter, f.stream()) {
		r.skippedBytes += len(f)
		return r.reportCheckpoint(checkpointBytes)
	}
	r.skippedBytes, r.owesCaughtUp = 0, true
	e := r.typeNames.decodeEvent(f, r.streamNames.intern(f.stream()))
	return r.yieldSignal(eventstore.Signal{Kind: eventstore.EventAppeared, Event: e, Checkpoint: r.checkpoint})
}

// reportCheckpoint yields a CheckpointReached once minBytes of unwanted events were skipped.
func (r *signalReader) reportCheckpoint(minBytes int) error {
	if r.skippedBytes < minBytes {
		return nil
	}
	r.skippedBytes = 0
	return r.yieldSignal(eventstore.Signal{Kind: eventstore.CheckpointReached, Checkpoint: r.checkpoint})
}

func (r *signalReader) yieldSignal(s eventstore.Signal) error {
	if !r.yield(s, nil) {
		return errReaderDone
	}
	return nil
}

// Scan yields the events of every stream, including those whose name begins with "$". Forward, it yields the events from a
// position on that are durable when it is called, in the order of their positions. Backward, it yields those before the
// position, last first. The position may be 0, that of an event or beyond the last; any other is a *DivergedError. Backward,
// a segment is read forward to find its events; only the last event of all is found without that.
func (j *Journal) Scan(ctx context.Context, from eventstore.Position, dir eventstore.Direction) iter.Seq2[eventstore.RecordedEvent, error] {
	return func(yield func(eventstore.RecordedEvent, error) bool) {
		s := &scan{logReader: j.newLogReader(ctx), view: j.views.load(), yield: yield}
		if err := s.scanEvents(from, dir); err != nil && !errors.Is(err, errReaderDone) {
			yield(eventstore.RecordedEvent{}, j.translateReadError(err))
		}
	}
}

// scan is one call of Scan.
type scan struct {
	logReader
	view  view
	yield func(eventstore.RecordedEvent, error) bool
}

// scanEvents yields the events from a position on, or those before it. It first checks that Scan allows the position.
func (s *scan) scanEvents(from eventstore.Position, dir eventstore.Direction) error {
	last := s.view.lastCheckpoint.Position
	if err := s.checkRunning(); err != nil || last == 0 || from > last && dir == eventstore.Forward {
		return err
	}
	s.seekSegment(s.view, 0)
	if 0 < from && from <= last {
		f, i, err := s.view.readEventAt(eventstore.Checkpoint{Log: s.j.logID, Position: from}, s.j.crcSeed)
		if err != nil {
			return err
		}
		s.seekEvent(s.view, i, f)
	}
	if dir == eventstore.Forward {
		return s.forEachEvent(s.view, s.yieldEvent)
	}
	if from > last {
		if err := s.yieldEventAt(s.view.findSegment(last), last); err != nil {
			return err
		}
		from = last
	}
	return s.yieldBackward(from)
}

// yieldBackward yields the events before a position, last first. Frames can only be found forward, so it collects the
// positions of a segment's events first.
func (s *scan) yieldBackward(before eventstore.Position) error {
	for i := s.view.findSegment(before - 1); before > 0 && i >= 0; i-- {
		s.seekSegment(s.view, i)
		s.cursor.end = min(s.cursor.end, before)
		var positions []eventstore.Position
		err := s.forEachEventInSegment(func(f frame) error {
			positions = append(positions, f.position())
			return nil
		})
		for n := len(positions) - 1; err == nil && n >= 0; n-- {
			err = s.yieldEventAt(i, positions[n])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// yieldEventAt yields the event whose frame begins at pos in that segment.
func (s *scan) yieldEventAt(segmentIndex int, pos eventstore.Position) error {
	if err := s.checkRunning(); err != nil {
		return err
	}
	f, err := s.view.segments[segmentIndex].readFrameAt(pos, s.view.segmentEnd(segmentIndex), s.j.crcSeed)
	if err != nil {
		return err
	}
	return s.yieldEvent(f)
}

func (s *scan) yieldEvent(f frame) error {
	if !s.yield(s.typeNames.decodeEvent(f, s.streamNames.intern(f.stream())), nil) {
		return errReaderDone
	}
	return nil
}

// interner keeps one string for each name that a reader meets repeatedly.
type interner map[string]string

// maxInterned bounds the memory of a reader that keeps meeting new names.
const maxInterned = 1 << 16

func (n interner) intern(b []byte) string {
	if s, ok := n[string(b)]; ok {
		return s
	}
	if len(n) >= maxInterned {
		clear(n)
	}
	s := string(b)
	n[s] = s
	return s
}

// decodeEvent decodes an event of a stream that the caller knows. Only the type's name is interned.
func (n interner) decodeEvent(f frame, stream string) eventstore.RecordedEvent {
	metadata, data := f.metadataAndData()
	return eventstore.RecordedEvent{
		Position: f.position(), Stream: stream, Revision: f.revision(), ID: f.id(),
		Type: n.intern(f.typeName()), Time: f.time(), Data: data, Metadata: metadata,
	}
}

// matchesFilter is Filter.Matches for the bytes of a name, without making a string.
func matchesFilter(filter eventstore.Filter, stream []byte) bool {
	if len(filter) == 0 {
		return len(stream) == 0 || stream[0] != '$'
	}
	n := 0
	for n < len(stream) && stream[n] != '-' {
		n++
	}
	for _, c := range filter {
		if string(stream[:n]) == c {
			return true
		}
	}
	return false
}
