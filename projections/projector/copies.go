package projector

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"lieudit/eventstore/sqldb"
	"lieudit/schemas/table"
)

// switchTimeout is how long a copy that has caught up waits for the position of the one that serves: then that one
// is from another log, or cannot go on, and is replaced all the same.
const switchTimeout = 2 * time.Second

// ErrUnknownModel: there is no read model of that name.
var ErrUnknownModel = errors.New("no such read model")

// Rebuild begins a fresh copy of a model, from the first event on, and gives its name. The copy that serves goes on
// serving until the fresh one has caught up. A rebuild that is under way is given up for this one.
func (p *Projector) Rebuild(ctx context.Context, name string) (string, error) {
	m, err := p.modelNamed(name)
	if err != nil {
		return "", err
	}
	c, err := p.registry.BuildGeneration(ctx, m.ReadModel, false)
	wake(p.registryWake)
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
	models := make([]table.ReadModel, len(p.models))
	for i, m := range p.models {
		models[i] = m.ReadModel
		if _, err := p.registry.ServingGeneration(ctx, m.ReadModel); err != nil && !errors.Is(err, sqldb.ErrNotReady) {
			return nil, err
		}
	}
	return p.registry.Prune(ctx, models...)
}

func (p *Projector) modelNamed(name string) (Model, error) {
	for _, m := range p.models {
		if m.Name == name {
			return m, nil
		}
	}
	return Model{}, fmt.Errorf("%w: %q", ErrUnknownModel, name)
}

// serveOnceFunc is how a lane makes its copy answer. Once it does there is nothing more to do.
func (p *Projector) serveOnceFunc(w *worker, c sqldb.Generation) func(context.Context) error {
	var mu sync.Mutex
	return func(ctx context.Context) error {
		mu.Lock()
		defer mu.Unlock()
		if c.State != sqldb.Building {
			return nil
		}
		done, err := p.serveGeneration(ctx, w, c)
		if done {
			c.State = sqldb.Serving
		}
		return err
	}
}

// serveGeneration makes a copy that was being built answer, once it has caught up and is not behind the one that does.
func (p *Projector) serveGeneration(ctx context.Context, w *worker, c sqldb.Generation) (bool, error) {
	caughtUpAt := w.currentState().caughtUpAt
	if caughtUpAt.IsZero() {
		return false, nil
	}
	if time.Since(caughtUpAt) < switchTimeout {
		ahead, err := p.isServingAhead(ctx, w)
		if err != nil || ahead {
			return false, err
		}
	}
	if err := p.registry.PromoteGeneration(ctx, w.model.ReadModel, c); err != nil {
		return false, err
	}
	w.log.Info("copy serves")
	wake(p.registryWake)
	return true, nil
}

// isServingAhead says whether the copy that serves has seen more of the log than the lane's.
func (p *Projector) isServingAhead(ctx context.Context, w *worker) (bool, error) {
	ahead := false
	err := p.registry.Read(ctx, w.model.ReadModel, func(db *sqldb.DB) error {
		c, err := lease{db: db}.readCheckpoint(ctx)
		ahead = uint64(c.Position) > uint64(w.currentState().checkpoint.Position)
		return err
	})
	if errors.Is(err, sqldb.ErrNotReady) || errors.Is(err, sqldb.ErrDiverged) {
		err = nil
	}
	return ahead, err
}
