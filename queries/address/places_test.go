package address

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"lieudit/eventstore/leveltest"
	"lieudit/queries/address/addresstest"
	"lieudit/queries/address/ban"
	"lieudit/queries/address/commune"
	"lieudit/queries/address/text"
)

// A word or number of the name of a street may be the name of a commune elsewhere: Grande Rue, Villa du Breuil, Moulin Rouge.

func TestEveryRealStreetNameAloneIsFound(t *testing.T) {
	t.Parallel()
	leveltest.Need(t, leveltest.Usual, "") // it takes seconds
	o := addresstest.RealRows(t)
	e := engineFor(t, o.Vintage)
	asked := map[string]bool{"Lieu-dit": true} // a name without a word
	for i := range o.Rows {
		name := o.Rows[i].Voie
		if asked[name] {
			continue
		}
		asked[name] = true
		found, err := e.Verify(t.Context(), Query{Text: name, Limit: 5})
		isStreet := func(m Match) bool { return sameTerms(m.Street, name) || m.Type == Municipality }
		if err != nil || !slices.ContainsFunc(found, isStreet) {
			t.Errorf("%q verifies to %v, %v", name, labels(found), err)
		}
		if found, err := e.Complete(t.Context(), Query{Text: name, Limit: 5}); err != nil || len(found) == 0 {
			t.Errorf("%q completes to %v, %v", name, found, err)
		}
	}
	t.Logf("%d names", len(asked))
}

// sameTerms reports whether two names have the same terms, in whatever order.
func sameTerms(x, y string) bool {
	sorted := func(name string) []string {
		var all []string
		for _, t := range text.Terms(name) {
			all = append(all, t.Text)
		}
		slices.Sort(all)
		return all
	}
	return slices.Equal(sorted(x), sorted(y))
}

// labels are the labels of matches.
func labels(found []Match) (all []string) {
	for _, m := range found {
		all = append(all, m.Label)
	}
	return all
}

func TestARealAddressWithoutItsCommuneIsNotOneOfAnother(t *testing.T) {
	t.Parallel()
	o := addresstest.RealRows(t)
	e := engineFor(t, o.Vintage)
	asked, found := 0, 0
	for r := range everyHouse(o.Rows, 37) {
		if r.Numero > 999 {
			continue // it may be a postcode
		}
		for _, line := range []string{
			fmt.Sprintf("%d%s %s", r.Numero, r.Rep, r.Voie),
			fmt.Sprintf("%s, %d%s %s", r.Commune, r.Numero, r.Rep, r.Voie),
		} {
			all, err := e.Verify(t.Context(), Query{Text: line, Limit: 20})
			if err != nil {
				t.Fatal(err)
			}
			asked++
			if len(all) > 0 && text.Fold(all[0].Street) == text.Fold(r.Voie) {
				found++
			} else {
				t.Logf("%q: %v", line, labels(all))
			}
		}
	}
	t.Logf("%d of %d", found, asked)
	if found*1000 < asked*998 {
		t.Errorf("%d of %d lines are answered with their street, want 998 in 1000", found, asked)
	}
}

// everyHouse yields every nth row that has a house number.
func everyHouse(rows []ban.Row, n int) func(yield func(*ban.Row) bool) {
	return func(yield func(*ban.Row) bool) {
		for i := 0; i < len(rows); i += n {
			if r := &rows[i]; r.Kind != ban.Locality && r.Numero > 0 && !yield(r) {
				return
			}
		}
	}
}

func TestAnAddressInAnUnknownCommuneIsNotFoundElsewhere(t *testing.T) {
	t.Parallel()
	o := addresstest.Lozere(t)
	e := engineFor(t, o.Vintage)
	towns := []string{"Genève", "Bruxelles", "Londres", "Madrid", "Barcelone", "Zürich", "Luxembourg", "Turin", "Milano", "Berlin", "New York", "Montréal",
		"Liège", "Namur", "Lausanne", "Fribourg-en-Brisgau", "Sarrebruck", "Girona", "Dakar", "Villequelconque"}
	i := 0
	for r := range everyHouse(o.Rows, 401) {
		q := Query{Number: fmt.Sprint(r.Numero), Street: r.Voie, Commune: towns[i%len(towns)], Limit: 5}
		if found, err := e.Verify(t.Context(), q); err != nil || len(found) > 0 {
			t.Errorf("%+v: %v, %v", q, labels(found), err)
		}
		q.Commune = r.Commune
		if found, err := e.Verify(t.Context(), q); err != nil || len(found) == 0 || found[0].City != r.Commune {
			t.Errorf("%+v: %v, %v", q, labels(found), err)
		}
		i++
	}
}

func TestAWrongPostcodeBesideACommuneIsCorrected(t *testing.T) {
	t.Parallel()
	o := addresstest.Lozere(t)
	e := engineFor(t, o.Vintage)
	i := 0
	for r := range everyHouse(o.Rows, 97) {
		wrong := []byte(r.CodePostal)
		at := i % 5
		wrong[at] = '0' + (wrong[at]-'0'+byte(1+i%9))%10
		for _, code := range []string{string(wrong), "84000", "75011"} {
			line := fmt.Sprintf("%d%s %s %s %s", r.Numero, r.Rep, r.Voie, code, r.Commune)
			m, ok := firstMatch(t, e, line)
			isOne := isOneCommune(e, r.Commune)
			isNear := commune.DepartmentOf(code) == commune.DepartmentOf(r.CodePostal)
			switch {
			case !ok && isOne:
				t.Errorf("%q: nothing", line)
			case ok && text.Fold(m.Street) != text.Fold(r.Voie) || ok && m.CityCode != r.CodeInsee:
				t.Errorf("%q: %s", line, m.Label)
			case ok && m.Score > 0.85 && code[2] != '9': // which may be one of CEDEX
				t.Errorf("%q: %v", line, m.Score)
			case ok && m.IsResolved && !isNear && len(e.table.ByPostcode(code)) > 0:
				t.Errorf("%q resolves", line)
			case ok && m.Components.Postcode.Status != Corrected:
				t.Errorf("%q: the postcode is %s", line, m.Components.Postcode.Status)
			}
		}
		i++
	}
	t.Logf("%d rows", i)
}

// isOneCommune reports whether a name is that of one commune alone, of which Lozère has one.
func isOneCommune(e *Engine, name string) bool {
	codes := map[string]bool{}
	for _, c := range e.table.Named(text.Terms(name)) {
		codes[cmp.Or(c.Parent, c.Code)] = true
	}
	return len(codes) == 1
}

// firstMatch is the best match of a line.
func firstMatch(t *testing.T, e *Engine, line string) (m Match, ok bool) {
	t.Helper()
	found, err := e.Verify(t.Context(), Query{Text: line, Limit: 5})
	if err != nil && err != ErrUnparsable {
		t.Fatal(err)
	}
	if len(found) == 0 {
		return m, false
	}
	return found[0], true
}

func TestAnotherPostcodeOfTheCityIsCorrectedWhereTheAddressIsThereOnce(t *testing.T) {
	t.Parallel()
	o := addresstest.RealRows(t)
	e := engineFor(t, o.Vintage)
	asked := 0
	for r := range everyHouse(o.Rows, 1) {
		if r.CodePostal != "69001" || asked >= 300 {
			continue
		}
		for _, code := range []string{"69004", "69002"} {
			line := fmt.Sprintf("%d%s %s %s", r.Numero, r.Rep, r.Voie, code)
			m, ok := firstMatch(t, e, line)
			if ok && m.Postcode == code {
				continue // a street of the typed postcode that is alike
			}
			asked++
			if !ok || m.ID != r.ID || m.Score > 0.8 || m.IsResolved || m.Components.Postcode.Status != Corrected {
				t.Errorf("%q: %v %s %.4f, resolved %v", line, ok, m.Label, m.Score, m.IsResolved)
			}
		}
	}
	t.Logf("%d lines", asked)
}

func TestARowsOwnWordsAreItsOwn(t *testing.T) {
	t.Parallel()
	o := addresstest.Lozere(t)
	e := engineFor(t, o.Vintage)
	asked, right := 0, 0
	for r := range everyHouse(o.Rows, 3) {
		if r.LieuDit == "" || r.CodeInsee[:2] != "48" {
			continue
		}
		for _, line := range []string{
			fmt.Sprintf("%d%s %s, %s, %s %s", r.Numero, r.Rep, r.Voie, r.LieuDit, r.CodePostal, r.Commune),
			fmt.Sprintf("%s, %d%s %s, %s %s", r.LieuDit, r.Numero, r.Rep, r.Voie, r.CodePostal, r.Commune),
		} {
			asked++
			if m, ok := firstMatch(t, e, line); ok && m.ID == r.ID {
				right++
			} else if asked-right < 10 {
				t.Logf("%q: %s (%s), want %s", line, m.Label, m.ID, r.ID)
			}
		}
	}
	t.Logf("%d of %d", right, asked)
	if right*1000 < asked*998 {
		t.Errorf("%d of %d lines with their lieu-dit are answered with their row", right, asked)
	}
}

func TestTheFormsInWhichMapsShowAnAddressAreRead(t *testing.T) {
	t.Parallel()
	leveltest.Need(t, leveltest.Usual, "") // it takes seconds
	o := addresstest.Lozere(t)
	e := engineFor(t, o.Vintage)
	asked, right := 0, 0
	for r := range everyHouse(o.Rows, 3) {
		if r.CodeInsee[:2] != "48" {
			continue
		}
		chief := [...]string{"Mende", "Florac Trois Rivières"}[asked%2]
		line := fmt.Sprintf("%d%s, %s, %s, %s, Lozère, Occitanie, France métropolitaine, %s, France", r.Numero, r.Rep, r.Voie, r.Commune, chief, r.CodePostal)
		asked++
		if m, ok := firstMatch(t, e, line); ok && m.ID == r.ID {
			right++
		} else if asked-right < 10 {
			t.Logf("%q: %s (%s), want %s", line, m.Label, m.ID, r.ID)
		}
	}
	t.Logf("%d of %d", right, asked)
	if right*10_000 < asked*9995 {
		t.Errorf("%d of %d lines in the form of a map are answered with their row", right, asked)
	}
}

func TestADepartmentOrRegionWithoutACommuneNarrows(t *testing.T) {
	t.Parallel()
	o := addresstest.RealRows(t)
	e := engineFor(t, o.Vintage)
	asked := 0
	for r := range everyHouse(o.Rows, 211) {
		if r.CodeInsee[:2] != "48" {
			continue
		}
		asked++
		street := fmt.Sprintf("%d%s %s", r.Numero, r.Rep, r.Voie)
		for _, division := range []string{", Lozère", " Lozère", ", Occitanie", ", Lozère, Occitanie, France"} {
			if terms := text.Terms(r.Voie); division[0] == ' ' && text.ClassOf(terms[len(terms)-1].Text) == text.StreetType {
				continue // Grand Rue Lozère may be a name
			}
			m, ok := firstMatch(t, e, street+division)
			if !ok || text.Fold(m.Street) != text.Fold(r.Voie) || m.Department.Code != "48" {
				t.Errorf("%q: %v %s", street+division, ok, m.Label)
			}
		}
		if m, ok := firstMatch(t, e, street+", Finistère"); ok {
			t.Errorf("%q: %s", street+", Finistère", m.Label)
		}
	}
	t.Logf("%d rows", asked)
}

func TestACodeOfCorsicaIsACommunes(t *testing.T) {
	t.Parallel()
	var rows []ban.Row
	area := [...][3]string{{"20000", "2A004", "Ajaccio"}, {"20200", "2B033", "Bastia"}, {"20250", "2B238", "Poggio-di-Venaco"}, {"20100", "2A272", "Sartène"}}
	for _, a := range area {
		for n := 1; n < 4; n++ {
			rows = append(rows, addresstest.NewHouse(addresstest.NewArea(a[0], a[1], a[2]), "0010", "Rue Saint-Roch", n, ""))
		}
	}
	e := engineOf(t, rows)
	for _, a := range area {
		for _, line := range []string{"2 rue Saint-Roch %s", "2 rue Saint Roch %s " + a[2], "2 rue Saint-Roch, " + a[2] + " (%s)", "2 rue Saint-Roch " + a[0] + " " + a[2] + " %s"} {
			for _, code := range []string{a[1], strings.ToLower(a[1])} {
				m, ok := firstMatch(t, e, fmt.Sprintf(line, code))
				if !ok || m.CityCode != a[1] || m.Number != "2" || !m.IsResolved {
					t.Errorf(line+": %v %s, resolved %v", code, ok, m.Label, m.IsResolved)
				}
			}
		}
		for _, line := range []string{a[1], a[2] + " " + a[1], a[1] + " " + a[2]} {
			if m, ok := firstMatch(t, e, line); !ok || m.ID != a[1] || !m.IsResolved {
				t.Errorf("%s: %v %s, resolved %v", line, ok, m.Label, m.IsResolved)
			}
		}
		if m, ok := firstMatch(t, e, "2 rue Saint-Roch 2B002"); ok {
			t.Errorf("a commune without a row: %s", m.Label)
		}
	}
}

func TestARowWithoutAPostcodeHasThatOfItsCommune(t *testing.T) {
	t.Parallel()
	area := [...][3]string{{"97133", "97701", "Saint-Barthélemy"}, {"97150", "97801", "Saint-Martin"}, {"97500", "97502", "Saint-Pierre"}, {"98714", "98735", "Papeete"}, {"98800", "98818", "Nouméa"}}
	rows := hamlet()
	for _, a := range area {
		for n := 1; n < 4; n++ {
			rows = append(rows, addresstest.NewHouse(addresstest.NewArea("", a[1], a[2]), "0010", "Rue de la République", n, ""))
		}
	}
	e := engineOf(t, rows)
	for _, a := range area {
		want := "2 Rue de la République " + a[2]
		for _, line := range []string{"2 rue de la république %s", "2 rue de la république %s " + a[2], "2 rue de la république, " + a[2] + " %s"} {
			m, ok := firstMatch(t, e, fmt.Sprintf(line, a[0]))
			if !ok || m.Label != want || m.Postcode != a[0] || m.Verdict != Exact || m.CityLine[:5] != a[0] {
				t.Errorf(line+": %v %s %s %s %s", a[0], ok, m.Label, m.Postcode, m.Verdict, m.CityLine)
			}
		}
		found, err := e.Verify(t.Context(), Query{Text: "2 rue de la république", Filter: Filter{Postcodes: []string{a[0]}}, Limit: 5})
		if err != nil || len(found) != 1 || found[0].Label != want {
			t.Errorf("in %s alone: %v, %v", a[0], labels(found), err)
		}
	}
}

func TestANameOfFrequentWordsIsFoundAmongTheManyThatHoldThem(t *testing.T) {
	t.Parallel()
	mende, chanac := addresstest.NewArea("48000", "48095", "Mende"), addresstest.NewArea("48230", "48039", "Chanac")
	rows := []ban.Row{addresstest.NewHouse(chanac, "0001", "Grand Rue", 12, ""), addresstest.NewHouse(chanac, "0002", "Route du Pré", 3, "")}
	for i := range 700 {
		key := fmt.Sprintf("%04d", i+10)
		rows = append(rows, addresstest.NewHouse(mende, key, fmt.Sprintf("Rue du Grand Pré %c%c", 'a'+i/26, 'a'+i%26), 12, ""))
	}
	e := engineOf(t, rows)
	for line, want := range map[string]string{
		"grand rue": "Grand Rue 48230 Chanac", "12 Grand'Rue": "12 Grand Rue 48230 Chanac", "13 grand rue": "Grand Rue 48230 Chanac",
		"route du pré": "Route du Pré 48230 Chanac", "3 route du pre": "3 Route du Pré 48230 Chanac",
	} {
		if m, ok := firstMatch(t, e, line); !ok || m.Label != want {
			t.Errorf("%q: %v %s, want %s", line, ok, m.Label, want)
		}
	}
}

func TestADeliveryOfficeNamesThePlaceOfItsRows(t *testing.T) {
	t.Parallel()
	offices := [...][2]string{{"97434", "SAINT GILLES LES BAINS"}, {"97460", "SAINT PAUL"}, {"97411", "BOIS DE NEFLES ST PAUL"}, {"97422", "LA SALINE"}, {"97423", "LE GUILLAUME"}}
	var rows []ban.Row
	for i, office := range offices {
		area := addresstest.NewArea(office[0], "97415", "Saint-Paul")
		for j, street := range [...]string{"Rue du Général de Gaulle", "Rue de la Plage", "Chemin des Mangues"} {
			for n := range 1 + 3*(i%2) {
				r := addresstest.NewHouse(area, fmt.Sprintf("%d%03d", i, j), street, n+1, "")
				r.Acheminement = office[1]
				rows = append(rows, r)
			}
		}
	}
	e := engineOf(t, append(rows, hamlet()...))
	for i, office := range offices {
		for j, street := range [...]string{"Rue du Général de Gaulle", "Rue de la Plage", "Chemin des Mangues"} {
			want := fmt.Sprintf("97415_%d%03d_00001", i, j)
			for _, line := range []string{"1 %s %s %s", "1 %s, %s %s", "1 %s, %s, %s, La Réunion"} {
				line = fmt.Sprintf(line, street, office[0], office[1])
				if m, ok := firstMatch(t, e, line); !ok || m.ID != want || !m.IsResolved || m.Components.City.Status == Unconfirmed {
					t.Errorf("%q: %v %s %s, resolved %v, commune %s", line, ok, m.ID, m.Label, m.IsResolved, m.Components.City)
				}
			}
			line := fmt.Sprintf("1 %s, %s", street, office[1])
			if m, ok := firstMatch(t, e, line); !ok || m.ID != want && office[1] != "SAINT PAUL" {
				t.Errorf("%q: %v %s %s", line, ok, m.ID, m.Label)
			}
		}
	}
}
