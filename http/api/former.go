package api

import (
	"context"
	"errors"

	"lieudit/http/kit"
	"lieudit/queries/address"
	"lieudit/queries/address/atlas"
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
		found := e.Near(at, reverseRadius, q.Limit, toFilter(q.FormerFilters))
		return kit.OK(newFormerCollection(mapSlice(found, toNeighbourFeature), q.FormerFilters, q.Coordinates(), q.Limit))
	})
}

// reverseRadius is how far away the nearest address may be, in metres. The former API sets no limit; a point at sea is nowhere.
const reverseRadius = 10_000

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
