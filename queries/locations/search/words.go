package search

import (
	"strings"
	"unicode/utf8"

	"lieudit/queries/address/text"
	"lieudit/schemas/locations"
)

// MaxQueryWords is how many words of a text are looked for. Later words are ignored.
const MaxQueryWords = 10

// Word is a word of a query's text.
type Word struct {
	Text              string   // folded: lower case, without accents, œ as oe
	Expansions        []string // what an abbreviation stands for: the site has all of these words; nil for other words
	MayBePrefix       bool     // it may be the beginning of a site's word
	AllowsPrefixTypos bool     // and that with typos: the last word, which is still being typed
}

const (
	// MaxEarlyPrefixes is how many words before the last one may be beginnings. Each doubles the work of an engine that has no "or".
	MaxEarlyPrefixes = 2
	// MinEarlyPrefixLetters is how many letters such a word has at least. Shorter words, as de or la, begin too many others.
	MinEarlyPrefixLetters = 3
)

// Match compares the word with one of a site: how many typos turn it into that, or into its beginning. Expansions are not looked at.
// isPrefix says that it is like the beginning only, or like that with fewer typos. ok is false for other words.
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

// QueryWords are the words of a text, at most MaxQueryWords. Signs, spaces and apostrophes separate words; digits and
// letters separate each other, save for the ending of an ordinal. The sign of a number (n° 12) says nothing and is left
// out.
func QueryWords(query string) []Word {
	var words []Word
	for _, t := range text.Terms(query) {
		if t.Part { // a further word of what the abbreviation before stands for
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
		if len(w.Expansions) == 1 && w.Expansions[0] == w.Text { // it stands for itself alone, and is not an abbreviation
			w.Expansions = nil
		}
		w.AllowsPrefixTypos = isLast
		if w.MayBePrefix = isLast || early < MaxEarlyPrefixes && w.mayBeEarlyPrefix(); w.MayBePrefix && !isLast {
			early++
		}
	}
	return words
}

// mayBeEarlyPrefix reports whether a word before the last one may be a beginning: it is neither short, nor an abbreviation, nor a number,
// which would be the beginning of longer numbers.
func (w Word) mayBeEarlyPrefix() bool {
	return w.Expansions == nil && !('0' <= w.Text[0] && w.Text[0] <= '9') && utf8.RuneCountInString(w.Text) >= MinEarlyPrefixLetters
}

// VisitTerms calls yield with each word that a text of a site is found by: those it is written in, and those that its
// abbreviations stand for. Some words come more than once.
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

// Field is where in a site a word is. A word that is in several fields counts for the first of them.
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
	RankPrefix = 1 << 8  // for each word that is the beginning of the site's word, or stands for it
	RankWords  = 1       // of a site that has all words in its name, as they are. Each word elsewhere adds its Field.
)

// VisitTexts calls yield with each text of a site that is searched, and with its field. a may be nil.
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

// FoldName is a site's name as sites are sorted by it: folded, "" where nothing is left of it.
func FoldName(name string) string { return text.Fold(name) }

// FoldTag is the same for tags that count as equal: the folded tag, or where nothing is left of it the tag itself.
func FoldTag(tag string) string {
	if folded := text.Fold(tag); folded != "" {
		return folded
	}
	return strings.TrimSpace(tag)
}

// MaxTypoLetters is the length of the longest word, in letters, that is looked for with typos.
const MaxTypoLetters = 48

// AllowedTypos is how many typos a typed word may have: none in a number or in less than four letters, one in less than
// eight, otherwise two.
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

// CountTypos counts the typos that turn word into typed, or, with prefix, a beginning of word: letters to insert, drop,
// change or swap with their neighbour. One in the first letter counts for two. ok is false when there are more than
// AllowedTypos.
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

// editDistance is the Damerau-Levenshtein distance (optimal string alignment) of a to b, or, with prefix, to the
// nearest beginning of b. It keeps three rows on the stack.
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
