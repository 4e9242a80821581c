// Package siting says where a customer's site is, by its address. What it answers is stored, so it answers only what a
// careful person would accept: an address that several others fit as well, or of which only the commune was
// understood, has no place.
package siting

import (
	"context"
	"errors"
	"strings"

	"lieudit/queries/address"
	"lieudit/queries/address/atlas"
	"lieudit/queries/address/text"
	"lieudit/schemas/site"
)

// Siting places sites on the vintage that is served at the moment. It is safe for concurrent use.
type Siting struct{ atlas *atlas.Atlas }

// New places sites on an atlas.
func New(a *atlas.Atlas) *Siting { return &Siting{a} }

// Place is where the address of a site is, with the score of its verification; false where the BAN does not have it, or
// no vintage was ever there. An id_ban that the base knows is the address. A vintage that must not be asked is an error.
func (s *Siting) Place(ctx context.Context, c site.Content) (p site.Position, found bool, err error) {
	best, err := atlas.Ask(s.atlas, func(e *atlas.Edition) (site.Position, error) { return place(ctx, e, c), nil })
	if _, withdrawn := errors.AsType[*atlas.WithdrawnError](err); errors.Is(err, atlas.ErrNone) && !withdrawn {
		return site.Position{}, false, nil
	}
	return best, best.Score > 0, err
}

func place(ctx context.Context, e *atlas.Edition, c site.Content) site.Position {
	if c.IDBan != "" {
		if r, ok := e.View(c.IDBan); ok {
			return position(&r, 1)
		}
	}
	if c.Address == nil || !french(c.Address.Country) {
		return site.Position{}
	}
	var best address.Match
	for _, ask := range readings(*c.Address) {
		found, err := e.Own.Verify(ctx, ask)
		if err == nil && len(found) > 0 && certain(&found[0], ask.Street == "") && found[0].Score > best.Score {
			best = found[0]
		}
		if best.Verdict == address.Exact {
			break
		}
	}
	return position(&best.Record, best.Score)
}

func position(r *address.Record, score float64) site.Position {
	return site.Position{Lat: r.Lat, Lon: r.Lon, Source: site.FromBan, IDBan: r.BanID, Score: score}
}

// readings are the ways to read an address, the likeliest first: with the street in the first line, or, where that says
// something else (a building, a shopping centre), in the second.
func readings(a site.Address) []address.Query {
	ask := address.Query{Street: a.Line1, Postcode: a.PostalCode, Commune: a.City, CityCode: a.InseeCode, Limit: 1}
	if strings.TrimSpace(a.Line2) == "" {
		return []address.Query{ask}
	}
	other := ask
	other.Street = a.Line2
	if strings.TrimSpace(a.Line1) == "" {
		return []address.Query{other}
	}
	return []address.Query{ask, other}
}

// sure is the least score of a match that stands for an address without being exact. On Lozère, nine in ten addresses
// with a slip in the street's name reach it, and one in seventy of streets that exist elsewhere only; at the score that
// a verification answers from, every second one of these would be placed.
const sure = 0.8

// certain says whether a match can stand for the address. A commune can only where nothing else was said.
func certain(m *address.Match, nothingElse bool) bool {
	if m.Precision == address.Municipality && !nothingElse {
		return false
	}
	return m.Verdict == address.Exact || m.Score >= sure && m.Next < m.Score
}

// french says whether addresses of a country are in the BAN: France as people write it, or the ISO code of one of its
// parts.
func french(country string) bool {
	switch text.Fold(country) {
	case "", "fr", "fra", "france", "gp", "mq", "gf", "re", "yt", "pm", "bl", "mf",
		"guadeloupe", "martinique", "guyane", "la reunion", "reunion", "mayotte":
		return true
	}
	return false
}
