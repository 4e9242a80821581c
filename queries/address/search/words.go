package search

import (
	"slices"

	"lieudit/queries/address/parse"
	"lieudit/queries/address/text"
	"lieudit/queries/address/vintage"
)

// How much must be alike for a street to be meant, in percent of the distinctive words. The first two work together: a name
// that holds few of the typed words is meant only where nearly all of the name was typed.
const (
	leastTyped     = 50  // of the typed words
	leastBoth      = 175 // twice the share of the typed words, plus the share of the name
	leastOtherName = 60  // of the name of a lieu-dit, a former commune, a delivery office
)

// wordMatcher decides which of the typed words belong to a street, and whether they mean it.
type wordMatcher struct{ *query }

// fitsWords reports whether the words mean a street. A street is not meant that only has the same kind, or that only
// shares a first name with the one that is.
func (m wordMatcher) fitsWords(c *Candidate, words parse.Mask) bool {
	all := words & m.streetWords(c.place) &^ beforeNumber(m.q, c)
	if c.distinctiveTotal > 0 && c.distinctiveMatched == 0 && m.q.Distinctive(all) != 0 && (m.q.Distinctive(c.otherNames) == 0 || m.q.HasStreetType(all&^c.otherNames)) {
		return false // nothing distinctive is in it and in the words
	}
	words &= m.streetZone(c)
	distinctive := m.q.Distinctive(words) | innerTypes(m.q, words)
	if distinctive == 0 {
		isUnnamed := c.distinctiveTotal > 0 && c.distinctiveMatched == 0 && c.otherNames == 0 // of its name nothing but its kind was typed
		return !isUnnamed || m.q.Completing && m.q.HasStreetType(words) && !followsLink(m.q, c.place.at)
	}
	matched := distinctive & c.used
	if m.q.Completing && matched != 0 {
		typed, _ := m.typedShare(c, distinctive)
		return typed >= leastTyped
	}
	if !c.isWhollyTyped && areQualifiers(m.q, matched) {
		return false // ancienne rue de la Fontaine is not place de l'Ancienne Halle
	}
	missing := distinctive &^ matched
	isOtherType := hasOtherType(m.q, c, words)
	if isOtherType && m.hasGuessedKind(c) {
		return false // a kind was typed, and another word is not a misspelt one: rue de la Plage
	}
	switch {
	case matched == 0:
		return m.q.Distinctive(c.otherNames) != 0 && !m.q.HasStreetType(words)
	case isOtherType && (matched&^c.fuzzy == 0 || (!c.isWhollyTyped || missing != 0) && matched.Count() < 2):
		return false
	case missing.Has(distinctive.Last()) && missing.Count() >= matched.Count():
		return false // what it shares is a first name
	case c.hasUntypedNumber && (all&m.q.Digits()|years(m.q, all))&^c.used&^c.terms() != 0:
		return false // another date
	}
	typed, isQualified := m.typedShare(c, distinctive)
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

// hasOtherType reports whether the first kind of street among the words is not that of the candidate.
func hasOtherType(q *parse.Question, c *Candidate, words parse.Mask) bool {
	types := q.StreetTypes(words)
	return types != 0 && !c.used.Has(types.First())
}

// hasGuessedKind reports whether the kind of a street is read in a misspelt word.
func (m wordMatcher) hasGuessedKind(c *Candidate) bool {
	name := m.v.NameTerms(m.v.StreetName(c.Street))
	for i := range m.q.Terms {
		for k := 0; (m.q.Distinctive(c.used & c.fuzzy)).Has(i) && k < name.Len(); k++ {
			if m.lexicon.sim(i, name.At(k)) > 0 {
				return text.ClassOf(viewString(m.v.Term(name.At(k)))) == text.StreetType
			}
		}
	}
	return false
}

// typedShare is how much of the distinctive words a street holds, in percent. isQualified reports whether it lacks a
// typed qualifier such as "vieux", which makes another name of it. Words that people add or confuse freely count
// less: titles, held qualifiers, and what may be a misspelt kind of street.
func (m wordMatcher) typedShare(c *Candidate, distinctive parse.Mask) (share int32, isQualified bool) {
	var matched, whole int32
	for i := range m.q.Terms {
		if !distinctive.Has(i) {
			continue
		}
		w := int32(100)
		if text.IsTitle(m.q.Terms[i].Text) || text.IsQualifier(m.q.Terms[i].Text) && c.used.Has(i) || m.mayBeType(c, i) {
			w = titleShare
		}
		whole += w
		switch {
		case (c.used &^ c.fuzzy).Has(i):
			matched += w
		case c.used.Has(i):
			matched += w * c.fuzzySim / 100
		default:
			isQualified = isQualified || text.IsQualifier(m.q.Terms[i].Text)
		}
	}
	return matched * 100 / whole, isQualified
}

// mayBeType reports whether a word may be a misspelt kind of street. It opens the street, stands for no distinctive
// word of the name, and is short or resembles a kind.
func (m wordMatcher) mayBeType(c *Candidate, i int) bool {
	isFirst := i == 0 || !m.q.Words().Has(i-1) || c.terms().Has(i-1)
	return isFirst && !(c.used &^ c.fuzzy).Has(i) && i+1 < len(m.q.Terms) && (len(m.q.Terms[i].Text) <= 4 || m.lexicon.isLike(i, text.StreetType))
}

// streetZone are the words that stand where the street does: behind the number, before the commune, and outside
// complements.
func (m wordMatcher) streetZone(c *Candidate) parse.Mask {
	zone := m.streetWords(c.place) &^ c.otherNames &^ m.lightWords(c)
	if c.place.at != 0 && c.contiguous != 0 && c.contiguous.Last() < c.place.at.First() {
		zone &= parse.Span(0, c.place.at.First())
	}
	return zone
}

// lightPercent is the share of its weight, in percent, that a word keeps that may belong to a complement. It is
// not 0, so that of two streets the one that holds the word fits better.
const lightPercent = 15

// weighTyped is the weight of the words that the street should hold. Words of complements weigh nothing. Words
// that may belong to something else weigh little where the street does not hold them.
func (m wordMatcher) weighTyped(c *Candidate, words parse.Mask) int32 {
	words &^= m.q.Complement | m.q.PlaceOnly&c.unreadIn(words)
	words &^= c.unknown // they lower the fit by themselves
	light := words & m.lightWords(c)
	return m.lexicon.weigh(words&^light) + m.lexicon.weigh(light)*lightPercent/100
}

// lightWords are words that the street does not hold and that may belong to something else: a phrase, parentheses,
// what stands before the number, a second street, and unknown words.
func (m wordMatcher) lightWords(c *Candidate) parse.Mask {
	return (phrases(m.q, c) | m.q.InParens | beforeNumber(m.q, c) | m.secondStreet(c) | c.unknown) &^ c.used &^ c.otherNames &^ m.q.Complement
}

// phrases are the words that may name a building. There are none if the only words of the street stand among others of them, because
// all of them name a street then: clos Jeanne d'Arc.
func phrases(q *parse.Question, c *Candidate) parse.Mask {
	held := q.Distinctive(c.used)
	if held != 0 && held&^q.Phrases == 0 && q.Distinctive(q.Phrases)&^held != 0 {
		return 0
	}
	return q.Phrases
}

// secondStreet are the words of another street behind this one: 5 rue A, 6 rue B. It begins at the next number, at a word that says it
// is one of a corner, or at the next kind of street that a name follows; in rue du Grand Hameau none does. It also begins at a comma
// where the place is already certain.
func (m wordMatcher) secondStreet(c *Candidate) parse.Mask {
	if m.q.Distinctive(c.contiguous) == 0 {
		return 0
	}
	free := m.q.Words() &^ c.place.at &^ c.used &^ c.terms() &^ m.q.Complement
	named := m.q.Distinctive(free&^m.q.PlaceOnly) | innerTypes(m.q, free&^m.q.PlaceOnly)
	for i := c.contiguous.Last() + 1; i < len(m.q.Terms); i++ {
		if c.place.at.Has(i) || m.q.Postcode.At.Has(i) {
			return 0
		}
		isType := (m.q.IsStreetType(i) || m.q.Corner.Has(i)) && named&parse.Span(i+1, len(m.q.Terms)) != 0
		isApart := m.q.Terms[i].Before&text.Break != 0 && m.isPlaced(c)
		if free.Has(i) && (m.q.Terms[i].Digits || isType || isApart) {
			return free & parse.Span(i, len(m.q.Terms))
		}
	}
	return 0
}

// beforeNumber are the terms before the house number. Without a number before the street they are those before the
// kind of street that opens its name.
func beforeNumber(q *parse.Question, c *Candidate) parse.Mask {
	if c.IsTyped() && c.At != 0 && c.contiguous != 0 && c.At.First() < c.contiguous.First() {
		return parse.Span(0, c.At.First())
	}
	if c.contiguous != 0 && q.IsStreetType(c.contiguous.First()) {
		return parse.Span(0, c.contiguous.First())
	}
	return 0
}

// hasUnread reports whether a distinctive word is explained neither by the candidate nor as a complement.
func hasUnread(q *parse.Question, c *Candidate) bool {
	return q.Distinctive(c.unread)&^q.Complement&^q.Phrases&^q.InParens&^beforeNumber(q, c) != 0
}

// opensWithType reports whether the words of a street begin with its kind. A misspelt first word is taken for one.
func opensWithType(q *parse.Question, c *Candidate) bool {
	for i := range q.Terms {
		if class := text.ClassOf(q.Terms[i].Text); c.contiguous.Has(i) && class != text.StopWord {
			return class == text.StreetType || c.fuzzy.Has(i)
		}
	}
	return false
}

// holdsRest reports whether everything but a word of the street says that a candidate is meant: the street has the number,
// its place is certain, and other words of its name were typed exactly.
func (m wordMatcher) holdsRest(c *Candidate) bool {
	return c.Type == HouseNumber && !m.q.IsRewritten && !c.IsAmbiguous && !c.lacksRep && m.isPlaced(c) && m.q.Distinctive(c.used&^c.fuzzy) != 0
}

// readOthers reads words that the street does not hold as other names of where it lies: its lieu-dit, its former
// commune, its delivery office. It answers their weight, a little less than in the name of the street.
func (m wordMatcher) readOthers(c *Candidate, words parse.Mask) (matched int32) {
	left := words &^ c.used &^ m.q.Complement
	for i, name := range [...]uint32{c.facet.LieuDit, oldName(m.v, c.facet), c.facet.Delivery} {
		if left == 0 || name == vintage.None || i == 2 && c.name == vintage.None && m.q.Distinctive(c.used) == 0 {
			continue // a delivery office that was typed alone is a place by itself
		}
		extra := aligner{m.lexicon}.align(m.v.NameTerms(name), left)
		if m.lexicon.weigh(extra.used) <= int32(extra.used.Count())*linkWeight || extra.distinctiveMatched*100 < leastOtherName*extra.distinctiveTotal ||
			i > 0 && extra.fuzzy != 0 {
			continue
		}
		if i == 2 && c.name == vintage.None && (!extra.isWhole || isPlaceName(m.v, c.Commune, name)) {
			continue // the name of the commune itself makes a place of its own
		}
		c.otherNames |= extra.used
		left &^= extra.used
		matched += extra.typedWeight * 95 / 100
		c.fuzzy |= extra.fuzzy
	}
	return matched
}

// isPlaceName reports whether a name is one by which a commune is known.
func isPlaceName(v *vintage.Vintage, commune, name uint32) bool {
	terms := v.BareTerms(name)
	for p, to := v.CommunePlaces(commune); p < to; p++ {
		if slices.Equal(v.BareTerms(v.Place(p).Name), terms) {
			return true
		}
	}
	return false
}

// oldName is the name of the former commune of a facet, or vintage.None.
func oldName(v *vintage.Vintage, f vintage.Facet) uint32 {
	if f.Old == vintage.None {
		return vintage.None
	}
	return v.Place(f.Old).Name
}

// holdsAllWords reports whether a candidate explains every word of an unfinished line but links. A link that is unfinished must continue
// with the name.
func (m wordMatcher) holdsAllWords(c *Candidate) bool {
	for i := range m.q.Terms {
		if (c.unread &^ m.q.Complement).Has(i) && (i == m.q.Unfinished || text.ClassOf(m.q.Terms[i].Text) != text.StopWord) {
			return false
		}
	}
	goesOn := !c.isUnfinishedLink || c.unfinishedTerm > c.termBefore
	return c.used != 0 && goesOn && !m.isJoinedToStreet(c)
}

// isJoinedToStreet reports whether a link that belongs neither to the name of the street nor to that of the commune stands before the
// latter: rue de Strasbourg names no street of Strasbourg.
func (m wordMatcher) isJoinedToStreet(c *Candidate) bool {
	if c.place.at == 0 || c.name == vintage.None {
		return false
	}
	name := m.v.NameTerms(m.v.Place(c.name).Name)
	i := c.place.at.First() - 1
	for k := range name.Len() { // its article
		if i < 0 || !m.q.IsStopWord(i) || text.ClassOf(viewString(m.v.Term(name.At(k)))) != text.StopWord {
			break
		}
		i--
	}
	return i >= 0 && m.q.IsStopWord(i) && !c.used.Has(i)
}
