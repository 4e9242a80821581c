package api

import (
	"context"
	"errors"
	"slices"

	"lieudit/http/kit"
	"lieudit/queries/address"
	"lieudit/queries/address/atlas"
	"lieudit/queries/address/commune"
	"lieudit/schemas/body"
)

// searchAsFormerAPI finds addresses in the words of the former national API. What finds nothing is an empty collection there, a
// text without any address in it as well.
func (h *handler) searchAsFormerAPI(ctx context.Context, _ call, q body.FormerSearch) (kit.Response, error) {
	return queryAddresses(h, func(e *atlas.Edition) (kit.Response, error) {
		query := address.Query{Text: q.Q, Limit: q.Limit, Bias: toPosition(q.Coordinates()), Filter: toFilter(q.FormerFilters)}
		features, err := searchFeatures(ctx, e.Engine, query, q.Autocomplete)
		if err != nil {
			return kit.Response{}, err
		}
		answer := newFormerCollection(features, q.FormerFilters, q.Coordinates(), q.Limit)
		answer.Query = q.Q
		return kit.OK(answer)
	})
}

// searchFeatures completes the text, and where that finds nothing, or is not asked for, verifies it. The former API has one search
// for both: most of its clients send whole addresses and leave autocomplete on.
func searchFeatures(ctx context.Context, e *address.Engine, query address.Query, autocomplete bool) ([]body.Feature, error) {
	if autocomplete {
		found, err := e.Complete(ctx, query)
		switch {
		case errors.Is(err, address.ErrShort):
			return []body.Feature{}, nil
		case len(found) > 0 || err != nil && !errors.Is(err, address.ErrUnparsable):
			return mapSlice(found, func(s address.Suggestion) body.Feature { return toFeature(&s.Record, s.Score) }), err
		}
	}
	found, err := e.Verify(ctx, query)
	if err != nil && !errors.Is(err, address.ErrUnparsable) {
		return nil, err
	}
	return mapSlice(found, func(m address.Match) body.Feature { return toFeature(&m.Record, m.Score) }), nil
}

// reverseAsFormerAPI finds the addresses nearest to a point, in the words of the former national API.
func (h *handler) reverseAsFormerAPI(_ context.Context, _ call, q body.FormerReverse) (kit.Response, error) {
	return queryAddresses(h, func(e *atlas.Edition) (kit.Response, error) {
		at := *toPosition(q.Coordinates())
		found := findNearest(e.Engine.Near, at, q.Limit, toFilter(q.FormerFilters))
		return kit.OK(newFormerCollection(mapSlice(found, toNeighbourFeature), q.FormerFilters, q.Coordinates(), q.Limit))
	})
}

const (
	// reverseRadius is how far away the nearest address may be, in metres. The former API sets no limit; a point at sea is nowhere.
	reverseRadius = 10_000
	// maxNeighbours is how many of the nearest are looked at for some that pass a filter.
	maxNeighbours = 4096
)

// findNearest lists the addresses nearest to a point that pass a filter, the nearest first. near is Engine.Near, which knows no
// filter but the type: more and more neighbours are looked at, up to maxNeighbours.
func findNearest(near func(address.Position, float64, int, ...address.Type) []address.Neighbour, at address.Position, limit int, f address.Filter) []address.Neighbour {
	for looked := limit; ; looked = min(8*looked, maxNeighbours) {
		found := near(at, reverseRadius, looked, f.Types...)
		isComplete := len(found) < looked || looked >= maxNeighbours
		found = slices.DeleteFunc(found, func(n address.Neighbour) bool { return !passesFilter(&n.Record, f) })
		if isComplete || len(found) >= limit {
			return found[:min(limit, len(found))]
		}
	}
}

// passesFilter reports whether a record has one of the postcodes and one of the commune codes of a filter. The code of Paris, Lyon
// or Marseille stands for the city's arrondissements too.
func passesFilter(r *address.Record, f address.Filter) bool {
	if len(f.Postcodes) > 0 && !slices.Contains(f.Postcodes, r.Postcode) {
		return false
	}
	return len(f.CityCodes) == 0 || slices.ContainsFunc(f.CityCodes, func(code string) bool {
		return code == r.CityCode || code == cityOfArrondissement(r.CityCode)
	})
}

// cityOfArrondissement is the code of the city that an arrondissement is part of; "" for all other communes.
func cityOfArrondissement(code string) string {
	table, err := commune.Load()
	if err != nil {
		return ""
	}
	c, ok := table.ByCode(code)
	if !ok || c.Kind != commune.Arrondissement {
		return ""
	}
	return c.Parent
}

// newFormerCollection is an answer in the form of the former national API, which repeats what was asked.
func newFormerCollection(features []body.Feature, f body.FormerFilters, center []float64, limit int) body.FormerCollection {
	return body.FormerCollection{
		Type: "FeatureCollection", Version: "draft", Features: features, Attribution: "BAN", Licence: "ETALAB-2.0",
		Filters: f.Applied(), Center: center, Limit: limit,
	}
}

func toFilter(f body.FormerFilters) address.Filter {
	return address.Filter{Types: toAddressTypes(f.Types), Postcodes: f.Postcodes, CityCodes: f.CityCodes}
}

// toPosition is the position of coordinates as GeoJSON has them; nil where there are none.
func toPosition(coordinates []float64) *address.Position {
	if coordinates == nil {
		return nil
	}
	return &address.Position{Lon: coordinates[0], Lat: coordinates[1]}
}
