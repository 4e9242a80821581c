package local

import (
	"sort"
	"strings"
	"unicode/utf8"

	"lieudit/queries/places/finder"
)

// like calls yield with every word that a typed one finds: with typos, and where begins says so as a beginning of it.
func (d *dict) like(typed finder.Word, walk *walk, yield func(word, typos int, begins bool)) {
	lo := d.from(typed.Text)
	hi := lo
	if hi < d.len() && d.word(hi) == typed.Text {
		yield(hi, 0, false)
		hi++
	}
	if typed.Last {
		hi = d.beginning(typed.Text)
		for i := lo; i < hi; i++ {
			if d.word(i) != typed.Text {
				yield(i, 0, true)
			}
		}
	}
	most := finder.Allowed(typed.Text)
	if most == 0 {
		return
	}
	from, to := 0, d.len()
	if first, size := utf8.DecodeRuneInString(typed.Text); most == 1 { // one in the first letter would be two
		from, to = d.from(string(first)), d.beginning(typed.Text[:size])
	}
	walk.start(typed, most)
	same := 0
	for i := from; i < to; i++ {
		same = min(same, int(d.same[i]))
		if i >= lo && i < hi {
			continue
		}
		near := walk.near(d.word(i), same)
		if same = never; !near {
			continue
		}
		if n, ok := finder.Typos(typed.Text, d.word(i), typed.Last); ok {
			yield(i, n, typed.Last && !d.whole(typed.Text, i, n))
		}
	}
}

// whole says whether a word is like the typed one by its end, not only by its beginning.
func (d *dict) whole(typed string, i, typos int) bool {
	n, ok := finder.Typos(typed, d.word(i), false)
	return ok && n == typos
}

// beginning is one past the last word that begins so, where from is the first.
func (d *dict) beginning(prefix string) int {
	return sort.Search(d.len(), func(i int) bool {
		w := d.word(i)
		return w > prefix && !strings.HasPrefix(w, prefix)
	})
}

// walk goes through sorted words and counts slips from a typed one, for all words that begin alike at once. It looks at
// the first byte of each letter alone, so it counts no more than Typos does, and the same where letters are plain.
type walk struct {
	typed  []byte
	prefix bool
	most   int                                 // slips
	depth  int                                 // bytes of the word before that were looked at
	dead   int                                 // how many bytes of it are too far from the typed word, whatever follows; never when there are none
	counts [(rowsMost + 1) * utf8.UTFMax]uint8 // by bytes of the word, how many letters these are
	word   [rowsMost]byte                      // the letters
	rows   [rowsMost][finder.Longest + 1]uint8 // by letters of the word and of the typed one, how many slips are between
	best   [rowsMost]uint8                     // by letters of the word, fewest slips of a beginning up to there
}

const (
	rowsMost = finder.Longest + 4
	never    = rowsMost * utf8.UTFMax
)

func (w *walk) start(typed finder.Word, most int) {
	w.typed = w.typed[:0]
	for i := range typed.Text {
		w.typed = append(w.typed, typed.Text[i])
	}
	w.prefix, w.most, w.depth, w.dead = typed.Last, most, 0, never
	for j := range len(w.typed) + 1 {
		w.rows[0][j] = uint8(j)
	}
	w.best[0] = uint8(len(w.typed))
}

// near says whether a word may be near the typed one. It shares so many bytes with the word of the call before.
func (w *walk) near(word string, same int) bool {
	if same >= w.dead {
		return w.begun(w.dead)
	}
	w.dead = never
	for w.depth = min(w.depth, same); w.depth < len(word); {
		if w.step(word[w.depth]) > w.most {
			w.dead = w.depth
			return w.begun(w.dead)
		}
	}
	letters := int(w.counts[w.depth])
	return w.begun(w.depth) || len(w.typed) <= letters+w.most && int(w.rows[letters][len(w.typed)]) <= w.most
}

// begun says whether a beginning of the word is near and that is enough.
func (w *walk) begun(depth int) bool { return w.prefix && int(w.best[w.counts[depth]]) <= w.most }

// step looks at one more byte of the word and gives the fewest slips that are possible then.
func (w *walk) step(c byte) int {
	n := w.counts[w.depth]
	w.depth++
	if !utf8.RuneStart(c) {
		w.counts[w.depth] = n
		return 0
	}
	n++
	w.counts[w.depth], w.word[n] = n, c
	return w.row(int(n))
}

// row counts slips for one more letter. Only what lies near the diagonal can be few.
func (w *walk) row(i int) int {
	m, c := len(w.typed), w.word[i]
	row, last := &w.rows[i], &w.rows[i-1]
	lo, hi := max(1, i-w.most), min(m, i+w.most)
	least, far := uint8(255), uint8(w.most+1)
	row[lo-1] = far
	if lo == 1 {
		row[0] = min(uint8(i), far)
		least = row[0]
	}
	if hi == i+w.most {
		last[hi] = far
	}
	for j := lo; j <= hi; j++ {
		n := last[j-1]
		if w.typed[j-1] != c {
			n = min(n, last[j], row[j-1]) + 1
			if i > 1 && j > 1 && w.typed[j-2] == c && w.typed[j-1] == w.word[i-1] {
				n = min(n, w.rows[i-2][j-2]+1)
			}
		}
		row[j] = n
		least = min(least, n)
	}
	w.best[i] = w.best[i-1]
	if hi == m {
		w.best[i] = min(w.best[i], row[m])
	}
	return int(least)
}
