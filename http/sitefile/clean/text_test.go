package clean_test

import (
	"slices"
	"testing"

	"lieudit/http/sitefile/clean"
)

func TestTextFixesWhatEveryTextGets(t *testing.T) {
	t.Parallel()
	for text, c := range map[string]struct {
		want string
		done []clean.Fix
	}{
		"":                            {"", nil},
		"Chez Paul":                   {"Chez Paul", nil},
		"Crêperie d'Ys":               {"Crêperie d'Ys", nil},
		"  Chez  Paul ":               {"Chez Paul", []clean.Fix{clean.Spaces}},
		"12\u00a0rue\u202fX\t\r\nB":   {"12 rue X B", []clean.Fix{clean.Spaces}},
		"\ufeffMen\u200bde\u00ad":     {"Mende", []clean.Fix{clean.ControlSigns}},
		"a\x00b\x1f":                  {"ab", []clean.Fix{clean.ControlSigns}},
		"👨‍👩‍👧 club":                  {"👨‍👩‍👧 club", nil},
		"L\u0092Étoile":               {"L’Étoile", []clean.Fix{clean.WrongDecoding}},
		"c\u009cur":                   {"cœur", []clean.Fix{clean.WrongDecoding}},
		"Caf\xe9":                     {"Café", []clean.Fix{clean.WrongDecoding}},
		"CafÃ© de lâ€™Ã\u0089toile":   {"Café de l’Étoile", []clean.Fix{clean.WrongDecoding}},
		"Ã\u00a0 cÃ´tÃ©":              {"à côté", []clean.Fix{clean.WrongDecoding}},
		"Ã cÃ´tÃ©":                    {"à côté", []clean.Fix{clean.WrongDecoding}},
		"CafÃƒÂ©":                     {"Café", []clean.Fix{clean.WrongDecoding}},
		"Å“uvre":                      {"œuvre", []clean.Fix{clean.WrongDecoding}},
		"«CAFÉ» SÃO CHÂTEAU":          {"«CAFÉ» SÃO CHÂTEAU", nil},
		"<p>Un</p><p>Deux<br/>T</p>":  {"Un Deux T", []clean.Fix{clean.HTML, clean.Spaces}},
		"<b>Bon</b>jour":              {"Bonjour", []clean.Fix{clean.HTML}},
		`<a href="x?a=1">Site</a>`:    {"Site", []clean.Fix{clean.HTML}},
		"caf&eacute; &amp; th&#233;":  {"café & thé", []clean.Fix{clean.HTML}},
		"caf&amp;eacute;":             {"café", []clean.Fix{clean.HTML}},
		"&lt;b&gt;gras&lt;/b&gt;":     {"gras", []clean.Fix{clean.HTML}},
		"a < b, c > d, 3<4":           {"a < b, c > d, 3<4", nil},
		"Paul <paul@exemple.fr>":      {"Paul <paul@exemple.fr>", nil},
		"moins <3 ans et <b c":        {"moins <3 ans et <b c", nil},
		"a<b and c>d":                 {"a<b and c>d", nil},
		"R&D, AT&T; ?a=1&copy=2":      {"R&D, AT&T; ?a=1&copy=2", nil},
		"<style>p{}</style>Un":        {"Un", []clean.Fix{clean.HTML, clean.Spaces}},
		"<!-- non -->Un <?php x ?>":   {"Un <?php x ?>", []clean.Fix{clean.HTML}},
		"l'&#146;&nbsp;été_x000D_\nX": {"l'’ été X", []clean.Fix{clean.HTML, clean.ControlSigns, clean.Spaces}},
		"NC":                          {"NC", nil},
	} {
		if got, done := clean.Text(text, false); got != c.want || !slices.Equal(done, c.done) {
			t.Errorf("%q: got %q %q, want %q %q", text, got, done, c.want, c.done)
		}
	}
}

func TestTextKeepsLinesWhereAsked(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"un\r\n  deux  \r\n\r\n\r\ntrois\n": "un\ndeux\n\ntrois",
		"un\u2028deux":                      "un\ndeux",
		"<p>Un</p><ul><li>Deux</li></ul>":   "Un\n\nDeux",
		"un_x000D_\ndeux":                   "un\ndeux",
	} {
		if got, _ := clean.Text(text, true); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestSignsOfEmptinessAreNoNamesAndNoNumbers(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"-", " -- ", "—", "NC", "N/C", "n.c.", "n/a", "NULL", "None", "NaN", "#N/A", "Non renseigné", "néant", "?", ".", "/", "...", "\\N"} {
		if !clean.IsEmptySign(s) || !clean.IsEmptyWord(s) {
			t.Errorf("%q means something", s)
		}
	}
	for _, s := range []string{"", "0", "NA", "ND", "X", "non", "a", "N", "Néant-sur-Yvel", "Inconnus", "100 %"} {
		if clean.IsEmptySign(s) {
			t.Errorf("%q means nothing", s)
		}
	}
	if !clean.IsEmptyWord("NA") || !clean.IsEmptyWord("aucun") || !clean.IsEmptyWord("0") || clean.IsEmptyWord("15") {
		t.Error("in a field that is no name, NA and 0 mean nothing, and 15 is a number")
	}
}
