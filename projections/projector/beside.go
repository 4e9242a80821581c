package projector

import (
	"context"
	"time"

	"lieudit/eventstore/sqldb"
)

// OwnedGeneration is a copy that serves, in the hands of the one instance that fills it.
type OwnedGeneration struct {
	Generation sqldb.Generation
	DB         *sqldb.DB
	// Changed is closed when rows may have changed since it was asked for.
	Changed func() <-chan struct{}
}

// superviseOwnerTask runs what the model has done beside the copy whenever this instance owns it and it serves, and lets it end when
// that is over.
func (w *worker) superviseOwnerTask(ctx context.Context, o OwnedGeneration, serves func(context.Context) bool) {
	if w.model.OwnerTask == nil {
		return
	}
	o.Changed = func() <-chan struct{} { return w.currentState().changed }
	for ctx.Err() == nil {
		now := w.currentState()
		if now.isOwner && serves(ctx) {
			w.runOwnerTask(ctx, o)
		}
		select {
		case <-ctx.Done():
		case <-now.changed:
		case <-time.After(renewInterval):
		}
	}
}

// runOwnerTask runs it for as long as this instance owns the copy.
func (w *worker) runOwnerTask(ctx context.Context, o OwnedGeneration) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.model.OwnerTask(ctx, o)
	}()
	for now := w.currentState(); now.isOwner; now = w.currentState() {
		select {
		case <-ended:
			return
		case <-now.changed:
		}
	}
	stop()
	<-ended
}

// isServingFunc says whether a copy is the one that answers.
func (p *Projector) isServingFunc(m Model, c sqldb.Generation) func(context.Context) bool {
	return func(ctx context.Context) bool {
		now, err := p.registry.ServingGeneration(ctx, m.ReadModel)
		return err == nil && now.Name == c.Name
	}
}
