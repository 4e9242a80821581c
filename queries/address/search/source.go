package search

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"lieudit/queries/address/parse"
	"lieudit/queries/address/text"
	"lieudit/queries/address/vintage"
)

// Source says which streets, localities and communes of a vintage may be meant by words. It is safe for concurrent use.
type Source interface {
	// Find answers all asks in their order. One call lets a source send them together. What it names need not fit,
	// because the search judges it.
	Find(ctx context.Context, asks []Ask) ([]Found, error)
}

// Ask asks for streets or communes that hold all of some words in their own names or in those of their commune.
// Misspelt words count. The last word may be the beginning of one.
type Ask struct {
	Words       []string // as terms of the vintage are written; none asks for all that the rest lets through
	Communes    bool     // communes are asked for; else streets and localities
	Within      []uint32 // ordinals of the communes it lies in; nil: any
	Postcodes   []string // one of which its commune has; none: any
	Departments []string // one of which it lies in; none: any
	Limit       int

	whole bool // the answer, if complete, holds everything that can confirm the question
}

// Found is what an ask led to.
type Found struct {
	Entities []uint32 // ordinals of streets, or of communes, the likeliest first
	More     bool     // there may be others
}

const (
	askedStreets  = 96   // streets that an ask may name
	askedShort    = 256  // the same when a word is left out; more, since it may be the distinctive one
	askedCommunes = 16   // communes that an ask may name
	maxWithin     = 1000 // communes that an ask may list; more would make it too long
	maxDropped    = 6    // words that are left out in turn
)

// searchSource asks the source less and less strictly and judges all that it has named, until the best candidate
// settles the question. Each round begins with a full budget and an empty list, because the words may now stand
// for more terms.
func (s *searcher) searchSource(ctx context.Context, result *Result) error {
	n := &namedEntities{v: s.v}
	for asks := range s.rounds() {
		found, err := s.x.source.Find(ctx, asks)
		if err == nil && len(found) != len(asks) {
			err = fmt.Errorf("%d answers to %d asks", len(found), len(asks))
		}
		if err != nil {
			return err
		}
		n.add(asks, found)
		for i, a := range asks {
			if a.whole && found[i].More {
				result.leftOut = append(result.leftOut, a.Communes)
			}
		}
		s.retriever, s.budget.left, s.list.best = n, s.budget.total, s.list.best[:0]
		s.lexicon.reset(n)
		if s.search(); len(s.list.best) > 0 && s.isSettled() {
			break
		}
	}
	return nil
}

// rounds are the asks of a question: all words where the postcode says, then anywhere, then without the kind of
// street, then with one word less. An ask is not repeated. Where the scope lets nothing through, there are none.
func (s *searcher) rounds() iter.Seq[[]Ask] {
	words, numbers := s.askable()
	distinctive := s.q.Distinctive(words) | words&s.unfinishedWord()
	rounds := [...]func() []Ask{
		func() []Ask { return s.asksStrictly(words, numbers) },
		func() []Ask { return []Ask{s.ask(words)} },
		func() []Ask { return append(s.asksLoosely(distinctive), s.askCommunes(words)) },
		func() []Ask { return s.asksShortened(words) },
	}
	return func(yield func([]Ask) bool) {
		var before []Ask
		for i := 0; i < len(rounds) && (s.scope.Communes == nil || len(s.scope.Communes) > 0); i++ {
			known := len(before)
			for _, a := range rounds[i]() {
				if !a.isIdle() && !slices.ContainsFunc(before, a.isSame) {
					before = append(before, a)
				}
			}
			if fresh := before[known:]; len(fresh) > 0 && !yield(fresh) {
				return
			}
		}
	}
}

// askable are the words that an ask may hold, and the numbers that it may hold as well. Links, complements and
// repetition indexes lead nowhere. A number may be part of a name, unless it opens the line or a kind of street
// follows it.
func (s *searcher) askable() (words, numbers parse.Mask) {
	all := s.q.Words() &^ s.q.Complement &^ s.q.Postcode.PrefixAt
	for i, t := range s.q.Terms {
		switch {
		case !all.Has(i):
		case t.Digits && s.leadsToStreet(i):
		case t.Digits:
			numbers |= parse.Bit(i)
		case i == s.q.Unfinished:
			words |= parse.Bit(i)
		case len(t.Typed) == 1 && len(t.Text) == 1 || text.ClassOf(t.Text) == text.StopWord || i > 0 && s.q.Terms[i-1].Digits && s.q.IsRep(i):
		default:
			words |= parse.Bit(i)
		}
	}
	if words != 0 {
		numbers &^= parse.Bit(all.First())
	}
	return words, numbers
}

// leadsToStreet says whether a number stands before a kind of street, as house numbers do.
func (s *searcher) leadsToStreet(i int) bool {
	if i++; i < len(s.q.Terms) && s.q.IsRep(i) {
		i++
	}
	return i < len(s.q.Terms) && s.q.IsStreetType(i)
}

// asksStrictly asks for all words, with the numbers and without. An unfinished line also asks without the kind of
// street, so that streets of another kind are shown. Communes are left to a later round where a number opens the
// line.
func (s *searcher) asksStrictly(words, numbers parse.Mask) []Ask {
	streets := s.confine(s.ask(words))
	streets.whole = true
	asks := []Ask{streets}
	if numbers != 0 {
		asks = append(asks, s.confine(s.ask(words|numbers)))
	}
	if s.q.Completing {
		asks = append(asks, s.confine(s.ask(s.q.Distinctive(words)|words&s.unfinishedWord())))
	}
	if s.scope.Around != nil {
		near := s.ask(words)
		near.Within = s.scope.Around
		asks = append(asks, near)
	}
	if words != 0 && s.q.Terms[(s.q.Words()&^s.q.Complement).First()].Digits {
		return asks
	}
	return append(asks, s.askCommunes(words))
}

// askCommunes asks for communes by all words. It is idle where the scope excludes communes.
func (s *searcher) askCommunes(words parse.Mask) Ask {
	if !s.wantsType(Municipality) {
		return Ask{} // is not asked
	}
	a := s.ask(words)
	if words == 0 {
		a = s.confine(a)
	}
	a.Communes, a.Limit, a.whole = true, askedCommunes, true
	return a
}

// asksLoosely asks for each set of words where the postcode says, and anywhere.
func (s *searcher) asksLoosely(of ...parse.Mask) (asks []Ask) {
	for _, words := range of {
		asks = append(asks, s.confine(s.ask(words)), s.ask(words))
	}
	return asks
}

// asksShortened asks for the words without one of the distinctive ones, each in turn, since a source may not know
// a misspelt word.
func (s *searcher) asksShortened(words parse.Mask) []Ask {
	var all []parse.Mask
	distinctive := s.q.Distinctive(words)
	for i := range s.q.Terms {
		if rest := words &^ parse.Bit(i); distinctive.Has(i) && rest != 0 && len(all) < maxDropped {
			all = append(all, rest)
		}
	}
	asks := s.asksLoosely(all...)
	for i := range asks {
		asks[i].Limit = askedShort
	}
	return asks
}

// ask asks for words in all that the scope lets through.
func (s *searcher) ask(words parse.Mask) Ask {
	a := Ask{Postcodes: s.scope.Postcodes, Departments: s.scope.Departments, Limit: askedStreets}
	if len(s.scope.Communes) <= maxWithin {
		a.Within = s.scope.Communes
	}
	for i, t := range s.q.Terms {
		if words.Has(i) {
			a.Words = append(a.Words, t.Text)
		}
	}
	return a
}

// confine narrows an ask to the given code, the typed postcode or the postcodes it may be a misspelling of. It
// leaves the ask as it is where the vintage knows none of these.
func (s *searcher) confine(a Ask) Ask {
	switch {
	case s.scope.Cited != nil && len(s.scope.Cited) <= maxWithin:
		a.Within = s.scope.Cited
	case s.postcode != 0 && s.v.PostcodeCommunes(s.postcode).Len() > 0:
		a.Postcodes = []string{PostcodeText(s.postcode)}
	case s.prefixCommunes != nil && len(s.prefixCommunes) <= maxWithin:
		a.Within = s.prefixCommunes
	case len(s.nearCommunes) > 0 && len(s.nearCommunes) <= maxWithin:
		a.Within = s.nearCommunes
	}
	return a
}

// isIdle says whether an ask has neither words nor places to narrow it, so that it would name anything.
func (a Ask) isIdle() bool { return len(a.Words) == 0 && len(a.Postcodes) == 0 && len(a.Within) == 0 }

// isSame says whether an ask leads where another does.
func (a Ask) isSame(b Ask) bool {
	return a.Communes == b.Communes && slices.Equal(a.Words, b.Words) && slices.Equal(a.Within, b.Within) &&
		slices.Equal(a.Postcodes, b.Postcodes) && slices.Equal(a.Departments, b.Departments)
}

// namedEntities is all that a source has named for a question. The search considers nothing else, and a misspelt
// word stands only for terms of these names.
type namedEntities struct {
	v        *vintage.Vintage
	streets  []uint32 // in their order, which is that of communes
	communes Area     // theirs, and those named themselves
	terms    []uint32 // of all their names
	sounds   map[string][]uint32
}

// add adds what the asks of one round named.
func (n *namedEntities) add(asks []Ask, found []Found) {
	for i, f := range found {
		if asks[i].Communes {
			n.communes = append(n.communes, f.Entities...)
			continue
		}
		n.streets = append(n.streets, f.Entities...)
		for _, street := range f.Entities {
			n.communes = append(n.communes, n.v.StreetCommune(street))
		}
	}
	n.streets, n.communes, n.terms = NewArea(n.streets), NewArea(n.communes), n.terms[:0]
	n.addTerms()
}

// addTerms collects the terms of all names of the streets and communes.
func (n *namedEntities) addTerms() {
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

// addName adds the terms of one name.
func (n *namedEntities) addName(name uint32) {
	terms := n.v.NameTerms(name)
	for i := range terms.Len() {
		n.terms = append(n.terms, terms.At(i))
	}
}

// Like calls yield with their terms within so many edits.
func (n *namedEntities) Like(term string, edits int, yield func(uint32, int) bool) {
	for _, t := range n.terms {
		other := string(n.v.Term(t))
		if d := text.Distance(term, other, edits); d <= edits && !isNumber(other) && !yield(t, d) {
			return
		}
	}
}

// isNumber says whether a term is a number, which has no misspellings.
func isNumber(term string) bool { return term != "" && term[0] >= '0' && term[0] <= '9' }

// Sounding calls yield with their terms that sound the same. The index of sounds is made at the first call, since
// most questions need none.
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

// collect judges the streets and communes in the places that the words name or that are expected, then wherever
// they lie.
func (n *namedEntities) collect(s *searcher) {
	_, s.mentions = s.recognize()
	for _, p := range s.orderPlaces(n.places(s)) {
		words := s.streetWords(p)
		if p.at&s.unfinishedWord() == 0 || p.sim >= literalSim || s.q.Distinctive(words) != 0 {
			n.judge(s, p)
		}
		s.judgeCommune(p)
	}
	if s.mayLieElsewhere() {
		for _, c := range n.communes {
			n.judge(s, place{commune: c, name: vintage.None})
		}
	}
}

// judge judges the streets of a place.
func (n *namedEntities) judge(s *searcher, p place) {
	from, to := n.v.CommuneStreets(p.commune)
	at, _ := slices.BinarySearch(n.streets, from)
	for ; at < len(n.streets) && n.streets[at] < to && s.budget.left > 0; at++ {
		s.judge(p, n.streets[at])
	}
}

// places are the communes as places: once for each reading of their names, and once without a name where they have
// the postcode or are expected.
func (n *namedEntities) places(s *searcher) (all []place) {
	for _, c := range n.communes {
		p := place{commune: c, name: vintage.None, hasTypedCode: s.hasPostcode(c) || s.isCode(c)}
		if p.hasTypedCode || s.isExpected(c) {
			all = append(all, p)
		}
		for name, to := n.v.CommunePlaces(c); name < to; name++ {
			p.name = name
			all = s.readName(all, p, n.v.BareTerms(n.v.Place(name).Name))
		}
	}
	for i := range all {
		all[i].isLate = s.isLate(all[i].at)
	}
	return all
}

// isExpected says whether answers may lie in a commune that nothing typed names.
func (s *searcher) isExpected(commune uint32) bool {
	for _, a := range [...]Area{s.scope.Cited, s.scope.Around, s.scope.Communes, s.nearCommunes} {
		if a != nil && a.Has(commune) {
			return true
		}
	}
	return false
}

// readName adds a place for each word at which its name begins, whole or as far as the line goes.
func (s *searcher) readName(all []place, p place, name []uint32) []place {
	for i := range s.q.Terms {
		all = s.readNameFrom(all, p, name, i)
	}
	return all
}

// readNameFrom adds the readings of a name that begins at one word.
func (s *searcher) readNameFrom(all []place, p place, name []uint32, from int) []place {
	p.sim = 100
	at := from
	for k, term := range name {
		for at > from && at < len(s.q.Terms) && s.mayName(at) && s.q.IsStopWord(at) {
			at++
		}
		if at == len(s.q.Terms) || !s.mayName(at) {
			return all
		}
		sim := s.lexicon.sim(at, term)
		if sim == 0 {
			return all
		}
		p.sim = min(p.sim, sim)
		unnamed := len(name) - k - 1
		if unnamed == 0 || p.hasTypedCode || s.mayContinue(at) {
			r := p
			r.departmentAt = s.departmentBehind(p.commune, at+1)
			r.at, r.sim = parse.Span(from, at+1)|r.departmentAt, p.sim-int32(min(unnamed, 3))*8
			all = append(all, r)
		}
		at++
	}
	return all
}
