package search

import (
	"context"
	"fmt"
	"slices"

	"lieudit/queries/address/text"
	"lieudit/queries/address/vintage"
)

// Source says which streets, localities and communes of a vintage may be meant by words. It is safe for concurrent use.
type Source interface {
	// Find answers all queries in one go, in their order. What it names need not fit: the search matches it.
	Find(ctx context.Context, queries []CandidateQuery) ([]CandidateResult, error)
}

// CandidateQuery searches for what holds all of some words in its own names or in those of its commune, exactly or nearly so.
// The last word may be the beginning of one.
type CandidateQuery struct {
	Words       []string // as terms of the vintage are written; none: all that the rest lets through
	Communes    bool     // communes are wanted, not streets and localities
	Within      []uint32 // ordinals of the communes it lies in; nil: any
	Postcodes   []string // one of which its commune has; none: any
	Departments []string // one of which it lies in; none: any
	Limit       int

	whole bool // all of its kind that the question's words confirm is among what the query may lead to
}

// CandidateResult is what a query led to.
type CandidateResult struct {
	Entities []uint32 // ordinals of streets, or of communes, the likeliest first
	More     bool     // there may be others
}

// searchSource queries the source less and less strictly, until what it names cannot be bettered.
func (s *searcher) searchSource(ctx context.Context, result *Result) error {
	n, k := &namedEntities{v: s.v}, newQueryPlanner(s.query, s.communes.recognize().places)
	isSearched := false
	for queries := range k.rounds() {
		found, err := s.index.source.Find(ctx, queries)
		if err == nil && len(found) != len(queries) {
			err = fmt.Errorf("%d answers to %d queries", len(found), len(queries))
		}
		if err != nil {
			return err
		}
		for i, a := range queries {
			if a.whole && found[i].More {
				result.leftOut = append(result.leftOut, a.Communes)
			}
		}
		if isNew := n.add(queries, found); isNew || !isSearched {
			isSearched = true
			s.named, s.ranking.list.best = n, s.ranking.list.best[:0]
			s.lexicon.reset(n)
			s.search()
		}
		if s.budget.left <= 0 || s.ranking.isSettled() && !k.mayBeBegun(s.ranking.list.first()) {
			break
		}
	}
	return nil
}

// namedEntities is what a source named for a question: nothing else is considered, and a word stands for no other terms
// than theirs.
type namedEntities struct {
	v        *vintage.Vintage
	streets  []uint32 // in their order, which is that of communes
	communes Area     // theirs, and those named themselves
	terms    []uint32 // of all their names
	sounds   map[string][]uint32
}

// add takes in what queries led to, and reports whether any of it is new.
func (n *namedEntities) add(queries []CandidateQuery, found []CandidateResult) bool {
	streets, communes := len(n.streets), len(n.communes)
	for i, f := range found {
		if queries[i].Communes {
			n.communes = append(n.communes, f.Entities...)
			continue
		}
		n.streets = append(n.streets, f.Entities...)
		for _, street := range f.Entities {
			n.communes = append(n.communes, n.v.StreetCommune(street))
		}
	}
	n.streets, n.communes = NewArea(n.streets), NewArea(n.communes)
	if len(n.streets) == streets && len(n.communes) == communes {
		return false
	}
	n.addTerms()
	return true
}

// addTerms takes in the terms of all their names.
func (n *namedEntities) addTerms() {
	n.terms = n.terms[:0]
	for _, c := range n.communes {
		for p, to := n.v.CommunePlaces(c); p < to; p++ {
			n.addName(n.v.Place(p).Name)
		}
	}
	for _, street := range n.streets {
		n.addName(n.v.StreetName(street))
		for f, to := n.v.StreetFacets(street); f < to; f++ {
			n.addName(n.v.Facet(f).LieuDit)
		}
	}
	n.terms, n.sounds = NewArea(n.terms), nil
}

// addName takes in the terms of a name.
func (n *namedEntities) addName(name uint32) {
	terms := n.v.NameTerms(name)
	for i := range terms.Len() {
		n.terms = append(n.terms, terms.At(i))
	}
}

// Like calls yield with their terms within n edits.
func (n *namedEntities) Like(term string, edits int, yield func(uint32, int) bool) {
	for _, t := range n.terms {
		other := string(n.v.Term(t))
		if d := text.Distance(term, other, edits); d <= edits && !isNumber(other) && !yield(t, d) {
			return
		}
	}
}

// isNumber reports whether a term is a number, which has no misspellings.
func isNumber(term string) bool { return term != "" && term[0] >= '0' && term[0] <= '9' }

// Sounding calls yield with their terms that sound the same.
func (n *namedEntities) Sounding(sound string, yield func(uint32) bool) {
	if n.sounds == nil {
		n.sounds = make(map[string][]uint32, len(n.terms))
		for _, t := range n.terms {
			of := text.PhoneticKey(string(n.v.Term(t)))
			n.sounds[of] = append(n.sounds[of], t)
		}
	}
	for _, t := range n.sounds[sound] {
		if !yield(t) {
			return
		}
	}
}

// collectNamed matches what a source named in the communes that the words name or that are expected, then wherever it lies.
func (s *searcher) collectNamed() {
	n := s.named
	isElsewhere := func(p place) bool { return !n.communes.Has(p.commune) }
	places := append(s.expectedPlaces(), slices.DeleteFunc(slices.Clone(s.found.places), isElsewhere)...)
	for _, p := range s.communes.orderPlaces(places) {
		words := s.streetWords(p)
		if p.at&unfinishedWord(s.q) == 0 || p.sim >= literalSim || s.q.Distinctive(words) != 0 {
			s.matchNamed(p)
		}
		s.match.matchCommune(p)
	}
	if s.mayLieElsewhere() {
		for _, c := range n.communes {
			if p := s.communes.unnamedPlace(c, false); p.at != 0 {
				s.matchNamed(p)
			}
			s.matchNamed(place{commune: c, name: vintage.None})
		}
	}
}

// matchNamed matches the streets of a place that a source named.
func (s *searcher) matchNamed(p place) {
	from, to := s.v.CommuneStreets(p.commune)
	streets := s.named.streets
	at, _ := slices.BinarySearch(streets, from)
	for ; at < len(streets) && streets[at] < to && s.budget.left > 0; at++ {
		s.match.matchStreet(p, streets[at])
	}
}

// expectedPlaces are the communes that a source named in which answers may lie although nothing typed names them.
func (s *searcher) expectedPlaces() (all []place) {
	isExpected := func(c uint32) bool {
		return slices.ContainsFunc([]Area{s.scope.Cited, s.scope.Around, s.scope.Communes, s.postcode.nearCommunes}, func(a Area) bool { return a != nil && a.Has(c) })
	}
	for _, c := range s.named.communes {
		if p := s.communes.unnamedPlace(c, s.postcode.isOf(c) || s.postcode.isCode(c)); p.hasTypedCode || isExpected(c) {
			all = append(all, p)
		}
	}
	return all
}
