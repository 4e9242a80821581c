package search

import (
	"lieudit/queries/address/parse"
	"lieudit/queries/address/text"
	"lieudit/queries/address/vintage"
)

// A street that is not in the base often has a namesake that is: impasse Bellevue and rue Bellevue, rue du Moulin and rue Jean
// Moulin, rue du Pont and rue du Port. The namesake is worth showing, since people confuse the two, but it is not what was
// typed, so that nothing resolves to it without a person.

// namesakes tells such streets from misspelt ones.
type namesakes struct{ *query }

// has reports whether what was typed is rather the name of another street than that of a candidate.
func (n namesakes) has(c *Candidate) bool {
	if c.Street == vintage.None || n.q.Completing {
		return false
	}
	return n.isOfOtherKind(c) || n.isTiedOtherwise(c) || n.isAnotherWord(c) || isGuessed(n.q, c)
}

// isOfOtherKind reports whether the kind of street that was typed before the name of a candidate is not the candidate's, nor a letter
// away from it. A name without a kind of its own is that of a hamlet or an estate, which may be called one.
func (n namesakes) isOfOtherKind(c *Candidate) bool {
	i := typedKind(n.q, c)
	if i < 0 || c.used.Has(i) {
		return false
	}
	typed, own := n.q.Terms[i].Text, kindOf(n.v, c)
	if own == "" {
		return !text.IsSettlement(typed)
	}
	return text.Distance(typed, own, 1) > 1
}

// typedKind is the kind of street right before the words of a candidate's name, or -1. Only links may stand between.
func typedKind(q *parse.Question, c *Candidate) int {
	if c.contiguous == 0 {
		return -1
	}
	i := c.contiguous.First()
	if q.IsStreetType(i) {
		return i
	}
	for i--; i >= 0 && q.IsStopWord(i) && q.Terms[i+1].Before&(text.Break|text.Close) == 0; i-- {
	}
	if i > 0 && q.Terms[i-1].Text == "zone" {
		i-- // zone artisanale
	}
	if i < 0 || !q.IsStreetType(i) || (q.Complement | c.at | c.otherNames).Has(i) || q.Terms[i+1].Before&(text.Break|text.Close) != 0 {
		return -1
	}
	return i
}

// kindOf is the kind of street with which the name of a candidate begins, or empty.
func kindOf(v *vintage.Vintage, c *Candidate) string {
	name := v.NameTerms(v.StreetName(c.Street))
	for k := range name.Len() {
		switch term := viewString(v.Term(name.At(k))); text.ClassOf(term) {
		case text.StreetType:
			return term
		case text.Content:
			return ""
		}
	}
	return ""
}

// isTiedOtherwise reports whether links were typed before the first word of a name that the name does not have there, and another
// word of it stands before that one: rue du Moulin is neither rue Jean Moulin nor rue du Champ Moulin. Titles are left out freely.
func (n namesakes) isTiedOtherwise(c *Candidate) bool {
	first := n.q.Distinctive(c.contiguous)
	if first == 0 {
		return false
	}
	i := first.First()
	typed := i
	for typed > 0 && n.q.IsStopWord(typed-1) && !c.at.Has(typed-1) {
		typed--
	}
	name := n.v.NameTerms(n.v.StreetName(c.Street))
	at := n.termOf(c, name, i)
	k := at - 1
	for k >= 0 && text.ClassOf(viewString(n.v.Term(name.At(k)))) == text.StopWord {
		k--
	}
	if typed == i || k < 0 || n.isHeld(c, name.At(k)) {
		return false
	}
	before := viewString(n.v.Term(name.At(k)))
	if k == 0 && text.ClassOf(before) == text.StreetType || text.IsTitle(before) || isSaint(before) || isNumber(before) {
		return false
	}
	return !n.areSameTerms(typed, i, name, k+1, at)
}

// termOf is the place in the name of a candidate of the first term that a word stands for and no other of its words spells, or -1.
func (n namesakes) termOf(c *Candidate, name vintage.Column, word int) int {
	for k := range name.Len() {
		if n.lexicon.sim(word, name.At(k)) > 0 && !n.isSpelledByOther(c, name.At(k), word) {
			return k
		}
	}
	return -1
}

// isSpelledByOther reports whether another word of a candidate's name than one spells a term.
func (n namesakes) isSpelledByOther(c *Candidate, term uint32, word int) bool {
	for i := range n.q.Terms {
		if i != word && c.used.Has(i) && n.lexicon.sim(i, term) >= literalSim {
			return true
		}
	}
	return false
}

// isHeld reports whether a word of a candidate's name stands for a term.
func (n namesakes) isHeld(c *Candidate, term uint32) bool {
	for i := range n.q.Terms {
		if c.used.Has(i) && n.lexicon.sim(i, term) > 0 {
			return true
		}
	}
	return false
}

// areSameTerms reports whether the words [from, to) are the terms [at, end) of a name.
func (n namesakes) areSameTerms(from, to int, name vintage.Column, at, end int) bool {
	if to-from != end-at {
		return false
	}
	for k := range to - from {
		if n.q.Terms[from+k].Text != viewString(n.v.Term(name.At(at+k))) {
			return false
		}
	}
	return true
}

// commonShare bounds how many times as many streets hold a term as hold a word that is taken for a misspelling of it, where that is a
// word of the base itself.
const commonShare = 8

// isAnotherWord reports whether the only word of a name that was typed is read as a misspelt one although it is about as common in the
// base itself: pont is not a misspelling of port, nor forge of forges.
func (n namesakes) isAnotherWord(c *Candidate) bool {
	distinctive := n.q.Distinctive(c.used)
	if literal := distinctive &^ c.fuzzy; literal != 0 && !areQualifiers(n.q, literal) {
		return false
	}
	name := n.v.NameTerms(n.v.StreetName(c.Street))
	for i := range n.q.Terms {
		if (distinctive & c.fuzzy).Has(i) && n.lexicon.hasExact(i) && n.isAnotherThan(c, i, name) {
			return true
		}
	}
	return false
}

// isAnotherThan reports whether a word of the base is not a misspelling of the term of a name for which it was taken. In another number
// the link before it decides: rue des Tilleul is rue des Tilleuls, rue du Tilleul is not.
func (n namesakes) isAnotherThan(c *Candidate, i int, name vintage.Column) bool {
	k := n.termOf(c, name, i)
	if k < 0 {
		return false
	}
	typed, term := n.q.Terms[i].Text, viewString(n.v.Term(name.At(k)))
	if i > 0 && n.q.IsStopWord(i-1) && (typed+"s" == term || term+"s" == typed) {
		return !c.used.Has(i - 1)
	}
	return n.v.StreetsWith(n.lexicon.alternatives[i][0].term).Len()*commonShare >= n.v.StreetsWith(name.At(k)).Len()
}

// isGuessed reports whether no word that tells streets apart was typed as the name has it, and a part of the name was not typed at
// all.
func isGuessed(q *parse.Question, c *Candidate) bool {
	distinctive := q.Distinctive(c.used)
	return distinctive != 0 && distinctive&^c.fuzzy == 0 && !c.isWhollyTyped
}

// isDivisionAlone reports whether nothing but the name of a department or region was typed, which no commune has: no street is
// meant that is named after it.
func (n namesakes) isDivisionAlone() bool {
	words := n.q.Words()
	if words == 0 || words != parse.Span(words.First(), words.Last()+1) || !n.table.EndsDivision(n.q.Terms[words.Last()].Typed) {
		return false
	}
	first, last := words.First(), words.Last()
	_, length := n.table.DivisionsAtEnd(typedRun(n.q, first, last+1))
	for first < last && length < last+1-first && n.q.IsStopWord(first) {
		first++
	}
	return length >= last+1-first && len(n.table.Named(n.q.Terms[first:last+1])) == 0
}
