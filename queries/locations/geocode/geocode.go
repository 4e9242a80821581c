// Package geocode says where a customer's site is, by its address. What it answers is stored, so it answers only what a
// careful person would accept: an address that several others fit as well, or of which only the commune was
// understood, has no place.
package geocode

import (
	"context"
	"errors"
	"strings"

	"lieudit/queries/address"
	"lieudit/queries/address/atlas"
	"lieudit/queries/address/text"
	"lieudit/schemas/locations"
)

// Geocoder places sites on the vintage that is served at the moment. It is safe for concurrent use.
type Geocoder struct{ atlas *atlas.Atlas }

// New places sites on an atlas.
func New(a *atlas.Atlas) *Geocoder { return &Geocoder{a} }

// Geocode is where the address of a site is, with the score of its verification; false where the BAN does not have it, or
// no vintage was ever there. An id_ban that the base knows is the address. A vintage that must not be asked is an error.
func (s *Geocoder) Geocode(ctx context.Context, c locations.Content) (p locations.Position, found bool, err error) {
	best, err := atlas.Ask(s.atlas, func(e *atlas.Edition) (locations.Position, error) { return geocodeSite(ctx, e, c), nil })
	if _, withdrawn := errors.AsType[*atlas.WithdrawnError](err); errors.Is(err, atlas.ErrNone) && !withdrawn {
		return locations.Position{}, false, nil
	}
	return best, best.Score > 0, err
}

func geocodeSite(ctx context.Context, e *atlas.Edition, c locations.Content) locations.Position {
	if c.IDBan != "" {
		if r, ok := e.View(c.IDBan); ok {
			return positionOf(&r, 1)
		}
	}
	if c.Address == nil || !isFrenchCountry(c.Address.Country) {
		return locations.Position{}
	}
	var best address.Match
	for _, query := range addressQueries(*c.Address) {
		found, err := e.Own.Verify(ctx, query)
		if err == nil && len(found) > 0 && isCertain(&found[0], query.Street == "") && found[0].Score > best.Score {
			best = found[0]
		}
		if best.Verdict == address.Exact {
			break
		}
	}
	return positionOf(&best.Record, best.Score)
}

func positionOf(r *address.Record, score float64) locations.Position {
	return locations.Position{Lat: r.Lat, Lon: r.Lon, Source: locations.SourceBAN, IDBan: r.BanID, Score: score}
}

// addressQueries are the ways to read an address, the likeliest first: with the street in the first line, or, where that says
// something else (a building, a shopping centre), in the second.
func addressQueries(a locations.SiteAddress) []address.Query {
	query := address.Query{Street: a.Line1, Postcode: a.PostalCode, Commune: a.City, CityCode: a.InseeCode, Limit: 1}
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

// minCertainScore is the least score of a match that stands for an address without being exact. On Lozère, nine in ten addresses
// with a slip in the street's name reach it, and one in seventy of streets that exist elsewhere only; at the score that
// a verification answers from, every second one of these would be placed.
const minCertainScore = 0.8

// isCertain says whether a match can stand for the address. A commune can only where nothing else was said.
func isCertain(m *address.Match, isCommuneOnly bool) bool {
	if m.Precision == address.Municipality && !isCommuneOnly {
		return false
	}
	return m.Verdict == address.Exact || m.Score >= minCertainScore && m.Next < m.Score
}

// isFrenchCountry says whether addresses of a country are in the BAN: France as people write it, or the ISO code of one of its
// parts.
func isFrenchCountry(country string) bool {
	switch text.Fold(country) {
	case "", "fr", "fra", "france", "gp", "mq", "gf", "re", "yt", "pm", "bl", "mf",
		"guadeloupe", "martinique", "guyane", "la reunion", "reunion", "mayotte":
		return true
	}
	return false
}
