package record_test

import (
	"strings"
	"testing"

	"lieudit/http/sitefile/record"
)

func TestTextsBetweenSeparatorsAreCells(t *testing.T) {
	t.Parallel()
	runFileCases(t, []fileCase{
		{rule: "commas", file: "nom,ville\nA,Mende\n", columns: "nom|ville", rows: []string{"2 A|Mende"}},
		{rule: "semicolons, though a name has commas", file: "nom, enseigne, marque;ville\nA;Mende\nB;Florac\n", columns: "nom, enseigne, marque|ville",
			rows: []string{"2 A|Mende", "3 B|Florac"}},
		{rule: "semicolons, though numbers have commas", file: "nom;lat;lon\nA;44,5;3,5\nB;44,6;3,6\n", columns: "nom|lat|lon",
			rows: []string{"2 A|44,5|3,5", "3 B|44,6|3,6"}},
		{rule: "tabs", file: "nom\tville\nA\tMende\n", columns: "nom|ville", rows: []string{"2 A|Mende"}},
		{rule: "bars", file: "nom|ville\nA|Mende\n", columns: "nom|ville", rows: []string{"2 A|Mende"}},
		{rule: "one column, whose texts have commas", file: "adresse\n1 rue Haute, 48000 Mende\n2 rue Basse, 48400 Florac\n", columns: "adresse",
			rows: []string{"2 1 rue Haute, 48000 Mende", "3 2 rue Basse, 48400 Florac"}},
		{rule: "the separator that is asked for", file: "adresse\n1 rue Haute, 48000 Mende\n", options: record.Options{Separator: ','}, err: "line 2: 2 cells"},
		{rule: "the line sep= names the separator", file: "sep=;\nnom,a;ville\nA,B;Mende\n", columns: "nom,a|ville", rows: []string{"3 A,B|Mende"}},
		{rule: "a name that begins like JSON", file: "[lon],ville\nA,Mende\n", columns: "[lon]|ville", rows: []string{"2 A|Mende"}},
		{rule: "spaces stay, but around quotes", file: "nom,ville\n A , \"B \" \n", rows: []string{"2  A |B "}},
		{rule: "a quote inside a text", file: "nom,ville\nA \"B\" C,\"D\" E\n", rows: []string{"2 A \"B\" C|D E"}},
		{rule: "a quote that another cell's closes", file: "nom,ville\nA,Mende\n\"B,Florac\nC,\"Le Vigan\"\n", rows: []string{"2 A|Mende"},
			err: "line 3: a quote opens here and none closes it before line 4"},
		{rule: "lines end with \\r\\n, in quotes too", file: "nom,ville\r\n\"A\r\n\r\nB\",C\r\n\r\nD,E", rows: []string{"2 A\r\n\r\nB|C", "6 D|E"}},
		{rule: "rows in quotes as a whole", file: "\"nom,ville\"\n\"A,\"\"Mende, Lozère\"\"\"\n\"B,Florac\"\n", columns: "nom|ville",
			rows: []string{"2 A|Mende, Lozère", "3 B|Florac"}},
		{rule: "quotes behind backslashes", file: "nom,texte\n\"A \\\"B\\\", C\",\"{\\\"a\\\": 1}\"\nD,\"\"\n", columns: "nom|texte",
			rows: []string{"2 A \"B\", C|{\"a\": 1}", "3 D|"}},
		{rule: "a backslash that ends a cell", file: "nom,texte\n\"C:\\\",\"A\"\nD,E\n", columns: "nom|texte", rows: []string{"2 C:\\|A", "3 D|E"}},
		{rule: "doubled quotes and backslashes", file: "nom,texte\n\"{\"\"a\"\": \"\"b \\\"\"c\\\"\" d\"\"}\",E\n", columns: "nom|texte",
			rows: []string{"2 {\"a\": \"b \\\"c\\\" d\"}|E"}},
		{rule: "texts in quotes", file: "\"adresse\"\n\"1 rue Haute, Mende\"\n", columns: "adresse", rows: []string{"2 1 rue Haute, Mende"}},
		{rule: "quotes", file: "nom,texte\n\"A, \"\"B\"\"\",\"1\r\n2\"\nC,D\n", columns: "nom|texte", rows: []string{"2 A, \"B\"|1\r\n2", "4 C|D"}},
		{rule: "lines end with \\r", file: "nom,ville\rA,Mende\rB,Florac\r", rows: []string{"2 A|Mende", "3 B|Florac"}},
		{rule: "an unclosed quote", file: "nom,ville\nA,Mende\n\"B,Florac\nC,Ispagnac\n", rows: []string{"2 A|Mende"}, err: "line 3: a quote opens here"},
	})
}

func TestARowOfMoreThan16384CellsIsRefused(t *testing.T) {
	t.Parallel()
	const want = "has more than 16384 cells"
	runFileCases(t, []fileCase{
		{rule: "names, more than the sample that the separator is found in", file: strings.Repeat("name,", 200_000) + "\n1,2\n", err: want},
		{rule: "empty names", file: "a,b" + strings.Repeat(",", 16_383) + "\n1,2\n", err: want},
		{rule: "empty names, as many as a spreadsheet has", file: "a,b" + strings.Repeat(",", 16_382) + "\n1,2\n", err: "more than 10000 columns"},
		{rule: "cells", file: "a;b\n1;2\n1;2" + strings.Repeat(";", 16_383) + "\n", columns: "a|b", rows: []string{"2 1|2"}, err: want},
		{rule: "cells in quotes as a whole", file: "\"a,b\"\n\"1,2\"\n\"1,2" + strings.Repeat(",", 16_383) + "\"\n", columns: "a|b", rows: []string{"2 1|2"}, err: want},
	})
}
