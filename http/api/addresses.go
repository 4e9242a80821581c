package api

import (
	"context"
	"errors"
	"math"
	"slices"

	"lieudit/http/kit"
	"lieudit/http/resolve"
	"lieudit/queries/address"
	"lieudit/queries/address/live"
	"lieudit/queries/worker"
	"lieudit/schemas/body"
	"lieudit/schemas/geo"
	"lieudit/schemas/refusal"
)

// queryAddresses is resolve.QueryServed on the handler's addresses.
func queryAddresses[T any](h *handler, query func(*live.Engine) (T, error)) (T, error) {
	return resolve.QueryServed(h.addresses, query)
}

// addressBytes is what an address takes in an answer that is built of it.
const addressBytes = 2 << 10

// reserveAddresses reserves memory for an answer of n addresses. It must be called before a vintage is held: a vintage that is held while
// the request waits for memory that others hold could not be closed when a new one is served.
func reserveAddresses(c call, n int) error { return c.Answer.Reserve(int64(n) * addressBytes) }

// completeAddress suggests addresses for a text that is still being typed. A text that is too short to search for is not an error:
// an input field sends the first letters too.
func (h *handler) completeAddress(ctx context.Context, _ call, q body.CompleteAddress) (kit.Response, error) {
	return queryAddresses(h, func(e *live.Engine) (kit.Response, error) {
		found, err := e.Complete(ctx, address.Query{
			Text: q.Q, Limit: q.Limit, Bias: biasPosition(q.Bias),
			Filter: address.Filter{Types: toAddressTypes(q.Types), Postcodes: firstNonEmpty(q.PostalCodes, q.Postcodes),
				CityCodes: firstNonEmpty(q.InseeCodes, q.CityCodes), Departments: q.Departments},
		})
		switch {
		case errors.Is(err, address.ErrShort):
			return kit.OK(tooShort(q.Format))
		case errors.Is(err, address.ErrUnparsable):
			return kit.Response{}, refusal.AddressUnparsable
		case err != nil || len(found) == 0:
			return kit.Response{Body: noResults(q.Format)}, err
		case q.Format == geoJSON:
			return kit.OK(toFeatureCollection(found, func(s address.Suggestion) body.Feature { return toFeature(&s.Record, s.Score) }))
		}
		return kit.OK(body.Suggestions{Envelope: body.OKEnvelope, Suggestions: mapSlice(found, toSuggestion)})
	})
}

// verifyAddress finds the addresses that are meant by what was typed, each with a score and a verdict, the best first.
func (h *handler) verifyAddress(ctx context.Context, _ call, q body.VerifyAddress) (kit.Response, error) {
	return queryAddresses(h, func(e *live.Engine) (kit.Response, error) {
		found, reason, err := verifyExplained(ctx, e.Engine, buildVerifyQuery(q), q.Explain)
		switch {
		case errors.Is(err, address.ErrUnparsable):
			return kit.Response{}, refusal.AddressUnparsable
		case err != nil || len(found) == 0:
			return kit.Response{Body: noMatches(q.Format, reason)}, err
		case q.Format == geoJSON:
			return kit.OK(toFeatureCollection(found, func(m address.Match) body.Feature { return toFeature(&m.Record, m.Score) }))
		}
		return kit.OK(body.Matches{Envelope: body.OKEnvelope, Matches: mapSlice(found, toMatch)})
	})
}

// verifyExplained verifies an address. reason is why nothing was found, if the request asks for it.
func verifyExplained(ctx context.Context, e *address.Engine, q address.Query, explains bool) (found []address.Match, reason address.Reason, err error) {
	if explains {
		return e.Explain(ctx, q)
	}
	found, err = e.Verify(ctx, q)
	return found, "", err
}

// buildVerifyQuery is the engine's query for a request. With q, an address in one line, postcode and commune code are filters,
// which every match must fit. Without q they are parts of the address, which a match may correct.
func buildVerifyQuery(q body.VerifyAddress) address.Query {
	query := address.Query{Text: q.Q, Limit: q.Limit, Bias: biasPosition(q.Bias), CommuneFallback: isCommuneFallback(q.Fallback), Filter: address.Filter{
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

// isCommuneFallback reports whether the parameter repli asks for the commune where an address is not found.
func isCommuneFallback(repli string) bool { return repli == "commune" }

// viewAddress shows the record of an id or of an id_ban.
func (h *handler) viewAddress(_ context.Context, c call, _ body.Empty) (kit.Response, error) {
	return queryAddresses(h, func(e *live.Engine) (kit.Response, error) {
		r, ok := e.View(c.Vars["id"])
		if !ok {
			return kit.Response{}, refusal.NotFound
		}
		return kit.OK(resolve.ShowRecord(&r))
	})
}

// findNearbyAddresses lists the addresses around a centre, the nearest first. The radius is in metres.
func (h *handler) findNearbyAddresses(ctx context.Context, c call, q body.NearAddress) (kit.Response, error) {
	if err := reserveAddresses(c, q.Limit); err != nil {
		return kit.Response{}, err
	}
	return queryAddresses(h, func(e *live.Engine) (kit.Response, error) {
		center, err := resolveCenter(ctx, e.Engine, q)
		if err != nil {
			return kit.Response{}, err
		}
		filter := address.Filter{
			Types: toAddressTypes(q.Types), Postcodes: firstNonEmpty(q.PostalCodes, q.Postcodes), CityCodes: firstNonEmpty(q.InseeCodes, q.CityCodes),
		}
		if err := acquireWorkerIfWide(ctx, float64(q.Radius), filter); err != nil {
			return kit.Response{}, err
		}
		found := e.Near(geo.Point{Lon: center.Lon, Lat: center.Lat}, float64(q.Radius), q.Limit, filter)
		if len(found) == 0 {
			return kit.OK(noResults(q.Format))
		}
		if q.Format == geoJSON {
			return kit.OK(toFeatureCollection(found, toNeighbourFeature))
		}
		return kit.OK(body.Neighbours{Envelope: body.OKEnvelope, Center: center, Radius: q.Radius, Results: mapSlice(found, toNeighbour)})
	})
}

// maxRadiusWithoutWorker is the widest circle, in metres, that a search around a position goes through without a worker.
const maxRadiusWithoutWorker = 1_000

// acquireWorkerIfWide waits for a worker before a search around a position that may go through all addresses of a city, because a filter
// admits few of them.
func acquireWorkerIfWide(ctx context.Context, radius float64, f address.Filter) error {
	if radius <= maxRadiusWithoutWorker || len(f.Postcodes) == 0 && len(f.CityCodes) == 0 && !slices.Contains(f.Types, address.Municipality) {
		return nil
	}
	return worker.Acquire(ctx)
}

// searchLocalities lists communes by name, postcode, department, region and population.
func (h *handler) searchLocalities(_ context.Context, c call, q body.SearchLocality) (kit.Response, error) {
	if err := reserveAddresses(c, q.Limit); err != nil {
		return kit.Response{}, err
	}
	return queryAddresses(h, func(e *live.Engine) (kit.Response, error) {
		query := address.LocalityQuery{Text: q.Q, Limit: q.Limit, Postcodes: q.PostalCodes, Departments: q.Departments, Regions: q.Regions}
		if q.PopulationMin != nil {
			query.MinPopulation = uint32(*q.PopulationMin)
		}
		if q.PopulationMax != nil {
			query.MaxPopulation = uint32(*q.PopulationMax)
		}
		found, err := e.Localities(query)
		switch {
		case errors.Is(err, address.ErrUnparsable):
			return kit.Response{}, refusal.AddressUnparsable
		case err != nil || len(found) == 0:
			return kit.Response{Body: body.NoResultsAnswer}, err
		}
		return kit.OK(body.Localities{Envelope: body.OKEnvelope, Results: mapSlice(found, toLocality)})
	})
}

// resolveCenter is the centre of a search: a position, or the one address that a text means (resolve.Address). A text that means none
// is refused with refusal.AddressUnresolved. The caller checks that q has a centre or both coordinates.
func resolveCenter(ctx context.Context, e *address.Engine, q body.NearAddress) (*body.Center, error) {
	if q.Center == "" {
		return &body.Center{Lon: *q.Lon, Lat: *q.Lat}, nil
	}
	found, err := resolve.Address(ctx, e, q.Center)
	if err != nil {
		return nil, err
	}
	shown := resolve.ShowRecord(&found.Record)
	return &body.Center{Input: q.Center, Score: found.Score, Address: &shown, Lon: shown.Lon, Lat: shown.Lat}, nil
}

const geoJSON = "geojson"

// toFeatureCollection is the answer to a search as GeoJSON, in the form of the former national address API, whose clients can
// keep their code.
func toFeatureCollection[A any](found []A, toFeature func(A) body.Feature) body.FeatureCollection {
	return newFeatureCollection(body.OKEnvelope, mapSlice(found, toFeature))
}

func newFeatureCollection(e body.Envelope, features []body.Feature) body.FeatureCollection {
	return body.FeatureCollection{Type: "FeatureCollection", Envelope: e, Features: features, Attribution: "BAN", Licence: "Licence Ouverte 2.0"}
}

// tooShort is the answer to a completion of too few letters, which is not an error.
func tooShort(format string) any {
	if format != geoJSON {
		return body.Suggestions{Envelope: body.TooShortEnvelope, Suggestions: []body.Suggestion{}}
	}
	return newFeatureCollection(body.TooShortEnvelope, []body.Feature{})
}

// noResults is the answer to a search that found nothing: as GeoJSON a collection without features, which clients that read
// features can continue reading.
func noResults(format string) any {
	if format != geoJSON {
		return body.NoResultsAnswer
	}
	return newFeatureCollection(body.NoResultsAnswer.Envelope, []body.Feature{})
}

// noMatches is the answer to a verification that found nothing. Without a reason it is noResults.
func noMatches(format string, reason address.Reason) any {
	if format != geoJSON {
		return body.Matches{Envelope: body.NoResultsAnswer.Envelope, Matches: []body.Match{}, Reason: string(reason)}
	}
	c := newFeatureCollection(body.NoResultsAnswer.Envelope, []body.Feature{})
	c.Reason = string(reason)
	return c
}

// toFeature shows a record with the names of the former national API. The member name is number and street for a house number,
// the commune for a commune, and nom_voie for all else.
func toFeature(r *address.Record, score float64) body.Feature {
	p := body.Properties{
		Label: r.Label, Score: score, HouseNumber: r.HouseNumber(), ID: r.ID, BanID: r.BanID, Name: r.Street,
		PostCode: r.Postcode, CityCode: r.CityCode, OldCityCode: r.OldCityCode, OldCity: r.OldCity, X: r.X, Y: r.Y,
		City: r.City, District: r.District, Context: r.Context(), Type: string(r.Type), Population: r.Population,
	}
	switch r.Type {
	case address.HouseNumber:
		p.Name, p.Street = p.HouseNumber+" "+r.Street, r.Street
	case address.Municipality:
		p.Name = r.City
	case address.StreetType:
		p.Street = r.Street
	}
	return body.Feature{Type: "Feature", Geometry: body.Point{Type: "Point", Coordinates: []float64{r.Lon, r.Lat}}, Properties: p}
}

// toNeighbourFeature scores a neighbour by its distance: 1 at the centre, 0.5 at one kilometre.
func toNeighbourFeature(n address.Neighbour) body.Feature {
	f := toFeature(&n.Record, math.Round(1e4/(1+float64(n.Distance)/1000))/1e4)
	f.Properties.Distance = &n.Distance
	return f
}

func toSuggestion(s address.Suggestion) body.Suggestion {
	return body.Suggestion{AddressCore: resolve.ShowCore(&s.Record), Score: s.Score, Highlights: mapSlice(s.Highlights,
		func(h address.Highlight) body.Highlight { return body.Highlight{Start: h.Start, Length: h.Length} })}
}

// toMatch shows a match. NumberFound and the complement are left out where none was typed.
func toMatch(m address.Match) body.Match {
	out := body.Match{
		Address: resolve.ShowRecord(&m.Record), Score: m.Score, NextScore: m.Next, Verdict: string(m.Verdict), Precision: string(m.Precision),
		IsResolved: m.IsResolved, Reason: string(m.Reason), Nearby: m.Nearby, Components: body.Components{
			Number: toComponent(m.Components.Number), Rep: toComponent(m.Components.Rep), Street: toComponent(m.Components.Street),
			PostalCode: toComponent(m.Components.Postcode), City: toComponent(m.Components.City), Unknown: m.Components.Unknown,
		},
	}
	if m.NumberTyped {
		out.NumberFound = &m.NumberFound
	}
	if m.Components.Complement.Typed != "" {
		complement := toComponent(m.Components.Complement)
		out.Components.Complement = &complement
	}
	return out
}

func toComponent(c address.Component) body.Component {
	return body.Component{Input: c.Typed, Matched: c.Kept, Status: string(c.Status)}
}

func toNeighbour(n address.Neighbour) body.Neighbour {
	return body.Neighbour{Address: resolve.ShowRecord(&n.Record), Distance: n.Distance}
}

func toLocality(l address.Locality) body.Locality {
	return body.Locality{
		InseeCode: l.Code, City: l.Name, Parent: l.Parent, PostalCodes: l.Postcodes(), Population: int(l.Population),
		Lon: l.Lon, Lat: l.Lat, Department: resolve.ShowDivision(l.Department), Region: resolve.ShowDivision(l.Region), Score: l.Score,
	}
}

// mapSlice converts the items of a list; the result is never nil, so that JSON shows [].
func mapSlice[A, B any](all []A, convert func(A) B) []B {
	mapped := make([]B, len(all))
	for i := range all {
		mapped[i] = convert(all[i])
	}
	return mapped
}

// toAddressTypes are the types that a request names; nil, which admits all, where it names none.
func toAddressTypes(names []string) []address.Type {
	if names == nil {
		return nil
	}
	return mapSlice(names, func(n string) address.Type { return address.Type(n) })
}

// firstNonEmpty is the values of a parameter, otherwise those of the parameter that the former national API has for the same.
func firstNonEmpty(values, fallback []string) []string {
	if len(values) > 0 {
		return values
	}
	return fallback
}

func oneOrNone(text string) []string {
	if text == "" {
		return nil
	}
	return []string{text}
}

// biasPosition is the position of a bias, nil without one.
func biasPosition(b body.Bias) *geo.Point {
	if b.Lat == nil || b.Lon == nil {
		return nil
	}
	return &geo.Point{Lon: *b.Lon, Lat: *b.Lat}
}
