package search

import (
	"iter"
	"slices"
	"sort"

	"lieudit/queries/address/parse"
	"lieudit/queries/address/text"
	"lieudit/queries/address/vintage"
)

const (
	maxIntersected   = 10_000 // streets with the rarest word that are tested for the other words
	maxPivotStreets  = 500    // streets that are kept of those with the rarest word
	maxPerPrefixTerm = 64     // streets that are kept for each term that a prefix stands for
	maxPivotReadings = 4      // alternatives of a word that are looked up
	fewPrefixTerms   = 256    // terms that a prefix may stand for before names are read one by one
)

// judgeEverywhere judges the streets that the words may name where no commune is certain. It looks at streets in
// the order of importance, so a name that many communes have is found where most people live. The communes of a
// postcode that was begun come first.
func (s *searcher) judgeEverywhere() {
	words := s.streetWords(place{})
	if s.postcode.begunCommunes != nil && s.scope.Communes == nil {
		s.judgeArea(s.postcode.begunCommunes, words)
		if s.list.top() >= placedScore {
			return
		}
	}
	if s.division.at != 0 {
		s.judgeArea(s.index.InDepartments(s.division.departments).within(s.scope.Communes), words&^s.division.at)
		if s.list.top() >= placedScore {
			return
		}
	}
	s.judgeArea(s.scope.Communes, words)
}

// judgeArea judges the streets of an area whose names hold some words. It begins with those that hold the rarest word, the pivot. A finished distinctive word is the
// pivot where there is one, because few streets hold it. The number that opens the line comes last, since it is
// the house number.
func (s *searcher) judgeArea(area Area, words parse.Mask) {
	distinctive := s.q.Distinctive(words)
	pivot := s.rarestWord(distinctive &^ unfinishedWord(s.q))
	if pivot < 0 {
		pivot = s.rarestWord(distinctive)
	}
	if pivot < 0 {
		pivot = s.rarestWord(words &^ (s.q.Digits() & parse.Bit(0))) // what opens the line is the house number
	}
	if pivot < 0 {
		pivot = s.rarestWord(words)
	}
	if pivot < 0 {
		return
	}
	all := s.streetsWithAllWords(pivot, words, area)
	if len(all) == 0 {
		all = s.streetsWithWord(pivot, area)
	}
	for i := range s.q.Terms {
		if words.Has(i) && i != pivot {
			s.addWordWeight(all, i)
		}
	}
	s.addPlacePrefixWeights(all)
	for _, h := range s.rankHits(all, words) {
		commune := s.v.StreetCommune(h.street)
		if p, ok := s.communes.placeByPrefix(commune); ok {
			s.judge(p, h.street)
		}
		if p := s.communes.unnamedPlace(commune, false); p.at != 0 {
			s.judge(p, h.street)
		}
		s.judge(place{commune: commune, name: vintage.None}, h.street)
	}
	if c := s.list.first(); !s.q.Completing && s.q.Postcode.Code == 0 && (c == nil || !c.isWhole || c.unread != 0 || c.isMissing) {
		s.judgeWholeNames(area, words)
	}
}

// judgeWholeNames judges the streets of an area whose names hold all the words and no others. The names that share the rarest
// word may be too many for these to be among the first: Grand Rue. Those that have the number come first.
func (s *searcher) judgeWholeNames(area Area, words parse.Mask) {
	var need parse.Mask
	var number uint32
	for i, t := range s.q.Terms {
		switch {
		case !words.Has(i) || s.q.IsStopWord(i):
		case t.Digits && need == 0 && number == 0:
			number = parse.Number(t.Typed) // what opens the line is the house number
		default:
			need |= parse.Bit(i)
		}
	}
	var numbered, others []uint32
	for street := range s.streetsNamed(need, area) {
		isNumbered := false
		if of := s.v.Street(street); number > 0 && !of.Locality {
			from, to := s.rowsWithNumber(of, number)
			isNumbered = from < to
		}
		switch {
		case isNumbered:
			numbered = append(numbered, street)
		case len(others) < fewHits:
			others = append(others, street)
		}
		if len(numbered) == maxAligned || number == 0 && len(others) == fewHits {
			break
		}
	}
	for _, street := range append(numbered, others...) {
		commune := s.v.StreetCommune(street)
		if p := s.communes.unnamedPlace(commune, false); p.at != 0 {
			s.judge(p, street)
		}
		s.judge(place{commune: commune, name: vintage.None}, street)
	}
}

// streetsNamed are the streets of an area whose names hold some words, letter for letter, and no others but links.
func (s *searcher) streetsNamed(words parse.Mask, area Area) iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		var all []cursor
		for i := range s.q.Terms {
			switch of := s.lexicon.alternatives[i]; {
			case !words.Has(i):
			case len(of) == 0 || of[0].sim < literalSim:
				return
			default:
				all = append(all, cursor{column: s.v.StreetsWith(of[0].term)})
			}
		}
		if len(all) == 0 {
			return
		}
		slices.SortStableFunc(all, func(x, y cursor) int { return x.column.Len() - y.column.Len() })
		streets := all[0].column
		for j := 0; j < min(streets.Len(), maxIntersected) && s.budget.left > 0; j++ {
			street := streets.At(j)
			s.budget.left--
			if inAll(all[1:], street) && area.Has(s.v.StreetCommune(street)) && s.nameLength(street) == len(all) && !yield(street) {
				return
			}
		}
	}
}

// nameLength is how many terms but links the name of a street has.
func (s *searcher) nameLength(street uint32) (n int) {
	name := s.v.NameTerms(s.v.StreetName(street))
	for j := range name.Len() {
		if s.lexicon.weightOfTerm(name.At(j)) != linkWeight {
			n++
		}
	}
	return n
}

// addPlacePrefixWeights adds the weight of the unfinished word to streets of communes whose name it begins. Such
// communes are too many to be searched one by one.
func (s *searcher) addPlacePrefixWeights(all []hit) {
	if unfinishedWord(s.q) == 0 {
		return
	}
	for j := range all {
		if _, ok := s.communes.placeByPrefix(s.v.StreetCommune(all[j].street)); ok {
			all[j].weight += s.lexicon.weight[s.q.Unfinished] * unfinishedSim
		}
	}
}

// placeByPrefix is a commune as the place whose name the last words of an unfinished line begin.
func (r recognizer) placeByPrefix(commune uint32) (p place, ok bool) {
	last := r.q.Unfinished
	if last < 1 || !r.lexicon.prefixes.Has(last) || !mayName(r.q, last) {
		return p, false
	}
	for name, to := r.v.CommunePlaces(commune); name < to && r.budget.left > 0; name++ {
		terms := r.v.NameTerms(r.v.Place(name).Name)
		r.budget.left--
		for k := range terms.Len() {
			if t := terms.At(k); t < r.lexicon.low[last] || t >= r.lexicon.high[last] {
				continue
			}
			if at := r.trailingWords(terms, k); at != 0 {
				return place{commune: commune, name: name, at: at, sim: unfinishedSim, isLate: true, hasTypedCode: r.postcode.isOf(commune)}, true
			}
		}
	}
	return p, false
}

// trailingWords are the words at the end of the line that spell the first terms of a name, the last of them being
// the unfinished word. Links do not count. It is empty where the words before the unfinished one are others.
func (r recognizer) trailingWords(name vintage.Column, terms int) parse.Mask {
	i := r.q.Unfinished
	for k := terms - 1; k >= 0; k-- {
		if text.ClassOf(viewString(r.v.Term(name.At(k)))) == text.StopWord {
			continue
		}
		for i--; i > 0 && r.q.IsStopWord(i); i-- {
		}
		if i < 1 || !mayName(r.q, i) || r.lexicon.sim(i, name.At(k)) < literalSim {
			return 0
		}
	}
	return parse.Span(i, r.q.Unfinished+1)
}

// rarestWord is the word that the fewest streets hold, or -1. A word that is only a prefix counts as the most
// frequent.
func (s *searcher) rarestWord(words parse.Mask) int {
	least, pivot := 0, -1
	for i := range s.q.Terms {
		if !words.Has(i) {
			continue
		}
		n := 0
		for _, a := range s.lexicon.alternatives[i] {
			n += s.v.StreetsWith(a.term).Len()
		}
		if n == 0 && s.lexicon.prefixes.Has(i) {
			n = 1 << 20
		}
		if n > 0 && (pivot < 0 || n < least) {
			least, pivot = n, i
		}
	}
	return pivot
}

// streetsWithWord are the hits of the pivot in an area.
func (s *searcher) streetsWithWord(pivot int, area Area) []hit {
	all := s.scratch[:0]
	weight := s.lexicon.weight[pivot]
	of := s.lexicon.alternatives[pivot]
	for _, a := range of[:min(len(of), maxPivotReadings)] {
		all = s.appendFirstStreets(all, s.v.StreetsWith(a.term), hit{weight: weight * a.sim}, maxPivotStreets, area)
	}
	switch prefixed := s.lexicon.prefixes.Has(pivot); {
	case !prefixed:
	case s.lexicon.high[pivot]-s.lexicon.low[pivot] > fewPrefixTerms:
		all = s.scanArea(all, parse.Bit(pivot), area)
	default:
		for t := s.lexicon.low[pivot]; t < s.lexicon.high[pivot] && s.budget.left > 0; t++ {
			all = s.appendFirstStreets(all, s.v.StreetsWith(t), hit{weight: weight * s.lexicon.prefixSimOf(pivot)}, maxPerPrefixTerm, area)
		}
	}
	all = dedupeHits(all)
	s.scratch = all
	return all
}

// streetsWithAllWords are the streets of an area that hold all finished distinctive words, each with the weight of
// the pivot. It is empty where there is only one such word, or where the vintage lacks one.
func (s *searcher) streetsWithAllWords(pivot int, words parse.Mask, area Area) []hit {
	all := s.scratch[:0]
	var others []cursor
	for i := range s.q.Terms {
		if !(s.q.Distinctive(words) &^ unfinishedWord(s.q)).Has(i) || i == pivot {
			continue
		}
		if len(s.lexicon.alternatives[i]) == 0 {
			return nil
		}
		others = append(others, cursor{column: s.v.StreetsWith(s.lexicon.alternatives[i][0].term)})
	}
	if len(others) == 0 || len(s.lexicon.alternatives[pivot]) == 0 {
		return nil
	}
	first := s.lexicon.alternatives[pivot][0]
	streets := s.v.StreetsWith(first.term)
	s.budget.isCut = s.budget.isCut || streets.Len() > maxIntersected
	for j := range min(streets.Len(), maxIntersected) {
		street := streets.At(j)
		if len(all) == maxPivotStreets || s.budget.left <= 0 {
			s.budget.isCut = true
			break
		}
		if s.budget.left--; inAll(others, street) && area.Has(s.v.StreetCommune(street)) {
			all = append(all, hit{street, s.lexicon.weight[pivot] * first.sim})
		}
	}
	s.scratch = all
	return all
}

// inAll says whether all columns hold a street. Calls must pass streets in ascending order, as the cursors only
// move forward.
func inAll(cursors []cursor, street uint32) bool {
	for i := range cursors {
		if !cursors[i].seek(street) {
			return false
		}
	}
	return true
}

// appendFirstStreets adds the first streets of a posting that lie in an area.
func (s *searcher) appendFirstStreets(all []hit, streets vintage.Column, r hit, most int, area Area) []hit {
	before := len(all)
	for from, to := range area.ranges(s.v) {
		streets = streets.From(from)
		for j := 0; j < streets.Len() && streets.At(j) < to; j++ {
			if len(all)-before == most {
				s.budget.isCut = true
				return all
			}
			s.budget.left--
			all = append(all, hit{streets.At(j), r.weight})
		}
		if s.budget.left -= 2; s.budget.left <= 0 || streets.Len() == 0 {
			break
		}
	}
	return all
}

// scanArea adds hits from the names of the first streets of an area, up to maxPrefixTerms streets.
func (s *searcher) scanArea(all []hit, words parse.Mask, area Area) []hit {
	left := uint32(maxPrefixTerms)
	for from, to := range area.ranges(s.v) {
		n := min(to-from, left)
		all = s.scanNames(all, words, from, from+n)
		if left -= n; left == 0 {
			break
		}
	}
	return all
}

// addWordWeight adds what one more word is worth to the streets that hold it.
func (s *searcher) addWordWeight(all []hit, i int) {
	if s.lexicon.prefixes.Has(i) && (i == s.q.Unfinished || len(s.lexicon.alternatives[i]) == 0) {
		s.addPrefixWeight(all, i)
		return
	}
	for k, a := range s.lexicon.alternatives[i] {
		if k == maxPivotReadings || s.budget.left <= 0 {
			return
		}
		s.addTermWeight(all, s.v.StreetsWith(a.term), s.lexicon.weight[i]*a.sim)
	}
}

// cursor finds ascending numbers in a sorted column. It only moves forward.
type cursor struct {
	column vintage.Column
	at     int
}

// seek moves to the first number that is not less than n, and says whether it is n. It doubles its step, then
// searches between the last two positions.
func (c *cursor) seek(n uint32) bool {
	step := 1
	for c.at+step < c.column.Len() && c.column.At(c.at+step) < n {
		c.at += step
		step *= 2
	}
	width := min(step, c.column.Len()-c.at)
	c.at += sort.Search(width, func(i int) bool { return c.column.At(c.at+i) >= n })
	return c.at < c.column.Len() && c.column.At(c.at) == n
}
