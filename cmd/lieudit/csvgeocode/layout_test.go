package csvgeocode

import (
	"errors"
	"strings"
	"testing"
)

// describeColumns is the columns of a layout as a test can state them.
func describeColumns(l Layout) string {
	var columns []string
	for _, c := range l.Columns {
		text := c.Name + "=" + c.Use
		if !c.IsByName {
			text += "?"
		}
		if c.IsFallback {
			text += "+"
		}
		columns = append(columns, text)
	}
	return strings.Join(columns, " ")
}

func TestColumnsAreFoundByTheirNamesAndContents(t *testing.T) {
	t.Parallel()
	for rule, c := range map[string]struct {
		text, want string
		exact      int // rows
	}{
		"parts of a street": {"Num;Suffixe;Type voie;Nom voie;CP;Commune\n12;bis;avenue;Foch;48000;Mende\n3;;rue;de l'Ermitage;48000;Mende\n",
			"Num=numero Suffixe=rep Type voie=type_voie Nom voie=nom_voie CP=code_postal Commune=commune", 2},
		"a street that names its type": {"num_voie,type_voie,nom_voie,code_insee\n3,rue,Rue de l'Ermitage,48095\n", "num_voie=numero type_voie=type_voie nom_voie=nom_voie code_insee=code_insee", 1},
		"a town in the line too":       {"nom;adresse;cp;ville\nA;3 rue de l'Ermitage 48000 Mende;48000;MENDE CEDEX\n", "adresse=ligne_1 cp=code_postal ville=commune", 1},
		"a postcode in the town":       {"rue;localité\n1 rue Carnot;93140 BONDY\n", "rue=nom_voie localité=commune", 1},
		"postcode and town in one":     {"rue;CP VILLE\n1 rue Carnot;93140 BONDY\n", "rue=nom_voie CP VILLE=cp_commune", 1},
		"a number called N°":           {"N°;Voie;Ville\n3;rue de l'Ermitage;Mende\n12 bis;avenue Foch;Mende\n", "N°=numero Voie=nom_voie Ville=commune", 2},
		"a number that a sheet made":   {"numero_voie;voie;ville\n3.0;rue de l'Ermitage;Mende\n", "numero_voie=numero voie=nom_voie ville=commune", 1},
		"names of OpenStreetMap, in two columns": {"addr:housenumber,addr:street,addr:city,contact:housenumber,contact:street,contact:city\n3,Rue de l'Ermitage,Mende,,,\n12 bis,Avenue Foch,Mende,,,\n,,,1,Rue Carnot,Bondy\n",
			"addr:housenumber=numero contact:housenumber=numero+ addr:street=nom_voie contact:street=nom_voie+ addr:city=commune contact:city=commune+", 3},
		"a building above the street":          {"adresse;complement_adresse;ville\nCentre commercial zxwvtq;3 rue de l'Ermitage;Mende\n", "adresse=ligne_1 complement_adresse=ligne_2 ville=commune", 1},
		"contents alone":                       {"c1;c2;c3\nA;3 rue de l'Ermitage;48000\nB;12 bis avenue Foch;48000\n", "c2=ligne_1? c3=code_postal?", 2},
		"a postcode in the town and beside it": {"rue;cp;localité\n1 rue Carnot;93140;93140 BONDY\n", "rue=nom_voie cp=code_postal localité=commune", 1},
		"a postcode without its nought":        {"rue;cp;ville\n1 rue Carnot;1500;Ambérieu-en-Bugey\n", "rue=nom_voie cp=code_postal ville=commune", 1},
		"a whole line beside its street":       {"voie;adresse complète;ville\nrue de l'Ermitage;3 rue de l'Ermitage;Mende\n", "voie=nom_voie adresse complète=ligne_1 ville=commune", 1},
		"a number twice":                       {"numero_voie;voie;ville\n12;12 bis avenue Foch;Mende\n", "numero_voie=numero voie=nom_voie ville=commune", 1},
		"no number":                            {"numero_voie;voie;ville\n0;avenue Foch;Mende\n", "numero_voie=numero voie=nom_voie ville=commune", 1},
		"a street below one that is misspelt":  {"adresse;adresse 2;ville\nrue Ermitaje;12 bis avenue Foch;Mende\n", "adresse=ligne_1 adresse 2=ligne_2 ville=commune", 1},
		"a locality below a postcode":          {"lieu-dit;code postal\nLe Bourg;48000\nLe Viala;48100\n", "lieu-dit=ligne_2 code postal=code_postal", 0},
		"a commune alone":                      {"nom;commune\nA;Mende\n", "commune=commune", 1},
		"postcodes without nought":             {"adresse;code postal\n3 rue de l'Ermitage;48000\n12 bis avenue Foch;48000\n1 avenue zxwvtq;1000\n", "adresse=ligne_1 code postal=code_postal", 2},
	} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			j := newTestJob(t, c.text)
			var found Layout
			j.Start = func(l Layout) { found = l }
			got, counts := runJob(t, j)
			if columns := describeColumns(found); columns != c.want {
				t.Errorf("columns %q, want %q", columns, c.want)
			}
			if counts.Exact != c.exact || strings.Contains(c.text, "3 rue") && !strings.Contains(got, "48095_a_00003") {
				t.Errorf("%d exact, want %d:\n%s", counts.Exact, c.exact, got)
			}
		})
	}
}

func TestTheCodeOfTheCommuneDecidesBetweenStreets(t *testing.T) {
	t.Parallel()
	got, _ := runJob(t, newTestJob(t, "adresse;code_insee\n1 rue Carnot;01004\n1 rue Carnot;93010\n"))
	for _, want := range []string{"1 rue Carnot;01004;45.96;", "1 rue Carnot;93010;48.9;"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in %q", want, got)
		}
	}
}

func TestAFileWithoutAnAddressIsRefusedWithItsColumns(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"nom;telephone\nA;0466000001\nB;0466000002\n", "n\n1\n2\n", "Titre\nUne phrase\nUne autre\n", "nom;code postal\nA;48000\nB;48100\n",
		"# lieudit\nA service\nfor addresses\n", "complément d'adresse;nom\nBâtiment B;A\n2e étage;B\n"} {
		j := newTestJob(t, text)
		names, _, _ := strings.Cut(text, "\n")
		var none *NoAddressError
		if _, err := j.Run(t.Context()); !errors.As(err, &none) || strings.Join(none.Columns, ";") != names {
			t.Errorf("%q: %v, want a *NoAddressError", text, err)
		}
	}
}

func TestOnlyTheFirstRowsAreLookedAt(t *testing.T) {
	t.Parallel()
	text := "nom;lieu\n" + strings.Repeat("A;x\n", profileRows) + strings.Repeat("B;3 rue de l'Ermitage Mende\n", 3*profileRows)
	var none *NoAddressError
	if _, err := newTestJob(t, text).Run(t.Context()); !errors.As(err, &none) {
		t.Errorf("got %v, want a *NoAddressError", err)
	}
}

func TestEarlierResultsStayAndAreNoAddresses(t *testing.T) {
	t.Parallel()
	text := "nom;adresse;ville\nA;3 rue de l'Ermitage;Mende\nB;7 boulevard zxwvtq;Bondy\n"
	for run := 1; run <= 3; run++ {
		j := newTestJob(t, text)
		var found Layout
		j.Start = func(l Layout) { found = l }
		got, counts := runJob(t, j)
		want := []string{"", "result_", "result2_", "result3_"}[run]
		if found.Prefix != want || describeColumns(found) != "adresse=ligne_1 ville=commune" {
			t.Errorf("run %d: prefix %q, columns %q; want %q and the typed ones", run, found.Prefix, describeColumns(found), want)
		}
		before, after := strings.Split(text, "\n"), strings.Split(got, "\n")
		for i := range before {
			if !strings.HasPrefix(after[i], before[i]) {
				t.Errorf("run %d: %q does not begin with %q", run, after[i], before[i])
			}
		}
		if counts.Exact != 1 || counts.NotFound != 1 {
			t.Errorf("run %d: %+v, want one exact and one not found", run, counts)
		}
		text = got
	}
	j := newTestJob(t, text)
	j.Prefix = "Result2_"
	var column *ColumnError
	if _, err := j.Run(t.Context()); !errors.As(err, &column) || !column.AlreadyPresent {
		t.Errorf("a prefix that is taken: %v, want a *ColumnError", err)
	}
	j.Prefix = "ban_"
	if got, _ := runJob(t, j); !strings.Contains(got, ";result3_status;ban_latitude;") {
		t.Errorf("a prefix of the job: got %q", strings.SplitN(got, "\n", 2)[0])
	}
}

func TestTheCommuneIsNoAnswerForAStreetUnlessAsked(t *testing.T) {
	t.Parallel()
	for rule, text := range map[string]string{
		"beside a code":                "adresse;cp;ville;code_insee\n7 boulevard zxwvtq;48000;Mende;48095\n",
		"where a further line says it": "adresse_1;adresse_2;ville\n7 boulevard zxwvtq;48000 MENDE;Mende\n",
	} {
		if got, counts := runJob(t, newTestJob(t, text)); counts.NotFound != 1 {
			t.Errorf("%s: %+v, want one not found:\n%s", rule, counts, got)
		}
		j := newTestJob(t, text)
		j.Fallback = true
		if got, counts := runJob(t, j); counts.NotFound != 0 || !strings.Contains(got, ";municipality;48095;") {
			t.Errorf("%s, with the fallback: %+v:\n%s", rule, counts, got)
		}
	}
}

func TestTheSeparatorIsTheOneThatCutsTheRows(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"adresse, ou lieu, ou rue;ville\n3 rue Haute;Mende\n4 rue Basse;Mende\n": ";",
		"adresse\tville\n3, rue Haute\tMende\n4, rue Basse\tMende\n":             "\t",
		"adresse\n3, rue Haute; Mende\n":                                         "\t",
	} {
		j := newTestJob(t, text)
		j.Start = func(l Layout) {
			if l.Separator != want {
				t.Errorf("%q: %q separates, want %q", text, l.Separator, want)
			}
		}
		runJob(t, j)
	}
}
