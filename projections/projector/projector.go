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
	"lieudit/schemas/table"
)

// Projector fills the copies of read models on a shelf, together with the projectors of other instances.
type Projector struct {
	Log *slog.Logger // one line when a projection stops and when it goes on; slog.Default() unless set before Run
	// Alone says, before Run, that no other instance can be alive: what one left behind is taken over at once.
	Alone bool

	store  eventstore.Store
	codec  *eventstore.Codec
	shelf  *table.Shelf
	models []Model
	others map[string]eventstore.Store // the logs of the models that are not about store, by model

	nudge  chan struct{} // look at the registry now
	mu     sync.Mutex
	lanes  map[string]*lane // by copy
	down   error            // why the registry cannot be read
	logged loggedIncidents
}

// New is a projector of models. Nothing happens before Run.
func New(store eventstore.Store, codec *eventstore.Codec, shelf *table.Shelf, models ...Model) *Projector {
	return &Projector{Log: slog.Default(), store: store, codec: codec, shelf: shelf, models: models,
		others: map[string]eventstore.Store{}, nudge: make(chan struct{}, 1), lanes: map[string]*lane{}}
}

// Follow adds a model of another log, before Run. Positions of the two logs say nothing about each other: who waits
// names the models of the log that the position is of.
func (p *Projector) Follow(store eventstore.Store, m Model) {
	p.models = append(p.models, m)
	p.others[m.Name] = store
}

// storeOf is what a model is filled from.
func (p *Projector) storeOf(m Model) eventstore.Store {
	if other, ok := p.others[m.Name]; ok {
		return other
	}
	return p.store
}

// lookEvery is how often the registry is asked which copies there are.
const lookEvery = 250 * time.Millisecond

// Run fills the copies until ctx ends. It survives the log and the database going away; each copy's status says
// what it waits for.
func (p *Projector) Run(ctx context.Context) error {
	router, err := message.NewRouter(message.RouterConfig{CloseTimeout: 10 * time.Second}, watermill.NopLogger{})
	if err != nil {
		return err
	}
	f := &floor{p: p, router: router, running: map[string]*run{}}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		defer cancel()
		ended <- router.Run(ctx)
	}()
	<-router.Running()
	f.watch(ctx)
	err = errors.Join(router.Close(), <-ended)
	f.clear()
	return err
}

// floor is the lanes that run, one Watermill handler each.
type floor struct {
	p       *Projector
	router  *message.Router
	running map[string]*run
}

type run struct {
	lane    *lane
	handler *message.Handler
	stop    context.CancelFunc
	keeper  sync.WaitGroup
	release func()
}

// watch keeps the lanes in step with the registry.
func (f *floor) watch(ctx context.Context) {
	for ctx.Err() == nil {
		f.p.note(ctx, f.arrange(ctx))
		select {
		case <-ctx.Done():
		case <-f.p.nudge:
		case <-time.After(lookEvery):
		}
	}
}

// note remembers why the registry cannot be read, and tells once.
func (p *Projector) note(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil && p.down == nil {
		p.Log.Error("read models cannot be reached", "reason", err)
	}
	p.down = err
}

// arrange starts a lane for each copy that is to be filled, and ends the others.
func (f *floor) arrange(ctx context.Context) error {
	all, err := f.p.shelf.Copies(ctx)
	if err != nil {
		return err
	}
	wanted := map[string]bool{}
	for _, m := range f.p.models {
		found := false
		for _, c := range all {
			if c.Of(m.Model) && (c.State == table.Serving || c.State == table.Building) {
				found, wanted[c.Name] = true, true
				err = errors.Join(err, f.start(ctx, m, c))
			}
		}
		if !found {
			_, buildErr := f.p.shelf.Build(ctx, m.Model, true)
			err = errors.Join(err, buildErr)
			wake(f.p.nudge)
		}
	}
	for name := range f.running {
		if !wanted[name] && err == nil {
			f.end(name)
		}
	}
	return err
}

func (f *floor) start(ctx context.Context, m Model, c table.Copy) error {
	if f.running[c.Name] != nil {
		return nil
	}
	db, release, err := f.p.shelf.Use(ctx, c)
	if err != nil {
		return err
	}
	l := f.p.lane(m, c, db)
	source := feed.Source{Store: f.p.storeOf(m), Want: m.Categories, Batch: m.Batch, Pace: m.Pace, From: l.from, Ended: l.ended}
	r := &run{lane: l, release: release}
	r.handler = f.router.AddConsumerHandler(c.Name, c.Name, feed.New(source), l.take)
	if err := f.router.RunHandlers(ctx); err != nil {
		release()
		return fmt.Errorf("%s: %w", c.Name, err)
	}
	keeping, stop := context.WithCancel(ctx)
	r.stop = stop
	r.keeper.Go(func() { l.keep(keeping) })
	if m.Drop != nil {
		r.keeper.Go(func() { l.runRefolds(keeping) })
	}
	r.keeper.Go(func() { l.attend(keeping, Owned{Copy: c, DB: db}, f.p.serves(m, c)) })
	f.running[c.Name] = r
	return nil
}

func (p *Projector) lane(m Model, c table.Copy, db *table.DB) *lane {
	l := &lane{model: m, store: p.storeOf(m), codec: p.codec, lease: lease{db, p.shelf.Instance, p.Alone}, log: p.Log.With("projection", c.Name),
		logged: &p.logged, refoldWake: make(chan struct{}, 1)}
	l.standing.changed = make(chan struct{})
	l.serve = p.server(l, c)
	l.setAstray = func(astray bool) { p.shelf.SetAstray(c, astray) }
	l.verify = func(ctx context.Context) { p.verify(ctx, m, c) }
	l.isAstray = func() bool { return p.shelf.IsAstray(c) }
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lanes[c.Name] = l
	return l
}

// end stops a lane and waits for it.
func (f *floor) end(name string) {
	r := f.running[name]
	r.handler.Stop()
	<-r.handler.Stopped()
	f.forget(name, r)
}

// clear ends what is left when the router has ended.
func (f *floor) clear() {
	for name, r := range f.running {
		f.forget(name, r)
	}
}

func (f *floor) forget(name string, r *run) {
	r.stop()
	r.keeper.Wait()
	r.lane.quit(r.lane.now().reason)
	r.release()
	delete(f.running, name)
	f.p.mu.Lock()
	defer f.p.mu.Unlock()
	delete(f.p.lanes, name)
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
