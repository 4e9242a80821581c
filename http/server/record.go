package server

import (
	"lieudit/queries/address"
	"lieudit/queries/address/commune"
	"lieudit/schemas/body"
)

// core is what every answer shows of a record.
func core(r *address.Record) body.AddressCore {
	return body.AddressCore{
		ID: r.ID, BanID: known(r.BanID), Type: string(r.Type), Label: r.Label, Number: r.Number, Rep: r.Rep,
		Street: r.Street, Locality: r.Locality, PostalCode: r.Postcode, InseeCode: r.CityCode, City: r.City,
		OldCityCode: r.OldCityCode, OldCity: r.OldCity, District: r.District,
		Department: division(r.Department), Region: division(r.Region), Lon: r.Lon, Lat: r.Lat,
	}
}

// known is an id_ban, unless it is the one of nothing.
func known(id string) string {
	if id == "00000000-0000-0000-0000-000000000000" {
		return ""
	}
	return id
}

func division(d commune.Division) *body.Division {
	if d.Code == "" {
		return nil
	}
	return &body.Division{Code: d.Code, Name: d.Name}
}

func record(r *address.Record) body.Address {
	a := body.Address{
		AddressCore: core(r), AFNOR: r.AFNOR, X: r.X, Y: r.Y, PositionType: r.PositionType, Parcels: r.Parcels,
		Population: r.Population, StreetLine: r.StreetLine, ComplementLine: r.ComplementLine, CityLine: r.CityLine, Vintage: r.Vintage,
	}
	if r.Type == address.HouseNumber {
		a.Certified = &r.Certified
	}
	return a
}

func suggestion(s address.Suggestion) body.Suggestion {
	return body.Suggestion{AddressCore: core(&s.Record), Score: s.Score, Highlights: each(s.Highlights,
		func(h address.Highlight) body.Highlight { return body.Highlight{Start: h.Start, Length: h.Length} })}
}

func match(m address.Match) body.Match {
	out := body.Match{
		Address: record(&m.Record), Score: m.Score, Next: m.Next, Verdict: string(m.Verdict), Precision: string(m.Precision),
		Nearby: m.Nearby, Components: body.Components{
			Number: component(m.Components.Number), Rep: component(m.Components.Rep), Street: component(m.Components.Street),
			Postal: component(m.Components.Postcode), City: component(m.Components.City),
		},
	}
	if m.NumberTyped {
		out.NumberFound = &m.NumberFound
	}
	return out
}

func component(c address.Component) body.Component {
	return body.Component{Typed: c.Typed, Kept: c.Kept, Status: string(c.Status)}
}

func neighbour(n address.Neighbour) body.Neighbour {
	return body.Neighbour{Address: record(&n.Record), Distance: n.Distance}
}

func locality(l address.Locality) body.Locality {
	return body.Locality{
		InseeCode: l.Code, City: l.Name, Parent: l.Parent, PostalCodes: l.Postcodes(), Population: int(l.Population),
		Lon: l.Lon, Lat: l.Lat, Department: division(l.Department), Region: division(l.Region), Score: l.Score,
	}
}

// each is a list made of another; it is never nil.
func each[A, B any](all []A, of func(A) B) []B {
	made := make([]B, len(all))
	for i := range all {
		made[i] = of(all[i])
	}
	return made
}

func types(names []string) []address.Type {
	if names == nil {
		return nil
	}
	return each(names, func(n string) address.Type { return address.Type(n) })
}

// either is a filter under its name, else under its former one.
func either(now, formerly []string) []string {
	if len(now) > 0 {
		return now
	}
	return formerly
}

func some(text string) []string {
	if text == "" {
		return nil
	}
	return []string{text}
}

func point(b body.Bias) *address.Position {
	if b.Lat == nil || b.Lon == nil {
		return nil
	}
	return &address.Position{Lon: *b.Lon, Lat: *b.Lat}
}
