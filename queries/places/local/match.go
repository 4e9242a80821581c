package local

import (
	"slices"
	"sort"

	"lieudit/queries/places/finder"
)

// Rank is how well a site answers a text, the lower the better: typos, then words that are beginnings or stand for others, then
// fields, each added up over the words. It depends on nothing but the site and the question.
const (
	none       = ^uint32(0) // it does not answer it
	rankTypo   = 1 << 16
	rankBegins = 1 << 8
	rankWords  = 1 // of whoever has all words as they are in its name; 0 is for the external id
)

// scratch is what a search writes on. It is used again.
type scratch struct {
	walk  walk
	total []uint32 // the rank of each site
	word  []uint32 // the same for one word
	terms []uint32 // how many terms each site has of what a word stands for, and the last field of these
}

func filled(s []uint32, n int, with uint32) []uint32 {
	s = slices.Grow(s[:0], n)[:n]
	for i := range s {
		s[i] = with
	}
	return s
}

// match ranks all sites of the index by a text.
func (s *scratch) match(x *index, text string, private bool) {
	words := finder.Words(text)
	first := uint32(rankWords)
	if len(words) == 0 {
		first = none
	}
	s.total = filled(s.total, len(x.rows), first)
	for _, w := range words {
		s.find(x, w)
		for i, rank := range s.word {
			if rank == none || s.total[i] == none {
				s.total[i] = none
			} else {
				s.total[i] += rank
			}
		}
	}
	if private {
		s.identify(x, text)
	}
}

// find ranks all sites by one word.
func (s *scratch) find(x *index, w finder.Word) {
	s.word = filled(s.word, len(x.rows), none)
	x.words.like(w, &s.walk, func(word, typos int, begins bool) {
		rank := uint32(typos * rankTypo)
		if begins {
			rank += rankBegins
		}
		s.post(x.words.list(word), rank)
	})
	switch len(w.Means) {
	case 0:
	case 1:
		s.post(x.words.find(w.Means[0]), rankBegins)
	default:
		s.all(x, w.Means)
	}
}

func (s *scratch) post(list postings, rank uint32) {
	for {
		n, in, ok := list.next()
		if !ok {
			return
		}
		s.word[n] = min(s.word[n], rank+uint32(in))
	}
}

// all ranks the sites that have all of the terms.
func (s *scratch) all(x *index, terms []string) {
	s.terms = filled(s.terms, len(x.rows), 0)
	for i, term := range terms {
		for list := x.words.find(term); ; {
			n, in, ok := list.next()
			if !ok {
				break
			}
			if s.terms[n]>>2 == uint32(i) {
				s.terms[n] = uint32(i+1)<<2 | max(s.terms[n]&3, uint32(in))
			}
		}
	}
	for n, t := range s.terms {
		if t>>2 == uint32(len(terms)) {
			s.word[n] = min(s.word[n], rankBegins+t&3)
		}
	}
}

// identify ranks the sites whose external id is the text, or begins with it.
func (s *scratch) identify(x *index, text string) {
	from := sort.Search(len(x.byID), func(i int) bool { return compareFolded(x.place(x.byID[i]).ExternalID, text) >= 0 })
	for _, n := range x.byID[from:] {
		found := x.place(n).ExternalID
		if len(found) < len(text) || compareFolded(found[:len(text)], text) != 0 {
			return
		}
		rank := uint32(rankWords + rankBegins + uint32(inStreet))
		if len(found) == len(text) {
			rank = 0
		}
		s.total[n] = min(s.total[n], rank)
	}
}

// only leaves the sites that have a mark.
func (s *scratch) only(x *index, mark string) {
	list := x.marks.find(mark)
	from := uint32(0)
	for {
		n, _, ok := list.next()
		if !ok {
			n = uint32(len(s.total))
		}
		for ; from < n; from++ {
			s.total[from] = none
		}
		if !ok {
			return
		}
		from = n + 1
	}
}
