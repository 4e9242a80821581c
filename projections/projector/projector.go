// Package projector fills read models from the log. A read model is data: its tables, and a handler for each type of event
// that changes them. No event is ever skipped: rows and checkpoint change in one transaction, by one instance at a time, and
// a projection that cannot continue stops, reports why, and resumes. An event that cannot be used stops only its account,
// until the account's rows are rewritten from its streams.
//
// A supervisor keeps one worker for each generation (one filled set of a model's tables). The feed hands the worker batches
// of events, which take this path:
//
//	feed ──> worker.handleMessage ──> Model.decodeEvents ──> splitBatch ──> Model.expandCommits
//	                                                                              │ one transaction:
//	                          rows <── Changeset.flush <── Model.foldEvents <── filterEvents
//	                    checkpoint <── lease.advanceCheckpoint                    └─> account_status
//	                                                                                      │
//	                         rows of one account <── refold <─────────────────────────────┘
//
// A worker owns its generation while it holds the lease, which is stored in columns of the checkpoint row; workers of other
// instances wait for it. After appending an event, call Projector.AwaitPosition before reading rows.
//
// A generation serves queries, or is being built to replace the serving one (Rebuild). A commit is an event that makes the
// staged events of another stream real; expandCommits inserts them before it. A correction is an event that voids an earlier
// event of its stream. A refold rewrites the rows of one account without the voided events. A generation has diverged when
// its checkpoint is not on the log, because an older copy of the log was restored.
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
	"lieudit/eventstore/sqldb"
	"lieudit/schemas/table"
)

// Projector fills the generations of read models in a registry, together with the projectors of other instances. It is safe
// for concurrent use once Run is called.
type Projector struct {
	Log *slog.Logger // gets one line when a projection stops and one when it continues; slog.Default() unless set before Run
	// IsOnlyInstance means that no other instance can be alive, so that leases of dead ones are taken over at once. Set it
	// before Run.
	IsOnlyInstance bool

	store         eventstore.Store // of all models that are not in storesByModel
	codec         *eventstore.Codec
	registry      *sqldb.Registry
	models        []Model
	storesByModel map[string]eventstore.Store // the logs of the models that AddModelFrom added, by the model's name

	registryWake     chan struct{} // makes the supervisor read the registry now
	mu               sync.Mutex
	workers          map[string]*worker // by generation
	registryErr      error              // why the registry cannot be read
	registryFailedAt time.Time          // when that last happened
	logged           loggedIncidents
}

// New returns a projector of models of the log in store. It does nothing before Run.
func New(store eventstore.Store, codec *eventstore.Codec, registry *sqldb.Registry, models ...Model) *Projector {
	return &Projector{Log: slog.Default(), store: store, codec: codec, registry: registry, models: models,
		storesByModel: map[string]eventstore.Store{}, registryWake: make(chan struct{}, 1), workers: map[string]*worker{}}
}

// AddModelFrom adds a model of another log, before Run. Positions of the two logs cannot be compared: callers of
// AwaitPosition must name the models of the log that the position belongs to.
func (p *Projector) AddModelFrom(store eventstore.Store, m Model) {
	p.models = append(p.models, m)
	p.storesByModel[m.Name] = store
}

// storeOf is the log that a model is filled from.
func (p *Projector) storeOf(m Model) eventstore.Store {
	if other, ok := p.storesByModel[m.Name]; ok {
		return other
	}
	return p.store
}

// closeTimeout is how long a stopped handler may take for the batch that it is applying.
const closeTimeout = 10 * time.Second

// Run fills the generations until ctx ends. It survives outages of the log and the database; each generation's status shows
// what it waits for. Before it returns, every worker has ended and given back its lease. Call it once.
func (p *Projector) Run(ctx context.Context) error {
	router, err := message.NewRouter(message.RouterConfig{CloseTimeout: closeTimeout}, watermill.NopLogger{})
	if err != nil {
		return err
	}
	router.AddConsumerHandler("idle", "idle", idleSubscriber{}, func(*message.Message) error { return nil })
	s := &supervisor{projector: p, router: router, running: map[string]*runningWorker{}}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		defer cancel()
		ended <- router.Run(context.WithoutCancel(ctx)) // until it is closed: see idleSubscriber
	}()
	<-router.Running()
	s.superviseWorkers(ctx)
	s.awaitHandlers()
	err = errors.Join(router.Close(), <-ended)
	s.removeAllWorkers()
	return err
}

// idleSubscriber has no messages. Its handler keeps the router running until Close. Without it a router ends with its last handler, and
// all generations may be damaged at once. Adding a handler to a router that is ending may panic, because the router already waits on its
// WaitGroup.
type idleSubscriber struct{}

// Subscribe returns a channel that is closed when ctx ends.
func (idleSubscriber) Subscribe(ctx context.Context, _ string) (<-chan *message.Message, error) {
	c := make(chan *message.Message)
	context.AfterFunc(ctx, func() { close(c) })
	return c, nil
}

// Close does nothing: a router that is closed ends the context of this handler itself.
func (idleSubscriber) Close() error { return nil }

// ErrUnknownModel: there is no read model of that name.
var ErrUnknownModel = errors.New("no such read model")

// Rebuild begins a fresh generation of a model, from the first event on, and returns its name. The serving generation keeps
// serving until the fresh one has caught up. A rebuild in progress is abandoned.
func (p *Projector) Rebuild(ctx context.Context, name string) (string, error) {
	m, err := p.modelNamed(name)
	if err != nil {
		return "", err
	}
	g, err := p.registry.BuildGeneration(ctx, m.ReadModel, false)
	wake(p.registryWake)
	return g.Name, err
}

// RebuildAll rebuilds every model.
func (p *Projector) RebuildAll(ctx context.Context) error {
	for _, m := range p.models {
		if _, err := p.Rebuild(ctx, m.Name); err != nil {
			return fmt.Errorf("%s: %w", m.Name, err)
		}
	}
	return nil
}

// Prune drops the generations that no instance uses any more, and returns their names. It fails, and drops nothing, if the
// serving generation of a model cannot be read.
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

// modelNamed finds a model, or fails with ErrUnknownModel.
func (p *Projector) modelNamed(name string) (Model, error) {
	for _, m := range p.models {
		if m.Name == name {
			return m, nil
		}
	}
	return Model{}, fmt.Errorf("%w: %q", ErrUnknownModel, name)
}

// workerOf is this instance's worker for a generation, nil if there is none.
func (p *Projector) workerOf(name string) *worker {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.workers[name]
}

// eachGeneration runs f on the generations of this program's models that serve or are being built.
func (p *Projector) eachGeneration(ctx context.Context, f func(sqldb.Generation, *sqldb.DB) error) error {
	generations, err := p.registry.Generations(ctx)
	if err != nil {
		return err
	}
	for _, g := range generations {
		m, unknown := p.modelNamed(g.Model)
		if unknown != nil || !g.IsOf(m.ReadModel) || g.State != sqldb.Serving && g.State != sqldb.Building {
			continue
		}
		if err := p.useGeneration(ctx, g, f); err != nil {
			return fmt.Errorf("%s: %w", g.Name, err)
		}
	}
	return nil
}

// useGeneration runs f on an opened generation.
func (p *Projector) useGeneration(ctx context.Context, g sqldb.Generation, f func(sqldb.Generation, *sqldb.DB) error) error {
	db, release, err := p.registry.OpenGeneration(ctx, g)
	if err != nil {
		return err
	}
	defer release()
	return f(g, db)
}

// wake makes the receiver of a channel of capacity 1 check again, without waiting for it.
func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
