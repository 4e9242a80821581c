package search

import (
	"math"
	"strings"

	"lieudit/queries/address/parse"
	"lieudit/queries/address/text"
	"lieudit/queries/address/vintage"
)

const (
	maxRewrites  = 4            // each costs a search
	rewriteSteps = MaxSteps / 4 // together they cost as much as the first reading
	rewriteCost  = 150          // how much better a rewriting must score than the words that were typed
	longestSplit = 20           // letters of the longest word that is split; each position is looked up
)

// rewriter writes a question otherwise of which a reading is known.
type rewriter struct {
	*query
	found   recognition
	ranking *ranker
}

// rewrites are other ways to write a question whose words do not all fit. A space is put in or left out (noisyle
// grand, belle vue). Letters replace digits (b0ndy), and digits replace letters (l2 rue). Words that name a
// commune are kept.
func (w rewriter) rewrites() (all []*parse.Question) {
	add := func(from, to int, with string) {
		if other, ok := w.q.Rewrite(from, to, with); ok && with != "" && len(all) < maxRewrites {
			all = append(all, other)
		}
	}
	for i := 0; i < len(w.q.Terms); i++ {
		if to := mixedRun(w.q, i); to > i {
			word, digits := w.readMixedRun(i, to)
			add(i, to, word)
			add(i, to, digits)
			i = to - 1
			continue
		}
		if !isWord(w.q, i) {
			continue
		}
		if apart := w.splitWord(w.q.Terms[i].Typed); !w.found.namesCommune(i) && (!w.lexicon.hasExact(i) || areLinks(apart)) {
			add(i, i+1, apart)
		} else if !w.found.namesCommune(i) {
			add(i, i+1, w.splitInPlace(w.q.Terms[i].Typed))
		}
		add(i, i+1, w.initials(i))
		if i+1 < len(w.q.Terms) && isWord(w.q, i+1) && !w.found.namesCommune(i+1) && w.q.Terms[i+1].Before&(text.Break|text.Open|text.Close) == 0 {
			add(i, i+2, w.joinWords(i))
		}
	}
	return all
}

// isWord reports whether a term is a word that may be written otherwise.
func isWord(q *parse.Question, i int) bool {
	t := q.Terms[i]
	return !t.Digits && !t.Part && q.Words().Has(i) && (i+1 == len(q.Terms) || !q.Terms[i+1].Part)
}

// splitWord splits a word into two that the base has. Of several splits it takes the one whose rarer half most
// streets hold. Where there is none it tries three words.
func (w rewriter) splitWord(word string) (best string) {
	most := 0
	for at := 1; at < len(word) && len(word) <= longestSplit; at++ {
		left, right := word[:at], word[at:]
		if len(left) < 2 && left != "d" && left != "l" || len(right) < 2 {
			continue
		}
		if n := min(countHolders(w.v, left), countHolders(w.v, right)); n > most {
			best, most = left+" "+right, n
		}
	}
	if best == "" {
		return w.splitType(word)
	}
	return best
}

// splitType splits a word into a kind of street and two more words: ruedesfleurs.
func (w rewriter) splitType(word string) string {
	for at := 3; at < len(word) && len(word) <= longestSplit; at++ {
		if text.ClassOf(word[:at]) != text.StreetType {
			continue
		}
		if rest := w.splitWord(word[at:]); rest != "" {
			return word[:at] + " " + rest
		}
	}
	return ""
}

// splitInPlace splits a word that the base has into two that stand side by side in the name of a street where the words
// say: Bellevue is another street than Belle Vue, unless the place has the latter alone. It is empty where there is none.
func (w rewriter) splitInPlace(word string) string {
	for at := 2; at+2 <= len(word) && len(word) <= longestSplit; at++ {
		left, ok := w.v.FindTerm(word[:at])
		if !ok {
			continue
		}
		if right, ok := w.v.FindTerm(word[at:]); ok && w.placeHasPair(left, right) {
			return word[:at] + " " + word[at:]
		}
	}
	return ""
}

const (
	fewPlaces  = 24 // places whose streets are looked at for two terms
	fewHolders = 64 // streets of a place that are looked at
)

// placeHasPair reports whether a street of a place that the question names has one term right before another.
func (w rewriter) placeHasPair(before, behind uint32) bool {
	holders := w.v.StreetsWith(behind)
	for _, p := range w.found.places[:min(len(w.found.places), fewPlaces)] {
		if !p.hasTypedCode && (p.name == vintage.None || !p.isLate || p.sim < literalSim) {
			continue
		}
		from, to := w.v.CommuneStreets(p.commune)
		of := holders.Within(from, to)
		w.budget.left -= 4
		for j := range min(of.Len(), fewHolders) {
			w.budget.left--
			if name := w.v.NameTerms(w.v.StreetName(of.At(j))); hasNeighbours(name, before, behind) {
				return true
			}
		}
	}
	return false
}

// hasNeighbours reports whether a name has one term right before another.
func hasNeighbours(name vintage.Column, before, behind uint32) bool {
	for k := 1; k < name.Len(); k++ {
		if name.At(k) == behind && name.At(k-1) == before {
			return true
		}
	}
	return false
}

// initials writes two letters apart that may be the initials of a first name: JP Timbaud. They are empty for any other
// word, and for a Roman numeral.
func (w rewriter) initials(i int) string {
	t := w.q.Terms[i]
	if len(t.Typed) != 2 || t.Text != t.Typed || w.q.IsStopWord(i) || w.found.namesCommune(i) || strings.Trim(t.Typed, "ivx") == "" {
		return ""
	}
	return t.Typed[:1] + ". " + t.Typed[1:] + "."
}

// areLinks reports whether two words are both links: dela. Such a word is split even where the base has it, because
// the base has misspellings, too.
func areLinks(words string) bool {
	first, second, ok := strings.Cut(words, " ")
	return ok && text.ClassOf(first) == text.StopWord && text.ClassOf(second) == text.StopWord
}

// countHolders is how many streets and places hold a word. It is 0 for what is not exactly one word.
func countHolders(v *vintage.Vintage, word string) (n int) {
	terms := text.Terms(word)
	if len(terms) == 0 || len(terms) > 1 && !terms[1].Part {
		return 0
	}
	id, ok := v.FindTerm(terms[0].Text)
	if !ok {
		return 0
	}
	if text.ClassOf(terms[0].Text) == text.StopWord {
		return math.MaxInt // links have no postings
	}
	return v.StreetsWith(id).Len() + v.PlacesWith(id).Len()
}

// joinWords joins term i and the next one to a word that the base has. It is empty where the base has none, and for two
// links, which no name joins but by mistake.
func (w rewriter) joinWords(i int) string {
	word := w.q.Terms[i].Typed + w.q.Terms[i+1].Typed
	if len(word) < 4 || w.q.IsStopWord(i) && w.q.IsStopWord(i+1) || countHolders(w.v, word) == 0 {
		return ""
	}
	return word
}

// mixedRun is the end of a run of attached digits and letters that begins at term i. It is i itself where there is
// no such run, or where the run is a house number with its letter.
func mixedRun(q *parse.Question, i int) int {
	to := i + 1
	for to < len(q.Terms) && q.Terms[to].Glued && !q.Terms[to-1].Elided {
		to++
	}
	digits := q.Digits() & parse.Span(i, to)
	if isNumberWithID(q, i, to) {
		return i
	}
	if to == i+1 || digits == 0 || digits == parse.Span(i, to) || parse.Span(i, to)&^q.Words() != 0 || q.Terms[i].Digits && to == i+2 {
		return i
	}
	return to
}

// hasMixedWord reports whether the best candidate leaves a word of digits and letters unread. Such a word is worth a
// rewriting even where the score is high.
func (w rewriter) hasMixedWord() bool {
	left := w.ranking.unusedWords()
	for i := range w.q.Terms {
		if left.Has(i) && w.ranking.list.top() < sureScore && mixedRun(w.q, i) > i {
			return true
		}
	}
	return false
}

// hasJoinedWord reports whether the best candidate leaves a word unread that makes a word of the base with the one next to it: Bir Hakeim
// for BirHakeim.
func (w rewriter) hasJoinedWord() bool {
	c := w.ranking.list.first()
	if c == nil || c.Score >= sureScore {
		return false
	}
	for i := range w.q.Terms {
		if !c.unread.Has(i) || !isWord(w.q, i) {
			continue
		}
		if i > 0 && isWord(w.q, i-1) && w.joinWords(i-1) != "" || i+1 < len(w.q.Terms) && isWord(w.q, i+1) && w.joinWords(i) != "" {
			return true
		}
	}
	return false
}

// isNumberWithID reports whether terms are a house number with the name of a building attached: 12C7.
func isNumberWithID(q *parse.Question, from, to int) bool {
	return to == from+3 && q.Terms[from].Digits && len(q.Terms[from+1].Typed) == 1 && q.Terms[from+2].Digits
}

// readMixedRun reads a run of digits and letters as a word of the base, and as a number. Either is empty where the
// run is none.
func (w rewriter) readMixedRun(from, to int) (word, number string) {
	var letters, digits strings.Builder
	for _, t := range w.q.Terms[from:to] {
		letters.WriteString(strings.Map(letterFor, t.Typed+t.Tail))
		digits.WriteString(strings.Map(digitFor, t.Typed+t.Tail))
	}
	if countHolders(w.v, letters.String()) > 0 {
		word = letters.String()
	}
	if !w.q.Terms[from].Digits && parse.Number(digits.String()) > 0 && digits.Len() <= 5 {
		number = digits.String()
	}
	return word, number
}

// letterFor is the letter that looks like a digit.
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

// digitFor is the digit that looks like a letter.
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

// markRewritten lowers the answers to a rewriting and makes none of them certain, since other words were typed.
func (r *Result) markRewritten() {
	for i := range r.Best {
		r.Best[i].IsConfirmed = false
		r.Best[i].Score = max(r.Best[i].Score-rewriteCost, 0)
	}
	r.run.ranking.list.best = r.Best
}
