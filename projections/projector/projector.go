package projector

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"

	"lieudit/eventstore"
	"lieudit/eventstore/feed"
	"lieudit/eventstore/sqldb"
)

// Projector fills the copies of read models on a shelf, together with the projectors of other instances.
type Projector struct {
	Log *slog.Logger // one line when a projection stops and when it goes on; slog.Default() unless set before Run
	// IsOnlyInstance says, before Run, that no other instance can be alive: what one left behind is taken over at once.
	IsOnlyInstance bool

	store         eventstore.Store
	codec         *eventstore.Codec
	registry      *sqldb.Registry
	models        []Model
	storesByModel map[string]eventstore.Store // the logs of the models that are not about store, by model

	registryWake chan struct{} // look at the registry now
	mu           sync.Mutex
	workers      map[string]*worker // by copy
	registryErr  error              // why the registry cannot be read
	logged       loggedIncidents
}

// New is a projector of models. Nothing happens before Run.
func New(store eventstore.Store, codec *eventstore.Codec, registry *sqldb.Registry, models ...Model) *Projector {
	return &Projector{Log: slog.Default(), store: store, codec: codec, registry: registry, models: models,
		storesByModel: map[string]eventstore.Store{}, registryWake: make(chan struct{}, 1), workers: map[string]*worker{}}
}

// AddModelFrom adds a model of another log, before Run. Positions of the two logs say nothing about each other: who waits
// names the models of the log that the position is of.
func (p *Projector) AddModelFrom(store eventstore.Store, m Model) {
	p.models = append(p.models, m)
	p.storesByModel[m.Name] = store
}

// storeOf is what a model is filled from.
func (p *Projector) storeOf(m Model) eventstore.Store {
	if other, ok := p.storesByModel[m.Name]; ok {
		return other
	}
	return p.store
}

// registryPollInterval is how often the registry is asked which copies there are.
const registryPollInterval = 250 * time.Millisecond

// Run fills the copies until ctx ends. It survives the log and the database going away; each copy's status says
// what it waits for.
func (p *Projector) Run(ctx context.Context) error {
	router, err := message.NewRouter(message.RouterConfig{CloseTimeout: 10 * time.Second}, watermill.NopLogger{})
	if err != nil {
		return err
	}
	s := &supervisor{projector: p, router: router, running: map[string]*runningWorker{}}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		defer cancel()
		ended <- router.Run(ctx)
	}()
	<-router.Running()
	s.superviseWorkers(ctx)
	err = errors.Join(router.Close(), <-ended)
	s.removeAllWorkers()
	return err
}

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
			if c.IsOf(m.ReadModel) && (c.State == sqldb.Serving || c.State == sqldb.Building) {
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

func (s *supervisor) startWorker(ctx context.Context, m Model, c sqldb.Generation) error {
	if s.running[c.Name] != nil {
		return nil
	}
	db, release, err := s.projector.registry.OpenGeneration(ctx, c)
	if err != nil {
		return err
	}
	w := s.projector.newWorker(m, c, db)
	source := feed.Source{Store: s.projector.storeOf(m), Filter: m.Categories, BatchEvents: m.BatchSize, MinInterval: m.MinInterval, LoadCheckpoint: w.resumeWhenOwner, OnError: w.recordStop}
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

func (p *Projector) newWorker(m Model, c sqldb.Generation, db *sqldb.DB) *worker {
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

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
