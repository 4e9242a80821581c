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

// besides are what people write on the line of an address next to it.
var besides = []string{
	"Maison de l'Emploi", "MAISON COLUCHE", "Les Terrasses du Mail", "salle polyvalente", "entrepôt 3", "MODULE 022375", "Maison des associations",
	`BATIMENT "ESPACE X" BP 70318`, "Résidence Azur", "chez Dupont", "SARL Zyxel Toitures", "Pharmacie Wozniak", "Cabinet Médical", "Ets Kowalczyk",
	"CENTRE COMMERCIAL LECLERC", "Le Panoramic", "L'Astragale", "Les Hespérides", "La Roseraie", "Le Concorde A", "Pôle emploi", "Mission locale",
	"Foyer logement", "Gymnase Coubertin", "Espace Simone Veil", "Hôtel Ibis", "Restaurant Flunch", "Garage Kuntzmann", "Boulangerie Zimmer",
	"Crédit Agricole", "La Poste", "Maison médicale", "Médiathèque Aragon", "Bâtiment Voltaire", "Immeuble Horizon", "Tour Europe", "Atelier 7",
	"Hangar 12", "Local commercial", "Appartement témoin", "Accueil de loisirs", "Micro crèche Babilou", "Groupe scolaire Dolto", "Lycée Camus",
	"Collège Triolet", "École maternelle", "Station Total", "Agence Orpi", "Syndic Foncia", "CCAS", "EHPAD Korian", "Halle aux grains",
	"Auberge de jeunesse", "Camping municipal", "Chambre d'agriculture", "Caserne Pompidou", "Trésorerie", "Technopole Zenith", "Pépinière Kiwi", "Cowork Hub", "à côté du stade", "en face de la gare",
	"derrière l'église", "au fond de la cour",
}

// streetRows are rows of Lozère with a number, each of another street, and as many as asked for.
func streetRows(t *testing.T, n int) (rows []ban.Row) {
	t.Helper()
	all := addresstest.Lozere(t).Rows
	seen := map[string]bool{}
	for i := 0; len(rows) < n && i < len(all); i += 37 {
		r := all[i]
		if key := r.CodeInsee + r.Voie; r.Numero != 0 && !seen[key] && hasContent(r.Voie) {
			seen[key] = true
			rows = append(rows, r)
		}
	}
	return rows
}

// hasContent reports whether a name begins with a kind of street and continues with a word that tells it apart.
func hasContent(name string) bool {
	terms := text.Terms(name)
	isContent := func(t text.Term) bool { return text.ClassOf(t.Text) == text.Content && !t.Digits && len(t.Text) > 2 }
	return len(terms) > 1 && text.ClassOf(terms[0].Text) == text.StreetType && slices.ContainsFunc(terms, isContent)
}

func number(r *ban.Row) string { return strings.TrimSpace(fmt.Sprint(r.Numero, " ", r.Rep)) }

func TestWordsBesideAConfirmedAddressAreAComplement(t *testing.T) {
	t.Parallel()
	e := lozere(t)
	for i, r := range streetRows(t, 4*len(besides)) {
		beside := besides[i%len(besides)]
		for kind, line := range map[string]string{
			"behind, postcode and commune": fmt.Sprint(number(&r), " ", r.Voie, " ", beside, " ", r.CodePostal, " ", r.Commune),
			"behind, commune":              fmt.Sprint(number(&r), " ", r.Voie, " ", beside, " ", r.Commune),
			"behind, in capitals":          strings.ToUpper(text.Fold(fmt.Sprint(number(&r), " ", r.Voie, " ", beside, " ", r.CodePostal, " ", r.Commune))),
			"ahead of the number":          fmt.Sprint(beside, " ", number(&r), " ", r.Voie, " ", r.CodePostal, " ", r.Commune),
			"set off":                      fmt.Sprint(number(&r), " ", r.Voie, ", ", beside, ", ", r.CodePostal, " ", r.Commune),
			"behind, without number":       fmt.Sprint(r.Voie, " ", beside, " ", r.CodePostal, " ", r.Commune),
			"in parentheses":               fmt.Sprint(number(&r), " ", r.Voie, " (", beside, ") ", r.CodePostal, " ", r.Commune),
		} {
			found, err := e.Verify(t.Context(), Query{Text: line, Limit: 2})
			if err != nil || len(found) == 0 {
				t.Errorf("%s: %q: nothing (%v)", kind, line, err)
				continue
			}
			m := found[0]
			if m.Street != r.Voie || m.CityCode != r.CodeInsee || m.NumberFound != m.NumberTyped || m.Verdict == Exact && m.Components.Unknown != nil {
				t.Errorf("%s: %q: %s, %s (%.2f)", kind, line, m.Verdict, m.Label, m.Score)
			}
			if isBare := strings.HasPrefix(kind, "behind"); isBare && m.Components.Unknown != nil && m.IsResolved {
				t.Errorf("%s: %q resolves to %s", kind, line, m.Label)
			}
		}
	}
}

func TestWordsBesideAMisspeltStreetAreAComplement(t *testing.T) {
	t.Parallel()
	e := lozere(t)
	known := vocabulary(t)
	asked, wrong := 0, []string{}
	for i, r := range streetRows(t, 400) {
		words := strings.Fields(text.Fold(r.Voie))
		last := words[len(words)-1]
		if len(last) < 6 || isWordOf(known, last[:3]+last[4:]) {
			continue
		}
		words[len(words)-1] = last[:3] + last[4:]
		asked++
		line := fmt.Sprint(number(&r), " ", strings.Join(words, " "), " ", besides[i%len(besides)], " ", r.CodePostal, " ", r.Commune)
		found, err := e.Verify(t.Context(), Query{Text: line, Limit: 1})
		if err != nil || len(found) == 0 || found[0].Street != r.Voie || !found[0].NumberFound || found[0].Verdict == Exact {
			wrong = append(wrong, line)
		}
	}
	if asked < 150 || len(wrong)*100 > 5*asked {
		t.Errorf("%d of %d questions are not answered with their street, want 5 in 100 at most: %q", len(wrong), asked, wrong)
	}
}

func TestWordsThatMayBelongToTheNameAreNoComplement(t *testing.T) {
	t.Parallel()
	e := lozere(t)
	behind := []string{"Prolongée", "Haute", "Nord", "II", "de la Zarzuela", "du Wombat", "d'Okapi", "del Fesc", "en Bas", "sur Okapi"}
	ahead := []string{"Ancienne", "Vieille", "Petite", "Haute", "Impasse", "Sentier", "Traverse de la", "Grande"}
	for i, r := range streetRows(t, 120) {
		for kind, street := range map[string]string{
			"behind": r.Voie + " " + behind[i%len(behind)],
			"ahead":  ahead[i%len(ahead)] + " " + r.Voie,
		} {
			line := fmt.Sprint(number(&r), " ", street, " ", r.CodePostal, " ", r.Commune)
			found, err := e.Verify(t.Context(), Query{Text: line, Limit: 1})
			if err != nil {
				t.Fatal(err)
			}
			if len(found) > 0 && found[0].Components.Unknown != nil {
				t.Errorf("%s: %q: %s, unknown %q", kind, line, found[0].Label, found[0].Components.Unknown)
			}
			if len(found) > 0 && found[0].IsResolved && kind == "behind" {
				t.Errorf("%s: %q resolves to %s (%.2f)", kind, line, found[0].Label, found[0].Score)
			}
		}
	}
}

func TestAnUnknownWordWithinTheNameIsAnotherStreet(t *testing.T) {
	t.Parallel()
	e := lozere(t)
	for i, r := range streetRows(t, 120) {
		kind, rest, _ := strings.Cut(r.Voie, " ")
		line := fmt.Sprint(number(&r), " ", kind, " ", []string{"Wombat", "Jean", "du Wombat"}[i%3], " ", rest, " ", r.CodePostal, " ", r.Commune)
		found, err := e.Verify(t.Context(), Query{Text: line, Limit: 1})
		if err != nil || len(found) > 0 && found[0].IsResolved && found[0].Street == r.Voie {
			t.Errorf("%q resolves to %s (%v)", line, found[0].Label, err)
		}
	}
}

// Streets whose names hold the name of another one of their commune are asked for where the base lacks them. Hardly one is taken for
// the other with words too many, and none of these resolves.
func TestAStreetThatExtendsAnotherIsNotIt(t *testing.T) {
	t.Parallel()
	leveltest.Need(t, leveltest.Usual, "") // it takes seconds
	kept, asked := withoutExtensions(addresstest.Lozere(t).Rows)
	e := engineOf(t, kept)
	taken := 0
	for _, r := range asked {
		for _, line := range []string{
			fmt.Sprint(number(&r), " ", r.Voie, " ", r.CodePostal, " ", r.Commune),
			fmt.Sprint(r.Voie, " ", r.CodePostal, " ", r.Commune),
		} {
			found, err := e.Verify(t.Context(), Query{Text: line, Limit: 1})
			if err != nil || len(found) == 0 || found[0].Components.Unknown == nil {
				continue
			}
			taken++
			if m := found[0]; m.IsResolved || m.Verdict == Exact {
				t.Errorf("%q: %s, %s (%.2f), unknown %q", line, m.Verdict, m.Label, m.Score, m.Components.Unknown)
			}
		}
	}
	if len(asked) < 100 || taken*100 > 2*len(asked)*7 {
		t.Errorf("%d of %d are taken for another street, want 7 in 100 at most", taken, 2*len(asked))
	}
}

// withoutExtensions parts rows into those that stay and one of each street whose name holds that of another street of its
// commune. That row bears a number of the other street. Communes without such streets are left out.
func withoutExtensions(rows []ban.Row) (kept, asked []ban.Row) {
	byCommune := map[string][]ban.Row{}
	for _, r := range rows {
		byCommune[r.CodeInsee] = append(byCommune[r.CodeInsee], r)
	}
	for _, of := range byCommune {
		first := map[string]ban.Row{}
		for _, r := range of {
			if _, ok := first[r.Voie]; !ok {
				first[r.Voie] = r
			}
		}
		extended := map[string]bool{}
		for name, r := range first {
			for shorter, other := range first {
				if long, short := contentOf(name), contentOf(shorter); len(long) > len(short) && strings.Contains(long, short) {
					r.Numero, r.Rep = other.Numero, other.Rep
					extended[name] = true
				}
			}
			if extended[name] {
				asked = append(asked, r)
			}
		}
		if len(extended) > 0 {
			kept = append(kept, slices.DeleteFunc(of, func(r ban.Row) bool { return extended[r.Voie] })...)
		}
	}
	return kept, asked
}

// contentOf is a name as it is compared, without links, between spaces.
func contentOf(name string) string {
	out := " "
	for _, t := range text.Terms(name) {
		if text.ClassOf(t.Text) != text.StopWord {
			out += t.Text + " "
		}
	}
	return out
}
