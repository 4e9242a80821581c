// Package service runs one instance of lieudit in a process. It decides which log, databases, searches and listeners the instance
// runs on, opens them, and starts and stops everything in order. It decides nothing about requests or events.
//
// Run takes a Config. openService locks the data folder and opens the parts from the log upwards, the instance last (package
// instance: handlers and what works behind them); service.run then starts the background and the three listeners, that of the API
// once the key ring can check keys (lifetime.go). When the context ends, the listeners drain first, the background stops next, and
// close frees the parts in reverse order.
//
// A server that is down at start is not an error: the parts connect later, and readiness says what is missing. The start is
// refused only if an operator must decide something, such as with a data folder in use or a vault that lacks keys.
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
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"golang.org/x/sync/errgroup"

	"lieudit/cmd/lieudit/backup"
	"lieudit/cmd/lieudit/instance"
	"lieudit/cmd/lieudit/listener"
	"lieudit/cmd/lieudit/metrics"
	"lieudit/cmd/lieudit/ops"
	"lieudit/cmd/lieudit/peers"
	"lieudit/cmd/lieudit/releases"
	"lieudit/eventstore"
	"lieudit/eventstore/clock"
	"lieudit/eventstore/disk/dirlock"
	"lieudit/eventstore/esdb"
	"lieudit/eventstore/sqldb"
	"lieudit/eventstore/vault"
	"lieudit/projections/searchindex"
	meiliindex "lieudit/projections/searchindex/meili"
	"lieudit/queries/address/live"
	addressmeili "lieudit/queries/address/meili"
	"lieudit/queries/address/vintage"
	"lieudit/queries/locations/alert"
	"lieudit/queries/locations/meili"
	routelive "lieudit/queries/route/live"
	"lieudit/queries/route/network"
	"lieudit/schemas/meiliclient"
)

// Files and folders of the data folder, next to those of package instance. Package releases names those of vintages and road networks.
const (
	coreLogFolder    = "log/core"
	usageLogFolder   = "log/usage"
	readModelsFolder = "readmodels"
	clockFile        = "clock"
	vaultFile        = "vault.db"
)

// service is an instance with everything that it uses in this process: the folder's lock, files, servers and sockets.
type service struct {
	Config
	version string
	metrics *prometheus.Registry
	calls   *metrics.Calls

	clock          *clock.Clock
	closers        []func() error
	logs           logs
	registry       *sqldb.Registry      // databases of the read models
	siteEngine     *meili.Engine        // nil: sites are searched in memory
	siteIndexer    *searchindex.Indexer // fills the index that siteEngine searches; nil without it
	liveVintage    *live.Vintage
	siteAlerts     *alert.Checker
	addressIndex   *addressmeili.Indexes // nil: vintages are searched by their own index
	vintageWatcher *releases.Watcher[*vintage.Vintage]
	router         *routelive.Router
	networkWatcher *releases.Watcher[*network.Network]
	peers          *peers.Follower
	servedNetwork  atomic.Pointer[servedNetwork] // nil: none

	instance       *instance.Instance
	gc             gcTuner
	api, area, ops *listener.Listener
	isStopping     atomic.Bool // the context of Run has ended
}

// Run runs an instance until ctx ends. Then readiness reports the stop and the service continues serving for Drain, after which the
// sockets are closed and running requests get FinishTimeout to end; after that the parts behind them stop, and everything is closed.
// The error is the first that ended a part, joined with those of closing; it is nil after an orderly stop.
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
	s.calls = metrics.NewCalls(s.metrics, c.EventStore == "", c.Meilisearch != "")
	if err := os.MkdirAll(c.Data, 0o700); err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	folder, err := dirlock.Acquire(c.Data, c.wallTime())
	if err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	s.onClose(folder.Close)
	if err := backup.CheckFinished(c.Data); err != nil {
		return nil, err
	}
	s.useClock() // it writes into the folder, so the folder must be whole
	if s.logs, err = openLogs(ctx, s.Config, s.calls); err != nil {
		return nil, err
	}
	s.onClose(s.logs.close)
	for _, open := range []func(context.Context) error{s.openDatabases, s.openSiteSearch, s.openAddresses, s.openRoads, s.openInstance, s.openListeners, s.openPeers} {
		if err := open(ctx); err != nil {
			return nil, err
		}
	}
	s.registerMetrics()
	return s, nil
}

// registerMetrics registers the metrics of the parts that this package opened; the instance has registered its own. Package
// metrics declares them.
func (s *service) registerMetrics() {
	s.registerAddressIndexMetrics()
	s.registerRoadMetrics()
	s.registerReleaseMetrics()
	s.metrics.MustRegister(ops.NewReadinessCollector(s.components()), collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
}

// useClock has every part use a clock that does not jump. If a server stamps the log, the clock is compared with its times.
func (s *service) useClock() {
	s.clock = clock.New(clock.Options{
		Sources: clock.Sources{Wall: s.Now, Elapsed: s.Elapsed}, IsCompared: s.EventStore != "",
		Accept: s.AcceptClock, File: filepath.Join(s.Data, clockFile), Log: s.Log,
	})
	s.Now = s.clock.Now
}

// openDatabases opens the databases of the read models: Postgres, or a folder of SQLite files.
func (s *service) openDatabases(context.Context) (err error) {
	location := s.Postgres
	if s.Postgres == "" {
		location = filepath.Join(s.Data, readModelsFolder)
	}
	if s.registry, err = sqldb.OpenRegistry(location); err != nil {
		return err
	}
	s.registry.Log = s.Log
	s.registry.Observe = s.calls.ObserveDatabase
	s.onClose(s.registry.Close)
	return nil
}

// openSiteSearch prepares the search of sites in Meilisearch if one is configured. It does not connect: the server may
// still be down.
func (s *service) openSiteSearch(context.Context) error {
	if s.Meilisearch == "" {
		return nil
	}
	server, err := meiliclient.ParseServer(s.Meilisearch)
	if err != nil {
		return err
	}
	server.Transport = s.calls.NewMeilisearchTransport()
	s.siteEngine = meili.New(server, s.registry)
	s.siteIndexer = searchindex.New(meiliindex.New(server, s.registry, meili.NewDocument), s.registry, s.Log)
	return nil
}

// openInstance builds the instance from the open parts, and fails if it must not start.
func (s *service) openInstance(ctx context.Context) error {
	if err := s.registry.CheckEncoding(ctx); err != nil {
		return err
	}
	keys, err := vault.New(s.vaultLocation(), s.VaultKey, s.Now)
	if err != nil {
		return err
	}
	s.instance, err = instance.New(instance.Parts{
		Settings: s.settings(), AreaURL: s.areaURL, APIURL: s.apiURL, IsStopping: s.isStopping.Load, Core: s.logs.core, Usage: s.logs.usage, OwnsLogs: s.EventStore == "",
		CoreTimeAtOpen: s.logs.coreTimeAtOpen, UsageTimeAtOpen: s.logs.usageTimeAtOpen,
		Registry: s.registry, OwnsReadModels: s.Postgres == "", // no other instance opens a SQLite file of a locked folder
		Vault: keys, Folder: s.Data, Vintage: s.liveVintage, SiteAlerts: s.siteAlerts, Router: s.router, Releases: servedReleases{s}, Readiness: s.readiness,
		SiteEngine: s.siteEngine, SiteIndexer: s.siteIndexer, Clock: s.clock, Metrics: s.metrics, Log: s.Log, Out: s.Out, Version: s.version,
	})
	if err != nil {
		return errors.Join(err, keys.Close())
	}
	s.onClose(s.instance.Close)
	s.gc = newGCTuner(s.instance.Bodies())
	return s.instance.CheckStart(ctx)
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
	backgroundCtx, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var background errgroup.Group
	background.Go(func() error {
		s.gc.tuneUntilDone(backgroundCtx)
		return nil
	})
	background.Go(func() error { return s.instance.Work(backgroundCtx) })
	background.Go(func() error { return s.vintageWatcher.Run(backgroundCtx) })
	background.Go(func() error { return s.networkWatcher.Run(backgroundCtx) })
	background.Go(func() error { return s.peers.Run(backgroundCtx) })
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
	for _, l := range []*listener.Listener{s.area, s.ops} {
		foreground.Go(func() error { return l.Serve(serving, s.finishTimeout()) })
	}
	foreground.Go(func() error { return s.writeFirstStart(serving) })
	foreground.Go(func() error { return s.instance.Watch(serving) })
	foreground.Go(func() error { return s.notifySupervisor(serving, s.isReady) })
	err := foreground.Wait()
	if s.api.HasCutRequests() || s.area.HasCutRequests() { // the customer area has requests to try, which count
		s.instance.NoteCutRequests()
	}
	stop()
	return errors.Join(err, background.Wait())
}

// Version names what the program was built from: a module version, otherwise the first 12 digits of the commit, otherwise "devel".
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

// logs are the two logs of the service: core holds accounts, keys and sites, usage holds the ticks. They are separate
// so that millions of ticks never slow the replay of keys. On EventStoreDB both fields are the same store.
type logs struct {
	core, usage     eventstore.Store
	coreTimeAtOpen  func() time.Time // of the core journal; nil on a server
	usageTimeAtOpen func() time.Time // of the usage journal; nil on a server
}

// openLogs connects to the event store of the config, or opens the two journals of the data folder.
func openLogs(ctx context.Context, c Config, calls *metrics.Calls) (logs, error) {
	if c.EventStore != "" {
		server, err := esdb.Open(ctx, c.EventStore, c.Log)
		if err != nil {
			return logs{}, fmt.Errorf("event store: %w", err)
		}
		timed := calls.TimeAppends("server", server)
		return logs{core: timed, usage: timed}, nil
	}
	embedded, err := openEmbeddedLogs(ctx, c, calls)
	if err != nil {
		return logs{}, err
	}
	embedded.core, embedded.usage = calls.TimeAppends("core", embedded.core), calls.TimeAppends("usage", embedded.usage)
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
