package address

import (
	"fmt"
	"strings"
	"testing"

	"lieudit/queries/address/addresstest"
	"lieudit/queries/address/ban"
	"lieudit/queries/address/text"
)

// Relatives of what public bug reports say of numbers, made of real rows. Each is asked with some hundred addresses.

// drawRows are rows of Lozère and Bondy that a test takes, at most n of them, spread over all.
func drawRows(t *testing.T, n int, takes func(*ban.Row) bool) (drawn []*ban.Row) {
	t.Helper()
	rows := addresstest.Lozere(t).Rows
	labels := map[string]int{}
	var all []*ban.Row
	for i := range rows {
		r := &rows[i]
		labels[rowLabel(r)]++
		if r.Kind != ban.Locality && r.Numero > 0 && takes(r) {
			all = append(all, r)
		}
	}
	step := max(1, len(all)/n)
	for i := 0; i < len(all); i += step {
		if labels[rowLabel(all[i])] == 1 {
			drawn = append(drawn, all[i])
		}
	}
	return drawn
}

// rowLabel is a row in one line without its postcode, which identifies it.
func rowLabel(r *ban.Row) string {
	return bareLabel(fmt.Sprint(r.Numero, r.Rep, " ", r.Voie, " ", r.Commune))
}

// expectRow expects a row as the first answer to each question.
func expectRow(t *testing.T, e *Engine, r *ban.Row, questions ...Query) (asked, wrong int) {
	t.Helper()
	for _, q := range questions {
		q.Limit = 2
		asked++
		if found, err := e.Verify(t.Context(), q); err != nil || len(found) == 0 || found[0].ID != r.ID || !found[0].NumberFound {
			wrong++
			t.Errorf("%+v: %v (%v), want %s", parts(q), describe(found), err, r.ID)
		}
	}
	return asked, wrong
}

// parts is a query in one line.
func parts(q Query) string {
	return strings.TrimSpace(strings.Join([]string{q.Text, q.Number, q.Street, q.Postcode, q.Commune}, " | "))
}

func TestFourDigitsBeforeAStreetAreItsNumber(t *testing.T) {
	t.Parallel()
	e := lozere(t)
	asked, wrong := 0, 0
	for _, r := range drawRows(t, 150, func(r *ban.Row) bool { return r.Numero >= 1000 && r.Rep == "" }) {
		n := fmt.Sprint(r.Numero)
		a, w := expectRow(t, e, r,
			Query{Text: n + " " + r.Voie + " " + r.Commune}, Query{Text: n + " " + r.Voie + ", " + r.CodePostal + " " + r.Commune},
			Query{Text: n + " " + strings.ToUpper(text.Fold(r.Voie)) + " " + strings.ToUpper(text.Fold(r.Commune))},
			Query{Number: n, Street: r.Voie, Commune: r.Commune}, Query{Street: n + " " + r.Voie, Commune: r.Commune}, Query{Number: n, Street: r.Voie, Postcode: r.CodePostal})
		if text.ClassOf(text.Terms(r.Voie)[0].Text) == text.StreetType {
			b, v := expectRow(t, e, r, Query{Text: r.Commune + ", " + n + " " + r.Voie})
			a, w = a+b, w+v
		}
		asked, wrong = asked+a, wrong+w
	}
	t.Logf("%d of %d wrong", wrong, asked)
}

// A postcode that lost its zero is read if no street has it as a number.
func TestFourDigitsBehindAStreetAreAPostcodeWithoutItsZero(t *testing.T) {
	t.Parallel()
	nice, foix := addresstest.NewArea("06000", "06088", "Nice"), addresstest.NewArea("09600", "09160", "Léran")
	e := engineOf(t, []ban.Row{
		addresstest.NewHouse(nice, "0010", "Rue de France", 12, ""), addresstest.NewHouse(nice, "0020", "Place du 11 Novembre", 4, ""),
		addresstest.NewHouse(foix, "0010", "Rue du 11 Novembre", 24, ""), addresstest.NewHouse(foix, "0020", "Le Bac", 1000, ""),
		addresstest.NewHouse(foix, "0030", "Rue de la Poste", 8, ""),
	})
	for line, want := range map[string]string{
		"6000 NICE":                         "06088",
		"6000 Nice France":                  "06088",
		"12 rue de France 6000 Nice":        "06088_0010_00012",
		"12 rue de France, Nice 6000":       "06088_0010_00012",
		"24 rue du 11 novembre 9600":        "09160_0010_00024",
		"24 rue du 11 novembre 9600 Léran":  "09160_0010_00024",
		"4 place du 11 novembre, 6000 Nice": "06088_0020_00004",
		"4 place du 11 novembre 1918 Nice":  "06088_0020_00004",
		"9600 Léran":                        "09160",
		"1000 Le Bac":                       "09160_0020_01000",
		"1000 Le Bac 9600 Léran":            "09160_0020_01000",
		"8 rue de la poste 9600":            "09160_0030_00008",
		"8 rue de la poste 9600 leran":      "09160_0030_00008",
	} {
		found, err := e.Verify(t.Context(), Query{Text: line, Limit: 2})
		if err != nil || len(found) == 0 || found[0].ID != want {
			t.Errorf("%q: %v (%v), want %s", line, describe(found), err, want)
		}
	}
	for _, q := range []Query{{Postcode: "6000", Commune: "Nice"}, {Street: "12 rue de France", Postcode: "6000", Commune: "Nice"}} {
		m := verified(t, e, q)
		if m.CityCode != "06088" || m.Components.Postcode.Typed != "6000" || m.Components.Postcode.Kept != "06000" {
			t.Errorf("%s: %s, postcode %+v", parts(q), m.ID, m.Components.Postcode)
		}
	}
}

// If a street has a number twice, with bis and with b, each is answered when it was typed.
func TestEachWritingOfARepetitionIndexIsItsOwn(t *testing.T) {
	t.Parallel()
	mende := addresstest.NewArea("48000", "48095", "Mende")
	var rows []ban.Row
	reps := []string{"", "a", "b", "bis", "t", "ter", "a bis", "b bis", "c bis", "villa 9", "villa 13", "bat24", "n°43", "a4", "6a", "5", "d", "d bis"}
	for i := range 8 {
		for _, rep := range reps {
			rows = append(rows, addresstest.NewHouse(mende, "0010", "Rue de Pontoise", 10+i, rep))
			if rep != "b" && rep != "t" {
				rows = append(rows, addresstest.NewHouse(mende, "0020", "Clos du Peillac", 10+i, rep))
			}
		}
	}
	e := engineOf(t, rows)
	asked := 0
	for i := range rows {
		r := &rows[i]
		n := fmt.Sprint(r.Numero)
		texts := []string{n + r.Rep, n + " " + r.Rep}
		if isDigit := r.Rep != "" && r.Rep[0] <= '9'; isDigit {
			texts = texts[1:] // 105 is another number
		}
		for _, number := range texts {
			for _, q := range []Query{{Text: number + " " + r.Voie + " 48000 Mende"}, {Text: strings.ToUpper(number+" "+text.Fold(r.Voie)) + ", MENDE"}, {Number: number, Street: r.Voie, Commune: "Mende"}} {
				asked++
				if m := verified(t, e, q); m.ID != r.ID || m.Verdict != Exact || !m.NumberFound {
					t.Errorf("%s: %s, %s (%s), want %s", parts(q), m.ID, m.Verdict, m.Reason, r.ID)
				}
			}
		}
	}
	for line, want := range map[string]string{"12 b clos du peillac mende": "bis", "12t clos du peillac mende": "ter", "12 c bis rue de pontoise mende": "c bis"} {
		if m := verified(t, e, Query{Text: line}); m.Rep != want || m.Verdict != Exact {
			t.Errorf("%q: %s, %s, want %s", line, m.Label, m.Verdict, want)
		}
	}
	t.Logf("%d asked", asked)
}

// The number of a floor is not a house number, even if no other was typed.
func TestTheNumberOfAFloorIsNoHouseNumber(t *testing.T) {
	t.Parallel()
	e := lozere(t) // Rue des Fleurs of Mende has numbers from 1 on
	for n := 1; n <= 20; n++ {
		for _, floor := range []string{"%de étage", "%dème étage", "%d ème étage", "%d étage", "%dieme etage", "%d e étage"} {
			for _, line := range []string{"%s rue des fleurs 48000 Mende", "rue des fleurs, %s, 48000 Mende", "%s, rue des fleurs Mende"} {
				text := fmt.Sprintf(line, fmt.Sprintf(floor, n))
				if m := verified(t, e, Query{Text: text}); m.Label != "Rue des Fleurs 48000 Mende" || m.NumberTyped {
					t.Errorf("%q: %s, a number was typed: %v", text, m.Label, m.NumberTyped)
				}
			}
			text := fmt.Sprintf("24 rue des fleurs, "+floor+", 48000 Mende", n)
			if m := verified(t, e, Query{Text: text}); m.Label != "24 Rue des Fleurs 48000 Mende" || m.Verdict != Exact {
				t.Errorf("%q: %s, %s", text, m.Label, m.Verdict)
			}
		}
	}
}

// Of two streets that cross the first one keeps its number.
func TestTheFirstStreetOfACornerKeepsItsNumber(t *testing.T) {
	t.Parallel()
	e := lozere(t)
	others := map[string]string{} // of each commune a street
	for _, r := range drawRows(t, 40_000, func(r *ban.Row) bool {
		return strings.HasPrefix(r.Voie, "Rue ") || strings.HasPrefix(r.Voie, "Avenue ")
	}) {
		others[r.CodeInsee] = r.Voie
	}
	asked, wrong := 0, 0
	for _, r := range drawRows(t, 120, func(r *ban.Row) bool { return strings.HasPrefix(r.Voie, "Rue ") && r.Rep == "" }) {
		other := others[r.CodeInsee]
		if other == "" || text.Fold(other) == text.Fold(r.Voie) {
			continue
		}
		for _, corner := range []string{" angle ", ", angle ", " à l'angle de la ", " angle de ", " au coin de la ", " croisement "} {
			line := fmt.Sprint(r.Numero, " ", r.Voie, corner, other)
			a, w := expectRow(t, e, r, Query{Text: line + " " + r.CodePostal + " " + r.Commune}, Query{Text: line + ", " + r.Commune})
			asked, wrong = asked+a, wrong+w
		}
	}
	t.Logf("%d of %d wrong", wrong, asked)
}

// A number that ends the name of a street is not its house number.
func TestANumberThatEndsANameBelongsToIt(t *testing.T) {
	t.Parallel()
	mende := addresstest.NewArea("48000", "48095", "Mende")
	var rows []ban.Row
	for i, name := range []string{"Impasse de l'Espérou", "Allée des Pins", "Rue de la Tour", "Lotissement du Moulin", "Chemin de la Croix", "Impasse Bellevue"} {
		for n := 1; n <= 3; n++ {
			for number := 1; number <= 4; number++ {
				rows = append(rows, addresstest.NewHouse(mende, fmt.Sprintf("%02d%d0", i, n), fmt.Sprint(name, " ", n), number, ""))
			}
		}
	}
	e := engineOf(t, rows)
	for i := range rows {
		r := &rows[i]
		line := fmt.Sprint(r.Numero, " ", r.Voie)
		for _, q := range []Query{{Text: line + " 48000 Mende"}, {Text: line + ", Mende"}, {Text: "Mende, " + line}, {Number: fmt.Sprint(r.Numero), Street: r.Voie, Commune: "Mende"}, {Text: line}} {
			if m := verified(t, e, q); m.ID != r.ID || m.Verdict != Exact {
				t.Errorf("%s: %s, %s, want %s", parts(q), m.Label, m.Verdict, r.ID)
			}
		}
	}
}

// A number that a street does not have, and a repetition index that it does not, are not found, and keep the match from resolving.
func TestAMissingNumberOrIndexIsNeverFound(t *testing.T) {
	t.Parallel()
	e := lozere(t)
	known := map[string]bool{}
	for _, r := range addresstest.Lozere(t).Rows {
		known[fmt.Sprint(r.CodeInsee, r.Voie, " ", r.Numero, r.Rep)] = true
	}
	counts := map[Reason]int{}
	for _, r := range drawRows(t, 250, func(r *ban.Row) bool { return r.Rep == "" }) {
		for _, number := range []string{fmt.Sprint(r.Numero, " quater"), fmt.Sprint(r.Numero, "quinquies"), fmt.Sprint(r.Numero, " v"), fmt.Sprint(r.Numero + 7000)} {
			if known[r.CodeInsee+r.Voie+" "+strings.ReplaceAll(number, " ", "")] {
				continue
			}
			for i, q := range []Query{{Text: number + " " + r.Voie + ", " + r.Commune}, {Text: number + " " + r.Voie + " " + r.CodePostal + " " + r.Commune}, {Number: number, Street: r.Voie, Commune: r.Commune}} {
				if isPostcode := i == 0 && r.Numero >= 3000; isPostcode {
					continue // 7,000 more are five digits, and no postcode is next to them
				}
				if i == 1 && r.Numero >= 3000 && text.ClassOf(text.Terms(r.Voie)[0].Text) != text.StreetType {
					continue
				}
				m := verified(t, e, q)
				counts[m.Reason]++
				if m.NumberFound || !m.NumberTyped || m.IsResolved || m.Reason != NumberAbsent {
					t.Errorf("%s: %s, found %v, typed %v, %q", parts(q), m.Label, m.NumberFound, m.NumberTyped, m.Reason)
				}
			}
		}
	}
	t.Logf("%v", counts)
}

// A part of a building changes no verdict, wherever and in whichever field it stands, and whether or not the street has its number.
func TestNoPartOfABuildingChangesTheVerdictOfARealAddress(t *testing.T) {
	t.Parallel()
	e := lozere(t)
	asked := 0
	for _, r := range drawRows(t, 40, func(r *ban.Row) bool {
		return r.Rep == "" && (r.Numero < 300 || strings.ContainsAny(r.Voie, "0123456789"))
	}) {
		number, place := fmt.Sprint(r.Numero), r.CodePostal+" "+r.Commune
		street := number + " " + r.Voie
		if plain := verified(t, e, Query{Text: street + " " + place}); plain.Verdict != Exact {
			continue // another address has the same words
		}
		for _, word := range []string{"appt", "appartement", "bât", "porte", "esc", "étage", "lot", "villa", "hall", "studio", "logement", "chambre", "entrée", "résidence", "tour"} {
			for _, id := range []string{"1", "2", "77", "B", "B2"} {
				part := word + " " + id
				for _, q := range []Query{{Text: street + " " + part + " " + place}, {Text: part + " " + street + " " + place}, {Text: street + ", " + part + ", " + place},
					{Number: number, Street: r.Voie, Complement: part, Postcode: r.CodePostal, Commune: r.Commune}, {Street: street, Complement: part, Commune: r.Commune}} {
					asked++
					if m := verified(t, e, q); m.ID != r.ID || m.Verdict != Exact {
						t.Errorf("%s, complement %q: %s, %s (%s)", parts(q), q.Complement, m.Label, m.Verdict, m.Reason)
					}
				}
			}
		}
	}
	t.Logf("%d asked", asked)
}
