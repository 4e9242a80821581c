package routing

import (
	"cmp"
	"context"
	"slices"

	"lieudit/queries/locations/search"
	"lieudit/queries/route"
	"lieudit/schemas/body"
	"lieudit/schemas/body/shape"
	sites "lieudit/schemas/locations"
)

// Matrix finds the durations from each origin to each destination. If the filter matches no sites of the account, the answer is
// body.NoResults.
func (s *Service) Matrix(ctx context.Context, c Caller, in body.ComputeMatrix) (any, error) {
	origins, err := s.resolveBounds(ctx, c.Account, in.Origins...)
	if err != nil {
		return nil, err
	}
	destinations, release, err := s.destinations(ctx, c.Account, in.Destinations, in.SiteFilter())
	if err != nil {
		return nil, err
	}
	defer release()
	cells := len(origins) * len(destinations)
	switch {
	case cells == 0:
		return body.NoResultsAnswer, nil
	case cells > body.MaxMatrixCells:
		return nil, brokenRule(c.Part, body.MatrixSizeRule(cells))
	}
	if err := c.reserveMemory(ctx, matrixBytes(len(origins), len(destinations))); err != nil {
		return nil, err
	}
	if err := c.reserve(ctx, requestsFor(cells)); err != nil {
		return nil, err
	}
	found, err := s.Router.Matrix(ctx, route.MatrixQuery{Profile: profileOf(in.TravelBy), Origins: routeBounds(origins), Destinations: routeBounds(destinations)})
	if err != nil {
		return s.toAnswer(ctx, c, err, subject{in.Explaining, slices.Concat(origins, destinations)})
	}
	return body.Matrix{
		Envelope: body.OKEnvelope, Origins: showBounds(origins, found.OriginAccesses), Destinations: showBounds(destinations, found.DestinationAccesses),
		Durations: showCells(found.Durations), Distances: showCells(found.Distances), RouteNetwork: s.network(ctx, in.Mode),
	}, nil
}

// showCells returns the cells of a matrix as whole numbers, null for a pair without a route.
func showCells(rows [][]float64) [][]shape.Nullable[int] {
	shown := make([][]shape.Nullable[int], len(rows))
	for i, row := range rows {
		shown[i] = make([]shape.Nullable[int], len(row))
		for j, x := range row {
			shown[i][j].IsGiven = true
			if x != route.Unreachable {
				rounded := roundInt(x)
				shown[i][j].Value = &rounded
			}
		}
	}
	return shown
}

// destinations returns the destinations of a request: the bounds that it names or, with a filter, the account's sites. release must
// be called once they are no longer needed.
func (s *Service) destinations(ctx context.Context, account string, named []body.Bound, filter *body.SiteFilter) (all []bound, release func(), err error) {
	if filter == nil {
		all, err = s.resolveBounds(ctx, account, named...)
		return all, func() {}, err
	}
	if release, err = s.acquireLarge(ctx, account); err != nil {
		return nil, nil, err
	}
	found, err := s.findSites(ctx, search.Query{Account: account, Referential: filter.Referential, Tags: filter.Tags})
	if err == nil {
		all, err = s.siteBounds(ctx, "", found...)
	}
	if err != nil {
		release()
	}
	return all, release, err
}

// sitesAtOnce is how many sites are read at once. Each is read with its whole content.
const sitesAtOnce = 250

// findSites returns the active sites that match a query and have a position, sorted by referential and external id. The plan bounds
// their number. They hold only the fields that a bound needs.
func (s *Service) findSites(ctx context.Context, q search.Query) ([]sites.Site, error) {
	var found []sites.Site
	q.Status, q.Sort, q.Limit = search.Active, search.ByName, sitesAtOnce
	for {
		page, err := s.Search.Search(ctx, q)
		if err != nil {
			return nil, err
		}
		for _, hit := range page.Hits {
			if hit.Site.Lat != nil {
				found = append(found, withoutContent(hit.Site))
			}
		}
		if q.After = page.Next; q.After == "" {
			break
		}
	}
	slices.SortFunc(found, func(a, b sites.Site) int {
		return cmp.Or(cmp.Compare(a.Referential, b.Referential), cmp.Compare(a.ExternalID, b.ExternalID))
	})
	return found, nil
}

// withoutContent returns a site with only the fields that a bound needs. The others may take 100 times as much memory.
func withoutContent(s sites.Site) sites.Site {
	return sites.Site{
		Referential: s.Referential, ExternalID: s.ExternalID, Content: sites.Content{Name: s.Name, IDBan: s.IDBan, Lat: s.Lat, Lon: s.Lon},
	}
}
