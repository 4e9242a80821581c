package text

import (
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

func TestFoldLeavesPlainLettersAndDigits(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]string{
		"Rue de l'Église": "rue de l eglise", "CŒUR-DE-BŒUF": "coeur de boeuf", "  12bis,  Æ ": "12 bis ae", "": "", "?!": "",
		"Straße ØRE": "strasse ore", "1er": "1er", "e\u0301glise": "eglise", "\xffa\xc3": "a",
	} {
		if got := Fold(s); got != want {
			t.Errorf("%q becomes %q, want %q", s, got, want)
		}
	}
}

func TestAbbreviationsAndWhatTheyStandForAreTheSameTerms(t *testing.T) {
	t.Parallel()
	for short, long := range map[string]string{
		"Av. du Gal Leclerc": "avenue du général Leclerc", "BD ST MICHEL": "Boulevard Saint-Michel", "R. ND": "rue Notre Dame",
		"Pl. Ste-Anne": "place Sainte Anne", "Z.I. Nord": "z i nord", "ZI Nord": "zone industrielle nord", "RD 907": "route départementale 907",
		"all. des Tilleuls": "Allée des tilleuls", "rd pt des Arts": "rond point des arts", "les onze chemins": "les 11 chemins",
	} {
		if a, b := joined(short), joined(long); a != b {
			t.Errorf("%q is %q, %q is %q", short, a, long, b)
		}
	}
}

func joined(s string) string {
	var out []string
	for _, t := range Terms(s) {
		out = append(out, t.Text)
	}
	return strings.Join(out, " ")
}

func TestWordsThatSoundAlikeHaveOneSound(t *testing.T) {
	t.Parallel()
	for _, same := range [][]string{{"fontaine", "fontene"}, {"philippe", "filipe"}, {"chene", "chaine"}, {"martin", "martain"}} {
		for _, w := range same[1:] {
			if PhoneticKey(w) != PhoneticKey(same[0]) && len(w) > 2 && len(same[0]) > 2 {
				t.Errorf("%s is said %q, %s %q", w, PhoneticKey(w), same[0], PhoneticKey(same[0]))
			}
		}
	}
	if PhoneticKey("moulin") == PhoneticKey("marin") {
		t.Error("moulin and marin sound alike")
	}
}

func TestDistanceCountsOneForEachSlip(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		want int
	}{{"lilas", "lilas", 0}, {"lilas", "lylas", 1}, {"lilas", "lials", 1}, {"lilas", "lila", 1}, {"lilas", "lilass", 1}, {"lilas", "roses", 3}} {
		if got := Distance(c.a, c.b, 2); got != c.want {
			t.Errorf("%s to %s: %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

func TestTermsWithinEditsShareWhatIsLeft(t *testing.T) {
	t.Parallel()
	left := func(s string, depth int) (out []string) {
		Deletes(s, depth, func(b []byte) { out = append(out, string(b)) })
		return out
	}
	for _, pair := range [][2]string{{"lilas", "lylas"}, {"lilas", "lials"}, {"fontaine", "fontiane"}} {
		a, b := left(pair[0], 1), left(pair[1], 1)
		if !slices.ContainsFunc(a, func(s string) bool { return slices.Contains(b, s) }) {
			t.Errorf("%v share nothing", pair)
		}
	}
}

// FuzzTerms reads anything: terms lie in the text, in order, and reading what was folded changes nothing.
func FuzzTerms(f *testing.F) {
	for _, s := range []string{"12bis r. de l'Église", "1er étage", "n°12", "d 907", "\xff\xfe", "ﬁn Ǆ ŉ İ", "e\u0301\u0301", "8 à 10"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, last := utf8.RuneCountInString(s), 0
		for _, w := range Words(s) {
			if w.Text == "" || w.Start < last || w.End <= w.Start || w.End > n {
				t.Fatalf("%q: %+v of %d characters, after %d", s, w, n, last)
			}
			last = w.End
		}
		for _, term := range Terms(s) {
			if term.Text == "" || term.End > n {
				t.Fatalf("%q: %+v", s, term)
			}
			PhoneticKey(term.Text)
		}
		if folded := Fold(s); Fold(folded) != folded && !strings.ContainsAny(folded, "0123456789") {
			t.Fatalf("%q folds to %q, then to %q", s, folded, Fold(folded))
		}
	})
}

// TestLatinLettersFoldAsUnicodeDecomposesThem: the table of the commonest letters is a shortcut and says nothing new.
func TestLatinLettersFoldAsUnicodeDecomposesThem(t *testing.T) {
	t.Parallel()
	for i := range len(latinBases) {
		r := rune(0xC0 + i)
		want := ""
		if base := []rune(norm.NFD.String(string(r)))[0]; base < utf8.RuneSelf {
			want = string(unicode.ToLower(base))
		}
		if got := strings.Trim(latinBases[i:i+1], "\x00"); got != want {
			t.Errorf("%c is %q; want %q", r, got, want)
		}
	}
}

// TestFoldedTextIsLeftAsItIs: a text of plain words takes a shortcut, with the result that its words have.
func TestFoldedTextIsLeftAsItIs(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"", "a", "rue de la paix", " rue", "rue ", "rue  paix", "12 rue", "1er mai", "Rue", "été", "l'ete"} {
		var words []string
		for _, w := range Words(s) {
			words = append(words, w.Text+w.Tail)
		}
		if got, want := Fold(s), strings.Join(words, " "); got != want {
			t.Errorf("Fold(%q) = %q; want %q", s, got, want)
		}
	}
}
