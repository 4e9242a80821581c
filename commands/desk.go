package commands

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/google/uuid"

	"lieudit/eventstore"
)

// Desk takes the commands of one kind of aggregate. It is safe for concurrent use; commands on one stream take
// turns, and another instance's writes are seen as conflicts and decided again.
type Desk[S any] struct {
	aggregate Aggregate[S]
	store     eventstore.Store
	codec     *eventstore.Codec

	shelf shelf[S]
	files files[S]
}

// NewDesk is a desk over a log.
func NewDesk[S any](a Aggregate[S], store eventstore.Store, codec *eventstore.Codec) *Desk[S] {
	if a.Weight == nil {
		a.Weight = func(*S) int { return 1 }
	}
	if a.Room == 0 {
		a.Room = 10_000
	}
	return &Desk[S]{aggregate: a, store: store, codec: codec, shelf: newShelf[S](a.Category, a.Room)}
}

// Keep has the desk keep folds in files of a folder, which is this instance's: a stream that was long is then not read
// from its beginning. The files can be thrown away at any time. Nothing may have been asked of the desk yet.
func (d *Desk[S]) Keep(folder string, log *slog.Logger) {
	d.files = files[S]{aggregate: d.aggregate, folder: folder, log: log}
}

// Do lets decide look at the aggregate's state and appends what it says. It returns the position of the last
// event that the state or the append holds, for readers to wait for, and decide's own refusal as it is. A decision that
// failed appends nothing; its error is returned as it is, without a position.
// eventstore.ErrUnknown means that the context ended before the outcome was known.
func (d *Desk[S]) Do(ctx context.Context, id string, in Intent, decide Decision[S]) (eventstore.Position, error) {
	f, err := d.enter(ctx, id)
	if err != nil {
		return 0, err
	}
	defer d.leave(f)
	command := uuid.New()
	for attempt := byte(0); ; attempt++ {
		if err := f.forward(ctx, d); err != nil {
			return 0, err
		}
		result := decide(&f.state)
		if result.failure != nil {
			return 0, result.failure
		}
		if len(result.events) == 0 {
			return f.mark.Position, result.refusal
		}
		batch, err := d.codec.Encode(ctx, f.stream, uuid.NewSHA1(command, []byte{attempt}), in.Metadata(command), result.events)
		if err != nil {
			return 0, err
		}
		done, err := Settle(ctx, d.store, f.stream, f.revision, batch)
		switch {
		case err == nil:
			return done.Position, result.refusal
		case !errors.Is(err, eventstore.ErrConflict):
			return 0, fmt.Errorf("append to %s: %w", f.stream, err)
		}
	}
}

// View shows the aggregate's state as the log has it now. look must not keep or change it.
func (d *Desk[S]) View(ctx context.Context, id string, look func(*S)) error {
	f, err := d.enter(ctx, id)
	if err != nil {
		return err
	}
	defer d.leave(f)
	if err := f.forward(ctx, d); err != nil {
		return err
	}
	look(&f.state)
	return nil
}

// enter waits for the turn of a stream's next command.
func (d *Desk[S]) enter(ctx context.Context, id string) (*fold[S], error) {
	f := d.shelf.take(id)
	return f, f.lock(ctx)
}

func (d *Desk[S]) leave(f *fold[S]) {
	d.shelf.weigh(f, d.aggregate.Weight(&f.state))
	d.files.freeze(f)
	<-f.busy
}
