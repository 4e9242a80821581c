package address

import (
	"slices"

	"lieudit/queries/address/text"
	"lieudit/queries/address/vintage"
)

// named is what a source named for a question, as a finder: nothing else is considered, and a word stands for no other
// terms than theirs.
type named struct {
	v        *vintage.Vintage
	streets  []uint32 // in their order, which is that of communes
	communes area     // theirs, and those named themselves
	terms    []uint32 // of all their names
	sounds   map[string][]uint32
}

// add takes in what asks led to.
func (n *named) add(asks []Ask, found []Found) {
	for i, f := range found {
		if asks[i].Communes {
			n.communes = append(n.communes, f.Entities...)
			continue
		}
		n.streets = append(n.streets, f.Entities...)
		for _, s := range f.Entities {
			n.communes = append(n.communes, n.v.StreetCommune(s))
		}
	}
	n.streets, n.communes, n.terms = sorted(n.streets), sorted(n.communes), n.terms[:0]
	n.readAll()
}

// readAll takes in the terms of all their names.
func (n *named) readAll() {
	for _, c := range n.communes {
		for place, to := n.v.CommunePlaces(c); place < to; place++ {
			n.read(n.v.Place(place).Name)
		}
	}
	for _, s := range n.streets {
		n.read(n.v.StreetName(s))
		for f, to := n.v.StreetFacets(s); f < to; f++ {
			n.read(n.v.Facet(f).LieuDit)
		}
	}
	n.terms, n.sounds = sorted(n.terms), nil
}

// read takes in the terms of a name.
func (n *named) read(name uint32) {
	terms := n.v.NameTerms(name)
	for i := range terms.Len() {
		n.terms = append(n.terms, terms.At(i))
	}
}

// Like calls yield with their terms within so many edits.
func (n *named) Like(term string, edits int, yield func(uint32, int) bool) {
	for _, t := range n.terms {
		other := string(n.v.Term(t))
		if d := text.Distance(term, other, edits); d <= edits && !digits(other) && !yield(t, d) {
			return
		}
	}
}

// digits says whether a term is a number, which has no misspellings.
func digits(term string) bool { return term != "" && term[0] >= '0' && term[0] <= '9' }

// Sounding calls yield with their terms that sound the same.
func (n *named) Sounding(sound string, yield func(uint32) bool) {
	if n.sounds == nil {
		n.sounds = make(map[string][]uint32, len(n.terms))
		for _, t := range n.terms {
			of := text.Sound(string(n.v.Term(t)))
			n.sounds[of] = append(n.sounds[of], t)
		}
	}
	for _, t := range n.sounds[sound] {
		if !yield(t) {
			return
		}
	}
}

// collect judges them in the communes that the words name or that are expected, then wherever they lie.
func (n *named) collect(q *question) {
	for _, g := range q.ordered(n.guesses(q)) {
		words := q.words() &^ g.span
		if g.span&q.growing() == 0 || g.sim >= literal || q.telling(words) != 0 {
			n.judge(q, g, words)
		}
		q.judgeCommune(g, words)
	}
	if q.list.top() < placed || q.around != nil && !q.located(&q.list.best[0]) {
		for _, c := range n.communes {
			n.judge(q, guess{commune: c, place: vintage.None}, q.words())
		}
	}
}

// judge judges the streets of a guess.
func (n *named) judge(q *question, g guess, words mask) {
	from, to := n.v.CommuneStreets(g.commune)
	at, _ := slices.BinarySearch(n.streets, from)
	for ; at < len(n.streets) && n.streets[at] < to && q.steps > 0; at++ {
		q.judge(g, n.streets[at], words)
	}
}

// guesses are their communes, as often as the words name them, and once more where nothing need name them.
func (n *named) guesses(q *question) (all []guess) {
	for _, c := range n.communes {
		g := guess{commune: c, place: vintage.None, coded: q.postcode != 0 && q.hasPostcode(c)}
		if g.coded || q.expects(c) {
			all = append(all, g)
		}
		for place, to := n.v.CommunePlaces(c); place < to; place++ {
			g.place = place
			all = q.nameRead(all, g, n.v.BareTerms(n.v.Place(place).Name))
		}
	}
	return all
}

// expects says whether answers may lie in a commune that nothing typed names.
func (q *question) expects(commune uint32) bool {
	for _, a := range [...]area{q.cited, q.around, q.area} {
		if a != nil && a.has(commune) {
			return true
		}
	}
	return false
}

// nameRead adds a guess for each word from which on the name of its place is read, whole or as far as the question goes.
func (q *question) nameRead(all []guess, g guess, name []uint32) []guess {
	for i := range q.terms {
		all = q.nameReadFrom(all, g, name, i)
	}
	return all
}

// nameReadFrom does so for one word.
func (q *question) nameReadFrom(all []guess, g guess, name []uint32, from int) []guess {
	g.sim = 100
	at := from
	for k, term := range name {
		for at > from && at < len(q.terms) && q.words().has(at) && text.ClassOf(q.terms[at].Text) == text.Link {
			at++
		}
		if at == len(q.terms) || !q.words().has(at) {
			return all
		}
		sim := q.sim(at, term)
		if sim == 0 {
			return all
		}
		g.sim = min(g.sim, sim)
		unnamed := len(name) - k - 1
		if unnamed == 0 || g.coded || q.begun(at) {
			r := g
			r.span, r.sim = span(from, at+1), g.sim-int32(min(unnamed, 3))*8
			all = append(all, r)
		}
		at++
	}
	return all
}
