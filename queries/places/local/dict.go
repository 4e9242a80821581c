package local

import (
	"encoding/binary"
	"slices"
	"sort"
	"strings"
)

// dict is a sorted list of words, each with the sites that have it, as ordinals that rise, and where in the site it is.
// It does not change.
type dict struct {
	text  string   // the words, one after the other
	ends  []uint32 // of each word in text
	lists string   // of postings, as varints: the field in the two lowest bits, above it the step from the ordinal before
	tails []uint32 // of each word's list in lists
	same  []uint8  // how many bytes each word shares with the one before, at most 255
}

func (d *dict) len() int { return len(d.ends) }

func (d *dict) word(i int) string {
	from := uint32(0)
	if i > 0 {
		from = d.ends[i-1]
	}
	return d.text[from:d.ends[i]]
}

func (d *dict) list(i int) postings {
	from := uint32(0)
	if i > 0 {
		from = d.tails[i-1]
	}
	return postings{rest: d.lists[from:d.tails[i]]}
}

// from is the first word that is not before s.
func (d *dict) from(s string) int {
	return sort.Search(d.len(), func(i int) bool { return d.word(i) >= s })
}

// find is the list of a word, empty where there is none.
func (d *dict) find(word string) postings {
	if i := d.from(word); i < d.len() && d.word(i) == word {
		return d.list(i)
	}
	return postings{}
}

// postings are what is left of a list.
type postings struct {
	rest string
	at   uint32
}

// next is the next site, or false at the end.
func (p *postings) next() (ordinal uint32, in field, ok bool) {
	if p.rest == "" {
		return 0, 0, false
	}
	n, size := uint32(p.rest[0]), 1
	if n >= 0x80 {
		n &= 0x7f
		for shift := 7; ; shift += 7 {
			b := p.rest[size]
			size++
			n |= uint32(b&0x7f) << shift
			if b < 0x80 {
				break
			}
		}
	}
	p.rest = p.rest[size:]
	p.at += n >> 2
	return p.at, field(n & 3), true
}

// writer writes a dict, its words in order.
type writer struct {
	text, lists []byte
	ends, tails []uint32
	same        []uint8
	last        uint32 // ordinal in the list under way
	begun       bool
	before      int // where the word before begins
}

func (w *writer) post(word string, ordinal uint32, in field) {
	if !w.begun {
		w.begun, w.last = true, 0
		w.text = append(w.text, word...)
	}
	w.lists = binary.AppendUvarint(w.lists, uint64(ordinal-w.last)<<2|uint64(in))
	w.last = ordinal
}

// end ends a word. One without postings is left out.
func (w *writer) end() {
	if !w.begun {
		return
	}
	start := 0
	if n := len(w.ends); n > 0 {
		start = int(w.ends[n-1])
	}
	w.same = append(w.same, shared(w.text[w.before:start], w.text[start:]))
	w.ends, w.tails = append(w.ends, uint32(len(w.text))), append(w.tails, uint32(len(w.lists)))
	w.begun, w.before = false, start
}

func shared(a, b []byte) uint8 {
	n := 0
	for n < len(a) && n < len(b) && n < 255 && a[n] == b[n] {
		n++
	}
	return uint8(n)
}

func (w *writer) dict() dict {
	return dict{string(w.text), slices.Clip(w.ends), string(w.lists), slices.Clip(w.tails), slices.Clip(w.same)}
}

// merged is a dict of what is in a and in b, whose sites have other ordinals there: those that these lists say.
func merged(a, b *dict, inA, inB []uint32) dict {
	w := writer{
		text: make([]byte, 0, len(a.text)+len(b.text)), lists: make([]byte, 0, len(a.lists)+len(b.lists)+16),
		ends: make([]uint32, 0, a.len()+b.len()), tails: make([]uint32, 0, a.len()+b.len()), same: make([]uint8, 0, a.len()+b.len()),
	}
	for i, j := 0, 0; i < a.len() || j < b.len(); {
		order := 0
		switch {
		case i == a.len():
			order = 1
		case j == b.len():
			order = -1
		default:
			order = strings.Compare(a.word(i), b.word(j))
		}
		var left, right postings
		word := ""
		if order <= 0 {
			word, left = a.word(i), a.list(i)
			i++
		}
		if order >= 0 {
			word, right = b.word(j), b.list(j)
			j++
		}
		w.both(word, moving{left, inA}, moving{right, inB})
	}
	return w.dict()
}

// moving are postings whose sites are to have other ordinals.
type moving struct {
	postings
	to []uint32
}

// gone is the ordinal of a site that is left out.
const gone = ^uint32(0)

func (m *moving) next() (ordinal uint32, in field, ok bool) {
	for {
		ordinal, in, ok = m.postings.next()
		if !ok {
			return gone, 0, false
		}
		if to := m.to[ordinal]; to != gone {
			return to, in, true
		}
	}
}

// both writes a word of which one part comes from either side.
func (w *writer) both(word string, left, right moving) {
	a, inA, more := left.next()
	b, inB, too := right.next()
	for more || too {
		if a < b {
			w.post(word, a, inA)
			a, inA, more = left.next()
		} else {
			w.post(word, b, inB)
			b, inB, too = right.next()
		}
	}
	w.end()
}
