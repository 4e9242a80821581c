package service

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"lieudit/eventstore"
	locationsprojections "lieudit/projections/locations"
	"lieudit/projections/projector"
	"lieudit/projections/searchindex"
	"lieudit/queries/locations/meili"
	"lieudit/queries/locations/memory"
	"lieudit/queries/locations/search"
	"lieudit/schemas/table"
)

// openSiteSearch has sites searched in Meilisearch where there is one. It need not be there yet.
func (s *service) openSiteSearch() error {
	if s.Meilisearch == "" {
		return nil
	}
	server, err := meili.ParseServer(s.Meilisearch)
	if err != nil {
		return err
	}
	s.siteIndex = meili.New(server, s.registry)
	s.siteIndexer = searchindex.New(siteIndexAdapter{s.siteIndex}, s.registry)
	s.siteIndexer.Log = s.Log
	return nil
}

// newSearchEngine is the newSearchEngine of sites: in Meilisearch, or in memory and then no older than the last change of an account's places that
// was seen.
func (s *service) newSearchEngine() search.Engine {
	if s.siteIndex != nil {
		return s.siteIndex
	}
	return memory.New(s.registry, func(account string) uint64 { return uint64(s.changes.LastChange(account)) }, s.Now, memory.DefaultMaxSites)
}

// configuredReadModels are the read configuredReadModels of the core log. That of places fills an outbox where somebody empties it.
func (s *service) configuredReadModels() []projector.Model {
	all := coreReadModels()
	for i, m := range all {
		if m.Name == table.LocationsModel.Name && s.siteIndexer != nil {
			all[i] = locationsprojections.Model(true)
			all[i].OwnerTask = s.siteIndexer.Run
		}
	}
	return all
}

// waitForSearch returns when the search of sites finds what the read model held at a position. That Meilisearch is away was said
// when it went.
func (s *service) waitForSearch(ctx context.Context, at eventstore.Position) error {
	if s.siteIndexer == nil {
		return nil
	}
	err := s.siteIndexer.AwaitPosition(ctx, at)
	if errors.Is(err, searchindex.ErrDown) {
		return nil
	}
	return err
}

// registerSiteIndexerMetrics are how the outbox stands, whichever instance empties it.
func (s *service) registerSiteIndexerMetrics() {
	gauge := func(name, help string, value func(searchindex.Backlog) int) {
		s.metrics.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			state, err := s.siteIndexer.Backlog(ctx)
			if err != nil {
				return math.NaN()
			}
			return float64(value(state))
		}))
	}
	gauge("lieudit_outbox_waiting", "Sites that the search is still to be told of.", func(s searchindex.Backlog) int { return s.Pending })
	gauge("lieudit_outbox_aside", "Sites that the search refused.", func(s searchindex.Backlog) int { return s.Refused })
}

// siteIndexAdapter is the index of sites as an outbox tells it.
type siteIndexAdapter struct{ index *meili.Index }

func (x siteIndexAdapter) Open(ctx context.Context) (searchindex.IndexState, error) {
	told, err := x.index.Open(ctx)
	return searchindex.IndexState(told), mapIndexError(err)
}

func (x siteIndexAdapter) ApplyBatch(ctx context.Context, b searchindex.Batch) error {
	return mapIndexError(x.index.ApplyBatch(ctx, meili.Batch(b)))
}

func (x siteIndexAdapter) SaveProgress(ctx context.Context, b searchindex.Batch) error {
	return mapIndexError(x.index.SaveProgress(ctx, meili.Batch(b)))
}

// mapIndexError is an error of the index as the outbox knows it.
func mapIndexError(err error) error {
	switch {
	case errors.Is(err, meili.ErrRejected):
		return fmt.Errorf("%w: %w", searchindex.ErrRefused, err)
	case errors.Is(err, meili.ErrIndexReplaced):
		return fmt.Errorf("%w: %w", searchindex.ErrLost, err)
	}
	return err
}
