package search

import (
	"lieudit/queries/address/parse"
	"lieudit/queries/address/text"
	"lieudit/queries/address/vintage"
)

// fitsFairly is how well the name of a street must fit, in thousandths, to be believed beside a wrong postcode.
const fitsFairly = 700

// admits says whether a candidate lies where the question says. An address is found where it was typed, or not found: the
// commune that is named is its own, or the postcode is. A house number that is confirmed in another commune of the same
// typed postcode is let through as doubted.
func (s *run) admits(c *Candidate) bool {
	if s.isElsewhere(c) {
		isConfirmed := c.Type == HouseNumber && c.certain && !c.IsOpen && !c.noRep
		if !isConfirmed || c.postcode != samePostcode || s.q.Postcode.Code == 0 {
			return false
		}
		c.IsDoubted = true
		return true
	}
	c.IsDoubted = c.isContradicted
	return s.admitsPostcode(c)
}

// admitsPostcode says whether the typed postcode lets a candidate be meant.
func (s *run) admitsPostcode(c *Candidate) bool {
	isNamed := c.name != vintage.None && c.sim >= boundSim || s.scope.Cited != nil && s.scope.Cited.Has(c.Commune)
	switch c.postcode {
	case regionPostcode:
		return isNamed && (c.Street == vintage.None || c.streetFits >= fitsFairly)
	case otherPostcode:
		return c.stem != 0 && isNamed && s.q.Postcode.Code == 0
	}
	return true
}

// isElsewhere says whether words name a commune, and the candidate lies in another. Words do so behind a postcode, in a field
// of their own, at the end or at the beginning of the line; not where the name of the street holds them and every other
// word that tells is explained.
func (s *run) isElsewhere(c *Candidate) bool {
	if len(s.scope.Cited) > 0 {
		return !s.scope.Cited.Has(c.Commune) // a code says more than a name
	}
	if c.place.at != 0 && !c.isLate && c.used != 0 && c.used.First() < c.place.at.First() && c.place.at.Last() < c.used.Last() {
		return true // the name of the commune would stand within that of the street
	}
	hasLate := c.name != vintage.None && c.isLate && c.sim >= boundSim
	for _, part := range s.parts {
		if part.at&c.place.at != 0 {
			if s.isBetter(part, c) && (part.at&c.used == 0 || s.hasUnread(c)) && !s.isNamed(c.Commune, part) {
				return true
			}
			continue
		}
		if !s.binds(part) || hasLate && !part.isLate {
			continue
		}
		telling := s.q.Telling(part.at)
		if telling == 0 {
			telling = part.at
		}
		held := c.used
		if part.sim >= literal && (!c.isTold || part.at&c.end == 0) {
			held &^= c.loose // it is rather the commune than a misspelt word of the street
		}
		isExplained := telling&^(held|c.other) == 0
		if isExplained && telling&^c.other == 0 {
			continue
		}
		if telling&held != 0 && s.hasUnread(c) {
			return true
		}
		if isExplained {
			if part.sim >= literal && !s.isNamed(c.Commune, part) {
				isAlone := s.q.Words()&^part.at == 0
				if !isAlone && !s.opensWithType(c) && c.Street != vintage.None {
					return true
				}
				c.takesPlace = true
			}
			continue
		}
		if !isExplained && part.sim < literal && telling&c.unread == 0 {
			continue // a looser reading of a word that the street holds
		}
		if !s.isNamed(c.Commune, part) {
			return true
		}
	}
	return false
}

// isBetter says whether a part names a commune by the words that name the candidate's and more, or by the same ones letter for
// letter. Words that may still grow are no better than they are.
func (s *run) isBetter(part namedPart, c *Candidate) bool {
	if part.sim < literal || c.place.at&^part.at != 0 || part.at&s.growing() != 0 {
		return false
	}
	return part.at != c.place.at || c.sim < literal
}

// opensWithType says whether the words of a street begin with its kind, be it misspelt.
func (s *run) opensWithType(c *Candidate) bool {
	for i := range s.q.Terms {
		if class := text.ClassOf(s.q.Terms[i].Text); c.run.Has(i) && class != text.Link {
			return class == text.Way || c.loose.Has(i)
		}
	}
	return false
}

// binds says whether a part of the line that names a commune stands where communes stand. The only word that could name a
// street belongs to it: place du Marcé.
func (s *run) binds(part namedPart) bool {
	if part.isAway && part.at&^s.q.PlaceOnly == 0 && s.q.Telling(s.q.PlaceOnly&^part.at) != 0 {
		return false // a word of another name, as of a business district: Paris La Défense
	}
	if part.isLate {
		before := s.q.Words() & parse.Span(0, part.at.First()) &^ s.q.Complement
		isAlone := s.q.HasStreetType(before) && s.q.Telling(before)|s.innerTypes(before)|s.streetDigits(before) == 0
		return !isAlone || part.at&s.q.PlaceOnly != 0
	}
	if part.at.First() != 0 || part.sim < literal {
		return false
	}
	next := part.at.Last() + 1
	return next < len(s.q.Terms) && (s.q.Terms[next].Digits || s.q.HasStreetType(parse.Bit(next)))
}

// streetDigits are the digits behind a kind of street: rue du 4.
func (s *run) streetDigits(words parse.Mask) (out parse.Mask) {
	hasType := false
	for i := range s.q.Terms {
		if words.Has(i) {
			hasType = hasType || text.ClassOf(s.q.Terms[i].Text) == text.Way
			if hasType && s.q.Terms[i].Digits {
				out |= parse.Bit(i)
			}
		}
	}
	return out
}

// hasUnread says whether a word that tells is left over, and no complement.
func (s *run) hasUnread(c *Candidate) bool {
	return s.q.Telling(c.unread)&^s.q.Complement&^s.q.Phrases&^s.q.InParens&^s.beforeNumber(c) != 0
}

// isConfirmed says whether every word that was typed is confirmed by a candidate, letter for letter.
func (s *run) isConfirmed(c *Candidate) bool {
	hasName := c.name == vintage.None || c.sim >= confirmedSim
	return c.certain && c.loose == 0 && !c.isMissing && !c.IsList && !c.IsOpen && !c.noRep && !c.IsDoubted && hasName &&
		s.isExplained(c.unread) && s.isPlaceConfirmed(c) && !s.hasComplementNumber(c)
}

// isExplained says whether none of the words that a candidate leaves aside is more than a link or a complement.
func (s *run) isExplained(unread parse.Mask) bool {
	for i := range s.q.Terms {
		isArticle := s.q.Terms[i].Elided && text.ClassOf(s.q.Terms[i].Text) == text.Link
		if (unread &^ s.q.Complement).Has(i) && !s.q.IsLink(i) && !isArticle {
			return false
		}
	}
	return true
}

// isPlaceConfirmed says whether postcode and former commune are those of the candidate.
func (s *run) isPlaceConfirmed(c *Candidate) bool {
	if !s.scope.Cited.Has(c.Commune) {
		return false
	}
	isRight := c.postcode == noPostcode || c.postcode == samePostcode || c.postcode == begunPostcode
	if c.Type == Municipality {
		return isRight || c.postcode == cityPostcode && s.hasPostcode(c.Commune)
	}
	return isRight && (!s.isOld(c.name) || c.facet.Old == c.name)
}

// hasComplementNumber says whether a number that a complement owns is one of the street's, too.
func (s *run) hasComplementNumber(c *Candidate) (any bool) {
	if c.Street == vintage.None {
		return false
	}
	of := s.v.Street(c.Street)
	s.q.ComplementNumbers(c.terms()|c.place.at, func(n uint32) bool {
		row := s.v.FirstNumber(of, n)
		any = row < of.To && s.v.Number(row) == n
		return !any
	})
	return any
}
