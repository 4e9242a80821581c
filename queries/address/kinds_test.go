package address

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"lieudit/queries/address/addresstest"
	"lieudit/queries/address/ban"
	"lieudit/queries/address/text"
)

// The kinds of writing below were seen in real questions; the lines are made of official rows of Lozère and Bondy.

// checkLabels verifies lines, each of which must be answered with an address first; an empty one with nothing.
func checkLabels(t *testing.T, lines map[string]string) {
	t.Helper()
	e := lozere(t)
	for line, want := range lines {
		found, err := e.Verify(t.Context(), Query{Text: line, Limit: 3})
		got := ""
		if len(found) > 0 {
			got = found[0].Label
		}
		if got != want {
			t.Errorf("%q: %q (%v), want %q", line, got, err, want)
		}
	}
}

func TestAComplementsNumberIsNotTheHouses(t *testing.T) {
	t.Parallel()
	lines := map[string]string{}
	for _, line := range []string{
		"Bât. B6 24 rue des fleurs 48000 Mende", "AEROPARC 3 24 RUE DES FLEURS 48000 MENDE", "cellule 6 24 rue des fleurs 48000 Mende",
		"LOT 3 24 RUE DES FLEURS 48000 Mende", "POINT COOP N°17 24 RUE des Fleurs 48000 Mende", "(C3) 24 rue des fleurs 48000 Mende",
		"24(C3) RUE des fleurs 48000 Mende", "24 BAT A3 RUE des fleurs 48000 Mende", "24ESC A3 RUE des fleurs 48000 Mende",
		"24 ETG 3 RUE des fleurs 48000 Mende", "24D3 RUE des fleurs 48000 Mende", "24 24 rue des fleurs 48000 Mende",
		"Résidence le Rozier (0320) 24 rue des fleurs 48000 Mende", "3 Résidence La CROIX SAMSON 24 R des fleurs 48000 Mende",
		"1ER ETAGE 24, rue des fleurs 48000 Mende", "24 rue des fleurs, 3ème étage gauche, 48000 Mende",
		"SARL Dupont Frères, rez-de-chaussée, 24 rue des fleurs 48000 Mende", "04 66 65 00 00, 24 rue des fleurs 48000 Mende",
		"24 rue des fleurs, le petit clos fleuri, 48000 Mende", "24 rue des fleurs ZAC du Causse 48000 Mende",
		"24 rue des fleurs 48000 Mende, 24 rue des fleurs 48000 Mende, France", "55 rue inconnue, 24 rue des Fleurs 48000 Mende",
	} {
		lines[line] = "24 Rue des Fleurs 48000 Mende"
	}
	lines["12C7 ROUTE DES FONTAINES 48200 Rimeize"] = "12 Route des Fontaines 48200 Rimeize"
	lines["10C7 RUE LE MILANDRE 48500 Banassac-Canilhac"] = "10 Rue le Milandre 48500 Banassac-Canilhac"
	checkLabels(t, lines)
}

func TestANumberThatAComplementMayOwnNeverResolves(t *testing.T) {
	t.Parallel()
	m := verified(t, lozere(t), Query{Text: "lot 3 rue des fleurs 48000 mende"})
	if m.Label != "3 Rue des Fleurs 48000 Mende" || m.Verdict != Probable || m.IsResolved {
		t.Errorf("%s, %s, resolved %v, want number 3, probable and unresolved", m.Label, m.Verdict, m.IsResolved)
	}
}

func TestWordsBeforeTheHouseNumberAreAComplement(t *testing.T) {
	t.Parallel()
	e := lozere(t)
	for line, want := range map[string]string{
		"AEROPARC 3 24 RUE DES FLEURS 48000 MENDE": "aeroparc 3",
		"Dupont 24 rue des fleurs 48000 Mende":     "dupont",
		"24 rue des fleurs BP 12 48000 Mende":      "bp 12",
	} {
		m := verified(t, e, Query{Text: line})
		if c := m.Components; c.Complement.Typed != want || c.Street.Status != Confirmed || c.City.Status != Confirmed {
			t.Errorf("%q: complement %q, street %s, commune %s, want %q and both %s", line, c.Complement, c.Street.Status, c.City.Status, want, Confirmed)
		}
	}
	other := verified(t, e, Query{Text: "19 rue du lavoir 3 rue des Fleurs Mende"})
	if other.Components.Complement.Typed != "" || other.IsResolved {
		t.Errorf("another street: complement %q, resolved %v, want neither", other.Components.Complement, other.IsResolved)
	}
}

func TestTheFirstNumberThatTheStreetHasAnswers(t *testing.T) {
	t.Parallel()
	lines := map[string]string{}
	for _, line := range []string{"24/25 rue des fleurs mende", "24 à 27 rue des fleurs mende", "24 et 25 rue des fleurs mende", "24 25 rue des fleurs mende",
		"26&24 rue des fleurs mende", "26_24 rue des fleurs mende", "26, 24 rue des fleurs mende", "26-101-24 rue des fleurs mende",
		"vingt-quatre rue des fleurs mende", "24 Bis rue des fleurs mende", "l 24 rue des fleurs mende"} {
		lines[line] = "24 Rue des Fleurs 48000 Mende"
	}
	lines["3-avr rue des fleurs mende"] = "3 Rue des Fleurs 48000 Mende"
	lines["7-août rue des fleurs mende"] = "7 Rue des Fleurs 48000 Mende"
	lines["21 e rue des fleurs mende"] = "21e Rue des Fleurs 48000 Mende"
	lines["l2 rue des fleurs mende"] = "12 Rue des Fleurs 48000 Mende"
	checkLabels(t, lines)
}

func TestTheNumberDecidesBetweenStreetsOfOneName(t *testing.T) {
	t.Parallel()
	checkLabels(t, map[string]string{
		"3 impasse des fleurs 48000 mende":   "3 Impasse des Fleurs 48000 Mende",
		"58 fleurs 48000 mende":              "58 Rue des Fleurs 48000 Mende",
		"21c fleurs 48000 mende":             "21c Rue des Fleurs 48000 Mende",
		"58 allee des fleurs 48000 mende":    "58 Rue des Fleurs 48000 Mende",  // no street is called so
		"58 impasse des fleurs 48000 mende":  "Impasse des Fleurs 48000 Mende", // a street is
		"21c impasse des fleurs 48000 mende": "Impasse des Fleurs 48000 Mende",
		"47 impasse des fleurs 48000 mende":  "Impasse des Fleurs 48000 Mende", // neither has it
	})
}

// A street that was typed exactly comes before those of another kind that have the number.
func TestTheKindOfAStreetIsAWordOfItsName(t *testing.T) {
	t.Parallel()
	o := addresstest.Lozere(t)
	e := engineFor(t, o.Vintage)
	asked := 0
	for pair, numbers := range namesakes(o.Rows) {
		for _, n := range numbers[:min(len(numbers), 3)] {
			asked++
			line := fmt.Sprintf("%d %s %s %s", n, pair.name, pair.postcode, pair.city)
			found, err := e.Verify(t.Context(), Query{Text: line, Limit: 5})
			if err != nil || len(found) == 0 {
				t.Errorf("%q: nothing (%v)", line, err)
				continue
			}
			isBelow := slices.ContainsFunc(found[1:], func(m Match) bool { return m.Street == pair.other && m.NumberFound })
			if m := found[0]; m.Street != pair.name || m.NumberFound || m.IsResolved || !isBelow {
				t.Errorf("%q: %s, number found %v, resolved %v, the other below %v", line, m.Label, m.NumberFound, m.IsResolved, isBelow)
			}
		}
	}
	if asked < 100 {
		t.Errorf("%d questions, want a hundred", asked)
	}
}

// namesakePair is two streets of a commune that differ in their kind alone.
type namesakePair struct{ name, other, postcode, city string }

// bareName is a name without its first word.
func bareName(name string) string {
	var words []string
	for _, t := range text.Terms(name)[1:] {
		words = append(words, t.Text)
	}
	return strings.Join(words, " ")
}

// namesakes are such pairs, with numbers that the other street has alone.
func namesakes(rows []ban.Row) map[namesakePair][]uint32 {
	type street struct{ code, bare string }
	numbers, byBare := map[[2]string][]uint32{}, map[street][]ban.Row{}
	for _, r := range rows {
		if r.Numero == 0 || r.Rep != "" || !hasContent(r.Voie) {
			continue
		}
		key := [2]string{r.CodeInsee, r.Voie}
		if numbers[key] == nil {
			of := street{r.CodeInsee, bareName(r.Voie)}
			byBare[of] = append(byBare[of], r)
		}
		numbers[key] = append(numbers[key], r.Numero)
	}
	pairs := map[namesakePair][]uint32{}
	for _, of := range byBare {
		for _, x := range of {
			for _, y := range of {
				if text.Terms(x.Voie)[0].Text == text.Terms(y.Voie)[0].Text || x.CodePostal != y.CodePostal {
					continue
				}
				for _, n := range numbers[[2]string{y.CodeInsee, y.Voie}] {
					if !slices.Contains(numbers[[2]string{x.CodeInsee, x.Voie}], n) {
						p := namesakePair{x.Voie, y.Voie, x.CodePostal, x.Commune}
						pairs[p] = append(pairs[p], n)
					}
				}
			}
		}
	}
	return pairs
}

func TestWordsGluedTogetherAreRead(t *testing.T) {
	t.Parallel()
	lines := map[string]string{}
	for _, line := range []string{"24 ruedesfleurs mende", "24 rue desfleurs 48000 mende", "24 rue des fleurs48000 mende", "24RueDesFleurs 48000 Mende",
		"24rue des fleurs mende", "24 rue des f1eurs mende", "２４ rue des fleurs ４８０００ mende"} {
		lines[line] = "24 Rue des Fleurs 48000 Mende"
	}
	checkLabels(t, lines)
}

func TestAStreetThatIsNotThereIsNotAnother(t *testing.T) {
	t.Parallel()
	lines := map[string]string{}
	for _, line := range []string{"12 rue toto mende", "24 rue des fleurs lille", "10 rue de belleville 48000 mende", "12 rue du grand hameau 48000 mende",
		"3 lotissement du petit bois 48000 mende", "6 rue du 18 juin 1940 48000 mende", "24 rue des fleurs 75013 Paris"} {
		lines[line] = ""
	}
	checkLabels(t, lines)
}

func TestWhatIsCutShortIsCompleted(t *testing.T) {
	t.Parallel()
	e := lozere(t)
	for line, want := range map[string]string{
		"8 rue de la bouyere mon":     "8 Rue de la Bouyere 48170 Montbel",
		"13 rue de la rampe les laub": "13 Rue de la Rampe 48700 Les Laubies",
		"24 r des fle men":            "24 Rue des Fleurs 48000 Mende",
		"24 r des fle 4800":           "24 Rue des Fleurs 48000 Mende",
		"place de la rep men":         "Place de la République 48000 Mende",
		"4810":                        "Marvejols",
		"93 av de la rep bon":         "93 Avenue de la République 93140 Bondy",
	} {
		found, err := e.Complete(t.Context(), Query{Text: line, Limit: 3})
		if len(found) == 0 || found[0].Label != want {
			t.Errorf("%q: %v (%v), want %q", line, found, err, want)
		}
	}
}

func TestWhatOnlyTheBaseCanTellIsReadOnInventedRows(t *testing.T) {
	t.Parallel()
	e := engineOf(t, hamlet())
	for line, want := range map[string]struct {
		id         string
		isResolved bool
	}{
		"10 rue jenner 75013 paris 13e arrdt":       {"75113_0010_00010", true},
		"10 rue jenner paris 13 ardt":               {"75113_0010_00010", true},
		"10 rue dela paix 75002 paris":              {"75102_0010_00010", true},
		"8 rue du 8 mai 1945 48913 paris la plaine": {"48095_0030_00008", false}, // a post office's code, a district's name
		"12 rue des lilas 48000 mende la plaine":    {"48095_0010_00012", true},
	} {
		m := verified(t, e, Query{Text: line})
		if m.ID != want.id || m.IsResolved != want.isResolved {
			t.Errorf("%q: %s, resolved %v (%.2f), want %s, %v", line, m.ID, m.IsResolved, m.Score, want.id, want.isResolved)
		}
	}
}
