package search

import (
	"lieudit/queries/address/parse"
	"lieudit/queries/address/text"
	"lieudit/queries/address/vintage"
)

// alignment says which of the typed words a name holds.
type alignment struct {
	used        parse.Mask // the words it holds
	contiguous  parse.Mask // those of them that stand together
	lastWord    parse.Mask // the one that stands for the last term
	typedWeight int32      // weight of those words, times how alike, in hundredths
	nameWeight  int32      // weight of the terms of the name that were typed, likewise
	totalWeight int32      // weight of all terms of the name
	isCertain   bool       // all but links were typed, as good as letter for letter
	fuzzy       parse.Mask // words that were taken for another than they say

	fuzzySim            int32 // how alike the least alike of those are
	distinctiveMatched  int32 // how alike the distinctive terms are to the words that stand for them, summed
	distinctiveTotal    int32 // what that sum would be if all were typed; titles count less
	isWhollyTyped       bool  // all of them were typed, as they are or alike
	hasUntypedNumber    bool  // a number was not typed
	hasUntypedQualifier bool  // a term such as "old" or "saint" was not typed
}

// align compares a name with words. The first distinctive term is looked for first; those behind it are
// looked for behind it, those before it before it, so that of two streets in one line each takes its own words.
func (l *lexicon) align(name vintage.Column, words parse.Mask) alignment {
	a := alignment{isCertain: true, isWhollyTyped: true}
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
	a.isCertain = a.isCertain && a.fuzzy == 0
	a.contiguous = l.contiguousAround(a.used, at)
	return a
}

// findAnchor is the first term of a name that tells streets apart and was typed, and the word that stands for it; no number,
// since that may be the house's. In a name of nothing but kinds of streets and numbers it is the last one that was typed.
func (l *lexicon) findAnchor(name vintage.Column, n int, words parse.Mask) (term, at int) {
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

// alignTerm finds the word for one term of a name, the nearest in a direction from a word on.
func (l *lexicon) alignTerm(a *alignment, name vintage.Column, j int, words parse.Mask, from, step int) int {
	term := name.At(j)
	w := l.weightOfTerm(term)
	a.totalWeight += w
	i, sim := l.findWord(term, words&^a.used, from, step)
	if i < 0 && w > typeWeight {
		i, sim = l.findMisspelt(term, words&^a.used&l.fuzzied)
	}
	if w > typeWeight || w == typeWeight && l.hasTypeBefore(name, j) {
		isBeforeType := j+1 < name.Len() && text.ClassOf(viewString(l.v.Term(name.At(j+1)))) == text.StreetType
		a.countDistinctive(viewString(l.v.Term(term)), i >= 0, isBeforeType, sim)
	}
	if i < 0 {
		a.isCertain = a.isCertain && w == linkWeight
		return i
	}
	a.used |= parse.Bit(i)
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

// titleShare is how much of a distinctive word a title is, in percent: people leave it away.
const titleShare = 30

func isSaint(term string) bool { return term == "saint" || term == "sainte" }

// numberTermShare is how much of a distinctive word a number is that a name has and that was not typed.
const numberTermShare = 50

// hasTypeBefore says whether a kind of street stands before a term of a name: the second one is distinctive, rue du Parc.
func (l *lexicon) hasTypeBefore(name vintage.Column, j int) bool {
	for k := range j {
		if l.weightOfTerm(name.At(k)) == typeWeight {
			return true
		}
	}
	return false
}

// countDistinctive counts a distinctive term. One such as "petite" before the kind of street may be left away.
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

// findWord is the word that stands for a term: the likeliest, of as likely ones the first in a direction from a word on.
func (l *lexicon) findWord(term uint32, words parse.Mask, from, step int) (at int, sim int32) {
	at = -1
	n := len(l.q.Terms)
	for k := range n {
		i := (from + k*step + n) % n
		if !words.Has(i) || l.sticksToNumber(i) {
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

// twiceSim is how alike a word of few letters is to a term when two of them are wrong.
const twiceSim = 55

// findMisspelt is the word that has two letters wrong, among those that fit nothing better. It leads to no street by itself.
func (l *lexicon) findMisspelt(term uint32, words parse.Mask) (at int, sim int32) {
	full := viewString(l.v.Term(term))
	if len(full) < 5 || isNumber(full) {
		return -1, 0
	}
	for i := range l.q.Terms {
		t := &l.q.Terms[i]
		if words.Has(i) && !t.Digits && len(t.Text) >= 4 && text.ClassOf(t.Text) == text.Content && !l.hasExact(i) && text.Distance(t.Text, full, 2) <= 2 {
			return i, max(twiceSim, likeness(len(full), 2))
		}
	}
	return -1, 0
}

// hasExact says whether a word stands for a term of the base as it is.
func (l *lexicon) hasExact(i int) bool {
	all := l.alternatives[i]
	return len(all) > 0 && all[0].sim >= literalSim
}

// sticksToNumber says whether a word is a letter written right after a number, which belongs to no name.
func (l *lexicon) sticksToNumber(i int) bool {
	t := l.q.Terms[i]
	return t.Glued && len(t.Typed) == 1 && !t.Digits && i > 0 && l.q.Terms[i-1].Digits
}

// findInitial lets a single letter stand for a word that begins with it: J. Jaurès.
func (l *lexicon) findInitial(term uint32, words parse.Mask, next int) (at int, sim int32) {
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

// contiguousAround is the part of some words around one of them in which nothing but links and letters stands between.
func (l *lexicon) contiguousAround(used parse.Mask, at int) parse.Mask {
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
