package memory

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lieudit/queries/locations/search"
)

func invertedIndexOf(words []string) *invertedIndex {
	var w indexWriter
	for i, word := range words {
		w.addPosting(word, uint32(i), search.InName)
		w.endWord()
	}
	d := w.build()
	return &d
}

// randomWords are random words of few letters, so that many are near each other.
func randomWords(rng *rand.Rand, n int) []string {
	alphabets := []string{"abc", "abc", "abé", "аб\u0432", "مخب", "a漢字"}
	words := map[string]bool{}
	for len(words) < n {
		alphabet := []rune(alphabets[rng.IntN(len(alphabets))])
		letters := make([]rune, 1+rng.IntN(12))
		for i := range letters {
			letters[i] = alphabet[rng.IntN(len(alphabet))]
		}
		words[string(letters)] = true
	}
	var all []string
	for w := range words {
		all = append(all, w)
	}
	slices.Sort(all)
	return all
}

func TestAnInvertedIndexFindsAllWordsWithinTheTypos(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(7, 7))
	words := randomWords(rng, 1500)
	d, walk := invertedIndexOf(words), new(levenshteinWalk)
	for range 400 {
		typed := []rune(words[rng.IntN(len(words))])
		for range rng.IntN(4) {
			i := rng.IntN(len(typed))
			switch rng.IntN(3) {
			case 0:
				typed[i] = typed[rng.IntN(len(typed))]
			case 1:
				typed = slices.Insert(typed, i, typed[0])
			case 2:
				if len(typed) > 1 {
					typed = slices.Delete(typed, i, i+1)
				}
			}
		}
		for _, word := range []search.Word{{Text: string(typed)}, {Text: string(typed), MayBePrefix: true}, {Text: string(typed), MayBePrefix: true, AllowsPrefixTypos: true}} {
			wanted, got := map[string]string{}, map[string]string{}
			for _, w := range words {
				n, ok := search.CountTypos(word.Text, w, word.AllowsPrefixTypos)
				if word.MayBePrefix && strings.HasPrefix(w, word.Text) {
					n, ok = 0, true
				}
				if ok {
					whole, exact := search.CountTypos(word.Text, w, false)
					wanted[w] = fmt.Sprint(n, !exact || whole != n)
				}
			}
			d.visitMatches(word, walk, func(word, typos int, begins bool) {
				if _, twice := got[d.word(word)]; twice {
					t.Errorf("%s is found twice", d.word(word))
				}
				got[d.word(word)] = fmt.Sprint(typos, begins)
			})
			if diff := cmp.Diff(wanted, got); diff != "" {
				t.Fatalf("%+v: %s", word, diff)
			}
		}
	}
}

func TestAnInvertedIndexIsSearchedWithWordsOfAnyLength(t *testing.T) {
	t.Parallel()
	d, walk := invertedIndexOf([]string{strings.Repeat("a", 10), strings.Repeat("a", 300), strings.Repeat("a", 300) + "b", strings.Repeat("漢", 49)}), new(levenshteinWalk)
	for _, typed := range []string{"", "a", strings.Repeat("a", 8), strings.Repeat("a", 48), strings.Repeat("a", 49), strings.Repeat("漢", 48), strings.Repeat("漢", 200)} {
		for _, last := range []bool{false, true} {
			for i := range d.len() {
				_, want := search.CountTypos(typed, d.word(i), last)
				got := false
				d.visitMatches(search.Word{Text: typed, MayBePrefix: last, AllowsPrefixTypos: last}, walk, func(word, _ int, _ bool) { got = got || word == i })
				if got != want {
					t.Errorf("%d letters for %d bytes, last: %v: got %v, want %v", len([]rune(typed)), len(d.word(i)), last, got, want)
				}
			}
		}
	}
}

func BenchmarkVisitMatches(b *testing.B) {
	d, walk := invertedIndexOf(randomWords(rand.New(rand.NewPCG(7, 7)), 20_000)), new(levenshteinWalk)
	for b.Loop() {
		d.visitMatches(search.Word{Text: "abcabcab", MayBePrefix: true, AllowsPrefixTypos: true}, walk, func(int, int, bool) {})
	}
}
