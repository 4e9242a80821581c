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
	for _, part := range s.parts {
		if s.contradicts(part, c) {
			return true
		}
	}
	return false
}

// contradicts says whether a part of the line names a commune that a candidate does not lie in.
func (s *run) contradicts(part namedPart, c *Candidate) bool {
	if part.at&c.place.at != 0 {
		return s.isBetter(part, c) && (part.at&c.used == 0 || s.hasUnread(c)) && !s.isNamed(c.Commune, part)
	}
	hasLate := c.name != vintage.None && c.isLate && c.sim >= boundSim
	if !s.binds(part) || hasLate && !part.isLate {
		return false
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
	switch {
	case isExplained && telling&^c.other == 0:
		return false
	case telling&held != 0 && s.hasUnread(c):
		return true
	case isExplained:
		return part.sim >= literal && !s.isNamed(c.Commune, part) && !s.mayTakePlace(part, c)
	case part.sim < literal && telling&c.unread == 0:
		return false // a looser reading of a word that the street holds
	}
	return !s.isNamed(c.Commune, part)
}

// mayTakePlace says whether the name of a street may hold words that name a commune elsewhere: behind a kind of street, or
// where nothing else was typed. It notes so, since such a street never stands for what was typed without a look.
func (s *run) mayTakePlace(part namedPart, c *Candidate) bool {
	isAlone := s.q.Words()&^part.at == 0
	if !isAlone && !s.opensWithType(c) && c.Street != vintage.None {
		return false
	}
	c.takesPlace = true
	return true
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

// How much of the words that tell streets apart must be alike, in hundredths: of those typed, and twice that with what they
// make of the name.
const (
	leastTyped = 50
	leastBoth  = 175
	leastOther = 60 // of the name of a lieu-dit, a former commune, a delivery office
)

// tells says whether a street is meant by the words, and is not just another of the same kind, or another that shares a
// first name.
func (s *run) tells(c *Candidate, words parse.Mask) bool {
	all := words & s.streetWords(c.place) &^ s.beforeNumber(c)
	if c.tellingWhole > 0 && c.tellingHeld == 0 && s.q.Telling(all) != 0 && (s.q.Telling(c.other) == 0 || s.q.HasStreetType(all&^c.other)) {
		return false // of what it has in common with the words nothing tells
	}
	words &= s.streetZone(c)
	telling := s.q.Telling(words) | s.innerTypes(words)
	if telling == 0 {
		isUnnamed := c.tellingWhole > 0 && c.tellingHeld == 0 && c.other == 0 // of its name nothing but its kind was typed
		return !isUnnamed || s.q.Completing && s.q.HasStreetType(words) && !s.followsLink(c.place.at)
	}
	held := telling & c.used
	if s.q.Completing && held != 0 {
		typed, _ := s.typedShare(c, telling)
		return typed >= leastTyped
	}
	missing := telling &^ held
	isOtherType := s.hasOtherType(c, words)
	switch {
	case held == 0:
		return s.q.Telling(c.other) != 0 && !s.q.HasStreetType(words)
	case isOtherType && (held&^c.loose == 0 || (!c.isTold || missing != 0) && held.Count() < 2):
		return false
	case missing.Has(telling.Last()) && missing.Count() >= held.Count():
		return false // what it shares is a first name
	case c.numbersLeft && (all&s.q.Digits()|s.years(all))&^c.used&^c.terms() != 0:
		return false // another date
	}
	typed, isQualified := s.typedShare(c, telling)
	if isQualified || c.qualifiers {
		return false
	}
	if missing == 0 && c.isTold {
		return true
	}
	if held&^c.loose == 0 && c.Type != HouseNumber {
		return false // all misspelt, and words are missing
	}
	named := int32(100)
	if c.tellingWhole > 0 {
		named = c.tellingHeld * 100 / c.tellingWhole
	}
	return typed >= leastTyped && 2*typed+named >= leastBoth
}

// followsLink says whether a link stands before words: they belong to the name of a street, as in rue de Strasbourg.
func (s *run) followsLink(words parse.Mask) bool {
	return words != 0 && words.First() > 0 && text.ClassOf(s.q.Terms[words.First()-1].Text) == text.Link
}

// years are the words that are a year, which no house number is where a street is named by a date.
func (s *run) years(words parse.Mask) (out parse.Mask) {
	for i := range s.q.Terms {
		if n := parse.Number(s.q.Terms[i].Typed); words.Has(i) && s.q.Terms[i].Digits && n >= 1700 && n < 2030 {
			out |= parse.Bit(i)
		}
	}
	return out
}

// innerTypes are the kinds of streets but the first one: they tell streets apart, as in rue du Parc.
func (s *run) innerTypes(words parse.Mask) (out parse.Mask) {
	isFirst := true
	for i := range s.q.Terms {
		if words.Has(i) && text.ClassOf(s.q.Terms[i].Text) == text.Way {
			if !isFirst {
				out |= parse.Bit(i)
			}
			isFirst = false
		}
	}
	return out
}

// hasOtherType says whether a kind of street was typed that is not that of the candidate.
func (s *run) hasOtherType(c *Candidate, words parse.Mask) bool {
	for i := range s.q.Terms {
		if words.Has(i) && text.ClassOf(s.q.Terms[i].Text) == text.Way {
			return !c.used.Has(i)
		}
	}
	return false
}

// typedShare is how much of the telling words a street holds, in hundredths, and whether one such as "old" or "saint" is none
// of its.
func (s *run) typedShare(c *Candidate, telling parse.Mask) (share int32, isQualified bool) {
	var held, whole int32
	for i := range s.q.Terms {
		if !telling.Has(i) {
			continue
		}
		w := int32(100)
		if text.IsTitle(s.q.Terms[i].Text) || text.IsQualifier(s.q.Terms[i].Text) && c.used.Has(i) || s.mayBeType(c, i) {
			w = titleShare
		}
		whole += w
		switch {
		case (c.used &^ c.loose).Has(i):
			held += w
		case c.used.Has(i):
			held += w * c.looseSim / 100
		default:
			isQualified = isQualified || text.IsQualifier(s.q.Terms[i].Text)
		}
	}
	return held * 100 / whole, isQualified
}

// mayBeType says whether a word may be a misspelt kind of street: one that opens the street, is short or like such a kind, and
// stands for no telling word of its name.
func (s *run) mayBeType(c *Candidate, i int) bool {
	isFirst := i == 0 || !s.q.Words().Has(i-1) || c.terms().Has(i-1)
	return isFirst && !(c.used &^ c.loose).Has(i) && i+1 < len(s.q.Terms) && (len(s.q.Terms[i].Text) <= 4 || s.words.isLike(i, text.Way))
}

// streetZone are the words that stand where the street does: behind the number, before the commune, and no complement.
func (s *run) streetZone(c *Candidate) parse.Mask {
	zone := s.streetWords(c.place) &^ c.other &^ s.lightWords(c)
	if c.place.at != 0 && c.run != 0 && c.run.Last() < c.place.at.First() {
		zone &= parse.Span(0, c.place.at.First())
	}
	return zone
}

// aside is how much of its weight a word has that may belong to a complement, in percent.
const aside = 15

// weighTyped is the weight of what was typed of a street. Words before its number, phrases that may name a building and a
// second street weigh little when the street does not hold them; those of a complement nothing.
func (s *run) weighTyped(c *Candidate, words parse.Mask) int32 {
	words &^= s.q.Complement | s.q.PlaceOnly&c.unreadIn(words)
	light := words & s.lightWords(c)
	return s.words.weigh(words&^light) + s.words.weigh(light)*aside/100
}

// unreadIn are the words of a set that nothing of the candidate explains.
func (c *Candidate) unreadIn(words parse.Mask) parse.Mask { return words &^ c.used &^ c.other }

// lightWords are words that a street does not hold and that may belong to something else.
func (s *run) lightWords(c *Candidate) parse.Mask {
	return (s.q.Phrases | s.q.InParens | s.beforeNumber(c) | s.secondStreet(c)) &^ c.used &^ c.other &^ s.q.Complement
}

// secondStreet are the terms behind a street from the next number on, or from the next kind of street that a name follows:
// 5 rue A, 6 rue B. In rue du Grand Hameau none does. What a comma parts from a street whose place is known is no more of it.
func (s *run) secondStreet(c *Candidate) parse.Mask {
	if s.q.Telling(c.run) == 0 {
		return 0
	}
	free := s.q.Words() &^ c.place.at &^ c.used &^ c.terms() &^ s.q.Complement
	named := s.q.Telling(free&^s.q.PlaceOnly) | s.innerTypes(free&^s.q.PlaceOnly)
	for i := c.run.Last() + 1; i < len(s.q.Terms); i++ {
		if c.place.at.Has(i) || s.q.Postcode.At.Has(i) {
			return 0
		}
		isType := text.ClassOf(s.q.Terms[i].Text) == text.Way && named&parse.Span(i+1, len(s.q.Terms)) != 0
		isApart := s.q.Terms[i].Before&text.Break != 0 && s.isPlaced(c)
		if free.Has(i) && (s.q.Terms[i].Digits || isType || isApart) {
			return free & parse.Span(i, len(s.q.Terms))
		}
	}
	return 0
}

// isPlaced says whether a name or the typed postcode says that a candidate lies where it does.
func (s *run) isPlaced(c *Candidate) bool {
	return c.name != vintage.None && c.sim >= literal || s.postcode != 0 && c.facet.Postcode == s.postcode
}

// beforeNumber are the terms before the house number, or without one those before the kind of street that opens its name.
func (s *run) beforeNumber(c *Candidate) parse.Mask {
	if c.IsTyped() && c.At != 0 && c.run != 0 && c.At.First() < c.run.First() {
		return parse.Span(0, c.At.First())
	}
	if c.run != 0 && text.ClassOf(s.q.Terms[c.run.First()].Text) == text.Way {
		return parse.Span(0, c.run.First())
	}
	return 0
}
