// Package geocode finds the position of a customer's site by its address. What it finds is stored, so its one
// constraint is to accept only what a careful person would.
//
// Geocode makes an address.Query of each way to read the site's address, has the vintage resolve them by the rule that
// holds for every text (address.Engine.Resolve), and takes the best. The codes beside an address bind: what lies outside of
// the commune of its INSEE code, of those of its postcode or of their department is no position of it.
package geocode

import (
	"context"
	"errors"
	"strings"

	"lieudit/queries/address"
	"lieudit/queries/address/live"
	"lieudit/queries/address/text"
	"lieudit/schemas/locations"
)

// Geocoder finds positions in the vintage that serves at the moment. It is safe for concurrent use.
type Geocoder struct{ addresses *live.Vintage }

// New makes a Geocoder that uses the live vintage.
func New(a *live.Vintage) *Geocoder { return &Geocoder{a} }

// Geocode is the position of a site's address, with the score of its verification. found is false where the BAN does
// not have the address, or where no vintage was ever imported. An id_ban that the vintage knows stands for the address.
// A vintage that was withdrawn is an error.
func (s *Geocoder) Geocode(ctx context.Context, c locations.Content) (p locations.Position, found bool, err error) {
	best, err := live.Query(s.addresses, func(e *live.Engine) (locations.Position, error) { return geocodeSite(ctx, e, c), nil })
	if _, withdrawn := errors.AsType[*live.WithdrawnError](err); errors.Is(err, live.ErrNone) && !withdrawn {
		return locations.Position{}, false, nil
	}
	return best, best.Score > 0, err
}

func geocodeSite(ctx context.Context, e *live.Engine, c locations.Content) locations.Position {
	if c.IDBan != "" {
		if r, ok := e.View(c.IDBan); ok {
			return positionOf(&r, 1)
		}
	}
	if c.Address == nil || !IsFrenchCountry(c.Address.Country) {
		return locations.Position{}
	}
	var best address.Match
	for _, query := range addressQueries(*c.Address) {
		m, ok, err := e.OwnIndex.Resolve(ctx, query)
		if err == nil && ok && m.Score > best.Score && e.OwnIndex.AdmitsPostcode(query.Postcode, &m.Record) {
			best = m
		}
		if best.Verdict == address.Exact {
			break
		}
	}
	return positionOf(&best.Record, best.Score)
}

func positionOf(r *address.Record, score float64) locations.Position {
	return locations.Position{Lat: r.Lat, Lon: r.Lon, Source: locations.SourceBAN, IDBan: r.BanID, Score: score, Precision: locations.Precision(r.Type)}
}

// addressQueries are the ways to read an address, the likeliest first: with the street in the first line, or, where
// that says something else (a building, a shopping centre), in the second.
func addressQueries(a locations.SiteAddress) []address.Query {
	query := address.Query{Street: a.Line1, Postcode: a.PostalCode, Commune: a.City, CityCode: a.InseeCode}
	if strings.TrimSpace(a.Line2) == "" {
		return []address.Query{query}
	}
	secondLine := query
	secondLine.Street = a.Line2
	if strings.TrimSpace(a.Line1) == "" {
		return []address.Query{secondLine}
	}
	return []address.Query{query, secondLine}
}

// IsFrenchCountry says whether addresses of a country are in the BAN: France as people write it, or the name or ISO
// code of one of its parts. No country is France.
func IsFrenchCountry(country string) bool {
	switch text.Fold(country) {
	case "", "fr", "fra", "france", "gp", "mq", "gf", "re", "yt", "pm", "bl", "mf",
		"guadeloupe", "martinique", "guyane", "la reunion", "reunion", "mayotte":
		return true
	}
	return false
}
