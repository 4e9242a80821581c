// Package service runs one instance of lieudit. Its one job is wiring: it decides which log, databases, searches and
// listeners an instance runs on, builds every part with what it needs, and starts and stops the parts in order. It is
// the only package that imports every part; it decides nothing about requests or events.
//
// Run takes a Config. openService locks the data folder and opens the parts from the log upwards; service.run then
// starts what works in the background (key ring, projector, change notifier, watchers of vintages and road networks, usage meter, closing of
// periods) and last the three listeners, that of the API once the key ring can check keys (lifetime.go). When the context ends,
// the listeners drain first, the background parts stop next, and close frees the parts in reverse order.
//
// A server that is down at start is no error: the parts connect by themselves, and readiness says what is missing. Only
// what an operator must decide refuses the start, such as a data folder in use or a vault that lacks keys.
package service

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"lieudit/cmd/lieudit/backup"
	"lieudit/cmd/lieudit/releases"
	"lieudit/commands/access"
	"lieudit/commands/account"
	"lieudit/commands/deployment"
	"lieudit/commands/locations"
	"lieudit/commands/repair"
	"lieudit/commands/usage"
	"lieudit/eventstore"
	"lieudit/eventstore/dirlock"
	"lieudit/eventstore/esdb"
	"lieudit/eventstore/journal"
	"lieudit/eventstore/sqldb"
	"lieudit/eventstore/vault"
	"lieudit/eventstore/waitlimit"
	"lieudit/http/bodylimit"
	"lieudit/http/clientip"
	"lieudit/projections/changes"
	"lieudit/projections/keyring"
	"lieudit/projections/projector"
	"lieudit/projections/searchindex"
	usageprojections "lieudit/projections/usage"
	"lieudit/queries/address/live"
	addressmeili "lieudit/queries/address/meili"
	"lieudit/queries/address/vintage"
	"lieudit/queries/locations/alert"
	"lieudit/queries/locations/geocode"
	"lieudit/queries/locations/meili"
	"lieudit/queries/route"
	routelive "lieudit/queries/route/live"
	"lieudit/queries/route/network"
	"lieudit/queries/route/outage"
	"lieudit/schemas/event"
	"lieudit/schemas/table"
)

// Files and folders of the data folder. Package releases names those of vintages and road networks.
const (
	coreLogFolder    = "log/core"
	usageLogFolder   = "log/usage"
	readModelsFolder = "readmodels"
	vaultFile        = "vault.db"
	keyRingFile      = "keyring"
	foldsFolder      = "folds"
	uploadsFolder    = "uploads"
)

// service is the parts of one instance. A request enters at a listener on the left and ends at a log, at the tables of
// the registry, at the live vintage or at the live network; events leave the logs to the right and come back as rows.
//
//	api.Handler ──> keyring.Ring <───────────────────────────┐
//	   │   ├──> live.Vintage <── releases.Watcher            │
//	   │   └──> live.Network <── releases.Watcher            │
//	   │                                                     │
//	customerarea.Handler ──> commands ──> logs ──> feed ─────┤
//	   │                                                     │
//	   └──> queries ──> sqldb.Registry <── projector.Projector
//	            └─────> changes.Notifier (last change of an account's sites)
type service struct {
	Config
	version string
	metrics *prometheus.Registry
	calls   *callMetrics

	closers        []func() error
	logs           logs
	vault          *vault.Bound       // data keys of personal fields
	vaultChanged   chan struct{}      // receives a value when a vault becomes valid
	registry       *sqldb.Registry    // databases of the read models
	waitLimiter    *waitlimit.Limiter // bounds the requests that wait for a slow log
	keyRing        *keyring.Ring
	projector      *projector.Projector
	changes        *changes.Notifier
	accounts       *account.Accounts
	tokens         *access.Tokens
	repairs        *repair.Repairs
	deployment     *deployment.Deployment
	ledger         *usage.Meter
	locations      *locations.Locations
	siteEngine     *meili.Engine        // nil: sites are searched in memory
	siteIndexer    *searchindex.Indexer // fills the index that siteEngine searches; nil without it
	hasCaughtUp    atomic.Bool          // the read models have caught up once
	usageLoss      *usageLoss           // what the start found; nil: nothing
	liveVintage    *live.Vintage
	siteAlerts     *alert.Checker
	addressIndex   *addressmeili.Indexes // nil: vintages are searched by their own index
	vintageWatcher *releases.Watcher[*vintage.Vintage]
	router         route.Router   // routeServer, then liveNetwork
	routeServer    *outage.Router // nil: the own engine finds all routes
	liveNetwork    *routelive.Network
	networkWatcher *releases.Watcher[*network.Network]
	servedNetwork  atomic.Pointer[servedNetwork] // nil: none

	bodyBudget     *bodylimit.Budget
	uploadBudget   *bodylimit.Budget // of files on disk
	gc             gcTuner
	clients        *clientip.Finder
	api, area, ops *listener
	isStopping     atomic.Bool // the context of Run has ended
}

// Run runs an instance until ctx ends. Then readiness says so and everything is served on for Drain, after which the sockets are
// closed and running requests get FinishTimeout to end; after that the parts behind them stop, and everything is closed. The
// error is the first that ended a part, joined with those of closing; it is nil after an orderly stop.
func Run(ctx context.Context, c Config) error {
	s, err := openService(ctx, c)
	if err != nil {
		return err
	}
	s.printWelcome(c.Out)
	return errors.Join(s.run(ctx), s.close())
}

// openService locks the data folder and opens every part, each before the parts that need it. External servers may still be
// down; the folder must not be in use by another process. After an error every part that was opened is closed again.
func openService(ctx context.Context, c Config) (_ *service, err error) {
	s := &service{Config: c, version: Version(), metrics: prometheus.NewRegistry()}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	s.calls = newCallMetrics(c, s.metrics)
	if err := os.MkdirAll(c.Data, 0o700); err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	folder, err := dirlock.Acquire(c.Data, c.Now())
	if err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	s.onClose(folder.Close)
	if err := backup.CheckFinished(c.Data); err != nil {
		return nil, err
	}
	if s.logs, err = openLogs(ctx, c, s.calls); err != nil {
		return nil, err
	}
	s.onClose(s.logs.close)
	if err := s.openDeployment(ctx); err != nil {
		return nil, err
	}
	if err := s.openDatabases(); err != nil {
		return nil, err
	}
	if err := s.openVault(ctx); err != nil {
		return nil, err
	}
	if err := s.openSiteSearch(); err != nil {
		return nil, err
	}
	if err := s.openAddresses(ctx); err != nil {
		return nil, err
	}
	if err := s.openRoads(ctx); err != nil {
		return nil, err
	}
	s.connectParts()
	s.registerMetrics()
	return s, s.openListeners()
}

// openDatabases opens the databases of the read models: Postgres, or a folder of SQLite files.
func (s *service) openDatabases() (err error) {
	location := s.Postgres
	if s.Postgres == "" {
		location = filepath.Join(s.Data, readModelsFolder)
	}
	if s.registry, err = sqldb.OpenRegistry(location); err != nil {
		return err
	}
	s.registry.Log = s.Log
	s.registry.Observe = s.calls.observeDatabase
	s.onClose(s.registry.Close)
	return nil
}

// connectParts builds the parts that do no I/O before they run, from those that openService has opened.
func (s *service) connectParts() {
	codec := eventstore.NewCodec(s.vault)
	s.keyRing = keyring.New(s.logs.core, s.Now, filepath.Join(s.Data, keyRingFile), s.Log)
	s.projector = projector.New(s.logs.core, codec, s.registry, s.configuredReadModels()...)
	s.projector.AddModelFrom(s.logs.usage, usageprojections.Model)
	s.projector.Log, s.projector.IsOnlyInstance = s.Log, s.Postgres == "" // nobody else opens a SQLite file of a locked folder
	s.changes = changes.New(s.logs.core, func(ctx context.Context) (eventstore.Checkpoint, error) {
		return s.projector.Checkpoint(ctx, table.LocationsModel.Name)
	}, s.Log)
	s.accounts = account.New(s.logs.core, codec, s.TokenPrefixes, s.Now)
	s.tokens = access.New(s.logs.core, codec, s.TokenPrefixes, s.Now)
	s.repairs = repair.New(s.logs.core, codec)
	s.waitLimiter = waitlimit.New(waitlimit.MaxRequests)
	s.ledger = usage.New(s.logs.usage, codec, s.accounts, s.waitLimiter, s.Now, s.Log)
	s.locations = locations.New(s.logs.core, codec, s.accounts, geocode.New(s.liveVintage), s.Now)
	s.locations.KeepSnapshots(filepath.Join(s.Data, foldsFolder), s.Log)
	s.bodyBudget = s.newBodyBudget()
	s.uploadBudget = bodylimit.NewBudget(maxUploads, maxAccountUploads)
	s.clients = clientip.NewFinder(s.TrustedProxies, s.Log)
	s.gc = newGCTuner(s.bodyBudget)
	s.registry.InstanceID = s.ledger.InstanceID() // the registry lists the instances that run, for reconciliation and upgrades
	s.registry.Program, s.registry.Format = s.version, event.HighestFormat
}

// onClose registers the function that frees an opened part. It is called once, by close.
func (s *service) onClose(f func() error) { s.closers = append(s.closers, f) }

// close frees every part that was opened, the last one first, and joins their errors.
func (s *service) close() error {
	var errs []error
	for _, f := range slices.Backward(s.closers) {
		errs = append(errs, f())
	}
	return errors.Join(errs...)
}

// run starts the background parts and the listeners, and waits for all of them. The background has a context of its
// own, which ends only after the listeners have drained: running requests need it to the end. A listener that fails ends
// the others; a background part that fails is noticed by readiness, and its error is returned at the end.
func (s *service) run(ctx context.Context) error {
	s.projector.VerifyGenerations(ctx)
	if s.usageLoss = s.findUsageLoss(ctx); s.usageLoss != nil {
		s.Log.Error("requests were lost", "reason", s.usageLoss)
	}
	backgroundCtx, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var background errgroup.Group
	background.Go(func() error {
		s.keyRing.Run(backgroundCtx)
		return nil
	})
	background.Go(func() error {
		s.gc.tuneUntilDone(backgroundCtx)
		return nil
	})
	background.Go(func() error { return errorUnlessCanceled(backgroundCtx, s.projector.Run(backgroundCtx)) })
	background.Go(func() error { return errorUnlessCanceled(backgroundCtx, s.changes.Run(backgroundCtx)) })
	background.Go(func() error { return errorUnlessCanceled(backgroundCtx, s.vintageWatcher.Run(backgroundCtx)) })
	background.Go(func() error { return errorUnlessCanceled(backgroundCtx, s.networkWatcher.Run(backgroundCtx)) })
	background.Go(func() error { return errorUnlessCanceled(backgroundCtx, s.runLedger(backgroundCtx)) })
	background.Go(func() error { return s.closePeriods(backgroundCtx) })
	background.Go(func() error { return s.newReopener().reopenAccounts(backgroundCtx) })
	if s.addressIndex != nil {
		background.Go(func() error { return s.keepVintageIndexed(backgroundCtx) })
	}

	serving, stopServing := context.WithCancel(context.WithoutCancel(ctx)) // outlives ctx by the drain
	defer stopServing()
	foreground, serving := errgroup.WithContext(serving)
	foreground.Go(func() error {
		defer stopServing()
		s.drain(ctx, serving)
		return nil
	})
	foreground.Go(func() error { return s.serveAPI(serving) })
	for _, l := range []*listener{s.area, s.ops} {
		foreground.Go(func() error { return l.serve(serving, s.finishTimeout()) })
	}
	foreground.Go(func() error { return s.writeFirstStart(serving) })
	foreground.Go(func() error { return s.followFormat(serving) }) // in the foreground, as the vault: an unknown format ends the instance
	foreground.Go(func() error { return s.vault.Run(serving) })    // in the foreground: a wrong vault found late ends the instance
	foreground.Go(func() error { return s.notifySupervisor(serving, s.isReady) })
	err := foreground.Wait()
	stop()
	return errors.Join(err, background.Wait())
}

// errorUnlessCanceled drops the error of a part whose context has ended: it stopped because it had to, not because it failed.
func errorUnlessCanceled(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// Version names what the program was built from: a module version, else the first 12 digits of the commit, else "devel".
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" {
			return setting.Value[:min(12, len(setting.Value))]
		}
	}
	return "devel"
}

// logs are the two logs of the service: core holds accounts, keys and locations, usage holds the ticks. They are apart
// so that millions of ticks never slow the replay of keys. On EventStoreDB both fields are the same store.
type logs struct {
	core, usage  eventstore.Store
	usageJournal *journal.Journal // usage without what times its appends; nil on a server
}

// openLogs connects to the event store of the config, or opens the two journals of the data folder.
func openLogs(ctx context.Context, c Config, calls *callMetrics) (logs, error) {
	if c.EventStore != "" {
		server, err := esdb.Open(ctx, c.EventStore, c.Log)
		if err != nil {
			return logs{}, fmt.Errorf("event store: %w", err)
		}
		timed := calls.timeAppends("server", server)
		return logs{core: timed, usage: timed}, nil
	}
	embedded, err := openEmbeddedLogs(ctx, c, calls)
	if err != nil {
		return logs{}, err
	}
	embedded.core, embedded.usage = calls.timeAppends("core", embedded.core), calls.timeAppends("usage", embedded.usage)
	return embedded, nil
}

// close closes each store once.
func (l logs) close() error {
	if l.usage == l.core {
		return l.core.Close()
	}
	if l.usage == nil { // the start was refused before it was opened
		return l.core.Close()
	}
	return errors.Join(l.core.Close(), l.usage.Close())
}
