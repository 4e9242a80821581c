package instance

import (
	"context"
	"errors"
	"time"

	"lieudit/eventstore"
	locationsprojections "lieudit/projections/locations"
	"lieudit/projections/projector"
	"lieudit/projections/searchindex"
	"lieudit/queries/locations/memory"
	"lieudit/queries/locations/search"
	"lieudit/schemas/table"
)

// newSearchEngine returns the engine that searches sites: Meilisearch, or the engine in memory. The one in memory keeps the
// sites of accounts that searched of late, at most DefaultMaxSites; it reloads an account's sites from the read model when
// the change notifier has seen a later change of them.
func (i *Instance) newSearchEngine() search.Engine {
	if i.SiteEngine != nil {
		return i.SiteEngine
	}
	return memory.New(i.Registry, func(account string) uint64 { return uint64(i.changes.LastChange(account)) }, time.Now, memory.DefaultMaxSites)
}

// configuredReadModels are the read models of the core log as this instance runs them. With Meilisearch, the one of
// locations also writes each change of a site into an outbox, and the instance that owns it runs the indexer, which sends
// the changes to Meilisearch and empties the outbox.
func (i *Instance) configuredReadModels() []projector.Model {
	all := coreReadModels()
	for n, m := range all {
		if m.Name == table.LocationsModel.Name && i.SiteIndexer != nil {
			all[n] = locationsprojections.Model(true)
			all[n].OwnerTask = i.SiteIndexer.Run
		}
	}
	return all
}

// waitForSearch blocks until the search finds what the read model of locations held at a position. It returns nil at once
// without Meilisearch, since the engine in memory reads the read model, and when Meilisearch is known to be down: a write
// does not wait for it, and the indexer has logged the outage.
func (i *Instance) waitForSearch(ctx context.Context, at eventstore.Position) error {
	if i.SiteIndexer == nil {
		return nil
	}
	err := i.SiteIndexer.AwaitPosition(ctx, at)
	if errors.Is(err, searchindex.ErrDown) {
		return nil
	}
	return err
}
