package meili

import (
	"slices"
	"strings"

	"lieudit/queries/locations/search"
	"lieudit/schemas/geo"
	"lieudit/schemas/locations"
	"lieudit/schemas/table"
)

// verifyRow reports whether a row is part of the answer in its current state, whatever the index holds, and returns the hit
// to show. It checks every part of the query again, but not the order.
func (s *indexSearch) verifyRow(r table.Site) (search.Hit, bool, error) {
	if r.Account != s.Account || s.Referential != "" && r.Referential != s.Referential || !s.Status.Includes(r.Active) {
		return search.Hit{}, false, nil
	}
	shown, err := locations.SiteFromRow(r)
	if err != nil {
		return search.Hit{}, false, err
	}
	h := search.Hit{Site: shown}
	var position *geo.Point
	if shown.Lat != nil && shown.Lon != nil {
		position = &geo.Point{Lat: *shown.Lat, Lon: *shown.Lon}
	}
	if position != nil && s.Center != nil {
		h.Distance = geo.Distance(*s.Center, *position)
	}
	return h, s.hasAllTags(shown) && s.isOpen(shown) && s.isWithinArea(position, h.Distance) && s.matchesText(shown), nil
}

// hasAllTags reports whether a site has all tags of the query.
func (s *indexSearch) hasAllTags(shown locations.Site) bool {
	has := map[string]bool{}
	for _, tag := range shown.Tags {
		has[search.FoldTag(tag)] = true
	}
	for _, tag := range s.Tags {
		if !has[search.FoldTag(tag)] {
			return false
		}
	}
	return true
}

// isOpen reports whether a site is open when the query asks for that.
func (s *indexSearch) isOpen(shown locations.Site) bool {
	return s.OpenAt.IsZero() || locations.OpeningOf(shown).IsOpen(s.moment)
}

// matchesText reports whether a site answers the text. The server counts typos in encoded words, so it may be wrong. If the
// query matches external ids, a prefix of the external id is enough.
func (s *indexSearch) matchesText(shown locations.Site) bool {
	text := s.TrimmedText()
	if text == "" || s.MatchExternalIDs && len(text) <= len(shown.ExternalID) && strings.EqualFold(shown.ExternalID[:len(text)], text) {
		return true
	}
	terms := map[string]bool{}
	search.VisitTexts(shown.Name, shown.Tags, shown.Address, func(text string, _ search.Field) {
		search.VisitTerms(text, func(word string) { terms[word] = true })
	})
	for _, w := range search.QueryWords(text) {
		if !matchesWord(terms, w) {
			return false
		}
	}
	return true
}

// matchesWord reports whether a word of the query is among the terms of a site: unchanged, by all of its expansions, as a
// prefix, or with typos.
func matchesWord(terms map[string]bool, w search.Word) bool {
	if terms[w.Text] || len(w.Expansions) > 0 && !slices.ContainsFunc(w.Expansions, func(m string) bool { return !terms[m] }) {
		return true
	}
	for term := range terms {
		if _, _, ok := w.Match(term); ok {
			return true
		}
	}
	return false
}

// isWithinArea reports whether a position is in the query's box and radius. Without a position a site is in neither.
func (s *indexSearch) isWithinArea(position *geo.Point, distance float64) bool {
	if s.Box == nil && s.Radius == 0 {
		return true
	}
	return position != nil && (s.Box == nil || s.Box.Contains(*position)) && (s.Radius == 0 || distance <= s.Radius)
}
