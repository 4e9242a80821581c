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
	"lieudit/eventstore/hold"
	"lieudit/eventstore/vault"
	"lieudit/eventstore/waiting"
	"lieudit/http/bodies"
	"lieudit/projections/keyring"
	"lieudit/projections/outbox"
	"lieudit/projections/projector"
	"lieudit/projections/pulse"
	"lieudit/projections/tally"
	"lieudit/queries/address/atlas"
	"lieudit/queries/address/directory"
	"lieudit/queries/address/siting"
	"lieudit/queries/places/meili"
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

	closers   []func() error
	logs      logs
	keys      *vault.Bound  // of personal fields
	reopen    chan struct{} // told when a vault is whole again
	shelf     *table.Shelf
	waiting   *waiting.Room // for a log that is slow
	ring      *keyring.Ring
	projector *projector.Projector
	pulse     *pulse.Pulse
	accounts  *account.Accounts
	tokens    *access.Tokens
	repairs   *repair.Repairs
	ledger    *usage.Ledger
	locations *locations.Locations
	sites     *meili.Index   // nil: sites are searched in memory
	outbox    *outbox.Outbox // with sites
	caughtUp  atomic.Bool    // the read models, once
	atlas     *atlas.Atlas
	listings  *directory.Directory // nil: vintages are searched by their own index
	follower  *vintages.Follower

	bodies         *bodies.Budget
	memory         memory
	api, area, ops *listener
}

// open takes the data folder and opens every part. Servers need not be there yet; the folder must be free.
func open(ctx context.Context, c Config) (_ *service, err error) {
	s := &service{Config: c, version: Version(), metrics: prometheus.NewRegistry()}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if err := os.MkdirAll(c.Data, 0o700); err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	folder, err := hold.Folder(c.Data, c.Now())
	if err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	s.closing(folder.Close)
	if s.logs, err = openLogs(ctx, c); err != nil {
		return nil, err
	}
	s.closing(s.logs.close)
	if err := s.openTables(); err != nil {
		return nil, err
	}
	if err := s.openKeys(ctx); err != nil {
		return nil, err
	}
	if err := s.openSites(); err != nil {
		return nil, err
	}
	if err := s.openAddresses(ctx); err != nil {
		return nil, err
	}
	s.assemble()
	s.gauges()
	return s, s.listen()
}

// openTables opens the databases of the read models.
func (s *service) openTables() (err error) {
	models := s.Postgres
	if s.Postgres == "" {
		models = filepath.Join(s.Data, "readmodels")
	}
	if s.shelf, err = table.OpenShelf(models); err != nil {
		return err
	}
	s.closing(s.shelf.Close)
	return nil
}

func (s *service) assemble() {
	codec := eventstore.NewCodec(s.keys)
	s.ring = keyring.New(s.logs.core, s.Now, filepath.Join(s.Data, "keyring"), s.Log)
	s.projector = projector.New(s.logs.core, codec, s.shelf, s.models()...)
	s.projector.Follow(s.logs.usage, tally.Model)
	s.projector.Log, s.projector.Alone = s.Log, s.Postgres == "" // the data folder is this instance's
	s.pulse = pulse.New(s.logs.core, s.Log)
	s.pulse.From = func(ctx context.Context) (eventstore.Mark, error) { return s.projector.Seen(ctx, table.Places.Name) }
	s.accounts = account.New(s.logs.core, codec, s.Tokens, s.Now)
	s.tokens = access.New(s.logs.core, codec, s.Tokens, s.Now)
	s.repairs = repair.New(s.logs.core, codec)
	s.waiting = waiting.NewRoom(waiting.Places)
	s.ledger = usage.New(s.logs.usage, codec, s.accounts, s.Now, s.Log)
	s.ledger.WaitIn(s.waiting)
	s.locations = locations.New(s.logs.core, codec, s.accounts, siting.New(s.atlas), s.Now)
	s.locations.Keep(filepath.Join(s.Data, "folds"), s.Log)
	s.bodies = s.bodyBudget()
	s.memory = watch(s.bodies)
	s.shelf.Instance = s.ledger.Incarnation() // so that it can be told of which incarnations live
}

// closing notes how a part that was opened is freed.
func (s *service) closing(f func() error) { s.closers = append(s.closers, f) }

// close frees every part that was opened, the last first.
func (s *service) close() error {
	var errs []error
	for _, f := range slices.Backward(s.closers) {
		errs = append(errs, f())
	}
	return errors.Join(errs...)
}
