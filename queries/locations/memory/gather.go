package memory

import (
	"maps"
	"slices"

	"lieudit/queries/locations/search"
)

// postingCollector collects the words of sites that come in the order of their ordinals.
type postingCollector struct {
	wordIDs      map[string]uint32   // of words
	wordsOfText  map[string][]uint32 // the words of texts that many sites have
	postings     []posting
	lastPostings []int // by word, where in seen
}

type posting struct {
	word, ordinal uint32
	in            field
}

func newPostingCollector() *postingCollector {
	return &postingCollector{wordIDs: map[string]uint32{}, wordsOfText: map[string][]uint32{}}
}

func (g *postingCollector) wordID(word string) uint32 {
	n, known := g.wordIDs[word]
	if !known {
		n = uint32(len(g.lastPostings))
		g.wordIDs[word] = n
		g.lastPostings = append(g.lastPostings, -1)
	}
	return n
}

// addText adds the words of a text.
func (g *postingCollector) addText(text string, ordinal uint32, in field) {
	if text == "" {
		return
	}
	words, known := g.wordsOfText[text]
	if !known {
		search.VisitTerms(text, func(word string) { words = append(words, g.wordID(word)) })
		if in == inTown {
			g.wordsOfText[text] = words
		}
	}
	for _, n := range words {
		g.addPosting(n, ordinal, in)
	}
}

func (g *postingCollector) addPosting(word, ordinal uint32, in field) {
	if at := g.lastPostings[word]; at >= 0 && g.postings[at].ordinal == ordinal {
		g.postings[at].in = min(g.postings[at].in, in)
		return
	}
	g.lastPostings[word] = len(g.postings)
	g.postings = append(g.postings, posting{word, ordinal, in})
}

func (g *postingCollector) build() invertedIndex {
	words := slices.Sorted(maps.Keys(g.wordIDs))
	var w indexWriter
	sorted, ends := g.sortByWord()
	for _, word := range words {
		n := g.wordIDs[word]
		from := 0
		if n > 0 {
			from = ends[n-1]
		}
		for _, p := range sorted[from:ends[n]] {
			w.addPosting(word, p.ordinal, p.in)
		}
		w.endWord()
	}
	return w.build()
}

// sortByWord is what was seen by the numbers of the words, and where each ends.
func (g *postingCollector) sortByWord() ([]posting, []int) {
	next := make([]int, len(g.lastPostings)+1)
	for _, p := range g.postings {
		next[p.word+1]++
	}
	for i := range g.lastPostings {
		next[i+1] += next[i]
	}
	sorted := make([]posting, len(g.postings))
	for _, p := range g.postings {
		sorted[next[p.word]] = p
		next[p.word]++
	}
	return sorted, next
}
