package search

import (
	"cmp"
	"iter"
	"slices"
	"unsafe"

	"lieudit/queries/address/commune"
	"lieudit/queries/address/parse"
	"lieudit/queries/address/text"
	"lieudit/queries/address/vintage"
)

// query is one reading of a question with the vintage that it is asked of: every stage reads it. No stage changes it, except for the
// budget, and the lexicon, to which looser readings of the words are added.
type query struct {
	index    *Index
	v        *vintage.Vintage
	table    *commune.Table
	q        *parse.Question
	scope    Scope
	lexicon  *lexicon
	budget   *budget
	postcode typedPostcode
	division division
}

// newQuery reads what the words of a question mean before any place or street is known.
func newQuery(x *Index, q *parse.Question, scope Scope, steps int) *query {
	b := &budget{left: steps, total: steps, isCut: q.IsCut}
	return &query{index: x, v: x.v, table: x.table, q: q, scope: scope, lexicon: newLexicon(x.v, q, x.v, b), budget: b,
		postcode: readPostcode(x.v, x.table, q), division: readDivision(x.table, q)}
}

// budget bounds the work on one question.
type budget struct {
	left  int  // steps that may still be taken
	total int  // steps at the beginning
	isCut bool // some of what fits was not looked at
}

// streetWords are the words that may name a street if others name a place.
func (x *query) streetWords(p place) parse.Mask {
	return x.q.Words() &^ p.at &^ x.q.PlaceOnly &^ x.q.Complement &^ x.q.Reps &^ x.q.Corner
}

// wantsType reports whether answers of a type are let through.
func (x *query) wantsType(t Type) bool {
	if len(x.scope.Types) == 0 {
		return true
	}
	for _, wanted := range x.scope.Types {
		if wanted == t {
			return true
		}
	}
	return false
}

// isNamedPlace reports whether the words or a code name the commune of a candidate.
func (x *query) isNamedPlace(c *Candidate) bool {
	return c.name != vintage.None && c.sim >= boundSim || x.scope.Cited != nil && x.scope.Cited.Has(c.Commune)
}

// isPlaced reports whether the place of a candidate is certain: a name says it exactly, or the postcode is
// its own.
func (x *query) isPlaced(c *Candidate) bool {
	return c.name != vintage.None && c.sim >= literalSim || x.postcode.code != 0 && c.facet.Postcode == x.postcode.code
}

// isCited reports whether a commune has the code that was given, if no postcode is known. The typed digits are
// then that code.
func (x *query) isCited(c uint32) bool {
	return x.scope.Cited != nil && x.postcode.code == 0 && x.scope.Cited.Has(c)
}

// rowsWithNumber are the rows of a street that bear a number.
func (x *query) rowsWithNumber(of vintage.Street, number uint32) (from, to uint32) {
	from = x.v.FirstNumber(of, number)
	for to = from; to < of.To && x.v.Number(to) == number; to++ {
		x.budget.left--
	}
	return from, to
}

// beginsAsTyped reports whether the name of a street begins with the words that do not name its place, in their order and with their
// links. If what was typed continues with the place, they are the whole name.
func (x *query) beginsAsTyped(street uint32, placeAt parse.Mask) bool {
	name := x.v.NameTerms(x.v.StreetName(street))
	words := x.q.Words() &^ placeAt &^ x.q.Complement &^ x.q.Reps
	k, isWhole := 0, true
	for i := range x.q.Terms {
		switch {
		case !words.Has(i), k == 0 && x.q.Terms[i].Digits:
		case k < name.Len() && (i == x.q.Unfinished && x.lexicon.sim(i, name.At(k)) > 0 || x.lexicon.sim(i, name.At(k)) >= literalSim):
			k++
			isWhole = i != x.q.Unfinished
		case x.q.Terms[i].Digits:
		case k == name.Len() && x.q.IsStopWord(i): // of the name of the commune
		default:
			return false
		}
	}
	return k > 0 && (!isWhole || k == name.Len())
}

// unfinishedWord is the word that may still grow.
func unfinishedWord(q *parse.Question) parse.Mask {
	if q.Unfinished < 0 {
		return 0
	}
	return parse.Bit(q.Unfinished)
}

// innerTypes are all kinds of streets but the first: they are distinctive, as in rue du Parc.
func innerTypes(q *parse.Question, words parse.Mask) parse.Mask {
	types := q.StreetTypes(words)
	return types & (types - 1) // without the lowest bit
}

// areQualifiers reports whether words are all such as "ancien", which name no street by themselves. It is false for no words.
func areQualifiers(q *parse.Question, words parse.Mask) bool {
	for i := range q.Terms {
		if words.Has(i) && !text.IsQualifier(q.Terms[i].Text) {
			return false
		}
	}
	return words != 0
}

// followsLink reports whether a link stands before words. They then belong to the name of a street: rue de
// Strasbourg.
func followsLink(q *parse.Question, words parse.Mask) bool {
	return words != 0 && words.First() > 0 && q.IsStopWord(words.First()-1)
}

// years are the words that are a year. In a street named after a date a year is not a house number.
func years(q *parse.Question, words parse.Mask) (out parse.Mask) {
	for i := range q.Terms {
		if n := parse.Number(q.Terms[i].Typed); words.Has(i) && q.Terms[i].Digits && n >= 1700 && n < 2030 {
			out |= parse.Bit(i)
		}
	}
	return out
}

// streetDigits are the digits after a kind of street: rue du 4.
func streetDigits(q *parse.Question, words parse.Mask) (out parse.Mask) {
	hasType := false
	for i := range q.Terms {
		if words.Has(i) {
			hasType = hasType || q.IsStreetType(i)
			if hasType && q.Terms[i].Digits {
				out |= parse.Bit(i)
			}
		}
	}
	return out
}

// countWords counts words without links.
func countWords(q *parse.Question, words parse.Mask) (n int) {
	for i := range q.Terms {
		if words.Has(i) && !q.IsStopWord(i) {
			n++
		}
	}
	return n
}

// typedWords are the words of a set as they were typed, without links.
func typedWords(q *parse.Question, words parse.Mask) (typed []string) {
	for i := range q.Terms {
		if words.Has(i) && !q.IsStopWord(i) && !q.Terms[i].Part {
			typed = append(typed, q.Typed(parse.Bit(i)))
		}
	}
	return typed
}

// typedRun are terms [from, to) as typed.
func typedRun(q *parse.Question, from, to int) (words []string) {
	for _, t := range q.Terms[from:to] {
		words = append(words, t.Typed)
	}
	return words
}

// gluedWords are the words that no character separates from the one before.
func gluedWords(q *parse.Question) (out parse.Mask) {
	for i := range q.Terms {
		if q.Terms[i].Glued {
			out |= parse.Bit(i)
		}
	}
	return out
}

// isBehindNumber reports whether a word follows a number: the a of 2a is its repetition index, not a link.
func isBehindNumber(q *parse.Question, i int) bool { return i > 0 && q.Terms[i-1].Digits }

// isExplained reports whether the words that a candidate leaves unread are only links, articles and complements.
func isExplained(q *parse.Question, unread parse.Mask) bool {
	for i := range q.Terms {
		isArticle := q.Terms[i].Elided && q.IsStopWord(i)
		if (unread &^ q.Complement).Has(i) && !q.IsLink(i) && !isArticle {
			return false
		}
	}
	return true
}

// Area is a set of communes by their ordinals, in ascending order. A nil area is everywhere; an empty one is
// nowhere.
type Area []uint32

// NewArea makes an area of ordinals. It is never nil, so without ordinals the area is nowhere.
func NewArea(ordinals []uint32) Area {
	slices.Sort(ordinals)
	return append(Area{}, slices.Compact(ordinals)...)
}

// Has reports whether a commune lies in the area.
func (a Area) Has(commune uint32) bool {
	if a == nil {
		return true
	}
	_, ok := slices.BinarySearch(a, commune)
	return ok
}

// within is the part of an area that lies in another one.
func (a Area) within(b Area) Area {
	if b == nil {
		return a
	}
	return slices.DeleteFunc(slices.Clone(a), func(commune uint32) bool { return !b.Has(commune) })
}

// ranges are the ranges [from, to) of the streets that lie in the area.
func (a Area) ranges(v *vintage.Vintage) iter.Seq2[uint32, uint32] {
	return func(yield func(from, to uint32) bool) {
		if a == nil {
			yield(0, uint32(v.Streets+v.Localities))
			return
		}
		for _, ordinal := range a {
			if c := v.Commune(ordinal); !yield(c.From, c.To) {
				return
			}
		}
	}
}

const (
	maxAlternatives = 16 // terms that are kept for one misspelt word
	maxFound        = 96 // terms among which those are the likeliest

	literalSim    = 97 // least likeness of a word that counts as typed exactly; an article or an abbreviation may differ
	soundSim      = 72 // least likeness of words that sound the same
	soundBonus    = 3  // what it adds to the likeness of their letters
	unfinishedSim = 90 // likeness of the unfinished word to a term that it begins
	prefixSim     = 86 // the same for any other word of an unfinished line; less, since people finish those

	linkWeight  = 5   // a link, which may be missing
	typeWeight  = 35  // a kind of street, which many streets share
	shortWeight = 40  // a word of two letters; one letter weighs half
	plainWeight = 100 // any other word
)

// alternative is a term of the vintage that a typed word may stand for, and how alike they are, in hundredths.
type alternative struct {
	term uint32
	sim  int32
}

// dictionary finds the terms that a misspelt word may mean.
type dictionary interface {
	// Like calls yield with terms within n edits, some more than once, until it answers false.
	Like(term string, edits int, yield func(term uint32, distance int) bool)
	// Sounding calls yield with terms that sound the same, until it answers false.
	Sounding(sound string, yield func(term uint32) bool)
}

// lexicon says which terms of the vintage the words of a question may stand for. It begins with those that spell
// them, and adds looser readings on demand.
type lexicon struct {
	v      *vintage.Vintage
	q      *parse.Question
	dict   dictionary
	budget *budget

	alternatives [parse.MaxTerms][]alternative
	weight       [parse.MaxTerms]int32
	low, high    [parse.MaxTerms]uint32 // the range [low, high) of the terms that a word begins
	prefixes     parse.Mask             // the words with such a range
	fuzzied      parse.Mask             // the words for which misspellings were looked up
}

// newLexicon makes the lexicon of a question with the terms that spell its words.
func newLexicon(v *vintage.Vintage, q *parse.Question, dict dictionary, b *budget) *lexicon {
	l := &lexicon{v: v, q: q, dict: dict, budget: b}
	const few = 2 // alternatives of most words
	room := make([]alternative, few*len(q.Terms))
	for i := range q.Terms {
		l.alternatives[i] = room[few*i : few*i : few*(i+1)]
	}
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

// weightOf is the weight of a term: how much it says about which street is meant.
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

// weigh returns the weight of words.
func (l *lexicon) weigh(words parse.Mask) (sum int32) {
	for i := range l.q.Terms {
		if words.Has(i) {
			sum += l.weight[i]
		}
	}
	return sum
}

// addExact adds the term that spells a word, with its abbreviation written out, and the one that spells it as
// typed.
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
	l.addShortenedType(i)
}

// addShortenedType adds the kind of street that a word shortens after a link, where such letters are usually a name: lotissement la Rte
// d'Argent.
func (l *lexicon) addShortenedType(i int) {
	if i == 0 || !l.q.IsStopWord(i-1) {
		return
	}
	full, sim := text.ShortenedType(l.q.Terms[i].Typed), int32(literalSim)
	if full == "" && l.q.Terms[i].Typed == "lot" {
		full, sim = "lotissement", cutSim // or the river
	}
	if id, ok := l.v.FindTerm(full); ok && full != "" {
		l.add(i, alternative{id, sim})
	}
}

// addYear adds the year that two digits at the end of a date shorten: 8 mai 45. Streets are named after dates of
// the twentieth century.
func (l *lexicon) addYear(i int) {
	if i < 2 || !l.q.Terms[i].Digits || len(l.q.Terms[i].Typed) != 2 || !l.q.Terms[i-2].Digits || l.q.Terms[i-1].Digits {
		return
	}
	if id, ok := l.v.FindTerm("19" + l.q.Terms[i].Typed); ok {
		l.alternatives[i] = append(l.alternatives[i], alternative{id, literalSim})
	}
}

// addElided adds the term of a word whose article is attached to it: leglise, dapcher.
func (l *lexicon) addElided(i int) {
	w := l.q.Terms[i].Text
	if len(l.alternatives[i]) > 0 || len(w) < 5 || w[0] != 'l' && w[0] != 'd' {
		return
	}
	if id, ok := l.v.FindTerm(w[1:]); ok {
		l.alternatives[i] = append(l.alternatives[i], alternative{id, literalSim})
	}
}

// addPrefix adds all terms that a word begins, with those that the base writes in other letters.
func (l *lexicon) addPrefix(i int) {
	if t := l.q.Terms[i]; !t.Part {
		l.low[i], l.high[i] = l.v.TermsWithPrefix(t.Typed)
		if l.high[i] > l.low[i] {
			l.prefixes |= parse.Bit(i)
		}
		for _, begun := range text.BegunTerms(t.Typed) {
			if id, ok := l.v.FindTerm(begun); ok {
				l.add(i, alternative{id, prefixSim})
			}
		}
	}
}

// isLink reports whether a word is a link, or a short word that may be a misspelt one.
func (l *lexicon) isLink(i int) bool {
	return l.q.IsStopWord(i) || len(l.q.Terms[i].Text) <= 3 && l.isLike(i, text.StopWord)
}

// isLike reports whether no term spells a word, and it may be a misspelt term of a class.
func (l *lexicon) isLike(i int, class text.Class) bool {
	all := l.alternatives[i]
	return len(all) > 0 && all[0].sim < literalSim && slices.ContainsFunc(all, func(a alternative) bool {
		return text.ClassOf(viewString(l.v.Term(a.term))) == class
	})
}

// addPrefixes adds the terms that the words of an unfinished line begin, and reports whether there are any. People
// shorten words in the middle of a line, too.
func (l *lexicon) addPrefixes(words parse.Mask) bool {
	before := l.prefixes
	for i, t := range l.q.Terms {
		if words.Has(i) && !before.Has(i) && !t.Digits && len(t.Typed) > 1 && !l.q.IsLink(i) {
			l.addPrefix(i)
		}
	}
	return l.prefixes != before
}

// addFuzzy adds the terms that a misspelt word may mean: those with one letter wrong, and those that sound the
// same. It allows two wrong letters in a long word if there are no such terms. Numbers and links have no
// misspellings, because every other number or link is as likely.
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
		return // a kind of street is not a misspelling of another
	}
	l.addLike(i, w, 1)
	l.addSounding(i, w)
	if len(l.alternatives[i]) == 0 && len(w) >= 8 {
		l.addLike(i, w, 2)
	}
	l.alternatives[i] = append(l.alternatives[i][:before], l.likeliest(l.alternatives[i][before:])...)
}

// addFuzzyAll adds such terms for all words that it has not treated yet, and reports whether there are new ones.
func (l *lexicon) addFuzzyAll(words parse.Mask) (more bool) {
	words &^= l.fuzzied
	for i := range l.q.Terms {
		if words.Has(i) {
			before := len(l.alternatives[i])
			l.addFuzzy(i)
			more = more || len(l.alternatives[i]) > before
		}
	}
	return more && l.budget.left > 0
}

// likeliest are the alternatives that are most like the word; of equally like ones, those that more streets hold.
func (l *lexicon) likeliest(all []alternative) []alternative {
	common := func(a alternative) int { return l.v.StreetsWith(a.term).Len() }
	slices.SortFunc(all, func(x, y alternative) int {
		return cmp.Or(cmp.Compare(y.sim, x.sim), cmp.Compare(common(y), common(x)), cmp.Compare(x.term, y.term))
	})
	return all[:min(len(all), maxAlternatives)]
}

// addLike adds the terms within a number of edits.
func (l *lexicon) addLike(i int, w string, edits int) {
	l.dict.Like(w, edits, func(term uint32, distance int) bool {
		if distance <= edits && distance > 0 {
			l.add(i, alternative{term, likeness(len(w), distance)})
		}
		l.budget.left--
		return l.budget.left > 0
	})
}

// likeness is how alike two words are that differ by some edits, in hundredths. An edit costs slightly more than
// one letter's share, and the likeness is never below one half.
func likeness(letters, edits int) int32 {
	return max(100-int32(110*edits/letters), 50)
}

// addSounding adds the terms that sound like a word. Their likeness stays below that of a word typed letter for
// letter.
func (l *lexicon) addSounding(i int, w string) {
	sound := text.PhoneticKey(w)
	if sound == "" {
		return
	}
	l.dict.Sounding(sound, func(term uint32) bool {
		l.add(i, alternative{term, min(max(soundSim, l.sim(i, term)+soundBonus), literalSim-1)})
		l.budget.left--
		return l.budget.left > 0
	})
}

// add keeps an alternative; of two for the same term it keeps the higher likeness.
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

// sim is how well a typed word stands for a term of the vintage, 0 if it does not.
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
		return unfinishedSim
	}
	return prefixSim
}

// weightOfTerm is the weight of a term. A term that a word of the question spells has the weight of that word,
// which saves reading the term.
func (l *lexicon) weightOfTerm(term uint32) int32 {
	for i := range l.q.Terms {
		if len(l.alternatives[i]) > 0 && l.alternatives[i][0] == (alternative{term, 100}) {
			return l.weight[i]
		}
	}
	return weightOf(viewString(l.v.Term(term)))
}

// viewString views a text of the vintage without a copy. It is valid as long as the vintage is mapped, so it must not be kept.
func viewString(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// hasExact reports whether a term of the vintage spells a word as it was typed.
func (l *lexicon) hasExact(i int) bool {
	all := l.alternatives[i]
	return len(all) > 0 && all[0].sim >= literalSim
}
