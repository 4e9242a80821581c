package commands

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"sync"

	"golang.org/x/sync/semaphore"

	"lieudit/eventstore"
)

// streamState is the state of one stream up to a revision. The command that holds lock is the only one that works on it.
type streamState[S any] struct {
	id                 string
	stream             string
	lock               *semaphore.Weighted // of weight 1: a mutex whose wait ends with a context
	weight             int                 // as the cache counts it, under the cache's mutex
	state              S
	revision           eventstore.Revision
	checkpoint         eventstore.Checkpoint        // of the event at revision
	voided             map[eventstore.Revision]bool // events that corrections name; the fold skips them
	hasTriedSnapshot   bool                         // loadSnapshot was called
	snapshotSize       int                          // bytes of the snapshot file
	bytesSinceSnapshot int                          // bytes of event data folded since
}

// catchUp folds the events appended since the last time, so that the state is that of the stream's end.
//
// It first reads the event at revision. If it finds another event or none, the log was restored from a backup, and the stream
// is folded from its beginning. The same happens if a correction names an event that the state already contains. catchUp stops
// with an *eventstore.UnusableError at an event that cannot be used, unless a correction names that event.
func (s *streamState[S]) catchUp(ctx context.Context, h *Handler[S]) error {
	return s.catchUpTo(ctx, h, math.MaxInt64)
}

// catchUpTo is catchUp as far as a later revision. If it has to fold the stream again, it folds all of it.
func (s *streamState[S]) catchUpTo(ctx context.Context, h *Handler[S], last eventstore.Revision) error {
	if !s.hasTriedSnapshot {
		s.hasTriedSnapshot = true
		h.snapshots.loadSnapshot(s)
	}
	isVerified := s.revision == eventstore.NoStream
	for r, err := range h.store.ReadStream(ctx, s.stream, max(s.revision, 0), eventstore.Forward) {
		if err != nil {
			return fmt.Errorf("read %s: %w", s.stream, err)
		}
		if !isVerified {
			if r.ID != s.checkpoint.Event {
				break
			}
			isVerified = true
			continue
		}
		if voidedRevision, ok := eventstore.VoidedRevision(r); ok && !s.voided[voidedRevision] {
			return s.refoldWithoutVoided(ctx, h)
		}
		if err := s.applyEvent(ctx, h, r); err != nil {
			return fmt.Errorf("%s@%d: %w", s.stream, r.Revision, err)
		}
		if s.revision >= last {
			break
		}
	}
	if isVerified {
		return nil
	}
	s.voided = nil
	return s.refold(ctx, h)
}

// refold folds the stream from its first event.
func (s *streamState[S]) refold(ctx context.Context, h *Handler[S]) error {
	var zero S
	s.state, s.revision, s.checkpoint = zero, eventstore.NoStream, eventstore.Checkpoint{}
	return s.catchUp(ctx, h)
}

// refoldWithoutVoided folds the stream from its first event, without the events that its corrections name.
func (s *streamState[S]) refoldWithoutVoided(ctx context.Context, h *Handler[S]) (err error) {
	if s.voided, err = ReadVoidedRevisions(ctx, h.store, s.stream, 0); err != nil {
		return err
	}
	return s.refold(ctx, h)
}

// applyEvent folds one event, with the staged events that it commits.
func (s *streamState[S]) applyEvent(ctx context.Context, h *Handler[S], r eventstore.RecordedEvent) error {
	records, bytesRead, err := s.readUnvoidedRecords(ctx, h.store, r)
	if err != nil {
		return err
	}
	s.bytesSinceSnapshot += bytesRead
	for _, record := range records {
		h.aggregate.Evolve(&s.state, record)
	}
	s.revision, s.checkpoint = r.Revision, eventstore.Checkpoint{Position: r.Position, Event: r.ID}
	return nil
}

// readUnvoidedRecords is readRecords, without records for a voided event. The correction of an unusable event comes later in
// the stream, so the rest of the stream is searched for it.
func (s *streamState[S]) readUnvoidedRecords(ctx context.Context, store eventstore.Store, r eventstore.RecordedEvent) ([]Record, int, error) {
	if s.voided[r.Revision] {
		return nil, len(r.Data), nil
	}
	records, bytesRead, err := readRecords(ctx, store, r)
	var unusable *eventstore.UnusableError
	if !errors.As(err, &unusable) {
		return records, bytesRead, err
	}
	voidedLater, readErr := ReadVoidedRevisions(ctx, store, s.stream, r.Revision+1)
	if readErr != nil {
		return nil, 0, readErr
	}
	if !voidedLater[r.Revision] {
		return nil, 0, err
	}
	if s.voided == nil {
		s.voided = map[eventstore.Revision]bool{}
	}
	maps.Copy(s.voided, voidedLater)
	return nil, len(r.Data), nil
}

// ReadVoidedRevisions reads a stream from a revision on and returns the revisions that its corrections name.
func ReadVoidedRevisions(ctx context.Context, store eventstore.Store, stream string, from eventstore.Revision) (map[eventstore.Revision]bool, error) {
	voided := map[eventstore.Revision]bool{}
	for r, err := range store.ReadStream(ctx, stream, from, eventstore.Forward) {
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", stream, err)
		}
		if revision, ok := eventstore.VoidedRevision(r); ok {
			voided[revision] = true
		}
	}
	return voided, nil
}

// stateCache keeps the most recently used states, up to a total weight of maxWeight. It is safe for concurrent use.
//
// A state may be evicted while a command works on it. The next command on the stream then folds a second state next to it,
// as another instance would, and the expected revision of the append keeps both correct.
//
// No LRU library without goroutines of its own fits: here the weight of a stored entry changes after every command.
type stateCache[S any] struct {
	category  string
	maxWeight int

	mu          sync.Mutex
	states      map[string]*list.Element
	recent      *list.List // of *streamState[S], the last used first
	totalWeight int
}

func newStateCache[S any](category string, maxWeight int) stateCache[S] {
	return stateCache[S]{category: category, maxWeight: maxWeight, states: map[string]*list.Element{}, recent: list.New()}
}

// findOrCreate returns the state of a stream. If it is not in the cache it is empty, and catchUp folds it.
func (c *stateCache[S]) findOrCreate(id string) *streamState[S] {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.states[id]; ok {
		c.recent.MoveToFront(e)
		return e.Value.(*streamState[S])
	}
	s := &streamState[S]{id: id, stream: c.category + "-" + id, revision: eventstore.NoStream, lock: semaphore.NewWeighted(1)}
	c.states[id] = c.recent.PushFront(s)
	c.setWeight(s, 1)
	return s
}

// updateWeight notes the weight of a state after a command, unless the state was evicted meanwhile.
func (c *stateCache[S]) updateWeight(s *streamState[S], weight int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.states[s.id]; ok && e.Value == any(s) && weight != s.weight {
		c.setWeight(s, weight)
	}
}

// setWeight evicts the least recently used states until the weight is within the limit. One state always stays.
func (c *stateCache[S]) setWeight(s *streamState[S], weight int) {
	c.totalWeight += weight - s.weight
	s.weight = weight
	for c.totalWeight > c.maxWeight && c.recent.Len() > 1 {
		last := c.recent.Remove(c.recent.Back()).(*streamState[S])
		delete(c.states, last.id)
		c.totalWeight -= last.weight
	}
}
