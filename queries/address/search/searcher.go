package search

import (
	"lieudit/queries/address/parse"
	"lieudit/queries/address/text"
	"lieudit/queries/address/vintage"
)

// searcher is the search for one reading of a question.
type searcher struct {
	*query
	communes    recognizer
	streets     streetFinder
	areas       areaFinder
	found       recognition
	named       *namedEntities // by a source; nil: the vintage has an index of its own
	match       matcher
	ranking     ranker
	isCompleted bool // an unfinished line has answers that hold all its words
}

// search reads the words more and more loosely: as typed, as prefixes, as misspelt. It stops at the first reading
// whose best candidate settles the question, since a looser one adds only wrong candidates. Words that the vintage
// does not have are read as misspelt from the start, unless the user is still typing.
func (s *searcher) search() {
	for i := range s.q.Terms {
		if len(s.lexicon.alternatives[i]) == 0 && i != s.q.Unfinished && !s.q.Completing {
			s.lexicon.addFuzzy(i)
		}
	}
	s.collect()
	if s.q.Completing && !s.ranking.isSettled() {
		if s.lexicon.addPrefixes(s.q.Words()) {
			s.collect()
		}
		s.lexicon.addFuzzyAll(s.unknownWords())
	}
	if !s.ranking.isSettled() && s.lexicon.addFuzzyAll(s.ranking.unusedWords()) {
		s.collect()
	}
	if s.ranking.list.top() < doubtScore(s.q) && s.lexicon.addFuzzyAll(s.q.Distinctive(s.q.Words())) {
		s.collect()
	}
}

// unknownWords are the words that stand for no term of the vintage.
func (s *searcher) unknownWords() (out parse.Mask) {
	for i := range s.q.Terms {
		if len(s.lexicon.alternatives[i]) == 0 && !s.lexicon.prefixes.Has(i) {
			out |= parse.Bit(i)
		}
	}
	return out
}

// doubtScore is the score below which even words that fit as typed are read as misspelt. It is lower for an
// unfinished line, because the user sees the answers and types on.
func doubtScore(q *parse.Question) int32 {
	if q.Completing {
		return placedScore
	}
	return likelyScore
}

// isParsable reports whether the line holds anything that an address may consist of.
func (s *searcher) isParsable() bool {
	if s.q.Postcode.Code != 0 || s.scope.Cited != nil || s.q.HasStreetType(s.q.All) || len(s.found.mentions) > 0 {
		return true
	}
	for i := range s.q.Terms {
		if s.q.Terms[i].Digits || len(s.lexicon.alternatives[i]) > 0 || i == s.q.Unfinished && s.lexicon.prefixes.Has(i) {
			return true
		}
	}
	return false
}

// collect matches the candidates of the current readings of the words.
func (s *searcher) collect() {
	s.recognize()
	if s.named != nil {
		s.collectNamed()
	} else {
		s.collectOwn()
	}
}

// recognize finds the communes that the question may mean by the current readings of its words.
func (s *searcher) recognize() {
	s.found = s.communes.recognize()
	s.match.places.found = s.found
}

// collectOwn matches the streets of all communes that the question may mean, then those of everywhere. A place is
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
			s.searchPlace(p)
		}
	}
	if s.mayLieElsewhere() {
		if s.postcode.city != nil {
			s.searchArea(s.postcode.city.within(s.scope.Communes), s.streetWords(place{}))
		}
		s.searchEverywhere()
	}
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

// searchPlace matches the commune and its streets that the remaining words may name, the heaviest hits first. It
// stops at a hit that weighs less than three fifths of the best, and after a few hits at one below nine tenths
// once a candidate is confirmed. It matches all hits while the best candidate needs a lieu-dit or the like for some
// words, since another street may hold the same words the other way round. It also matches those that hold a word which
// the best candidate leaves unread, since the others may be the lieu-dit there.
func (s *searcher) searchPlace(p place) {
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

// holdsLeftWord reports whether the name of a street holds a word, exactly, that the best candidate leaves unread.
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

// mayLieElsewhere reports whether the communes that were tried leave open where the address lies. A typed postcode
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

// isLocated reports whether anything typed says where a candidate lies.
func (s *searcher) isLocated(c *Candidate) bool {
	return c.name != vintage.None || c.hasTypedCode || c.departmentAt != 0 || s.scope.Cited != nil && s.scope.Cited.Has(c.Commune)
}

// searchEverywhere matches the streets that the words may name where no commune is certain. It looks at streets in
// the order of importance, so a name that many communes have is found where most people live. The communes of a
// postcode that was begun come first.
func (s *searcher) searchEverywhere() {
	words := s.streetWords(place{})
	if s.postcode.begunCommunes != nil && s.scope.Communes == nil {
		s.searchArea(s.postcode.begunCommunes, words)
		if s.ranking.list.top() >= placedScore {
			return
		}
	}
	if s.division.at != 0 {
		s.searchArea(s.index.InDepartments(s.division.departments).within(s.scope.Communes), words&^s.division.at)
		if s.ranking.list.top() >= placedScore {
			return
		}
	}
	s.searchArea(s.scope.Communes, words)
}

// searchArea matches the streets of an area whose names hold some words. The names that share the rarest word may be too many for
// those that hold all words and no others to be among the first (Grand Rue), so that these are matched as well.
func (s *searcher) searchArea(area Area, words parse.Mask) {
	hits, ok := s.areas.findInArea(area, words)
	if !ok {
		return
	}
	for _, h := range hits {
		commune := s.v.StreetCommune(h.street)
		if p, ok := s.communes.placeByPrefix(commune); ok {
			s.match.matchStreet(p, h.street)
		}
		s.matchUnnamed(commune, h.street)
	}
	if c := s.ranking.list.first(); !s.q.Completing && s.q.Postcode.Code == 0 && (c == nil || !c.isWhole || c.unread != 0 || c.isMissing) {
		for _, street := range s.areas.findWholeNames(area, words) {
			s.matchUnnamed(s.v.StreetCommune(street), street)
		}
	}
}

// matchUnnamed matches a street of a commune that no word names.
func (s *searcher) matchUnnamed(commune, street uint32) {
	if p := s.communes.unnamedPlace(commune, false); p.at != 0 {
		s.match.matchStreet(p, street)
	}
	s.match.matchStreet(place{commune: commune, name: vintage.None}, street)
}
