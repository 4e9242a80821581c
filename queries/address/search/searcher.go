package search

import (
	"math"
	"strings"

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
// skipped if even its best street would score less than the best candidate. Once a confirmed candidate lies in
// a named commune, a commune that only has the postcode is searched for rivals only.
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

// leavesWords reports whether the best candidate lies in a place but leaves words unread that another street may hold. If there is
// no candidate at all, the first hits may hold what is meant.
func (s *searcher) leavesWords(p place, hit int) bool {
	c := s.ranking.list.first()
	if c == nil {
		return hit < fewHits
	}
	return c != nil && c.Commune == p.commune && c.Street != vintage.None && leftWords(s.q, c) != 0
}

// leftWords are the distinctive words that a candidate leaves unread.
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

// isOfStreetName reports whether the words of a place follow de, du or des, or are only a part of its name, and nothing else
// shows that they name a place: they may just as well end the name of a street.
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

// isLocated reports whether anything typed gives the location of a candidate.
func (s *searcher) isLocated(c *Candidate) bool {
	return c.name != vintage.None || c.hasTypedCode || c.departmentAt != 0 || s.scope.Cited != nil && s.scope.Cited.Has(c.Commune)
}

// searchEverywhere matches the streets that the words may name if no commune is certain. It visits streets in
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

const (
	maxRewrites  = 4            // each one is a search
	rewriteSteps = MaxSteps / 4 // each; together they cost as much as the first reading
	rewriteCost  = 150          // how much better than the typed words a rewriting must score
	longestSplit = 20           // most letters of a word that is split; each position is looked up
)

// rewriter finds other ways to write a question after its first reading.
type rewriter struct {
	*query
	found   recognition
	ranking *ranker
}

// rewrites are other ways to write a question whose words do not all fit. A space is put in or left out (noisyle
// grand, belle vue). Letters replace digits (b0ndy), and digits replace letters (l2 rue). Words that name a
// commune are kept.
func (w rewriter) rewrites() (all []*parse.Question) {
	add := func(from, to int, with string) {
		if other, ok := w.q.Rewrite(from, to, with); ok && with != "" && len(all) < maxRewrites {
			all = append(all, other)
		}
	}
	for i := 0; i < len(w.q.Terms); i++ {
		if to := mixedRun(w.q, i); to > i {
			word, digits := w.readMixedRun(i, to)
			add(i, to, word)
			add(i, to, digits)
			i = to - 1
			continue
		}
		if !isWord(w.q, i) {
			continue
		}
		if apart := w.splitWord(w.q.Terms[i].Typed); !w.found.namesCommune(i) && (!w.lexicon.hasExact(i) || areLinks(apart)) {
			add(i, i+1, apart)
		} else if !w.found.namesCommune(i) {
			add(i, i+1, w.splitInPlace(w.q.Terms[i].Typed))
		}
		add(i, i+1, w.initials(i))
		if i+1 < len(w.q.Terms) && isWord(w.q, i+1) && !w.found.namesCommune(i+1) && w.q.Terms[i+1].Before&(text.Break|text.Open|text.Close) == 0 {
			add(i, i+2, w.joinWords(i))
		}
	}
	return all
}

// isWord reports whether a term is a word that may be rewritten.
func isWord(q *parse.Question, i int) bool {
	t := q.Terms[i]
	return !t.Digits && !t.Part && q.Words().Has(i) && (i+1 == len(q.Terms) || !q.Terms[i+1].Part)
}

// splitWord splits a word into two that the base has. Of several splits it takes the one whose rarer half most
// streets hold. If there is none it tries three words.
func (w rewriter) splitWord(word string) (best string) {
	most := 0
	for at := 1; at < len(word) && len(word) <= longestSplit; at++ {
		left, right := word[:at], word[at:]
		if len(left) < 2 && left != "d" && left != "l" || len(right) < 2 {
			continue
		}
		if n := min(countHolders(w.v, left), countHolders(w.v, right)); n > most {
			best, most = left+" "+right, n
		}
	}
	if best == "" {
		return w.splitType(word)
	}
	return best
}

// splitType splits a word into a kind of street and two more words: ruedesfleurs.
func (w rewriter) splitType(word string) string {
	for at := 3; at < len(word) && len(word) <= longestSplit; at++ {
		if text.ClassOf(word[:at]) != text.StreetType {
			continue
		}
		if rest := w.splitWord(word[at:]); rest != "" {
			return word[:at] + " " + rest
		}
	}
	return ""
}

// splitInPlace splits a word that the base has into two that stand side by side in the name of a street where the words
// say: Bellevue is another street than Belle Vue, unless the place has only the latter. It is empty if there is none.
func (w rewriter) splitInPlace(word string) string {
	for at := 2; at+2 <= len(word) && len(word) <= longestSplit; at++ {
		left, ok := w.v.FindTerm(word[:at])
		if !ok {
			continue
		}
		if right, ok := w.v.FindTerm(word[at:]); ok && w.placeHasPair(left, right) {
			return word[:at] + " " + word[at:]
		}
	}
	return ""
}

const (
	fewPlaces  = 24 // places whose streets are searched for two terms
	fewHolders = 64 // streets of a place that are searched
)

// placeHasPair reports whether a street of a place that the question names has one term right before another.
func (w rewriter) placeHasPair(before, behind uint32) bool {
	holders := w.v.StreetsWith(behind)
	for _, p := range w.found.places[:min(len(w.found.places), fewPlaces)] {
		if !p.hasTypedCode && (p.name == vintage.None || !p.isLate || p.sim < literalSim) {
			continue
		}
		from, to := w.v.CommuneStreets(p.commune)
		of := holders.Within(from, to)
		w.budget.left -= 4
		for j := range min(of.Len(), fewHolders) {
			w.budget.left--
			if name := w.v.NameTerms(w.v.StreetName(of.At(j))); hasNeighbours(name, before, behind) {
				return true
			}
		}
	}
	return false
}

// hasNeighbours reports whether a name has one term right before another.
func hasNeighbours(name vintage.Column, before, behind uint32) bool {
	for k := 1; k < name.Len(); k++ {
		if name.At(k) == behind && name.At(k-1) == before {
			return true
		}
	}
	return false
}

// initials writes two letters apart that may be the initials of a first name: JP Timbaud. They are empty for any other
// word, and for Roman numerals.
func (w rewriter) initials(i int) string {
	t := w.q.Terms[i]
	if len(t.Typed) != 2 || t.Text != t.Typed || w.q.IsStopWord(i) || w.found.namesCommune(i) || strings.Trim(t.Typed, "ivx") == "" {
		return ""
	}
	return t.Typed[:1] + ". " + t.Typed[1:] + "."
}

// areLinks reports whether two words are both links: dela. Such a word is split even if the base has it, because
// the base has misspellings, too.
func areLinks(words string) bool {
	first, second, ok := strings.Cut(words, " ")
	return ok && text.ClassOf(first) == text.StopWord && text.ClassOf(second) == text.StopWord
}

// countHolders is how many streets and places hold a word. It is 0 for a text that is not exactly one word.
func countHolders(v *vintage.Vintage, word string) (n int) {
	terms := text.Terms(word)
	if len(terms) == 0 || len(terms) > 1 && !terms[1].Part {
		return 0
	}
	id, ok := v.FindTerm(terms[0].Text)
	if !ok {
		return 0
	}
	if text.ClassOf(terms[0].Text) == text.StopWord {
		return math.MaxInt // links have no postings
	}
	return v.StreetsWith(id).Len() + v.PlacesWith(id).Len()
}

// joinWords joins term i and the next one to a word that the base has. It is empty if the base does not have it, and for two
// links, which names join only by mistake.
func (w rewriter) joinWords(i int) string {
	word := w.q.Terms[i].Typed + w.q.Terms[i+1].Typed
	if len(word) < 4 || w.q.IsStopWord(i) && w.q.IsStopWord(i+1) || countHolders(w.v, word) == 0 {
		return ""
	}
	return word
}

// mixedRun is the end of a run of attached digits and letters that begins at term i. It is i itself if there is
// no such run, or if the run is a house number with its letter.
func mixedRun(q *parse.Question, i int) int {
	to := i + 1
	for to < len(q.Terms) && q.Terms[to].Glued && !q.Terms[to-1].Elided {
		to++
	}
	digits := q.Digits() & parse.Span(i, to)
	if isNumberWithID(q, i, to) {
		return i
	}
	if to == i+1 || digits == 0 || digits == parse.Span(i, to) || parse.Span(i, to)&^q.Words() != 0 || q.Terms[i].Digits && to == i+2 {
		return i
	}
	return to
}

// hasMixedWord reports whether the best candidate leaves a word of digits and letters unread. Such a word is worth a
// rewriting even if the score is high.
func (w rewriter) hasMixedWord() bool {
	left := w.ranking.unusedWords()
	for i := range w.q.Terms {
		if left.Has(i) && w.ranking.list.top() < sureScore && mixedRun(w.q, i) > i {
			return true
		}
	}
	return false
}

// hasJoinedWord reports whether the best candidate leaves a word unread that makes a word of the base with the one next to it: Bir Hakeim
// for BirHakeim.
func (w rewriter) hasJoinedWord() bool {
	c := w.ranking.list.first()
	if c == nil || c.Score >= sureScore {
		return false
	}
	for i := range w.q.Terms {
		if !c.unread.Has(i) || !isWord(w.q, i) {
			continue
		}
		if i > 0 && isWord(w.q, i-1) && w.joinWords(i-1) != "" || i+1 < len(w.q.Terms) && isWord(w.q, i+1) && w.joinWords(i) != "" {
			return true
		}
	}
	return false
}

// isNumberWithID reports whether terms are a house number with the name of a building attached: 12C7.
func isNumberWithID(q *parse.Question, from, to int) bool {
	return to == from+3 && q.Terms[from].Digits && len(q.Terms[from+1].Typed) == 1 && q.Terms[from+2].Digits
}

// readMixedRun reads a run of digits and letters as a word of the base, and as a number. Either is empty if the
// run is not one.
func (w rewriter) readMixedRun(from, to int) (word, number string) {
	var letters, digits strings.Builder
	for _, t := range w.q.Terms[from:to] {
		letters.WriteString(strings.Map(letterFor, t.Typed+t.Tail))
		digits.WriteString(strings.Map(digitFor, t.Typed+t.Tail))
	}
	if countHolders(w.v, letters.String()) > 0 {
		word = letters.String()
	}
	if !w.q.Terms[from].Digits && parse.Number(digits.String()) > 0 && digits.Len() <= 5 {
		number = digits.String()
	}
	return word, number
}

// letterFor is the letter that looks like a digit.
func letterFor(r rune) rune {
	switch r {
	case '0':
		return 'o'
	case '1':
		return 'l'
	case '3':
		return 'e'
	case '4':
		return 'a'
	case '5':
		return 's'
	case '8':
		return 'b'
	}
	return r
}

// digitFor is the digit that looks like a letter.
func digitFor(r rune) rune {
	switch r {
	case 'o':
		return '0'
	case 'l', 'i':
		return '1'
	case 's':
		return '5'
	}
	return r
}

// markRewritten lowers the answers to a rewriting and makes none of them certain, since other words were typed.
func (r *Result) markRewritten() {
	for i := range r.Best {
		r.Best[i].IsConfirmed = false
		r.Best[i].Score = max(r.Best[i].Score-rewriteCost, 0)
	}
	r.run.ranking.list.best = r.Best
}
