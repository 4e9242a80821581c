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

	"lieudit/cmd/lieudit/vintages"
	"lieudit/commands/access"
	"lieudit/commands/account"
	"lieudit/commands/locations"
	"lieudit/commands/repair"
	"lieudit/commands/usage"
	"lieudit/eventstore"
	"lieudit/eventstore/dirlock"
	"lieudit/eventstore/esdb"
	"lieudit/eventstore/journal"
	"lieudit/eventstore/vault"
	"lieudit/eventstore/waitlimit"
	"lieudit/http/bodylimit"
	"lieudit/projections/changes"
	"lieudit/projections/keyring"
	"lieudit/projections/projector"
	"lieudit/projections/searchindex"
	usageprojections "lieudit/projections/usage"
	"lieudit/queries/address/atlas"
	"lieudit/queries/address/directory"
	"lieudit/queries/locations/geocode"
	"lieudit/queries/locations/meili"
	"lieudit/schemas/table"
)

// service is the parts of one instance:
//
//	http/server ──> atlas <── follower <── vintages
//	    └───────> keyring <──────────┐
//	http/area ──> commands ──> logs ───┤ feed
//	    └──> queries ──> shelf <── projector
//	            └──────> pulse <───────┘
type service struct {
	Config
	version string
	metrics *prometheus.Registry

	closers        []func() error
	logs           logs
	vault          *vault.Bound  // of personal fields
	vaultChanged   chan struct{} // told when a vault is whole again
	registry       *table.Registry
	waitLimiter    *waitlimit.Limiter // for a log that is slow
	keyRing        *keyring.Ring
	projector      *projector.Projector
	changes        *changes.Notifier
	accounts       *account.Accounts
	tokens         *access.Tokens
	repairs        *repair.Repairs
	ledger         *usage.Meter
	locations      *locations.Locations
	siteIndex      *meili.Index         // nil: sites are searched in memory
	siteIndexer    *searchindex.Indexer // with sites
	hasCaughtUp    atomic.Bool          // the read models, once
	atlas          *atlas.Atlas
	addressIndex   *directory.Directory // nil: vintages are searched by their own index
	vintageWatcher *vintages.Watcher

	bodyBudget     *bodylimit.Budget
	gc             gcTuner
	api, area, ops *listener
}

// openService takes the data folder and opens every part. Servers need not be there yet; the folder must be free.
func openService(ctx context.Context, c Config) (_ *service, err error) {
	s := &service{Config: c, version: Version(), metrics: prometheus.NewRegistry()}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if err := os.MkdirAll(c.Data, 0o700); err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	folder, err := dirlock.Acquire(c.Data, c.Now())
	if err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	s.onClose(folder.Close)
	if s.logs, err = openLogs(ctx, c); err != nil {
		return nil, err
	}
	s.onClose(s.logs.close)
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
	s.connectParts()
	s.registerMetrics()
	return s, s.openListeners()
}

// openDatabases opens the databases of the read models.
func (s *service) openDatabases() (err error) {
	location := s.Postgres
	if s.Postgres == "" {
		location = filepath.Join(s.Data, "readmodels")
	}
	if s.registry, err = table.OpenRegistry(location); err != nil {
		return err
	}
	s.onClose(s.registry.Close)
	return nil
}

func (s *service) connectParts() {
	codec := eventstore.NewCodec(s.vault)
	s.keyRing = keyring.New(s.logs.core, s.Now, filepath.Join(s.Data, "keyring"), s.Log)
	s.projector = projector.New(s.logs.core, codec, s.registry, s.configuredReadModels()...)
	s.projector.AddModelFrom(s.logs.usage, usageprojections.Model)
	s.projector.Log, s.projector.IsOnlyInstance = s.Log, s.Postgres == "" // the data folder is this instance's
	s.changes = changes.New(s.logs.core, s.Log)
	s.changes.LoadCheckpoint = func(ctx context.Context) (eventstore.Checkpoint, error) {
		return s.projector.Checkpoint(ctx, table.LocationsModel.Name)
	}
	s.accounts = account.New(s.logs.core, codec, s.TokenPrefixes, s.Now)
	s.tokens = access.New(s.logs.core, codec, s.TokenPrefixes, s.Now)
	s.repairs = repair.New(s.logs.core, codec)
	s.waitLimiter = waitlimit.New(waitlimit.MaxRequests)
	s.ledger = usage.New(s.logs.usage, codec, s.accounts, s.Now, s.Log)
	s.ledger.SetWaitLimiter(s.waitLimiter)
	s.locations = locations.New(s.logs.core, codec, s.accounts, geocode.New(s.atlas), s.Now)
	s.locations.KeepSnapshots(filepath.Join(s.Data, "folds"), s.Log)
	s.bodyBudget = s.newBodyBudget()
	s.gc = newGCTuner(s.bodyBudget)
	s.registry.InstanceID = s.ledger.InstanceID() // so that it can be told of which incarnations live
}

// onClose notes how a part that was opened is freed.
func (s *service) onClose(f func() error) { s.closers = append(s.closers, f) }

// close frees every part that was opened, the last first.
func (s *service) close() error {
	var errs []error
	for _, f := range slices.Backward(s.closers) {
		errs = append(errs, f())
	}
	return errors.Join(errs...)
}

// Run runs an instance until ctx ends. Then the listeners stop taking requests and those running end within
// DrainTimeout; after that the parts behind them stop, and everything is closed.
func Run(ctx context.Context, c Config) error {
	s, err := openService(ctx, c)
	if err != nil {
		return err
	}
	s.printWelcome(c.Out)
	return errors.Join(s.run(ctx), s.close())
}

func (s *service) run(ctx context.Context) error {
	s.projector.VerifyGenerations(ctx)
	backgroundCtx, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var background errgroup.Group
	background.Go(func() error {
		s.keyRing.Run(backgroundCtx)
		return nil
	})
	background.Go(func() error {
		s.gc.run(backgroundCtx)
		return nil
	})
	background.Go(func() error { return errorUnlessCanceled(backgroundCtx, s.projector.Run(backgroundCtx)) })
	background.Go(func() error { return errorUnlessCanceled(backgroundCtx, s.changes.Run(backgroundCtx)) })
	background.Go(func() error { return errorUnlessCanceled(backgroundCtx, s.vintageWatcher.Run(backgroundCtx)) })
	background.Go(func() error { return errorUnlessCanceled(backgroundCtx, s.runLedger(backgroundCtx)) })
	background.Go(func() error { return s.closePeriods(backgroundCtx) })
	background.Go(func() error { return s.newReopener().run(backgroundCtx) })
	if s.addressIndex != nil {
		background.Go(func() error { return s.keepVintageIndexed(backgroundCtx) })
	}

	foreground, ctx := errgroup.WithContext(ctx)
	for _, l := range []*listener{s.api, s.area, s.ops} {
		foreground.Go(func() error { return l.serve(ctx, s.DrainTimeout) })
	}
	foreground.Go(func() error { return s.writeFirstStart(ctx) })
	foreground.Go(func() error { return s.vault.Run(ctx) })
	err := foreground.Wait()
	stop()
	return errors.Join(err, background.Wait())
}

// errorUnlessCanceled is the error of a part that was to run until its context ends.
func errorUnlessCanceled(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// Version is what the program was built from.
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

// logs are the two logs of the service: core holds accounts, keys and places, usage the ticks. They are apart
// so that millions of ticks never slow the replay of keys; on a server they may be one.
type logs struct{ core, usage eventstore.Store }

func openLogs(ctx context.Context, c Config) (logs, error) {
	if c.EventStore != "" {
		server, err := esdb.Open(ctx, c.EventStore, c.Log)
		if err != nil {
			return logs{}, fmt.Errorf("event store: %w", err)
		}
		return logs{server, server}, nil
	}
	core, err := openJournal(c, "core")
	if err != nil {
		return logs{}, err
	}
	usage, err := openJournal(c, "usage")
	if err != nil {
		core.Close() // nothing was written to it
		return logs{}, err
	}
	return logs{core, usage}, nil
}

func openJournal(c Config, name string) (*journal.Journal, error) {
	return journal.Open(filepath.Join(c.Data, "log", name), journal.Options{Clock: c.Now, Logger: c.Log})
}

func (l logs) close() error {
	if l.usage == l.core {
		return l.core.Close()
	}
	return errors.Join(l.core.Close(), l.usage.Close())
}
