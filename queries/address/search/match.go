package search

import (
	"strings"

	"lieudit/queries/address/parse"
	"lieudit/queries/address/text"
	"lieudit/queries/address/vintage"
)

// matcher compares streets and communes with the words of a question, and makes candidates of those that fit.
type matcher struct {
	*query
	words       wordMatcher
	complements complementReader
	places      placeFilter
	ranking     *ranker
}

// newMatcher makes the matcher of a question.
func newMatcher(c *query, ranking *ranker) matcher {
	words := wordMatcher{c}
	return matcher{query: c, words: words, complements: complementReader{c, words}, places: placeFilter{query: c}, ranking: ranking}
}

// matchStreet compares a street with the words that do not name its place. It shortlists the rows that have the typed
// number, or the street itself if no row does.
func (m *matcher) matchStreet(p place, street uint32) {
	of := m.v.Street(street)
	name := m.v.NameTerms(of.Name)
	m.budget.left -= 8 + len(m.q.Terms)*name.Len()/6
	c := Candidate{place: p, Type: Street, Commune: p.commune, Street: street, Row: vintage.None}
	if of.Locality {
		c.Type = Locality
	}
	words := m.streetWords(p)
	c.alignment = aligner{m.lexicon}.align(name, words)
	if c.used == 0 {
		return
	}
	c.postcodePrefix = m.q.Postcode.PrefixAt &^ c.used
	m.matchNumber(c, of)
	if c.postcodePrefix != 0 && m.q.Postcode.IsOpen {
		c.postcodePrefix = 0
		m.matchNumber(c, of)
	}
}

// matchNumber shortlists the rows of a street that have the typed number, or the street itself.
func (m *matcher) matchNumber(c Candidate, of vintage.Street) {
	taken := c.used | c.place.at | c.postcodePrefix
	c.HouseNumber = m.q.HouseNumber(c.contiguous, taken)
	if short := m.postcode.shortAt(c.used); short&c.At != 0 && !m.q.Completing && !m.isBeforeStreet(&c, of) {
		c.HouseNumber = m.q.HouseNumber(c.contiguous, taken|short)
	}
	if c.IsTyped() && !of.Locality && m.matchRows(c, of) && m.wantsType(HouseNumber) {
		return
	}
	c.isMissing = c.IsTyped()
	if c.isMissing {
		c.rep = c.Choices[0].Rep
	}
	m.assess(c, of)
}

// isBeforeStreet reports whether the house number stands before a street that has it.
func (m *matcher) isBeforeStreet(c *Candidate, of vintage.Street) bool {
	if c.contiguous == 0 || c.At.Last() > c.contiguous.First() {
		return false
	}
	for _, choice := range c.Choices[:c.Count] {
		if row := m.v.FirstNumber(of, choice.Number); row < of.To && m.v.Number(row) == choice.Number {
			return true
		}
	}
	return false
}

// matchRows shortlists the rows of a street that have the first typed number it knows, and reports whether there are
// any. If no row has the typed repetition index, it takes the row without one.
func (m *matcher) matchRows(c Candidate, of vintage.Street) (any bool) {
	for k := range c.Count {
		choice := c.Choices[k]
		from, to := m.rowsWithNumber(of, choice.Number)
		isLong, isLiteral := m.findReps(&c, choice, from, to)
		for row := from; row < to; row++ {
			r, rep := c, string(m.v.Rep(row))
			r.chosen, r.rep = k, choice.Rep
			if isLong {
				if any = m.readLongRep(&r, choice, rep) || any; r.repAt != 0 {
					m.matchRow(r, of, row)
				}
				continue
			}
			if isLiteral && text.Fold(rep) != choice.Rep {
				continue
			}
			if letter := choice.Letter &^ c.used &^ c.at; letter != 0 && m.saysRep(letter, rep) {
				r.rep, r.repAt = m.q.Typed(letter), letter
				if letter == unfinishedWord(m.q) {
					r.rep = text.Fold(rep)
				}
			}
			if sameRep(r.rep, rep) {
				r.hasOtherRep = r.rep != text.Fold(rep)
				m.matchRow(r, of, row)
				any = true
			}
		}
		for row := from; row < to && !any && choice.Rep != ""; row++ {
			if len(m.v.Rep(row)) == 0 {
				r := c
				r.chosen, r.rep, r.lacksRep = k, choice.Rep, true
				m.matchRow(r, of, row)
				any = true
			}
		}
		if !any && choice.Rep == "" && m.q.Completing && !c.IsList {
			any = m.matchBegunReps(c, of, k, from, to)
		}
		if any {
			return true
		}
	}
	return false
}

// matchBegunReps shortlists rows [from, to) that bear choice k with a repetition index which may still be typed, and reports whether
// there are any.
func (m *matcher) matchBegunReps(c Candidate, of vintage.Street, k int, from, to uint32) bool {
	c.chosen, c.hasOtherRep = k, true
	for row := from; row < to; row++ {
		m.matchRow(c, of, row)
	}
	return from < to
}

// findReps reports whether a row has the repetition index that was typed: isLong if it is one of several words, otherwise isLiteral if
// it is spelled in the same way. If 30 bis and 30 b are two numbers, each matches only itself.
func (m *matcher) findReps(c *Candidate, choice parse.Choice, from, to uint32) (isLong, isLiteral bool) {
	for row := from; row < to; row++ {
		rep := string(m.v.Rep(row))
		isLong = isLong || m.longRep(c, choice, rep) != 0
		isLiteral = isLiteral || choice.Rep != "" && text.Fold(rep) == choice.Rep
	}
	return isLong, isLiteral
}

// readLongRep reads the words after the number as a repetition index if they spell it, and reports whether they do. A number among
// them is not another number of the list.
func (m *matcher) readLongRep(c *Candidate, choice parse.Choice, rep string) bool {
	at := m.longRep(c, choice, rep)
	if at == 0 {
		return false
	}
	c.rep, c.repAt = text.Fold(rep), at
	c.IsList = c.IsList && c.At&^at&^parse.Bit(choice.At) != 0
	return true
}

// longRep are the words after a number that spell a repetition index longer than a letter or a Latin word: villa 9, n°43, a4.
func (m *matcher) longRep(c *Candidate, choice parse.Choice, rep string) (at parse.Mask) {
	if choice.At < 0 || len(rep) < 2 && !isNumber(rep) || parse.IsLatinRep(rep) {
		return 0
	}
	want, typed := spellRep(rep), m.q.Terms[choice.At].Tail
	for i := choice.At + 1; i < len(m.q.Terms) && len(typed) < len(want); i++ {
		if (c.used | c.at).Has(i) {
			return 0
		}
		isSign := m.q.Terms[i].Typed == "n" && i+1 < len(m.q.Terms) && m.q.Terms[i+1].Digits
		if at |= parse.Bit(i); !m.q.Terms[i].Part && !isSign {
			typed += m.q.Terms[i].Typed + m.q.Terms[i].Tail
		}
	}
	if typed != want {
		return 0
	}
	return at
}

// spellRep is a repetition index in one word, without the sign of a number.
func spellRep(rep string) string {
	words := text.Words(rep)
	if len(words) > 1 && words[1].Number() && (words[0].Text == "n" || words[0].Text == "no") {
		words = words[1:]
	}
	var out strings.Builder
	for _, w := range words {
		out.WriteString(w.Text + w.Tail)
	}
	return out.String()
}

// saysRep reports whether letters after a number are the repetition index of a row. The unfinished ones may be its beginning.
func (m *matcher) saysRep(letters parse.Mask, rep string) bool {
	typed := m.q.Typed(letters)
	if letters == unfinishedWord(m.q) && rep != "" {
		return strings.HasPrefix(expandRep(rep), typed) || strings.HasPrefix(text.Fold(rep), typed)
	}
	return rep != "" && sameRep(typed, rep)
}

// matchRow assesses one row of a street as a house number.
func (m *matcher) matchRow(c Candidate, of vintage.Street, row uint32) {
	c.Type, c.Row = HouseNumber, row
	m.assess(c, of)
}

// sameRep reports whether a typed repetition index stands for one of the base: b is bis, t is ter.
func sameRep(typed, kept string) bool { return expandRep(typed) == expandRep(kept) }

// expandRep expands the letters for bis, ter and quater, since bases and people use both forms.
func expandRep(rep string) string {
	rep = text.Fold(rep)
	switch rep {
	case "b":
		return "bis"
	case "t":
		return "ter"
	case "q":
		return "quater"
	}
	return rep
}

// assess explains the words that the street does not hold, and shortlists the candidate if the words mean it and
// it lies where the question says.
func (m *matcher) assess(c Candidate, of vintage.Street) {
	c.facet = m.facetOf(&c, of)
	words := m.q.Words() &^ c.at &^ c.postcodePrefix &^ c.terms() &^ m.postcode.shortAt(c.used|c.At)
	matched := c.typedWeight + m.words.readOthers(&c, words)
	c.unknown = m.complements.findUnknown(&c, words)
	c.unread = c.unreadIn(words)
	c.holdsAll = m.q.Completing && m.words.holdsAllWords(&c)
	c.beginsSo = c.holdsAll && !c.isMissing && !c.hasOtherRep && m.beginsAsTyped(c.Street, c.place.at)
	if !c.holdsAll && !m.words.fitsWords(&c, words) || c.isRespelt && !m.words.holdsRest(&c) {
		return
	}
	c.streetFit = fitStreet(matched, m.words.weighTyped(&c, words), &c.alignment, m.q.Completing) * unknownWorth(countWords(m.q, c.unknown)) / 1000
	c.postcode = m.places.relatePostcode(&c)
	if m.places.accepts(&c) {
		m.ranking.add(&c, m.ranking.evidenceOf(&c))
	}
}

// facetOf is the facet of a candidate's row. A street has the facet that fits the typed postcode and former
// commune, or its first. A row without a postcode has that of its commune.
func (m *matcher) facetOf(c *Candidate, of vintage.Street) vintage.Facet {
	f := m.ownFacet(c, of)
	if f.Postcode == 0 {
		f.Postcode = m.postcode.tablePostcode(c.Commune)
	}
	return f
}

// ownFacet is the same facet as the base has it.
func (m *matcher) ownFacet(c *Candidate, of vintage.Street) vintage.Facet {
	if c.Type == HouseNumber {
		return m.v.RowFacet(c.Row, of)
	}
	from, to := m.v.StreetFacets(c.Street)
	for i := from; i < min(to, from+64); i++ {
		f := m.v.Facet(i)
		if (m.postcode.code == 0 || f.Postcode == m.postcode.code) && (!isOld(m.v, c.name) || f.Old == c.name) {
			return f
		}
	}
	return m.v.Facet(from)
}

// matchCommune shortlists the commune itself. Words that it leaves unread count as a street that does not fit, and
// a house number counts as impossible, so that a commune never scores like a street that was found.
func (m *matcher) matchCommune(p place) {
	if !m.wantsType(Municipality) {
		return
	}
	c := Candidate{place: p, Type: Municipality, Commune: p.commune, Street: vintage.None, Row: vintage.None, postcodePrefix: m.q.Postcode.PrefixAt}
	c.alignment = alignment{isCertain: true}
	c.facet = vintage.Facet{Postcode: m.postcode.communePostcode(p.commune), Old: vintage.None}
	words := m.q.Words() &^ p.at &^ c.postcodePrefix &^ m.postcode.shortAt(0)
	c.HouseNumber = m.q.HouseNumber(0, p.at|c.postcodePrefix|m.postcode.shortAt(0))
	c.isMissing = c.IsTyped()
	if c.isMissing {
		c.rep = c.Choices[0].Rep
	}
	c.unread = words &^ c.terms()
	c.postcode = m.places.relatePostcode(&c)
	c.IsCity = m.isWholeCity(&c)
	rest := c.unread &^ m.q.Complement
	c.holdsAll = m.q.Completing && rest == 0
	c.beginsSo = c.holdsAll && !c.isMissing
	e := m.ranking.evidenceOf(&c)
	e.hasStreet = m.lexicon.weigh(rest) > int32(rest.Count())*linkWeight
	if e.hasNumber {
		e.number = numberImpossible
	}
	if c.holdsAll && c.sim < literalSim {
		e.placeSim += begunBonus
	}
	if m.places.accepts(&c) {
		m.ranking.add(&c, e)
	}
}

// begunBonus is added to the likeness of a commune whose name is being typed, to put it before streets that are named after it.
const begunBonus = 4

// isWholeCity reports whether a commune stands for the city whose arrondissement it is: Paris was typed, without a postcode of
// one of them.
func (m *matcher) isWholeCity(c *Candidate) bool {
	if c.name == vintage.None || c.postcode == samePostcode || m.scope.Cited != nil {
		return false
	}
	p := m.v.Place(c.name)
	return p.Kind == vintage.Parent && m.v.NameTerms(p.Name).Len() == 1
}

// matchNumbers shortlists the rows of streets that have the typed number, and then those whose number continues with its digits.
func (m *matcher) matchNumbers(p place, from, to uint32) {
	n := m.q.HouseNumber(0, p.at)
	if !n.IsTyped() || !m.wantsType(HouseNumber) {
		return
	}
	low, high, isExact := n.Choices[0].Number, n.Choices[0].Number+1, true
	visits := maxVisited
	for found := 0; found < enoughBegun && high <= 100_000 && m.budget.left > 0; low, high, isExact = low*10, high*10, false {
		for street := from; street < to && found < enoughBegun && visits > 0 && m.budget.left > 0; street++ {
			if m.v.HighestNumber(street) >= low {
				found += m.matchNumberedRows(p, n, street, low, high, isExact)
				visits--
			}
		}
		if m.q.Unfinished < 0 || !m.q.Terms[m.q.Unfinished].Digits {
			return
		}
	}
}

// matchNumberedRows shortlists the first rows of a street with a number of a range, and answers how many there are.
func (m *matcher) matchNumberedRows(p place, n parse.HouseNumber, street, low, high uint32, isExact bool) (found int) {
	of := m.v.Street(street)
	m.budget.left--
	for row := m.v.FirstNumber(of, low); row < of.To && m.v.Number(row) < high && found < 2; row++ {
		m.budget.left--
		rep, letter := string(m.v.Rep(row)), n.Choices[0].Letter
		if n.Choices[0].Rep != "" && !sameRep(n.Choices[0].Rep, rep) || letter != 0 && !m.saysRep(letter, rep) {
			continue
		}
		c := Candidate{place: p, Type: HouseNumber, Commune: of.Commune, Street: street, Row: row}
		c.place.commune = of.Commune
		c.HouseNumber, c.hasOtherRep, c.holdsAll = n, !isExact, true
		c.beginsSo = p.at == 0 || p.at.First() < n.At.First()
		c.alignment = alignment{isCertain: true}
		c.facet = m.v.RowFacet(row, of)
		if c.postcode = m.places.relatePostcode(&c); !m.places.accepts(&c) {
			continue
		}
		e := m.ranking.evidenceOf(&c)
		e.hasStreet = false
		m.ranking.add(&c, e)
		found++
	}
	return found
}

// isNumberAlone reports whether only the number of a street was typed, with what may be its repetition index.
func isNumberAlone(q *parse.Question, h heldWords) bool {
	if h.digits == 0 {
		return false
	}
	n := q.HouseNumber(0, h.at)
	return n.IsTyped() && h.need&^n.At&^(n.Choices[0].Letter&gluedWords(q)) == 0
}

// alignment says which of the typed words the name of a street holds, and which of its terms were not typed.
type alignment struct {
	used        parse.Mask // the words it holds
	contiguous  parse.Mask // of these, the words that stand together around the anchor
	lastWord    parse.Mask // the word that stands for the last term of the name
	typedWeight int32      // sum of the weights of those words times their likeness in hundredths
	nameWeight  int32      // the same for the terms of the name that they stand for
	totalWeight int32      // weight of all terms of the name
	isWhole     bool       // all terms but links were typed
	isCertain   bool       // it is whole, and none of its words is fuzzy
	fuzzy       parse.Mask // words that stand for a term they do not spell

	unfinishedTerm, termBefore int  // the terms, from 1, that the unfinished word and the one before it stand for; 0: none
	isUnfinishedLink           bool // that of the unfinished word is a link

	fuzzySim            int32 // the least likeness among the fuzzy words
	distinctiveMatched  int32 // sum of the likenesses of the distinctive terms that were typed
	distinctiveTotal    int32 // that sum if all were typed exactly; titles count less
	isWhollyTyped       bool  // all distinctive terms were typed, exactly or misspelt
	hasUntypedNumber    bool  // a number of the name was not typed
	hasUntypedQualifier bool  // a term such as "vieux" or "saint" was not typed
	isRespelt           bool  // a fuzzy word is a word of the base itself, two letters away
}

// aligner compares names with words.
type aligner struct{ *lexicon }

// align compares a name with words. It looks for the first distinctive term first, the anchor. It looks for the
// terms after the anchor after its word, and for those before it before its word, so that two streets in one
// line each take their own words.
func (l aligner) align(name vintage.Column, words parse.Mask) alignment {
	a := alignment{isWhole: true, isWhollyTyped: true}
	n := min(name.Len(), parse.MaxTerms)
	anchor, at := l.findAnchor(name, n, words)
	if anchor < 0 {
		at = 0
		anchor = 0
	}
	next := at
	for j := anchor; j < n; j++ {
		if i := l.alignTerm(&a, name, j, words, next, 1); i >= 0 {
			next = i + 1
		}
	}
	next = at
	for j := anchor - 1; j >= 0; j-- {
		if i := l.alignTerm(&a, name, j, words, next-1, -1); i >= 0 {
			next = i
		}
	}
	a.isCertain = a.isWhole && a.fuzzy == 0
	a.contiguous = l.contiguousAround(a.used, at)
	return a
}

// findAnchor finds the first distinctive term of a name that was typed, and the word that stands for it. A number
// is not an anchor, since it may be the house number. A name that consists of kinds and numbers is anchored at the last
// term that was typed.
func (l aligner) findAnchor(name vintage.Column, n int, words parse.Mask) (term, at int) {
	term = -1
	for j := range n {
		w := l.weightOfTerm(name.At(j))
		if w <= linkWeight {
			continue
		}
		if i, _ := l.findWord(name.At(j), words, 0, 1); i >= 0 {
			term, at = j, i
			if w > typeWeight && !l.q.Terms[i].Digits {
				return term, at
			}
		}
	}
	return term, at
}

// alignTerm finds the word that stands for term j of a name and adds it to the alignment. It returns the word, or
// -1. The search begins at the word from and goes in the direction of step.
func (l aligner) alignTerm(a *alignment, name vintage.Column, j int, words parse.Mask, from, step int) int {
	term := name.At(j)
	w := l.weightOfTerm(term)
	a.totalWeight += w
	i, sim := l.findWord(term, words&^a.used, from, step)
	if loose := words &^ a.used & l.fuzzied; i < 0 && loose != 0 && w >= typeWeight {
		i, sim = l.findLoosely(a, term, w, loose)
	}
	if w > typeWeight || w == typeWeight && l.hasTypeBefore(name, j) {
		isBeforeType := j+1 < name.Len() && text.ClassOf(viewString(l.v.Term(name.At(j+1)))) == text.StreetType
		a.countDistinctive(viewString(l.v.Term(term)), i >= 0, isBeforeType, sim)
	}
	if i < 0 {
		a.isWhole = a.isWhole && w == linkWeight
		return i
	}
	a.used |= parse.Bit(i)
	switch i {
	case l.q.Unfinished:
		a.unfinishedTerm, a.isUnfinishedLink = j+1, w == linkWeight
	case l.q.Unfinished - 1:
		a.termBefore = j + 1
	}
	if j == name.Len()-1 {
		a.lastWord = parse.Bit(i)
	}
	a.typedWeight += l.weight[i] * sim
	a.nameWeight += w * sim
	if sim < literalSim {
		if a.fuzzy == 0 || sim < a.fuzzySim {
			a.fuzzySim = sim
		}
		a.fuzzy |= parse.Bit(i)
	}
	return i
}

// findLoosely finds a word that shortens a term, or one with two letters wrong if the term is not a kind of street.
func (l aligner) findLoosely(a *alignment, term uint32, weight int32, words parse.Mask) (at int, sim int32) {
	at, sim = l.findCut(term, words)
	if at < 0 && weight > typeWeight {
		at, sim = l.findMisspelt(term, words)
		a.isRespelt = a.isRespelt || at >= 0 && l.hasExact(at)
	}
	return at, sim
}

// titleShare is the share of a distinctive word that a title counts, in percent. It is low because people leave
// titles out.
const titleShare = 30

// isSaint reports whether a term is "saint" or "sainte", which people leave out as they do titles.
func isSaint(term string) bool { return term == "saint" || term == "sainte" }

// numberTermShare is the share of a distinctive word that an untyped number of a name counts, in percent. People
// leave out the date or the ordinal of a name more often than its nouns.
const numberTermShare = 50

// hasTypeBefore reports whether a kind of street stands before term j of a name. A second kind is part of the name
// and distinctive: rue du Parc.
func (l aligner) hasTypeBefore(name vintage.Column, j int) bool {
	for k := range j {
		if l.weightOfTerm(name.At(k)) == typeWeight {
			return true
		}
	}
	return false
}

// countDistinctive counts a distinctive term of the name. A number that was typed counts nothing, since it may be
// the house number. A term before the kind of street counts as little as a title: petite rue.
func (a *alignment) countDistinctive(term string, isHeld, isBeforeType bool, sim int32) {
	share := int32(100)
	switch {
	case isNumber(term) && isHeld:
		return
	case isNumber(term):
		a.hasUntypedNumber, share = true, numberTermShare
	case text.IsTitle(term) || isSaint(term) || isBeforeType:
		share = titleShare
	}
	a.distinctiveTotal += share
	if isHeld {
		a.distinctiveMatched += sim * share / 100
		return
	}
	a.isWhollyTyped = false
	a.hasUntypedQualifier = a.hasUntypedQualifier || text.IsQualifier(term) && !isBeforeType
}

// findWord finds the word that is most like a term. Of equally like words it takes the first one from a word on,
// in the direction of step. It searches for a number in that direction only, since one on the other side may be the house number: 1
// Impasse de l'Espérou 2.
func (l aligner) findWord(term uint32, words parse.Mask, from, step int) (at int, sim int32) {
	at = -1
	n := len(l.q.Terms)
	for k := range n {
		i := (from + k*step + n) % n
		isBehind := (i-from)*step < 0
		if !words.Has(i) || l.sticksToNumber(i) || isBehind && l.q.Terms[i].Digits {
			continue
		}
		if s := l.sim(i, term); s > sim {
			at, sim = i, s
		}
	}
	if at < 0 {
		return l.findInitial(term, words, from)
	}
	return at, sim
}

// twoEditsSim is the least likeness of a word to a term that differs from it in two letters.
const twoEditsSim = 55

// findMisspelt finds a word with two letters wrong for a term. It compares words only within a street that other words
// led to, because over the whole vintage two letters find too much. A word that the base has is the last choice.
func (l aligner) findMisspelt(term uint32, words parse.Mask) (at int, sim int32) {
	full := viewString(l.v.Term(term))
	if at = -1; len(full) < 5 || isNumber(full) {
		return at, 0
	}
	for i := range l.q.Terms {
		t := &l.q.Terms[i]
		if !words.Has(i) || t.Digits || len(t.Text) < 4 || text.ClassOf(t.Text) != text.Content || text.Distance(t.Text, full, 2) > 2 {
			continue
		}
		switch {
		case !l.hasExact(i):
			return i, max(twoEditsSim, likeness(len(full), 2))
		case at < 0 && min(len(t.Text), len(full)) >= leastRespelt && t.Text[0] == full[0]:
			at, sim = i, max(twoEditsSim, likeness(len(full), 2))
		}
	}
	return at, sim
}

// leastRespelt is the least number of letters of a word of the base that is taken for a misspelling of another.
const leastRespelt = 7

// cutSim is the likeness of a shortened word to the term that it begins.
const cutSim = 80

// findCut finds a word that shortens a term: déf. for défenseurs, squa for square. It looks at words that no term spells or
// that a full stop ends, within a street that other words led to.
func (l aligner) findCut(term uint32, words parse.Mask) (at int, sim int32) {
	full := viewString(l.v.Term(term))
	for i := range l.q.Terms {
		w := l.q.Terms[i].Typed
		isCut := words.Has(i) && !l.q.Terms[i].Digits && len(w) >= 3 && len(w) < len(full) && full[:len(w)] == w
		if isCut && (l.q.Dotted.Has(i) || !l.hasExact(i)) {
			return i, cutSim
		}
	}
	return -1, 0
}

// sticksToNumber reports whether a word is a letter attached to a number. It is a repetition index and belongs to no
// name, unless it is unfinished.
func (l aligner) sticksToNumber(i int) bool {
	t := l.q.Terms[i]
	return i != l.q.Unfinished && t.Glued && len(t.Typed) == 1 && !t.Digits && i > 0 && l.q.Terms[i-1].Digits
}

// findInitial finds a single letter that stands for a term which begins with it: J. Jaurès. It looks at two words
// only, since a letter says little.
func (l aligner) findInitial(term uint32, words parse.Mask, next int) (at int, sim int32) {
	for i := max(next, 0); i < min(next+2, len(l.q.Terms)); i++ {
		t := l.q.Terms[i]
		if words.Has(i) && len(t.Typed) == 1 && !t.Digits && text.ClassOf(t.Text) != text.StopWord {
			if full := l.v.Term(term); len(full) > 2 && full[0] == t.Typed[0] {
				return i, 70
			}
		}
	}
	return -1, 0
}

// contiguousAround are the used words around one of them, as far as only links and letters part them.
func (l aligner) contiguousAround(used parse.Mask, at int) parse.Mask {
	if used == 0 {
		return 0
	}
	if !used.Has(at) {
		at = used.First()
	}
	run := parse.Bit(at)
	joins := func(i int) bool { return l.isLink(i) || len(l.q.Terms[i].Typed) == 1 && !l.q.Terms[i].Digits }
	for i := at - 1; i >= 0 && (used.Has(i) || joins(i)); i-- {
		run |= parse.Bit(i)
	}
	for i := at + 1; i < len(l.q.Terms) && (used.Has(i) || joins(i)); i++ {
		run |= parse.Bit(i)
	}
	return run & used
}
