package search

import (
	"cmp"
	"iter"
	"slices"
	"sort"

	"lieudit/queries/address/parse"
	"lieudit/queries/address/vintage"
)

const (
	maxAligned     = 48    // streets of a place that are compared word by word
	fewHits        = 8     // best hits that are compared even when a confirmed candidate is found
	maxPosting     = 4_000 // streets that are read for one term
	fewBareTypes   = 24    // streets of a kind that are all searched if there are no more
	maxRare        = 256   // streets that may hold a link or a kind of street for it to be looked up
	maxPrefixTerms = 2_000 // terms that prefixes may stand for before names are read one by one
	maxScan        = 8_000 // streets of a commune whose names are read one by one
)

// hit is a street and the weight of the typed words that its name holds. The weight is in hundredths, since it
// counts how alike the words are.
type hit struct {
	street uint32
	weight int32
}

// streetFinder finds the streets of a place whose names share words with a question.
type streetFinder struct {
	*query
	scratch []hit // reused by each look-up
}

// findRivals returns the streets of a place that hold nine tenths of the distinctive words of a set. No other street can score as well
// as one that holds all of them.
func (f *streetFinder) findRivals(p place, name parse.Mask) []hit {
	from, to := f.v.CommuneStreets(p.commune)
	name = f.q.Distinctive(name)
	all := f.rankHits(sumHits(f.gatherAll(name, from, to)), name)
	least := 90 * f.lexicon.weigh(name)
	if i := slices.IndexFunc(all, func(h hit) bool { return h.weight < least }); i >= 0 {
		return all[:i]
	}
	return all
}

// findStreets returns the streets of a place whose names share words with the question, the heaviest first. Finished
// distinctive words are looked up first, because few streets hold them. Prefixes, links and kinds of streets are
// looked up only if those do not find nearly all. Links and kinds are not looked up in a commune to which only
// a doubtful name points, and neither they nor prefixes once a candidate is confirmed.
func (f *streetFinder) findStreets(p place, words parse.Mask, isConfirmed bool) []hit {
	from, to := f.v.CommuneStreets(p.commune)
	distinctive := f.q.Distinctive(words)
	prefixed := distinctive & f.lexicon.prefixes
	finished := distinctive &^ unfinishedWord(f.q)
	all := sumHits(f.gatherAll(finished, from, to))
	if len(all) > 0 && maxWeight(all) >= 90*f.lexicon.weigh(finished) && prefixed&finished == 0 {
		if distinctive != finished {
			f.addPrefixWeight(all, f.q.Unfinished)
		}
		if len(all) > fewHits {
			f.addTypeWeights(all, words&^distinctive, from, to)
		}
		return f.rankHits(f.addBareTypes(all, words&^distinctive, from, to), words)
	}
	if isConfirmed {
		return f.rankHits(all, words)
	}
	if prefixed != 0 {
		all = sumHits(f.gatherByPrefix(all, prefixed, finished, from, to))
	}
	if distinctive != 0 && !p.hasTypedCode && p.sim < literalSim {
		return f.rankHits(all, words)
	}
	return f.rankHits(sumHits(f.gatherRare(all, words&^distinctive, from, to)), words)
}

// addBareTypes adds the streets of a typed kind if few have it and no hit does. Their whole name may be the kind, and
// the other words of the line may name something else: 7 La Venelle, Les Salelles.
func (f *streetFinder) addBareTypes(all []hit, words parse.Mask, from, to uint32) []hit {
	for i := range f.q.Terms {
		if !words.Has(i) || !f.q.IsStreetType(i) || len(f.lexicon.alternatives[i]) == 0 || i == f.q.Unfinished {
			continue
		}
		streets := f.v.StreetsWith(f.lexicon.alternatives[i][0].term).Within(from, to)
		f.budget.left -= 4
		if streets.Len() > fewBareTypes {
			continue
		}
		c, isHeld := cursor{column: streets}, false
		for j := range all {
			isHeld = isHeld || c.seek(all[j].street)
		}
		if isHeld {
			continue
		}
		least := maxWeight(all)*3/5 + 1 // so that it is matched
		for j := range streets.Len() {
			all = append(all, hit{streets.At(j), least})
		}
		return sumHits(all)
	}
	return all
}

// addTypeWeights adds the weight of the kinds of streets that were typed. They order many hits that hold the same
// distinctive words.
func (f *streetFinder) addTypeWeights(all []hit, words parse.Mask, from, to uint32) {
	for i := range f.q.Terms {
		of := f.lexicon.alternatives[i]
		if words.Has(i) && i != f.q.Unfinished && len(of) > 0 && f.q.IsStreetType(i) {
			f.addTermWeight(all, f.v.StreetsWith(of[0].term).Within(from, to), f.lexicon.weight[i]*of[0].sim)
		}
	}
}

// addTermWeight adds the weight of a word to the hits that are among the streets given.
func (f *streetFinder) addTermWeight(all []hit, streets vintage.Column, weight int32) {
	c := cursor{column: streets}
	for j := range all {
		if c.seek(all[j].street) {
			all[j].weight += weight
		}
	}
	f.budget.left -= len(all)
}

// gatherAll are the hits of some words in a range of streets. A street occurs once for each word that it holds.
func (f *streetFinder) gatherAll(words parse.Mask, from, to uint32) []hit {
	all := f.scratch[:0]
	for i := range f.q.Terms {
		if words.Has(i) {
			all = f.gatherWord(all, i, from, to)
		}
	}
	f.scratch = all
	return all
}

// gatherWord adds the hits of one word in a range of streets. A street that holds several terms the word may stand
// for is kept once, with the likeliest.
func (f *streetFinder) gatherWord(all []hit, i int, from, to uint32) []hit {
	before := len(all)
	for _, a := range f.lexicon.alternatives[i] {
		all = f.appendStreets(all, f.v.StreetsWith(a.term), hit{from, f.retrievalWeight(i) * a.sim}, to)
	}
	if len(f.lexicon.alternatives[i]) < 2 {
		return all
	}
	return all[:before+len(dedupeHits(all[before:]))]
}

// retrievalWeight is the weight of a word in a hit. Digits weigh as little as a kind of street, because they may
// be the house number.
func (f *streetFinder) retrievalWeight(i int) int32 {
	if f.q.Terms[i].Digits {
		return typeWeight
	}
	return f.lexicon.weight[i]
}

// gatherRare adds the hits of links and kinds of streets that few streets hold. If there are no
// other hits at all, it adds those of the rarest word.
func (f *streetFinder) gatherRare(all []hit, words parse.Mask, from, to uint32) []hit {
	rarest, least := -1, 0
	for i := range f.q.Terms {
		if !words.Has(i) || len(f.lexicon.alternatives[i]) == 0 {
			continue
		}
		n := f.v.StreetsWith(f.lexicon.alternatives[i][0].term).Within(from, to).Len()
		f.budget.left -= 4
		switch {
		case n == 0:
		case n <= maxRare:
			all = f.gatherWord(all, i, from, to)
		case rarest < 0 || n < least:
			rarest, least = i, n
		}
	}
	if len(all) == 0 && rarest >= 0 {
		all = f.gatherWord(all, rarest, from, to)
	}
	f.scratch = all
	return all
}

// gatherByPrefix adds the hits of words that are prefixes. If the prefixes stand for too many terms, it reads
// the names of the range one by one instead, which is cheaper.
func (f *streetFinder) gatherByPrefix(all []hit, prefixed, finished parse.Mask, from, to uint32) []hit {
	var terms uint32
	for i := range f.q.Terms {
		if prefixed.Has(i) {
			terms += f.lexicon.high[i] - f.lexicon.low[i]
		}
	}
	if terms > min(to-from, maxPrefixTerms) {
		return f.scanNames(all[:0], prefixed|finished, from, min(to, from+maxScan))
	}
	for i := range f.q.Terms {
		if !prefixed.Has(i) {
			continue
		}
		before := len(all)
		for t := f.lexicon.low[i]; t < f.lexicon.high[i] && f.budget.left > 0; t++ {
			all = f.appendStreets(all, f.v.StreetsWith(t), hit{from, f.lexicon.weight[i] * f.lexicon.prefixSimOf(i)}, to)
		}
		all = all[:before+len(dedupeHits(all[before:]))]
	}
	return all
}

// scanNames adds the streets of a range whose names hold some of the words, exactly, misspelt or as a
// prefix.
func (f *streetFinder) scanNames(all []hit, words parse.Mask, from, to uint32) []hit {
	for street := from; street < to && f.budget.left > 0; street++ {
		if w := f.weighName(f.v.NameTerms(f.v.StreetName(street)), words); w > 0 {
			all = append(all, hit{street, w})
		}
		f.budget.left--
	}
	return all
}

// weighName is the weight of the words that a name holds.
func (f *streetFinder) weighName(name vintage.Column, words parse.Mask) (sum int32) {
	for i := range f.q.Terms {
		if !words.Has(i) {
			continue
		}
		best := int32(0)
		for j := range name.Len() {
			best = max(best, f.lexicon.sim(i, name.At(j)))
		}
		sum += f.retrievalWeight(i) * best
	}
	return sum
}

// nameHasPrefix reports whether a street's name holds a term that a word may become.
func (f *streetFinder) nameHasPrefix(street uint32, i int) bool {
	name := f.v.NameTerms(f.v.StreetName(street))
	for j := range name.Len() {
		if t := name.At(j); t >= f.lexicon.low[i] && t < f.lexicon.high[i] {
			return true
		}
	}
	return false
}

// addPrefixWeight adds the weight of an unfinished word to the hits whose names hold a term that it begins.
func (f *streetFinder) addPrefixWeight(all []hit, i int) {
	for j := range all {
		if f.nameHasPrefix(all[j].street, i) {
			all[j].weight += f.lexicon.weight[i] * unfinishedSim
		}
	}
	f.budget.left -= 2 * len(all)
}

// appendStreets adds the streets of a posting from r.street on and before to, each with the weight of r.
func (f *streetFinder) appendStreets(all []hit, streets vintage.Column, r hit, to uint32) []hit {
	f.budget.left -= 2
	streets = streets.From(r.street)
	for j := range min(streets.Len(), maxPosting) {
		street := streets.At(j)
		if street >= to || f.budget.left <= 0 {
			break
		}
		f.budget.left--
		all = append(all, hit{street, r.weight})
	}
	return all
}

// dedupeHits keeps the heaviest hit of each street.
func dedupeHits(of []hit) []hit {
	slices.SortFunc(of, func(x, y hit) int {
		return cmp.Or(cmp.Compare(x.street, y.street), cmp.Compare(y.weight, x.weight))
	})
	return slices.CompactFunc(of, func(x, y hit) bool { return x.street == y.street })
}

// maxWeight is the weight of the heaviest hit.
func maxWeight(all []hit) (most int32) {
	for _, r := range all {
		most = max(most, r.weight)
	}
	return most
}

// sumHits merges the hits of each street and sums their weights.
func sumHits(all []hit) []hit {
	slices.SortFunc(all, func(x, y hit) int { return cmp.Compare(x.street, y.street) })
	kept := all[:0]
	for _, r := range all {
		if n := len(kept); n > 0 && kept[n-1].street == r.street {
			kept[n-1].weight += r.weight
		} else {
			kept = append(kept, r)
		}
	}
	return kept
}

// rankHits returns the heaviest hits, in descending order. If a hit that is left out weighs nearly as much as those
// kept, the answer is marked as cut.
func (f *streetFinder) rankHits(all []hit, words parse.Mask) []hit {
	slices.SortFunc(all, func(x, y hit) int {
		return cmp.Or(cmp.Compare(y.weight, x.weight), cmp.Compare(x.street, y.street))
	})
	if len(all) > maxAligned {
		w := all[maxAligned].weight
		f.budget.isCut = f.budget.isCut || w*5 >= all[0].weight*3 && w >= 50*f.lexicon.weigh(f.q.Distinctive(words))
		all = all[:maxAligned]
	}
	return all
}

const (
	maxIntersected   = 10_000 // streets with the rarest word that are tested for the other words
	maxPivotStreets  = 500    // streets with the rarest word that are kept
	maxPerPrefixTerm = 64     // streets that are kept for each term that a prefix stands for
	maxPivotReadings = 4      // alternatives of a word that are looked up
	fewPrefixTerms   = 256    // terms that a prefix may stand for before names are read one by one
)

// areaFinder finds streets in an area if no commune is certain.
type areaFinder struct {
	*streetFinder
	communes recognizer
}

// findInArea returns the streets of an area whose names hold some words, the heaviest first. It begins with those that hold the rarest
// word, the pivot. A finished distinctive word is the pivot if there is one, because few streets hold it. The number that opens
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

// findWholeNames returns the streets of an area whose names hold all the words and no others, those with the number first.
func (f areaFinder) findWholeNames(area Area, words parse.Mask) []uint32 {
	var need parse.Mask
	var number uint32
	for i, t := range f.q.Terms {
		switch {
		case !words.Has(i) || f.q.IsStopWord(i):
		case t.Digits && need == 0 && number == 0:
			number = parse.Number(t.Typed) // the first digits of the line are the house number
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

// streetsNamed returns the streets of an area whose names hold some words exactly, and otherwise only links.
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

// nameLength counts the terms in the name of a street, without links.
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
// the pivot. It is empty if there is only one such word, or if the vintage lacks one.
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

// addWordWeight adds the weight of another word to the streets that hold it.
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
