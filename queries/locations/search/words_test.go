package search_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lieudit/queries/locations/search"
)

func TestQueryWords(t *testing.T) {
	t.Parallel()
	for question, want := range map[string][]search.Word{
		"":              nil,
		" ?! 🥐 ":        nil,
		"Cœur de l'Été": {{Text: "coeur", MayBePrefix: true}, {Text: "de"}, {Text: "l"}, {Text: "ete", MayBePrefix: true, AllowsPrefixTypos: true}},
		"12bis":         {{Text: "12"}, {Text: "bis", MayBePrefix: true, AllowsPrefixTypos: true}},
		"bd St-Jean":    {{Text: "bd", Expansions: []string{"boulevard"}}, {Text: "st", Expansions: []string{"saint"}}, {Text: "jean", MayBePrefix: true, AllowsPrefixTypos: true}},
		"ZI":            {{Text: "zi", Expansions: []string{"zone", "industrielle"}, MayBePrefix: true, AllowsPrefixTypos: true}},
		"n° 3 1er":      {{Text: "3"}, {Text: "1er", Expansions: []string{"1"}, MayBePrefix: true, AllowsPrefixTypos: true}},
		"05":            {{Text: "05", Expansions: []string{"5"}, MayBePrefix: true, AllowsPrefixTypos: true}},
		"mag 123 des flo fl": {
			{Text: "mag", MayBePrefix: true}, {Text: "123"}, {Text: "des", MayBePrefix: true}, {Text: "flo"},
			{Text: "fl", MayBePrefix: true, AllowsPrefixTypos: true},
		},
		"a b c d e f g ":          words("a b c d e f g"),
		"a b c d e f g h i j k m": words("a b c d e f g h i j"),
	} {
		if diff := cmp.Diff(want, search.QueryWords(question)); diff != "" {
			t.Errorf("%q: %s", question, diff)
		}
	}
}

// words are the words of a text that are no abbreviations.
func words(question string) (all []search.Word) {
	for _, w := range strings.Fields(question) {
		all = append(all, search.Word{Text: w})
	}
	all[len(all)-1].MayBePrefix, all[len(all)-1].AllowsPrefixTypos = true, true
	return all
}

func TestTermsAreTheWordsWrittenAndWhatTheyStandFor(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]string{
		"": "", "★": "", "12 bd de l'Église": "12 bd boulevard de l eglise", "ZA Nord": "za zone artisanale nord", "1er étage": "1er 1 etage",
	} {
		var got []string
		search.VisitTerms(s, func(word string) { got = append(got, word) })
		if strings.Join(got, " ") != want {
			t.Errorf("%q: got %q, want %q", s, got, want)
		}
	}
}

func TestTagsAreTheSameWhateverTheirAccentsAndSigns(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"Wi-Fi", "wi fi", true}, {"accès PMR", "ACCES  PMR!", true}, {"★★", " ★★ ", true}, {"★★", "★", false}, {"wifi", "wi-fi", false}, {"", "★", false},
	} {
		if got := search.FoldTag(c.a) == search.FoldTag(c.b); got != c.want {
			t.Errorf("%q and %q are the same: %v, want %v", c.a, c.b, got, c.want)
		}
	}
}

func TestTyposAreAllowedByLength(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		typed, word string
		prefix      bool
		want        int // -1 for too many
	}{
		{"lilas", "lilas", false, 0}, {"lil", "lilas", true, 0}, {"lil", "lilas", false, -1},
		{"lis", "las", false, -1}, {"lila", "lala", false, 1}, {"lila", "lalas", false, -1}, {"lila", "lalas", true, 1},
		{"lilas", "lials", false, 1}, {"lilas", "lillas", false, 1}, {"lilas", "lias", false, 1}, {"lilas", "lolos", false, -1},
		{"boulanger", "bolanjer", false, 2}, {"boulanger", "bolanjet", false, -1}, {"boulanger", "bulangerie", true, 1},
		{"lilas", "milas", false, -1}, {"moulanger", "boulanger", false, 2}, {"obulanger", "boulanger", false, 2}, {"oulanger", "boulanger", false, 2},
		{"moulangre", "boulanger", false, -1},
		{"48000", "48001", false, -1}, {"48000", "480001", true, 0}, {"4800000a", "4800000b", false, -1},
		{"été", "eté", false, -1}, {"пекарня", "пекарна", false, 1}, {"пекарня", "покарна", false, -1}, {"χαρτοπωλ", "χαρτοπολεια", true, 1},
		{strings.Repeat("a", 48), strings.Repeat("a", 46), false, 2}, {strings.Repeat("a", 49), strings.Repeat("a", 50), false, -1},
		{"lila", "", true, -1}, {"", "", false, 0}, {"", "a", true, 0},
	} {
		n, ok := search.CountTypos(c.typed, c.word, c.prefix)
		if ok != (c.want >= 0) || ok && n != c.want {
			t.Errorf("%q for %q: got %d, %v, want %d", c.typed, c.word, n, ok, c.want)
		}
	}
}

// editDistance counts as CountTypos does, by trying everything.
func editDistance(a, b []rune) int {
	switch {
	case len(a) == 0:
		return len(b)
	case len(b) == 0:
		return len(a)
	case a[0] == b[0]:
		return editDistance(a[1:], b[1:])
	}
	n := 1 + min(editDistance(a[1:], b), editDistance(a, b[1:]), editDistance(a[1:], b[1:]))
	if len(a) > 1 && len(b) > 1 && a[0] == b[1] && a[1] == b[0] {
		n = min(n, 1+editDistance(a[2:], b[2:]))
	}
	return n
}

func FuzzTypos(f *testing.F) {
	f.Add("lilas", "lials", true)
	f.Add("abcdabcd", "bacdabdc", false)
	f.Add("éèêë", "eeee", true)
	f.Fuzz(func(t *testing.T, typed, word string, prefix bool) {
		a, b := []rune(typed), []rune(word)
		if len(a) > 9 || len(b) > 12 || len(b) == 0 || string(a) != typed || string(b) != word {
			return
		}
		want := editDistance(a, b)
		for i := range len(b) {
			if prefix {
				want = min(want, editDistance(a, b[:i]))
			}
		}
		if want > 0 && len(a) > 0 && a[0] != b[0] {
			want++
		}
		n, ok := search.CountTypos(typed, word, prefix)
		if allowed := want <= search.AllowedTypos(typed) || want == 0; ok != allowed || ok && n != want {
			t.Errorf("%q for %q: got %d, %v, want %d", typed, word, n, ok, want)
		}
	})
}

func TestNamesFoldToWhatTheyAreSortedBy(t *testing.T) {
	t.Parallel()
	names := []string{"Zoo", "école", "Éclair", "12 Rue", "œuf", "Œil", "L'Abri"}
	slices.SortFunc(names, func(a, b string) int { return strings.Compare(search.FoldName(a), search.FoldName(b)) })
	if diff := cmp.Diff([]string{"12 Rue", "Éclair", "école", "L'Abri", "Œil", "œuf", "Zoo"}, names); diff != "" {
		t.Error(diff)
	}
}
