package address

import "lieudit/queries/address/vintage"

const (
	// accepted is the score from which on an answer is worth showing.
	accepted = 5000
	// sure is the score at which nothing better is looked for.
	sure = 9700
	// placed is the score from which on the place is believed.
	placed = 7000
	// likely is the score at which words that fit are taken at their word.
	likely = 8000
)

// search finds the candidates of a question, the best first. What can be read letter for letter is not read loosely.
func (q *question) search() []candidate {
	for i := range q.terms {
		if len(q.alts[i]) == 0 && i != q.prefix {
			q.loosen(i)
		}
	}
	q.from.collect(q)
	if !q.settled() && q.loosenAll(q.unused()) {
		q.from.collect(q)
	}
	if q.list.top() < q.doubtful() && q.loosenAll(q.telling(q.words())) {
		q.from.collect(q)
	}
	return q.list.best
}

// doubtful is the score below which words that fit are not taken at their word. Who is still typing will see.
func (q *question) doubtful() int32 {
	if q.prefix >= 0 {
		return placed
	}
	return likely
}

// settled says whether no looser reading can be better: all is found, or all words are and only the number, the
// postcode or the name of the commune is another.
func (q *question) settled() bool {
	return q.list.top() >= sure || q.list.top() >= likely && q.unused()&^q.loosened == 0
}

// unused are the words that the best candidate does not hold as they are.
func (q *question) unused() mask {
	if len(q.list.best) == 0 {
		return q.words()
	}
	b := &q.list.best[0]
	held := b.used&^b.loose | b.numberAt | b.repAt | b.stem
	if b.sim >= literal {
		held |= b.span
	}
	return q.words() &^ held
}

// loosenAll reads words loosely that were not yet, and says whether they may be others than they say.
func (q *question) loosenAll(words mask) (more bool) {
	words &^= q.loosened
	for i := range q.terms {
		if words.has(i) {
			before := len(q.alts[i])
			q.loosen(i)
			more = more || len(q.alts[i]) > before
		}
	}
	return more && q.steps > 0
}

// index is the vintage's own index.
type index struct{ *vintage.Vintage }

// collect gathers candidates in all communes the question may be about, then everywhere. A commune that only has the
// postcode is searched for rivals alone when one that was named has all the words.
func (index) collect(q *question) {
	for _, g := range q.guesses() {
		if q.steps <= 0 {
			return
		}
		named, ok := q.named()
		switch {
		case q.bound(g) < q.list.top() || q.held() && g.place != vintage.None && g.sim < literal:
		case ok && g.place == vintage.None:
			q.rivals(g, named.inName)
		default:
			q.inCommune(g)
		}
	}
	if q.list.top() < placed || q.around != nil && !q.located(&q.list.best[0]) {
		q.everywhere()
	}
}

// bound is the best score that a street of a guess can have.
func (q *question) bound(g guess) int32 {
	var sum shares
	sum.add(streetShare+numberShare, 1000)
	if g.place != vintage.None {
		sum.add(cityShare, g.sim*10)
	}
	if q.cited != nil && !q.cited.has(g.commune) {
		sum.add(cityShare, 0)
	}
	if q.postcode != 0 && !g.coded {
		sum.add(postcodeShare, elsewhereShare)
	}
	return sum.score()
}

// located says whether anything typed says where a candidate lies.
func (q *question) located(c *candidate) bool {
	return c.place != vintage.None || c.coded || q.cited.has(c.commune) && q.cited != nil
}

// named is the best candidate when it is sound and its commune was named.
func (q *question) named() (c *candidate, ok bool) {
	if len(q.list.best) == 0 {
		return nil, false
	}
	c = &q.list.best[0]
	return c, c.sound && c.place != vintage.None && q.telling(c.inName) != 0
}
