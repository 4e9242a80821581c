package search

import (
	"iter"
	"slices"
	"sort"

	"lieudit/queries/address/parse"
	"lieudit/queries/address/vintage"
)

const (
	maxIntersected   = 10_000 // streets with the rarest word that are tested for the other words
	maxPivotStreets  = 500    // streets that are kept of those with the rarest word
	maxPerPrefixTerm = 64     // streets that are kept for each term that a prefix stands for
	maxPivotReadings = 4      // alternatives of a word that are looked up
	fewPrefixTerms   = 256    // terms that a prefix may stand for before names are read one by one
)

// areaFinder finds them in an area where no commune is certain.
type areaFinder struct {
	*streetFinder
	communes recognizer
}

// findInArea are the streets of an area whose names hold some words, the heaviest first. It begins with those that hold the rarest
// word, the pivot. A finished distinctive word is the pivot where there is one, because few streets hold it. The number that opens
// the line comes last, since it is the house number. It is false if no street holds any word.
func (f areaFinder) findInArea(area Area, words parse.Mask) (hits []hit, ok bool) {
	distinctive := f.q.Distinctive(words)
	pivot := -1
	for _, among := range [...]parse.Mask{distinctive &^ unfinishedWord(f.q), distinctive, words &^ (f.q.Digits() & parse.Bit(0)), words} {
		if pivot = f.rarestWord(among); pivot >= 0 {
			break
		}
	}
	if pivot < 0 {
		return nil, false
	}
	all := f.streetsWithAllWords(pivot, words, area)
	if len(all) == 0 {
		all = f.streetsWithWord(pivot, area)
	}
	for i := range f.q.Terms {
		if words.Has(i) && i != pivot {
			f.addWordWeight(all, i)
		}
	}
	f.addPlacePrefixWeights(all)
	return f.rankHits(all, words), true
}

// findWholeNames are the streets of an area whose names hold all the words and no others, those that have the number first.
func (f areaFinder) findWholeNames(area Area, words parse.Mask) []uint32 {
	var need parse.Mask
	var number uint32
	for i, t := range f.q.Terms {
		switch {
		case !words.Has(i) || f.q.IsStopWord(i):
		case t.Digits && need == 0 && number == 0:
			number = parse.Number(t.Typed) // what opens the line is the house number
		default:
			need |= parse.Bit(i)
		}
	}
	var numbered, others []uint32
	for street := range f.streetsNamed(need, area) {
		isNumbered := false
		if of := f.v.Street(street); number > 0 && !of.Locality {
			from, to := f.rowsWithNumber(of, number)
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
	return append(numbered, others...)
}

// streetsNamed are the streets of an area whose names hold some words, exactly, and no others but links.
func (f areaFinder) streetsNamed(words parse.Mask, area Area) iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		var all []cursor
		for i := range f.q.Terms {
			switch of := f.lexicon.alternatives[i]; {
			case !words.Has(i):
			case len(of) == 0 || of[0].sim < literalSim:
				return
			default:
				all = append(all, cursor{column: f.v.StreetsWith(of[0].term)})
			}
		}
		if len(all) == 0 {
			return
		}
		slices.SortStableFunc(all, func(x, y cursor) int { return x.column.Len() - y.column.Len() })
		streets := all[0].column
		for j := 0; j < min(streets.Len(), maxIntersected) && f.budget.left > 0; j++ {
			street := streets.At(j)
			f.budget.left--
			if inAll(all[1:], street) && area.Has(f.v.StreetCommune(street)) && f.nameLength(street) == len(all) && !yield(street) {
				return
			}
		}
	}
}

// nameLength is how many terms but links the name of a street has.
func (f areaFinder) nameLength(street uint32) (n int) {
	name := f.v.NameTerms(f.v.StreetName(street))
	for j := range name.Len() {
		if f.lexicon.weightOfTerm(name.At(j)) != linkWeight {
			n++
		}
	}
	return n
}

// addPlacePrefixWeights adds the weight of the unfinished word to streets of communes whose name it begins. Such
// communes are too many to be searched one by one.
func (f areaFinder) addPlacePrefixWeights(all []hit) {
	if unfinishedWord(f.q) == 0 {
		return
	}
	for j := range all {
		if _, ok := f.communes.placeByPrefix(f.v.StreetCommune(all[j].street)); ok {
			all[j].weight += f.lexicon.weight[f.q.Unfinished] * unfinishedSim
		}
	}
}

// rarestWord is the word that the fewest streets hold, or -1. A word that is only a prefix counts as the most
// frequent.
func (f areaFinder) rarestWord(words parse.Mask) int {
	least, pivot := 0, -1
	for i := range f.q.Terms {
		if !words.Has(i) {
			continue
		}
		n := 0
		for _, a := range f.lexicon.alternatives[i] {
			n += f.v.StreetsWith(a.term).Len()
		}
		if n == 0 && f.lexicon.prefixes.Has(i) {
			n = 1 << 20
		}
		if n > 0 && (pivot < 0 || n < least) {
			least, pivot = n, i
		}
	}
	return pivot
}

// streetsWithWord are the hits of the pivot in an area.
func (f areaFinder) streetsWithWord(pivot int, area Area) []hit {
	all := f.scratch[:0]
	weight := f.lexicon.weight[pivot]
	of := f.lexicon.alternatives[pivot]
	for _, a := range of[:min(len(of), maxPivotReadings)] {
		all = f.appendFirstStreets(all, f.v.StreetsWith(a.term), hit{weight: weight * a.sim}, maxPivotStreets, area)
	}
	switch prefixed := f.lexicon.prefixes.Has(pivot); {
	case !prefixed:
	case f.lexicon.high[pivot]-f.lexicon.low[pivot] > fewPrefixTerms:
		all = f.scanArea(all, parse.Bit(pivot), area)
	default:
		for t := f.lexicon.low[pivot]; t < f.lexicon.high[pivot] && f.budget.left > 0; t++ {
			all = f.appendFirstStreets(all, f.v.StreetsWith(t), hit{weight: weight * f.lexicon.prefixSimOf(pivot)}, maxPerPrefixTerm, area)
		}
	}
	all = dedupeHits(all)
	f.scratch = all
	return all
}

// streetsWithAllWords are the streets of an area that hold all finished distinctive words, each with the weight of
// the pivot. It is empty where there is only one such word, or where the vintage lacks one.
func (f areaFinder) streetsWithAllWords(pivot int, words parse.Mask, area Area) []hit {
	all := f.scratch[:0]
	var others []cursor
	for i := range f.q.Terms {
		if !(f.q.Distinctive(words) &^ unfinishedWord(f.q)).Has(i) || i == pivot {
			continue
		}
		if len(f.lexicon.alternatives[i]) == 0 {
			return nil
		}
		others = append(others, cursor{column: f.v.StreetsWith(f.lexicon.alternatives[i][0].term)})
	}
	if len(others) == 0 || len(f.lexicon.alternatives[pivot]) == 0 {
		return nil
	}
	first := f.lexicon.alternatives[pivot][0]
	streets := f.v.StreetsWith(first.term)
	f.budget.isCut = f.budget.isCut || streets.Len() > maxIntersected
	for j := range min(streets.Len(), maxIntersected) {
		street := streets.At(j)
		if len(all) == maxPivotStreets || f.budget.left <= 0 {
			f.budget.isCut = true
			break
		}
		if f.budget.left--; inAll(others, street) && area.Has(f.v.StreetCommune(street)) {
			all = append(all, hit{street, f.lexicon.weight[pivot] * first.sim})
		}
	}
	f.scratch = all
	return all
}

// inAll reports whether all columns hold a street. Calls must pass streets in ascending order, as the cursors only
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
func (f areaFinder) appendFirstStreets(all []hit, streets vintage.Column, r hit, most int, area Area) []hit {
	before := len(all)
	for from, to := range area.ranges(f.v) {
		streets = streets.From(from)
		for j := 0; j < streets.Len() && streets.At(j) < to; j++ {
			if len(all)-before == most {
				f.budget.isCut = true
				return all
			}
			f.budget.left--
			all = append(all, hit{streets.At(j), r.weight})
		}
		if f.budget.left -= 2; f.budget.left <= 0 || streets.Len() == 0 {
			break
		}
	}
	return all
}

// scanArea adds hits from the names of the first streets of an area, up to maxPrefixTerms streets.
func (f areaFinder) scanArea(all []hit, words parse.Mask, area Area) []hit {
	left := uint32(maxPrefixTerms)
	for from, to := range area.ranges(f.v) {
		n := min(to-from, left)
		all = f.scanNames(all, words, from, from+n)
		if left -= n; left == 0 {
			break
		}
	}
	return all
}

// addWordWeight adds what one more word is worth to the streets that hold it.
func (f areaFinder) addWordWeight(all []hit, i int) {
	if f.lexicon.prefixes.Has(i) && (i == f.q.Unfinished || len(f.lexicon.alternatives[i]) == 0) {
		f.addPrefixWeight(all, i)
		return
	}
	for k, a := range f.lexicon.alternatives[i] {
		if k == maxPivotReadings || f.budget.left <= 0 {
			return
		}
		f.addTermWeight(all, f.v.StreetsWith(a.term), f.lexicon.weight[i]*a.sim)
	}
}

// cursor finds ascending numbers in a sorted column. It only moves forward.
type cursor struct {
	column vintage.Column
	at     int
}

// seek moves to the first number that is not less than n, and reports whether it is n. It doubles its step, then
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
