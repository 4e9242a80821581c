package commands

import (
	"context"
	"fmt"

	"lieudit/eventstore"
)

// fold is one stream's state up to a revision, for one command at a time.
type fold[S any] struct {
	id       string
	stream   string
	weight   int // as the desk counts it
	busy     chan struct{}
	state    S
	revision eventstore.Revision
	mark     eventstore.Mark // of the event at revision
	sought   bool            // its file was looked for
	filed    int             // bytes of its file
	unfiled  int             // bytes of the log that were folded since
}

func (f *fold[S]) lock(ctx context.Context) error {
	select {
	case f.busy <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", eventstore.ErrUnavailable, ctx.Err())
	}
}

// forward brings the state up to the stream's end. When the event the state ends with is not in the stream
// any more (the log was restored from a copy), the state is folded anew.
func (f *fold[S]) forward(ctx context.Context, d *Desk[S]) error {
	if !f.sought {
		f.sought = true
		d.files.thaw(f)
	}
	known := f.revision == eventstore.NoStream
	for r, err := range d.store.ReadStream(ctx, f.stream, max(f.revision, 0), eventstore.Forward) {
		if err != nil {
			return fmt.Errorf("read %s: %w", f.stream, err)
		}
		if !known {
			if r.ID != f.mark.Event {
				break
			}
			known = true
			continue
		}
		if err := f.evolve(ctx, d, r); err != nil {
			return fmt.Errorf("%s@%d: %w", f.stream, r.Revision, err)
		}
	}
	if known {
		return nil
	}
	var zero S
	f.state, f.revision, f.mark = zero, eventstore.NoStream, eventstore.Mark{}
	return f.forward(ctx, d)
}

func (f *fold[S]) evolve(ctx context.Context, d *Desk[S], r eventstore.Recorded) error {
	facts, read, err := factsOf(ctx, d.store, r)
	if err != nil {
		return err
	}
	f.unfiled += read
	for _, fact := range facts {
		d.aggregate.Evolve(&f.state, fact)
	}
	f.revision, f.mark = r.Revision, eventstore.Mark{Position: r.Position, Event: r.ID}
	return nil
}
