package commands

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"lieudit/eventstore"
)

// streamState is one stream's state up to a revision, for one command at a time.
type streamState[S any] struct {
	id                 string
	stream             string
	weight             int // as the desk counts it
	semaphore          chan struct{}
	state              S
	revision           eventstore.Revision
	checkpoint         eventstore.Checkpoint        // of the event at revision
	hasTriedSnapshot   bool                         // its file was looked for
	voided             map[eventstore.Revision]bool // events that corrections name
	snapshotSize       int                          // bytes of its file
	bytesSinceSnapshot int                          // bytes of the log that were folded since
}

func (s *streamState[S]) lock(ctx context.Context) error {
	select {
	case s.semaphore <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", eventstore.ErrUnavailable, ctx.Err())
	}
}

// catchUp brings the state up to the stream's end. When the event the state ends with is not in the stream
// any more (the log was restored from a copy), the state is folded anew. So it is when a correction names an event that
// is in the state. An event that cannot be used ends it with an *eventstore.UnusableError, until a correction names it.
func (s *streamState[S]) catchUp(ctx context.Context, h *Handler[S]) error {
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
	}
	if isVerified {
		return nil
	}
	s.voided = nil
	return s.refold(ctx, h)
}

// refold folds the stream from its first event on.
func (s *streamState[S]) refold(ctx context.Context, h *Handler[S]) error {
	var zero S
	s.state, s.revision, s.checkpoint = zero, eventstore.NoStream, eventstore.Checkpoint{}
	return s.catchUp(ctx, h)
}

// refoldWithoutVoided folds the stream again without the events that its corrections name.
func (s *streamState[S]) refoldWithoutVoided(ctx context.Context, h *Handler[S]) (err error) {
	if s.voided, err = ReadVoidedRevisions(ctx, h.store, s.stream, 0); err != nil {
		return err
	}
	return s.refold(ctx, h)
}

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

// readUnvoidedRecords are what an event adds. Of one that cannot be used it looks further on in the stream whether a correction names it.
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

// ReadVoidedRevisions are the events that corrections in a stream name, those from a revision on.
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
