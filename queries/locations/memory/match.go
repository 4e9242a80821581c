package memory

import (
	"slices"
	"sort"

	"lieudit/queries/locations/search"
)

// Rank is how well a site answers a text, the lower the better: typos, then words that are beginnings or stand for others, then
// fields, each added up over the words. It depends on nothing but the site and the question.
const (
	notMatched = ^uint32(0) // it does not answer it
	rankTypo   = 1 << 16
	rankBegins = 1 << 8
	rankWords  = 1 // of whoever has all words as they are in its name; 0 is for the external id
)

// rankBuffers is what a search writes on. It is used again.
type rankBuffers struct {
	walk       levenshteinWalk
	ranks      []uint32 // the rank of each site
	wordRanks  []uint32 // the same for one word
	termCounts []uint32 // how many terms each site has of what a word stands for, and the last field of these
}

func fillSlice(s []uint32, n int, value uint32) []uint32 {
	s = slices.Grow(s[:0], n)[:n]
	for i := range s {
		s[i] = value
	}
	return s
}

// rankByText ranks all sites of the index by a text.
func (s *rankBuffers) rankByText(x *index, text string, private bool) {
	words := search.QueryWords(text)
	first := uint32(rankWords)
	if len(words) == 0 {
		first = notMatched
	}
	s.ranks = fillSlice(s.ranks, len(x.recordRefs), first)
	for _, w := range words {
		s.rankByWord(x, w)
		for i, rank := range s.wordRanks {
			if rank == notMatched || s.ranks[i] == notMatched {
				s.ranks[i] = notMatched
			} else {
				s.ranks[i] += rank
			}
		}
	}
	if private {
		s.rankByExternalID(x, text)
	}
}

// rankByWord ranks all sites by one word.
func (s *rankBuffers) rankByWord(x *index, w search.Word) {
	s.wordRanks = fillSlice(s.wordRanks, len(x.recordRefs), notMatched)
	x.words.visitMatches(w, &s.walk, func(word, typos int, begins bool) {
		rank := uint32(typos * rankTypo)
		if begins {
			rank += rankBegins
		}
		s.addPostings(x.words.postingsOf(word), rank)
	})
	switch len(w.Expansions) {
	case 0:
	case 1:
		s.addPostings(x.words.lookup(w.Expansions[0]), rankBegins)
	default:
		s.rankByAllTerms(x, w.Expansions)
	}
}

func (s *rankBuffers) addPostings(list postingIterator, rank uint32) {
	for {
		n, in, ok := list.next()
		if !ok {
			return
		}
		s.wordRanks[n] = min(s.wordRanks[n], rank+uint32(in))
	}
}

// rankByAllTerms ranks the sites that have all of the terms.
func (s *rankBuffers) rankByAllTerms(x *index, terms []string) {
	s.termCounts = fillSlice(s.termCounts, len(x.recordRefs), 0)
	for i, term := range terms {
		for list := x.words.lookup(term); ; {
			n, in, ok := list.next()
			if !ok {
				break
			}
			if s.termCounts[n]>>2 == uint32(i) {
				s.termCounts[n] = uint32(i+1)<<2 | max(s.termCounts[n]&3, uint32(in))
			}
		}
	}
	for n, t := range s.termCounts {
		if t>>2 == uint32(len(terms)) {
			s.wordRanks[n] = min(s.wordRanks[n], rankBegins+t&3)
		}
	}
}

// rankByExternalID ranks the sites whose external id is the text, or begins with it.
func (s *rankBuffers) rankByExternalID(x *index, text string) {
	from := sort.Search(len(x.byID), func(i int) bool { return compareFolded(x.sortKey(x.byID[i]).ExternalID, text) >= 0 })
	for _, n := range x.byID[from:] {
		found := x.sortKey(n).ExternalID
		if len(found) < len(text) || compareFolded(found[:len(text)], text) != 0 {
			return
		}
		rank := uint32(rankWords + rankBegins + uint32(inAddress))
		if len(found) == len(text) {
			rank = 0
		}
		s.ranks[n] = min(s.ranks[n], rank)
	}
}

// keepOnly leaves the sites that have a mark.
func (s *rankBuffers) keepOnly(x *index, facet string) {
	list := x.facets.lookup(facet)
	next := uint32(0)
	for {
		n, _, ok := list.next()
		if !ok {
			n = uint32(len(s.ranks))
		}
		for ; next < n; next++ {
			s.ranks[next] = notMatched
		}
		if !ok {
			return
		}
		next = n + 1
	}
}
