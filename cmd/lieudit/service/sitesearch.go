package service

import (
	"context"

	"lieudit/projections/searchindex"
	meiliindex "lieudit/projections/searchindex/meili"
	"lieudit/queries/locations/meili"
	"lieudit/schemas/meiliclient"
)

// openSiteSearch prepares the search of sites in Meilisearch where one is configured. It does not connect: the server may
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
