package server

import (
	"context"
	"errors"

	"lieudit/http/problem"
	"lieudit/queries/address"
	"lieudit/queries/address/atlas"
	"lieudit/schemas/body"
)

// asking asks the vintage that is served. Without one there is no search engine.
func asking[T any](a *api, f func(*atlas.Edition) (T, error)) (answer T, err error) {
	if a.Atlas == nil {
		return answer, problem.Internal()
	}
	answer, err = atlas.Ask(a.Atlas, f)
	if errors.Is(err, atlas.ErrNone) { // readiness says why
		return answer, problem.Internal()
	}
	return answer, err
}

// complete goes on with what was typed.
func (a *api) complete(ctx context.Context, _ call, q body.CompleteAddress) (any, error) {
	return asking(a, func(e *atlas.Edition) (any, error) {
		found, err := e.Complete(ctx, address.Query{
			Text: q.Q, Limit: q.Limit, Bias: point(q.Bias),
			Filter: address.Filter{Types: types(q.Types), Postcodes: either(q.PostalCodes, q.Postcodes),
				CityCodes: either(q.InseeCodes, q.CityCodes), Departments: q.Departments},
		})
		switch {
		case errors.Is(err, address.ErrShort):
			return body.Suggestions{Envelope: body.TooShort, Suggestions: []body.Suggestion{}}, nil
		case errors.Is(err, address.ErrUnparsable):
			return nil, problem.Unparsable()
		case err != nil || len(found) == 0:
			return body.NothingFound, err
		case q.Format == geoJSON:
			return collection(found, func(s address.Suggestion) body.Feature { return feature(&s.Record, s.Score) }), nil
		}
		return body.Suggestions{Envelope: body.OK, Suggestions: each(found, suggestion)}, nil
	})
}

// verify judges an address.
func (a *api) verify(ctx context.Context, _ call, q body.VerifyAddress) (any, error) {
	return asking(a, func(e *atlas.Edition) (any, error) {
		found, err := e.Verify(ctx, question(q))
		switch {
		case errors.Is(err, address.ErrUnparsable):
			return nil, problem.Unparsable()
		case err != nil || len(found) == 0:
			return body.NothingFound, err
		case q.Format == geoJSON:
			return collection(found, func(m address.Match) body.Feature { return feature(&m.Record, m.Score) }), nil
		}
		return body.Matches{Envelope: body.OK, Matches: each(found, match)}, nil
	})
}

// question is a request to verify as the engine is asked. With q, the codes are filters.
func question(q body.VerifyAddress) address.Query {
	ask := address.Query{Text: q.Q, Limit: q.Limit, Bias: point(q.Bias), Filter: address.Filter{
		Types: types(q.Types), Postcodes: q.Postcodes, CityCodes: q.CityCodes,
	}}
	if q.Q != "" {
		ask.Filter.Postcodes = either(some(q.PostalCode), q.Postcodes)
		ask.Filter.CityCodes = either(some(q.InseeCode), q.CityCodes)
		return ask
	}
	ask.Number, ask.Street, ask.Complement, ask.Postcode = q.Number, q.Street, q.Complement, q.PostalCode
	ask.Commune, ask.CityCode = q.City, q.InseeCode
	return ask
}

// view is the record of an id.
func (a *api) view(_ context.Context, c call, _ body.Empty) (any, error) {
	return asking(a, func(e *atlas.Edition) (any, error) {
		r, ok := e.View(c.vars["id"])
		if !ok {
			return nil, problem.NotFound()
		}
		return record(&r), nil
	})
}

// near is what lies around a centre.
func (a *api) near(ctx context.Context, _ call, q body.NearAddress) (any, error) {
	return asking(a, func(e *atlas.Edition) (any, error) {
		center, err := centre(ctx, e.Engine, q)
		if err != nil {
			return nil, err
		}
		found := e.Near(address.Position{Lon: center.Lon, Lat: center.Lat}, float64(q.Radius), q.Limit, types(q.Types)...)
		if len(found) == 0 {
			return body.NothingFound, nil
		}
		if q.Format == geoJSON {
			return collection(found, distant), nil
		}
		return body.Neighbours{Envelope: body.OK, Center: center, Radius: q.Radius, Results: each(found, neighbour)}, nil
	})
}

// localities are communes by what is asked of them.
func (a *api) localities(_ context.Context, _ call, q body.SearchLocality) (any, error) {
	return asking(a, func(e *atlas.Edition) (any, error) {
		ask := address.LocalityQuery{Text: q.Q, Limit: q.Limit, Postcodes: q.PostalCodes, Departments: q.Departments, Regions: q.Regions}
		if q.PopulationMin != nil {
			ask.MinPopulation = uint32(*q.PopulationMin)
		}
		if q.PopulationMax != nil {
			ask.MaxPopulation = uint32(*q.PopulationMax)
		}
		found := e.Localities(ask)
		if len(found) == 0 {
			return body.NothingFound, nil
		}
		return body.Localities{Envelope: body.OK, Results: each(found, locality)}, nil
	})
}
