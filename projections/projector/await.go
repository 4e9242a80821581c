package projector

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"lieudit/eventstore"
	"lieudit/eventstore/sqldb"
)

// ErrDown: a read model is not advancing at the moment, so waiting for it is useless.
var ErrDown = errors.New("projection is down")

// errOwnerless is ErrDown after the lease has run out without being taken over.
var errOwnerless = fmt.Errorf("%w: no instance fills it", ErrDown)

const (
	positionPollInterval = 10 * time.Millisecond
	// ownerlessLimit is how long a generation may have no owner before no instance is expected to take over.
	ownerlessLimit = 2 * leaseDuration
	// ownerlessWait is how long it must also seem so by elapsed time: setting a database's clock forward ends every lease
	// until its owner renews it.
	ownerlessWait = 2 * renewInterval
)

// AwaitPosition returns once the generations that this instance serves have passed a position: those of the named models, or
// of all models if none are named. Name the models that read the category of the event at the position: others may never get
// there. It fails with ErrDown as soon as a model is known to be stuck, and with ctx's error if ctx ends first.
func (p *Projector) AwaitPosition(ctx context.Context, position eventstore.Position, names ...string) error {
	for _, m := range p.models {
		if len(names) > 0 && !slices.Contains(names, m.Name) {
			continue
		}
		if err := p.awaitModel(ctx, m, position); err != nil {
			return fmt.Errorf("%s: %w", m.Name, err)
		}
	}
	return nil
}

// AwaitCaughtUp returns once the serving generation of a model holds everything that its log holds now. It fails like
// AwaitPosition.
func (p *Projector) AwaitCaughtUp(ctx context.Context, name string) error {
	m, err := p.modelNamed(name)
	if err != nil {
		return err
	}
	at, err := p.servingCheckpoint(ctx, m)
	if err != nil {
		return fmt.Errorf("%s: %w: %w", name, ErrDown, err)
	}
	for s, err := range p.storeOf(m).ReadAll(ctx, at, m.Categories()) {
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if s.Kind == eventstore.EventAppeared {
			at = s.Checkpoint
		}
	}
	return p.AwaitPosition(ctx, at.Position, name)
}

// Checkpoint is the log position that the serving generation of a model has reached, the zero Checkpoint before there is one.
func (p *Projector) Checkpoint(ctx context.Context, name string) (eventstore.Checkpoint, error) {
	m, err := p.modelNamed(name)
	if err != nil {
		return eventstore.Checkpoint{}, err
	}
	at, err := p.servingCheckpoint(ctx, m)
	if errors.Is(err, sqldb.ErrNotReady) {
		return eventstore.Checkpoint{}, nil
	}
	return at, err
}

// servingCheckpoint reads the checkpoint of the serving generation. It fails with sqldb.ErrNotReady if none serves yet.
func (p *Projector) servingCheckpoint(ctx context.Context, m Model) (at eventstore.Checkpoint, err error) {
	err = p.registry.Read(ctx, m.ReadModel, func(db *sqldb.DB) error {
		c, err := lease{db: db}.readCheckpoint(ctx)
		if err == nil {
			at, err = checkpointOf(c)
		}
		return err
	})
	return at, err
}

// awaitModel polls the position of a model. A generation that this instance fills itself also wakes it; then it polls only
// occasionally, to see whether another generation has begun to serve.
func (p *Projector) awaitModel(ctx context.Context, m Model, position eventstore.Position) error {
	var ownerlessSince time.Time // zero: it has an owner
	for {
		ok, changed, err := p.hasPassed(ctx, m, position)
		switch {
		case !errors.Is(err, errOwnerless):
			ownerlessSince = time.Time{}
		case ownerlessSince.IsZero():
			ownerlessSince, err = time.Now(), nil
		case time.Since(ownerlessSince) < ownerlessWait:
			err = nil
		}
		if err != nil || ok {
			return err
		}
		poll := time.NewTimer(positionPollInterval)
		if changed != nil {
			poll.Reset(registryPollInterval)
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

// hasPassed reports whether the serving generation has passed a position. If it has not, and this instance fills it, the feed delivers
// what it holds back for the sake of larger transactions, and changed is closed when the answer may have changed.
func (p *Projector) hasPassed(ctx context.Context, m Model, position eventstore.Position) (ok bool, changed chan struct{}, err error) {
	err = p.registry.ReadGeneration(ctx, m.ReadModel, func(g sqldb.Generation, db *sqldb.DB) error {
		if w := p.workerOf(g.Name); w != nil {
			if now := w.currentState(); now.isOwner {
				if ok, changed = now.checkpoint.Position >= position, now.changed; !ok {
					w.hurryFeed()
				}
				return nil
			}
		}
		ok, err = hasOtherInstancePassed(ctx, db, position)
		return err
	})
	if errors.Is(err, sqldb.ErrNotReady) { // the first generation of the model is being filled
		return false, nil, nil
	}
	if err != nil && ctx.Err() == nil && !errors.Is(err, ErrDown) {
		err = fmt.Errorf("%w: %w", ErrDown, err)
	}
	return ok, changed, err
}

// hasOtherInstancePassed reads from the database how far another instance has filled the generation.
func hasOtherInstancePassed(ctx context.Context, db *sqldb.DB, position eventstore.Position) (bool, error) {
	var at, ownerless int64
	var reason string
	err := db.QueryRow(ctx, "select position, reason, "+db.Now()+" - until from {checkpoint}").Scan(&at, &reason, &ownerless)
	switch {
	case err != nil:
		return false, err
	case eventstore.Position(at) >= position:
		return true, nil
	case reason != "":
		return false, fmt.Errorf("%w: %s", ErrDown, reason)
	case ownerless > ownerlessLimit.Microseconds():
		return false, errOwnerless
	}
	return false, nil
}
