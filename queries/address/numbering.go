package address

import (
	"strings"

	"lieudit/queries/address/text"
	"lieudit/queries/address/vintage"
)

// numbering is the house number that was typed, as one street reads it: what is part of its name is no number.
type numbering struct {
	numberAt mask   // the terms that say it: the number, and others of a range
	number   uint32 // it
	repAt    mask   // the terms that say the repetition index
	rep      string // it, as typed
	ranged   bool   // several numbers were typed
	maybe    mask   // a letter that is one if the street has it
	otherRep bool   // the repetition index is the street's, written otherwise
	missing  bool   // the street has no such number
}

func (n numbering) typed() bool { return n.numberAt != 0 }

// readNumber finds the house number among the words a street's name left over.
func (q *question) readNumber(a alignment, left mask) (n numbering) {
	at := -1
	for i := range q.terms {
		t := q.terms[i]
		if left.has(i) && t.Digits && len(t.Typed) <= 4 && (at < 0 || i < a.first) {
			at = i
		}
	}
	if at < 0 {
		return n
	}
	n.number, n.numberAt = number(q.terms[at].Typed), bit(at)
	if tail := q.terms[at].Tail; tail != "" {
		n.rep = tail
	}
	next := at + 1
	if next < len(q.terms) && left.has(next) {
		if q.isRep(next) {
			n.rep, n.repAt = q.terms[next].Typed, bit(next)
			next++
		} else if q.maybeRep(next) {
			n.maybe = bit(next)
		}
	}
	q.readRange(&n, left, next)
	return n
}

// isRep says whether a word after a number can be its repetition index: one of those there are, or a letter by itself.
// The letters that also shorten words are one only where they stick to the number.
func (q *question) isRep(i int) bool {
	t := q.terms[i]
	switch t.Typed {
	case "bis", "ter", "quater", "quinquies", "sexies", "septies":
		return true
	}
	alone := len(t.Typed) == 1 && !t.Digits && !t.Elided && (i+1 == len(q.terms) || !q.terms[i+1].Glued)
	return alone && (t.Glued || !strings.Contains("dlrns", t.Typed))
}

// maybeRep says whether a letter that also shortens words can be a repetition index, if the street has it.
func (q *question) maybeRep(i int) bool {
	t := q.terms[i]
	return len(t.Typed) == 1 && !t.Digits && !t.Elided && !t.Glued && strings.Contains("dlrns", t.Typed)
}

// readRange takes the rest of "8-10" or "8 à 10".
func (q *question) readRange(n *numbering, left mask, next int) {
	if next < len(q.terms) && left.has(next) && q.terms[next].Typed == "a" {
		next++
	}
	if next < len(q.terms) && left.has(next) && q.terms[next].Digits && len(q.terms[next].Typed) <= 4 {
		n.numberAt |= span(next, next+1)
		if q.terms[next-1].Typed == "a" {
			n.numberAt |= bit(next - 1)
		}
		n.ranged = true
	}
}

// rows are the rows of a street that bear the number.
func (q *question) rows(s vintage.Street, n numbering) (from, to uint32) {
	from = q.v.FirstNumber(s, n.number)
	for to = from; to < s.To && q.v.Number(to) == n.number; to++ {
		q.steps--
	}
	return from, to
}

// sameRep says whether a typed repetition index stands for one of the base: b is bis, t is ter.
func sameRep(typed, kept string) bool {
	return wholeRep(typed) == wholeRep(kept)
}

func wholeRep(rep string) string {
	rep = text.Fold(rep)
	switch rep {
	case "b":
		return "bis"
	case "t":
		return "ter"
	case "q":
		return "quater"
	}
	return rep
}
