package api

import (
	"lieudit/queries/address"
	"lieudit/queries/address/commune"
	"lieudit/schemas/body"
)

// toAddressCore is what every answer shows of a record.
func toAddressCore(r *address.Record) body.AddressCore {
	return body.AddressCore{
		ID: r.ID, BanID: withoutNilBanID(r.BanID), Type: string(r.Type), Label: r.Label, Number: r.Number, Rep: r.Rep,
		Street: r.Street, Locality: r.Locality, PostalCode: r.Postcode, InseeCode: r.CityCode, City: r.City,
		OldCityCode: r.OldCityCode, OldCity: r.OldCity, District: r.District,
		Department: toDivision(r.Department), Region: toDivision(r.Region), Lon: r.Lon, Lat: r.Lat,
	}
}

// withoutNilBanID is an id_ban, unless it is the one of nothing.
func withoutNilBanID(id string) string {
	if id == "00000000-0000-0000-0000-000000000000" {
		return ""
	}
	return id
}

func toDivision(d commune.Division) *body.Division {
	if d.Code == "" {
		return nil
	}
	return &body.Division{Code: d.Code, Name: d.Name}
}

func toAddress(r *address.Record) body.Address {
	a := body.Address{
		AddressCore: toAddressCore(r), AFNOR: r.AFNOR, X: r.X, Y: r.Y, PositionType: r.PositionType, Parcels: r.Parcels,
		Population: r.Population, StreetLine: r.StreetLine, ComplementLine: r.ComplementLine, CityLine: r.CityLine, Vintage: r.Vintage,
	}
	if r.Type == address.HouseNumber {
		a.Certified = &r.Certified
	}
	return a
}

func toSuggestion(s address.Suggestion) body.Suggestion {
	return body.Suggestion{AddressCore: toAddressCore(&s.Record), Score: s.Score, Highlights: mapSlice(s.Highlights,
		func(h address.Highlight) body.Highlight { return body.Highlight{Start: h.Start, Length: h.Length} })}
}

func toMatch(m address.Match) body.Match {
	out := body.Match{
		Address: toAddress(&m.Record), Score: m.Score, NextScore: m.Next, Verdict: string(m.Verdict), Precision: string(m.Precision),
		Nearby: m.Nearby, Components: body.Components{
			Number: toComponent(m.Components.Number), Rep: toComponent(m.Components.Rep), Street: toComponent(m.Components.Street),
			PostalCode: toComponent(m.Components.Postcode), City: toComponent(m.Components.City),
		},
	}
	if m.NumberTyped {
		out.NumberFound = &m.NumberFound
	}
	return out
}

func toComponent(c address.Component) body.Component {
	return body.Component{Input: c.Typed, Matched: c.Kept, Status: string(c.Status)}
}

func toNeighbour(n address.Neighbour) body.Neighbour {
	return body.Neighbour{Address: toAddress(&n.Record), Distance: n.Distance}
}

func toLocality(l address.Locality) body.Locality {
	return body.Locality{
		InseeCode: l.Code, City: l.Name, Parent: l.Parent, PostalCodes: l.Postcodes(), Population: int(l.Population),
		Lon: l.Lon, Lat: l.Lat, Department: toDivision(l.Department), Region: toDivision(l.Region), Score: l.Score,
	}
}

// mapSlice is a list made of another; it is never nil.
func mapSlice[A, B any](all []A, convert func(A) B) []B {
	mapped := make([]B, len(all))
	for i := range all {
		mapped[i] = convert(all[i])
	}
	return mapped
}

func toAddressTypes(names []string) []address.Type {
	if names == nil {
		return nil
	}
	return mapSlice(names, func(n string) address.Type { return address.Type(n) })
}

// firstNonEmpty is a filter under its name, else under its former one.
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

func biasPosition(b body.Bias) *address.Position {
	if b.Lat == nil || b.Lon == nil {
		return nil
	}
	return &address.Position{Lon: *b.Lon, Lat: *b.Lat}
}
