package projector

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"golang.org/x/sync/semaphore"

	"lieudit/eventstore/feed"
	"lieudit/eventstore/sqldb"
)

// registryPollInterval is how often the supervisor reads the list of generations.
const registryPollInterval = 250 * time.Millisecond

// supervisor runs the workers, with one Watermill handler each. Only its own goroutine uses it.
type supervisor struct {
	projector *Projector
	router    *message.Router
	running   map[string]*runningWorker

	nextDrop    time.Time // when to try dropping superseded generations again
	dropsFailed bool      // whether the last drop failed, and that was logged
}

// runningWorker is a worker with everything that must end with it.
type runningWorker struct {
	worker  *worker
	handler *message.Handler   // receives the batches
	stop    context.CancelFunc // ends the tasks
	tasks   sync.WaitGroup     // keeping the lease, refolds, and the owner's task
	release func()             // closes the generation
}

// superviseWorkers keeps the workers in step with the registry until ctx ends.
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

// incidentGap is how long the registry must work before its next failure is a new incident: on a full disk it can be read,
// while every few seconds its leases cannot be renewed.
const incidentGap = 10 * time.Second

// recordRegistryErr keeps why the registry cannot be read, and logs it once per incident.
func (p *Projector) recordRegistryErr(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.registryErr = err; err == nil {
		return
	}
	if time.Since(p.registryFailedAt) > incidentGap {
		p.Log.Error("read models cannot be reached", "reason", err)
	}
	p.registryFailedAt = time.Now()
}

// syncWorkers starts a worker for each generation to be filled, and stops the others. A model without a generation gets its
// first one. If anything fails, no worker is stopped; the next call tries again.
func (s *supervisor) syncWorkers(ctx context.Context) error {
	if err := s.removeDamaged(ctx); err != nil {
		return err
	}
	all, err := s.projector.registry.Generations(ctx)
	if err != nil {
		return err
	}
	wanted := map[string]bool{}
	for _, m := range s.projector.models {
		found := false
		for _, g := range all {
			if g.IsOf(m.ReadModel) && (g.State == sqldb.Serving || g.State == sqldb.Building) {
				found, wanted[g.Name] = true, true
				err = errors.Join(err, ignoreDamage(s.startWorker(ctx, m, g)))
			}
		}
		if !found {
			_, buildErr := s.projector.registry.BuildGeneration(ctx, m.ReadModel, true)
			if err = errors.Join(err, buildErr); buildErr == nil {
				wake(s.projector.registryWake) // to start its worker. After a failure the next poll is soon enough
			}
		}
	}
	for name := range s.running {
		if !wanted[name] && err == nil {
			s.stopWorker(name)
		}
	}
	s.dropSuperseded(ctx, all)
	return err
}

// dropInterval is the pause between two attempts to drop generations that an instance still reads, or that cannot be dropped.
const dropInterval = 5 * time.Second

// dropSuperseded drops the superseded generations of all models, so that each rebuild leaves only the one that served before
// it. The instance that promotes a generation tries at once; every instance retries later what cannot be dropped yet.
func (s *supervisor) dropSuperseded(ctx context.Context, all []sqldb.Generation) {
	if time.Now().Before(s.nextDrop) {
		return
	}
	var failed error
	for _, m := range s.projector.models {
		if len(sqldb.Superseded(all, m.ReadModel)) == 0 {
			continue
		}
		s.nextDrop = time.Now().Add(dropInterval)
		dropped, err := s.projector.registry.DropSuperseded(ctx, m.ReadModel)
		for _, name := range dropped {
			s.projector.Log.Info("generation dropped: another has served since", "generation", name)
		}
		failed = errors.Join(failed, err)
	}
	if failed != nil && !s.dropsFailed && ctx.Err() == nil { // one log line per incident
		s.projector.Log.Warn("generations that nobody reads could not be dropped", "reason", failed)
	}
	s.dropsFailed = failed != nil
}

// removeDamaged stops the workers of generations whose files are lost or damaged, and moves the files aside. syncWorkers then
// finds the model without a generation.
func (s *supervisor) removeDamaged(ctx context.Context) error {
	registry := s.projector.registry
	registry.CheckFiles(ctx)
	for _, name := range registry.Damaged() {
		if s.running[name] != nil {
			s.stopWorker(name)
		}
		if err := registry.PutAside(ctx, name); err != nil {
			return fmt.Errorf("putting %s aside: %w", name, err)
		}
	}
	return nil
}

// ignoreDamage drops the error of a generation whose file is damaged: the registry has logged it, and removeDamaged is next.
func ignoreDamage(err error) error {
	if _, isDamaged := errors.AsType[*sqldb.DamagedError](err); isDamaged {
		return nil
	}
	return err
}

// startWorker opens a generation and starts its worker: the feed handler, the renewal of the lease, refolds, and the task of
// the owner. It does nothing if the worker is already running.
func (s *supervisor) startWorker(ctx context.Context, m Model, g sqldb.Generation) error {
	if s.running[g.Name] != nil {
		return nil
	}
	db, release, err := s.projector.registry.OpenGeneration(ctx, g)
	if err != nil {
		return err
	}
	w, batches := s.projector.newWorker(ctx, m, g, db)
	r := &runningWorker{worker: w, release: release}
	r.handler = s.router.AddConsumerHandler(g.Name, g.Name, batches, w.handleMessage)
	if err := s.router.RunHandlers(ctx); err != nil {
		release()
		return fmt.Errorf("%s: %w", g.Name, err)
	}
	tasksCtx, stop := context.WithCancel(ctx)
	r.stop = stop
	r.tasks.Go(func() { w.keepLease(tasksCtx) })
	if m.DropRows != nil {
		r.tasks.Go(func() { w.refoldStoppedAccounts(tasksCtx) })
	}
	r.tasks.Go(func() {
		w.superviseOwnerTask(tasksCtx, OwnedGeneration{Generation: g, DB: db}, s.projector.isServingFunc(m, g))
	})
	s.running[g.Name] = r
	return nil
}

// maxSharedInterval is the longest Model.MinInterval if other instances may read the rows: they cannot hurry the feed.
const maxSharedInterval = 200 * time.Millisecond

// newWorker makes the worker of a generation with its feed, and registers it for workerOf.
func (p *Projector) newWorker(ctx context.Context, m Model, g sqldb.Generation, db *sqldb.DB) (*worker, *feed.Feed) {
	w := &worker{model: m, store: p.storeOf(m), codec: p.codec, lease: lease{db, p.registry.InstanceID, p.IsOnlyInstance}, log: p.Log.With("projection", g.Name),
		logged: &p.logged, refoldWake: make(chan struct{}, 1), batchSlot: make(chan struct{}, 1), scrubLock: semaphore.NewWeighted(1)}
	w.state.changed = make(chan struct{})
	w.serveWhenCaughtUp = p.serveOnceFunc(w, g)
	w.scrub = func(ctx context.Context) (time.Duration, error) { return p.registry.Scrub(ctx, m.ReadModel, g, db) }
	w.noteDamage = func(err error) { p.registry.NoteDamage(g, err) }
	w.setDiverged = func(diverged bool) { p.registry.SetDiverged(g, diverged) }
	w.verifyGeneration = func(ctx context.Context) { p.verifyGeneration(ctx, m, g) }
	w.rebuild = p.rebuildOnceFunc(m)
	w.isDiverged = func() bool { return p.registry.IsDiverged(g) }
	source := feed.Source{Store: w.store, Filter: m.Categories(), BatchEvents: m.BatchSize, MinInterval: m.MinInterval,
		LoadCheckpoint: w.resumeWhenOwner, OnError: func(err error) { w.recordStop(ctx, err) }}
	if !p.IsOnlyInstance {
		source.MinInterval = min(source.MinInterval, maxSharedInterval)
	}
	batches := feed.New(source)
	w.hurryFeed = batches.Hurry
	p.mu.Lock()
	defer p.mu.Unlock()
	p.workers[g.Name] = w
	return w, batches
}

// stopWorker stops a worker and waits for its end.
func (s *supervisor) stopWorker(name string) {
	r := s.running[name]
	r.handler.Stop()
	r.awaitHandler()
	s.removeWorker(name, r)
}

// awaitHandlers waits for the handlers of all workers, whose context has ended. The router would wait for them with its locks
// held, which handlers that have ended need.
func (s *supervisor) awaitHandlers() {
	for _, r := range s.running {
		r.awaitHandler()
	}
}

// awaitHandler waits until the handler has ended and has applied its last batch: Watermill does not wait for that.
func (r *runningWorker) awaitHandler() {
	<-r.handler.Stopped()
	r.worker.awaitBatch()
}

// removeAllWorkers ends the remaining workers once the router has ended.
func (s *supervisor) removeAllWorkers() {
	for name, r := range s.running {
		s.removeWorker(name, r)
	}
}

// removeWorker ends the tasks of a worker whose handler has ended, gives back its lease, and closes its generation, in this
// order: the tasks need the lease, and the lease needs the database.
func (s *supervisor) removeWorker(name string, r *runningWorker) {
	r.stop()
	r.tasks.Wait()
	r.worker.releaseLease(context.Background(), r.worker.currentState().reason) // the worker's context may have ended
	r.release()
	delete(s.running, name)
	s.projector.mu.Lock()
	defer s.projector.mu.Unlock()
	delete(s.projector.workers, name)
}

// isServingFunc returns a function that reports whether a generation is the serving one.
func (p *Projector) isServingFunc(m Model, g sqldb.Generation) func(context.Context) bool {
	return func(ctx context.Context) bool {
		now, err := p.registry.ServingGeneration(ctx, m.ReadModel)
		return err == nil && now.Name == g.Name
	}
}

// switchTimeout is how long a caught-up generation waits to pass the position of the serving one. After that the serving one
// belongs to another log or is stuck, and is replaced all the same.
const switchTimeout = 2 * time.Second

// refoldTimeout is how long a generation waits for the refolds of its accounts, from when it first caught up. A generation
// meets every event that was ever unusable again, and stops its account until it has folded the correction, which comes later
// on the log.
const refoldTimeout = 5 * time.Minute

// serveOnceFunc returns a function that makes a generation serve as soon as it may, and then does nothing. Several goroutines
// may call it: the handler calls it after a batch, and keepLease after a renewal. One of them tries at a time, and the others
// do not wait for it: a lease must be renewed however slow the database is.
func (p *Projector) serveOnceFunc(w *worker, g sqldb.Generation) func(context.Context) error {
	var mu sync.Mutex
	return func(ctx context.Context) error {
		if !mu.TryLock() {
			return nil
		}
		defer mu.Unlock()
		if g.State != sqldb.Building {
			return nil
		}
		done, err := p.serveGeneration(ctx, w, g)
		if done {
			g.State = sqldb.Serving
		}
		return err
	}
}

// serveGeneration makes a generation under construction serve, once it has caught up, is not behind the serving one, and
// answers for every account that the serving one answers for.
func (p *Projector) serveGeneration(ctx context.Context, w *worker, g sqldb.Generation) (bool, error) {
	now := w.currentState()
	if now.caughtUpAt.IsZero() {
		return false, nil
	}
	if time.Since(now.caughtUpAt) < switchTimeout {
		ahead, err := p.isServingAhead(ctx, w)
		if err != nil || ahead {
			return false, err
		}
	}
	if time.Since(now.caughtUpFirst) < refoldTimeout {
		isWaiting, err := p.isWaitingForRefolds(ctx, w)
		if err != nil || isWaiting {
			return false, err
		}
	}
	if err := p.registry.PromoteGeneration(ctx, w.model.ReadModel, g); err != nil {
		return false, err
	}
	w.log.Info("generation serves")
	wake(p.registryWake)
	return true, nil
}

// isServingAhead reports whether the serving generation is at a later position than the worker's.
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

// isWaitingForRefolds reports whether accounts of the worker's generation still wait for a refold while another generation
// answers for them.
func (p *Projector) isWaitingForRefolds(ctx context.Context, w *worker) (bool, error) {
	due, err := w.dueRefolds(ctx)
	if err != nil || len(due) == 0 {
		return false, err
	}
	err = p.registry.Read(ctx, w.model.ReadModel, func(*sqldb.DB) error { return nil })
	return err == nil, nil
}

// OwnedGeneration is a serving generation that this instance fills. It is passed to a model's OwnerTask.
type OwnedGeneration struct {
	Generation sqldb.Generation
	DB         *sqldb.DB
	// Changed returns a channel that is closed when rows may have changed since the call.
	Changed func() <-chan struct{}
}

// superviseOwnerTask runs the model's OwnerTask whenever this instance owns the generation and it serves, and ends the task
// when either changes.
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

// runOwnerTask runs the task once, as long as this instance owns the generation.
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
