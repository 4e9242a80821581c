// Package memory keeps a log in memory, with the whole contract of eventstore.Store. It is for simulations and tests: nothing
// outlives the process. A test requests the other things that happen to a server's log: Restore replaces the log by an older
// copy, and ForgetIDs makes it forget which appends were made with any expectation, as a restart does.
package memory

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sort"
	"sync"
	"time"

	"github.com/google/uuid"

	"lieudit/eventstore"
)

// Log implements eventstore.Store. Several instances may use one Log; closing it ends it for all of them.
type Log struct {
	id    uuid.UUID
	clock func() time.Time // wall time, which stamps events

	mu       sync.Mutex
	events   []eventstore.RecordedEvent // in the order of positions
	streams  map[string][]int           // indexes into events
	appends  map[uuid.UUID]*sentAppend  // by the ids of its events
	restores int                        // how often an older copy replaced the log
	changed  chan struct{}              // closed by the next append or restore, and by Close
	isClosed bool
}

// sentAppend is one append as it was made.
type sentAppend struct {
	stream   string
	expected eventstore.Revision
	ids      []uuid.UUID
	result   eventstore.AppendResult
}

// New returns an empty log with a new identity. clock stamps its events and must be safe for concurrent use.
func New(clock func() time.Time) *Log {
	return &Log{id: uuid.New(), clock: clock, streams: map[string][]int{}, appends: map[uuid.UUID]*sentAppend{}, changed: make(chan struct{})}
}

// Identity implements eventstore.Store.
func (l *Log) Identity(context.Context) (uuid.UUID, error) { return l.id, l.Health() }

// Health implements eventstore.Store: it is nil until Close.
func (l *Log) Health() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isClosed {
		return eventstore.ErrClosed
	}
	return nil
}

// Close implements eventstore.Store.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.isClosed {
		l.isClosed = true
		close(l.changed)
	}
	return nil
}

// LastPosition is the position of the last event; 0 while there is none.
func (l *Log) LastPosition() eventstore.Position {
	l.mu.Lock()
	defer l.mu.Unlock()
	return lastPosition(l.events)
}

// Checkpoints are those of all events, in order.
func (l *Log) Checkpoints() []eventstore.Checkpoint {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]eventstore.Checkpoint, len(l.events))
	for i, e := range l.events {
		all[i] = l.checkpointOf(e)
	}
	return all
}

// Reopen closes the log and returns it open again, unchanged. Restore and ForgetIDs must no longer be called on the closed
// one.
func (l *Log) Reopen() *Log {
	l.Close()
	return &Log{id: l.id, clock: l.clock, events: l.events, streams: l.streams, appends: l.appends, restores: l.restores, changed: make(chan struct{})}
}

func lastPosition(events []eventstore.RecordedEvent) eventstore.Position {
	if len(events) == 0 {
		return 0
	}
	return events[len(events)-1].Position
}

// Restore replaces the log by the copy that was made when the event at a position was the last. Everything later is lost, and
// other events will take its positions. Readers that were further find their checkpoint diverged.
func (l *Log) Restore(last eventstore.Position) {
	l.mu.Lock()
	defer l.mu.Unlock()
	kept := sort.Search(len(l.events), func(i int) bool { return l.events[i].Position > last })
	for _, lost := range slices.Backward(l.events[kept:]) { // so that each stream ends before the first event it lost
		delete(l.appends, lost.ID)
		l.streams[lost.Stream] = slices.Clip(l.streams[lost.Stream][:lost.Revision])
	}
	l.events = slices.Clip(l.events[:kept]) // readers may still hold lost events, here and in streams
	l.restores++
	l.notifyReaders()
}

// ForgetIDs makes the log forget the ids of the appends that were made with eventstore.Any: a repeat adds them again.
func (l *Log) ForgetIDs() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, made := range l.appends {
		if made.expected == eventstore.Any {
			delete(l.appends, id)
		}
	}
}

// Append implements eventstore.Store.
func (l *Log) Append(ctx context.Context, stream string, expected eventstore.Revision, events []eventstore.ProposedEvent) (eventstore.AppendResult, error) {
	if err := ctx.Err(); err != nil {
		return eventstore.AppendResult{}, fmt.Errorf("%w: %w", eventstore.ErrUnknown, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isClosed {
		return eventstore.AppendResult{}, eventstore.ErrClosed
	}
	if countBytes(events) > eventstore.MaxAppendBytes {
		return eventstore.AppendResult{}, eventstore.ErrTooLarge
	}
	if result, isKnown, err := l.findAppend(stream, expected, events); isKnown {
		return result, err
	}
	if current := eventstore.Revision(len(l.streams[stream]) - 1); expected != eventstore.Any && expected != current {
		return eventstore.AppendResult{}, &eventstore.ConflictError{Stream: stream, Expected: expected, Current: current}
	}
	return l.add(stream, expected, events), nil
}

// findAppend looks for an append among the earlier ones. An id of another append is an error.
func (l *Log) findAppend(stream string, expected eventstore.Revision, events []eventstore.ProposedEvent) (_ eventstore.AppendResult, isKnown bool, _ error) {
	for _, e := range events {
		made := l.appends[e.ID]
		if made == nil {
			continue
		}
		if made.stream != stream || made.expected != expected || !slices.Equal(idsOf(events), made.ids) {
			return eventstore.AppendResult{}, true, eventstore.ErrIDReused
		}
		return made.result, true, nil
	}
	return eventstore.AppendResult{}, false, nil
}

// positionStep is the smallest difference between two positions. They also grow by the bytes of events, like those of a
// server.
const positionStep = 64

func (l *Log) add(stream string, expected eventstore.Revision, events []eventstore.ProposedEvent) eventstore.AppendResult {
	made, now := &sentAppend{stream: stream, expected: expected, ids: idsOf(events)}, l.clock().UTC().Truncate(time.Microsecond)
	for _, e := range events {
		made.result = eventstore.AppendResult{
			Revision: eventstore.Revision(len(l.streams[stream])),
			Position: lastPosition(l.events) + eventstore.Position(positionStep+len(e.Data)),
		}
		l.streams[stream] = append(l.streams[stream], len(l.events))
		l.events = append(l.events, eventstore.RecordedEvent{
			Position: made.result.Position, Stream: stream, Revision: made.result.Revision,
			ID: e.ID, Type: e.Type, Time: now, Data: e.Data, Metadata: e.Metadata,
		})
		l.appends[e.ID] = made
	}
	l.notifyReaders()
	return made.result
}

// notifyReaders wakes the subscriptions. The caller holds l.mu.
func (l *Log) notifyReaders() {
	if !l.isClosed {
		close(l.changed)
		l.changed = make(chan struct{})
	}
}

func idsOf(events []eventstore.ProposedEvent) []uuid.UUID {
	ids := make([]uuid.UUID, len(events))
	for i, e := range events {
		ids[i] = e.ID
	}
	return ids
}

func countBytes(events []eventstore.ProposedEvent) (n int) {
	for _, e := range events {
		n += len(e.Type) + len(e.Data) + len(e.Metadata)
	}
	return n
}

// ReadStream implements eventstore.Store. It yields the stream as it was when the read began.
func (l *Log) ReadStream(ctx context.Context, stream string, from eventstore.Revision, dir eventstore.Direction) iter.Seq2[eventstore.RecordedEvent, error] {
	return func(yield func(eventstore.RecordedEvent, error) bool) {
		v, err := l.view()
		l.mu.Lock()
		places := l.streams[stream]
		l.mu.Unlock()
		places = places[:sort.SearchInts(places, len(v.events))] // an append may have come between
		step, at := 1, int(from)
		if dir == eventstore.Backward {
			step = -1
			if from == eventstore.End {
				at = len(places) - 1
			}
		}
		for ; err == nil && at >= 0 && at < len(places); at += step {
			if err = ctx.Err(); err == nil && !yield(v.events[places[at]], nil) {
				return
			}
		}
		if err = errors.Join(err, ctx.Err()); err != nil {
			yield(eventstore.RecordedEvent{}, err)
		}
	}
}

// view is the log at one instant.
type view struct {
	events   []eventstore.RecordedEvent
	restores int
	changed  <-chan struct{} // closed by the next change
}

func (l *Log) view() (view, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isClosed {
		return view{changed: l.changed}, eventstore.ErrClosed
	}
	return view{l.events, l.restores, l.changed}, nil
}

// ReadAll implements eventstore.Store.
func (l *Log) ReadAll(ctx context.Context, after eventstore.Checkpoint, filter eventstore.Filter) iter.Seq2[eventstore.Signal, error] {
	return l.read(ctx, after, filter, false)
}

// Subscribe implements eventstore.Store.
func (l *Log) Subscribe(ctx context.Context, after eventstore.Checkpoint, filter eventstore.Filter) iter.Seq2[eventstore.Signal, error] {
	return l.read(ctx, after, filter, true)
}

// read yields the events after a checkpoint and, if the read is live, those added later.
func (l *Log) read(ctx context.Context, after eventstore.Checkpoint, filter eventstore.Filter, isLive bool) iter.Seq2[eventstore.Signal, error] {
	return func(yield func(eventstore.Signal, error) bool) {
		r := &reader{log: l, filter: filter, isLive: isLive, checkpoint: after, yield: yield}
		v, err := l.view()
		if err == nil {
			r.restores = v.restores
			r.next, err = l.indexAfter(v.events, after)
		}
		for err == nil {
			var isOver bool
			if isOver, err = r.yieldView(ctx, v); isOver {
				return
			}
			if err != nil {
				break
			}
			select {
			case <-v.changed:
				v, err = l.view()
			case <-ctx.Done():
				err = ctx.Err()
			}
			if err == nil && v.restores != r.restores {
				r.restores = v.restores
				r.next, err = l.indexAfter(v.events, r.checkpoint)
			}
		}
		yield(eventstore.Signal{}, err)
	}
}

// reader is one read of the whole log.
type reader struct {
	log        *Log
	filter     eventstore.Filter
	isLive     bool
	next       int                   // index of the next event
	restores   int                   // of the log when next was found
	checkpoint eventstore.Checkpoint // of the last signal
	yield      func(eventstore.Signal, error) bool
}

// yieldView yields the rest of a view and a CaughtUp. The read is over if the consumer stops, or if it is not live and
// everything was read.
func (r *reader) yieldView(ctx context.Context, v view) (isOver bool, err error) {
	for ; r.next < len(v.events); r.next++ {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		e := v.events[r.next]
		r.checkpoint = r.log.checkpointOf(e)
		s := eventstore.Signal{Kind: eventstore.EventAppeared, Event: e, Checkpoint: r.checkpoint}
		if !r.filter.Matches(e.Stream) {
			s = eventstore.Signal{Kind: eventstore.CheckpointReached, Checkpoint: r.checkpoint}
		}
		if (s.Kind == eventstore.EventAppeared || r.isLive) && !r.yield(s, nil) {
			return true, nil
		}
	}
	if err := ctx.Err(); err != nil {
		return false, err
	}
	r.checkpoint = r.log.checkpointBefore(v.events, r.next)
	return !r.yield(eventstore.Signal{Kind: eventstore.CaughtUp, Checkpoint: r.checkpoint}, nil) || !r.isLive, nil
}

// indexAfter returns the index of the first event after a checkpoint, or a *DivergedError for one that is not on the log.
func (l *Log) indexAfter(events []eventstore.RecordedEvent, after eventstore.Checkpoint) (int, error) {
	if after == (eventstore.Checkpoint{}) {
		return 0, nil
	}
	next := sort.Search(len(events), func(i int) bool { return events[i].Position > after.Position })
	if after != l.checkpointBefore(events, next) {
		return 0, &eventstore.DivergedError{Checkpoint: after, IsOtherLog: after.Log != l.id, Reason: "no such event"}
	}
	return next, nil
}

// checkpointBefore is the checkpoint of the event before an index; before the first event it names only the log.
func (l *Log) checkpointBefore(events []eventstore.RecordedEvent, next int) eventstore.Checkpoint {
	if next == 0 {
		return eventstore.Checkpoint{Log: l.id}
	}
	return l.checkpointOf(events[next-1])
}

func (l *Log) checkpointOf(e eventstore.RecordedEvent) eventstore.Checkpoint {
	return eventstore.Checkpoint{Log: l.id, Position: e.Position, Event: e.ID}
}
