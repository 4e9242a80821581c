package api

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"lieudit/http/kit"
	"lieudit/queries/address"
	"lieudit/queries/address/live"
	"lieudit/schemas/body"
	"lieudit/schemas/geo"
)

// searchAsFormerAPI finds addresses in the words of the former national API. There, a search without a match, or with a
// text that holds no address, is answered with an empty collection.
func (h *handler) searchAsFormerAPI(ctx context.Context, c call, q body.FormerSearch) (kit.Response, error) {
	if err := reserveAddresses(c, q.Limit); err != nil {
		return kit.Response{}, err
	}
	return queryAddresses(h, func(e *live.Engine) (kit.Response, error) {
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
func (h *handler) reverseAsFormerAPI(ctx context.Context, c call, q body.FormerReverse) (kit.Response, error) {
	if err := reserveAddresses(c, q.Limit); err != nil {
		return kit.Response{}, err
	}
	return queryAddresses(h, func(e *live.Engine) (kit.Response, error) {
		at, filter := *toPosition(q.Coordinates()), toFilter(q.FormerFilters)
		if err := acquireWorkerIfWide(ctx, reverseRadius, filter); err != nil {
			return kit.Response{}, err
		}
		found := nearestAddresses(e.Engine, at, q.Limit, filter)
		return kit.OK(newFormerCollection(mapSlice(found, toNeighbourFeature), q.FormerFilters, q.Coordinates(), q.Limit))
	})
}

// reverseRadius is how far away the nearest address may be, in metres. The former API sets no limit; a point at sea is nowhere.
const reverseRadius = 10_000

// nearestAddresses is what lies nearest to a point and passes a filter, at most limit of it: of what is as far, house numbers come
// first. A street lies where one of its numbers does, and the number says more.
func nearestAddresses(e *address.Engine, at geo.Point, limit int, f address.Filter) []address.Neighbour {
	others := slices.DeleteFunc(slices.Clone(f.Types), func(t address.Type) bool { return t == address.HouseNumber })
	switch {
	case len(f.Types) == 0:
		others = []address.Type{address.StreetType, address.LocalityType}
	case len(others) == 0 || len(others) == len(f.Types):
		return e.Near(at, reverseRadius, limit, f)
	}
	f.Types = []address.Type{address.HouseNumber}
	found, radius := e.Near(at, reverseRadius, limit, f), float64(reverseRadius)
	if len(found) == limit {
		radius = float64(found[limit-1].Distance) + 1 // what lies further away is not answered
	}
	f.Types = others
	found = append(found, e.Near(at, radius, limit, f)...)
	slices.SortStableFunc(found, func(x, y address.Neighbour) int { return cmp.Compare(x.Distance, y.Distance) })
	return found[:min(len(found), limit)]
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
func toPosition(coordinates []float64) *geo.Point {
	if coordinates == nil {
		return nil
	}
	return &geo.Point{Lon: coordinates[0], Lat: coordinates[1]}
}
