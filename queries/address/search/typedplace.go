package search

import (
	"slices"

	"lieudit/queries/address/commune"
	"lieudit/queries/address/parse"
)

// PlaceStatus is what the words say that stand where a commune does.
type PlaceStatus uint8

const (
	PlaceUntyped    PlaceStatus = iota // no words stand there
	PlaceKnown                         // they name a commune of the vintage
	PlaceNotCovered                    // they name one of which the vintage has no row
	PlaceUnknown                       // they name none
)

// TypedPlace is what the words that a candidate leaves unread say of its commune; nil stands for all words.
func (r *Result) TypedPlace(c *Candidate) PlaceStatus {
	s := r.run
	words, found := s.q.Words(), PlaceUntyped
	if c != nil {
		words = c.unread
	}
	if s.q.Distinctive(words&s.q.PlaceOnly&^s.q.Phrases) != 0 {
		found = PlaceUnknown
	}
	for _, m := range s.found.bindingMentions(words) {
		switch {
		case s.found.isCovered(m):
			return PlaceKnown
		case len(m.known) > 0:
			found = PlaceNotCovered
		}
	}
	return found
}

// IsNamedWithin reports whether the words name one of some communes where a commune stands.
func (r *Result) IsNamedWithin(communes []uint32) bool {
	s := r.run
	return slices.ContainsFunc(s.found.bindingMentions(s.q.Words()), func(m mention) bool {
		return slices.ContainsFunc(communes, func(c uint32) bool { return s.found.isNamed(c, m) })
	})
}

// bindingMentions are the mentions among some words that bind an address, without those that are part of a longer one.
func (r recognition) bindingMentions(words parse.Mask) (all []mention) {
	for _, m := range r.mentions {
		if m.at&^words == 0 && r.isBinding(m) {
			all = append(all, m)
		}
	}
	return slices.DeleteFunc(all, func(m mention) bool {
		return slices.ContainsFunc(all, func(longer mention) bool { return m.at != longer.at && m.at&^longer.at == 0 })
	})
}

// namedSim is the least likeness at which words name a commune of the vintage although they also name another, or stand where words of
// a street may. A name of which some words were left out has it.
const namedSim = 90

// isCovered reports whether the vintage has rows of a commune that a mention names, of one that it is part of, or of a part of it.
func (r recognition) isCovered(m mention) bool {
	if m.ownSim >= namedSim || m.ownSim > 0 && len(m.known) == 0 && m.at&r.q.PlaceOnly != 0 {
		return true
	}
	hasRows := func(code string) bool {
		_, ok := r.v.CommuneOf(code)
		return ok
	}
	return slices.ContainsFunc(m.known, func(c *commune.Commune) bool {
		isPart := func(of *commune.Commune) bool { return hasRows(of.Code) }
		return hasRows(c.Code) || hasRows(c.Parent) || slices.ContainsFunc(r.table.Children(c.Code), isPart)
	})
}
