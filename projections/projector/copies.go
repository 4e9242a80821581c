package projector

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"lieudit/schemas/table"
)

// patience is how long a copy that has caught up waits for the position of the one that serves: then that one
// is from another log, or cannot go on, and is replaced all the same.
const patience = 2 * time.Second

// ErrUnknownModel: there is no read model of that name.
var ErrUnknownModel = errors.New("no such read model")

// Rebuild begins a fresh copy of a model, from the first event on, and gives its name. The copy that serves goes on
// serving until the fresh one has caught up. A rebuild that is under way is given up for this one.
func (p *Projector) Rebuild(ctx context.Context, name string) (string, error) {
	m, err := p.model(name)
	if err != nil {
		return "", err
	}
	c, err := p.shelf.Build(ctx, m.Model, false)
	wake(p.nudge)
	return c.Name, err
}

// RebuildAll is Rebuild of every model.
func (p *Projector) RebuildAll(ctx context.Context) error {
	for _, m := range p.models {
		if _, err := p.Rebuild(ctx, m.Name); err != nil {
			return fmt.Errorf("%s: %w", m.Name, err)
		}
	}
	return nil
}

// Prune drops the copies no instance uses any more, and gives their names.
func (p *Projector) Prune(ctx context.Context) ([]string, error) {
	models := make([]table.Model, len(p.models))
	for i, m := range p.models {
		models[i] = m.Model
		if _, err := p.shelf.Reads(ctx, m.Model); err != nil && !errors.Is(err, table.ErrNone) {
			return nil, err
		}
	}
	return p.shelf.Prune(ctx, models...)
}

func (p *Projector) model(name string) (Model, error) {
	for _, m := range p.models {
		if m.Name == name {
			return m, nil
		}
	}
	return Model{}, fmt.Errorf("%w: %q", ErrUnknownModel, name)
}

// server is how a lane makes its copy answer. Once it does there is nothing more to do.
func (p *Projector) server(l *lane, c table.Copy) func(context.Context) error {
	var mu sync.Mutex
	return func(ctx context.Context) error {
		mu.Lock()
		defer mu.Unlock()
		if c.State != table.Building {
			return nil
		}
		done, err := p.serve(ctx, l, c)
		if done {
			c.State = table.Serving
		}
		return err
	}
}

// serve makes a copy that was being built answer, once it has caught up and is not behind the one that does.
func (p *Projector) serve(ctx context.Context, l *lane, c table.Copy) (bool, error) {
	caught := l.now().caught
	if caught.IsZero() {
		return false, nil
	}
	if time.Since(caught) < patience {
		ahead, err := p.ahead(ctx, l)
		if err != nil || ahead {
			return false, err
		}
	}
	if err := p.shelf.Serve(ctx, l.model.Model, c); err != nil {
		return false, err
	}
	l.log.Info("copy serves")
	wake(p.nudge)
	return true, nil
}

// ahead says whether the copy that serves has seen more of the log than the lane's.
func (p *Projector) ahead(ctx context.Context, l *lane) (bool, error) {
	ahead := false
	err := p.shelf.Read(ctx, l.model.Model, func(db *table.DB) error {
		c, err := lease{db: db}.checkpoint(ctx)
		ahead = uint64(c.Position) > uint64(l.now().mark.Position)
		return err
	})
	if errors.Is(err, table.ErrNone) || errors.Is(err, table.ErrAstray) {
		err = nil
	}
	return ahead, err
}
