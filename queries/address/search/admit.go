package search

import (
	"cmp"

	"lieudit/queries/address/parse"
	"lieudit/queries/address/text"
	"lieudit/queries/address/vintage"
)

// fitsFairly is the least fit of a street's name, in thousandths, at which a wrong postcode of the same department
// is forgiven.
const fitsFairly = 700

// placeFilter keeps out what does not lie where the question says.
type placeFilter struct {
	*query
	found recognition
}

// accepts says whether a candidate lies where the question says: the named commune is its own, or the postcode is.
// An address is never shown in a place that was not typed. One exception is marked as doubted: a house number that
// fits letter for letter, in another commune of the typed postcode.
func (f *placeFilter) accepts(c *Candidate) bool {
	if f.isElsewhere(c) {
		isConfirmed := c.Type == HouseNumber && c.isCertain && !c.IsAmbiguous && !c.lacksRep
		if !isConfirmed || c.postcode != samePostcode || f.q.Postcode.Code == 0 {
			return false
		}
		c.IsDoubted = true
		return true
	}
	c.IsDoubted = c.isContradicted
	return f.acceptsPostcode(c)
}

// acceptsPostcode reports whether the typed postcode lets a candidate be meant. Beside the name of a commune a wrong one is
// forgiven, one of another department only where nothing else can be meant. Without a name an existing postcode binds; of
// the same commune or city another one is forgiven where street and number are confirmed.
func (f *placeFilter) acceptsPostcode(c *Candidate) bool {
	isNamed := f.isNamedPlace(c)
	switch {
	case c.postcode == regionPostcode:
		c.IsContradicted = !isInDepartmentOf(f.v, f.q.Postcode.Code, c)
		return isNamed && (c.Street == vintage.None || c.streetFit >= fitsFairly)
	case c.postcode == otherPostcode && c.postcodePrefix != 0 && f.q.Postcode.Code == 0:
		return isNamed
	case c.postcode == otherPostcode:
		c.IsContradicted = true
		return f.q.Postcode.Code != 0 && isNamed && c.sim >= confirmedSim && f.isAddressConfirmed(c) && f.namesOneCommune(c.place)
	case c.postcode == nearPostcode:
		c.IsContradicted = f.q.Postcode.Code != 0 && !isInDepartmentOf(f.v, f.q.Postcode.Code, c) || f.q.Postcode.Code == 0 && !isNamed
	case c.postcode == cityPostcode && !isNamed && c.Street != vintage.None && !f.q.Completing && !f.postcode.isCedex():
		c.IsContradicted = true
		return f.isAddressConfirmed(c) && !c.isMissing
	}
	return true
}

// isNamedPlace reports whether the words or a code name the commune of a candidate.
func (x *query) isNamedPlace(c *Candidate) bool {
	return c.name != vintage.None && c.sim >= boundSim || x.scope.Cited != nil && x.scope.Cited.Has(c.Commune)
}

// isAddressConfirmed reports whether the name of a street is confirmed, and the number if the street has it.
func (f *placeFilter) isAddressConfirmed(c *Candidate) bool {
	return c.Street != vintage.None && c.isCertain && !c.IsAmbiguous && !c.lacksRep && !hasUnread(f.q, c)
}

// namesOneCommune reports whether the words of a place are the name of one commune alone, former ones and those of which
// the vintage has no row included.
func (f *placeFilter) namesOneCommune(p place) bool {
	at := p.at &^ p.departmentAt
	if at == 0 {
		return false
	}
	known := f.table.Named(f.q.Terms[at.First() : at.Last()+1])
	for _, c := range known {
		if cmp.Or(c.Parent, c.Code) != cmp.Or(known[0].Parent, known[0].Code) {
			return false
		}
	}
	return len(known) > 0
}

// isElsewhere says whether words name a commune that the candidate does not lie in. Words name one behind a
// postcode, in a field of their own, and at the end or the beginning of the line. They name none where the name of
// the street holds them and all other distinctive words are explained.
func (f *placeFilter) isElsewhere(c *Candidate) bool {
	if len(f.scope.Cited) > 0 {
		return !f.scope.Cited.Has(c.Commune) // a code says more than a name
	}
	if f.isInUnknownPlace(c) || f.isOutsideDivision(c) {
		return true
	}
	if c.place.at != 0 && !c.isLate && c.used != 0 && c.used.First() < c.place.at.First() && c.place.at.Last() < c.used.Last() {
		return true // the name of the commune would stand within that of the street
	}
	if c.holdsAll {
		return false // nothing typed is left that could name another commune
	}
	for _, m := range f.found.mentions {
		if f.contradicts(m, c) {
			return true
		}
	}
	return false
}

// isInUnknownPlace reports whether the field of the commune holds a name that is unknown, and nothing else says where
// the address lies: no postcode, no code, no filter. Behind a postcode an unknown name leaves the postcode to bind.
func (f *placeFilter) isInUnknownPlace(c *Candidate) bool {
	if f.q.PlaceOnly == 0 || f.q.Postcode.At != 0 || f.scope.Communes != nil || c.place.at&f.q.PlaceOnly != 0 {
		return false
	}
	return f.q.Distinctive(c.unread&f.q.PlaceOnly&^f.q.InParens) != 0
}

// isOutsideDivision reports whether the last words name a department or region, nothing else names a place, and the candidate
// neither lies there nor holds the words otherwise.
func (f *placeFilter) isOutsideDivision(c *Candidate) bool {
	isLocated := c.name != vintage.None || c.postcode == samePostcode || c.departmentAt != 0
	return !isLocated && f.division.at&^f.q.Complement&c.unread != 0
}

// contradicts says whether a mention names a commune that the candidate does not lie in. A mention that shares
// words with the candidate's own place counts only where it reads these words better.
func (f *placeFilter) contradicts(m mention, c *Candidate) bool {
	if m.at&c.place.at != 0 {
		isApart := m.at&c.used == 0 || hasUnread(f.q, c) || f.q.Distinctive(c.used)&^m.at == 0 && f.found.isBinding(m)
		return f.isBetter(m, c) && isApart && !f.found.isNamed(c.Commune, m)
	}
	hasLate := c.name != vintage.None && c.isLate && c.sim >= boundSim
	if !f.found.isBinding(m) || hasLate && !m.isLate || hasLate && c.sim >= literalSim && opensPhrase(f.q, m.at) {
		return false
	}
	distinctive := f.q.Distinctive(m.at)
	if distinctive == 0 {
		distinctive = m.at
	}
	matched, others := c.used, c.otherNames
	if m.sim >= literalSim {
		others &^= c.fuzzy // it is rather the commune than a misspelt lieu-dit
	}
	if m.sim >= literalSim && (!c.isWhollyTyped || m.at&c.lastWord == 0) {
		matched &^= c.fuzzy // nor is it a misspelt word of the street
	}
	isExplained := distinctive&^(matched|others) == 0
	switch {
	case isExplained && distinctive&^others == 0:
		return false
	case distinctive&matched != 0 && hasUnread(f.q, c):
		return true
	case isExplained:
		return m.sim >= literalSim && !f.found.isNamed(c.Commune, m) && !f.mayTakePlace(m, c)
	case m.sim < literalSim && distinctive&c.unread == 0:
		return false // a looser reading of a word that the street holds
	}
	return !f.found.isNamed(c.Commune, m)
}

// opensPhrase reports whether words stand right behind one that says that they name a building: résidence Azur.
func opensPhrase(q *parse.Question, words parse.Mask) bool {
	i := words.First() - 1
	for i >= 0 && q.IsStopWord(i) {
		i--
	}
	return i >= 0 && words&^q.Phrases == 0 && parse.IsPhraseWord(q.Terms[i].Typed)
}

// mayTakePlace reports whether the name of a street may hold words that name a commune elsewhere: behind a kind of
// street, in a name that was typed in full (Grande Rue, Moulin Rouge), or where nothing else was typed. It sets
// borrowsCommune unless the name explains all that was typed, because any other such answer is never certain.
func (f *placeFilter) mayTakePlace(m mention, c *Candidate) bool {
	isAlone, isFull := f.q.Words()&^m.at == 0, c.isWhole && m.at&c.fuzzy == 0
	if m.sim >= literalSim && m.at&c.fuzzy != 0 && !isMisspeltThere(f.q, m.at&c.fuzzy, c) {
		return false
	}
	if !isAlone && !isFull && !opensWithType(f.q, c) && c.Street != vintage.None {
		return false
	}
	c.borrowsCommune = c.borrowsCommune || !isFull || c.unread&^f.q.Complement != 0
	return true
}

// isMisspeltThere reports whether words that name a commune letter for letter may still be misspelt words of a street: the commune
// of the street was typed elsewhere, or they stand right next to the others of its name, of which one that tells streets apart was
// typed as it is.
func isMisspeltThere(q *parse.Question, words parse.Mask, c *Candidate) bool {
	return c.name != vintage.None && c.sim >= literalSim || c.used == c.contiguous && q.Distinctive(c.used&^c.fuzzy&^words) != 0
}

// isBetter says whether a mention reads the words of the candidate's place better: it has more of them, or the
// same ones letter for letter. A mention with the unfinished word is no better, since that word may grow into
// another.
func (f *placeFilter) isBetter(m mention, c *Candidate) bool {
	if m.sim < literalSim || c.place.at&^m.at != 0 || m.at&unfinishedWord(f.q) != 0 {
		return false
	}
	return m.at != c.place.at || c.sim < literalSim
}

// opensWithType says whether the words of a street begin with its kind. A misspelt first word is taken for one.
func opensWithType(q *parse.Question, c *Candidate) bool {
	for i := range q.Terms {
		if class := text.ClassOf(q.Terms[i].Text); c.contiguous.Has(i) && class != text.StopWord {
			return class == text.StreetType || c.fuzzy.Has(i)
		}
	}
	return false
}

// isBinding says whether a mention stands where communes stand, so that an address must lie in one it names. The
// only word that could name a street belongs to the street: place du Marcé.
func (r recognition) isBinding(m mention) bool {
	if m.isAway && m.at&^r.q.PlaceOnly == 0 && r.q.Distinctive(r.q.PlaceOnly&^m.at) != 0 {
		return false // a word of another name, as of a business district: Paris La Défense
	}
	if m.isLate {
		before := r.q.Words() & parse.Span(0, m.at.First()) &^ r.q.Complement
		isAlone := r.q.HasStreetType(before) && r.q.Distinctive(before)|innerTypes(r.q, before)|streetDigits(r.q, before) == 0
		return !isAlone || m.at&r.q.PlaceOnly != 0
	}
	if m.at.First() != 0 || m.sim < literalSim {
		return false
	}
	next := m.at.Last() + 1
	return next < len(r.q.Terms) && (r.q.Terms[next].Digits || r.q.HasStreetType(parse.Bit(next)))
}

// streetDigits are the digits behind a kind of street: rue du 4.
func streetDigits(q *parse.Question, words parse.Mask) (out parse.Mask) {
	hasType := false
	for i := range q.Terms {
		if words.Has(i) {
			hasType = hasType || q.IsStreetType(i)
			if hasType && q.Terms[i].Digits {
				out |= parse.Bit(i)
			}
		}
	}
	return out
}

// hasUnread says whether a distinctive word is explained neither by the candidate nor as a complement.
func hasUnread(q *parse.Question, c *Candidate) bool {
	return q.Distinctive(c.unread)&^q.Complement&^q.Phrases&^q.InParens&^beforeNumber(q, c) != 0
}

// isExplained says whether the words that a candidate leaves unread are only links, articles and complements.
func isExplained(q *parse.Question, unread parse.Mask) bool {
	for i := range q.Terms {
		isArticle := q.Terms[i].Elided && q.IsStopWord(i)
		if (unread &^ q.Complement).Has(i) && !q.IsLink(i) && !isArticle {
			return false
		}
	}
	return true
}

// How much must be alike for a street to be meant, in percent of the distinctive words. The first two work together: a name
// that holds few of the typed words is meant only where nearly all of the name was typed.
const (
	leastTyped     = 50  // of the typed words
	leastBoth      = 175 // twice the share of the typed words, plus the share of the name
	leastOtherName = 60  // of the name of a lieu-dit, a former commune, a delivery office
)

// wordMatcher decides which of the typed words belong to a street, and whether they mean it.
type wordMatcher struct{ *query }

// fitsWords says whether the words mean a street. A street is not meant that only has the same kind, or that only
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
		return false // a kind was typed, and another word is no misspelt one: rue de la Plage
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

// areQualifiers reports whether words are all such as "ancien", which name no street by themselves. It is false for no words.
func areQualifiers(q *parse.Question, words parse.Mask) bool {
	for i := range q.Terms {
		if words.Has(i) && !text.IsQualifier(q.Terms[i].Text) {
			return false
		}
	}
	return words != 0
}

// followsLink says whether a link stands before words. They then belong to the name of a street: rue de
// Strasbourg.
func followsLink(q *parse.Question, words parse.Mask) bool {
	return words != 0 && words.First() > 0 && q.IsStopWord(words.First()-1)
}

// years are the words that are a year. In a street named after a date a year is no house number.
func years(q *parse.Question, words parse.Mask) (out parse.Mask) {
	for i := range q.Terms {
		if n := parse.Number(q.Terms[i].Typed); words.Has(i) && q.Terms[i].Digits && n >= 1700 && n < 2030 {
			out |= parse.Bit(i)
		}
	}
	return out
}

// innerTypes are the kinds of streets but the first one: they are distinctive, as in rue du Parc.
func innerTypes(q *parse.Question, words parse.Mask) parse.Mask {
	types := q.StreetTypes(words)
	return types & (types - 1) // without the lowest bit
}

// hasOtherType says whether the first kind of street among the words is not that of the candidate.
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

// typedShare is how much of the distinctive words a street holds, in percent. isQualified says whether it lacks a
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

// mayBeType says whether a word may be a misspelt kind of street. It opens the street, stands for no distinctive
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

// unreadIn are the words of a set that nothing of the candidate explains.
func (c *Candidate) unreadIn(words parse.Mask) parse.Mask { return words &^ c.used &^ c.otherNames }

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

// isPlaced says whether the place of a candidate is certain: a name says it letter for letter, or the postcode is
// its own.
func (x *query) isPlaced(c *Candidate) bool {
	return c.name != vintage.None && c.sim >= literalSim || x.postcode.code != 0 && c.facet.Postcode == x.postcode.code
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
