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
func (s *searcher) admits(c *Candidate) bool {
	if s.isElsewhere(c) {
		isConfirmed := c.Type == HouseNumber && c.isCertain && !c.IsAmbiguous && !c.lacksRep
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
func (s *searcher) admitsPostcode(c *Candidate) bool {
	isNamed := c.name != vintage.None && c.sim >= boundSim || s.scope.Cited != nil && s.scope.Cited.Has(c.Commune)
	switch c.postcode {
	case regionPostcode:
		return isNamed && (c.Street == vintage.None || c.streetFit >= fitsFairly)
	case otherPostcode:
		return c.postcodePrefix != 0 && isNamed && s.q.Postcode.Code == 0
	}
	return true
}

// isElsewhere says whether words name a commune, and the candidate lies in another. Words do so behind a postcode, in a field
// of their own, at the end or at the beginning of the line; not where the name of the street holds them and every other
// distinctive word is explained.
func (s *searcher) isElsewhere(c *Candidate) bool {
	if len(s.scope.Cited) > 0 {
		return !s.scope.Cited.Has(c.Commune) // a code says more than a name
	}
	if c.place.at != 0 && !c.isLate && c.used != 0 && c.used.First() < c.place.at.First() && c.place.at.Last() < c.used.Last() {
		return true // the name of the commune would stand within that of the street
	}
	for _, part := range s.mentions {
		if s.contradicts(part, c) {
			return true
		}
	}
	return false
}

// contradicts says whether a part of the line names a commune that a candidate does not lie in.
func (s *searcher) contradicts(part mention, c *Candidate) bool {
	if part.at&c.place.at != 0 {
		return s.isBetter(part, c) && (part.at&c.used == 0 || s.hasUnread(c)) && !s.isNamed(c.Commune, part)
	}
	hasLate := c.name != vintage.None && c.isLate && c.sim >= boundSim
	if !s.isBinding(part) || hasLate && !part.isLate {
		return false
	}
	distinctive := s.q.Distinctive(part.at)
	if distinctive == 0 {
		distinctive = part.at
	}
	matched := c.used
	if part.sim >= literalSim && (!c.isWhollyTyped || part.at&c.lastWord == 0) {
		matched &^= c.fuzzy // it is rather the commune than a misspelt word of the street
	}
	isExplained := distinctive&^(matched|c.otherNames) == 0
	switch {
	case isExplained && distinctive&^c.otherNames == 0:
		return false
	case distinctive&matched != 0 && s.hasUnread(c):
		return true
	case isExplained:
		return part.sim >= literalSim && !s.isNamed(c.Commune, part) && !s.mayTakePlace(part, c)
	case part.sim < literalSim && distinctive&c.unread == 0:
		return false // a looser reading of a word that the street holds
	}
	return !s.isNamed(c.Commune, part)
}

// mayTakePlace says whether the name of a street may hold words that name a commune elsewhere: behind a kind of street, or
// where nothing else was typed. It notes so, since such a street never stands for what was typed without a look.
func (s *searcher) mayTakePlace(part mention, c *Candidate) bool {
	isAlone := s.q.Words()&^part.at == 0
	if !isAlone && !s.opensWithType(c) && c.Street != vintage.None {
		return false
	}
	c.borrowsCommune = true
	return true
}

// isBetter says whether a part names a commune by the words that name the candidate's and more, or by the same ones letter for
// letter. Words that may still grow are no better than they are.
func (s *searcher) isBetter(part mention, c *Candidate) bool {
	if part.sim < literalSim || c.place.at&^part.at != 0 || part.at&s.unfinishedWord() != 0 {
		return false
	}
	return part.at != c.place.at || c.sim < literalSim
}

// opensWithType says whether the words of a street begin with its kind, be it misspelt.
func (s *searcher) opensWithType(c *Candidate) bool {
	for i := range s.q.Terms {
		if class := text.ClassOf(s.q.Terms[i].Text); c.contiguous.Has(i) && class != text.StopWord {
			return class == text.StreetType || c.fuzzy.Has(i)
		}
	}
	return false
}

// isBinding says whether a part of the line that names a commune stands where communes stand. The only word that could name a
// street belongs to it: place du Marcé.
func (s *searcher) isBinding(part mention) bool {
	if part.isAway && part.at&^s.q.PlaceOnly == 0 && s.q.Distinctive(s.q.PlaceOnly&^part.at) != 0 {
		return false // a word of another name, as of a business district: Paris La Défense
	}
	if part.isLate {
		before := s.q.Words() & parse.Span(0, part.at.First()) &^ s.q.Complement
		isAlone := s.q.HasStreetType(before) && s.q.Distinctive(before)|s.innerTypes(before)|s.streetDigits(before) == 0
		return !isAlone || part.at&s.q.PlaceOnly != 0
	}
	if part.at.First() != 0 || part.sim < literalSim {
		return false
	}
	next := part.at.Last() + 1
	return next < len(s.q.Terms) && (s.q.Terms[next].Digits || s.q.HasStreetType(parse.Bit(next)))
}

// streetDigits are the digits behind a kind of street: rue du 4.
func (s *searcher) streetDigits(words parse.Mask) (out parse.Mask) {
	hasType := false
	for i := range s.q.Terms {
		if words.Has(i) {
			hasType = hasType || s.q.IsStreetType(i)
			if hasType && s.q.Terms[i].Digits {
				out |= parse.Bit(i)
			}
		}
	}
	return out
}

// hasUnread says whether a distinctive word is left over, and no complement.
func (s *searcher) hasUnread(c *Candidate) bool {
	return s.q.Distinctive(c.unread)&^s.q.Complement&^s.q.Phrases&^s.q.InParens&^s.beforeNumber(c) != 0
}

// isConfirmed says whether every word that was typed is confirmed by a candidate, letter for letter.
func (s *searcher) isConfirmed(c *Candidate) bool {
	hasName := c.name == vintage.None || c.sim >= confirmedSim
	return c.isCertain && c.fuzzy == 0 && !c.isMissing && !c.IsList && !c.IsAmbiguous && !c.lacksRep && !c.IsDoubted && hasName &&
		s.isExplained(c.unread) && s.isPlaceConfirmed(c) && !s.hasComplementNumber(c)
}

// isExplained says whether none of the words that a candidate leaves aside is more than a link or a complement.
func (s *searcher) isExplained(unread parse.Mask) bool {
	for i := range s.q.Terms {
		isArticle := s.q.Terms[i].Elided && s.q.IsStopWord(i)
		if (unread &^ s.q.Complement).Has(i) && !s.q.IsLink(i) && !isArticle {
			return false
		}
	}
	return true
}

// isPlaceConfirmed says whether postcode and former commune are those of the candidate.
func (s *searcher) isPlaceConfirmed(c *Candidate) bool {
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
func (s *searcher) hasComplementNumber(c *Candidate) (any bool) {
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

// How much of the distinctive words must be alike, in hundredths: of those typed, and twice that with what they
// make of the name.
const (
	leastTyped = 50
	leastBoth  = 175
	leastOther = 60 // of the name of a lieu-dit, a former commune, a delivery office
)

// fitsWords says whether a street is meant by the words, and is not just another of the same kind, or another that shares a
// first name.
func (s *searcher) fitsWords(c *Candidate, words parse.Mask) bool {
	all := words & s.streetWords(c.place) &^ s.beforeNumber(c)
	if c.distinctiveTotal > 0 && c.distinctiveMatched == 0 && s.q.Distinctive(all) != 0 && (s.q.Distinctive(c.otherNames) == 0 || s.q.HasStreetType(all&^c.otherNames)) {
		return false // nothing distinctive is in it and in the words
	}
	words &= s.streetZone(c)
	distinctive := s.q.Distinctive(words) | s.innerTypes(words)
	if distinctive == 0 {
		isUnnamed := c.distinctiveTotal > 0 && c.distinctiveMatched == 0 && c.otherNames == 0 // of its name nothing but its kind was typed
		return !isUnnamed || s.q.Completing && s.q.HasStreetType(words) && !s.followsLink(c.place.at)
	}
	matched := distinctive & c.used
	if s.q.Completing && matched != 0 {
		typed, _ := s.typedShare(c, distinctive)
		return typed >= leastTyped
	}
	missing := distinctive &^ matched
	isOtherType := s.hasOtherType(c, words)
	switch {
	case matched == 0:
		return s.q.Distinctive(c.otherNames) != 0 && !s.q.HasStreetType(words)
	case isOtherType && (matched&^c.fuzzy == 0 || (!c.isWhollyTyped || missing != 0) && matched.Count() < 2):
		return false
	case missing.Has(distinctive.Last()) && missing.Count() >= matched.Count():
		return false // what it shares is a first name
	case c.hasUntypedNumber && (all&s.q.Digits()|s.years(all))&^c.used&^c.terms() != 0:
		return false // another date
	}
	typed, isQualified := s.typedShare(c, distinctive)
	if isQualified || c.hasUntypedQualifier {
		return false
	}
	if missing == 0 && c.isWhollyTyped {
		return true
	}
	if matched&^c.fuzzy == 0 && c.Type != HouseNumber {
		return false // all misspelt, and words are missing
	}
	named := int32(100)
	if c.distinctiveTotal > 0 {
		named = c.distinctiveMatched * 100 / c.distinctiveTotal
	}
	return typed >= leastTyped && 2*typed+named >= leastBoth
}

// followsLink says whether a link stands before words: they belong to the name of a street, as in rue de Strasbourg.
func (s *searcher) followsLink(words parse.Mask) bool {
	return words != 0 && words.First() > 0 && s.q.IsStopWord(words.First()-1)
}

// years are the words that are a year, which no house number is where a street is named by a date.
func (s *searcher) years(words parse.Mask) (out parse.Mask) {
	for i := range s.q.Terms {
		if n := parse.Number(s.q.Terms[i].Typed); words.Has(i) && s.q.Terms[i].Digits && n >= 1700 && n < 2030 {
			out |= parse.Bit(i)
		}
	}
	return out
}

// innerTypes are the kinds of streets but the first one: they are distinctive, as in rue du Parc.
func (s *searcher) innerTypes(words parse.Mask) parse.Mask {
	types := s.q.StreetTypes(words)
	return types & (types - 1) // without the lowest bit
}

// hasOtherType says whether a kind of street was typed that is not that of the candidate.
func (s *searcher) hasOtherType(c *Candidate, words parse.Mask) bool {
	types := s.q.StreetTypes(words)
	return types != 0 && !c.used.Has(types.First())
}

// typedShare is how much of the distinctive words a street holds, in hundredths, and whether one such as "old" or "saint" is none
// of its.
func (s *searcher) typedShare(c *Candidate, distinctive parse.Mask) (share int32, isQualified bool) {
	var matched, whole int32
	for i := range s.q.Terms {
		if !distinctive.Has(i) {
			continue
		}
		w := int32(100)
		if text.IsTitle(s.q.Terms[i].Text) || text.IsQualifier(s.q.Terms[i].Text) && c.used.Has(i) || s.mayBeType(c, i) {
			w = titleShare
		}
		whole += w
		switch {
		case (c.used &^ c.fuzzy).Has(i):
			matched += w
		case c.used.Has(i):
			matched += w * c.fuzzySim / 100
		default:
			isQualified = isQualified || text.IsQualifier(s.q.Terms[i].Text)
		}
	}
	return matched * 100 / whole, isQualified
}

// mayBeType says whether a word may be a misspelt kind of street: one that opens the street, is short or like such a kind, and
// stands for no distinctive word of its name.
func (s *searcher) mayBeType(c *Candidate, i int) bool {
	isFirst := i == 0 || !s.q.Words().Has(i-1) || c.terms().Has(i-1)
	return isFirst && !(c.used &^ c.fuzzy).Has(i) && i+1 < len(s.q.Terms) && (len(s.q.Terms[i].Text) <= 4 || s.words.isLike(i, text.StreetType))
}

// streetZone are the words that stand where the street does: behind the number, before the commune, and no complement.
func (s *searcher) streetZone(c *Candidate) parse.Mask {
	zone := s.streetWords(c.place) &^ c.otherNames &^ s.lightWords(c)
	if c.place.at != 0 && c.contiguous != 0 && c.contiguous.Last() < c.place.at.First() {
		zone &= parse.Span(0, c.place.at.First())
	}
	return zone
}

// asidePercent is how much of its weight a word has that may belong to a complement, in percent.
const asidePercent = 15

// weighTyped is the weight of what was typed of a street. Words before its number, phrases that may name a building and a
// second street weigh little when the street does not hold them; those of a complement nothing.
func (s *searcher) weighTyped(c *Candidate, words parse.Mask) int32 {
	words &^= s.q.Complement | s.q.PlaceOnly&c.unreadIn(words)
	light := words & s.lightWords(c)
	return s.words.weigh(words&^light) + s.words.weigh(light)*asidePercent/100
}

// unreadIn are the words of a set that nothing of the candidate explains.
func (c *Candidate) unreadIn(words parse.Mask) parse.Mask { return words &^ c.used &^ c.otherNames }

// lightWords are words that a street does not hold and that may belong to something else.
func (s *searcher) lightWords(c *Candidate) parse.Mask {
	return (s.q.Phrases | s.q.InParens | s.beforeNumber(c) | s.secondStreet(c)) &^ c.used &^ c.otherNames &^ s.q.Complement
}

// secondStreet are the terms behind a street from the next number on, or from the next kind of street that a name follows:
// 5 rue A, 6 rue B. In rue du Grand Hameau none does. What a comma parts from a street whose place is known is no more of it.
func (s *searcher) secondStreet(c *Candidate) parse.Mask {
	if s.q.Distinctive(c.contiguous) == 0 {
		return 0
	}
	free := s.q.Words() &^ c.place.at &^ c.used &^ c.terms() &^ s.q.Complement
	named := s.q.Distinctive(free&^s.q.PlaceOnly) | s.innerTypes(free&^s.q.PlaceOnly)
	for i := c.contiguous.Last() + 1; i < len(s.q.Terms); i++ {
		if c.place.at.Has(i) || s.q.Postcode.At.Has(i) {
			return 0
		}
		isType := s.q.IsStreetType(i) && named&parse.Span(i+1, len(s.q.Terms)) != 0
		isApart := s.q.Terms[i].Before&text.Break != 0 && s.isPlaced(c)
		if free.Has(i) && (s.q.Terms[i].Digits || isType || isApart) {
			return free & parse.Span(i, len(s.q.Terms))
		}
	}
	return 0
}

// isPlaced says whether a name or the typed postcode says that a candidate lies where it does.
func (s *searcher) isPlaced(c *Candidate) bool {
	return c.name != vintage.None && c.sim >= literalSim || s.postcode != 0 && c.facet.Postcode == s.postcode
}

// beforeNumber are the terms before the house number, or without one those before the kind of street that opens its name.
func (s *searcher) beforeNumber(c *Candidate) parse.Mask {
	if c.IsTyped() && c.At != 0 && c.contiguous != 0 && c.At.First() < c.contiguous.First() {
		return parse.Span(0, c.At.First())
	}
	if c.contiguous != 0 && s.q.IsStreetType(c.contiguous.First()) {
		return parse.Span(0, c.contiguous.First())
	}
	return 0
}
