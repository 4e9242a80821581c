package record_test

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"lieudit/http/sitefile/record"
)

// writeZip is a zip archive of parts.
func writeZip(t testing.TB, parts map[string]string) string {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		part, err := w.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := part.Write([]byte(parts[name])); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// namedSheet is a sheet of a test: its cells as XML, row by row.
type namedSheet struct {
	name, state string
	rows        []string
}

// spreadsheetParts are the parts of a spreadsheet. Styles 0 to 7 are: none, 00000, a date, a date with a time, a time, hours that
// exceed a day, the date of number 14, and 0#" "##.
func spreadsheetParts(shared []string, sheets ...namedSheet) map[string]string {
	const relation = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
	list, targets := "", ""
	parts := map[string]string{
		"_rels/.rels":          `<Relationships><Relationship Id="r" Type="` + relation + `/officeDocument" Target="xl/workbook.xml"/></Relationships>`,
		"xl/sharedStrings.xml": "<sst><si>" + strings.Join(shared, "</si><si>") + "</si></sst>",
		"xl/styles.xml": `<styleSheet><numFmts><numFmt numFmtId="164" formatCode="00000"/><numFmt numFmtId="165" formatCode="[$-40C]d&quot; du &quot;mm\ yyyy;@"/>
<numFmt numFmtId="166" formatCode="dd/mm/yy\ hh:mm"/><numFmt numFmtId="167" formatCode="h:mm"/><numFmt numFmtId="168" formatCode="[h]:mm"/>
<numFmt numFmtId="169" formatCode="0#&quot; &quot;##&quot; &quot;##&quot; &quot;##&quot; &quot;##"/></numFmts><cellStyleXfs><xf numFmtId="14"/></cellStyleXfs>
<cellXfs><xf numFmtId="0"/><xf numFmtId="164"/><xf numFmtId="165"/><xf numFmtId="166"/><xf numFmtId="167"/><xf numFmtId="168"/><xf numFmtId="14"/>
<xf numFmtId="169"/></cellXfs></styleSheet>`,
	}
	for i, s := range sheets {
		list += fmt.Sprintf(`<sheet name="%s" sheetId="%d" state="%s" r:id="rId%d"/>`, s.name, i+1, s.state, i+1)
		targets += fmt.Sprintf(`<Relationship Id="rId%d" Type="%s/worksheet" Target="worksheets/sheet%d.xml"/>`, i+1, relation, i+1)
		parts[fmt.Sprintf("xl/worksheets/sheet%d.xml", i+1)] = "<?xml version=\"1.0\"?><worksheet><sheetData><row>" + strings.Join(s.rows, "</row>\n<row>") +
			"</row></sheetData><c r=\"A9\"><v>no cell</v></c></worksheet>"
	}
	parts["xl/workbook.xml"] = "<workbook><workbookPr/><sheets>" + list + "</sheets></workbook>"
	parts["xl/_rels/workbook.xml.rels"] = "<Relationships>" + targets + "</Relationships>"
	return parts
}

// textCells are cells of text, one next to the other.
func textCells(texts ...string) string {
	var out strings.Builder
	for _, text := range texts {
		fmt.Fprintf(&out, `<c t="inlineStr"><is><t>%s</t></is></c>`, text)
	}
	return out.String()
}

func TestCellsOfSheetsAreRead(t *testing.T) {
	t.Parallel()
	header := textCells("a", "b", "c")
	for _, c := range []struct{ rule, cells, want string }{
		{"shared texts, with fonts, without pronunciation, with control signs", `<c t="s"><v>0</v></c><c t="s"><v>1</v></c><c t="s"><v>9</v></c>`, "2 é & <b>|1 2\r\n3"},
		{"a number, as short as it is", `<c><v>105</v></c><c><v>44.518012300000002</v></c><c><v>1.2345678901234E13</v></c>`, "2 105|44.5180123|12345678901234"},
		{"an error of computing", `<c><v>0.30000000000000004</v></c><c><v>48.85714001395299</v></c><c><v>-0.5</v></c>`, "2 0.3|48.85714001395299|-0.5"},
		{"a number with noughts", `<c s="1"><v>1000</v></c><c s="7"><v>466651234</v></c><c s="1"><v>1.5</v></c>`, "2 01000|0466651234|1.5"},
		{"dates", `<c s="2"><v>46348</v></c><c s="3"><v>46348.395833333336</v></c><c s="6"><v>1</v></c>`, "2 2026-11-22|2026-11-22T09:30:00|1900-01-01"},
		{"times", `<c s="4"><v>0.39583333333333331</v></c><c s="5"><v>1.25</v></c><c s="4"><v>46348.5</v></c>`, "2 09:30|30:00|12:00"},
		{"an ISO date, and one that is none", `<c t="d"><v>2026-11-22</v></c><c s="2"><v>-3</v></c><c s="6"><v>1E9</v></c>`, "2 2026-11-22|-3|1000000000"},
		{"booleans and errors", `<c t="b"><v>1</v></c><c t="e"><v>#N/A</v></c><c t="b"><v>0</v></c>`, "2 true||false"},
		{"values of formulas", `<c><f>1+1</f><v>2</v></c><c t="str"><f>"a"&amp;"b"</f><v>ab</v></c><c><f>1+1</f></c>`, "2 2|ab"},
		{"places that references name", `<c r="C2"><v>3</v></c><c r="A2"><v>1</v></c>`, "2 1||3"},
		{"CDATA, comments and prefixes", `<x:c xmlns:x='>' t="str"><!-- <v>no</v> --><x:v><![CDATA[a & <b>]]></x:v></x:c>`, "2 a & <b>"},
		{"entities", textCells("&#233;&#xE9;&quot;&apos;&unknown;&"), `2 éé"'&unknown;&`},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			parts := spreadsheetParts([]string{"<t>é &amp; &lt;b&gt;</t>", `<r><rPr/><t>1 </t></r><r><t xml:space="preserve">2_x000D_
3</t></r><rPh><t>no</t></rPh>`}, namedSheet{name: "Sites", rows: []string{header, c.cells}})
			_, rows, err := readText(t, writeZip(t, parts), "a.xlsx", record.Options{})
			if err != nil || len(rows) != 1 || rows[0] != c.want {
				t.Errorf("got %q, %v, want %q", rows, err, c.want)
			}
		})
	}
}

func TestDaysAreCountedFrom1904WhereTheWorkbookSaysSo(t *testing.T) {
	t.Parallel()
	parts := spreadsheetParts(nil, namedSheet{name: "Sites", rows: []string{textCells("a", "b"), `<c s="2"><v>44886</v></c><c s="2"><v>0</v></c>`}})
	parts["xl/workbook.xml"] = strings.Replace(parts["xl/workbook.xml"], "<workbookPr/>", `<workbookPr date1904="1"/>`, 1)
	_, rows, err := readText(t, writeZip(t, parts), "", record.Options{})
	if err != nil || len(rows) != 1 || rows[0] != "2 2026-11-22|1904-01-01" {
		t.Errorf("got %q, %v", rows, err)
	}
}

func TestASheetWithNamesIsRead(t *testing.T) {
	t.Parallel()
	table := []string{textCells("nom", "ville", "lat"), textCells("A", "Mende", "x")}
	other := []string{textCells("code", "libelle"), textCells("1", "Ouvert")}
	workbook := writeZip(t, spreadsheetParts(nil,
		namedSheet{name: "Cache", state: "hidden", rows: other}, namedSheet{name: "Vide"}, namedSheet{name: "Lisez-moi", rows: []string{textCells("Bonjour")}},
		namedSheet{name: "Sites", rows: table}, namedSheet{name: "Codes", rows: other}))
	titled := writeZip(t, spreadsheetParts(nil, namedSheet{name: "Sites", rows: append([]string{textCells("Nos magasins"), ""}, table...)},
		namedSheet{name: "Codes", rows: other}))
	runFileCases(t, []fileCase{
		{rule: "the first with names that is not hidden", file: workbook, columns: "nom|ville|lat", rows: []string{"2 A|Mende|x"}},
		{rule: "that of a name", file: workbook, options: record.Options{Sheet: "codes"}, columns: "code|libelle", rows: []string{"2 1|Ouvert"}},
		{rule: "a hidden one of a name", file: workbook, options: record.Options{Sheet: "Cache"}, columns: "code|libelle", rows: []string{"2 1|Ouvert"}},
		{rule: "that of a number", file: workbook, options: record.Options{Sheet: "3"}, rows: []string{"2 A|Mende|x"}},
		{rule: "one that is not there", file: workbook, options: record.Options{Sheet: "Site"}, err: `there are ["Vide" "Lisez-moi" "Sites" "Codes"]`},
		{rule: "titles above the names", file: titled, err: "seems to be line 3"},
		{rule: "titles above the names that are named", file: titled, options: record.Options{HeaderLine: 3}, columns: "nom|ville|lat", rows: []string{"4 A|Mende|x"}},
	})
	f, _, err := readText(t, workbook, "", record.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := f.Info(); got.Sheet != "Sites" || fmt.Sprint(got.SkippedSheets, got.OtherSheets) != "[Vide Lisez-moi] [Vide Lisez-moi Codes]" {
		t.Errorf("got %+v", got)
	}
}

func TestTitlesAreToldWithTheSheetThatTheyStandOn(t *testing.T) {
	t.Parallel()
	table := []string{textCells("Nos magasins"), "", textCells("nom", "ville", "lat"), textCells("A", "Mende", "x"), textCells("B", "Mende", "y")}
	workbook := writeZip(t, spreadsheetParts(nil, namedSheet{name: "Couverture", rows: []string{textCells("Bonjour"), textCells("Voir"), textCells("ci-contre"), textCells("merci")}},
		namedSheet{name: "Sites", rows: table}))
	_, _, err := readText(t, workbook, "", record.Options{})
	titles, ok := errors.AsType[*record.TitleRowsError](err)
	if !ok || titles.Sheet != "Sites" || titles.HeaderLine != 3 {
		t.Fatalf("got %v", err)
	}
	runFileCases(t, []fileCase{
		{rule: "both together read it", file: workbook, options: record.Options{Sheet: titles.Sheet, HeaderLine: titles.HeaderLine}, columns: "nom|ville|lat", rows: []string{"4 A|Mende|x", "5 B|Mende|y"}},
		{rule: "no sheet has names", file: writeZip(t, spreadsheetParts(nil, namedSheet{name: "Un", rows: []string{textCells("Bonjour")}}, namedSheet{name: "Deux"})), err: `--sheet; there are ["Un" "Deux"]`},
	})
}

func TestATableWithoutNamesIsReadWithNumbers(t *testing.T) {
	t.Parallel()
	text := "M1;48000;44.5;\nM2;48100;44.6;x\n"
	_, _, err := readText(t, text, "a.csv", record.Options{})
	if _, ok := errors.AsType[*record.NoNamesError](err); !ok {
		t.Errorf("got %v", err)
	}
	runFileCases(t, []fileCase{{rule: "no names", file: text, options: record.Options{HeaderLine: record.NoHeader}, columns: "colonne_1|colonne_2|colonne_3|colonne_4",
		rows: []string{"1 M1|48000|44.5|", "2 M2|48100|44.6|x"}}})
}

func TestInfoCountsWhatASheetLacks(t *testing.T) {
	t.Parallel()
	rows := []string{textCells("a", "b"), textCells("1", "2", "note"), `<c><v>1</v></c><c><f>B2</f></c>`}
	for range 100 {
		rows = append(rows, textCells("x"))
	}
	rows = append(rows, textCells("1", "2", "3", "4"))
	parts := spreadsheetParts(nil, namedSheet{name: "Sites", rows: rows})
	sheet := "xl/worksheets/sheet1.xml"
	parts[sheet] = strings.Replace(parts[sheet], "<row>"+textCells("x"), `<row hidden="1">`+textCells("x"), 1)
	f, got, err := readText(t, writeZip(t, parts), "", record.Options{})
	if err != nil || len(got) != 103 || got[0] != "2 1|2|note" || got[1] != "3 1" || got[102] != "104 1|2|3" || showColumns(f) != "a|b|" {
		t.Fatalf("got %q, %v", got, err)
	}
	info := f.Info()
	if info.CellsBeyondHeader != (record.Count{Number: 1, Line: 104}) || info.UncomputedFormulas != (record.Count{Number: 1, Line: 3}) ||
		info.HiddenRows != (record.Count{Number: 1, Line: 4}) {
		t.Errorf("got %+v", info)
	}
}

func TestOtherArchivesAreRefusedWithTheWayOn(t *testing.T) {
	t.Parallel()
	bomb := spreadsheetParts(nil, namedSheet{name: "Sites", rows: []string{textCells("a", "b")}})
	bomb["xl/worksheets/sheet1.xml"] = strings.Replace(bomb["xl/worksheets/sheet1.xml"], "</sheetData>", strings.Repeat("<!-- -->", 4<<20)+"</sheetData>", 1)
	rows := spreadsheetParts(nil, namedSheet{name: "Sites", rows: []string{textCells("a", "b")}})
	rows["xl/worksheets/sheet1.xml"] = strings.Replace(rows["xl/worksheets/sheet1.xml"], "</sheetData>", strings.Repeat("<row/>", 1<<20)+"</sheetData>", 1)
	damaged := writeZip(t, spreadsheetParts(nil, namedSheet{name: "Sites", rows: []string{textCells("a", "b")}}))
	entities := spreadsheetParts(nil, namedSheet{name: "Sites"})
	entities["xl/workbook.xml"] = `<!DOCTYPE x [<!ENTITY a "aaaa">]>` + entities["xl/workbook.xml"]
	var cases []fileCase
	for want, file := range map[string]string{
		"unpacks to too much":    writeZip(t, bomb),
		"more than 1048576 rows": writeZip(t, rows),
		"damaged zip":            damaged[:len(damaged)-30],
		"DOCTYPE":                writeZip(t, entities),
		"ODS":                    writeZip(t, map[string]string{"mimetype": "application/vnd.oasis.opendocument.spreadsheet", "content.xml": "<a/>"}),
		"XLSB":                   writeZip(t, map[string]string{"xl/workbook.bin": "x"}),
		"Word":                   writeZip(t, map[string]string{"word/document.xml": "<a/>"}),
		"KMZ":                    writeZip(t, map[string]string{"doc.kml": "<a/>"}),
		"shapefile":              writeZip(t, map[string]string{"a/sites.shp": "x", "a/sites.dbf": "y"}),
		"unpack it and give":     writeZip(t, map[string]string{"sites.csv": "a,b"}),
		"stops.txt":              writeZip(t, map[string]string{"stops.txt": "a,b", "routes.txt": "x"}),
		"without a spreadsheet":  writeZip(t, map[string]string{"a.bin": "x"}),
		"empty zip":              writeZip(t, nil),
		"no row holds names":     writeZip(t, spreadsheetParts(nil, namedSheet{name: "Sites"})),
		"not hidden":             writeZip(t, spreadsheetParts(nil, namedSheet{name: "Sites", state: "hidden"})),
	} {
		cases = append(cases, fileCase{rule: want, file: file, err: want})
	}
	runFileCases(t, cases)
}

// countingReaderAt counts the bytes that are read.
type countingReaderAt struct {
	io.ReaderAt
	read int
}

func (r *countingReaderAt) ReadAt(p []byte, at int64) (int, error) {
	n, err := r.ReaderAt.ReadAt(p, at)
	r.read += n
	return n, err
}

func TestEmptyRowsAtTheEndOfASheetAreReadOnce(t *testing.T) {
	t.Parallel()
	parts := spreadsheetParts(nil, namedSheet{name: "Sites", rows: []string{textCells("a", "b"), textCells("1", "2"), "", textCells("3", "4")}})
	var empty strings.Builder
	random := rand.New(rand.NewPCG(1, 2))
	for range 50_000 { // heights that do not compress
		fmt.Fprintf(&empty, `<row ht="%d"><c t="str"><v> </v></c></row>`, random.Uint64())
	}
	const sheet = "xl/worksheets/sheet1.xml"
	parts[sheet] = strings.Replace(parts[sheet], "</sheetData>", empty.String()+"</sheetData>", 1)
	text := writeZip(t, parts)
	file := &countingReaderAt{ReaderAt: strings.NewReader(text)}
	f, err := record.Open(file, int64(len(text)), "", record.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if file.read < len(text)/2 {
		t.Fatalf("%d bytes of %d are read to find the names", file.read, len(text))
	}
	for run := range 2 {
		before := file.read
		if rows, err := showRows(f); err != nil || !slices.Equal(rows, []string{"2 1|2", "4 3|4"}) || file.read-before > len(text)/4 {
			t.Errorf("run %d: %q, %v, with %d of %d bytes", run, rows, err, file.read-before, len(text))
		}
	}
}
