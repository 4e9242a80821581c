package address

import (
	"cmp"
	"slices"

	"lieudit/queries/address/vintage"
)

// Engine answers from one vintage. It is safe for concurrent use, until the vintage is closed.
type Engine struct {
	v *vintage.Vintage
}

// New makes an engine of a vintage.
func New(v *vintage.Vintage) *Engine { return &Engine{v: v} }

const (
	// accepted is the score from which on an answer is worth showing.
	accepted = 5000
	// sure is the score at which nothing better is looked for.
	sure = 9700
)

// search finds the candidates of a question, the best first. What can be read letter for letter is not read loosely.
func (q *question) search() []candidate {
	for i := range q.terms {
		if len(q.alts[i]) == 0 && i != q.prefix {
			q.loosen(i)
		}
	}
	found := q.collect()
	if len(found) > 0 && found[0].score >= sure {
		return found
	}
	for i := range q.terms {
		q.loosen(i)
	}
	return merged(append(found, q.collect()...))
}

// collect gathers candidates in all communes the question may be about, then everywhere.
func (q *question) collect() []candidate {
	var found []candidate
	for _, g := range q.guesses() {
		if q.steps <= 0 {
			break
		}
		found = q.inCommune(found, g)
	}
	found = merged(found)
	if len(found) == 0 || found[0].score < 7000 {
		found = merged(q.everywhere(found))
	}
	return found
}

// merged sorts candidates and keeps the best of each address.
func merged(found []candidate) []candidate {
	slices.SortFunc(found, func(x, y candidate) int {
		return cmp.Or(cmp.Compare(y.score, x.score),
			cmp.Compare(x.commune, y.commune), cmp.Compare(x.street, y.street), cmp.Compare(x.row, y.row), cmp.Compare(y.rank(), x.rank()))
	})
	seen := map[[3]uint32]bool{}
	return slices.DeleteFunc(found, func(c candidate) bool {
		key := [3]uint32{c.commune, c.street, c.row}
		if c.kind == Municipality {
			key[1] = vintage.None
		}
		if c.kind != HouseNumber {
			key[2] = vintage.None
		}
		known := seen[key]
		seen[key] = true
		return known
	})
}
