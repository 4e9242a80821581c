package service

import (
	"context"
	"errors"

	"lieudit/eventstore"
	"lieudit/eventstore/meiliclient"
	locationsprojections "lieudit/projections/locations"
	"lieudit/projections/projector"
	"lieudit/projections/searchindex"
	meiliindex "lieudit/projections/searchindex/meili"
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
	server, err := meiliclient.ParseServer(s.Meilisearch)
	if err != nil {
		return err
	}
	server.Transport = s.calls.newMeilisearchTransport()
	s.siteEngine = meili.New(server, s.registry)
	s.siteIndexer = searchindex.New(meiliindex.New(server, s.registry, meili.NewDocument), s.registry, s.Log)
	return nil
}

// newSearchEngine returns the engine that searches sites: Meilisearch, or the engine in memory. The one in memory keeps the
// sites of accounts that searched of late, at most DefaultMaxSites; it reloads an account's sites from the read model when
// the change notifier has seen a later change of them.
func (s *service) newSearchEngine() search.Engine {
	if s.siteEngine != nil {
		return s.siteEngine
	}
	return memory.New(s.registry, func(account string) uint64 { return uint64(s.changes.LastChange(account)) }, s.Now, memory.DefaultMaxSites)
}

// configuredReadModels are the read models of the core log as this instance runs them. With Meilisearch, the one of
// locations also writes each change of a site into an outbox, and the instance that owns it runs the indexer, which sends
// the changes to Meilisearch and empties the outbox.
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

// waitForSearch blocks until the search finds what the read model of locations held at a position. It returns nil at once
// without Meilisearch, since the engine in memory reads the read model, and when Meilisearch is known to be down: a write
// does not wait for it, and the indexer has logged the outage.
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
