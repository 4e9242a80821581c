package service

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"lieudit/cmd/lieudit/vintages"
	"lieudit/commands/access"
	"lieudit/commands/account"
	"lieudit/commands/locations"
	"lieudit/commands/repair"
	"lieudit/commands/usage"
	"lieudit/eventstore"
	"lieudit/eventstore/dirlock"
	"lieudit/eventstore/sqldb"
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
	registry       *sqldb.Registry
	waitLimiter    *waitlimit.Limiter // for a log that is slow
	keyRing        *keyring.Ring
	projector      *projector.Projector
	changes        *changes.Notifier
	accounts       *account.Accounts
	tokens         *access.Tokens
	repairs        *repair.Repairs
	ledger         *usage.Meter
	locations      *locations.Locations
	siteEngine     *meili.Engine        // nil: sites are searched in memory
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
	if s.registry, err = sqldb.OpenRegistry(location); err != nil {
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
