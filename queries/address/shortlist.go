package address

import (
	"cmp"
	"slices"

	"lieudit/queries/address/vintage"
)

// shortlisted is how many candidates are kept: the longest answer, and rivals to judge it by.
const shortlisted = 32

// candidate is an answer under consideration: a street, a row of it, or a commune.
type candidate struct {
	guess
	kind   Type
	street uint32 // vintage.None for a commune
	row    uint32 // vintage.None but for a house number
	stem   mask   // a word read as the beginning of a postcode
	alignment
	numbering
	score int32 // of 10,000
	bonus int32 // for lying near
	sound bool  // every typed word is confirmed
}

// compareCandidates is the order of answers: by score and nearness, then by importance, which is the order of communes and streets.
func compareCandidates(x, y *candidate) int {
	return cmp.Or(cmp.Compare(y.score+y.bonus, x.score+x.bonus), cmp.Compare(x.commune, y.commune), -cmp.Compare(x.street, y.street)*municipal(x, y),
		cmp.Compare(x.row, y.row), cmp.Compare(y.rank(), x.rank()), cmp.Compare(x.place, y.place), cmp.Compare(x.span, y.span))
}

// municipal puts a commune before its streets, and streets in their order.
func municipal(x, y *candidate) int {
	if x.street == vintage.None || y.street == vintage.None {
		return 1
	}
	return -1
}

// shortlist holds the best candidates, the best first, each address once.
type shortlist struct{ best []candidate }

// add takes a candidate in, unless others are better or it is known from a better reading.
func (l *shortlist) add(c *candidate) {
	if n := len(l.best); n == shortlisted && compareCandidates(c, &l.best[n-1]) >= 0 {
		return
	}
	for i := range l.best {
		if b := &l.best[i]; b.commune == c.commune && b.street == c.street && b.row == c.row {
			if compareCandidates(c, b) >= 0 {
				return
			}
			l.best = slices.Delete(l.best, i, i+1)
			break
		}
	}
	at, _ := slices.BinarySearchFunc(l.best, c, func(b candidate, c *candidate) int { return compareCandidates(&b, c) })
	if len(l.best) == shortlisted {
		l.best = l.best[:shortlisted-1]
	}
	l.best = slices.Insert(l.best, at, *c)
}

// top is the score of the best.
func (l *shortlist) top() int32 {
	if len(l.best) == 0 {
		return 0
	}
	return l.best[0].score
}
