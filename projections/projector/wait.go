package projector

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"lieudit/eventstore"
	"lieudit/schemas/table"
)

// ErrDown: a read model does not advance at the moment; waiting for it is no use.
var ErrDown = errors.New("projection is down")

const (
	pollEvery = 10 * time.Millisecond
	// vacancy is how long a copy may be without an owner before nobody is expected to take over.
	vacancy = 2 * leaseFor
)

// Wait returns when the copies this instance answers from have passed a position: those of the named models, or of
// all that there are when none is named. Name those that read the category of the event at the position: others may
// not get there. It fails with ErrDown at once when a projection is known to stand still, and with
// the context's error when ctx ends first.
func (p *Projector) Wait(ctx context.Context, position eventstore.Position, names ...string) error {
	for _, m := range p.models {
		if len(names) > 0 && !slices.Contains(names, m.Name) {
			continue
		}
		if err := p.wait(ctx, m, position); err != nil {
			return fmt.Errorf("%s: %w", m.Name, err)
		}
	}
	return nil
}

// WaitAll returns when the copy of a model that this instance answers from holds all that its log holds now. It fails
// as Wait does.
func (p *Projector) WaitAll(ctx context.Context, name string) error {
	m, err := p.model(name)
	if err != nil {
		return err
	}
	at, err := p.seen(ctx, m)
	if err != nil {
		return fmt.Errorf("%s: %w: %w", name, ErrDown, err)
	}
	for s, err := range p.storeOf(m).ReadAll(ctx, at, m.Categories) {
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if s.Kind == eventstore.Event {
			at = s.Mark
		}
	}
	return p.Wait(ctx, at.Position, name)
}

// Seen is up to where the copy of a model that this instance answers from holds the log: the zero Mark when there is none yet.
func (p *Projector) Seen(ctx context.Context, name string) (eventstore.Mark, error) {
	m, err := p.model(name)
	if err != nil {
		return eventstore.Mark{}, err
	}
	at, err := p.seen(ctx, m)
	if errors.Is(err, table.ErrNone) {
		return eventstore.Mark{}, nil
	}
	return at, err
}

func (p *Projector) seen(ctx context.Context, m Model) (at eventstore.Mark, err error) {
	err = p.shelf.Read(ctx, m.Model, func(db *table.DB) error {
		c, err := lease{db: db}.checkpoint(ctx)
		if err == nil {
			at, err = markOf(c)
		}
		return err
	})
	return at, err
}

func (p *Projector) wait(ctx context.Context, m Model, position eventstore.Position) error {
	for {
		ok, changed, err := p.passed(ctx, m, position)
		if err != nil || ok {
			return err
		}
		poll := time.NewTimer(pollEvery)
		if changed != nil {
			poll.Reset(lookEvery)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		case <-poll.C:
		}
		poll.Stop()
	}
}

// passed says whether the copy that is read has passed a position; if not, changed is closed when it may have, where this
// instance fills it itself.
func (p *Projector) passed(ctx context.Context, m Model, position eventstore.Position) (ok bool, changed chan struct{}, err error) {
	err = p.shelf.ReadCopy(ctx, m.Model, func(c table.Copy, db *table.DB) error {
		if l := p.laneOf(c.Name); l != nil {
			if now := l.now(); now.owns {
				ok, changed = now.mark.Position >= position, now.changed
				return nil
			}
		}
		ok, err = elsewhere(ctx, db, position)
		return err
	})
	if errors.Is(err, table.ErrNone) { // the first copy ever is being filled
		return false, nil, nil
	}
	if err != nil && ctx.Err() == nil && !errors.Is(err, ErrDown) {
		err = fmt.Errorf("%w: %w", ErrDown, err)
	}
	return ok, changed, err
}

// elsewhere asks the database how far another instance has got.
func elsewhere(ctx context.Context, db *table.DB, position eventstore.Position) (bool, error) {
	var at, vacant int64
	var reason string
	err := db.QueryRow(ctx, "select position, reason, "+db.Now()+" - until from checkpoint").Scan(&at, &reason, &vacant)
	switch {
	case err != nil:
		return false, err
	case eventstore.Position(at) >= position:
		return true, nil
	case reason != "":
		return false, fmt.Errorf("%w: %s", ErrDown, reason)
	case vacant > vacancy.Microseconds():
		return false, fmt.Errorf("%w: no instance fills it", ErrDown)
	}
	return false, nil
}

func (p *Projector) laneOf(name string) *lane {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lanes[name]
}
