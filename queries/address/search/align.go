package search

import (
	"lieudit/queries/address/parse"
	"lieudit/queries/address/text"
	"lieudit/queries/address/vintage"
)

// alignment says which of the typed words the name of a street holds, and which of its terms were not typed.
type alignment struct {
	used        parse.Mask // the words it holds
	contiguous  parse.Mask // of these, the words that stand together around the anchor
	lastWord    parse.Mask // the word that stands for the last term of the name
	typedWeight int32      // sum of the weights of those words times their likeness in hundredths
	nameWeight  int32      // the same for the terms of the name that they stand for
	totalWeight int32      // weight of all terms of the name
	isWhole     bool       // all terms but links were typed
	isCertain   bool       // it is whole, and none of its words is fuzzy
	fuzzy       parse.Mask // words that stand for a term they do not spell

	unfinishedTerm, termBefore int  // the terms, from 1, that the unfinished word and the one before it stand for; 0: none
	isUnfinishedLink           bool // that of the unfinished word is a link

	fuzzySim            int32 // the least likeness among the fuzzy words
	distinctiveMatched  int32 // sum of the likenesses of the distinctive terms that were typed
	distinctiveTotal    int32 // that sum if all were typed exactly; titles count less
	isWhollyTyped       bool  // all distinctive terms were typed, exactly or misspelt
	hasUntypedNumber    bool  // a number of the name was not typed
	hasUntypedQualifier bool  // a term such as "vieux" or "saint" was not typed
	isRespelt           bool  // a fuzzy word is a word of the base itself, two letters away
}

// aligner compares names with words.
type aligner struct{ *lexicon }

// align compares a name with words. It looks for the first distinctive term first, the anchor. It looks for the
// terms behind the anchor behind its word and for those before it before its word, so that of two streets in one
// line each takes its own words.
func (l aligner) align(name vintage.Column, words parse.Mask) alignment {
	a := alignment{isWhole: true, isWhollyTyped: true}
	n := min(name.Len(), parse.MaxTerms)
	anchor, at := l.findAnchor(name, n, words)
	if anchor < 0 {
		at = 0
		anchor = 0
	}
	next := at
	for j := anchor; j < n; j++ {
		if i := l.alignTerm(&a, name, j, words, next, 1); i >= 0 {
			next = i + 1
		}
	}
	next = at
	for j := anchor - 1; j >= 0; j-- {
		if i := l.alignTerm(&a, name, j, words, next-1, -1); i >= 0 {
			next = i
		}
	}
	a.isCertain = a.isWhole && a.fuzzy == 0
	a.contiguous = l.contiguousAround(a.used, at)
	return a
}

// findAnchor finds the first distinctive term of a name that was typed, and the word that stands for it. A number
// is no anchor, since it may be the house number. A name of nothing but kinds and numbers is anchored at the last
// term that was typed.
func (l aligner) findAnchor(name vintage.Column, n int, words parse.Mask) (term, at int) {
	term = -1
	for j := range n {
		w := l.weightOfTerm(name.At(j))
		if w <= linkWeight {
			continue
		}
		if i, _ := l.findWord(name.At(j), words, 0, 1); i >= 0 {
			term, at = j, i
			if w > typeWeight && !l.q.Terms[i].Digits {
				return term, at
			}
		}
	}
	return term, at
}

// alignTerm finds the word that stands for term j of a name and adds it to the alignment. It answers the word, or
// -1. The search begins at the word from and goes in the direction of step.
func (l aligner) alignTerm(a *alignment, name vintage.Column, j int, words parse.Mask, from, step int) int {
	term := name.At(j)
	w := l.weightOfTerm(term)
	a.totalWeight += w
	i, sim := l.findWord(term, words&^a.used, from, step)
	if loose := words &^ a.used & l.fuzzied; i < 0 && loose != 0 && w >= typeWeight {
		i, sim = l.findLoosely(a, term, w, loose)
	}
	if w > typeWeight || w == typeWeight && l.hasTypeBefore(name, j) {
		isBeforeType := j+1 < name.Len() && text.ClassOf(viewString(l.v.Term(name.At(j+1)))) == text.StreetType
		a.countDistinctive(viewString(l.v.Term(term)), i >= 0, isBeforeType, sim)
	}
	if i < 0 {
		a.isWhole = a.isWhole && w == linkWeight
		return i
	}
	a.used |= parse.Bit(i)
	switch i {
	case l.q.Unfinished:
		a.unfinishedTerm, a.isUnfinishedLink = j+1, w == linkWeight
	case l.q.Unfinished - 1:
		a.termBefore = j + 1
	}
	if j == name.Len()-1 {
		a.lastWord = parse.Bit(i)
	}
	a.typedWeight += l.weight[i] * sim
	a.nameWeight += w * sim
	if sim < literalSim {
		if a.fuzzy == 0 || sim < a.fuzzySim {
			a.fuzzySim = sim
		}
		a.fuzzy |= parse.Bit(i)
	}
	return i
}

// findLoosely finds a word that shortens a term, or one with two letters wrong where the term is not a kind of street.
func (l aligner) findLoosely(a *alignment, term uint32, weight int32, words parse.Mask) (at int, sim int32) {
	at, sim = l.findCut(term, words)
	if at < 0 && weight > typeWeight {
		at, sim = l.findMisspelt(term, words)
		a.isRespelt = a.isRespelt || at >= 0 && l.hasExact(at)
	}
	return at, sim
}

// titleShare is the share of a distinctive word that a title counts, in percent. It is low because people leave
// titles out.
const titleShare = 30

// isSaint reports whether a term is "saint" or "sainte", which people leave out as they do titles.
func isSaint(term string) bool { return term == "saint" || term == "sainte" }

// numberTermShare is the share of a distinctive word that an untyped number of a name counts, in percent. People
// leave out the date or the ordinal of a name more often than its nouns.
const numberTermShare = 50

// hasTypeBefore reports whether a kind of street stands before term j of a name. A second kind is part of the name
// and distinctive: rue du Parc.
func (l aligner) hasTypeBefore(name vintage.Column, j int) bool {
	for k := range j {
		if l.weightOfTerm(name.At(k)) == typeWeight {
			return true
		}
	}
	return false
}

// countDistinctive counts a distinctive term of the name. A number that was typed counts nothing, since it may be
// the house number. A term before the kind of street counts as little as a title: petite rue.
func (a *alignment) countDistinctive(term string, isHeld, isBeforeType bool, sim int32) {
	share := int32(100)
	switch {
	case isNumber(term) && isHeld:
		return
	case isNumber(term):
		a.hasUntypedNumber, share = true, numberTermShare
	case text.IsTitle(term) || isSaint(term) || isBeforeType:
		share = titleShare
	}
	a.distinctiveTotal += share
	if isHeld {
		a.distinctiveMatched += sim * share / 100
		return
	}
	a.isWhollyTyped = false
	a.hasUntypedQualifier = a.hasUntypedQualifier || text.IsQualifier(term) && !isBeforeType
}

// findWord finds the word that is most like a term. Of equally like words it takes the first one from a word on,
// in the direction of step. A number is looked for in that direction alone, since one on the other side may be the house number: 1
// Impasse de l'Espérou 2.
func (l aligner) findWord(term uint32, words parse.Mask, from, step int) (at int, sim int32) {
	at = -1
	n := len(l.q.Terms)
	for k := range n {
		i := (from + k*step + n) % n
		isBehind := (i-from)*step < 0
		if !words.Has(i) || l.sticksToNumber(i) || isBehind && l.q.Terms[i].Digits {
			continue
		}
		if s := l.sim(i, term); s > sim {
			at, sim = i, s
		}
	}
	if at < 0 {
		return l.findInitial(term, words, from)
	}
	return at, sim
}

// twoEditsSim is the least likeness of a word to a term that differs from it in two letters.
const twoEditsSim = 55

// findMisspelt finds a word with two letters wrong for a term. It compares words only within a street that other words
// led to, because over the whole vintage two letters find too much. A word that the base has is the last choice.
func (l aligner) findMisspelt(term uint32, words parse.Mask) (at int, sim int32) {
	full := viewString(l.v.Term(term))
	if at = -1; len(full) < 5 || isNumber(full) {
		return at, 0
	}
	for i := range l.q.Terms {
		t := &l.q.Terms[i]
		if !words.Has(i) || t.Digits || len(t.Text) < 4 || text.ClassOf(t.Text) != text.Content || text.Distance(t.Text, full, 2) > 2 {
			continue
		}
		switch {
		case !l.hasExact(i):
			return i, max(twoEditsSim, likeness(len(full), 2))
		case at < 0 && min(len(t.Text), len(full)) >= leastRespelt && t.Text[0] == full[0]:
			at, sim = i, max(twoEditsSim, likeness(len(full), 2))
		}
	}
	return at, sim
}

// leastRespelt is how many letters a word of the base has at least that is taken for a misspelling of another.
const leastRespelt = 7

// cutSim is the likeness of a shortened word to the term that it begins.
const cutSim = 80

// findCut finds a word that shortens a term: déf. for défenseurs, squa for square. It looks at words that no term spells or
// that a full stop ends, within a street that other words led to.
func (l aligner) findCut(term uint32, words parse.Mask) (at int, sim int32) {
	full := viewString(l.v.Term(term))
	for i := range l.q.Terms {
		w := l.q.Terms[i].Typed
		isCut := words.Has(i) && !l.q.Terms[i].Digits && len(w) >= 3 && len(w) < len(full) && full[:len(w)] == w
		if isCut && (l.q.Dotted.Has(i) || !l.hasExact(i)) {
			return i, cutSim
		}
	}
	return -1, 0
}

// sticksToNumber reports whether a word is a letter attached to a number. It is a repetition index and belongs to no
// name, unless it is unfinished.
func (l aligner) sticksToNumber(i int) bool {
	t := l.q.Terms[i]
	return i != l.q.Unfinished && t.Glued && len(t.Typed) == 1 && !t.Digits && i > 0 && l.q.Terms[i-1].Digits
}

// findInitial finds a single letter that stands for a term which begins with it: J. Jaurès. It looks at two words
// only, since a letter says little.
func (l aligner) findInitial(term uint32, words parse.Mask, next int) (at int, sim int32) {
	for i := max(next, 0); i < min(next+2, len(l.q.Terms)); i++ {
		t := l.q.Terms[i]
		if words.Has(i) && len(t.Typed) == 1 && !t.Digits && text.ClassOf(t.Text) != text.StopWord {
			if full := l.v.Term(term); len(full) > 2 && full[0] == t.Typed[0] {
				return i, 70
			}
		}
	}
	return -1, 0
}

// contiguousAround are the used words around one of them, as far as only links and letters part them.
func (l aligner) contiguousAround(used parse.Mask, at int) parse.Mask {
	if used == 0 {
		return 0
	}
	if !used.Has(at) {
		at = used.First()
	}
	run := parse.Bit(at)
	joins := func(i int) bool { return l.isLink(i) || len(l.q.Terms[i].Typed) == 1 && !l.q.Terms[i].Digits }
	for i := at - 1; i >= 0 && (used.Has(i) || joins(i)); i-- {
		run |= parse.Bit(i)
	}
	for i := at + 1; i < len(l.q.Terms) && (used.Has(i) || joins(i)); i++ {
		run |= parse.Bit(i)
	}
	return run & used
}
