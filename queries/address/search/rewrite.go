package search

import (
	"math"
	"slices"
	"strings"

	"lieudit/queries/address/parse"
	"lieudit/queries/address/text"
)

const (
	maxRewrites  = 4
	rewriteSteps = MaxSteps / 4
	rewriteCost  = 150 // how much better the answer to other words must score than the one to those typed
	longestSplit = 20
)

// rewrites are other ways to write a question whose words do not all fit: a space put in or left out (noisyle grand, belle
// vue), letters for the digits that stand for them (b0ndy) and digits for letters (l2 rue).
func (s *searcher) rewrites() (all []*parse.Question) {
	add := func(from, to int, with string) {
		if other, ok := s.q.Rewrite(from, to, with); ok && with != "" && len(all) < maxRewrites {
			all = append(all, other)
		}
	}
	for i := 0; i < len(s.q.Terms); i++ {
		if to := s.mixedRun(i); to > i {
			word, digits := s.withoutDigits(i, to)
			add(i, to, word)
			add(i, to, digits)
			i = to - 1
			continue
		}
		if !s.isWord(i) {
			continue
		}
		if apart := s.splitWord(s.q.Terms[i].Typed); !s.namesCommune(i) && (!s.words.hasExact(i) || areLinks(apart)) {
			add(i, i+1, apart)
		}
		if i+1 < len(s.q.Terms) && s.isWord(i+1) && !s.namesCommune(i+1) && s.q.Terms[i+1].Before&(text.Break|text.Open|text.Close) == 0 {
			add(i, i+2, s.joinWords(i))
		}
	}
	return all
}

// isWord says whether a term is a word that may be written otherwise.
func (s *searcher) isWord(i int) bool {
	t := s.q.Terms[i]
	return !t.Digits && !t.Part && s.q.Words().Has(i) && (i+1 == len(s.q.Terms) || !s.q.Terms[i+1].Part)
}

// splitWord is a word as two that the base has, of those that most streets hold; empty where there are none.
func (s *searcher) splitWord(word string) (best string) {
	most := 0
	for at := 1; at < len(word) && len(word) <= longestSplit; at++ {
		left, right := word[:at], word[at:]
		if len(left) < 2 && left != "d" && left != "l" || len(right) < 2 {
			continue
		}
		if n := min(s.countHolders(left), s.countHolders(right)); n > most {
			best, most = left+" "+right, n
		}
	}
	if best == "" {
		return s.splitType(word)
	}
	return best
}

// splitType is a word as a kind of street and two more words: ruedesfleurs.
func (s *searcher) splitType(word string) string {
	for at := 3; at < len(word) && len(word) <= longestSplit; at++ {
		if text.ClassOf(word[:at]) != text.StreetType {
			continue
		}
		if rest := s.splitWord(word[at:]); rest != "" {
			return word[:at] + " " + rest
		}
	}
	return ""
}

// namesCommune says whether a word belongs to the name of a commune as it is, where communes stand.
func (s *searcher) namesCommune(i int) bool {
	return slices.ContainsFunc(s.mentions, func(part mention) bool {
		return part.at.Has(i) && part.isLate && (part.sim >= literalSim || len(part.known) > 0)
	})
}

// areLinks says whether two words only join others. Written as one they are none of a name, be the base full of slips: dela.
func areLinks(words string) bool {
	first, second, ok := strings.Cut(words, " ")
	return ok && text.ClassOf(first) == text.StopWord && text.ClassOf(second) == text.StopWord
}

// countHolders is how many streets or places hold a word.
func (s *searcher) countHolders(word string) (n int) {
	terms := text.Terms(word)
	if len(terms) == 0 || len(terms) > 1 && !terms[1].Part {
		return 0
	}
	id, ok := s.v.FindTerm(terms[0].Text)
	if !ok {
		return 0
	}
	if text.ClassOf(terms[0].Text) == text.StopWord {
		return math.MaxInt // links have no postings
	}
	return s.v.StreetsWith(id).Len() + s.v.PlacesWith(id).Len()
}

// joinWords is a word and the next one as one that the base has, or empty.
func (s *searcher) joinWords(i int) string {
	word := s.q.Terms[i].Typed + s.q.Terms[i+1].Typed
	if len(word) < 4 || s.countHolders(word) == 0 {
		return ""
	}
	return word
}

// mixedRun is the end of the terms from one on that are digits and letters in one word, or the term itself.
func (s *searcher) mixedRun(i int) int {
	to := i + 1
	for to < len(s.q.Terms) && s.q.Terms[to].Glued && !s.q.Terms[to-1].Elided {
		to++
	}
	digits := s.q.Digits() & parse.Span(i, to)
	if s.isNumberWithID(i, to) {
		return i
	}
	if to == i+1 || digits == 0 || digits == parse.Span(i, to) || parse.Span(i, to)&^s.q.Words() != 0 || s.q.Terms[i].Digits && to == i+2 {
		return i
	}
	return to
}

// hasMixed says whether the best candidate leaves a word aside that digits and letters make up.
func (s *searcher) hasMixed() bool {
	left := s.unused()
	for i := range s.q.Terms {
		if left.Has(i) && s.list.top() < sureScore && s.mixedRun(i) > i {
			return true
		}
	}
	return false
}

// isNumberWithID says whether terms are a house number with the name of a building behind it, which is no word: 12C7.
func (s *searcher) isNumberWithID(from, to int) bool {
	return to == from+3 && s.q.Terms[from].Digits && len(s.q.Terms[from+1].Typed) == 1 && s.q.Terms[from+2].Digits
}

// withoutDigits is a run of digits and letters as a word that the base has, and as a number; empty where it is none.
func (s *searcher) withoutDigits(from, to int) (word, number string) {
	var letters, digits strings.Builder
	for _, t := range s.q.Terms[from:to] {
		letters.WriteString(strings.Map(letterFor, t.Typed+t.Tail))
		digits.WriteString(strings.Map(digitFor, t.Typed+t.Tail))
	}
	if s.countHolders(letters.String()) > 0 {
		word = letters.String()
	}
	if !s.q.Terms[from].Digits && parse.Number(digits.String()) > 0 && digits.Len() <= 5 {
		number = digits.String()
	}
	return word, number
}

// letterFor is the letter that a digit is taken for.
func letterFor(r rune) rune {
	switch r {
	case '0':
		return 'o'
	case '1':
		return 'l'
	case '3':
		return 'e'
	case '4':
		return 'a'
	case '5':
		return 's'
	case '8':
		return 'b'
	}
	return r
}

// digitFor is the digit that a letter is taken for.
func digitFor(r rune) rune {
	switch r {
	case 'o':
		return '0'
	case 'l', 'i':
		return '1'
	case 's':
		return '5'
	}
	return r
}

// takeForRewritten makes what was found for other words than those typed an answer to look at.
func (r *Result) takeForRewritten() {
	for i := range r.Best {
		r.Best[i].IsSound = false
		r.Best[i].Score = max(r.Best[i].Score-rewriteCost, 0)
	}
	r.run.list.best = r.Best
}
