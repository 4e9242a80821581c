package api

import (
	"context"
	"errors"

	"lieudit/http/problem"
	"lieudit/queries/address"
	"lieudit/queries/address/atlas"
	"lieudit/schemas/body"
)

// queryAddresses asks the vintage that is served. Without one there is no search engine.
func queryAddresses[T any](h *handler, query func(*atlas.Edition) (T, error)) (result T, err error) {
	if h.Addresses == nil {
		return result, problem.Internal()
	}
	result, err = atlas.Ask(h.Addresses, query)
	if errors.Is(err, atlas.ErrNone) { // readiness says why
		return result, problem.Internal()
	}
	return result, err
}

// completeAddress goes on with what was typed.
func (h *handler) completeAddress(ctx context.Context, _ call, q body.CompleteAddress) (any, error) {
	return queryAddresses(h, func(e *atlas.Edition) (any, error) {
		found, err := e.Complete(ctx, address.Query{
			Text: q.Q, Limit: q.Limit, Bias: biasPosition(q.Bias),
			Filter: address.Filter{Types: toAddressTypes(q.Types), Postcodes: firstNonEmpty(q.PostalCodes, q.Postcodes),
				CityCodes: firstNonEmpty(q.InseeCodes, q.CityCodes), Departments: q.Departments},
		})
		switch {
		case errors.Is(err, address.ErrShort):
			return body.Suggestions{Envelope: body.TooShortEnvelope, Suggestions: []body.Suggestion{}}, nil
		case errors.Is(err, address.ErrUnparsable):
			return nil, problem.AddressUnparsable()
		case err != nil || len(found) == 0:
			return body.NoResultsAnswer, err
		case q.Format == geoJSON:
			return toFeatureCollection(found, func(s address.Suggestion) body.Feature { return toFeature(&s.Record, s.Score) }), nil
		}
		return body.Suggestions{Envelope: body.OKEnvelope, Suggestions: mapSlice(found, toSuggestion)}, nil
	})
}

// verifyAddress judges an address.
func (h *handler) verifyAddress(ctx context.Context, _ call, q body.VerifyAddress) (any, error) {
	return queryAddresses(h, func(e *atlas.Edition) (any, error) {
		found, err := e.Verify(ctx, buildVerifyQuery(q))
		switch {
		case errors.Is(err, address.ErrUnparsable):
			return nil, problem.AddressUnparsable()
		case err != nil || len(found) == 0:
			return body.NoResultsAnswer, err
		case q.Format == geoJSON:
			return toFeatureCollection(found, func(m address.Match) body.Feature { return toFeature(&m.Record, m.Score) }), nil
		}
		return body.Matches{Envelope: body.OKEnvelope, Matches: mapSlice(found, toMatch)}, nil
	})
}

// buildVerifyQuery is a request to verify as the engine is asked. With q, the codes are filters.
func buildVerifyQuery(q body.VerifyAddress) address.Query {
	query := address.Query{Text: q.Q, Limit: q.Limit, Bias: biasPosition(q.Bias), Filter: address.Filter{
		Types: toAddressTypes(q.Types), Postcodes: q.Postcodes, CityCodes: q.CityCodes,
	}}
	if q.Q != "" {
		query.Filter.Postcodes = firstNonEmpty(oneOrNone(q.PostalCode), q.Postcodes)
		query.Filter.CityCodes = firstNonEmpty(oneOrNone(q.InseeCode), q.CityCodes)
		return query
	}
	query.Number, query.Street, query.Complement, query.Postcode = q.Number, q.Street, q.Complement, q.PostalCode
	query.Commune, query.CityCode = q.City, q.InseeCode
	return query
}

// viewAddress is the record of an id.
func (h *handler) viewAddress(_ context.Context, c call, _ body.Empty) (any, error) {
	return queryAddresses(h, func(e *atlas.Edition) (any, error) {
		r, ok := e.View(c.vars["id"])
		if !ok {
			return nil, problem.NotFound()
		}
		return toAddress(&r), nil
	})
}

// findNearbyAddresses is what lies around a centre.
func (h *handler) findNearbyAddresses(ctx context.Context, _ call, q body.NearAddress) (any, error) {
	return queryAddresses(h, func(e *atlas.Edition) (any, error) {
		center, err := resolveCenter(ctx, e.Engine, q)
		if err != nil {
			return nil, err
		}
		found := e.Near(address.Position{Lon: center.Lon, Lat: center.Lat}, float64(q.Radius), q.Limit, toAddressTypes(q.Types)...)
		if len(found) == 0 {
			return body.NoResultsAnswer, nil
		}
		if q.Format == geoJSON {
			return toFeatureCollection(found, toNeighbourFeature), nil
		}
		return body.Neighbours{Envelope: body.OKEnvelope, Center: center, Radius: q.Radius, Results: mapSlice(found, toNeighbour)}, nil
	})
}

// searchLocalities are communes by what is asked of them.
func (h *handler) searchLocalities(_ context.Context, _ call, q body.SearchLocality) (any, error) {
	return queryAddresses(h, func(e *atlas.Edition) (any, error) {
		query := address.LocalityQuery{Text: q.Q, Limit: q.Limit, Postcodes: q.PostalCodes, Departments: q.Departments, Regions: q.Regions}
		if q.PopulationMin != nil {
			query.MinPopulation = uint32(*q.PopulationMin)
		}
		if q.PopulationMax != nil {
			query.MaxPopulation = uint32(*q.PopulationMax)
		}
		found := e.Localities(query)
		if len(found) == 0 {
			return body.NoResultsAnswer, nil
		}
		return body.Localities{Envelope: body.OKEnvelope, Results: mapSlice(found, toLocality)}, nil
	})
}
