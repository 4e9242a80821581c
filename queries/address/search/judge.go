package search

import (
	"slices"
	"strings"

	"lieudit/queries/address/parse"
	"lieudit/queries/address/text"
	"lieudit/queries/address/vintage"
)

// judge compares a street with the words that do not name its place. It shortlists the rows that have the typed
// number, or the street itself where no row does.
func (s *searcher) judge(p place, street uint32) {
	of := s.v.Street(street)
	name := s.v.NameTerms(of.Name)
	s.budget.left -= 8 + len(s.q.Terms)*name.Len()/6
	c := Candidate{place: p, Type: Street, Commune: p.commune, Street: street, Row: vintage.None}
	if of.Locality {
		c.Type = Locality
	}
	words := s.streetWords(p)
	c.alignment = s.lexicon.align(name, words)
	if c.used == 0 {
		return
	}
	c.postcodePrefix = s.q.Postcode.PrefixAt &^ c.used
	s.judgeNumbered(c, of)
	if c.postcodePrefix != 0 && s.q.Postcode.IsOpen {
		c.postcodePrefix = 0
		s.judgeNumbered(c, of)
	}
}

// judgeNumbered shortlists the rows of a street that have the typed number, or the street itself.
func (s *searcher) judgeNumbered(c Candidate, of vintage.Street) {
	taken := c.used | c.place.at | c.postcodePrefix
	c.HouseNumber = s.q.HouseNumber(c.contiguous, taken)
	if short := s.postcode.shortAt(c.used); short&c.At != 0 && !s.q.Completing && !s.isBeforeStreet(&c, of) {
		c.HouseNumber = s.q.HouseNumber(c.contiguous, taken|short)
	}
	if c.IsTyped() && !of.Locality && s.judgeRows(c, of) && s.wantsType(HouseNumber) {
		return
	}
	c.isMissing = c.IsTyped()
	if c.isMissing {
		c.rep = c.Choices[0].Rep
	}
	s.assess(c, of)
}

// streetWords are the words that may name a street where a place is named by others.
func (x *query) streetWords(p place) parse.Mask {
	return x.q.Words() &^ p.at &^ x.q.PlaceOnly &^ x.q.Complement &^ x.q.Reps &^ x.q.Corner
}

// isBeforeStreet reports whether the house number stands before a street that has it.
func (s *searcher) isBeforeStreet(c *Candidate, of vintage.Street) bool {
	if c.contiguous == 0 || c.At.Last() > c.contiguous.First() {
		return false
	}
	for _, choice := range c.Choices[:c.Count] {
		if row := s.v.FirstNumber(of, choice.Number); row < of.To && s.v.Number(row) == choice.Number {
			return true
		}
	}
	return false
}

// shortAt is the term of a postcode of four digits, unless it stands for a word of the street or for its number.
func (p *typedPostcode) shortAt(used parse.Mask) parse.Mask {
	if len(p.near) == 0 {
		return 0
	}
	return p.q.Postcode.ShortAt &^ used
}

// judgeRows shortlists the rows of a street that have the first typed number it knows, and says whether there are
// any. Where no row has the typed repetition index, it takes the row without one.
func (s *searcher) judgeRows(c Candidate, of vintage.Street) (any bool) {
	for k := range c.Count {
		choice := c.Choices[k]
		from, to := s.rowsWithNumber(of, choice.Number)
		isLong, isLiteral := s.findReps(&c, choice, from, to)
		for row := from; row < to; row++ {
			r, rep := c, string(s.v.Rep(row))
			r.chosen, r.rep = k, choice.Rep
			if isLong {
				if any = s.takeLongRep(&r, choice, rep) || any; r.repAt != 0 {
					s.assessRow(r, of, row)
				}
				continue
			}
			if isLiteral && text.Fold(rep) != choice.Rep {
				continue
			}
			if letter := choice.Letter &^ c.used &^ c.at; letter != 0 && s.saysRep(letter, rep) {
				r.rep, r.repAt = s.q.Typed(letter), letter
				if letter == unfinishedWord(s.q) {
					r.rep = text.Fold(rep)
				}
			}
			if sameRep(r.rep, rep) {
				r.hasOtherRep = r.rep != text.Fold(rep)
				s.assessRow(r, of, row)
				any = true
			}
		}
		for row := from; row < to && !any && choice.Rep != ""; row++ {
			if len(s.v.Rep(row)) == 0 {
				r := c
				r.chosen, r.rep, r.lacksRep = k, choice.Rep, true
				s.assessRow(r, of, row)
				any = true
			}
		}
		if !any && choice.Rep == "" && s.q.Completing && !c.IsList {
			any = s.judgeBegunReps(c, of, k, from, to)
		}
		if any {
			return true
		}
	}
	return false
}

// judgeBegunReps shortlists rows [from, to) that bear choice k with a repetition index which may still be typed, and reports whether
// there are any.
func (s *searcher) judgeBegunReps(c Candidate, of vintage.Street, k int, from, to uint32) bool {
	c.chosen, c.hasOtherRep = k, true
	for row := from; row < to; row++ {
		s.assessRow(c, of, row)
	}
	return from < to
}

// findReps reports whether a row has the repetition index that was typed: isLong where it is one of several words, else isLiteral where
// it is spelled in the same way. Where 30 bis and 30 b are two numbers each answers for itself.
func (s *searcher) findReps(c *Candidate, choice parse.Choice, from, to uint32) (isLong, isLiteral bool) {
	for row := from; row < to; row++ {
		rep := string(s.v.Rep(row))
		isLong = isLong || s.longRep(c, choice, rep) != 0
		isLiteral = isLiteral || choice.Rep != "" && text.Fold(rep) == choice.Rep
	}
	return isLong, isLiteral
}

// takeLongRep takes the words behind the number for a repetition index that they spell, and reports whether they do. A number among
// them is no other number of the list.
func (s *searcher) takeLongRep(c *Candidate, choice parse.Choice, rep string) bool {
	at := s.longRep(c, choice, rep)
	if at == 0 {
		return false
	}
	c.rep, c.repAt = text.Fold(rep), at
	c.IsList = c.IsList && c.At&^at&^parse.Bit(choice.At) != 0
	return true
}

// longRep are the words behind a number that spell a repetition index which is more than a letter or a Latin word: villa 9, n°43, a4.
func (s *searcher) longRep(c *Candidate, choice parse.Choice, rep string) (at parse.Mask) {
	if choice.At < 0 || len(rep) < 2 && !isNumber(rep) || parse.IsLatinRep(rep) {
		return 0
	}
	want, typed := spellRep(rep), s.q.Terms[choice.At].Tail
	for i := choice.At + 1; i < len(s.q.Terms) && len(typed) < len(want); i++ {
		if (c.used | c.at).Has(i) {
			return 0
		}
		isSign := s.q.Terms[i].Typed == "n" && i+1 < len(s.q.Terms) && s.q.Terms[i+1].Digits
		if at |= parse.Bit(i); !s.q.Terms[i].Part && !isSign {
			typed += s.q.Terms[i].Typed + s.q.Terms[i].Tail
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
func (s *searcher) saysRep(letters parse.Mask, rep string) bool {
	typed := s.q.Typed(letters)
	if letters == unfinishedWord(s.q) && rep != "" {
		return strings.HasPrefix(expandRep(rep), typed) || strings.HasPrefix(text.Fold(rep), typed)
	}
	return rep != "" && sameRep(typed, rep)
}

// assessRow assesses one row of a street as a house number.
func (s *searcher) assessRow(c Candidate, of vintage.Street, row uint32) {
	c.Type, c.Row = HouseNumber, row
	s.assess(c, of)
}

// rowsWithNumber are the rows of a street that bear a number.
func (x *query) rowsWithNumber(of vintage.Street, number uint32) (from, to uint32) {
	from = x.v.FirstNumber(of, number)
	for to = from; to < of.To && x.v.Number(to) == number; to++ {
		x.budget.left--
	}
	return from, to
}

// sameRep says whether a typed repetition index stands for one of the base: b is bis, t is ter.
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
func (s *searcher) assess(c Candidate, of vintage.Street) {
	c.facet = s.facetOf(&c, of)
	words := s.q.Words() &^ c.at &^ c.postcodePrefix &^ c.terms() &^ s.postcode.shortAt(c.used|c.At)
	matched := c.typedWeight + s.readOthers(&c, words)
	c.unknown = s.wordsAside(&c, words)
	c.unread = c.unreadIn(words)
	c.holdsAll = s.q.Completing && s.holdsAllWords(&c)
	c.beginsSo = c.holdsAll && !c.isMissing && !c.hasOtherRep && s.beginsAsTyped(c.Street, c.place.at)
	if !c.holdsAll && !s.fitsWords(&c, words) || c.isRespelt && !s.holdsRest(&c) {
		return
	}
	c.streetFit = fitStreet(matched, s.weighTyped(&c, words), &c.alignment, s.q.Completing) * unknownWorth(countWords(s.q, c.unknown)) / 1000
	c.postcode = s.relatePostcode(&c)
	if s.admits(&c) {
		s.addCandidate(&c, s.evidenceOf(&c))
	}
}

// holdsRest reports whether everything but a word of the street says that a candidate is meant: the street has the number,
// its place is certain, and other words of its name were typed letter for letter.
func (s *searcher) holdsRest(c *Candidate) bool {
	return c.Type == HouseNumber && !s.q.IsRewritten && !c.IsAmbiguous && !c.lacksRep && s.isPlaced(c) && s.q.Distinctive(c.used&^c.fuzzy) != 0
}

// readOthers reads words that the street does not hold as other names of where it lies: its lieu-dit, its former
// commune, its delivery office. It answers their weight, a little less than in the name of the street.
func (s *searcher) readOthers(c *Candidate, words parse.Mask) (matched int32) {
	left := words &^ c.used &^ s.q.Complement
	for i, name := range [...]uint32{c.facet.LieuDit, oldName(s.v, c.facet), c.facet.Delivery} {
		if left == 0 || name == vintage.None || i == 2 && c.name == vintage.None && s.q.Distinctive(c.used) == 0 {
			continue // a delivery office that was typed alone is a place by itself
		}
		extra := s.lexicon.align(s.v.NameTerms(name), left)
		if s.lexicon.weigh(extra.used) <= int32(extra.used.Count())*linkWeight || extra.distinctiveMatched*100 < leastOtherName*extra.distinctiveTotal ||
			i > 0 && extra.fuzzy != 0 {
			continue
		}
		if i == 2 && c.name == vintage.None && (!extra.isWhole || isPlaceName(s.v, c.Commune, name)) {
			continue // the name of the commune itself makes a place of its own
		}
		c.otherNames |= extra.used
		left &^= extra.used
		matched += extra.typedWeight * 95 / 100
		c.fuzzy |= extra.fuzzy
	}
	return matched
}

// isOtherOffice reports whether the place that was typed is a delivery office, and the address belongs to another one.
func isOtherOffice(v *vintage.Vintage, c *Candidate) bool {
	if c.name == vintage.None || c.facet.Delivery == vintage.None {
		return false
	}
	p := v.Place(c.name)
	return p.Kind == vintage.Delivery && p.Name != c.facet.Delivery && !slices.Equal(v.BareTerms(p.Name), v.BareTerms(c.facet.Delivery))
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

// facetOf is the facet of a candidate's row. A street has the facet that fits the typed postcode and former
// commune, or its first. A row without a postcode has that of its commune.
func (s *searcher) facetOf(c *Candidate, of vintage.Street) vintage.Facet {
	f := s.ownFacet(c, of)
	if f.Postcode == 0 {
		f.Postcode = s.postcode.tablePostcode(c.Commune)
	}
	return f
}

// ownFacet is that facet as the base has it.
func (s *searcher) ownFacet(c *Candidate, of vintage.Street) vintage.Facet {
	if c.Type == HouseNumber {
		return s.v.RowFacet(c.Row, of)
	}
	from, to := s.v.StreetFacets(c.Street)
	for i := from; i < min(to, from+64); i++ {
		f := s.v.Facet(i)
		if (s.postcode.code == 0 || f.Postcode == s.postcode.code) && (!isOld(s.v, c.name) || f.Old == c.name) {
			return f
		}
	}
	return s.v.Facet(from)
}

// isOld says whether a name is that of a former commune.
func isOld(v *vintage.Vintage, name uint32) bool {
	return name != vintage.None && v.Place(name).Kind == vintage.Old
}

// oldName is the name of the former commune of a facet, or vintage.None.
func oldName(v *vintage.Vintage, f vintage.Facet) uint32 {
	if f.Old == vintage.None {
		return vintage.None
	}
	return v.Place(f.Old).Name
}

// judgeCommune shortlists the commune itself. Words that it leaves unread count as a street that does not fit, and
// a house number counts as impossible, so that a commune never scores like a street that was found.
func (s *searcher) judgeCommune(p place) {
	if !s.wantsType(Municipality) {
		return
	}
	c := Candidate{place: p, Type: Municipality, Commune: p.commune, Street: vintage.None, Row: vintage.None, postcodePrefix: s.q.Postcode.PrefixAt}
	c.alignment = alignment{isCertain: true}
	c.facet = vintage.Facet{Postcode: s.postcode.communePostcode(p.commune), Old: vintage.None}
	words := s.q.Words() &^ p.at &^ c.postcodePrefix &^ s.postcode.shortAt(0)
	c.HouseNumber = s.q.HouseNumber(0, p.at|c.postcodePrefix|s.postcode.shortAt(0))
	c.isMissing = c.IsTyped()
	if c.isMissing {
		c.rep = c.Choices[0].Rep
	}
	c.unread = words &^ c.terms()
	c.postcode = s.relatePostcode(&c)
	c.IsCity = s.isWholeCity(&c)
	rest := c.unread &^ s.q.Complement
	c.holdsAll = s.q.Completing && rest == 0
	c.beginsSo = c.holdsAll && !c.isMissing
	e := s.evidenceOf(&c)
	e.hasStreet = s.lexicon.weigh(rest) > int32(rest.Count())*linkWeight
	if e.hasNumber {
		e.number = numberImpossible
	}
	if c.holdsAll && c.sim < literalSim {
		e.placeSim += begunBonus
	}
	if s.admits(&c) {
		s.addCandidate(&c, e)
	}
}

// begunBonus is what the likeness of a commune whose name is being typed gains over streets that are named after it.
const begunBonus = 4

// isWholeCity says whether a commune stands for the city whose arrondissement it is: Paris was typed, without a postcode of
// one of them.
func (s *searcher) isWholeCity(c *Candidate) bool {
	if c.name == vintage.None || c.postcode == samePostcode || s.scope.Cited != nil {
		return false
	}
	p := s.v.Place(c.name)
	return p.Kind == vintage.Parent && s.v.NameTerms(p.Name).Len() == 1
}

// unknownPlaceSim is the likeness of words behind a postcode that name no known place. It is not 0, since the base
// may lack a name that people use.
const unknownPlaceSim = 50

// evidenceOf collects what the score of a candidate depends on.
func (s *searcher) evidenceOf(c *Candidate) evidence {
	e := evidence{hasStreet: c.Street != vintage.None, streetFit: c.streetFit, postcode: c.postcode, isElsewhere: c.IsDoubted,
		hasCode: s.scope.Cited != nil, isCoded: s.scope.Cited.Has(c.Commune), hasNumber: c.IsTyped()}
	e.most = s.mostMiscoded(c)
	if c.name != vintage.None {
		e.hasPlace, e.placeSim, e.isLate = true, c.sim, c.isLate
		e.isOldOther = c.Type != Municipality && (isOld(s.v, c.name) && c.facet.Old != c.name || isOtherOffice(s.v, c))
	}
	if c.name == vintage.None && c.Street != vintage.None && s.q.Distinctive(c.unread&s.q.PlaceOnly&^s.q.Phrases) != 0 {
		e.hasPlace, e.placeSim, e.isLate = true, unknownPlaceSim, true
	}
	switch {
	case c.isMissing:
		e.number = numberMissing
	case c.IsAmbiguous:
		e.number = numberOpen
	case c.lacksRep:
		e.number = numberNoRep
	case c.IsList:
		e.number = numberInList
	case c.hasOtherRep:
		e.number = numberOtherRep
	}
	return e
}

// mostMiscoded is the highest score that a street or an address may have beside the typed postcode if that is a wrong one, or 0.
func (s *searcher) mostMiscoded(c *Candidate) int32 {
	isWrong := c.postcode == cityPostcode || c.postcode == nearPostcode || c.postcode == regionPostcode || c.postcode == otherPostcode
	switch {
	case !isWrong || c.Street == vintage.None || s.q.Postcode.Code == 0 || s.postcode.isCedex():
		return 0
	case c.postcode == cityPostcode && !s.isNamedPlace(c):
		return maxUnnamedMiscoded
	case s.isNamedPlace(c) || c.otherNames != 0:
		return maxMiscodedScore
	}
	return 0
}

// addCandidate scores a candidate and shortlists it if the scope lets it through. The list also keeps candidates
// with half of the accepted score; the caller decides which ones to show.
func (s *searcher) addCandidate(c *Candidate, e evidence) {
	c.Score = e.score()
	if c.Score < Accepted/2 || !s.passesScope(c) {
		return
	}
	c.IsSound = s.isConfirmed(c)
	if s.scope.Near != nil {
		c.Bonus = bonus(vintage.Metres(*s.scope.Near, s.pointOf(c)))
	}
	s.list.add(c)
}

// passesScope says whether the scope lets a candidate through.
func (s *searcher) passesScope(c *Candidate) bool {
	if !s.wantsType(c.Type) || !s.scope.Communes.Has(c.Commune) {
		return false
	}
	return len(s.scope.Postcodes) == 0 || slices.Contains(s.scope.Postcodes, PostcodeText(c.facet.Postcode))
}

const (
	maxBonus        = 400   // what lying at the very point is worth, of 10,000
	halfBonusMetres = 2_000 // the distance at which it is worth half of that
)

// bonus is what nearness is worth. It is small, so that it decides only between candidates whose words fit about
// as well.
func bonus(metres float64) int32 {
	return int32(maxBonus * halfBonusMetres / (halfBonusMetres + metres))
}

// pointOf is where a candidate lies.
func (s *searcher) pointOf(c *Candidate) vintage.Point {
	switch c.Type {
	case HouseNumber:
		return s.v.RowPoint(c.Row)
	case Municipality:
		return s.v.Commune(c.Commune).Point
	}
	return s.v.Street(c.Street).Point
}
