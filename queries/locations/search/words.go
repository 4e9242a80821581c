package search

import (
	"strings"
	"unicode/utf8"

	"lieudit/queries/address/text"
	"lieudit/schemas/locations"
)

// MaxQueryWords is how many words of a text are looked for. Further words are ignored.
const MaxQueryWords = 10

// Word is a word of a query's text.
type Word struct {
	Text              string   // folded: lower case, without accents, œ as oe
	Expansions        []string // what an abbreviation stands for: the site has all of these words; nil for other words
	MayBePrefix       bool     // it may be a prefix of a site's word
	AllowsPrefixTypos bool     // the prefix may have typos: the last word, which is still being typed
}

const (
	// MaxEarlyPrefixes is how many words before the last one may be prefixes. Each doubles the work of an engine without "or".
	MaxEarlyPrefixes = 2
	// MinEarlyPrefixLetters is the minimum length of such a word in letters. Too many words begin with a shorter one, such as de or la.
	MinEarlyPrefixLetters = 3
)

// Match compares the word with a word of a site. typos is how many typos separate it from that word, or from a prefix of it; isPrefix
// reports that only the prefix matches, or matches with fewer typos. ok is false if neither matches. Expansions are ignored.
func (w Word) Match(term string) (typos int, isPrefix, ok bool) {
	whole, isWhole := CountTypos(w.Text, term, false)
	if isWhole && whole == 0 {
		return 0, false, true
	}
	if w.MayBePrefix && strings.HasPrefix(term, w.Text) {
		return 0, true, true
	}
	if !w.AllowsPrefixTypos {
		return whole, false, isWhole
	}
	typos, ok = CountTypos(w.Text, term, true)
	return typos, ok && !(isWhole && whole == typos), ok
}

// QueryWords returns the words of a text, at most MaxQueryWords. Punctuation, spaces and apostrophes separate words, as does a change
// between digits and letters, except in an ordinal. The number sign (n° 12) carries no meaning and is left out.
func QueryWords(query string) []Word {
	var words []Word
	for _, t := range text.Terms(query) {
		if t.Part { // a further word of the preceding abbreviation's expansion
			last := &words[len(words)-1]
			last.Expansions = append(last.Expansions, t.Text)
			continue
		}
		if len(words) == MaxQueryWords {
			break
		}
		words = append(words, Word{Text: t.Typed + t.Tail, Expansions: []string{t.Text}})
	}
	early := 0
	for i := range words {
		w, isLast := &words[i], i == len(words)-1
		if len(w.Expansions) == 1 && w.Expansions[0] == w.Text { // it only stands for itself, so it is not an abbreviation
			w.Expansions = nil
		}
		w.AllowsPrefixTypos = isLast
		if w.MayBePrefix = isLast || early < MaxEarlyPrefixes && w.mayBeEarlyPrefix(); w.MayBePrefix && !isLast {
			early++
		}
	}
	return words
}

// mayBeEarlyPrefix reports whether a word before the last one may be a prefix: it must be long enough and neither an abbreviation nor a
// number, which would match longer numbers.
func (w Word) mayBeEarlyPrefix() bool {
	return w.Expansions == nil && !('0' <= w.Text[0] && w.Text[0] <= '9') && utf8.RuneCountInString(w.Text) >= MinEarlyPrefixLetters
}

// VisitTerms calls yield with each word by which a text of a site is found: the words of the text, and those that its abbreviations stand
// for. It may yield a word more than once.
func VisitTerms(s string, yield func(word string)) {
	for _, t := range text.Terms(s) {
		typed := t.Typed + t.Tail
		if !t.Part {
			yield(typed)
		}
		if t.Text != typed {
			yield(t.Text)
		}
	}
}

// Field is the field of a site that a word is in. A word in several fields counts for the first of them.
type Field uint8

// Fields of a site.
const (
	InName    Field = iota
	InTown          // town, postcode and tags
	InAddress       // the rest of the address
)

// The parts of a SortKey's Rank in the order ByRelevance, added up over the words of a text; the lower, the better. Rank
// 0 is for a site whose external id is the text.
const (
	RankTypo   = 1 << 16 // for each typo
	RankPrefix = 1 << 8  // for each word that is a prefix of the site's word, or stands for it
	RankWords  = 1       // of a site that has all words in its name, unchanged. Each word in another field adds its Field.
)

// VisitTexts calls yield with each searched text of a site and its field. a may be nil.
func VisitTexts(name string, tags []string, a *locations.SiteAddress, yield func(text string, field Field)) {
	yield(name, InName)
	if a != nil {
		yield(a.City, InTown)
		yield(a.PostalCode, InTown)
	}
	for _, tag := range tags {
		yield(tag, InTown)
	}
	if a != nil {
		for _, text := range []string{a.Line1, a.Line2, a.InseeCode, a.Country} {
			yield(text, InAddress)
		}
	}
}

// FoldName returns a site's name as a sort key: folded, "" if nothing is left of it.
func FoldName(name string) string { return text.Fold(name) }

// FoldTag returns the same text for tags that count as equal: the folded tag or, if nothing is left of it, the tag itself.
func FoldTag(tag string) string {
	if folded := text.Fold(tag); folded != "" {
		return folded
	}
	return strings.TrimSpace(tag)
}

// MaxTypoLetters is the maximum length, in letters, of a word that may have typos.
const MaxTypoLetters = 48

// AllowedTypos returns how many typos a typed word may have: 0 in a number or in fewer than four letters, 1 in fewer than eight,
// otherwise 2.
func AllowedTypos(typed string) int {
	n := utf8.RuneCountInString(typed)
	switch {
	case n < 4, n > MaxTypoLetters, '0' <= typed[0] && typed[0] <= '9':
		return 0
	case n < 8:
		return 1
	}
	return 2
}

// CountTypos counts the typos that turn word into typed, or, with prefix, a beginning of word: letters to insert, drop, change or swap
// with their neighbour. A typo in the first letter counts as two. ok is false if there are more than AllowedTypos.
func CountTypos(typed, word string, prefix bool) (int, bool) {
	if typed == word || prefix && strings.HasPrefix(word, typed) {
		return 0, true
	}
	maxTypos := AllowedTypos(typed)
	if maxTypos == 0 || word == "" {
		return 0, false
	}
	a, b := []rune(typed), []rune(word)
	n := editDistance(a, b[:min(len(b), len(a)+maxTypos+1)], prefix)
	if len(b) > len(a)+maxTypos && !prefix {
		return 0, false
	}
	if a[0] != b[0] {
		n++
	}
	return n, n <= maxTypos
}

// editDistance returns the Damerau-Levenshtein distance (optimal string alignment) of a to b or, with prefix, to the nearest prefix of b.
// It keeps three rows on the stack.
func editDistance(a, b []rune, prefix bool) int {
	var rows [3][MaxTypoLetters + 1]int
	beforeLast, last, row := &rows[0], &rows[1], &rows[2]
	for i := range len(a) + 1 {
		last[i] = i
	}
	least := last[len(a)]
	for j, letter := range b {
		row[0] = j + 1
		for i := 1; i <= len(a); i++ {
			change := 1
			if a[i-1] == letter {
				change = 0
			}
			row[i] = min(last[i]+1, row[i-1]+1, last[i-1]+change)
			if i > 1 && j > 0 && a[i-1] == b[j-1] && a[i-2] == letter {
				row[i] = min(row[i], beforeLast[i-2]+1)
			}
		}
		least = min(least, row[len(a)])
		beforeLast, last, row = last, row, beforeLast
	}
	if prefix {
		return least
	}
	return last[len(a)]
}
