package address

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode"

	"lieudit/queries/address/addresstest"
	"lieudit/queries/address/ban"
	"lieudit/queries/address/text"
)

// Ways in which people type an address without much care, made of real rows.

// expectFirst expects rows of a street as the first answers to lines, but for a few, and that no list is blank while a line is completed.
func expectFirst(t *testing.T, name string, least, most int, completes bool, lines func(yield func(line string, r *ban.Row) bool)) {
	t.Helper()
	e := lozere(t)
	asked := 0
	var wrong []string
	for line, r := range lines {
		asked++
		got := Record{Label: "nothing"}
		if completes {
			if found, err := e.Complete(t.Context(), Query{Text: line, Limit: 5}); err == nil && len(found) > 0 {
				got = found[0].Record
			}
		} else if found, err := e.Verify(t.Context(), Query{Text: line, Limit: 2}); err == nil && len(found) > 0 {
			got = found[0].Record
		}
		if text.Fold(got.Street) != text.Fold(r.Voie) || got.CityCode != r.CodeInsee || got.Number != fmt.Sprint(r.Numero) {
			wrong = append(wrong, fmt.Sprintf("%q: %s, want %d%s %s", line, got.Label, r.Numero, r.Rep, r.Voie))
		}
	}
	if asked < least || len(wrong) > most {
		t.Errorf("%s: %d of %d lines are answered otherwise, want %d of %d:\n%s", name, len(wrong), asked, most, least,
			strings.Join(wrong[:min(len(wrong), 20)], "\n"))
	}
}

// TestANumberIsCompletedWithItsIndex types numbers that their street has with a repetition index alone.
func TestANumberIsCompletedWithItsIndex(t *testing.T) {
	t.Parallel()
	bare := map[string]bool{}
	rows := addresstest.Lozere(t).Rows
	key := func(r *ban.Row) string { return fmt.Sprint(r.CodeInsee, r.Numero, text.Fold(r.Voie)) }
	for i := range rows {
		if rows[i].Rep == "" {
			bare[key(&rows[i])] = true
		}
	}
	expectFirst(t, "a number without its index", 60, 2, true, func(yield func(string, *ban.Row) bool) {
		for i := range rows {
			if r := &rows[i]; r.Numero > 0 && r.Rep != "" && !bare[key(r)] && hasContent(r.Voie) {
				bare[key(r)] = true
				if !yield(fmt.Sprint(r.Numero, " ", r.Voie, " ", r.CodePostal, " ", r.Commune), r) {
					return
				}
			}
		}
	})
}

// TestAKindThatIsShortenedWithinANameIsRead shortens kinds that stand behind a link.
func TestAKindThatIsShortenedWithinANameIsRead(t *testing.T) {
	t.Parallel()
	short := map[string]string{"route": "rte", "impasse": "imp", "chemin": "chem", "boulevard": "bvd", "place": "plc", "lotissement": "lot", "village": "vge", "quartier": "quart"}
	rows := addresstest.Lozere(t).Rows
	seen := map[string]bool{}
	expectFirst(t, "a kind behind a link", 10, 0, false, func(yield func(string, *ban.Row) bool) {
		for i := range rows {
			r := &rows[i]
			words := strings.Fields(text.Fold(r.Voie))
			at := slices.IndexFunc(words, func(w string) bool { return short[w] != "" })
			if r.Numero == 0 || r.Kind == ban.Locality || at < 1 || text.ClassOf(words[at-1]) != text.StopWord || seen[r.CodeInsee+r.Voie] {
				continue
			}
			seen[r.CodeInsee+r.Voie] = true
			words[at] = short[words[at]]
			if !yield(fmt.Sprint(number(r), " ", strings.Join(words, " "), " ", r.CodePostal, " ", r.Commune), r) {
				return
			}
		}
	})
}

// TestANameWithANumberIsTypedWithoutABlank types names in which a number follows the kind and its link.
func TestANameWithANumberIsTypedWithoutABlank(t *testing.T) {
	t.Parallel()
	e := lozere(t)
	seen, asked := map[string]bool{}, 0
	for _, r := range addresstest.Lozere(t).Rows {
		words := strings.Fields(text.Fold(r.Voie))
		if len(words) < 4 || text.ClassOf(words[0]) != text.StreetType || text.ClassOf(words[1]) != text.StopWord || !isNumber(words[2]) || seen[r.Voie] {
			continue
		}
		seen[r.Voie] = true
		for _, line := range []string{r.Voie, fmt.Sprint(r.Numero, " ", r.Voie)} {
			for n, typed := 7, []rune(line); n <= len(typed); n++ {
				asked++
				if found, err := e.Complete(t.Context(), Query{Text: string(typed[:n]), Limit: 5}); err != nil || len(found) == 0 {
					t.Errorf("%q: nothing (%v)", string(typed[:n]), err)
				}
			}
		}
	}
	if asked < 300 {
		t.Errorf("%d questions, want three hundred", asked)
	}
}

// isNumber reports whether a word is in digits.
func isNumber(word string) bool { return strings.Trim(word, "0123456789") == "" }

// TestAComplementIsTypedBehindTheCommune types complements letter by letter behind addresses that are complete.
func TestAComplementIsTypedBehindTheCommune(t *testing.T) {
	t.Parallel()
	complements := []string{"appartement 12", "bâtiment B", "escalier C", "porte 3", "résidence les Iris", "étage 2", "chez Dupont", "lot 4"}
	expectFirst(t, "an unfinished complement", 2000, 20, true, func(yield func(string, *ban.Row) bool) {
		for i, r := range streetRows(t, 200) {
			typed := []rune(complements[i%len(complements)])
			for n := 1; n <= len(typed); n++ {
				if !yield(fmt.Sprint(number(&r), " ", r.Voie, " ", r.Commune, " ", string(typed[:n])), &r) {
					return
				}
			}
		}
	})
}

// TestADepartmentIsTypedBehindTheCommune types the department letter by letter behind addresses that are complete.
func TestADepartmentIsTypedBehindTheCommune(t *testing.T) {
	t.Parallel()
	expectFirst(t, "an unfinished department", 800, 8, true, func(yield func(string, *ban.Row) bool) {
		for _, r := range streetRows(t, 150) {
			department := []rune("Lozère")
			if r.CodeInsee[:2] != "48" {
				department = []rune("Seine-Saint-Denis")
			}
			for n := 1; n <= len(department); n++ {
				if !yield(fmt.Sprint(number(&r), " ", r.Voie, " ", r.Commune, " ", string(department[:n])), &r) {
					return
				}
			}
		}
	})
}

// TestABuildingIsNamedBehindTheCommune names buildings with words that are communes elsewhere.
func TestABuildingIsNamedBehindTheCommune(t *testing.T) {
	t.Parallel()
	buildings := []string{"centre ville", "résidence Azur", "résidence les Lilas", "villa Mimosa", "résidence Belvédère", "immeuble Orléans", "résidence Angers"}
	expectFirst(t, "a building behind the commune", 190, 4, false, func(yield func(string, *ban.Row) bool) {
		for i, r := range streetRows(t, 200) {
			if !yield(fmt.Sprint(number(&r), " ", r.Voie, " ", r.Commune, " ", buildings[i%len(buildings)]), &r) {
				return
			}
		}
	})
}

// TestUnknownWordsStandBesideAGluedName glues links to the words behind them.
func TestUnknownWordsStandBesideAGluedName(t *testing.T) {
	t.Parallel()
	glue := strings.NewReplacer(" de la ", " dela ", " du ", " du", " des ", " des")
	expectFirst(t, "words beside a glued name", 100, 8, false, func(yield func(string, *ban.Row) bool) {
		for i, r := range streetRows(t, 250) {
			name := glue.Replace(text.Fold(r.Voie))
			if name == text.Fold(r.Voie) {
				continue
			}
			if !yield(fmt.Sprint(number(&r), " ", name, " ", besides[i%5], " ", r.CodePostal, " ", r.Commune), &r) {
				return
			}
		}
	})
}

// TestFourDigitsAreAPostcodeWithoutItsZero asks for a street that several postcodes one digit away have.
func TestFourDigitsAreAPostcodeWithoutItsZero(t *testing.T) {
	t.Parallel()
	rows := hamlet()
	for _, a := range [][3]string{{"09600", "09160", "Laroque-d'Olmes"}, {"79600", "79268", "Saint-Loup-Lamairé"}, {"29600", "29151", "Morlaix"}} {
		rows = append(rows, addresstest.NewHouse(addresstest.NewArea(a[0], a[1], a[2]), "0099", "Rue du 11 Novembre", 4, ""))
	}
	e := engineOf(t, rows)
	for _, line := range []string{"11 novembre 9600", "rue du 11 novembre 9600", "4 rue du 11 novembre 9600"} {
		if m, _ := firstMatch(t, e, line); m.CityCode != "09160" {
			t.Errorf("%q: %s", line, m.Label)
		}
	}
	for _, line := range []string{"4 rue du 11 novembre 2960", "4 rue du 11 novembre 7960"} {
		if m, ok, err := e.Resolve(t.Context(), Query{Text: line}); ok || err != nil {
			t.Errorf("%q: %s, %v", line, m.Label, err)
		}
	}
}

// TestANumberWithItsIndexIsFoundFromTheFirstLetterOn types a commune, a number with its repetition index and one letter, and the number
// with its index alone. The a of 2a is not a link before the unfinished word, and few streets have a number such as 582bis.
func TestANumberWithItsIndexIsFoundFromTheFirstLetterOn(t *testing.T) {
	t.Parallel()
	e := lozere(t)
	asked := 0
	var blank []string
	for i := range addresstest.Lozere(t).Rows {
		r := &addresstest.Lozere(t).Rows[i]
		if r.Rep == "" || r.Numero == 0 || !hasContent(r.Voie) {
			continue
		}
		number := fmt.Sprint(r.Numero, r.Rep)
		for _, line := range []string{r.Commune + " " + number + " " + string([]rune(r.Voie)[:1]), number} {
			if len([]rune(line)) < 3 || !strings.ContainsFunc(line, unicode.IsLetter) {
				continue
			}
			asked++
			if found, err := e.Complete(t.Context(), Query{Text: line, Limit: 5}); err == nil && len(found) == 0 {
				blank = append(blank, line)
			}
		}
	}
	if asked < 1000 || len(blank) > 0 {
		t.Errorf("%d of %d lists are blank: %q", len(blank), asked, blank[:min(len(blank), 20)])
	}
}
