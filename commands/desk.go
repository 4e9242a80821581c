package commands

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"

	"lieudit/eventstore"
)

// Desk takes the commands of one kind of aggregate. It is safe for concurrent use; commands on one stream take
// turns, and another instance's writes are seen as conflicts and decided again.
type Desk[S any] struct {
	aggregate Aggregate[S]
	store     eventstore.Store
	codec     *eventstore.Codec

	mu    sync.Mutex
	folds map[string]*fold[S]
}

// maxFolds bounds the states kept in memory; past it any of them makes room.
const maxFolds = 10_000

// NewDesk is a desk over a log.
func NewDesk[S any](a Aggregate[S], store eventstore.Store, codec *eventstore.Codec) *Desk[S] {
	return &Desk[S]{aggregate: a, store: store, codec: codec, folds: map[string]*fold[S]{}}
}

// Do lets decide look at the aggregate's state and appends what it says. It returns the position of the last
// event that the state or the append holds, for readers to wait for, and decide's own refusal as it is.
// eventstore.ErrUnknown means that the context ended before the outcome was known.
func (d *Desk[S]) Do(ctx context.Context, id string, in Intent, decide Decision[S]) (eventstore.Position, error) {
	f := d.fold(id)
	if err := f.lock(ctx); err != nil {
		return 0, err
	}
	defer f.unlock()
	command := uuid.New()
	for attempt := byte(0); ; attempt++ {
		if err := f.forward(ctx, d); err != nil {
			return 0, err
		}
		events, refusal := decide(&f.state)
		if len(events) == 0 {
			return f.mark.Position, refusal
		}
		batch, err := d.codec.Encode(ctx, f.stream, uuid.NewSHA1(command, []byte{attempt}), in.Metadata(command), events)
		if err != nil {
			return 0, err
		}
		done, err := d.settle(ctx, f, batch)
		switch {
		case err == nil:
			return done.Position, refusal
		case !errors.Is(err, eventstore.ErrConflict):
			return 0, fmt.Errorf("append to %s: %w", f.stream, err)
		}
	}
}

// View shows the aggregate's state as the log has it now. look must not keep or change it.
func (d *Desk[S]) View(ctx context.Context, id string, look func(*S)) error {
	f := d.fold(id)
	if err := f.lock(ctx); err != nil {
		return err
	}
	defer f.unlock()
	if err := f.forward(ctx, d); err != nil {
		return err
	}
	look(&f.state)
	return nil
}

// settle appends the batch, and sends the very same one again for as long as its fate is unknown: once it is, an
// answer that a later sending added nothing says nothing of the first.
func (d *Desk[S]) settle(ctx context.Context, f *fold[S], batch []eventstore.Proposed) (eventstore.Committed, error) {
	unknown := false
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		done, err := d.store.Append(ctx, f.stream, f.revision, batch)
		unknown = unknown || errors.Is(err, eventstore.ErrUnknown)
		if !unknown || !errors.Is(err, eventstore.ErrUnknown) && !errors.Is(err, eventstore.ErrUnavailable) {
			return done, err
		}
		select {
		case <-ctx.Done():
			return done, fmt.Errorf("%w: %w", eventstore.ErrUnknown, ctx.Err())
		case <-time.After(pause):
		}
	}
}

func (d *Desk[S]) fold(id string) *fold[S] {
	d.mu.Lock()
	defer d.mu.Unlock()
	if f, ok := d.folds[id]; ok {
		return f
	}
	if len(d.folds) >= maxFolds {
		for victim := range d.folds {
			delete(d.folds, victim)
			break
		}
	}
	f := &fold[S]{stream: d.aggregate.Category + "-" + id, revision: eventstore.NoStream, busy: make(chan struct{}, 1)}
	d.folds[id] = f
	return f
}
