package search

import (
	"slices"

	"lieudit/queries/address/parse"
	"lieudit/queries/address/text"
	"lieudit/queries/address/vintage"
)

// judge compares a street with the words that its place left over, and shortlists the rows that bear the typed number, or
// the street itself.
func (s *run) judge(p place, street uint32) {
	of := s.v.Street(street)
	name := s.v.NameTerms(of.Name)
	s.budget.steps -= 8 + len(s.q.Terms)*name.Len()/6
	c := Candidate{place: p, Type: Street, Commune: p.commune, Street: street, Row: vintage.None}
	if of.Locality {
		c.Type = Locality
	}
	words := s.streetWords(p)
	c.alignment = s.words.align(name, words)
	if c.used == 0 {
		return
	}
	c.stem = s.q.Postcode.StemAt &^ c.used
	c.HouseNumber = s.q.HouseNumber(c.run, c.used|p.at|c.stem|s.shortcode(c.used))
	if c.IsTyped() && !of.Locality && s.judgeRows(c, of) && s.wants(HouseNumber) {
		return
	}
	c.isMissing = c.IsTyped()
	if c.isMissing {
		c.rep = c.Choices[0].Rep
	}
	s.settle(c, of)
}

// streetWords are the words that may name a street where a place is named by others.
func (s *run) streetWords(p place) parse.Mask {
	return s.q.Words() &^ p.at &^ s.q.PlaceOnly &^ s.q.Complement &^ s.q.Reps
}

// shortcode is the term of a postcode of four digits, unless it is a word of the street.
func (s *run) shortcode(used parse.Mask) parse.Mask {
	if len(s.near) == 0 {
		return 0
	}
	return s.q.Postcode.ShortAt &^ used
}

// judgeRows shortlists the rows of a street that bear the first of the typed numbers that it has, and says whether any does.
// A repetition index that no row of the number bears is left aside.
func (s *run) judgeRows(c Candidate, of vintage.Street) (any bool) {
	for k := range c.Count {
		choice := c.Choices[k]
		from, to := s.rows(of, choice.Number)
		for row := from; row < to; row++ {
			r, rep := c, string(s.v.Rep(row))
			r.chosen, r.rep = k, choice.Rep
			if letter := choice.Letter &^ c.used &^ c.at; letter != 0 && rep != "" && rep == s.q.Typed(letter) {
				r.rep, r.repAt = rep, letter
			}
			if sameRep(r.rep, rep) {
				r.otherRep = r.rep != text.Fold(rep)
				s.settleRow(r, of, row)
				any = true
			}
		}
		for row := from; row < to && !any && choice.Rep != ""; row++ {
			if len(s.v.Rep(row)) == 0 {
				r := c
				r.chosen, r.rep, r.noRep = k, choice.Rep, true
				s.settleRow(r, of, row)
				any = true
			}
		}
		if any {
			return true
		}
	}
	return false
}

func (s *run) settleRow(c Candidate, of vintage.Street, row uint32) {
	c.Type, c.Row = HouseNumber, row
	s.settle(c, of)
}

// rows are the rows of a street that bear a number.
func (s *run) rows(of vintage.Street, number uint32) (from, to uint32) {
	from = s.v.FirstNumber(of, number)
	for to = from; to < of.To && s.v.Number(to) == number; to++ {
		s.budget.steps--
	}
	return from, to
}

// sameRep says whether a typed repetition index stands for one of the base: b is bis, t is ter.
func sameRep(typed, kept string) bool { return wholeRep(typed) == wholeRep(kept) }

func wholeRep(rep string) string {
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

// settle reads what the street left over, and shortlists the candidate if it is one.
func (s *run) settle(c Candidate, of vintage.Street) {
	c.facet = s.facetOf(&c, of)
	words := s.q.Words() &^ c.at &^ c.stem &^ c.terms() &^ s.shortcode(c.used)
	held := c.held + s.readOthers(&c, words)
	if !s.tells(&c, words) {
		return
	}
	c.unread = c.unreadIn(words)
	c.streetFits = streetFits(held, s.weighTyped(&c, words), &c.alignment, s.q.Completing)
	c.postcode = s.relatePostcode(&c)
	if s.admits(&c) {
		s.enlist(&c, s.evidenceOf(&c))
	}
}

// readOthers reads words that the street left over as the other names of where it lies: its lieu-dit, its former commune,
// its delivery office. It answers what they weigh.
func (s *run) readOthers(c *Candidate, words parse.Mask) (held int32) {
	left := words &^ c.used &^ s.q.Complement
	for i, name := range [...]uint32{c.facet.LieuDit, s.oldName(c.facet), c.facet.Delivery} {
		if left == 0 || name == vintage.None || i == 2 && c.name == vintage.None {
			continue // a delivery office that was typed alone is a place by itself
		}
		extra := s.words.align(s.v.NameTerms(name), left)
		if s.words.weigh(extra.used) <= int32(extra.used.Count())*linkWeight || extra.tellingHeld*100 < leastOther*extra.tellingWhole ||
			i > 0 && extra.loose != 0 {
			continue
		}
		c.other |= extra.used
		left &^= extra.used
		held += extra.held * 95 / 100
		c.loose |= extra.loose
	}
	return held
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

// facetOf is what a candidate's row is part of; a street stands for the facet that was asked for, or its first.
func (s *run) facetOf(c *Candidate, of vintage.Street) vintage.Facet {
	if c.Type == HouseNumber {
		return s.v.RowFacet(c.Row, of)
	}
	from, to := s.v.StreetFacets(c.Street)
	for i := from; i < min(to, from+64); i++ {
		f := s.v.Facet(i)
		if (s.postcode == 0 || f.Postcode == s.postcode) && (!s.isOld(c.name) || f.Old == c.name) {
			return f
		}
	}
	return s.v.Facet(from)
}

func (s *run) isOld(name uint32) bool {
	return name != vintage.None && s.v.Place(name).Kind == vintage.Old
}

func (s *run) oldName(f vintage.Facet) uint32 {
	if f.Old == vintage.None {
		return vintage.None
	}
	return s.v.Place(f.Old).Name
}

// relatePostcode says what the typed postcode is to a candidate.
func (s *run) relatePostcode(c *Candidate) postcodeRelation {
	p, of := &s.q.Postcode, c.facet.Postcode
	switch {
	case c.stem != 0 && of >= p.From && of < p.To:
		return begunPostcode
	case len(s.near) > 0 && (p.Code != 0 || s.shortcode(c.used) != 0):
		if slices.Contains(s.near, of) {
			return nearPostcode
		}
		if p.Code == 0 {
			return otherPostcode
		}
	case c.stem != 0:
		return otherPostcode
	}
	switch {
	case p.Code == 0:
		return noPostcode
	case of == p.Code || s.isCode(c.Commune) || s.isCited(c.Commune):
		return samePostcode
	case s.hasPostcode(c.Commune), s.isCedex() && of/1000 == p.Code/1000:
		return cityPostcode
	case of/1000 == p.Code/1000:
		return regionPostcode
	}
	return otherPostcode
}

// isCited says whether the typed digits are a code that the caller read as one of a commune.
func (s *run) isCited(c uint32) bool {
	return s.scope.Cited != nil && s.postcode == 0 && s.scope.Cited.Has(c)
}

// judgeCommune shortlists the commune itself.
func (s *run) judgeCommune(p place) {
	if !s.wants(Municipality) {
		return
	}
	c := Candidate{place: p, Type: Municipality, Commune: p.commune, Street: vintage.None, Row: vintage.None, stem: s.q.Postcode.StemAt}
	c.alignment = alignment{certain: true}
	c.facet = vintage.Facet{Postcode: s.communePostcode(p.commune), Old: vintage.None}
	words := s.q.Words() &^ p.at &^ c.stem &^ s.shortcode(0)
	c.HouseNumber = s.q.HouseNumber(0, p.at|c.stem|s.shortcode(0))
	c.isMissing = c.IsTyped()
	if c.isMissing {
		c.rep = c.Choices[0].Rep
	}
	c.unread = words &^ c.terms()
	c.postcode = s.relatePostcode(&c)
	c.IsCity = s.isWholeCity(&c)
	rest := c.unread &^ s.q.Complement
	e := s.evidenceOf(&c)
	e.hasStreet = s.words.weigh(rest) > int32(rest.Count())*linkWeight
	if e.hasNumber {
		e.number = numberImpossible
	}
	if s.admits(&c) {
		s.enlist(&c, e)
	}
}

// isWholeCity says whether a commune stands for the city whose arrondissement it is: Paris was typed, without a postcode of
// one of them.
func (s *run) isWholeCity(c *Candidate) bool {
	if c.name == vintage.None || c.postcode == samePostcode || s.scope.Cited != nil {
		return false
	}
	p := s.v.Place(c.name)
	return p.Kind == vintage.Parent && s.v.NameTerms(p.Name).Len() == 1
}

// communePostcode is the typed postcode when the commune has it, or one that begins as it, else its first.
func (s *run) communePostcode(commune uint32) uint32 {
	if s.hasPostcode(commune) {
		return s.postcode
	}
	codes := s.v.CommunePostcodes(commune)
	if begun := codes.Within(s.q.Postcode.From, s.q.Postcode.To); begun.Len() > 0 {
		return begun.At(0)
	}
	for i := range codes.Len() {
		if slices.Contains(s.near, codes.At(i)) {
			return codes.At(i)
		}
	}
	return codes.At(0)
}

// strangeSim is what words behind a postcode are worth that name no place: they may be a name that the base does not have.
const strangeSim = 50

// evidenceOf is what the score of a candidate depends on.
func (s *run) evidenceOf(c *Candidate) evidence {
	e := evidence{hasStreet: c.Street != vintage.None, streetFits: c.streetFits, postcode: c.postcode, isElsewhere: c.IsDoubted,
		hasCode: s.scope.Cited != nil, isCoded: s.scope.Cited.Has(c.Commune), hasNumber: c.IsTyped()}
	if c.name != vintage.None {
		e.hasPlace, e.placeSim, e.isLate = true, c.sim, c.isLate
		e.isOldOther = s.isOld(c.name) && c.Type != Municipality && c.facet.Old != c.name
	}
	if c.name == vintage.None && c.Street != vintage.None && s.q.Telling(c.unread&s.q.PlaceOnly&^s.q.Phrases) != 0 {
		e.hasPlace, e.placeSim, e.isLate = true, strangeSim, true
	}
	switch {
	case c.isMissing:
		e.number = numberMissing
	case c.IsOpen:
		e.number = numberOpen
	case c.noRep:
		e.number = numberNoRep
	case c.IsList:
		e.number = numberInList
	case c.otherRep:
		e.number = numberOtherRep
	}
	return e
}

// enlist settles a candidate's score and shortlists it if the scope lets it through.
func (s *run) enlist(c *Candidate, e evidence) {
	c.Score = e.score()
	if c.Score < Accepted/2 || !s.passes(c) {
		return
	}
	c.IsSound = s.isConfirmed(c)
	if s.scope.Near != nil {
		c.Bonus = bonus(vintage.Metres(*s.scope.Near, s.pointOf(c)))
	}
	s.list.add(c)
}

// passes says whether the scope lets a candidate through.
func (s *run) passes(c *Candidate) bool {
	if !s.wants(c.Type) || !s.scope.Communes.Has(c.Commune) {
		return false
	}
	return len(s.scope.Postcodes) == 0 || slices.Contains(s.scope.Postcodes, PostcodeText(c.facet.Postcode))
}

const (
	mostBonus = 400   // what lying right here is worth, of 10,000
	halfBonus = 2_000 // metres at which it is worth half of that
)

// bonus is what lying so near is worth: less than one wrong letter in a street's name.
func bonus(metres float64) int32 { return int32(mostBonus * halfBonus / (halfBonus + metres)) }

// pointOf is where a candidate lies.
func (s *run) pointOf(c *Candidate) vintage.Point {
	switch c.Type {
	case HouseNumber:
		return s.v.RowPoint(c.Row)
	case Municipality:
		return s.v.Commune(c.Commune).Point
	}
	return s.v.Street(c.Street).Point
}
