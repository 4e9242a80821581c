// Package resolve finds the one address that a typed text means, and shows the record of an address as in answers. Proximity, near
// and routes all resolve by this rule, so that a text means the same address everywhere.
//
//	text ── Address ──> Found{Record, Score, Verdict} ── ShowRecord ──> body.Address
//	            └─────> refusal.AddressUnresolved, refusal.AddressUnavailable where no vintage is served
package resolve

import (
	"context"
	"errors"
	"regexp"
	"strings"

	"lieudit/queries/address"
	"lieudit/queries/address/commune"
	"lieudit/queries/address/live"
	"lieudit/schemas/body"
	"lieudit/schemas/refusal"
)

// QueryServed runs a query on the address base that is being served, and keeps that vintage open meanwhile. If there is no
// vintage, it fails with refusal.AddressUnavailable: readiness reports the cause to operators, and clients can do nothing about
// it.
func QueryServed[T any](addresses *live.Vintage, query func(*live.Engine) (T, error)) (T, error) {
	result, err := live.Query(addresses, query)
	if errors.Is(err, live.ErrNone) {
		return result, refusal.AddressUnavailable
	}
	return result, err
}

// Found is the address that a text means, with a measure of certainty. An id is exact.
type Found struct {
	Record  address.Record
	Score   float64 // 0 to 1
	Verdict address.Verdict
}

// idPattern matches an id or an id_ban. A postcode has the form of a commune's id and is tried as one first.
var idPattern = regexp.MustCompile(`^([0-9][0-9AB][0-9]{3}(_\S+)?|[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})$`)

// Address returns the address with the id text or, if text is not an id, the one that it resolves to (Engine.Resolve). If text is
// not an address, Address fails with refusal.AddressUnresolved, which echoes it.
func Address(ctx context.Context, e *address.Engine, text string) (Found, error) {
	if id := strings.TrimSpace(text); idPattern.MatchString(id) {
		if r, ok := e.View(id); ok {
			return Found{r, 1, address.Exact}, nil
		}
	}
	m, ok, err := e.Resolve(ctx, address.Query{Text: text})
	if err != nil {
		return Found{}, err
	}
	if !ok {
		return Found{}, Unresolved(text)
	}
	return Found{m.Record, m.Score, m.Verdict}, nil
}

// Unresolved returns the refusal of a text, or of the input it stands for, that leads to no address.
func Unresolved(typed string) error {
	return refusal.AddressUnresolved.With(refusal.Details{Typed: typed})
}

// ShowCore returns the part of a record that every answer shows.
func ShowCore(r *address.Record) body.AddressCore {
	return body.AddressCore{
		ID: r.ID, BanID: r.BanID, BanIDOrigin: string(r.BanIDOrigin), Type: string(r.Type), Label: r.Label, Number: r.Number, Rep: r.Rep,
		Street: r.Street, Locality: r.Locality, PostalCode: r.Postcode, InseeCode: r.CityCode, City: r.City,
		OldCityCode: r.OldCityCode, OldCity: r.OldCity, District: r.District,
		Department: ShowDivision(r.Department), Region: ShowDivision(r.Region), Lon: r.Lon, Lat: r.Lat,
	}
}

// ShowDivision shows a department or a region, or nil if the record has none.
func ShowDivision(d commune.Division) *body.Division {
	if d.Code == "" {
		return nil
	}
	return &body.Division{Code: d.Code, Name: d.Name}
}

// ShowRecord shows a record in full. Only house numbers have Certified.
func ShowRecord(r *address.Record) body.Address {
	a := body.Address{
		AddressCore: ShowCore(r), AFNOR: r.AFNOR, X: r.X, Y: r.Y, PositionType: r.PositionType, Parcels: r.Parcels,
		Population: r.Population, StreetLine: r.StreetLine, ComplementLine: r.ComplementLine, CityLine: r.CityLine, Vintage: r.Vintage,
	}
	if r.Type == address.HouseNumber {
		a.Certified = &r.Certified
	}
	return a
}
