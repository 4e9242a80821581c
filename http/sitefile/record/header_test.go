package record_test

import (
	"testing"

	"lieudit/http/sitefile/record"
)

func TestTheFirstRowHoldsTheNames(t *testing.T) {
	t.Parallel()
	const taxis = "nom;lat;lon\nA;44.5;3.5\nB;44.6;3.6\n"
	runFileCases(t, []fileCase{
		{rule: "without the spaces around them, two of one name, one empty", file: " nom ;nom;;ville\nA;B;C;D\n", columns: "nom|nom||ville", rows: []string{"2 A|B|C|D"}},
		{rule: "empty ones at the end are columns too", file: "nom;ville;\nA;B;C\nD;E;;\n", columns: "nom|ville|", rows: []string{"2 A|B|C", "3 D|E|"}},
		{rule: "a year is a name", file: "nom;2025;2026\nA;1,5;2,5\n", columns: "nom|2025|2026", rows: []string{"2 A|1,5|2,5"}},
		{rule: "names alone are a file without rows", file: "nom;ville\n", columns: "nom|ville"},
		{rule: "blank lines and rows are skipped, and counted", file: "\n\nnom;ville\n\n;\nA;B\n \n", columns: "nom|ville", rows: []string{"6 A|B"}},
		{rule: "titles above them", file: "Liste des taxis\n\n" + taxis, err: "seems to be line 3"},
		{rule: "titles in cells above them", file: "Liste des taxis;;\nau 22/11/2026;;\n" + taxis, err: "seems to be line 3"},
		{rule: "what groups of names have in common above them", file: "Site;;;Position;;;Contact;;\nnom;rue;ville;lat;lon;alt;tel;mail;web\nA;B;C;1;2;3;4;;\n",
			err: "seems to be line 2"},
		{rule: "a title above names that are years", file: "Population\ncommune;2019;2020;2021\nA;1;2;3\nB;1;2;3\n", err: "seems to be line 2"},
		{rule: "a title above no names", file: "Nos sites;;;\nA;Mende;44.5;3.5\nB;Florac;44.6;3.6\n", err: "line 1: a single text stands here"},
		{rule: "titles that are to be skipped", file: "Liste des taxis\n\n" + taxis, options: record.Options{HeaderLine: 3}, columns: "nom|lat|lon",
			rows: []string{"4 A|44.5|3.5", "5 B|44.6|3.6"}},
		{rule: "a line of names that is none", file: taxis, options: record.Options{HeaderLine: 9}, err: "line 9: this line holds no names"},
		{rule: "no names, positions", file: "A;44.5;3.5\nB;44.6;3.6\n", err: "line 1: the first row holds data"},
		{rule: "no names, e-mail addresses", file: "A;a@example.fr\nB;b@example.fr\n", err: "line 1: the first row holds data"},
		{rule: "no names, most are integers", file: "1;48000\n2;48400\n", err: "line 1: the first row holds data"},
		{rule: "names repeated among the rows", file: "nom;ville\nA;B\nnom;ville\nC;D\n", rows: []string{"2 A|B", "4 C|D"}},
		{rule: "names for programs, then for people", file: "nom_site;date_maj;lat\nNom du site;Mise à jour;Latitude\nA;2026-11-22;44.5\nB;2026-11-21;44.6\nC;;1\n",
			columns: "nom_site|date_maj|lat", rows: []string{"3 A|2026-11-22|44.5", "4 B|2026-11-21|44.6", "5 C||1"}},
		{rule: "years are names", file: "commune;2019;2020;2021\nA;1;2;3\n", columns: "commune|2019|2020|2021", rows: []string{"2 A|1|2|3"}},
		{rule: "names of a file that was joined to another", file: "nom;ville\nA;B\n\ufeffnom;ville\nC;D\n\x1a", columns: "nom|ville", rows: []string{"2 A|B", "4 C|D"}},
		{rule: "names for people, then for programs", file: "Nom du site;Ville du site\nnom_site;ville_site\nA;Mende\nB;Florac\n", columns: "Nom du site|Ville du site",
			rows: []string{"3 A|Mende", "4 B|Florac"}},
		{rule: "a first row of texts is no second row of names", file: "nom;ville;lat\nA;Mende;NC\nB;Florac;44.5\nC;Mende;44.6\n", columns: "nom|ville|lat",
			rows: []string{"2 A|Mende|NC", "3 B|Florac|44.5", "4 C|Mende|44.6"}},
		{rule: "a row with fewer cells", file: "nom;ville\nA\nB;C\n", rows: []string{"2 A", "3 B|C"}},
		{rule: "a row with more cells that are empty", file: "nom;ville\nA;B;; \n", rows: []string{"2 A|B"}},
		{rule: "a row with more cells", file: "nom;ville\nA;B\nC;D;E\n", rows: []string{"2 A|B"}, err: "line 3: 3 cells, but the file has 2 columns: put quotes around a text that holds a semicolon"},
	})
}

func TestInfoSaysWhereTheNamesAre(t *testing.T) {
	t.Parallel()
	f, _, err := readText(t, "Titre\nnom_site;lat;lon\nNom;Latitude;Longitude\nA;44.5;3.5\nnom_site;lat;lon\nB;44.5;3.5\nC;1;2\n", "", record.Options{HeaderLine: 2})
	if err != nil {
		t.Fatal(err)
	}
	got := f.Info()
	if got.HeaderLine != 2 || got.SecondHeaderLine != 3 || got.TitleRows != 1 || got.RepeatedHeaders != (record.Count{Number: 1, Line: 5}) || got.Separator != ';' {
		t.Errorf("got %+v", got)
	}
}

func TestOtherFormatsAreRefusedWithTheWayOn(t *testing.T) {
	t.Parallel()
	var cases []fileCase
	for want, file := range map[string]string{
		"the file is empty":          "",
		"file is empty":              "\ufeff \n",
		"binary":                     "nom;ville\n\x00\x01\x02",
		"XLS file":                   "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1xxx",
		"gzip":                       "\x1f\x8b\x08xxx",
		"PDF":                        "%PDF-1.7",
		"GeoPackage":                 "SQLite format 3\x00xxx",
		"shapefile":                  "\x00\x00\x27\x0a\x00",
		"web page":                   "\ufeff\n<!DOCTYPE html><html><body><table>",
		"table of a web page":        "<table><tr><td>nom</td></tr></table>",
		"spreadsheet in XML of 2003": `<?xml version="1.0"?><Workbook xmlns="urn:schemas-microsoft-com:office:spreadsheet">`,
		"JavaScript":                 "const sites = [{\"a\":1}]",
		"vCard":                      "BEGIN:VCARD\n",
		"KML":                        `<?xml version="1.0"?><kml xmlns="x">`,
		"GPX":                        `<gpx version="1.1">`,
		"this is XML":                `<?xml version="1.0"?><sites/>`,
	} {
		cases = append(cases, fileCase{rule: want, file: file, name: "sites.xls", err: want})
	}
	cases = append(cases, fileCase{rule: "an encoding that is unknown", file: "a;b\n", options: record.Options{Encoding: "klingon"}, err: `no encoding is called "klingon"`},
		fileCase{rule: "a separator that is none", file: "a;b\n", options: record.Options{Separator: 'é'}, err: "cannot separate cells"})
	runFileCases(t, cases)
}
