package meili

import (
	"slices"
	"strings"

	"lieudit/queries/places"
	"lieudit/queries/places/finder"
	"lieudit/schemas/site"
	"lieudit/schemas/table"
)

// judge says whether a row belongs in the answer as it stands now, whatever the index said, and how it is shown.
func (s *search) judge(r table.Site) (finder.Hit, bool, error) {
	if r.Account != s.Account || s.Referential != "" && r.Referential != s.Referential || !s.wants(r.Active) {
		return finder.Hit{}, false, nil
	}
	shown, err := places.SiteOf(r)
	if err != nil {
		return finder.Hit{}, false, err
	}
	h := finder.Hit{Site: shown}
	var at *finder.Point
	if shown.Lat != nil && shown.Lon != nil {
		at = &finder.Point{Lat: *shown.Lat, Lon: *shown.Lon}
	}
	if at != nil && s.Center != nil {
		h.Distance = finder.Distance(*s.Center, *at)
	}
	return h, s.tagged(shown) && s.placed(at, h.Distance) && s.says(shown), nil
}

func (s *search) wants(active bool) bool {
	switch s.Status {
	case finder.All:
		return true
	case finder.Inactive:
		return !active
	}
	return active
}

func (s *search) tagged(shown site.Site) bool {
	has := map[string]bool{}
	for _, tag := range shown.Tags {
		has[finder.Tag(tag)] = true
	}
	for _, tag := range s.Tags {
		if !has[finder.Tag(tag)] {
			return false
		}
	}
	return true
}

// says says whether a site answers the text: the server counts typos in the letters it was given.
func (s *search) says(shown site.Site) bool {
	text := s.Asked()
	if text == "" || s.Private && len(text) <= len(shown.ExternalID) && strings.EqualFold(shown.ExternalID[:len(text)], text) {
		return true
	}
	terms := map[string]bool{}
	for _, t := range texts(shown.Content) {
		finder.Terms(t, func(word string) { terms[word] = true })
	}
	for _, w := range finder.Words(text) {
		if !answers(terms, w) {
			return false
		}
	}
	return true
}

// texts are those of a site that are searched in.
func texts(c site.Content) []string {
	all := append([]string{c.Name}, c.Tags...)
	if a := c.Address; a != nil {
		all = append(all, a.City, a.PostalCode, a.Line1, a.Line2, a.InseeCode, a.Country)
	}
	return all
}

// answers says whether a word is among the terms of a site.
func answers(terms map[string]bool, w finder.Word) bool {
	if terms[w.Text] || len(w.Means) > 0 && !slices.ContainsFunc(w.Means, func(m string) bool { return !terms[m] }) {
		return true
	}
	for term := range terms {
		if _, ok := finder.Typos(w.Text, term, w.Last); ok {
			return true
		}
	}
	return false
}

func (s *search) placed(at *finder.Point, distance float64) bool {
	if s.Box == nil && s.Radius == 0 {
		return true
	}
	return at != nil && (s.Box == nil || s.Box.Holds(*at)) && (s.Radius == 0 || distance <= s.Radius)
}
