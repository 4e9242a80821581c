package search

import (
	"cmp"
	"slices"

	"lieudit/queries/address/parse"
	"lieudit/queries/address/vintage"
)

const (
	maxAligned = 48    // streets that are compared word by word
	fewHits    = 8     // streets that are all compared, however little speaks for them
	maxPosting = 4_000 // streets looked at for one word
	maxRare    = 256   // streets that may hold a word which leads to them though it says little
	maxBegun   = 2_000 // terms an unfinished word may become, or streets looked at instead
	maxScan    = 8_000 // streets of a commune whose names are read one by one
)

// hit is a street and how much of what was typed its name may hold.
type hit struct {
	street uint32
	weight int32
}

// ownIndex is the vintage's own index.
type ownIndex struct{ *vintage.Vintage }

// collect gathers candidates in all communes the question may be about, then everywhere. A commune that only has the
// postcode is searched for rivals alone when one that was named has all the words.
func (ownIndex) collect(s *searcher) {
	places, parts := s.recognize()
	s.mentions = parts
	for _, p := range places {
		if s.budget.steps <= 0 {
			return
		}
		best, isNamed := s.namedBest()
		switch {
		case s.scoreBound(p) < s.list.top() || s.hasSound() && p.name != vintage.None && p.sim < literalSim:
		case isNamed && p.name == vintage.None:
			s.judgeRivals(p, best.contiguous)
		default:
			s.judgeStreets(p)
		}
	}
	if s.mayLieElsewhere() {
		s.judgeEverywhere()
	}
}

// mayLieElsewhere says whether the communes that were tried do not settle where the address lies.
func (s *searcher) mayLieElsewhere() bool {
	c := s.list.first()
	if s.list.top() < placedScore || s.scope.Around != nil && !s.isLocated(c) {
		return true
	}
	return s.list.top() < likelyScore && !c.isCertain && s.q.Postcode.Code == 0
}

// scoreBound is the best score that a street of a place can have.
func (s *searcher) scoreBound(p place) int32 {
	e := evidence{hasStreet: true, streetFit: 1000, hasNumber: true, hasPlace: p.name != vintage.None, placeSim: p.sim, isLate: true,
		hasCode: s.scope.Cited != nil, isCoded: s.scope.Cited.Has(p.commune)}
	if s.postcode != 0 {
		e.postcode = samePostcode
		if !p.hasTypedCode {
			e.postcode = regionPostcode
		}
	}
	return e.score()
}

// isLocated says whether anything typed says where a candidate lies.
func (s *searcher) isLocated(c *Candidate) bool {
	return c.name != vintage.None || c.hasTypedCode || s.scope.Cited != nil && s.scope.Cited.Has(c.Commune)
}

// namedBest is the best candidate when it is sound and its commune was named.
func (s *searcher) namedBest() (c *Candidate, ok bool) {
	c = s.list.first()
	return c, c != nil && c.IsSound && c.name != vintage.None && s.q.Distinctive(c.used) != 0
}

// hasSound says whether the best candidate is sound.
func (s *searcher) hasSound() bool {
	c := s.list.first()
	return c != nil && c.IsSound
}

// judgeStreets judges the streets of a place that the words left over may name, and the commune itself. Those that promise
// most come first; all are judged when the best one needs words that are not in its name, since others may hold the same
// words the other way round.
func (s *searcher) judgeStreets(p place) {
	words := s.streetWords(p)
	if p.at&s.unfinishedWord() == 0 || p.sim >= literalSim || s.q.Distinctive(words)|s.innerTypes(words) != 0 {
		hits := s.findStreets(p, words)
		for i, h := range hits {
			weak := h.weight*5 < hits[0].weight*3 || i >= fewHits && h.weight*10 < hits[0].weight*9 && s.hasSound()
			if weak && !s.isSplit() {
				break
			}
			s.judge(p, h.street)
		}
	}
	s.judgeCommune(p)
}

// unfinishedWord is the word that may still grow.
func (s *searcher) unfinishedWord() parse.Mask {
	if s.q.Unfinished < 0 {
		return 0
	}
	return parse.Bit(s.q.Unfinished)
}

// isSplit says whether the best candidate is sound by words that are not in its name.
func (s *searcher) isSplit() bool {
	c := s.list.first()
	return c != nil && c.IsSound && c.otherNames != 0
}

// judgeRivals judges the streets of a place that hold all the words that the name of the best candidate holds: nothing else
// can be as good.
func (s *searcher) judgeRivals(p place, name parse.Mask) {
	from, to := s.v.CommuneStreets(p.commune)
	name = s.q.Distinctive(name)
	for _, h := range s.rankHits(s.sumHits(s.gatherAll(name, from, to)), name) {
		if h.weight < 90*s.words.weigh(name) {
			return
		}
		s.judge(p, h.street)
	}
}

// findStreets are the streets of a place whose names share words with the question, the most promising first. The distinctive words
// streets apart lead there; words that are not finished, and the others, when those do not find all they say. The others lead
// nowhere in a commune that little speaks for.
func (s *searcher) findStreets(p place, words parse.Mask) []hit {
	from, to := s.v.CommuneStreets(p.commune)
	distinctive := s.q.Distinctive(words)
	prefixed := distinctive & s.words.prefixes
	finished := distinctive &^ s.unfinishedWord()
	all := s.sumHits(s.gatherAll(finished, from, to))
	if len(all) > 0 && maxWeight(all) >= 90*s.words.weigh(finished) && prefixed&finished == 0 {
		if distinctive != finished {
			s.addPrefixWeight(all, s.q.Unfinished)
		}
		if len(all) > fewHits {
			s.addTypeWeights(all, words&^distinctive, from, to)
		}
		return s.rankHits(all, words)
	}
	if s.hasSound() {
		return s.rankHits(all, words)
	}
	if prefixed != 0 {
		all = s.sumHits(s.gatherByPrefix(all, prefixed, finished, from, to))
	}
	if distinctive != 0 && !p.hasTypedCode && p.sim < literalSim {
		return s.rankHits(all, words)
	}
	return s.rankHits(s.sumHits(s.gatherRare(all, words&^distinctive, from, to)), words)
}

// addTypeWeights adds what kinds of streets are worth.
func (s *searcher) addTypeWeights(all []hit, words parse.Mask, from, to uint32) {
	for i := range s.q.Terms {
		of := s.words.alternatives[i]
		if words.Has(i) && i != s.q.Unfinished && len(of) > 0 && s.q.IsStreetType(i) {
			s.addTermWeight(all, s.v.StreetsWith(of[0].term).Within(from, to), s.words.weight[i]*of[0].sim)
		}
	}
}

// addTermWeight adds what a word is worth to the streets that hold it.
func (s *searcher) addTermWeight(all []hit, streets vintage.Column, weight int32) {
	c := cursor{column: streets}
	for j := range all {
		if c.seek(all[j].street) {
			all[j].weight += weight
		}
	}
	s.budget.steps -= len(all)
}

// gatherAll are the streets in a range with one of some words, once for each word.
func (s *searcher) gatherAll(words parse.Mask, from, to uint32) []hit {
	all := s.scratch[:0]
	for i := range s.q.Terms {
		if words.Has(i) {
			all = s.gatherWord(all, i, from, to)
		}
	}
	s.scratch = all
	return all
}

// gatherWord adds the streets in a range with a word, the best reading of it for each.
func (s *searcher) gatherWord(all []hit, i int, from, to uint32) []hit {
	before := len(all)
	for _, a := range s.words.alternatives[i] {
		all = s.appendStreets(all, s.v.StreetsWith(a.term), hit{from, s.promise(i) * a.sim}, to)
	}
	if len(s.words.alternatives[i]) < 2 {
		return all
	}
	return all[:before+len(dedupeHits(all[before:]))]
}

// promise is how much a word speaks for a street that holds it. Digits may be the house number.
func (s *searcher) promise(i int) int32 {
	if s.q.Terms[i].Digits {
		return typeWeight
	}
	return s.words.weight[i]
}

// gatherRare adds the streets in a range with words that say little, as far as few hold them; when there is nothing else,
// those with the rarest.
func (s *searcher) gatherRare(all []hit, words parse.Mask, from, to uint32) []hit {
	rarest, least := -1, 0
	for i := range s.q.Terms {
		if !words.Has(i) || len(s.words.alternatives[i]) == 0 {
			continue
		}
		n := s.v.StreetsWith(s.words.alternatives[i][0].term).Within(from, to).Len()
		s.budget.steps -= 4
		switch {
		case n == 0:
		case n <= maxRare:
			all = s.gatherWord(all, i, from, to)
		case rarest < 0 || n < least:
			rarest, least = i, n
		}
	}
	if len(all) == 0 && rarest >= 0 {
		all = s.gatherWord(all, rarest, from, to)
	}
	s.scratch = all
	return all
}

// gatherByPrefix adds the streets in a range with terms that words may become. Where these are many, the names of the range are
// read one by one instead.
func (s *searcher) gatherByPrefix(all []hit, prefixed, finished parse.Mask, from, to uint32) []hit {
	var terms uint32
	for i := range s.q.Terms {
		if prefixed.Has(i) {
			terms += s.words.high[i] - s.words.low[i]
		}
	}
	if terms > min(to-from, maxBegun) {
		return s.scanNames(all[:0], prefixed|finished, from, min(to, from+maxScan))
	}
	for i := range s.q.Terms {
		if !prefixed.Has(i) {
			continue
		}
		before := len(all)
		for t := s.words.low[i]; t < s.words.high[i] && s.budget.steps > 0; t++ {
			all = s.appendStreets(all, s.v.StreetsWith(t), hit{from, s.words.weight[i] * s.words.prefixSimOf(i)}, to)
		}
		all = all[:before+len(dedupeHits(all[before:]))]
	}
	return all
}

// scanNames adds the streets of a range whose names hold some of the words, or terms that those may become.
func (s *searcher) scanNames(all []hit, words parse.Mask, from, to uint32) []hit {
	for street := from; street < to && s.budget.steps > 0; street++ {
		if w := s.weighName(s.v.NameTerms(s.v.StreetName(street)), words); w > 0 {
			all = append(all, hit{street, w})
		}
		s.budget.steps--
	}
	return all
}

// weighName is what the words are worth that a name holds.
func (s *searcher) weighName(name vintage.Column, words parse.Mask) (sum int32) {
	for i := range s.q.Terms {
		if !words.Has(i) {
			continue
		}
		best := int32(0)
		for j := range name.Len() {
			best = max(best, s.words.sim(i, name.At(j)))
		}
		sum += s.promise(i) * best
	}
	return sum
}

// nameHasPrefix says whether a street's name holds a term that a word may become.
func (s *searcher) nameHasPrefix(street uint32, i int) bool {
	name := s.v.NameTerms(s.v.StreetName(street))
	for j := range name.Len() {
		if t := name.At(j); t >= s.words.low[i] && t < s.words.high[i] {
			return true
		}
	}
	return false
}

// addPrefixWeight adds what an unfinished word is worth to the streets that hold a term it may become.
func (s *searcher) addPrefixWeight(all []hit, i int) {
	for j := range all {
		if s.nameHasPrefix(all[j].street, i) {
			all[j].weight += s.words.weight[i] * growSim
		}
	}
	s.budget.steps -= 2 * len(all)
}

func (s *searcher) appendStreets(all []hit, streets vintage.Column, r hit, to uint32) []hit {
	s.budget.steps -= 2
	streets = streets.From(r.street)
	for j := range min(streets.Len(), maxPosting) {
		street := streets.At(j)
		if street >= to || s.budget.steps <= 0 {
			break
		}
		s.budget.steps--
		all = append(all, hit{street, r.weight})
	}
	return all
}

// dedupeHits keeps the best reading of one word for each street.
func dedupeHits(of []hit) []hit {
	slices.SortFunc(of, func(x, y hit) int {
		return cmp.Or(cmp.Compare(x.street, y.street), cmp.Compare(y.weight, x.weight))
	})
	return slices.CompactFunc(of, func(x, y hit) bool { return x.street == y.street })
}

// maxWeight is the weight of the most promising street.
func maxWeight(all []hit) (most int32) {
	for _, r := range all {
		most = max(most, r.weight)
	}
	return most
}

// sumHits sums what speaks for each street.
func (s *searcher) sumHits(all []hit) []hit {
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

// rankHits are the most promising streets for some words, the first first. When as promising ones are left out, there may be
// more answers than are looked at.
func (s *searcher) rankHits(all []hit, words parse.Mask) []hit {
	slices.SortFunc(all, func(x, y hit) int {
		return cmp.Or(cmp.Compare(y.weight, x.weight), cmp.Compare(x.street, y.street))
	})
	if len(all) > maxAligned {
		w := all[maxAligned].weight
		s.budget.isCut = s.budget.isCut || w*5 >= all[0].weight*3 && w >= 50*s.words.weigh(s.q.Distinctive(words))
		all = all[:maxAligned]
	}
	return all
}
