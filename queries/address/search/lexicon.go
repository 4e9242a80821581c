package search

import (
	"cmp"
	"slices"
	"unsafe"

	"lieudit/queries/address/parse"
	"lieudit/queries/address/text"
	"lieudit/queries/address/vintage"
)

const (
	maxAlternatives = 16 // terms that one typed word may stand for
	maxFound        = 96 // of which those are the likeliest

	literalSim = 97 // how alike two words are that are the same but for an article or an abbreviation
	soundSim   = 72 // how alike words are that sound the same
	bothSim    = 3  // and how much more when they are spelt much the same, too
	growSim    = 90 // how alike the last word of an unfinished line is to a term that it begins
	prefixSim  = 86 // how alike any other word of such a line is to one

	linkWeight  = 5 // of a term that may be missing
	typeWeight  = 35
	shortWeight = 40 // of a word of two letters
	plainWeight = 100
)

// alternative is a term of the vintage that a typed word may stand for, and how alike they are, in hundredths.
type alternative struct {
	term uint32
	sim  int32
}

// dictionary finds the terms that a word may have been meant to be.
type dictionary interface {
	// Like calls yield with terms within so many edits, some more than once, until it answers false.
	Like(term string, edits int, yield func(term uint32, distance int) bool)
	// Sounding calls yield with terms that sound the same, until it answers false.
	Sounding(sound string, yield func(term uint32) bool)
}

// lexicon says what the words of one question may stand for. It begins with what they are letter for letter, and reads
// them more loosely when it is asked to.
type lexicon struct {
	v      *vintage.Vintage
	q      *parse.Question
	dict   dictionary
	budget *budget

	alternatives [parse.MaxTerms][]alternative
	weight       [parse.MaxTerms]int32
	low, high    [parse.MaxTerms]uint32 // the range of the terms that a word may be the beginning of
	prefixes     parse.Mask             // the words with such a range
	fuzzied      parse.Mask
}

func newLexicon(v *vintage.Vintage, q *parse.Question, dict dictionary, b *budget) *lexicon {
	l := &lexicon{v: v, q: q, dict: dict, budget: b}
	l.reset(dict)
	return l
}

// reset forgets all loose readings.
func (l *lexicon) reset(dict dictionary) {
	l.dict, l.fuzzied, l.prefixes = dict, 0, 0
	for i := range l.q.Terms {
		l.alternatives[i] = l.alternatives[i][:0]
		l.weight[i] = weightOf(l.q.Terms[i].Text)
		l.addExact(i)
	}
	if i := l.q.Unfinished; i >= 0 {
		l.addPrefix(i)
	}
}

// weightOf is how much a term counts.
func weightOf(term string) int32 {
	switch text.ClassOf(term) {
	case text.StopWord:
		return linkWeight
	case text.StreetType:
		return typeWeight
	}
	if len(term) <= 2 && (term[0] < '0' || term[0] > '9') {
		return shortWeight * int32(len(term)) / 2
	}
	return plainWeight
}

// weigh is the weight of words.
func (l *lexicon) weigh(words parse.Mask) (sum int32) {
	for i := range l.q.Terms {
		if words.Has(i) {
			sum += l.weight[i]
		}
	}
	return sum
}

// addExact looks a word up as it is: written out, and as typed when that is another word.
func (l *lexicon) addExact(i int) {
	t := l.q.Terms[i]
	if id, ok := l.v.FindTerm(t.Text); ok {
		l.alternatives[i] = append(l.alternatives[i], alternative{id, 100})
	}
	if t.Typed != t.Text && !t.Part && !t.Digits {
		if id, ok := l.v.FindTerm(t.Typed); ok {
			l.alternatives[i] = append(l.alternatives[i], alternative{id, 98})
		}
	}
	l.addElided(i)
	l.addYear(i)
}

// addYear reads the last two digits of a year: 8 mai 45.
func (l *lexicon) addYear(i int) {
	if i < 2 || !l.q.Terms[i].Digits || len(l.q.Terms[i].Typed) != 2 || !l.q.Terms[i-2].Digits || l.q.Terms[i-1].Digits {
		return
	}
	if id, ok := l.v.FindTerm("19" + l.q.Terms[i].Typed); ok {
		l.alternatives[i] = append(l.alternatives[i], alternative{id, literalSim})
	}
}

// addElided reads a word whose article stuck to it: leglise, dapcher.
func (l *lexicon) addElided(i int) {
	w := l.q.Terms[i].Text
	if len(l.alternatives[i]) > 0 || len(w) < 5 || w[0] != 'l' && w[0] != 'd' {
		return
	}
	if id, ok := l.v.FindTerm(w[1:]); ok {
		l.alternatives[i] = append(l.alternatives[i], alternative{id, literalSim})
	}
}

// addPrefix lets a word stand for all terms that it begins.
func (l *lexicon) addPrefix(i int) {
	if t := l.q.Terms[i]; !t.Part {
		l.low[i], l.high[i] = l.v.TermsWithPrefix(t.Typed)
		if l.high[i] > l.low[i] {
			l.prefixes |= parse.Bit(i)
		}
		if digits, ok := text.CompleteNumeral(t.Typed); ok {
			if id, ok := l.v.FindTerm(digits); ok {
				l.add(i, alternative{id, prefixSim})
			}
		}
	}
}

// isLink says whether a word joins others and may be missing, as it is or misspelt.
func (l *lexicon) isLink(i int) bool {
	return l.q.IsStopWord(i) || len(l.q.Terms[i].Text) <= 3 && l.isLike(i, text.StopWord)
}

// isLike says whether a word is none of the base and may be a misspelt one of a class.
func (l *lexicon) isLike(i int, class text.Class) bool {
	all := l.alternatives[i]
	return len(all) > 0 && all[0].sim < literalSim && slices.ContainsFunc(all, func(a alternative) bool {
		return text.ClassOf(viewString(l.v.Term(a.term))) == class
	})
}

// addPrefixes does so for all words of an unfinished line, and says whether any was added.
func (l *lexicon) addPrefixes(words parse.Mask) bool {
	before := l.prefixes
	for i, t := range l.q.Terms {
		if words.Has(i) && !before.Has(i) && !t.Digits && len(t.Typed) > 1 && !l.q.IsLink(i) {
			l.addPrefix(i)
		}
	}
	return l.prefixes != before
}

// addFuzzy adds what a word may have been meant to be. Two letters may be wrong in a long word that fits nothing better.
func (l *lexicon) addFuzzy(i int) {
	w := l.q.Terms[i].Text
	l.fuzzied |= parse.Bit(i)
	if l.q.Terms[i].Digits || len(w) < 2 || i == l.q.Unfinished && len(w) < 5 || text.ClassOf(w) == text.StopWord || l.q.Reps.Has(i) {
		return
	}
	before := len(l.alternatives[i])
	typed := l.q.Terms[i].Typed
	if typed != w && !l.q.Terms[i].Part && len(typed) > 2 {
		l.addLike(i, typed, 1)
	}
	if before > 0 && text.ClassOf(w) == text.StreetType {
		return // a kind of street is no other one
	}
	l.addLike(i, w, 1)
	l.addSounding(i, w)
	if len(l.alternatives[i]) == 0 && len(w) >= 8 {
		l.addLike(i, w, 2)
	}
	l.alternatives[i] = append(l.alternatives[i][:before], l.likeliest(l.alternatives[i][before:])...)
}

// addFuzzyAll reads words loosely that were not yet, and says whether they may be others than they say.
func (l *lexicon) addFuzzyAll(words parse.Mask) (more bool) {
	words &^= l.fuzzied
	for i := range l.q.Terms {
		if words.Has(i) {
			before := len(l.alternatives[i])
			l.addFuzzy(i)
			more = more || len(l.alternatives[i]) > before
		}
	}
	return more && l.budget.steps > 0
}

// likeliest are the alternatives that are most alike; of as like ones those that more streets hold.
func (l *lexicon) likeliest(all []alternative) []alternative {
	common := func(a alternative) int { return l.v.StreetsWith(a.term).Len() }
	slices.SortFunc(all, func(x, y alternative) int {
		return cmp.Or(cmp.Compare(y.sim, x.sim), cmp.Compare(common(y), common(x)), cmp.Compare(x.term, y.term))
	})
	return all[:min(len(all), maxAlternatives)]
}

func (l *lexicon) addLike(i int, w string, edits int) {
	l.dict.Like(w, edits, func(term uint32, distance int) bool {
		if distance <= edits && distance > 0 {
			l.add(i, alternative{term, likeness(len(w), distance)})
		}
		l.budget.steps--
		return l.budget.steps > 0
	})
}

// likeness is how alike two words are that differ by so many letters.
func likeness(letters, edits int) int32 {
	return max(100-int32(110*edits/letters), 50)
}

func (l *lexicon) addSounding(i int, w string) {
	sound := text.PhoneticKey(w)
	if sound == "" {
		return
	}
	l.dict.Sounding(sound, func(term uint32) bool {
		l.add(i, alternative{term, min(max(soundSim, l.sim(i, term)+bothSim), literalSim-1)})
		l.budget.steps--
		return l.budget.steps > 0
	})
}

// add keeps an alternative, the likelier reading of one that was there.
func (l *lexicon) add(i int, a alternative) {
	for j := range l.alternatives[i] {
		if l.alternatives[i][j].term == a.term {
			l.alternatives[i][j].sim = max(l.alternatives[i][j].sim, a.sim)
			return
		}
	}
	if len(l.alternatives[i]) < maxFound {
		l.alternatives[i] = append(l.alternatives[i], a)
	}
}

// sim is how well a typed word stands for a term of the vintage, 0 when it does not.
func (l *lexicon) sim(i int, term uint32) int32 {
	for _, a := range l.alternatives[i] {
		if a.term == term {
			return a.sim
		}
	}
	if l.prefixes.Has(i) && term >= l.low[i] && term < l.high[i] {
		return l.prefixSimOf(i)
	}
	return 0
}

// prefixSimOf is how alike a word is to the terms that it begins.
func (l *lexicon) prefixSimOf(i int) int32 {
	if i == l.q.Unfinished {
		return growSim
	}
	return prefixSim
}

// weightOfTerm is the weight of a term of the vintage; what the question holds needs no look.
func (l *lexicon) weightOfTerm(term uint32) int32 {
	for i := range l.q.Terms {
		if len(l.alternatives[i]) > 0 && l.alternatives[i][0] == (alternative{term, 100}) {
			return l.weight[i]
		}
	}
	return weightOf(viewString(l.v.Term(term)))
}

// viewString is a text of the vintage without a copy. It is valid as long as the vintage is mapped, and is not kept.
func viewString(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
