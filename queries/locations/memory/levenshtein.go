package memory

import (
	"sort"
	"strings"
	"unicode/utf8"

	"lieudit/queries/locations/search"
)

// visitMatches calls yield with every word that a typed one finds: the same word, words that begin with it, and words
// within the allowed typos. isPrefix reports that only a prefix of the word matches.
//
// The first two are next to each other in the sorted list. Typos need a walk: if one typo is allowed, through the words
// that begin with the same letter, because a typo in the first letter counts as two; otherwise through all words.
func (d *invertedIndex) visitMatches(typed search.Word, walk *levenshteinWalk, yield func(word, typos int, isPrefix bool)) {
	lo := d.lowerBound(typed.Text)
	hi := lo
	if hi < d.len() && d.word(hi) == typed.Text {
		yield(hi, 0, false)
		hi++
	}
	if typed.MayBePrefix {
		hi = d.prefixEnd(typed.Text)
		for i := lo; i < hi; i++ {
			if d.word(i) != typed.Text {
				yield(i, 0, true)
			}
		}
	}
	maxTypos := search.AllowedTypos(typed.Text)
	if maxTypos == 0 {
		return
	}
	from, to := 0, d.len()
	if first, size := utf8.DecodeRuneInString(typed.Text); maxTypos == 1 { // a typo in the first letter would count as two
		from, to = d.lowerBound(string(first)), d.prefixEnd(typed.Text[:size])
	}
	walk.reset(typed, maxTypos)
	same := 0
	for i := from; i < to; i++ {
		same = min(same, int(d.sharedPrefixes[i]))
		if i >= lo && i < hi {
			continue
		}
		mayMatch := walk.mayMatch(d.word(i), same)
		if same = neverDead; !mayMatch {
			continue
		}
		if n, isPrefix, ok := typed.Match(d.word(i)); ok {
			yield(i, n, isPrefix)
		}
	}
}

// prefixEnd returns one past the last word that begins with prefix.
func (d *invertedIndex) prefixEnd(prefix string) int {
	return sort.Search(d.len(), func(i int) bool {
		w := d.word(i)
		return w > prefix && !strings.HasPrefix(w, prefix)
	})
}

// levenshteinWalk walks through sorted words and counts their typos from a typed one. It reuses the counts for the prefix
// that a word shares with the previous one. It looks only at the first byte of each letter, so it never counts more typos
// than search.CountTypos, and as many if all letters are ASCII: it selects the words on which CountTypos then decides.
type levenshteinWalk struct {
	typed           []byte
	allowsPrefix    bool
	maxTypos        int                                       // typos allowed
	depth           int                                       // bytes of the previous word that were read
	deadDepth       int                                       // its first deadDepth bytes have too many typos, whatever follows; neverDead if no prefix has too many
	lettersAt       [(maxRows + 1) * utf8.UTFMax]uint8        // by bytes of the word, their number of letters
	letters         [maxRows]byte                             // of the word, from 1
	distances       [maxRows][search.MaxTypoLetters + 1]uint8 // by letters of the word and of the typed one
	prefixDistances [maxRows]uint8                            // by letters of the word, the least distance of a prefix up to there
}

const (
	maxRows   = search.MaxTypoLetters + 4
	neverDead = maxRows * utf8.UTFMax
)

// reset begins a walk for another typed word of at most search.MaxTypoLetters letters.
func (w *levenshteinWalk) reset(typed search.Word, maxTypos int) {
	w.typed = w.typed[:0]
	for i := range typed.Text {
		w.typed = append(w.typed, typed.Text[i])
	}
	w.allowsPrefix, w.maxTypos, w.depth, w.deadDepth = typed.AllowsPrefixTypos, maxTypos, 0, neverDead
	for j := range len(w.typed) + 1 {
		w.distances[0][j] = uint8(j)
	}
	w.prefixDistances[0] = uint8(len(w.typed))
}

// mayMatch reports whether a word may be near the typed one. shared is how many bytes it shares with the word of the
// previous call: the rows of these bytes are still valid, so it reads only the bytes after them. A word that shares a
// prefix which was already too far is not read at all.
func (w *levenshteinWalk) mayMatch(word string, shared int) bool {
	if shared >= w.deadDepth {
		return w.matchesPrefix(w.deadDepth)
	}
	w.deadDepth = neverDead
	for w.depth = min(w.depth, shared); w.depth < len(word); {
		if w.step(word[w.depth]) > w.maxTypos {
			w.deadDepth = w.depth
			return w.matchesPrefix(w.deadDepth)
		}
	}
	letters := int(w.lettersAt[w.depth])
	return w.matchesPrefix(w.depth) || len(w.typed) <= letters+w.maxTypos && int(w.distances[letters][len(w.typed)]) <= w.maxTypos
}

// matchesPrefix reports whether a prefix of the word is near enough and a prefix suffices.
func (w *levenshteinWalk) matchesPrefix(depth int) bool {
	return w.allowsPrefix && int(w.prefixDistances[w.lettersAt[depth]]) <= w.maxTypos
}

// step reads one more byte of the word and returns the fewest typos that are then possible. For a byte inside a letter it
// returns 0.
func (w *levenshteinWalk) step(c byte) int {
	n := w.lettersAt[w.depth]
	w.depth++
	if !utf8.RuneStart(c) {
		w.lettersAt[w.depth] = n
		return 0
	}
	n++
	w.lettersAt[w.depth], w.letters[n] = n, c
	return w.fillRow(int(n))
}

// fillRow computes the distances for one more letter and returns the least of them. Only cells near the diagonal can be
// small enough, so it fills no others, and sets the cells next to them to more than the typos allowed.
func (w *levenshteinWalk) fillRow(i int) int {
	m, c := len(w.typed), w.letters[i]
	row, last := &w.distances[i], &w.distances[i-1]
	lo, hi := max(1, i-w.maxTypos), min(m, i+w.maxTypos)
	least, far := uint8(255), uint8(w.maxTypos+1)
	row[lo-1] = far
	if lo == 1 {
		row[0] = min(uint8(i), far)
		least = row[0]
	}
	if hi == i+w.maxTypos {
		last[hi] = far
	}
	for j := lo; j <= hi; j++ {
		n := last[j-1]
		if w.typed[j-1] != c {
			n = min(n, last[j], row[j-1]) + 1
			if i > 1 && j > 1 && w.typed[j-2] == c && w.typed[j-1] == w.letters[i-1] {
				n = min(n, w.distances[i-2][j-2]+1)
			}
		}
		row[j] = n
		least = min(least, n)
	}
	w.prefixDistances[i] = w.prefixDistances[i-1]
	if hi == m {
		w.prefixDistances[i] = min(w.prefixDistances[i], row[m])
	}
	return int(least)
}
