package service

import (
	"context"
	"errors"
	"fmt"

	"lieudit/eventstore"
	locationsprojections "lieudit/projections/locations"
	"lieudit/projections/projector"
	"lieudit/projections/searchindex"
	"lieudit/queries/locations/meili"
	"lieudit/queries/locations/memory"
	"lieudit/queries/locations/search"
	"lieudit/schemas/table"
)

// openSiteSearch prepares the search of sites in Meilisearch where one is configured. It does not connect: the server may
// still be down.
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

// newSearchEngine is the engine that searches sites: Meilisearch, or the engine in memory. The one in memory reloads an
// account's sites when the change notifier has seen a later change of them.
func (s *service) newSearchEngine() search.Engine {
	if s.siteIndex != nil {
		return s.siteIndex
	}
	return memory.New(s.registry, func(account string) uint64 { return uint64(s.changes.LastChange(account)) }, s.Now, memory.DefaultMaxSites)
}

// configuredReadModels are the read models of the core log. With Meilisearch, the one of locations also writes an outbox,
// and the instance that owns it runs the indexer that empties the outbox.
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

// waitForSearch blocks until the search finds what the read model of locations held at a position. It is nil at once when
// Meilisearch is known to be down: the indexer has logged that.
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

// siteIndexAdapter is a meili.Index as package searchindex wants it: projections do not import queries, so the types of
// both sides meet here.
type siteIndexAdapter struct{ index *meili.Index }

func (x siteIndexAdapter) Open(ctx context.Context) (searchindex.IndexState, error) {
	state, err := x.index.Open(ctx)
	return searchindex.IndexState(state), mapIndexError(err)
}

func (x siteIndexAdapter) ApplyBatch(ctx context.Context, b searchindex.Batch) error {
	return mapIndexError(x.index.ApplyBatch(ctx, meili.Batch(b)))
}

func (x siteIndexAdapter) SaveProgress(ctx context.Context, b searchindex.Batch) error {
	return mapIndexError(x.index.SaveProgress(ctx, meili.Batch(b)))
}

// mapIndexError translates an error of the index into those that the indexer distinguishes.
func mapIndexError(err error) error {
	switch {
	case errors.Is(err, meili.ErrRejected):
		return fmt.Errorf("%w: %w", searchindex.ErrRefused, err)
	case errors.Is(err, meili.ErrIndexReplaced):
		return fmt.Errorf("%w: %w", searchindex.ErrLost, err)
	}
	return err
}
