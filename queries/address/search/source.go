package search

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	"lieudit/queries/address/parse"
	"lieudit/queries/address/text"
	"lieudit/queries/address/vintage"
)

// Source says which streets, localities and communes of a vintage may be meant by words. It is safe for concurrent use.
type Source interface {
	// Find answers all queries at once, in their order. Its candidates need not fit: the search matches them.
	Find(ctx context.Context, queries []CandidateQuery) ([]CandidateResult, error)
}

// CandidateQuery searches for what holds all of some words in its own names or in those of its commune, exactly or nearly so.
// The last word may be the beginning of one.
type CandidateQuery struct {
	Words       []string // as terms of the vintage are written; empty: no constraint by words
	Communes    bool     // communes are wanted, not streets and localities
	Within      []uint32 // ordinals of the communes in which it lies; nil: any
	Postcodes   []string // its commune has one of them; empty: any
	Departments []string // it lies in one of them; empty: any
	Limit       int

	whole bool // the query finds everything of its kind that the question's words confirm
}

// CandidateResult is the result of a query.
type CandidateResult struct {
	Entities []uint32 // ordinals of streets, or of communes, the likeliest first
	More     bool     // there may be others
}

// searchSource relaxes the queries to the source until no better candidate is possible.
func (s *searcher) searchSource(ctx context.Context, result *Result) error {
	n, k := &namedEntities{v: s.v}, newQueryPlanner(s.query, s.communes.recognize().places)
	isSearched := false
	for queries := range k.rounds() {
		found, err := s.index.source.Find(ctx, queries)
		if err == nil && len(found) != len(queries) {
			err = fmt.Errorf("%d answers to %d queries", len(found), len(queries))
		}
		if err != nil {
			return err
		}
		for i, a := range queries {
			if a.whole && found[i].More {
				result.leftOut = append(result.leftOut, a.Communes)
			}
		}
		if isNew := n.add(queries, found); isNew || !isSearched {
			isSearched = true
			s.named, s.ranking.list.best = n, s.ranking.list.best[:0]
			s.lexicon.reset(n)
			s.search()
		}
		if s.budget.left <= 0 || s.ranking.isSettled() && !k.mayBeBegun(s.ranking.list.first()) {
			break
		}
	}
	return nil
}

// namedEntities are the entities that a source named for a question: nothing else is considered, and a word stands only for
// terms of theirs.
type namedEntities struct {
	v        *vintage.Vintage
	streets  []uint32 // in their order, which is that of communes
	communes Area     // theirs, and those named themselves
	terms    []uint32 // of all their names
	sounds   map[string][]uint32
}

// add adds the results of queries, and reports whether any of them is new.
func (n *namedEntities) add(queries []CandidateQuery, found []CandidateResult) bool {
	streets, communes := len(n.streets), len(n.communes)
	for i, f := range found {
		if queries[i].Communes {
			n.communes = append(n.communes, f.Entities...)
			continue
		}
		n.streets = append(n.streets, f.Entities...)
		for _, street := range f.Entities {
			n.communes = append(n.communes, n.v.StreetCommune(street))
		}
	}
	n.streets, n.communes = NewArea(n.streets), NewArea(n.communes)
	if len(n.streets) == streets && len(n.communes) == communes {
		return false
	}
	n.addTerms()
	return true
}

// addTerms adds the terms of all their names.
func (n *namedEntities) addTerms() {
	n.terms = n.terms[:0]
	for _, c := range n.communes {
		for p, to := n.v.CommunePlaces(c); p < to; p++ {
			n.addName(n.v.Place(p).Name)
		}
	}
	for _, street := range n.streets {
		n.addName(n.v.StreetName(street))
		for f, to := n.v.StreetFacets(street); f < to; f++ {
			n.addName(n.v.Facet(f).LieuDit)
		}
	}
	n.terms, n.sounds = NewArea(n.terms), nil
}

// addName adds the terms of a name.
func (n *namedEntities) addName(name uint32) {
	terms := n.v.NameTerms(name)
	for i := range terms.Len() {
		n.terms = append(n.terms, terms.At(i))
	}
}

// Like calls yield with their terms within n edits.
func (n *namedEntities) Like(term string, edits int, yield func(uint32, int) bool) {
	for _, t := range n.terms {
		other := string(n.v.Term(t))
		if d := text.Distance(term, other, edits); d <= edits && !isNumber(other) && !yield(t, d) {
			return
		}
	}
}

// isNumber reports whether a term is a number, which has no misspellings.
func isNumber(term string) bool { return term != "" && term[0] >= '0' && term[0] <= '9' }

// Sounding calls yield with their terms that sound the same.
func (n *namedEntities) Sounding(sound string, yield func(uint32) bool) {
	if n.sounds == nil {
		n.sounds = make(map[string][]uint32, len(n.terms))
		for _, t := range n.terms {
			of := text.PhoneticKey(string(n.v.Term(t)))
			n.sounds[of] = append(n.sounds[of], t)
		}
	}
	for _, t := range n.sounds[sound] {
		if !yield(t) {
			return
		}
	}
}

// collectNamed matches what a source named, first in the communes that the words name or that are expected, then anywhere.
func (s *searcher) collectNamed() {
	n := s.named
	isElsewhere := func(p place) bool { return !n.communes.Has(p.commune) }
	places := append(s.expectedPlaces(), slices.DeleteFunc(slices.Clone(s.found.places), isElsewhere)...)
	for _, p := range s.communes.orderPlaces(places) {
		words := s.streetWords(p)
		if p.at&unfinishedWord(s.q) == 0 || p.sim >= literalSim || s.q.Distinctive(words) != 0 {
			s.matchNamed(p)
		}
		s.match.matchCommune(p)
	}
	if s.mayLieElsewhere() {
		for _, c := range n.communes {
			if p := s.communes.unnamedPlace(c, false); p.at != 0 {
				s.matchNamed(p)
			}
			s.matchNamed(place{commune: c, name: vintage.None})
		}
	}
}

// matchNamed matches the streets of a place that a source named.
func (s *searcher) matchNamed(p place) {
	from, to := s.v.CommuneStreets(p.commune)
	streets := s.named.streets
	at, _ := slices.BinarySearch(streets, from)
	for ; at < len(streets) && streets[at] < to && s.budget.left > 0; at++ {
		s.match.matchStreet(p, streets[at])
	}
}

// expectedPlaces are the communes that a source named in which answers may lie although nothing typed names them.
func (s *searcher) expectedPlaces() (all []place) {
	isExpected := func(c uint32) bool {
		return slices.ContainsFunc([]Area{s.scope.Cited, s.scope.Around, s.scope.Communes, s.postcode.nearCommunes}, func(a Area) bool { return a != nil && a.Has(c) })
	}
	for _, c := range s.named.communes {
		if p := s.communes.unnamedPlace(c, s.postcode.isOf(c) || s.postcode.isCode(c)); p.hasTypedCode || isExpected(c) {
			all = append(all, p)
		}
	}
	return all
}

const (
	streetLimit    = 96   // streets that a query may lead to
	shortenedLimit = 256  // streets if a word is left out, which may be the distinctive one
	communeLimit   = 16   // communes
	maxWithin      = 1000 // communes to which a query is confined by name
	maxDropped     = 6    // words that are left out in turn
	maxAlone       = 8    // words that are searched for one at a time
	maxSpellings   = 4    // spellings of a word that the vintage does not have
)

// queryPlanner plans the queries of a question to a source. A source finds what holds all words of a query, and only the last of
// them may be unfinished; so words that may be unfinished, or of no street, are searched for one by one.
type queryPlanner struct {
	*query
	words       parse.Mask // that lead to an address
	numbers     parse.Mask // that may be part of a name
	distinctive parse.Mask // words that tell streets apart, and the unfinished one
	streets     parse.Mask // of these, those that name no commune
	meant       Area       // the communes that words name, with those of the postcode

	hasPlannedSingleWords bool // for each word
}

// newQueryPlanner returns the planner of a question whose places are recognised.
func newQueryPlanner(c *query, places []place) *queryPlanner {
	k := &queryPlanner{query: c}
	k.words, k.numbers = k.readSearchWords()
	k.distinctive = c.q.Distinctive(k.words) | k.words&unfinishedWord(c.q)
	var naming parse.Mask
	k.meant, naming = namedCommunes(places)
	if k.streets = k.distinctive &^ naming; k.streets == 0 {
		k.streets = k.distinctive
	}
	return k
}

// namedCommunes returns the communes that words name where one is expected, with those of the postcode, and these words.
// Without such words there are no communes.
func namedCommunes(places []place) (communes Area, naming parse.Mask) {
	for _, p := range places {
		switch {
		case p.name == vintage.None && p.hasTypedCode:
			communes = append(communes, p.commune)
		case p.name != vintage.None && p.isLate && p.sim >= boundSim:
			communes, naming = append(communes, p.commune), naming|p.at
		}
	}
	if naming == 0 {
		return nil, 0
	}
	return NewArea(communes), naming
}

// rounds are the queries of a question: all its words within its postcode, then anywhere, then each word alone, then
// without the kind of street, then with one word less, then with other spellings. While a question is typed its words are
// more likely unfinished than of another place, so single words come first. No query is made twice, and there is
// none if the scope lets nothing through.
func (k *queryPlanner) rounds() iter.Seq[[]CandidateQuery] {
	rounds := [...]func() []CandidateQuery{k.planStrictly, k.planAnywhere, k.planSingleWords, k.planLoosely, k.planShortened, k.planRespelt}
	if k.q.Completing {
		rounds[1], rounds[2] = rounds[2], rounds[1]
	}
	return func(yield func([]CandidateQuery) bool) {
		var before []CandidateQuery
		for i := 0; i < len(rounds) && (k.scope.Communes == nil || len(k.scope.Communes) > 0); i++ {
			known := len(before)
			for _, a := range rounds[i]() {
				if !a.isUnconstrained() && !slices.ContainsFunc(before, a.isSame) {
					before = append(before, a)
				}
			}
			if fresh := before[known:]; len(fresh) > 0 && !yield(fresh) {
				return
			}
		}
	}
}

// readSearchWords are the words that lead to an address: no links, no complements, no numbers and what goes with them. Numbers may
// be part of a name, unless they come first or lead to the kind of a street.
func (k *queryPlanner) readSearchWords() (words, numbers parse.Mask) {
	all := k.q.Words() &^ k.q.Complement &^ k.q.Postcode.PrefixAt &^ k.division.at
	for i, t := range k.q.Terms {
		switch {
		case !all.Has(i):
		case t.Digits && leadsToStreet(k.q, i):
		case t.Digits:
			numbers |= parse.Bit(i)
		case i == k.q.Unfinished:
			words |= parse.Bit(i)
		case len(t.Typed) == 1 && len(t.Text) == 1 || text.ClassOf(t.Text) == text.StopWord || i > 0 && k.q.Terms[i-1].Digits && k.q.IsRep(i):
		default:
			words |= parse.Bit(i)
		}
	}
	if words != 0 {
		numbers &^= parse.Bit(all.First())
	}
	return words, numbers
}

// leadsToStreet reports whether a number stands before a kind of street, as house numbers do.
func leadsToStreet(q *parse.Question, i int) bool {
	if i++; i < len(q.Terms) && q.IsRep(i) {
		i++
	}
	return i < len(q.Terms) && text.ClassOf(q.Terms[i].Text) == text.StreetType
}

// planStrictly searches for all words. A user who is still typing also sees streets of another kind; communes come later if a
// number opens the line.
func (k *queryPlanner) planStrictly() []CandidateQuery {
	streets := k.confine(k.queryFor(k.words))
	streets.whole = true
	queries := []CandidateQuery{streets}
	if k.numbers != 0 {
		queries = append(queries, k.confine(k.queryFor(k.words|k.numbers)))
	}
	if k.q.Completing {
		queries = append(queries, k.confine(k.queryFor(k.distinctive)))
	}
	queries = append(queries, k.confineAround(k.queryFor(k.words))...)
	if k.words&unfinishedWord(k.q) != 0 {
		for n := range k.spellings(k.q.Unfinished)[1:] {
			other := k.querySpelt(k.words, k.spellLast(k.words, n+1))
			queries = append(append(queries, k.confine(other)), k.confineAround(other)...)
		}
	}
	if k.words != 0 && k.q.Terms[(k.q.Words()&^k.q.Complement).First()].Digits {
		return queries
	}
	return append(queries, k.planCommunes())
}

// planAnywhere searches for all words wherever they are.
func (k *queryPlanner) planAnywhere() []CandidateQuery { return []CandidateQuery{k.queryFor(k.words)} }

// planCommunes searches for communes by all words.
func (k *queryPlanner) planCommunes() CandidateQuery {
	if !k.wantsType(Municipality) {
		return CandidateQuery{} // is left out
	}
	a := k.queryFor(k.words)
	if k.words == 0 {
		a = k.confine(a)
	}
	a.Communes, a.Limit, a.whole = true, communeLimit, true
	return a
}

// planSingleWords searches for each word of streets alone.
func (k *queryPlanner) planSingleWords() []CandidateQuery {
	k.hasPlannedSingleWords = true
	return k.planEachWord(k.spellings)
}

// planEachWord searches for each word of streets alone, in each of its spellings, if something typed says which communes are
// meant.
func (k *queryPlanner) planEachWord(spellings func(int) []string) (queries []CandidateQuery) {
	for n := range maxSpellings {
		for i := range k.q.Terms {
			if !k.streets.Has(i) || n >= len(spellings(i)) {
				continue
			}
			a, isNarrow := k.narrow(k.querySpelt(parse.Bit(i), func(i int) string { return spellings(i)[n] }))
			if !isNarrow {
				return nil
			}
			queries = append(queries, a)
		}
	}
	return queries[:min(len(queries), maxAlone)]
}

// narrow confines a query to the communes that were typed in some form, and reports whether any were.
func (k *queryPlanner) narrow(a CandidateQuery) (CandidateQuery, bool) {
	if k.scope.Cited == nil && len(k.meant) > 0 && len(k.meant) <= maxWithin {
		a.Within = k.meant
		return a, true
	}
	a, isConfined := k.confined(a)
	if !isConfined && k.scope.Around != nil {
		a.Within, isConfined = k.scope.Around, true
	}
	return a, isConfined
}

// mayBeBegun reports whether the best candidate holds another word than one that was typed, which may be the beginning of a word
// that was not searched for yet: only the last word of a query may be one.
func (k *queryPlanner) mayBeBegun(c *Candidate) bool {
	if !k.q.Completing || k.hasPlannedSingleWords || c == nil || c.fuzzy&^unfinishedWord(k.q) == 0 || k.distinctive.Count() < 2 {
		return false
	}
	_, isNarrow := k.narrow(CandidateQuery{})
	return isNarrow
}

// planLoosely searches without the kind of street, and for communes.
func (k *queryPlanner) planLoosely() []CandidateQuery {
	return []CandidateQuery{k.confine(k.queryFor(k.distinctive)), k.queryFor(k.distinctive), k.planCommunes()}
}

// planShortened searches for words without one of the distinctive ones, each in turn. The kind of street is left out too if
// enough is left.
func (k *queryPlanner) planShortened() (queries []CandidateQuery) {
	words, distinctive := k.words, k.q.Distinctive(k.words)
	if distinctive.Count() > 2 {
		words = distinctive
	}
	for i := range k.q.Terms {
		if rest := words &^ parse.Bit(i); distinctive.Has(i) && k.q.Distinctive(rest) != 0 && len(queries) < maxDropped {
			a := k.queryFor(rest)
			a.Limit = shortenedLimit
			queries = append(queries, a)
		}
	}
	return queries
}

// planRespelt replaces the words that the vintage does not have with its most similar words, and searches: for each of
// those that may be of a street alone, then for all together.
func (k *queryPlanner) planRespelt() []CandidateQuery {
	alike := k.findAlike()
	queries := k.planEachWord(func(i int) []string { return alike[i] })
	for n := range maxSpellings {
		isNew := false
		a := k.querySpelt(k.words, func(i int) string {
			if len(alike[i]) == 0 {
				return k.q.Terms[i].Text
			}
			isNew = isNew || n < len(alike[i])
			return alike[i][min(n, len(alike[i])-1)]
		})
		if !isNew {
			break
		}
		queries = append(append(queries, k.confine(a)), k.confineAround(a)...)
	}
	return queries
}

// findAlike returns the words of the vintage that are most like those it does not have, not even as the beginning of a word while they are
// typed.
func (k *queryPlanner) findAlike() (all [parse.MaxTerms][]string) {
	l := newLexicon(k.v, k.q, k.v, k.budget)
	if k.q.Completing {
		l.addPrefixes(k.words)
	}
	unknown := k.words &^ l.prefixes
	for i := range k.q.Terms {
		if !unknown.Has(i) || len(l.alternatives[i]) > 0 {
			continue
		}
		l.addFuzzy(i)
		for _, a := range l.alternatives[i][:min(len(l.alternatives[i]), maxSpellings)] {
			all[i] = append(all[i], string(k.v.Term(a.term)))
		}
	}
	return all
}

// spellings are a word as terms are written and, while it is being typed, also unchanged and as the terms that it begins in other
// letters. An abbreviation with which its long form begins finds that as a prefix.
func (k *queryPlanner) spellings(i int) []string {
	t := k.q.Terms[i]
	if !k.q.Completing {
		return []string{t.Text}
	}
	all := []string{t.Typed}
	if !strings.HasPrefix(t.Text, t.Typed) {
		all = []string{t.Text, t.Typed}
	}
	if len(t.Typed) < 3 {
		return all
	}
	return append(all, text.BegunTerms(t.Typed)...)
}

// spellLast spells words as terms are written, and the last one in one of its spellings.
func (k *queryPlanner) spellLast(words parse.Mask, n int) func(int) string {
	return func(i int) string {
		if i == words.Last() {
			return k.spellings(i)[n]
		}
		return k.q.Terms[i].Text
	}
}

// queryFor searches for words within the scope.
func (k *queryPlanner) queryFor(words parse.Mask) CandidateQuery {
	return k.querySpelt(words, k.spellLast(words, 0))
}

// querySpelt does the same with words that are spelt already.
func (k *queryPlanner) querySpelt(words parse.Mask, spell func(int) string) CandidateQuery {
	a := CandidateQuery{Postcodes: k.scope.Postcodes, Departments: k.scope.Departments, Limit: streetLimit}
	if len(k.scope.Communes) <= maxWithin {
		a.Within = k.scope.Communes
	}
	if len(a.Departments) == 0 {
		a.Departments = k.division.departments
	}
	for i := range k.q.Terms {
		if words.Has(i) {
			a.Words = append(a.Words, spell(i))
		}
	}
	return a
}

// confine limits a query to the typed code of a commune or to the typed postcode, or to what it may have been meant to be, if the
// vintage knows it.
func (k *queryPlanner) confine(a CandidateQuery) CandidateQuery {
	a, _ = k.confined(a)
	return a
}

// confined does the same, and reports whether the query was limited.
func (k *queryPlanner) confined(a CandidateQuery) (CandidateQuery, bool) {
	switch {
	case k.scope.Cited != nil && len(k.scope.Cited) <= maxWithin:
		a.Within = k.scope.Cited
	case k.postcode.code != 0 && k.v.PostcodeCommunes(k.postcode.code).Len() > 0:
		a.Postcodes = []string{PostcodeText(k.postcode.code)}
	case k.postcode.begunCommunes != nil && len(k.postcode.begunCommunes) <= maxWithin:
		a.Within = k.postcode.begunCommunes
	case len(k.postcode.nearCommunes) > 0 && len(k.postcode.nearCommunes) <= maxWithin:
		a.Within = k.postcode.nearCommunes
	default:
		return a, false
	}
	return a, true
}

// confineAround limits a query to the communes around the position, if one was given.
func (k *queryPlanner) confineAround(a CandidateQuery) []CandidateQuery {
	if k.scope.Around == nil {
		return nil
	}
	a.Within = k.scope.Around
	return []CandidateQuery{a}
}

// isUnconstrained reports whether a query would match everything.
func (a CandidateQuery) isUnconstrained() bool {
	return len(a.Words) == 0 && len(a.Postcodes) == 0 && len(a.Within) == 0
}

// isSame reports whether two queries search for the same.
func (a CandidateQuery) isSame(b CandidateQuery) bool {
	return a.Communes == b.Communes && slices.Equal(a.Words, b.Words) && slices.Equal(a.Within, b.Within) &&
		slices.Equal(a.Postcodes, b.Postcodes) && slices.Equal(a.Departments, b.Departments)
}
