package commands

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/google/uuid"

	"lieudit/eventstore"
)

// Handler takes the commands of one kind of aggregate. It is safe for concurrent use; commands on one stream take
// turns, and another instance's writes are seen as conflicts and decided again.
type Handler[S any] struct {
	aggregate Aggregate[S]
	store     eventstore.Store
	codec     *eventstore.Codec

	cache     stateCache[S]
	snapshots snapshotFiles[S]
}

// NewHandler is a desk over a log.
func NewHandler[S any](a Aggregate[S], store eventstore.Store, codec *eventstore.Codec) *Handler[S] {
	if a.Weight == nil {
		a.Weight = func(*S) int { return 1 }
	}
	if a.MaxWeight == 0 {
		a.MaxWeight = 10_000
	}
	return &Handler[S]{aggregate: a, store: store, codec: codec, cache: newStateCache[S](a.Category, a.MaxWeight)}
}

// KeepSnapshots has the desk keep folds in files of a folder, which is this instance's: a stream that was long is then not read
// from its beginning. The files can be thrown away at any time. Nothing may have been asked of the desk yet.
func (h *Handler[S]) KeepSnapshots(folder string, log *slog.Logger) {
	h.snapshots = snapshotFiles[S]{aggregate: h.aggregate, folder: folder, log: log}
}

// Handle lets decide look at the aggregate's state and appends what it says. It returns the position of the last
// event that the state or the append holds, for readers to wait for, and decide's own refusal as it is. A decision that
// failed appends nothing; its error is returned as it is, without a position.
// eventstore.ErrUnknown means that the context ended before the outcome was known.
func (h *Handler[S]) Handle(ctx context.Context, id string, meta Metadata, decide Decision[S]) (eventstore.Position, error) {
	s, err := h.acquireState(ctx, id)
	if err != nil {
		return 0, err
	}
	defer h.releaseState(s)
	commandID := uuid.New()
	for attempt := byte(0); ; attempt++ {
		if err := s.catchUp(ctx, h); err != nil {
			return 0, err
		}
		result := decide(&s.state)
		if result.failure != nil {
			return 0, result.failure
		}
		if len(result.events) == 0 {
			return s.checkpoint.Position, result.refusal
		}
		batch, err := h.codec.Encode(ctx, s.stream, uuid.NewSHA1(commandID, []byte{attempt}), meta.EventMetadata(commandID), result.events)
		if err != nil {
			return 0, err
		}
		done, err := AppendUntilKnown(ctx, h.store, s.stream, s.revision, batch)
		switch {
		case err == nil:
			return done.Position, result.refusal
		case !errors.Is(err, eventstore.ErrConflict):
			return 0, fmt.Errorf("append to %s: %w", s.stream, err)
		}
	}
}

// View shows the aggregate's state as the log has it now. look must not keep or change it.
func (h *Handler[S]) View(ctx context.Context, id string, read func(*S)) error {
	s, err := h.acquireState(ctx, id)
	if err != nil {
		return err
	}
	defer h.releaseState(s)
	if err := s.catchUp(ctx, h); err != nil {
		return err
	}
	read(&s.state)
	return nil
}

// acquireState waits for the turn of a stream's next command.
func (h *Handler[S]) acquireState(ctx context.Context, id string) (*streamState[S], error) {
	s := h.cache.findOrCreate(id)
	return s, s.lock(ctx)
}

func (h *Handler[S]) releaseState(s *streamState[S]) {
	h.cache.updateWeight(s, h.aggregate.Weight(&s.state))
	h.snapshots.saveSnapshot(s)
	<-s.semaphore
}
