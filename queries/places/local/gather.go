package local

import (
	"maps"
	"slices"

	"lieudit/queries/places/finder"
)

// gathering collects the words of sites that come in the order of their ordinals.
type gathering struct {
	numbers map[string]uint32   // of words
	texts   map[string][]uint32 // the words of texts that many sites have
	seen    []posted
	last    []int // by word, where in seen
}

type posted struct {
	word, ordinal uint32
	in            field
}

func newGathering() *gathering {
	return &gathering{numbers: map[string]uint32{}, texts: map[string][]uint32{}}
}

func (g *gathering) number(word string) uint32 {
	n, known := g.numbers[word]
	if !known {
		n = uint32(len(g.last))
		g.numbers[word] = n
		g.last = append(g.last, -1)
	}
	return n
}

// cut adds the words of a text.
func (g *gathering) cut(text string, ordinal uint32, in field) {
	if text == "" {
		return
	}
	words, known := g.texts[text]
	if !known {
		finder.Terms(text, func(word string) { words = append(words, g.number(word)) })
		if in == inPlace {
			g.texts[text] = words
		}
	}
	for _, n := range words {
		g.add(n, ordinal, in)
	}
}

func (g *gathering) add(word, ordinal uint32, in field) {
	if at := g.last[word]; at >= 0 && g.seen[at].ordinal == ordinal {
		g.seen[at].in = min(g.seen[at].in, in)
		return
	}
	g.last[word] = len(g.seen)
	g.seen = append(g.seen, posted{word, ordinal, in})
}

func (g *gathering) dict() dict {
	words := slices.Sorted(maps.Keys(g.numbers))
	var w writer
	sorted, ends := g.sorted()
	for _, word := range words {
		n := g.numbers[word]
		from := 0
		if n > 0 {
			from = ends[n-1]
		}
		for _, p := range sorted[from:ends[n]] {
			w.post(word, p.ordinal, p.in)
		}
		w.end()
	}
	return w.dict()
}

// sorted is what was seen by the numbers of the words, and where each ends.
func (g *gathering) sorted() ([]posted, []int) {
	next := make([]int, len(g.last)+1)
	for _, p := range g.seen {
		next[p.word+1]++
	}
	for i := range g.last {
		next[i+1] += next[i]
	}
	sorted := make([]posted, len(g.seen))
	for _, p := range g.seen {
		sorted[next[p.word]] = p
		next[p.word]++
	}
	return sorted, next
}
