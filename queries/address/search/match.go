package search

import (
	"strings"

	"lieudit/queries/address/parse"
	"lieudit/queries/address/text"
	"lieudit/queries/address/vintage"
)

// matcher compares streets and communes with the words of a question: it makes candidates of them.
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
// number, or the street itself where no row does.
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
// any. Where no row has the typed repetition index, it takes the row without one.
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

// findReps reports whether a row has the repetition index that was typed: isLong where it is one of several words, otherwise isLiteral where
// it is spelled in the same way. Where 30 bis and 30 b are two numbers each answers for itself.
func (m *matcher) findReps(c *Candidate, choice parse.Choice, from, to uint32) (isLong, isLiteral bool) {
	for row := from; row < to; row++ {
		rep := string(m.v.Rep(row))
		isLong = isLong || m.longRep(c, choice, rep) != 0
		isLiteral = isLiteral || choice.Rep != "" && text.Fold(rep) == choice.Rep
	}
	return isLong, isLiteral
}

// readLongRep takes the words behind the number for a repetition index that they spell, and reports whether they do. A number among
// them is no other number of the list.
func (m *matcher) readLongRep(c *Candidate, choice parse.Choice, rep string) bool {
	at := m.longRep(c, choice, rep)
	if at == 0 {
		return false
	}
	c.rep, c.repAt = text.Fold(rep), at
	c.IsList = c.IsList && c.At&^at&^parse.Bit(choice.At) != 0
	return true
}

// longRep are the words behind a number that spell a repetition index which is more than a letter or a Latin word: villa 9, n°43, a4.
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

// saysRep reports whether letters behind a number are the repetition index of a row. The unfinished ones may be its beginning.
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

// expandRep writes the letters for bis, ter and quater out, since bases and people use both.
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
// it lies where they say.
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

// ownFacet is that facet as the base has it.
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

// begunBonus is what the likeness of a commune whose name is being typed gains over streets that are named after it.
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

// isNumberAlone reports whether nothing was typed of a street but its number, with what may be its repetition index.
func isNumberAlone(q *parse.Question, h heldWords) bool {
	if h.digits == 0 {
		return false
	}
	n := q.HouseNumber(0, h.at)
	return n.IsTyped() && h.need&^n.At&^(n.Choices[0].Letter&gluedWords(q)) == 0
}
