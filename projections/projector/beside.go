package projector

import (
	"context"
	"time"

	"lieudit/schemas/table"
)

// Owned is a copy that serves, in the hands of the one instance that fills it.
type Owned struct {
	Copy table.Copy
	DB   *table.DB
	// Moved is closed when rows may have changed since it was asked for.
	Moved func() <-chan struct{}
}

// attend runs what the model has done beside the copy whenever this instance owns it and it serves, and lets it end when
// that is over.
func (l *lane) attend(ctx context.Context, o Owned, serves func(context.Context) bool) {
	if l.model.Beside == nil {
		return
	}
	o.Moved = func() <-chan struct{} { return l.now().changed }
	for ctx.Err() == nil {
		now := l.now()
		if now.owns && serves(ctx) {
			l.accompany(ctx, o)
		}
		select {
		case <-ctx.Done():
		case <-now.changed:
		case <-time.After(renewEvery):
		}
	}
}

// accompany runs it for as long as this instance owns the copy.
func (l *lane) accompany(ctx context.Context, o Owned) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		l.model.Beside(ctx, o)
	}()
	for now := l.now(); now.owns; now = l.now() {
		select {
		case <-ended:
			return
		case <-now.changed:
		}
	}
	stop()
	<-ended
}

// serves says whether a copy is the one that answers.
func (p *Projector) serves(m Model, c table.Copy) func(context.Context) bool {
	return func(ctx context.Context) bool {
		now, err := p.shelf.Reads(ctx, m.Model)
		return err == nil && now.Name == c.Name
	}
}
