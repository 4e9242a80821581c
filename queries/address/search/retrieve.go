package search

import (
	"cmp"
	"slices"

	"lieudit/queries/address/parse"
	"lieudit/queries/address/text"
	"lieudit/queries/address/vintage"
)

const (
	maxAligned     = 48    // streets of a place that are compared word by word
	fewHits        = 8     // best hits that are compared even when a confirmed candidate is found
	maxPosting     = 4_000 // streets that are read for one term
	fewBareTypes   = 24    // streets of a kind, if no more, that are all looked at
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

// collectOwn judges the streets of all communes that the question may mean, then those of everywhere. A place is
// skipped where even its best street would score less than the best candidate. Once a confirmed candidate lies in
// a named commune, a commune that only has the postcode is searched for rivals alone.
func (s *searcher) collectOwn() {
	for _, p := range s.found.places {
		if s.budget.left <= 0 {
			return
		}
		best, isNamed := s.ranking.namedBest()
		switch {
		case s.scoreBound(p) < s.ranking.list.top() || s.ranking.hasConfirmed() && p.name != vintage.None && p.sim < literalSim:
		case isNamed && p.name == vintage.None:
			for _, h := range s.streets.findRivals(p, best.contiguous) {
				s.match.matchStreet(p, h.street)
			}
		default:
			s.judgeStreets(p)
		}
	}
	if s.mayLieElsewhere() {
		if s.postcode.city != nil {
			s.judgeArea(s.postcode.city.within(s.scope.Communes), s.streetWords(place{}))
		}
		s.judgeEverywhere()
	}
}

// mayLieElsewhere says whether the communes that were tried leave open where the address lies. A typed postcode
// settles it at a lower score, because the address must lie there.
func (s *searcher) mayLieElsewhere() bool {
	c := s.ranking.list.first()
	if c != nil && (c.Type == Municipality && c.IsTyped() || isOfStreetName(s.q, c.place)) {
		return true // 17 Maison Rouge, route du Moulin de Chaze
	}
	if s.ranking.list.top() < placedScore || s.scope.Around != nil && !s.isLocated(c) {
		return true
	}
	return s.ranking.list.top() < likelyScore && !c.isCertain && s.q.Postcode.Code == 0
}

// isOfStreetName reports whether the words of a place stand behind de, du or des, or are only a part of its name, and nothing else
// says that they name a place: they may as well end the name of a street.
func isOfStreetName(q *parse.Question, p place) bool {
	at := p.at &^ p.departmentAt
	if at == 0 || q.Completing || p.hasTypedCode || at&q.PlaceOnly != 0 {
		return false
	}
	if p.name != vintage.None && p.sim < literalSim && q.Terms[at.First()].Before&text.Break == 0 {
		return true
	}
	for i := at.First() - 1; i > 0 && q.Terms[i+1].Before&text.Break == 0; i-- {
		switch q.Terms[i].Text {
		case "de", "du", "des", "d":
			return true
		case "la", "le", "les", "l":
		default:
			return false
		}
	}
	return false
}

// scoreBound is the highest score that a street of a place can have. It assumes that the street and the number fit
// perfectly.
func (s *searcher) scoreBound(p place) int32 {
	e := evidence{hasStreet: true, streetFit: 1000, hasNumber: true, hasPlace: p.name != vintage.None, placeSim: p.sim, isLate: true,
		hasCode: s.scope.Cited != nil, isCoded: s.scope.Cited.Has(p.commune)}
	if s.postcode.code != 0 {
		e.postcode = samePostcode
		if !p.hasTypedCode {
			e.postcode = regionPostcode
		}
	}
	return e.score()
}

// isLocated says whether anything typed says where a candidate lies.
func (s *searcher) isLocated(c *Candidate) bool {
	return c.name != vintage.None || c.hasTypedCode || c.departmentAt != 0 || s.scope.Cited != nil && s.scope.Cited.Has(c.Commune)
}

// namedBest is the best candidate, and whether it is confirmed and lies in a commune that the words name.
func (r *ranker) namedBest() (c *Candidate, ok bool) {
	c = r.list.first()
	return c, c != nil && c.IsSound && c.name != vintage.None && r.q.Distinctive(c.used) != 0
}

// hasConfirmed says whether the best candidate is sound.
func (r *ranker) hasConfirmed() bool {
	c := r.list.first()
	return c != nil && c.IsSound
}

// judgeStreets judges the commune and its streets that the remaining words may name, the heaviest hits first. It
// stops at a hit that weighs less than three fifths of the best, and after a few hits at one below nine tenths
// once a candidate is confirmed. It judges all hits while the best candidate needs a lieu-dit or the like for some
// words, since another street may hold the same words the other way round. It also judges those that hold a word which
// the best candidate leaves unread, since the others may be the lieu-dit there.
func (s *searcher) judgeStreets(p place) {
	words := s.streetWords(p)
	if p.at&unfinishedWord(s.q) == 0 || p.sim >= literalSim || s.q.Distinctive(words)|innerTypes(s.q, words) != 0 {
		hits := s.streets.findStreets(p, words, s.ranking.hasConfirmed())
		for i, h := range hits {
			weak := h.weight*5 < hits[0].weight*3 || i >= fewHits && h.weight*10 < hits[0].weight*9 && s.ranking.hasConfirmed()
			if weak && !s.ranking.isSplit() {
				if !s.leavesWords(p, i) {
					break
				}
				if s.ranking.list.first() != nil && !s.holdsLeftWord(h.street) {
					continue
				}
			}
			s.match.matchStreet(p, h.street)
		}
	}
	s.match.matchCommune(p)
}

// unfinishedWord is the word that may still grow.
func unfinishedWord(q *parse.Question) parse.Mask {
	if q.Unfinished < 0 {
		return 0
	}
	return parse.Bit(q.Unfinished)
}

// isSplit says whether the best candidate is confirmed with words that are not in the name of its street.
func (r *ranker) isSplit() bool {
	c := r.list.first()
	return c != nil && c.IsSound && c.otherNames != 0
}

// leavesWords reports whether the best candidate lies in a place and leaves words unread that another street may hold. If there is
// no candidate at all, the first hits may hold what is meant.
func (s *searcher) leavesWords(p place, hit int) bool {
	c := s.ranking.list.first()
	if c == nil {
		return hit < fewHits
	}
	return c != nil && c.Commune == p.commune && c.Street != vintage.None && leftWords(s.q, c) != 0
}

// leftWords are the words that tell streets apart and that a candidate leaves unread.
func leftWords(q *parse.Question, c *Candidate) parse.Mask {
	return q.Distinctive(c.unread) &^ q.PlaceOnly
}

// holdsLeftWord reports whether the name of a street holds a word, letter for letter, that the best candidate leaves unread.
func (s *searcher) holdsLeftWord(street uint32) bool {
	left := leftWords(s.q, s.ranking.list.first())
	name := s.v.NameTerms(s.v.StreetName(street))
	s.budget.left -= name.Len()
	for i := range s.q.Terms {
		for j := range name.Len() {
			if left.Has(i) && s.lexicon.sim(i, name.At(j)) >= literalSim {
				return true
			}
		}
	}
	return false
}

// streetFinder finds the streets of a place whose names share words with a question.
type streetFinder struct {
	*query
	scratch []hit // is used again by each look-up
}

// findRivals are the streets of a place that hold nine tenths of the distinctive words among some. No other street can score as well
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

// findStreets are the streets of a place whose names share words with the question, the heaviest first. Finished
// distinctive words are looked up first, because few streets hold them. Prefixes, links and kinds of streets are
// looked up only where those do not find nearly all. Links and kinds are not looked up in a commune for which only
// a doubtful name speaks, and neither they nor prefixes if a candidate is confirmed already.
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

// addBareTypes adds the streets of a kind that was typed, if few have it and no hit does. Their whole name may be the kind, and
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
		least := maxWeight(all)*3/5 + 1 // so that it is judged
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

// gatherRare adds the hits of links and kinds of streets, as far as few streets hold them. Where there are no
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

// gatherByPrefix adds the hits of words that are prefixes. Where the prefixes stand for too many terms, it reads
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

// scanNames adds the streets of a range whose names hold some of the words, letter for letter, misspelt or as a
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

// nameHasPrefix says whether a street's name holds a term that a word may become.
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

// rankHits are the heaviest hits, in descending order. Where a hit that is left out weighs nearly as much as those
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
