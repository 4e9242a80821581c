package commands

import (
	"context"
	"errors"
	"fmt"
	"maps"

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
	mark     eventstore.Mark              // of the event at revision
	sought   bool                         // its file was looked for
	voided   map[eventstore.Revision]bool // events that corrections name
	filed    int                          // bytes of its file
	unfiled  int                          // bytes of the log that were folded since
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
// any more (the log was restored from a copy), the state is folded anew. So it is when a correction names an event that
// is in the state. An event that cannot be used ends it with an *eventstore.UnusableError, until a correction names it.
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
		if named, ok := eventstore.Corrects(r); ok && !f.voided[named] {
			return f.correct(ctx, d)
		}
		if err := f.evolve(ctx, d, r); err != nil {
			return fmt.Errorf("%s@%d: %w", f.stream, r.Revision, err)
		}
	}
	if known {
		return nil
	}
	f.voided = nil
	return f.restart(ctx, d)
}

// restart folds the stream from its first event on.
func (f *fold[S]) restart(ctx context.Context, d *Desk[S]) error {
	var zero S
	f.state, f.revision, f.mark = zero, eventstore.NoStream, eventstore.Mark{}
	return f.forward(ctx, d)
}

// correct folds the stream again without the events that its corrections name.
func (f *fold[S]) correct(ctx context.Context, d *Desk[S]) (err error) {
	if f.voided, err = Voided(ctx, d.store, f.stream, 0); err != nil {
		return err
	}
	return f.restart(ctx, d)
}

func (f *fold[S]) evolve(ctx context.Context, d *Desk[S], r eventstore.Recorded) error {
	facts, read, err := f.facts(ctx, d.store, r)
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

// facts are what an event adds. Of one that cannot be used it looks further on in the stream whether a correction names it.
func (f *fold[S]) facts(ctx context.Context, store eventstore.Store, r eventstore.Recorded) ([]Fact, int, error) {
	if f.voided[r.Revision] {
		return nil, len(r.Data), nil
	}
	facts, read, err := factsOf(ctx, store, r)
	var unusable *eventstore.UnusableError
	if !errors.As(err, &unusable) {
		return facts, read, err
	}
	later, readErr := Voided(ctx, store, f.stream, r.Revision+1)
	if readErr != nil {
		return nil, 0, readErr
	}
	if !later[r.Revision] {
		return nil, 0, err
	}
	if f.voided == nil {
		f.voided = map[eventstore.Revision]bool{}
	}
	maps.Copy(f.voided, later)
	return nil, len(r.Data), nil
}

// Voided are the events that corrections in a stream name, those from a revision on.
func Voided(ctx context.Context, store eventstore.Store, stream string, from eventstore.Revision) (map[eventstore.Revision]bool, error) {
	named := map[eventstore.Revision]bool{}
	for r, err := range store.ReadStream(ctx, stream, from, eventstore.Forward) {
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", stream, err)
		}
		if revision, ok := eventstore.Corrects(r); ok {
			named[revision] = true
		}
	}
	return named, nil
}
