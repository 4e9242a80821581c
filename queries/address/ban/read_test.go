package ban

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const header = "id;id_fantoir;numero;rep;nom_voie;code_postal;code_insee;nom_commune;code_insee_ancienne_commune;" +
	"nom_ancienne_commune;x;y;lon;lat;type_position;alias;nom_ld;libelle_acheminement;nom_afnor;source_position;" +
	"source_nom_voie;certification_commune;cad_parcelles\n"

const one = "48095_0275_00003_bis;;3;bis;Rue du Soubeyran;48000;48095;Mende;48900;Vieux Mende;739000.5;6380000.25;3.5;44.52;" +
	"entrée;Rue Haute;Le Bourg;MENDE;RUE DU SOUBEYRAN;commune;commune;1;480950000A0001|480950000A0002\n"

func oneRow() Row {
	return Row{ID: "48095_0275_00003_bis", Numero: 3, Rep: "bis", Voie: "Rue du Soubeyran", LieuDit: "Le Bourg",
		Alias: "Rue Haute", NomAFNOR: "RUE DU SOUBEYRAN", CodePostal: "48000", CodeInsee: "48095", Commune: "Mende",
		CodeInseeAncienne: "48900", CommuneAncienne: "Vieux Mende", Acheminement: "MENDE", Lon: 3.5, Lat: 44.52,
		X: 739000.5, Y: 6380000.25, TypePosition: "entrée", Certifie: true,
		Parcelles: []string{"480950000A0001", "480950000A0002"}}
}

func all(t testing.TB, r io.Reader) ([]Row, *Report, error) {
	t.Helper()
	report := &Report{}
	var rows []Row
	for row, err := range Read(r, "f.csv", report) {
		if err != nil {
			return rows, report, err
		}
		rows = append(rows, row)
	}
	return rows, report, nil
}

func packed(text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	io.WriteString(w, text)
	w.Close()
	return b.String()
}

func TestEveryColumnIsReadByItsName(t *testing.T) {
	t.Parallel()
	swapped := "lat;lon;numero;nom_voie;nom_commune;code_insee;id;uid_adresse\r\n44.52;3.5;3;Rue Haute;Mende;48095;a;u\r\n"
	locality := "id;nom_lieu_dit;code_postal;code_insee;nom_commune;code_insee_ancienne_commune;nom_ancienne_commune;x;y;lon;lat;" +
		"source_position;source_nom_voie\n48095_b1;Le Chastel;48000;48095;Mende;;;1;2;3.5;44.52;commune;commune\n"
	named := Row{ID: "a", IDBan: "u", Numero: 3, Voie: "Rue Haute", Commune: "Mende", CodeInsee: "48095", Lon: 3.5, Lat: 44.52}
	chastel := Row{ID: "48095_b1", Kind: Locality, Voie: "Le Chastel", CodePostal: "48000", CodeInsee: "48095", Commune: "Mende",
		X: 1, Y: 2, Lon: 3.5, Lat: 44.52}
	quoted := oneRow()
	quoted.Voie = "Rue \"du;Pré\"\nHaut"
	literal := oneRow()
	literal.Voie = "Rue du \"Pré\""
	cases := map[string]struct {
		text string
		want Row
	}{
		"official":           {header + one, oneRow()},
		"gzip":               {packed(header + one), oneRow()},
		"byte order mark":    {"\xef\xbb\xbf" + header + one, oneRow()},
		"no final line end":  {header + strings.TrimSuffix(one, "\n"), oneRow()},
		"blank lines":        {header + "\n\n" + one + "\n", oneRow()},
		"other order":        {swapped, named},
		"localities":         {locality, chastel},
		"quotes":             {header + strings.Replace(one, "Rue du Soubeyran", "\"Rue \"\"du;Pré\"\"\nHaut\"", 1), quoted},
		"quotes in a field":  {header + strings.Replace(one, "Rue du Soubeyran", "Rue du \"Pré\"", 1), literal},
		"more than a header": {header + strings.TrimSuffix(one, "\n") + ";more\n", oneRow()},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rows, report, err := all(t, strings.NewReader(c.text))
			if err != nil || report.Bad() > 0 {
				t.Fatalf("%v, %v", err, report)
			}
			if diff := cmp.Diff([]Row{c.want}, rows); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestBadRowsAreCountedNamedAndPassedOver(t *testing.T) {
	t.Parallel()
	with := func(old, new string) string { return strings.Replace(one, old, new, 1) }
	cases := map[string]struct {
		line  string
		fault Fault
	}{
		"short":             {"48095_0275_00003;;3\n", TooFewColumns},
		"no id":             {with("48095_0275_00003_bis", ""), MissingCode},
		"no commune":        {with(";48095;", ";;"), MissingCode},
		"malformed commune": {with(";48095;", ";2C095;"), MissingCode},
		"no street":         {with("Rue du Soubeyran", " "), MissingName},
		"no number":         {with(";3;bis", ";;bis"), BadNumber},
		"number of letters": {with(";3;bis", ";3a;bis"), BadNumber},
		"number too high":   {with(";3;bis", ";10000;bis"), BadNumber},
		"negative number":   {with(";3;bis", ";-3;bis"), BadNumber},
		"no longitude":      {with(";3.5;", ";;"), BadPosition},
		"not a longitude":   {with(";3.5;", ";NaN;"), BadPosition},
		"swapped":           {with(";3.5;44.52;", ";44.52;3.5;"), BadPosition},
		"in the gulf":       {with(";3.5;44.52;", ";0;0;"), BadPosition},
		"latin-1":           {with("entrée", "entr\xe9e"), BadEncoding},
		"replacement":       {with("entrée", "entr\uFFFDe"), BadEncoding},
		"control":           {with("Mende", "Men\x01de"), BadEncoding},
		"open quote":        {with("Rue du", "\"Rue du"), BadQuoting},
		"endless":           {with("Rue du", strings.Repeat("x", maxLineLength)), BadQuoting},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rows, report, err := all(t, strings.NewReader(header+one+c.line+one))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]Row{oneRow(), oneRow()}, rows); diff != "" {
				t.Error(diff)
			}
			want := []BadRow{{"f.csv", 3, c.fault}}
			if diff := cmp.Diff(want, report.First); diff != "" || report.Bad() != 1 || report.Good != 2 {
				t.Errorf("%d good, %d bad: %s", report.Good, report.Bad(), diff)
			}
		})
	}
}

func TestOverseasAddressesAreInFrance(t *testing.T) {
	t.Parallel()
	for name, p := range map[string][2]float64{"Ajaccio": {8.74, 41.92}, "Saint-Denis": {55.45, -20.88}, "Cayenne": {-52.33, 4.94},
		"Fort-de-France": {-61.07, 14.6}, "Basse-Terre": {-61.73, 16}, "Marigot": {-63.08, 18.07}, "Gustavia": {-62.85, 17.9},
		"Mamoudzou": {45.23, -12.78}, "Nouméa": {166.45, -22.27}, "Papeete": {-149.57, -17.54}, "Mata-Utu": {-176.17, -13.28},
		"Saint-Pierre": {-56.18, 46.78}, "Port-aux-Français": {70.22, -49.35}, "Dunkerque": {2.38, 51.03}, "Ouessant": {-5.1, 48.46}} {
		if !inFrance(p[0], p[1]) {
			t.Errorf("%s is not", name)
		}
	}
	for name, p := range map[string][2]float64{"Madrid": {-3.7, 40.4}, "Tunis": {10.18, 36.8}, "Maurice": {57.5, -20.2}} {
		if inFrance(p[0], p[1]) {
			t.Errorf("%s is", name)
		}
	}
}

func TestOnlyTheFirstBadRowsAreNamed(t *testing.T) {
	t.Parallel()
	_, report, err := all(t, strings.NewReader(header+strings.Repeat("x;y\n", 50)))
	if err != nil || report.Counts[TooFewColumns] != 50 || len(report.First) != MaxListed {
		t.Errorf("%v, %d short, %d named", err, report.Counts[TooFewColumns], len(report.First))
	}
	if got, want := report.First[1].String(), "f.csv:3: too few columns"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAFileThatIsNoBaseIsRefusedForWhatItIs(t *testing.T) {
	t.Parallel()
	whole := packed(header + strings.Repeat(one, 2000))
	damaged := []byte(whole)
	damaged[len(damaged)-6] ^= 0xff // in the checksum
	for name, c := range map[string]struct{ text, looks string }{
		"empty":          {"", "empty"},
		"spaces":         {" \n\n", "empty"},
		"empty gzip":     {packed(""), "empty"},
		"html":           {"<!doctype html><title>502</title>", "web page"},
		"packed html":    {packed("\n<html>"), "web page"},
		"json":           {`{"type": "FeatureCollection"}`, "JSON"},
		"zip":            {"PK\x03\x04\x14\x00", "zip"},
		"utf-16":         {"\xff\xfei\x00d\x00", "UTF-16"},
		"binary":         {"id\x00\x01", "binary"},
		"other columns":  {"a;b;c\n1;2;3\n", "no column id, numero, nom_voie"},
		"half":           {strings.Replace(header, "lon;", "longitude;", 1) + one, "no column lon;"},
		"commas":         {strings.ReplaceAll(header+one, ";", ","), "separated by commas"},
		"no line":        {strings.Repeat("x", 2*maxLineLength), "no end"},
		"truncated gzip": {whole[:len(whole)/2], "breaks off"},
		"short gzip":     {whole[:15], "breaks off"},
		"damaged gzip":   {string(damaged), "damaged"},
		"not even gzip":  {"\x1f\x8bxxxxxxxxxxxxxxxx", "damaged"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, err := all(t, strings.NewReader(c.text))
			var format *FormatError
			if !errors.As(err, &format) || !strings.Contains(err.Error(), c.looks) || format.File != "f.csv" {
				t.Errorf("got %v, want one with %q", err, c.looks)
			}
		})
	}
}

func TestAReaderThatStopsIsLeftAtOnce(t *testing.T) {
	t.Parallel()
	seen := 0
	for range Read(strings.NewReader(header+one+one+one), "f.csv", &Report{}) {
		if seen++; seen == 2 {
			break
		}
	}
	if seen != 2 {
		t.Errorf("saw %d", seen)
	}
}

func TestAUUIDOfZerosIsNone(t *testing.T) {
	t.Parallel()
	text := "lat;lon;numero;nom_voie;nom_commune;code_insee;id;id_ban_adresse\n44.52;3.5;3;Rue Haute;Mende;48095;a;u\n" +
		"44.52;3.5;4;Rue Haute;Mende;48095;b;" + noIDBan + "\n44.52;3.5;5;Rue Haute;Mende;48095;c;u\n"
	rows, _, err := all(t, strings.NewReader(text))
	if err != nil || len(rows) != 3 || rows[0].IDBan != "u" || rows[1].IDBan != "" || rows[2].IDBan != "u" {
		t.Errorf("%v, %+v", err, rows)
	}
}
