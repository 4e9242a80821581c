package search

import (
	"slices"

	"lieudit/queries/address/parse"
	"lieudit/queries/address/text"
	"lieudit/queries/address/vintage"
)

// How much must be alike for a street to be meant, in percent of the distinctive words. The first two work together: a name
// that holds few of the typed words is meant only if nearly all of the name was typed.
const (
	leastTyped     = 50  // of the typed words
	leastBoth      = 175 // twice the share of the typed words, plus the share of the name
	leastOtherName = 60  // of the name of a lieu-dit, a former commune, a delivery office
)

// wordMatcher decides which of the typed words belong to a street, and whether they mean it.
type wordMatcher struct{ *query }

// fitsWords reports whether the words mean a street. A street is not meant if it only has the same kind, or if it only
// shares a first name with the street that is meant.
func (m wordMatcher) fitsWords(c *Candidate, words parse.Mask) bool {
	all := words & m.streetWords(c.place) &^ beforeNumber(m.q, c)
	if c.distinctiveTotal > 0 && c.distinctiveMatched == 0 && m.q.Distinctive(all) != 0 && (m.q.Distinctive(c.otherNames) == 0 || m.q.HasStreetType(all&^c.otherNames)) {
		return false // they share nothing distinctive
	}
	words &= m.streetZone(c)
	distinctive := m.q.Distinctive(words) | innerTypes(m.q, words)
	if distinctive == 0 {
		isUnnamed := c.distinctiveTotal > 0 && c.distinctiveMatched == 0 && c.otherNames == 0 // only the kind in its name was typed
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
		return false // a kind was typed, so another word is not a misspelt kind: rue de la Plage
	}
	switch {
	case matched == 0:
		return m.q.Distinctive(c.otherNames) != 0 && !m.q.HasStreetType(words)
	case isOtherType && (matched&^c.fuzzy == 0 || (!c.isWhollyTyped || missing != 0) && matched.Count() < 2):
		return false
	case missing.Has(distinctive.Last()) && missing.Count() >= matched.Count():
		return false // it shares a first name only
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
		return false // every word is misspelt, and some are missing
	}
	named := int32(100)
	if c.distinctiveTotal > 0 {
		named = c.distinctiveMatched * 100 / c.distinctiveTotal
	}
	return typed >= leastTyped && 2*typed+named >= leastBoth
}

// hasOtherType reports whether the first kind of street among the words differs from the candidate's.
func hasOtherType(q *parse.Question, c *Candidate, words parse.Mask) bool {
	types := q.StreetTypes(words)
	return types != 0 && !c.used.Has(types.First())
}

// hasGuessedKind reports whether the kind of a street was read from a misspelt word.
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

// mayBeType reports whether a word may be a misspelt kind of street. Such a word opens the street, stands for no distinctive
// word of the name, and is short or resembles a kind.
func (m wordMatcher) mayBeType(c *Candidate, i int) bool {
	isFirst := i == 0 || !m.q.Words().Has(i-1) || c.terms().Has(i-1)
	return isFirst && !(c.used &^ c.fuzzy).Has(i) && i+1 < len(m.q.Terms) && (len(m.q.Terms[i].Text) <= 4 || m.lexicon.isLike(i, text.StreetType))
}

// streetZone are the words where a street is expected: after the number, before the commune, and outside
// complements.
func (m wordMatcher) streetZone(c *Candidate) parse.Mask {
	zone := m.streetWords(c.place) &^ c.otherNames &^ m.lightWords(c)
	if c.place.at != 0 && c.contiguous != 0 && c.contiguous.Last() < c.place.at.First() {
		zone &= parse.Span(0, c.place.at.First())
	}
	return zone
}

// lightPercent is the share of its weight, in percent, that is left to a word that may belong to a complement. It is
// not 0, so that the street which holds the word fits better than one that does not.
const lightPercent = 15

// weighTyped is the weight of the words that the street should hold. Words of complements weigh nothing. Words
// that may belong to something else weigh little if the street does not hold them.
func (m wordMatcher) weighTyped(c *Candidate, words parse.Mask) int32 {
	words &^= m.q.Complement | m.q.PlaceOnly&c.unreadIn(words)
	words &^= c.unknown // they lower the fit in another way
	light := words & m.lightWords(c)
	return m.lexicon.weigh(words&^light) + m.lexicon.weigh(light)*lightPercent/100
}

// lightWords are words that the street does not hold and that may belong to something else: a phrase, parentheses,
// what stands before the number, a second street, and unknown words.
func (m wordMatcher) lightWords(c *Candidate) parse.Mask {
	return (phrases(m.q, c) | m.q.InParens | beforeNumber(m.q, c) | m.secondStreet(c) | c.unknown) &^ c.used &^ c.otherNames &^ m.q.Complement
}

// phrases are the words that may name a building. There are none if the words of the street stand only among other such words, because
// all of them name a street then: clos Jeanne d'Arc.
func phrases(q *parse.Question, c *Candidate) parse.Mask {
	held := q.Distinctive(c.used)
	if held != 0 && held&^q.Phrases == 0 && q.Distinctive(q.Phrases)&^held != 0 {
		return 0
	}
	return q.Phrases
}

// secondStreet are the words of another street after this one: 5 rue A, 6 rue B. It begins at the next number, at a word that marks it
// as one of a corner, or at the next kind of street that a name follows (not in rue du Grand Hameau). It also begins at a comma
// if the place is already certain.
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

// opensWithType reports whether the words of a street begin with its kind. A misspelt first word counts as a kind.
func opensWithType(q *parse.Question, c *Candidate) bool {
	for i := range q.Terms {
		if class := text.ClassOf(q.Terms[i].Text); c.contiguous.Has(i) && class != text.StopWord {
			return class == text.StreetType || c.fuzzy.Has(i)
		}
	}
	return false
}

// holdsRest reports whether a candidate is meant by everything except one word of the street: the street has the number,
// its place is certain, and other words of its name were typed exactly.
func (m wordMatcher) holdsRest(c *Candidate) bool {
	return c.Type == HouseNumber && !m.q.IsRewritten && !c.IsAmbiguous && !c.lacksRep && m.isPlaced(c) && m.q.Distinctive(c.used&^c.fuzzy) != 0
}

// readOthers reads words that the street does not hold as other names of its surroundings: its lieu-dit, its former
// commune, its delivery office. It returns their weight, a little less than in the name of the street.
func (m wordMatcher) readOthers(c *Candidate, words parse.Mask) (matched int32) {
	left := words &^ c.used &^ m.q.Complement
	for i, name := range [...]uint32{c.facet.LieuDit, oldName(m.v, c.facet), c.facet.Delivery} {
		if left == 0 || name == vintage.None || i == 2 && c.name == vintage.None && m.q.Distinctive(c.used) == 0 {
			continue // a delivery office that was typed alone is a place of its own
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

// isPlaceName reports whether a commune is known by a name.
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

// holdsAllWords reports whether a candidate explains every word of an unfinished line except links. An unfinished link must continue
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

// People write more than an address on its line: the name of a building, of a company, of what stands there. Such words
// have nothing that marks them. They are taken for a complement only next to an address that needs none of them: its street
// and number are confirmed and its place holds. The name of a street that is not in the base also begins like another
// one, so that words that may belong to the name are not taken: a kind of street, a qualifier, a word tied by "de", and
// one that some street of the base has next to the last word of the name.

// complementReader reads the words next to an address that no reading explains.
type complementReader struct {
	*query
	words wordMatcher
}

// findUnknown finds the words that nothing explains and that stand next to a confirmed address. There are none if one of
// them may belong to the name of the street.
func (r complementReader) findUnknown(c *Candidate, words parse.Mask) (unknown parse.Mask) {
	left := c.unreadIn(words) &^ r.q.Complement &^ r.q.PlaceOnly
	if r.q.Distinctive(left)|left&r.q.Digits() == 0 || r.q.Completing || !r.isSelfSufficient(c) {
		return 0
	}
	left &^= r.words.lightWords(c)
	for i := 0; i < len(r.q.Terms); {
		to := i
		for to < len(r.q.Terms) && left.Has(to) {
			to++
		}
		if to > i && !r.isAside(c, i, to) {
			return 0
		}
		i = to + 1
	}
	return left
}

// typoSim is the least likeness that a misspelt word of a street needs for unknown words to stand next to it: one letter of five.
const typoSim = 77

// isSelfSufficient reports whether a candidate is an address that needs no other word: each word of its street is confirmed, except for
// a letter of one that the base lacks, and they stand together; the street has the number, or none was typed and its kind
// was; and the place is certain.
func (r complementReader) isSelfSufficient(c *Candidate) bool {
	if !c.isWhole || c.used != c.contiguous || c.fuzzy != 0 && (c.fuzzySim < typoSim || r.hasExactWord(c.fuzzy)) {
		return false
	}
	isNumberRight := c.Type == HouseNumber && !c.IsAmbiguous && !c.lacksRep || c.Type == Street && !c.IsTyped() && opensWithType(r.q, c)
	isPlaceRight := r.isPlaced(c) || r.scope.Cited != nil && r.scope.Cited.Has(c.Commune)
	return isNumberRight && isPlaceRight && r.q.Distinctive(c.used)|innerTypes(r.q, c.used) != 0
}

// hasExactWord reports whether some term of the base spells a word of a set.
func (r complementReader) hasExactWord(words parse.Mask) bool {
	for i := range r.q.Terms {
		if words.Has(i) && r.lexicon.hasExact(i) {
			return true
		}
	}
	return false
}

// isAside reports whether the terms [from, to) stand next to the name of a candidate's street without being part of it.
func (r complementReader) isAside(c *Candidate, from, to int) bool {
	switch name := c.contiguous; {
	case from > name.Last():
		return r.isBehindName(c, from, to)
	case to <= name.First():
		return r.isAheadOfName(c, from, to)
	}
	return false
}

// isBehindName reports whether terms after the name of a street are not part of it. An article ends a name, since names
// are not joined to what follows by an article alone.
func (r complementReader) isBehindName(c *Candidate, from, to int) bool {
	first := from
	for first < to && r.q.IsStopWord(first) {
		if !isArticle(r.q.Terms[first]) {
			return r.q.Distinctive(parse.Span(from, to)) == 0 || first+1 < to && saysWhere(r.q.Terms[first+1].Text)
		}
		first++
	}
	if first == to {
		return true
	}
	if r.q.IsStreetType(first) || r.q.Terms[first].Digits || extendsName(r.q.Terms[first].Text) || isRegionalLink(r.q.Terms[first].Typed) {
		return false
	}
	isNext := from == c.contiguous.Last()+1
	return !isNext || first > from || !r.mayFollow(c, first)
}

// isAheadOfName reports whether terms between the house number and the name of a street are not part of the name. The
// name must begin with its kind.
func (r complementReader) isAheadOfName(c *Candidate, from, to int) bool {
	if !opensWithType(r.q, c) || c.At.Last() > from || r.q.IsStopWord(to-1) || r.q.HasStreetType(parse.Span(from, to)) {
		return false
	}
	for i := from; i < to; i++ {
		if r.q.Terms[i].Digits || extendsName(r.q.Terms[i].Text) {
			return false
		}
	}
	first := r.v.NameTerms(r.v.StreetName(c.Street)).At(0)
	for _, a := range r.lexicon.alternatives[to-1] {
		if a.sim >= literalSim && r.standTogether(a.term, first) {
			return false
		}
	}
	return true
}

// saysWhere reports whether a word after a preposition describes a location: à côté de, en face de.
func saysWhere(word string) bool {
	switch word {
	case "cote", "face", "dessus", "dessous", "fond", "droite", "gauche", "angle", "bord", "niveau", "bout", "pied", "entree", "hauteur":
		return true
	}
	return false
}

// isArticle reports whether a term is an article without a preposition.
func isArticle(t text.Term) bool {
	switch t.Typed {
	case "le", "la", "les", "l":
		return true
	}
	return false
}

// isRegionalLink reports whether a word means "de" or "du" in the names of a region: mas del fesc, hent ar feunteun.
func isRegionalLink(word string) bool {
	switch word {
	case "del", "dels", "dal", "dou", "di", "ar", "an", "er":
		return true
	}
	return false
}

// extendsName reports whether a term next to the name of a street makes another name of it.
func extendsName(term string) bool {
	switch term {
	case "prolonge", "prolongee", "superieur", "superieure", "inferieur", "inferieure", "nord", "sud", "est", "ouest", "annexe", "bis", "ter", "i", "ii", "iii", "iv",
		"droit", "droite", "gauche", "centre", "central", "centrale", "interieur", "interieure", "exterieur", "exterieure":
		return true
	}
	return text.IsQualifier(term)
}

// mayFollow reports whether a word may continue the name of a street: a street of the base has it next to the last
// word of the name.
func (r complementReader) mayFollow(c *Candidate, word int) bool {
	name := r.v.NameTerms(r.v.StreetName(c.Street))
	if c.lastWord != parse.Bit(c.contiguous.Last()) {
		return true // the words stand in another order
	}
	for _, a := range r.lexicon.alternatives[word] {
		if r.standTogether(name.At(name.Len()-1), a.term) {
			return true
		}
	}
	return false
}

// maxNeighbours bounds how many streets are searched for two adjacent terms.
const maxNeighbours = 8_192

// standTogether reports whether a street of the base has one term right before another. Links between them are ignored.
// It also reports true if too many streets would have to be looked at.
func (r complementReader) standTogether(before, behind uint32) bool {
	few, many := r.v.StreetsWith(before), r.v.StreetsWith(behind)
	if few.Len() > many.Len() {
		few, many = many, few
	}
	c := cursor{column: many}
	for j := range few.Len() {
		r.budget.left--
		if j == maxNeighbours || r.budget.left <= 0 {
			return true
		}
		if street := few.At(j); c.seek(street) && hasPair(r.v, r.v.StreetName(street), before, behind) {
			return true
		}
	}
	return false
}

// hasPair reports whether a name has one term right before another, ignoring links.
func hasPair(v *vintage.Vintage, name, before, behind uint32) bool {
	last := uint32(vintage.None)
	for terms, k := v.NameTerms(name), 0; k < terms.Len(); k++ {
		t := terms.At(k)
		if t == behind && last == before {
			return true
		}
		if text.ClassOf(viewString(v.Term(t))) != text.StopWord {
			last = t
		}
	}
	return false
}

// strangeWords are the words of a candidate's complement that no reading explains: the unknown ones, and those that signs
// set off from an address with a number. A second street is not a complement.
func (r complementReader) strangeWords(c *Candidate) parse.Mask {
	out := c.unknown
	if c.Type != HouseNumber {
		return out
	}
	apart := r.words.lightWords(c) & c.unread &^ c.unknown &^ r.q.Phrases &^ beforeNumber(r.q, c) &^ r.q.Corner
	if c.name != vintage.None && c.sim >= literalSim {
		apart |= c.unread & r.q.PlaceOnly &^ r.q.Phrases // a part of town, or what stands there
	}
	for i := 0; i < len(r.q.Terms); {
		to := i
		for to < len(r.q.Terms) && apart.Has(to) {
			to++
		}
		run := parse.Span(i, to)
		isOwned := i > 0 && c.unknown.Has(i-1) && r.q.Distinctive(run)|r.q.StreetTypes(run) == 0 // module 022375
		if to > i && (isOwned || !r.q.IsStreetType(i) && !r.q.Terms[i].Digits && r.q.Distinctive(run) != 0) {
			out |= run
		}
		i = to + 1
	}
	return out
}

// hasBareTail reports whether words are left unread after or within the name of a street that neither a sign nor a word of a
// complement sets off from it. They may belong to the name of another street, and so may a second street.
func (r complementReader) hasBareTail(c *Candidate) bool {
	if c.Street == vintage.None || c.contiguous == 0 || c.unknown != 0 {
		return c.unknown != 0
	}
	bare := c.unread &^ r.q.Complement &^ r.q.PlaceOnly &^ r.q.Corner &^ parse.Span(0, c.used.First())
	second := r.words.secondStreet(c) & bare &^ r.q.Phrases
	if second != 0 && r.q.Terms[second.First()].Before&(text.Break|text.Open) != 0 {
		bare &^= second
	}
	return r.q.Distinctive(bare&^(r.words.lightWords(c)&^second)) != 0
}
