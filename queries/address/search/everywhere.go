package search

import (
	"sort"

	"lieudit/queries/address/parse"
	"lieudit/queries/address/text"
	"lieudit/queries/address/vintage"
)

const (
	maxTogether = 10_000 // streets with the rarest word that are asked for the others
	maxPivots   = 500    // streets that are looked at
	fewOfEach   = 64     // streets looked at for each term an unfinished word may become
	pivotedMore = 4      // readings of a word
	fewBegun    = 256    // terms an unfinished word may become before streets are looked at instead
)

// judgeEverywhere judges the streets of the whole vintage that the words may name, when nothing says in which commune.
// Streets are looked at in the order of importance, so that a name the country over is found where most people live.
func (s *searcher) judgeEverywhere() {
	if s.prefixCommunes != nil && s.scope.Communes == nil {
		s.judgeArea(s.prefixCommunes)
		if s.list.top() >= placedScore {
			return
		}
	}
	s.judgeArea(s.scope.Communes)
}

// judgeArea does so in an area.
func (s *searcher) judgeArea(area Area) {
	words := s.streetWords(place{})
	distinctive := s.q.Distinctive(words)
	pivot := s.rarestWord(distinctive &^ s.unfinishedWord())
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
	s.shareBegunPlaces(all)
	for _, h := range s.rankHits(all, words) {
		commune := s.v.StreetCommune(h.street)
		if p, ok := s.begunPlace(commune); ok {
			s.judge(p, h.street)
		}
		s.judge(place{commune: commune, name: vintage.None}, h.street)
	}
}

// shareBegunPlaces adds what the last word is worth to the streets of communes whose name it begins. Such communes are too
// many to be looked through, and few have a street of the name.
func (s *searcher) shareBegunPlaces(all []hit) {
	if s.unfinishedWord() == 0 {
		return
	}
	for j := range all {
		if _, ok := s.begunPlace(s.v.StreetCommune(all[j].street)); ok {
			all[j].weight += s.words.weight[s.q.Unfinished] * growSim
		}
	}
}

// begunPlace is a commune as the place that the last words of an unfinished line begin to name.
func (s *searcher) begunPlace(commune uint32) (p place, ok bool) {
	last := s.q.Unfinished
	if last < 1 || !s.words.prefixes.Has(last) || !s.mayName(last) {
		return p, false
	}
	for name, to := s.v.CommunePlaces(commune); name < to && s.budget.steps > 0; name++ {
		terms := s.v.NameTerms(s.v.Place(name).Name)
		s.budget.steps--
		for k := range terms.Len() {
			if t := terms.At(k); t < s.words.low[last] || t >= s.words.high[last] {
				continue
			}
			if at := s.endsWith(terms, k); at != 0 {
				return place{commune: commune, name: name, at: at, sim: growSim, isLate: true, hasTypedCode: s.hasPostcode(commune)}, true
			}
		}
	}
	return p, false
}

// endsWith are the words at the end of the line where those before the unfinished one are the first terms of a name, but for
// links; none where they are not.
func (s *searcher) endsWith(name vintage.Column, terms int) parse.Mask {
	i := s.q.Unfinished
	for k := terms - 1; k >= 0; k-- {
		if text.ClassOf(viewString(s.v.Term(name.At(k)))) == text.StopWord {
			continue
		}
		for i--; i > 0 && s.q.IsStopWord(i); i-- {
		}
		if i < 1 || !s.mayName(i) || s.words.sim(i, name.At(k)) < literalSim {
			return 0
		}
	}
	return parse.Span(i, s.q.Unfinished+1)
}

// rarestWord is the word that the fewest streets hold, or -1.
func (s *searcher) rarestWord(words parse.Mask) int {
	least, pivot := 0, -1
	for i := range s.q.Terms {
		if !words.Has(i) {
			continue
		}
		n := 0
		for _, a := range s.words.alternatives[i] {
			n += s.v.StreetsWith(a.term).Len()
		}
		if n == 0 && s.words.prefixes.Has(i) {
			n = 1 << 20
		}
		if n > 0 && (pivot < 0 || n < least) {
			least, pivot = n, i
		}
	}
	return pivot
}

// streetsWithWord are the streets of an area that hold one word.
func (s *searcher) streetsWithWord(pivot int, area Area) []hit {
	all := s.scratch[:0]
	weight := s.words.weight[pivot]
	of := s.words.alternatives[pivot]
	for _, a := range of[:min(len(of), pivotedMore)] {
		all = s.appendFirstStreets(all, s.v.StreetsWith(a.term), hit{weight: weight * a.sim}, maxPivots, area)
	}
	switch prefixed := s.words.prefixes.Has(pivot); {
	case !prefixed:
	case s.words.high[pivot]-s.words.low[pivot] > fewBegun:
		all = s.scanArea(all, parse.Bit(pivot), area)
	default:
		for t := s.words.low[pivot]; t < s.words.high[pivot] && s.budget.steps > 0; t++ {
			all = s.appendFirstStreets(all, s.v.StreetsWith(t), hit{weight: weight * s.words.prefixSimOf(pivot)}, fewOfEach, area)
		}
	}
	all = dedupeHits(all)
	s.scratch = all
	return all
}

// streetsWithAllWords are the streets of an area that hold all the distinctive words, if there are several; each is given
// what the rarest is worth.
func (s *searcher) streetsWithAllWords(pivot int, words parse.Mask, area Area) []hit {
	all := s.scratch[:0]
	var others []cursor
	for i := range s.q.Terms {
		if !(s.q.Distinctive(words) &^ s.unfinishedWord()).Has(i) || i == pivot {
			continue
		}
		if len(s.words.alternatives[i]) == 0 {
			return nil
		}
		others = append(others, cursor{column: s.v.StreetsWith(s.words.alternatives[i][0].term)})
	}
	if len(others) == 0 || len(s.words.alternatives[pivot]) == 0 {
		return nil
	}
	first := s.words.alternatives[pivot][0]
	streets := s.v.StreetsWith(first.term)
	s.budget.isCut = s.budget.isCut || streets.Len() > maxTogether
	for j := range min(streets.Len(), maxTogether) {
		street := streets.At(j)
		if len(all) == maxPivots || s.budget.steps <= 0 {
			s.budget.isCut = true
			break
		}
		if s.budget.steps--; inAll(others, street) && area.Has(s.v.StreetCommune(street)) {
			all = append(all, hit{street, s.words.weight[pivot] * first.sim})
		}
	}
	s.scratch = all
	return all
}

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
			s.budget.steps--
			all = append(all, hit{streets.At(j), r.weight})
		}
		if s.budget.steps -= 2; s.budget.steps <= 0 || streets.Len() == 0 {
			break
		}
	}
	return all
}

// scanArea looks at the first streets of an area, name by name.
func (s *searcher) scanArea(all []hit, words parse.Mask, area Area) []hit {
	left := uint32(maxBegun)
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
	if s.words.prefixes.Has(i) && (i == s.q.Unfinished || len(s.words.alternatives[i]) == 0) {
		s.addPrefixWeight(all, i)
		return
	}
	for k, a := range s.words.alternatives[i] {
		if k == pivotedMore || s.budget.steps <= 0 {
			return
		}
		s.addTermWeight(all, s.v.StreetsWith(a.term), s.words.weight[i]*a.sim)
	}
}

// cursor finds growing numbers in a sorted column.
type cursor struct {
	column vintage.Column
	at     int
}

// seek moves to the first number that is no less, and says whether it is the one.
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
