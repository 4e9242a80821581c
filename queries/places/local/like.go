package local

import (
	"sort"
	"strings"
	"unicode/utf8"

	"lieudit/queries/places/finder"
)

const (
	mostBytes = 48 * utf8.UTFMax // of a word that is looked for with typos
	mostSlips = 2 * utf8.UTFMax  // in bytes
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
	if most == 0 || len(typed.Text) > mostBytes {
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
		if same = len(walk.rows); !near {
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

// walk goes through sorted words and counts slips from a typed one in bytes, which for words of plain letters is as Typos
// counts them and for others never more than that times the bytes a letter has. What a word shares with the one before is not counted again.
type walk struct {
	typed  string
	prefix bool
	most   int // slips
	depth  int // rows that stand
	dead   int // the row from which on every word is too far
	rows   [mostBytes + mostSlips + 2][mostBytes + 1]uint8
	best   [mostBytes + mostSlips + 2]uint8 // fewest slips of a beginning up to there
}

func (w *walk) start(typed finder.Word, most int) {
	wide := 1
	for _, r := range typed.Text {
		wide = max(wide, utf8.RuneLen(r))
	}
	w.typed, w.prefix, w.most, w.depth, w.dead = typed.Text, typed.Last, most*wide, 0, len(w.rows)
	for j := range len(w.typed) + 1 {
		w.rows[0][j] = uint8(j)
	}
	w.best[0] = uint8(len(w.typed))
}

// near says whether a word may be near the typed one. It shares so many bytes with the word of the call before.
func (w *walk) near(word string, same int) bool {
	if same >= w.dead {
		return w.prefix && int(w.best[w.dead]) <= w.most
	}
	w.dead = len(w.rows)
	for w.depth = min(w.depth, same); w.depth < len(word); {
		if w.step(word) > w.most {
			w.dead = w.depth
			break
		}
	}
	if w.prefix {
		return int(w.best[w.depth]) <= w.most
	}
	return w.dead == len(w.rows) && int(w.rows[w.depth][len(w.typed)]) <= w.most
}

// step counts for one more byte of the word and gives the fewest slips in its row. Only what lies near the diagonal can be few.
func (w *walk) step(word string) int {
	w.depth++
	i, m := w.depth, len(w.typed)
	row, last := &w.rows[i], &w.rows[i-1]
	lo, hi := max(1, i-w.most), min(m, i+w.most)
	least, far := uint8(255), uint8(w.most+1)
	row[lo-1] = far
	if lo == 1 {
		row[0] = uint8(min(i, w.most+1))
		least = row[0]
	}
	if hi == i+w.most {
		last[hi] = far
	}
	c := word[i-1]
	for j := lo; j <= hi; j++ {
		n := last[j-1]
		if w.typed[j-1] != c {
			n = min(n, last[j], row[j-1]) + 1
			if i > 1 && j > 1 && w.typed[j-2] == c && w.typed[j-1] == word[i-2] {
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
