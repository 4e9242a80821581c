package search

import (
	"cmp"
	"slices"

	"lieudit/queries/address/parse"
	"lieudit/queries/address/text"
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

// rough is a street and how much of what was typed its name may hold.
type rough struct {
	street uint32
	weight int32
}

// ownIndex is the vintage's own index.
type ownIndex struct{ *vintage.Vintage }

// collect gathers candidates in all communes the question may be about, then everywhere. A commune that only has the
// postcode is searched for rivals alone when one that was named has all the words.
func (ownIndex) collect(s *run) {
	places, parts := s.recognize()
	s.parts = parts
	for _, p := range places {
		if s.budget.steps <= 0 {
			return
		}
		best, isNamed := s.namedBest()
		switch {
		case s.bound(p) < s.list.top() || s.hasSound() && p.name != vintage.None && p.sim < literal:
		case isNamed && p.name == vintage.None:
			s.judgeRivals(p, best.run)
		default:
			s.judgeStreets(p)
		}
	}
	if s.mayLieElsewhere() {
		s.judgeEverywhere()
	}
}

// mayLieElsewhere says whether the communes that were tried do not settle where the address lies.
func (s *run) mayLieElsewhere() bool {
	c := s.list.first()
	if s.list.top() < placed || s.scope.Around != nil && !s.isLocated(c) {
		return true
	}
	return s.list.top() < likely && !c.certain && s.q.Postcode.Code == 0
}

// bound is the best score that a street of a place can have.
func (s *run) bound(p place) int32 {
	e := evidence{hasStreet: true, streetFits: 1000, hasNumber: true, hasPlace: p.name != vintage.None, placeSim: p.sim, isLate: true,
		hasCode: s.scope.Cited != nil, isCoded: s.scope.Cited.Has(p.commune)}
	if s.postcode != 0 {
		e.postcode = samePostcode
		if !p.coded {
			e.postcode = regionPostcode
		}
	}
	return e.score()
}

// isLocated says whether anything typed says where a candidate lies.
func (s *run) isLocated(c *Candidate) bool {
	return c.name != vintage.None || c.coded || s.scope.Cited != nil && s.scope.Cited.Has(c.Commune)
}

// namedBest is the best candidate when it is sound and its commune was named.
func (s *run) namedBest() (c *Candidate, ok bool) {
	c = s.list.first()
	return c, c != nil && c.IsSound && c.name != vintage.None && s.q.Telling(c.used) != 0
}

// hasSound says whether the best candidate is sound.
func (s *run) hasSound() bool {
	c := s.list.first()
	return c != nil && c.IsSound
}

// judgeStreets judges the streets of a place that the words left over may name, and the commune itself. Those that promise
// most come first; all are judged when the best one needs words that are not in its name, since others may hold the same
// words the other way round.
func (s *run) judgeStreets(p place) {
	words := s.streetWords(p)
	if p.at&s.growing() == 0 || p.sim >= literal || s.q.Telling(words)|s.innerTypes(words) != 0 {
		hits := s.hits(p, words)
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

// growing is the word that may still grow.
func (s *run) growing() parse.Mask {
	if s.q.Growing < 0 {
		return 0
	}
	return parse.Bit(s.q.Growing)
}

// isSplit says whether the best candidate is sound by words that are not in its name.
func (s *run) isSplit() bool {
	c := s.list.first()
	return c != nil && c.IsSound && c.other != 0
}

// judgeRivals judges the streets of a place that hold all the words that the name of the best candidate holds: nothing else
// can be as good.
func (s *run) judgeRivals(p place, name parse.Mask) {
	from, to := s.v.CommuneStreets(p.commune)
	name = s.q.Telling(name)
	for _, h := range s.best(s.merge(s.gatherAll(name, from, to)), name) {
		if h.weight < 90*s.words.weigh(name) {
			return
		}
		s.judge(p, h.street)
	}
}

// hits are the streets of a place whose names share words with the question, the most promising first. The words that tell
// streets apart lead there; words that are not finished, and the others, when those do not find all they say. The others lead
// nowhere in a commune that little speaks for.
func (s *run) hits(p place, words parse.Mask) []rough {
	from, to := s.v.CommuneStreets(p.commune)
	telling := s.q.Telling(words)
	begun := telling & s.words.begun
	finished := telling &^ s.growing()
	all := s.merge(s.gatherAll(finished, from, to))
	if len(all) > 0 && strongest(all) >= 90*s.words.weigh(finished) && begun&finished == 0 {
		if telling != finished {
			s.shareBegun(all, s.q.Growing)
		}
		if len(all) > fewHits {
			s.shareTypes(all, words&^telling, from, to)
		}
		return s.best(all, words)
	}
	if s.hasSound() {
		return s.best(all, words)
	}
	if begun != 0 {
		all = s.merge(s.gatherBegun(all, begun, finished, from, to))
	}
	if telling != 0 && !p.coded && p.sim < literal {
		return s.best(all, words)
	}
	return s.best(s.merge(s.gatherRare(all, words&^telling, from, to)), words)
}

// shareTypes adds what kinds of streets are worth.
func (s *run) shareTypes(all []rough, words parse.Mask, from, to uint32) {
	for i := range s.q.Terms {
		of := s.words.alternatives[i]
		if words.Has(i) && i != s.q.Growing && len(of) > 0 && text.ClassOf(s.q.Terms[i].Text) == text.Way {
			s.shareTerm(all, s.v.StreetsWith(of[0].term).Within(from, to), s.words.weight[i]*of[0].sim)
		}
	}
}

// shareTerm adds what a word is worth to the streets that hold it.
func (s *run) shareTerm(all []rough, streets vintage.Column, weight int32) {
	c := cursor{column: streets}
	for j := range all {
		if c.seek(all[j].street) {
			all[j].weight += weight
		}
	}
	s.budget.steps -= len(all)
}

// gatherAll are the streets in a range with one of some words, once for each word.
func (s *run) gatherAll(words parse.Mask, from, to uint32) []rough {
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
func (s *run) gatherWord(all []rough, i int, from, to uint32) []rough {
	before := len(all)
	for _, a := range s.words.alternatives[i] {
		all = s.gather(all, s.v.StreetsWith(a.term), rough{from, s.promise(i) * a.sim}, to)
	}
	if len(s.words.alternatives[i]) < 2 {
		return all
	}
	return all[:before+len(once(all[before:]))]
}

// promise is how much a word speaks for a street that holds it. Digits may be the house number.
func (s *run) promise(i int) int32 {
	if s.q.Terms[i].Digits {
		return typeWeight
	}
	return s.words.weight[i]
}

// gatherRare adds the streets in a range with words that say little, as far as few hold them; when there is nothing else,
// those with the rarest.
func (s *run) gatherRare(all []rough, words parse.Mask, from, to uint32) []rough {
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

// gatherBegun adds the streets in a range with terms that words may become. Where these are many, the names of the range are
// read one by one instead.
func (s *run) gatherBegun(all []rough, begun, finished parse.Mask, from, to uint32) []rough {
	var terms uint32
	for i := range s.q.Terms {
		if begun.Has(i) {
			terms += s.words.high[i] - s.words.low[i]
		}
	}
	if terms > min(to-from, maxBegun) {
		return s.scanNames(all[:0], begun|finished, from, min(to, from+maxScan))
	}
	for i := range s.q.Terms {
		if !begun.Has(i) {
			continue
		}
		before := len(all)
		for t := s.words.low[i]; t < s.words.high[i] && s.budget.steps > 0; t++ {
			all = s.gather(all, s.v.StreetsWith(t), rough{from, s.words.weight[i] * s.words.begunSim(i)}, to)
		}
		all = all[:before+len(once(all[before:]))]
	}
	return all
}

// scanNames adds the streets of a range whose names hold some of the words, or terms that those may become.
func (s *run) scanNames(all []rough, words parse.Mask, from, to uint32) []rough {
	for street := from; street < to && s.budget.steps > 0; street++ {
		if w := s.weighName(s.v.NameTerms(s.v.StreetName(street)), words); w > 0 {
			all = append(all, rough{street, w})
		}
		s.budget.steps--
	}
	return all
}

// weighName is what the words are worth that a name holds.
func (s *run) weighName(name vintage.Column, words parse.Mask) (sum int32) {
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

// begins says whether a street's name holds a term that a word may become.
func (s *run) begins(street uint32, i int) bool {
	name := s.v.NameTerms(s.v.StreetName(street))
	for j := range name.Len() {
		if t := name.At(j); t >= s.words.low[i] && t < s.words.high[i] {
			return true
		}
	}
	return false
}

// shareBegun adds what an unfinished word is worth to the streets that hold a term it may become.
func (s *run) shareBegun(all []rough, i int) {
	for j := range all {
		if s.begins(all[j].street, i) {
			all[j].weight += s.words.weight[i] * growSim
		}
	}
	s.budget.steps -= 2 * len(all)
}

func (s *run) gather(all []rough, streets vintage.Column, r rough, to uint32) []rough {
	s.budget.steps -= 2
	streets = streets.From(r.street)
	for j := range min(streets.Len(), maxPosting) {
		street := streets.At(j)
		if street >= to || s.budget.steps <= 0 {
			break
		}
		s.budget.steps--
		all = append(all, rough{street, r.weight})
	}
	return all
}

// once keeps the best reading of one word for each street.
func once(of []rough) []rough {
	slices.SortFunc(of, func(x, y rough) int {
		return cmp.Or(cmp.Compare(x.street, y.street), cmp.Compare(y.weight, x.weight))
	})
	return slices.CompactFunc(of, func(x, y rough) bool { return x.street == y.street })
}

// strongest is the weight of the most promising street.
func strongest(all []rough) (most int32) {
	for _, r := range all {
		most = max(most, r.weight)
	}
	return most
}

// merge sums what speaks for each street.
func (s *run) merge(all []rough) []rough {
	slices.SortFunc(all, func(x, y rough) int { return cmp.Compare(x.street, y.street) })
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

// best are the most promising streets for some words, the first first. When as promising ones are left out, there may be
// more answers than are looked at.
func (s *run) best(all []rough, words parse.Mask) []rough {
	slices.SortFunc(all, func(x, y rough) int {
		return cmp.Or(cmp.Compare(y.weight, x.weight), cmp.Compare(x.street, y.street))
	})
	if len(all) > maxAligned {
		w := all[maxAligned].weight
		s.budget.isCut = s.budget.isCut || w*5 >= all[0].weight*3 && w >= 50*s.words.weigh(s.q.Telling(words))
		all = all[:maxAligned]
	}
	return all
}
