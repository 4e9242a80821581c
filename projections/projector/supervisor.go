package projector

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"lieudit/eventstore/feed"
	"lieudit/schemas/table"
)

// registryPollInterval is how often the registry is asked which copies there are.
const registryPollInterval = 250 * time.Millisecond

// supervisor is the lanes that run, one Watermill handler each.
type supervisor struct {
	projector *Projector
	router    *message.Router
	running   map[string]*runningWorker
}

type runningWorker struct {
	worker  *worker
	handler *message.Handler
	stop    context.CancelFunc
	tasks   sync.WaitGroup
	release func()
}

// superviseWorkers keeps the lanes in step with the registry.
func (s *supervisor) superviseWorkers(ctx context.Context) {
	for ctx.Err() == nil {
		s.projector.recordRegistryErr(ctx, s.syncWorkers(ctx))
		select {
		case <-ctx.Done():
		case <-s.projector.registryWake:
		case <-time.After(registryPollInterval):
		}
	}
}

// recordRegistryErr remembers why the registry cannot be read, and tells once.
func (p *Projector) recordRegistryErr(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil && p.registryErr == nil {
		p.Log.Error("read models cannot be reached", "reason", err)
	}
	p.registryErr = err
}

// syncWorkers starts a lane for each copy that is to be filled, and ends the others.
func (s *supervisor) syncWorkers(ctx context.Context) error {
	all, err := s.projector.registry.Generations(ctx)
	if err != nil {
		return err
	}
	wanted := map[string]bool{}
	for _, m := range s.projector.models {
		found := false
		for _, c := range all {
			if c.IsOf(m.ReadModel) && (c.State == table.Serving || c.State == table.Building) {
				found, wanted[c.Name] = true, true
				err = errors.Join(err, s.startWorker(ctx, m, c))
			}
		}
		if !found {
			_, buildErr := s.projector.registry.BuildGeneration(ctx, m.ReadModel, true)
			err = errors.Join(err, buildErr)
			wake(s.projector.registryWake)
		}
	}
	for name := range s.running {
		if !wanted[name] && err == nil {
			s.stopWorker(name)
		}
	}
	return err
}

func (s *supervisor) startWorker(ctx context.Context, m Model, c table.Generation) error {
	if s.running[c.Name] != nil {
		return nil
	}
	db, release, err := s.projector.registry.OpenGeneration(ctx, c)
	if err != nil {
		return err
	}
	w := s.projector.newWorker(m, c, db)
	source := feed.Source{Store: s.projector.storeOf(m), Filter: m.Categories(), BatchEvents: m.BatchSize, MinInterval: m.MinInterval, LoadCheckpoint: w.resumeWhenOwner, OnError: w.recordStop}
	r := &runningWorker{worker: w, release: release}
	r.handler = s.router.AddConsumerHandler(c.Name, c.Name, feed.New(source), w.handleMessage)
	if err := s.router.RunHandlers(ctx); err != nil {
		release()
		return fmt.Errorf("%s: %w", c.Name, err)
	}
	tasksCtx, stop := context.WithCancel(ctx)
	r.stop = stop
	r.tasks.Go(func() { w.keepLease(tasksCtx) })
	if m.DropRows != nil {
		r.tasks.Go(func() { w.refoldStoppedAccounts(tasksCtx) })
	}
	r.tasks.Go(func() {
		w.superviseOwnerTask(tasksCtx, OwnedGeneration{Generation: c, DB: db}, s.projector.isServingFunc(m, c))
	})
	s.running[c.Name] = r
	return nil
}

func (p *Projector) newWorker(m Model, c table.Generation, db *table.DB) *worker {
	w := &worker{model: m, store: p.storeOf(m), codec: p.codec, lease: lease{db, p.registry.InstanceID, p.IsOnlyInstance}, log: p.Log.With("projection", c.Name),
		logged: &p.logged, refoldWake: make(chan struct{}, 1)}
	w.state.changed = make(chan struct{})
	w.serveWhenCaughtUp = p.serveOnceFunc(w, c)
	w.setDiverged = func(astray bool) { p.registry.SetDiverged(c, astray) }
	w.verifyGeneration = func(ctx context.Context) { p.verifyGeneration(ctx, m, c) }
	w.isDiverged = func() bool { return p.registry.IsDiverged(c) }
	p.mu.Lock()
	defer p.mu.Unlock()
	p.workers[c.Name] = w
	return w
}

// stopWorker stops a lane and waits for it.
func (s *supervisor) stopWorker(name string) {
	r := s.running[name]
	r.handler.Stop()
	<-r.handler.Stopped()
	s.removeWorker(name, r)
}

// removeAllWorkers ends what is left when the router has ended.
func (s *supervisor) removeAllWorkers() {
	for name, r := range s.running {
		s.removeWorker(name, r)
	}
}

func (s *supervisor) removeWorker(name string, r *runningWorker) {
	r.stop()
	r.tasks.Wait()
	r.worker.releaseLease(r.worker.currentState().reason)
	r.release()
	delete(s.running, name)
	s.projector.mu.Lock()
	defer s.projector.mu.Unlock()
	delete(s.projector.workers, name)
}

// isServingFunc says whether a copy is the one that answers.
func (p *Projector) isServingFunc(m Model, c table.Generation) func(context.Context) bool {
	return func(ctx context.Context) bool {
		now, err := p.registry.ServingGeneration(ctx, m.ReadModel)
		return err == nil && now.Name == c.Name
	}
}

// switchTimeout is how long a copy that has caught up waits for the position of the one that serves: then that one
// is from another log, or cannot go on, and is replaced all the same.
const switchTimeout = 2 * time.Second

// serveOnceFunc is how a lane makes its copy answer. Once it does there is nothing more to do.
func (p *Projector) serveOnceFunc(w *worker, c table.Generation) func(context.Context) error {
	var mu sync.Mutex
	return func(ctx context.Context) error {
		mu.Lock()
		defer mu.Unlock()
		if c.State != table.Building {
			return nil
		}
		done, err := p.serveGeneration(ctx, w, c)
		if done {
			c.State = table.Serving
		}
		return err
	}
}

// serveGeneration makes a copy that was being built answer, once it has caught up and is not behind the one that does.
func (p *Projector) serveGeneration(ctx context.Context, w *worker, c table.Generation) (bool, error) {
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
	err := p.registry.Read(ctx, w.model.ReadModel, func(db *table.DB) error {
		c, err := lease{db: db}.readCheckpoint(ctx)
		ahead = uint64(c.Position) > uint64(w.currentState().checkpoint.Position)
		return err
	})
	if errors.Is(err, table.ErrNotReady) || errors.Is(err, table.ErrDiverged) {
		err = nil
	}
	return ahead, err
}

// OwnedGeneration is a copy that serves, in the hands of the one instance that fills it.
type OwnedGeneration struct {
	Generation table.Generation
	DB         *table.DB
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
