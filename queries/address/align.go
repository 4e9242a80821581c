package address

import (
	"lieudit/queries/address/text"
	"lieudit/queries/address/vintage"
)

// alignment tells which of the typed words a name holds.
type alignment struct {
	used    mask  // the words it holds
	inName  mask  // those of them that are in the name of the street itself
	first   int   // the first of them, or maxTerms
	held    int32 // weight of those words, times how alike, in hundredths
	named   int32 // weight of the terms of the name that were typed, likewise
	whole   int32 // weight of all terms of the name
	certain bool  // all but links were typed, as good as letter for letter
	loose   mask  // words that were taken for another than they say
}

// align compares a name with words, in the order of the name: a word that goes on where the last one stood comes before
// one that stands elsewhere.
func (q *question) align(name vintage.Column, words mask) alignment {
	a := alignment{first: maxTerms, certain: true}
	next := 0
	for j := range min(name.Len(), maxTerms) {
		term := name.At(j)
		w := q.weightOfTerm(term)
		a.whole += w
		i, sim := q.holder(term, words&^a.used, next)
		if i < 0 {
			a.certain = a.certain && w == linkWeight
			continue
		}
		a.used |= bit(i)
		a.first = min(a.first, i)
		a.held += q.weight[i] * sim
		a.named += w * sim
		if sim < literal {
			a.loose |= bit(i)
		}
		next = i + 1
	}
	a.certain = a.certain && a.loose == 0
	a.inName = a.used
	return a
}

// literal is how alike two words are that are the same but for an article or an abbreviation.
const literal = 97

// linkWeight is the weight of a term that may be missing.
const linkWeight = 5

// weightOfTerm is the weight of a term of the vintage; what the question holds needs no look.
func (q *question) weightOfTerm(term uint32) int32 {
	for i := range q.terms {
		if len(q.alts[i]) > 0 && q.alts[i][0] == (alt{term, 100}) {
			return q.weight[i]
		}
	}
	return weightOf(string(q.v.Term(term)))
}

// holder is the word that stands for a term: the likeliest, of as likely ones the first from next on.
func (q *question) holder(term uint32, words mask, next int) (at int, sim int32) {
	at = -1
	for k := range len(q.terms) {
		i := next + k
		if i >= len(q.terms) {
			i -= len(q.terms)
		}
		if !words.has(i) || q.sticksToNumber(i) {
			continue
		}
		if s := q.sim(i, term); s > sim {
			at, sim = i, s
		}
	}
	if at < 0 {
		return q.initial(term, words, next)
	}
	return at, sim
}

// sticksToNumber says whether a word is a letter written right after a number, which belongs to no name.
func (q *question) sticksToNumber(i int) bool {
	t := q.terms[i]
	return t.Glued && len(t.Typed) == 1 && !t.Digits && i > 0 && q.terms[i-1].Digits
}

// initial lets a single letter stand for a word that begins with it: J. Jaurès.
func (q *question) initial(term uint32, words mask, next int) (at int, sim int32) {
	for i := next; i < min(next+2, len(q.terms)); i++ {
		t := q.terms[i]
		if words.has(i) && len(t.Typed) == 1 && !t.Digits && text.ClassOf(t.Text) != text.Link {
			if full := q.v.Term(term); len(full) > 2 && full[0] == t.Typed[0] {
				return i, 70
			}
		}
	}
	return -1, 0
}
