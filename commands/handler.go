package commands

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"lieudit/eventstore"
	"lieudit/eventstore/disk/osfile"
	"lieudit/schemas/event"
)

// Handler handles the commands of one kind of aggregate. It is safe for concurrent use. Commands on one stream run one after
// the other. An append by another instance shows as a conflict, and the command is decided again.
type Handler[S any] struct {
	aggregate Aggregate[S]
	store     eventstore.Store
	codec     *eventstore.Codec

	cache     stateCache[S]
	snapshots snapshotFiles[S]
}

// NewHandler returns the handler of an aggregate over a log.
func NewHandler[S any](a Aggregate[S], store eventstore.Store, codec *eventstore.Codec) *Handler[S] {
	if a.Weight == nil {
		a.Weight = func(*S) int { return 1 }
	}
	if a.MaxWeight == 0 {
		a.MaxWeight = 10_000
	}
	return &Handler[S]{aggregate: a, store: store, codec: codec, cache: newStateCache[S](a.Category, a.MaxWeight)}
}

// KeepSnapshots makes the handler keep states in files of a folder that belongs to this instance alone, so that a long stream
// is not read from its beginning after a restart. A state is saved once threshold bytes of events were folded since the last
// time. The files can be deleted at any time. KeepSnapshots must be called before the first command.
func (h *Handler[S]) KeepSnapshots(folder string, threshold int, disk osfile.Disk, log *slog.Logger) {
	h.snapshots = snapshotFiles[S]{aggregate: h.aggregate, folder: folder, threshold: threshold, disk: disk, log: log}
}

// Handle passes decide the aggregate's state, as the log has it now, and appends the events of its Result. It returns the
// position of the stream's last event, for readers to wait for.
//
// It returns the error of a refusal or a failure unchanged; after a failure nothing is appended and the position is 0.
// eventstore.ErrUnknown means that the context ended before the outcome of the append was known; eventstore.ErrUnavailable
// means that nothing was appended. An *eventstore.UnusableError names an event of the stream that cannot be folded.
func (h *Handler[S]) Handle(ctx context.Context, id string, meta Metadata, decide Decision[S]) (eventstore.Position, error) {
	return h.HandleThen(ctx, id, meta, decide, nil)
}

// HandleThen is Handle, and calls show with the state that a command which is not refused has left, whatever others append after it.
// show must not change or keep the state. An error with a position means that the command was carried out, but its state could not be read.
func (h *Handler[S]) HandleThen(ctx context.Context, id string, meta Metadata, decide Decision[S], show func(*S)) (eventstore.Position, error) {
	s, err := h.acquireState(ctx, id)
	if err != nil {
		return 0, err
	}
	defer h.releaseState(s)
	commandID := uuid.New()
	for attempt := byte(0); ; attempt++ { // each attempt has ids of its own: it may hold other events
		result, err := h.decidePrepared(ctx, s, decide)
		if err != nil {
			return 0, err
		}
		if len(result.events) == 0 {
			if show != nil && result.refusal == nil {
				show(&s.state)
			}
			return s.checkpoint.Position, result.refusal
		}
		batch, err := h.codec.Encode(ctx, s.stream, uuid.NewSHA1(commandID, []byte{attempt}), meta.EventMetadata(commandID), result.events)
		if err != nil {
			return 0, err
		}
		done, err := eventstore.AppendUntilKnown(ctx, h.store, s.stream, s.revision, batch, eventstore.Resend{})
		switch {
		case err == nil && show != nil && result.refusal == nil:
			if err := s.catchUpTo(ctx, h, done.Revision); err != nil {
				return done.Position, err
			}
			show(&s.state)
			return done.Position, nil
		case err == nil:
			return done.Position, result.refusal
		case !errors.Is(err, eventstore.ErrConflict):
			return 0, fmt.Errorf("append to %s: %w", s.stream, err)
		}
	}
}

// decidePrepared calls decide on the state as the log has it now, and does the work of its result until the result is events
// or a refusal.
func (h *Handler[S]) decidePrepared(ctx context.Context, s *streamState[S], decide Decision[S]) (Result, error) {
	for {
		if err := s.catchUp(ctx, h); err != nil {
			return Result{}, err
		}
		result := decide(&s.state)
		switch {
		case result.Failed():
			return Result{}, result.Err()
		case result.work != nil:
			if err := result.work(ctx); err != nil {
				return Result{}, err
			}
			continue
		case result.build != nil:
			var err error
			result.events, err = result.build(ctx)
			return result, err
		}
		return result, nil
	}
}

// revocationSealTimeout is how long a revocation waits for the vault, both to seal its reason and to open the texts of its
// answer.
const revocationSealTimeout = 500 * time.Millisecond

// SealReason is for revocations, which never wait for the vault: a leaked key or token must end even if the reason cannot be
// kept. It returns the metadata with the reason sealed for an event e of the stream. The reason is omitted, which isOmitted
// reports, if the vault does not answer at once or the account is erased.
func (h *Handler[S]) SealReason(ctx context.Context, id string, meta Metadata, e event.Event) (sealed Metadata, isOmitted bool, err error) {
	envelope, ok, err := h.codec.SealReasonWithin(ctx, revocationSealTimeout, h.aggregate.Category+"-"+id, e, meta.EventMetadata(uuid.Nil))
	meta.Reason, meta.sealedReason = envelope.Reason, envelope.SealedReason
	return meta, !ok, err
}

// OpenAtOnce opens a personal text of an event e of a stream, for the answer to a revocation. If the vault does not give the
// key at once, the text is empty and ok is false.
func (h *Handler[S]) OpenAtOnce(ctx context.Context, id string, e event.Event, p event.Personal) (text event.Personal, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, revocationSealTimeout)
	defer cancel()
	text, err := h.codec.Open(ctx, h.aggregate.Category+"-"+id, e, p)
	return text, err == nil
}

// View calls read with the aggregate's state, as the log has it now. read must not change or keep it.
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

// acquireState waits until no other command works on the stream. releaseState must follow unless it fails.
func (h *Handler[S]) acquireState(ctx context.Context, id string) (*streamState[S], error) {
	s := h.cache.findOrCreate(id)
	if err := s.lock.Acquire(ctx, 1); err != nil {
		return nil, fmt.Errorf("%w: %w", eventstore.ErrUnavailable, err)
	}
	return s, nil
}

// releaseState notes the new weight of a state, saves its snapshot if one is due, and lets the next command work on it.
func (h *Handler[S]) releaseState(s *streamState[S]) {
	h.cache.updateWeight(s, h.aggregate.Weight(&s.state))
	h.snapshots.saveSnapshot(s)
	s.lock.Release(1)
}
