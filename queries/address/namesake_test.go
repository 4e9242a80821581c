package address

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"lieudit/eventstore/leveltest"
	"lieudit/queries/address/addresstest"
	"lieudit/queries/address/ban"
	"lieudit/queries/address/text"
)

// Names of streets that a commune does not have, made of the names of those that it has. The latter may be shown, but nothing resolves
// to them. Next to them stand misspellings, which do.

func TestAnotherStreetsNameResolvesNothing(t *testing.T) {
	t.Parallel()
	leveltest.Need(t, leveltest.Usual, "") // it takes seconds
	known := vocabulary(t)
	for name, c := range map[string]struct {
		rename respelling
		least  int
	}{
		"another kind":                            {otherKind, 300},
		"a link in the place of a first name":     {tiedWithoutFirstName, 100},
		"the plural of the only word":             {otherNumber(known), 20},
		"another word a letter from the only one": {likeWord(t, known), 100},
		"a plural and no more of the name":        {beginningInPlural(known), 5},
	} {
		asked, resolved := askRenamed(t, c.rename)
		if asked < c.least || len(resolved) > 0 {
			t.Errorf("%s: %d of %d questions resolve, want 0 of %d:\n%s", name, len(resolved), asked, c.least,
				strings.Join(resolved[:min(len(resolved), 20)], "\n"))
		}
	}
}

func TestAMisspeltNameResolves(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		misspell    respelling
		least, most int // questions asked, and those that may not resolve
	}{
		"without the letter of a plural that the link has": {withoutPlural, 50, 10},
		"the kind in another number":                       {kindInOtherNumber, 20, 2},
		"two letters swapped":                              {swappedLetters, 300, 25},
	} {
		asked, resolved := askRenamed(t, c.misspell)
		if asked < c.least || asked-len(resolved) > c.most {
			t.Errorf("%s: %d of %d questions do not resolve, want %d of %d", name, asked-len(resolved), asked, c.most, c.least)
		}
	}
}

// TestAnAbsentStreetIsNotFoundElsewhere asks for streets that a commune does not have in ways that led to others.
func TestAnAbsentStreetIsNotFoundElsewhere(t *testing.T) {
	t.Parallel()
	o := addresstest.Lozere(t)
	e := engineFor(t, o.Vintage)
	asked := 0
	for i := 0; i < len(o.Rows); i += 173 {
		r := &o.Rows[i]
		for _, name := range []string{"Rue du 6 Juin 1944", "Impasse du 14 Septembre 1923", "Rue de la Plage", "Chemin des 6 Vagues", "Clos Jeanne d'Orléans"} {
			for _, line := range []string{"26 " + name + " " + r.Commune, "26 " + name + " " + r.CodePostal + " " + r.Commune} {
				asked++
				found, err := e.Verify(t.Context(), Query{Text: line, Limit: 1})
				if err != nil {
					t.Fatal(err)
				}
				if len(found) > 0 && (found[0].IsResolved || text.Fold(found[0].City) != text.Fold(r.Commune) && found[0].OldCity != r.Commune) {
					t.Errorf("%q: %s, resolved %v", line, found[0].Label, found[0].IsResolved)
				}
			}
		}
	}
	if asked < 1000 {
		t.Errorf("%d questions, want a thousand", asked)
	}
}

// TestAPostcodeIsTheCodeOfAnotherCommuneOnlyBesideItsName asks for streets of communes whose code is a postcode of others.
func TestAPostcodeIsTheCodeOfAnotherCommuneOnlyBesideItsName(t *testing.T) {
	t.Parallel()
	o := addresstest.Lozere(t)
	e := engineFor(t, o.Vintage)
	postcodes, asked := map[string]bool{}, 0
	for i := range o.Rows {
		postcodes[o.Rows[i].CodePostal] = true
	}
	for r := range everyHouse(o.Rows, 3) {
		if !postcodes[r.CodeInsee] || r.CodePostal == r.CodeInsee || !hasContent(r.Voie) || asked > 600 {
			continue
		}
		asked++
		line := fmt.Sprint(number(r), " ", r.Voie, " ", r.CodeInsee)
		if m, ok := firstMatch(t, e, line); ok && m.CityCode == r.CodeInsee {
			t.Errorf("%q: %s", line, m.Label)
		}
		line += " " + r.Commune
		if m, ok := firstMatch(t, e, line); !ok || m.ID != r.ID {
			t.Errorf("%q: %v %s", line, ok, m.Label)
		}
	}
	if asked < 100 {
		t.Errorf("%d questions, want a hundred", asked)
	}
}

// TestADepartmentAloneIsNoStreet asks for names of departments and regions after which streets are named.
func TestADepartmentAloneIsNoStreet(t *testing.T) {
	t.Parallel()
	streets := []string{"Route du Lozère", "Rue de l'Aveyron", "Avenue de Savoie", "Rue de Bretagne", "Allée du Gard", "Rue d'Occitanie"}
	rows := hamlet()
	for i, name := range streets {
		rows = append(rows, addresstest.NewHouse(addresstest.NewArea("48000", "48095", "Mende"), fmt.Sprint("008", i), name, 4, ""))
	}
	e := engineOf(t, rows)
	for i, line := range []string{"lozere", "aveyron", "savoie", "bretagne", "gard", "occitanie"} {
		if m, ok, err := e.Resolve(t.Context(), Query{Text: line}); ok || err != nil {
			t.Errorf("%q: %s, %v", line, m.Label, err)
		}
		if m, ok, err := e.Resolve(t.Context(), Query{Text: "4 " + streets[i]}); !ok || m.Street != streets[i] {
			t.Errorf("4 %s: %s, %v, %v", streets[i], m.Label, ok, err)
		}
	}
}

// askRenamed asks for rows under names that their commune does not have, and returns how many it asked for and the questions that
// resolve.
func askRenamed(t *testing.T, rename respelling) (asked int, resolved []string) {
	t.Helper()
	o := addresstest.Lozere(t)
	e := engineFor(t, o.Vintage)
	names := map[string]bool{}
	for i := range o.Rows {
		names[o.Rows[i].CodeInsee+" "+termsOf(plainName(&o.Rows[i]))] = true
	}
	seen := map[string]bool{}
	for i := 0; i < len(o.Rows) && asked < mostAsked; i++ {
		r := &o.Rows[i]
		words := rename(strings.Fields(plainName(r)))
		key := r.CodeInsee + " " + termsOf(strings.Join(words, " "))
		if r.Numero == 0 || r.Kind == ban.Locality || words == nil || names[key] || seen[key] || !hasContent(r.Voie) {
			continue
		}
		seen[key] = true
		asked++
		line := fmt.Sprint(number(r), " ", strings.Join(words, " "), " ", r.CodePostal, " ", r.Commune)
		if m, ok, err := e.Resolve(t.Context(), Query{Text: line}); err != nil {
			t.Fatal(err)
		} else if ok && m.Street == r.Voie {
			resolved = append(resolved, fmt.Sprintf("%q: %s", line, m.Label))
		}
	}
	return asked, resolved
}

// termsOf is a name in the terms of the index without links.
func termsOf(name string) string {
	var words []string
	for _, term := range text.Terms(name) {
		if text.ClassOf(term.Text) != text.StopWord {
			words = append(words, term.Text)
		}
	}
	return strings.Join(words, " ")
}

// otherKind writes another kind of street before a name.
func otherKind(words []string) []string {
	kinds := map[string]string{"rue": "impasse", "impasse": "chemin", "chemin": "avenue", "route": "allee", "place": "rue", "avenue": "chemin", "allee": "route"}
	kind := kinds[words[0]]
	if kind == "" || len(words) < 2 {
		return nil
	}
	return append([]string{kind}, words[1:]...)
}

// tiedWithoutFirstName writes a link in the place of the first of two words of a name: rue du Moulin for rue Jean Moulin.
func tiedWithoutFirstName(words []string) []string {
	if len(words) != 3 || text.ClassOf(words[0]) != text.StreetType || text.ClassOf(words[1]) != text.Content || len(words[2]) < 4 ||
		text.IsQualifier(words[1]) || text.IsTitle(words[1]) || strings.Contains("0123456789", words[1][:1]) || text.ClassOf(words[2]) != text.Content {
		return nil
	}
	return []string{words[0], "du", words[2]}
}

// otherNumber writes the only word of a name in the other number with its link, where other streets have it so.
func otherNumber(known []string) respelling {
	return func(words []string) []string {
		last := words[len(words)-1]
		switch {
		case len(words) == 3 && words[1] == "des" && strings.HasSuffix(last, "s") && isWordOf(known, last[:len(last)-1]):
			return []string{words[0], "de", "la", last[:len(last)-1]}
		case len(words) == 4 && words[1] == "de" && words[2] == "la" && isWordOf(known, last+"s"):
			return []string{words[0], "des", last + "s"}
		}
		return nil
	}
}

// likeWord writes another word, no rarer than the only one of a name: pont for port.
func likeWord(t *testing.T, known []string) respelling {
	count, seen, like := map[string]int{}, map[string]bool{}, map[string]string{}
	for _, r := range addresstest.Lozere(t).Rows {
		if name := plainName(&r); !seen[r.CodeInsee+name] {
			seen[r.CodeInsee+name] = true
			for _, w := range strings.Fields(name) {
				count[w]++
			}
		}
	}
	return func(words []string) []string {
		last := words[len(words)-1]
		if len(words) < 2 || len(last) < 4 || text.ClassOf(last) != text.Content || text.ClassOf(words[0]) != text.StreetType {
			return nil
		}
		for _, w := range words[1 : len(words)-1] {
			if text.ClassOf(w) != text.StopWord {
				return nil
			}
		}
		w, isKnown := like[last]
		if !isKnown {
			i := slices.IndexFunc(known, func(w string) bool {
				return len(w) > 3 && w+"s" != last && last+"s" != w && count[w] >= count[last] && text.ClassOf(w) == text.Content && text.Distance(w, last, 1) == 1
			})
			if i >= 0 {
				w = known[i]
			}
			like[last] = w
		}
		if w == "" {
			return nil
		}
		return append(slices.Clone(words[:len(words)-1]), w)
	}
}

// beginningInPlural writes the first word of a name of several in the plural, and no more of it.
func beginningInPlural(known []string) respelling {
	return func(words []string) []string {
		if len(words) < 5 || words[1] != "de" || words[2] != "la" || text.ClassOf(words[3]) != text.Content || !isWordOf(known, words[3]+"s") {
			return nil
		}
		return []string{words[0], "des", words[3] + "s"}
	}
}

// withoutPlural leaves out the letter of the plural behind its link: rue des Tilleul.
func withoutPlural(words []string) []string {
	last := words[len(words)-1]
	if len(words) != 3 || words[1] != "des" || !strings.HasSuffix(last, "s") || len(last) < 6 {
		return nil
	}
	return []string{words[0], words[1], last[:len(last)-1]}
}

// kindInOtherNumber writes cours for cour, and the other way round.
func kindInOtherNumber(words []string) []string {
	kinds := map[string]string{"cour": "cours", "cours": "cour", "rue": "rues", "impasse": "impasses"}
	if kinds[words[0]] == "" || len(words) < 3 {
		return nil
	}
	return append([]string{kinds[words[0]]}, words[1:]...)
}

// swappedLetters swaps two letters of the last word.
func swappedLetters(words []string) []string {
	last := []byte(words[len(words)-1])
	if len(words) < 2 || len(last) < 7 || last[3] == last[4] {
		return nil
	}
	last[3], last[4] = last[4], last[3]
	return append(slices.Clone(words[:len(words)-1]), string(last))
}
