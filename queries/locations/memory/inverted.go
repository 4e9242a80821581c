package memory

import (
	"encoding/binary"
	"maps"
	"slices"
	"sort"
	"strings"

	"lieudit/queries/locations/search"
)

// invertedIndex is a sorted list of words, each with its postings: the ordinals of the sites that have it, ascending,
// with the field that contains the word. It is immutable. The words are one text and the postings one string, so an index
// of a million words is five objects for the garbage collector.
//
// A posting is a varint of the difference to the ordinal before, times four, plus the field: sites 3 (name) and 5
// (town) are 12 and 9.
//
// Vellum's dictionaries (FST) are not used, because a typo in the first letter counts as two here, which its Levenshtein
// automaton does not support.
type invertedIndex struct {
	text           string   // the words, one after the other
	wordEnds       []uint32 // of each word in text
	postingBytes   string   // of postings, as varints: the field in the two lowest bits, above it the difference to the ordinal before
	listEnds       []uint32 // of each word's postings in postingBytes
	sharedPrefixes []uint8  // how many bytes each word shares with the word before it, at most 255
}

func (d *invertedIndex) len() int { return len(d.wordEnds) }

// word returns the i-th word.
func (d *invertedIndex) word(i int) string {
	from := uint32(0)
	if i > 0 {
		from = d.wordEnds[i-1]
	}
	return d.text[from:d.wordEnds[i]]
}

// postingsOf returns the postings of the i-th word.
func (d *invertedIndex) postingsOf(i int) postingIterator {
	from := uint32(0)
	if i > 0 {
		from = d.listEnds[i-1]
	}
	return postingIterator{rest: d.postingBytes[from:d.listEnds[i]]}
}

// lowerBound returns the first word that is not before s.
func (d *invertedIndex) lowerBound(s string) int {
	return sort.Search(d.len(), func(i int) bool { return d.word(i) >= s })
}

// lookup returns the postings of a word, which are empty if the index lacks the word.
func (d *invertedIndex) lookup(word string) postingIterator {
	if i := d.lowerBound(word); i < d.len() && d.word(i) == word {
		return d.postingsOf(i)
	}
	return postingIterator{}
}

// postingIterator is the rest of a word's postings.
type postingIterator struct {
	rest    string
	ordinal uint32
}

// nextPosting returns the next site, or false at the end. It decodes varints itself, because encoding/binary does not
// read strings.
func (p *postingIterator) nextPosting() (ordinal uint32, field search.Field, ok bool) {
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
	p.ordinal += n >> 2
	return p.ordinal, search.Field(n & 3), true
}

// indexWriter writes an invertedIndex, its words in order.
type indexWriter struct {
	text, postingBytes []byte
	wordEnds, listEnds []uint32
	sharedPrefixes     []uint8
	lastOrdinal        uint32 // of the word that is being written
	wordStarted        bool
	previousStart      int // where the previous word begins in text
}

// addPosting adds a posting to a word. The first one begins the word; the ordinals of a word must ascend.
func (w *indexWriter) addPosting(word string, ordinal uint32, field search.Field) {
	if !w.wordStarted {
		w.wordStarted, w.lastOrdinal = true, 0
		w.text = append(w.text, word...)
	}
	w.postingBytes = binary.AppendUvarint(w.postingBytes, uint64(ordinal-w.lastOrdinal)<<2|uint64(field))
	w.lastOrdinal = ordinal
}

// endWord ends a word. A word without postings is left out.
func (w *indexWriter) endWord() {
	if !w.wordStarted {
		return
	}
	start := 0
	if n := len(w.wordEnds); n > 0 {
		start = int(w.wordEnds[n-1])
	}
	w.sharedPrefixes = append(w.sharedPrefixes, sharedPrefixLength(w.text[w.previousStart:start], w.text[start:]))
	w.wordEnds, w.listEnds = append(w.wordEnds, uint32(len(w.text))), append(w.listEnds, uint32(len(w.postingBytes)))
	w.wordStarted, w.previousStart = false, start
}

// sharedPrefixLength returns the length in bytes of the common prefix of two words, at most 255.
func sharedPrefixLength(a, b []byte) uint8 {
	n := 0
	for n < len(a) && n < len(b) && n < 255 && a[n] == b[n] {
		n++
	}
	return uint8(n)
}

// build returns the index of what was written. The writer must not be used afterwards.
func (w *indexWriter) build() invertedIndex {
	return invertedIndex{string(w.text), slices.Clip(w.wordEnds), string(w.postingBytes), slices.Clip(w.listEnds), slices.Clip(w.sharedPrefixes)}
}

// mergeInverted returns the union of the indexes a and b. ordinalsA and ordinalsB hold the new ordinal of each of their
// sites.
func mergeInverted(a, b *invertedIndex, ordinalsA, ordinalsB []uint32) invertedIndex {
	w := indexWriter{
		text: make([]byte, 0, len(a.text)+len(b.text)), postingBytes: make([]byte, 0, len(a.postingBytes)+len(b.postingBytes)+16),
		wordEnds: make([]uint32, 0, a.len()+b.len()), listEnds: make([]uint32, 0, a.len()+b.len()), sharedPrefixes: make([]uint8, 0, a.len()+b.len()),
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
		var left, right postingIterator
		word := ""
		if order <= 0 {
			word, left = a.word(i), a.postingsOf(i)
			i++
		}
		if order >= 0 {
			word, right = b.word(j), b.postingsOf(j)
			j++
		}
		w.mergeWord(word, renumberedPostings{left, ordinalsA}, renumberedPostings{right, ordinalsB})
	}
	return w.build()
}

// renumberedPostings are postings whose sites get other ordinals.
type renumberedPostings struct {
	postingIterator
	newOrdinals []uint32
}

// droppedOrdinal is the new ordinal of a site that is left out.
const droppedOrdinal = ^uint32(0)

// nextPosting returns the next site that is not left out, or false at the end, with an ordinal that sorts last.
func (m *renumberedPostings) nextPosting() (ordinal uint32, field search.Field, ok bool) {
	for {
		ordinal, field, ok = m.postingIterator.nextPosting()
		if !ok {
			return droppedOrdinal, 0, false
		}
		if to := m.newOrdinals[ordinal]; to != droppedOrdinal {
			return to, field, true
		}
	}
}

// mergeWord writes a word whose postings come from both sides. No ordinal is on both: a site is either old or added.
func (w *indexWriter) mergeWord(word string, left, right renumberedPostings) {
	a, fieldA, moreLeft := left.nextPosting()
	b, fieldB, moreRight := right.nextPosting()
	for moreLeft || moreRight {
		if a < b {
			w.addPosting(word, a, fieldA)
			a, fieldA, moreLeft = left.nextPosting()
		} else {
			w.addPosting(word, b, fieldB)
			b, fieldB, moreRight = right.nextPosting()
		}
	}
	w.endWord()
}

// postingCollector collects the words of sites that come in the order of their ordinals. Words are numbered as they come,
// so that a posting is a few numbers without a text.
type postingCollector struct {
	wordIDs      map[string]uint32   // a number for each word
	wordsOfText  map[string][]uint32 // word numbers of texts that many sites have: towns, postcodes and tags
	postings     []posting
	lastPostings []int // by word number, the index in postings
}

// posting is a word in a site. ordinal is the site's index in the list that is being indexed.
type posting struct {
	word, ordinal uint32
	field         search.Field
}

func newPostingCollector() *postingCollector {
	return &postingCollector{wordIDs: map[string]uint32{}, wordsOfText: map[string][]uint32{}}
}

// wordID returns the number of a word, and numbers a new word.
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
func (g *postingCollector) addText(text string, ordinal uint32, field search.Field) {
	if text == "" {
		return
	}
	words, known := g.wordsOfText[text]
	if !known {
		search.VisitTerms(text, func(word string) { words = append(words, g.wordID(word)) })
		if field == search.InTown {
			g.wordsOfText[text] = words
		}
	}
	for _, n := range words {
		g.addPosting(n, ordinal, field)
	}
}

// addPosting adds a posting or, if the site already has the word, keeps the first of the two fields.
func (g *postingCollector) addPosting(word, ordinal uint32, field search.Field) {
	if at := g.lastPostings[word]; at >= 0 && g.postings[at].ordinal == ordinal {
		g.postings[at].field = min(g.postings[at].field, field)
		return
	}
	g.lastPostings[word] = len(g.postings)
	g.postings = append(g.postings, posting{word, ordinal, field})
}

// build returns the index of everything that was collected.
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
			w.addPosting(word, p.ordinal, p.field)
		}
		w.endWord()
	}
	return w.build()
}

// sortByWord sorts the postings by word number, and returns the end of each word's postings. It is a counting sort, which
// keeps the order of ordinals.
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
