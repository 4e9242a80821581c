package memory

import (
	"sort"
	"strings"
	"unicode/utf8"

	"lieudit/queries/locations/search"
)

// visitMatches calls yield with every word that a typed one finds: with typos, and where begins says so as a beginning of it.
func (d *invertedIndex) visitMatches(typed search.Word, walk *levenshteinWalk, yield func(word, typos int, begins bool)) {
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
	if first, size := utf8.DecodeRuneInString(typed.Text); maxTypos == 1 { // one in the first letter would be two
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
		if n, ok := search.CountTypos(typed.Text, d.word(i), typed.MayBePrefix); ok {
			yield(i, n, typed.MayBePrefix && !d.matchesWhole(typed.Text, i, n))
		}
	}
}

// matchesWhole says whether a word is like the typed one by its end, not only by its beginning.
func (d *invertedIndex) matchesWhole(typed string, i, typos int) bool {
	n, ok := search.CountTypos(typed, d.word(i), false)
	return ok && n == typos
}

// prefixEnd is one past the last word that begins so, where from is the first.
func (d *invertedIndex) prefixEnd(prefix string) int {
	return sort.Search(d.len(), func(i int) bool {
		w := d.word(i)
		return w > prefix && !strings.HasPrefix(w, prefix)
	})
}

// levenshteinWalk goes through sorted words and counts slips from a typed one, for all words that begin alike at once. It looks at
// the first byte of each letter alone, so it counts no more than Typos does, and the same where letters are plain.
type levenshteinWalk struct {
	typed           []byte
	allowsPrefix    bool
	maxTypos        int                                       // slips
	depth           int                                       // bytes of the word before that were looked at
	deadDepth       int                                       // how many bytes of it are too far from the typed word, whatever follows; never when there are none
	lettersAt       [(maxRows + 1) * utf8.UTFMax]uint8        // by bytes of the word, how many letters these are
	letters         [maxRows]byte                             // the letters
	distances       [maxRows][search.MaxTypoLetters + 1]uint8 // by letters of the word and of the typed one, how many slips are between
	prefixDistances [maxRows]uint8                            // by letters of the word, fewest slips of a beginning up to there
}

const (
	maxRows   = search.MaxTypoLetters + 4
	neverDead = maxRows * utf8.UTFMax
)

func (w *levenshteinWalk) reset(typed search.Word, maxTypos int) {
	w.typed = w.typed[:0]
	for i := range typed.Text {
		w.typed = append(w.typed, typed.Text[i])
	}
	w.allowsPrefix, w.maxTypos, w.depth, w.deadDepth = typed.MayBePrefix, maxTypos, 0, neverDead
	for j := range len(w.typed) + 1 {
		w.distances[0][j] = uint8(j)
	}
	w.prefixDistances[0] = uint8(len(w.typed))
}

// mayMatch says whether a word may be near the typed one. It shares so many bytes with the word of the call before.
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

// matchesPrefix says whether a beginning of the word is near and that is enough.
func (w *levenshteinWalk) matchesPrefix(depth int) bool {
	return w.allowsPrefix && int(w.prefixDistances[w.lettersAt[depth]]) <= w.maxTypos
}

// step looks at one more byte of the word and gives the fewest slips that are possible then.
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

// fillRow counts slips for one more letter. Only what lies near the diagonal can be few.
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
