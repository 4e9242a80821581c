package search

import (
	"slices"

	"lieudit/queries/address/parse"
	"lieudit/queries/address/text"
	"lieudit/queries/address/vintage"
)

// An unfinished line is first read strictly: only what holds every typed word is looked for, the last word as the beginning of
// one. Each such word may stand in the name of the street or in that of its commune, so the places that words name are tried one
// by one, and then no place at all. The looser readings of searcher.search follow only if nothing holds all words.

const (
	maxVisited  = 5_000   // streets whose names are read for one place
	maxVisits   = 8_000   // for all places together
	maxPassedBy = 400_000 // streets that are searched for a number that stands alone; most have no number as high
	skipsAVisit = 8       // streets without the number that are passed by in the time of a visit
	enoughBegun = 24      // of those that begin as typed and have the number, after which no more are read
	fewBegun    = 5       // of those that leave open whether the last word begins the name of a commune
	fewHeld     = 24      // of those that hold the words in another order and have the number
	fewLacking  = 16      // of those that lack the typed number
	maxBegun    = 4_000   // communes whose name continues as typed, so that they can be tried before the rest
)

// completer finds what holds every typed word of an unfinished line.
type completer struct {
	*query
	communes recognizer
	holders  wholeFinder
	match    *matcher
	ranking  *ranker
}

// completeLine completes an unfinished line.
func (s *searcher) completeLine() bool {
	s.recognize()
	c := completer{s.query, s.communes, wholeFinder{s.query, maxVisits * skipsAVisit}, &s.match, &s.ranking}
	return c.complete(s.found.places)
}

// complete shortlists what holds every typed word in one of some places or anywhere. It reports whether the best needs no rival
// that holds fewer.
func (c *completer) complete(places []place) bool {
	for _, p := range places {
		if p.name != vintage.None || p.hasTypedCode {
			c.completeIn(p)
		}
	}
	for _, area := range c.completedAreas() {
		if c.completeArea(area); c.ranking.hasEnoughBegun() {
			break
		}
		c.completeBegunPlaces(area)
	}
	c.ranking.levelScores()
	best := c.ranking.list.first()
	return best != nil && best.Score >= placedScore && best.isComplete()
}

// completedAreas are the areas to search for addresses whose place no word names, the likeliest first.
func (c *completer) completedAreas() (areas []Area) {
	within := c.scope.Communes
	if c.postcode.code != 0 {
		return nil // its communes are among the places
	}
	if c.scope.Around != nil {
		areas = append(areas, c.scope.Around.within(within))
	}
	if c.postcode.begunCommunes != nil {
		areas = append(areas, c.postcode.begunCommunes.within(within))
		if !c.q.Postcode.IsOpen {
			return areas
		}
	}
	return append(areas, within)
}

// wholeFinder finds the streets that hold every typed word.
type wholeFinder struct {
	*query
	visits int // of streets that may still hold them, in the time of a street that is passed by
}

// heldWords are the words that the name of a street must hold if some other words name its place.
type heldWords struct {
	at     parse.Mask // the words that name the place
	need   parse.Mask // all others but links and numbers
	digits parse.Mask // numbers, of which one may be the house number
	number uint32     // the house number, if that is the only one
	whole  bool       // the name must have no further words, since those that were typed are not distinctive
}

// heldWords returns the words to hold next to some that name a place.
func (f *wholeFinder) heldWords(at parse.Mask) heldWords {
	words := f.streetWords(place{at: at})
	h := heldWords{at: at, digits: words & f.q.Digits() &^ f.q.Postcode.PrefixAt}
	if f.q.Postcode.IsOpen {
		h.digits |= words & f.q.Postcode.PrefixAt
	}
	ofName := h.digits & f.q.NameNumbers()
	h.digits &^= ofName
	h.need = words&^f.q.Digits() | ofName
	for i := range f.q.Terms {
		if f.q.IsStopWord(i) && i != f.q.Unfinished {
			h.need &^= parse.Bit(i)
		}
	}
	if n := f.q.HouseNumber(0, at); n.Count == 1 && f.q.AreOneNumber(h.digits) && !f.q.Postcode.IsOpen {
		h.number = n.Choices[0].Number
	}
	return h
}

// completeIn matches a place that words name, and what holds the other words in it.
func (c *completer) completeIn(p place) {
	h := c.holders.heldWords(p.at)
	from, to := c.v.CommuneStreets(p.commune)
	switch {
	case isBegun(c.q, p): // completeBegunPlaces finds what holds the other words
	case isNumberAlone(c.q, h):
		c.match.matchNumbers(p, from, to)
	case h.need != 0:
		for _, street := range c.holders.findHolders(h, Area{p.commune}) {
			c.match.matchStreet(p, street)
		}
	}
	c.match.matchCommune(p)
}

// completeArea matches what holds all words in the names of the streets of an area.
func (c *completer) completeArea(area Area) {
	h := c.holders.heldWords(0)
	if isNumberAlone(c.q, h) {
		for from, to := range area.ranges(c.v) {
			c.match.matchNumbers(place{name: vintage.None}, from, min(to, from+maxPassedBy))
		}
		if len(c.ranking.list.best) > 0 {
			return
		}
	}
	for _, street := range c.holders.findHolders(h, area) {
		c.match.matchStreet(place{commune: c.v.StreetCommune(street), name: vintage.None}, street)
	}
}

// completeBegunPlaces matches what holds the first words in the names of streets, and the last ones in the name of its commune, which
// the unfinished word begins or continues.
func (c *completer) completeBegunPlaces(area Area) {
	last := c.q.Unfinished
	if last < 1 || !mayName(c.q, last) {
		return
	}
	for from := last; from > 0 && mayName(c.q, from); from-- {
		h := c.holders.heldWords(parse.Span(from, last+1))
		if h.need == 0 || c.q.IsStopWord(from) && from < last {
			continue
		}
		if h.whole = c.q.Distinctive(h.need)|innerTypes(c.q, h.need) == 0; h.whole && c.ranking.hasBegun(fewBegun) {
			continue
		}
		for _, names := range c.communes.begunNames(from) {
			in := area
			if names.Len() <= maxBegun {
				in = communesOf(names, c.v).within(area)
			}
			c.completeBegun(h, in)
		}
	}
	if text.BeginsStopWord(c.q.Terms[last].Typed) { // the article of a commune: Le Born
		h := c.holders.heldWords(parse.Bit(last))
		if h.whole = true; h.need != 0 && !c.ranking.hasBegun(fewBegun) {
			c.completeBegun(h, area)
		}
	}
}

// completeBegun matches what holds words in the communes of an area whose names begin with the others.
func (c *completer) completeBegun(h heldWords, area Area) {
	for _, street := range c.holders.findHolders(h, area) {
		if p, ok := c.communes.begunPlace(c.v.StreetCommune(street), h.at); ok {
			c.match.matchStreet(p, street)
		}
	}
}

// findHolders are the first streets of an area that hold the words and have the typed number, in their order, which is that of
// importance: those that begin as typed before others. If none of them has the number, they are some that lack it.
func (f *wholeFinder) findHolders(h heldWords, area Area) []uint32 {
	var begun, found, lacking []uint32
	left := min(maxVisited*skipsAVisit, f.visits)
	f.visits -= left
	f.eachOfRarest(h, area, func(street uint32) bool {
		if left--; len(lacking) == fewLacking && f.lacksNumber(street, h.number, &left) {
			return left > 0
		}
		left -= skipsAVisit - 1
		f.budget.left--
		if held, ok := f.nameHolds(street, h); ok {
			hasNumber := f.hasTypedNumber(street, held, h.at)
			switch {
			case hasNumber && f.beginsAsTyped(street, h.at):
				if !slices.Contains(begun, street) {
					begun = append(begun, street)
				}
			case hasNumber && len(found) < fewHeld:
				found = append(found, street)
			case !hasNumber && len(lacking) < fewLacking:
				lacking = append(lacking, street)
			}
		}
		return len(begun) < enoughBegun && left > 0 && f.budget.left > 0
	})
	f.visits += max(left, 0)
	if found = append(begun, found...); len(found) == 0 {
		return lacking
	}
	return found
}

// lacksNumber reports whether a street does not have a number, if that is not 0. A search for it takes some of the visits that are left.
func (f *wholeFinder) lacksNumber(street, number uint32, left *int) bool {
	if number == 0 {
		return false
	}
	if f.v.HighestNumber(street) < number {
		return true
	}
	*left -= 2
	return !f.v.HasNumber(street, number)
}

// nameHolds says which words the name of a street holds, and whether these are all that it must hold. Each term of the name stands for
// one word, the unfinished one last.
func (f *wholeFinder) nameHolds(street uint32, h heldWords) (held parse.Mask, ok bool) {
	name := f.v.NameTerms(f.v.StreetName(street))
	left, isWhole := h.need|h.digits, true
	for j := range name.Len() {
		i := f.heldBy(name.At(j), left)
		if i < 0 {
			isWhole = isWhole && (!h.whole || f.lexicon.weightOfTerm(name.At(j)) == linkWeight)
			continue
		}
		left &^= parse.Bit(i)
	}
	held = (h.need | h.digits) &^ left
	return held, left&h.need == 0 && f.q.AreOneNumber(left&h.digits) && (isWhole || !h.whole)
}

// heldBy is the word that a term of a name stands for, or -1. A finished word comes before the unfinished one.
func (f *wholeFinder) heldBy(term uint32, words parse.Mask) int {
	for i := range f.q.Terms {
		if words.Has(i) && i != f.q.Unfinished && f.lexicon.sim(i, term) > 0 {
			return i
		}
	}
	if i := f.q.Unfinished; i >= 0 && words.Has(i) && f.lexicon.sim(i, term) > 0 {
		return i
	}
	return -1
}

// hasTypedNumber reports whether a street whose name holds some words has the house number among the others. It does if none was
// typed.
func (f *wholeFinder) hasTypedNumber(street uint32, held, placeAt parse.Mask) bool {
	taken := held | placeAt | f.q.Postcode.PrefixAt
	if f.q.Postcode.IsOpen {
		taken = held | placeAt
	}
	n := f.q.HouseNumber(held, taken)
	if !n.IsTyped() {
		return true
	}
	of := f.v.Street(street)
	for k := range n.Count {
		from, to := f.rowsWithNumber(of, n.Choices[k].Number)
		for row := from; row < to; row++ {
			if rep := n.Choices[k].Rep; rep == "" || sameRep(rep, string(f.v.Rep(row))) {
				return true
			}
		}
	}
	return false
}

// eachOfRarest calls yield with the streets of an area that hold the rarest of the words that must be held, in their order, until it
// answers false. If that is the unfinished word alone, the links right before it count as well.
func (f *wholeFinder) eachOfRarest(h heldWords, area Area, yield func(street uint32) bool) {
	words := h.need
	if words == unfinishedWord(f.q) && words != 0 {
		for i := f.q.Unfinished - 1; i >= 0 && f.q.IsStopWord(i) && !h.at.Has(i) && !isBehindNumber(f.q, i); i-- {
			words |= parse.Bit(i)
		}
	}
	pivot, least := -1, 0
	for i := range f.q.Terms {
		n := f.countStreets(i)
		isVague := i == f.q.Unfinished && n > maxVisited
		if words.Has(i) && n > 0 && !isVague && (pivot < 0 || n < least) {
			pivot, least = i, n
		}
	}
	switch {
	case pivot >= 0:
		f.eachOf(f.streetsOf(pivot), area, yield)
	case words&^unfinishedWord(f.q) == 0 && (words == 0 || f.countStreets(f.q.Unfinished) > 0): // otherwise the vintage lacks a word
		f.eachBegun(words != 0, area, yield)
	}
}

// eachBegun calls yield with all streets of an area, or with the first ones if there are many. If one kind of street is most of what
// the unfinished word begins, half of them are of that kind.
func (f *wholeFinder) eachBegun(hasWord bool, area Area, yield func(street uint32) bool) {
	streets := 0
	for from, to := range area.ranges(f.v) {
		streets += int(to - from)
	}
	if kind, ok := f.begunKind(); hasWord && ok && streets > maxVisited {
		left := maxVisited * skipsAVisit / 2
		isDone := false
		f.eachOf([]vintage.Column{f.v.StreetsWith(kind)}, area, func(street uint32) bool {
			left--
			isDone = !yield(street)
			return !isDone && left > 0
		})
		if isDone {
			return
		}
	}
	f.eachIn(area, yield)
}

// begunKind is the kind of street that the unfinished word begins and that most of the streets with such a term have. It is false if
// there is none.
func (f *wholeFinder) begunKind() (term uint32, ok bool) {
	if f.q.Unfinished < 0 {
		return 0, false
	}
	most := f.countStreets(f.q.Unfinished) / 2
	for t := f.lexicon.low[f.q.Unfinished]; t < f.lexicon.high[f.q.Unfinished]; t++ {
		if n := f.v.StreetsWith(t).Len(); n > most {
			most, term, ok = n, t, text.ClassOf(viewString(f.v.Term(t))) == text.StreetType
		}
	}
	return term, ok
}

// eachIn calls yield with all streets of an area.
func (f *wholeFinder) eachIn(area Area, yield func(street uint32) bool) {
	for from, to := range area.ranges(f.v) {
		for street := from; street < to; street++ {
			if !yield(street) {
				return
			}
		}
	}
}

// eachOf calls yield with those of some streets that lie in an area.
func (f *wholeFinder) eachOf(columns []vintage.Column, area Area, yield func(street uint32) bool) {
	for _, streets := range columns {
		if area == nil || streets.Len() < len(area) {
			for j := range streets.Len() {
				if street := streets.At(j); (area == nil || area.Has(f.v.StreetCommune(street))) && !yield(street) {
					return
				}
			}
			continue
		}
		for from, to := range area.ranges(f.v) {
			f.budget.left--
			streets = streets.From(from)
			for j := 0; j < streets.Len() && streets.At(j) < to; j++ {
				if !yield(streets.At(j)) {
					return
				}
			}
		}
	}
}

// countStreets is how many streets hold a word, counted once for each term that it stands for.
func (f *wholeFinder) countStreets(i int) (n int) {
	for _, a := range f.lexicon.alternatives[i] {
		if !f.isBegunBy(i, a.term) {
			n += f.v.StreetsWith(a.term).Len()
		}
	}
	if f.lexicon.prefixes.Has(i) {
		n += f.v.CountStreetsWith(f.lexicon.low[i], f.lexicon.high[i])
	}
	return n
}

// isBegunBy reports whether a term is one of those that a word begins.
func (f *wholeFinder) isBegunBy(i int, term uint32) bool {
	return f.lexicon.prefixes.Has(i) && f.lexicon.low[i] <= term && term < f.lexicon.high[i]
}

// streetsOf are the streets that hold a word, for each term that it stands for.
func (f *wholeFinder) streetsOf(i int) (all []vintage.Column) {
	for _, a := range f.lexicon.alternatives[i] {
		if !f.isBegunBy(i, a.term) {
			all = append(all, f.v.StreetsWith(a.term))
		}
	}
	if f.lexicon.prefixes.Has(i) {
		for t := f.lexicon.low[i]; t < f.lexicon.high[i]; t++ {
			all = append(all, f.v.StreetsWith(t))
		}
	}
	return all
}
