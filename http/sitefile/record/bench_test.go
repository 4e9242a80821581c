package record_test

import (
	"bytes"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"lieudit/http/sitefile/record"
)

const (
	benchRows    = 20_000
	benchColumns = 30
)

// benchCell is a cell of a file of places: a text, a number or an empty one.
func benchCell(row, column int) string {
	switch column % 5 {
	case 0:
		return fmt.Sprintf("Épicerie %d", row)
	case 1:
		return fmt.Sprintf("%d.%07d", 40+row%10, row*7919%10_000_000)
	case 2:
		return fmt.Sprintf("%d rue de la République", row%200)
	case 3:
		return fmt.Sprint(10_000 + row%80_000)
	}
	return ""
}

// benchTable writes rows with the names of the columns above them.
func benchTable(rows int, write func(row int, cells []string)) {
	cells := make([]string, benchColumns)
	for i := range cells {
		cells[i] = fmt.Sprintf("colonne_%d", i)
	}
	write(0, cells)
	for row := 1; row <= rows; row++ {
		for i := range cells {
			cells[i] = benchCell(row, i)
		}
		write(row, cells)
	}
}

func benchCSV(rows int) string {
	var out strings.Builder
	benchTable(rows, func(_ int, cells []string) { fmt.Fprintln(&out, strings.Join(cells, ";")) })
	return out.String()
}

func benchGeoJSON(rows int) string {
	var out strings.Builder
	out.WriteString(`{"type":"FeatureCollection","features":[`)
	separator := ""
	benchTable(rows, func(row int, cells []string) {
		if row == 0 {
			return
		}
		fmt.Fprintf(&out, `%s{"type":"Feature","geometry":{"type":"Point","coordinates":[3.5,44.%d]},"properties":{`, separator, row)
		for i, c := range cells {
			fmt.Fprintf(&out, `"colonne_%d":%q,`, i, c)
		}
		out.WriteString(`"numero":` + fmt.Sprint(row) + `}}`)
		separator = ","
	})
	out.WriteString("]}")
	return out.String()
}

func benchXLSX(b testing.TB, rows int) string {
	var sheet, shared strings.Builder
	texts := 0
	benchTable(rows, func(row int, cells []string) {
		fmt.Fprintf(&sheet, `<row r="%d" spans="1:30">`, row+1)
		for i, c := range cells {
			reference := fmt.Sprintf("%c%d", 'A'+i%26, row+1)
			if i >= 26 {
				reference = "A" + reference
			}
			if kind := i % 5; c != "" && row > 0 && (kind == 1 || kind == 3) {
				fmt.Fprintf(&sheet, `<c r="%s" s="1"><v>%s</v></c>`, reference, c)
			} else if c != "" {
				fmt.Fprintf(&sheet, `<c r="%s" s="0" t="s"><v>%d</v></c>`, reference, texts)
				fmt.Fprintf(&shared, "<si><t>%s</t></si>", c)
				texts++
			}
		}
		sheet.WriteString("</row>")
	})
	parts := spreadsheetParts(nil, namedSheet{name: "Sites"})
	parts["xl/sharedStrings.xml"] = "<sst>" + shared.String() + "</sst>"
	parts["xl/worksheets/sheet1.xml"] = "<worksheet><sheetData>" + sheet.String() + "</sheetData></worksheet>"
	return writeZip(b, parts)
}

// countRecords opens a file and counts its records.
func countRecords(t testing.TB, file io.ReaderAt, size int64) int {
	f, err := record.Open(file, size, "", record.Options{})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, err := range f.Records() {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}

func benchmarkFile(b *testing.B, file string) {
	b.Helper()
	b.SetBytes(int64(len(file)))
	b.ReportAllocs()
	for b.Loop() {
		if n := countRecords(b, strings.NewReader(file), int64(len(file))); n != benchRows {
			b.Fatalf("%d records", n)
		}
	}
}

// Each benchmark opens a file of 20,000 rows and 30 columns, and reads it once.
func BenchmarkCSV(b *testing.B)     { benchmarkFile(b, benchCSV(benchRows)) }
func BenchmarkGeoJSON(b *testing.B) { benchmarkFile(b, benchGeoJSON(benchRows)) }
func BenchmarkXLSX(b *testing.B)    { benchmarkFile(b, benchXLSX(b, benchRows)) }

// repeatedFile is a file that one piece, repeated, makes up: its memory does not grow with its size.
type repeatedFile struct {
	head, piece string
	size        int64
}

func (f *repeatedFile) ReadAt(p []byte, at int64) (int, error) {
	n := 0
	for n < len(p) && at < f.size {
		from := f.head[min(at, int64(len(f.head))):]
		if from == "" {
			from = f.piece[(at-int64(len(f.head)))%int64(len(f.piece)):]
		}
		copied := copy(p[n:min(int64(len(p)), int64(n)+f.size-at)], from)
		n, at = n+copied, at+int64(copied)
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// TestMemoryDoesNotGrowWithAFile reads files of 32 MiB, and looks at the memory in use at the 1,000th record and near the end. No other
// test runs next to it.
func TestMemoryDoesNotGrowWithAFile(t *testing.T) {
	const repeats = 1000
	line := `{"nom":"Épicerie","adresse":{"commune":"Mende"},"geo":[3.5,44.5]}` + "\n"
	for name, file := range map[string]*repeatedFile{
		"CSV":    {head: "nom;lat;lon\n", piece: strings.Repeat("Épicerie;44.5;3.5\n", repeats)},
		"NDJSON": {piece: strings.Repeat(line, repeats)},
	} {
		pieces := int64(32<<20) / int64(len(file.piece))
		file.size = int64(len(file.head)) + pieces*int64(len(file.piece))
		f, err := record.Open(file, file.size, "", record.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var early, late uint64
		n, want := 0, int(pieces)*repeats
		for _, err := range f.Records() {
			if err != nil {
				t.Fatal(err)
			}
			switch n++; n {
			case 1000:
				early = memoryInUse()
			case want - 1000:
				late = memoryInUse()
			}
		}
		if late > early+4<<20 || n != want {
			t.Errorf("%s: %d bytes early, %d late, %d records of %d", name, early, late, n, want)
		}
	}
}

func memoryInUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// FuzzRead: no bytes make Open or Records panic, and what can be read is read again the same.
func FuzzRead(f *testing.F) {
	table := namedSheet{name: "Sites", rows: []string{textCells("nom", "ville"), textCells("A", "B"), `<c r="C3" s="2"><v>3</v></c>`}}
	for _, seed := range []string{
		"nom;ville\n\"A\"\"b\";B\n", "sep=,\r\na,b\r\n1,2\r\n", "\xff\xfea\x00,\x00b\x00\n\x00", "Titre\n\na\tb\tc\n1\t2\t3\n", "nom;ville\nCaf\xe9;\x8e\n",
		`[{"a":{"b":[1,NaN]},"c":"\u00e9"}]`, "{\"a\":1}\n{\"a\":null}\n", `{"x":{"1":{"a":1},"2":{"a":2}},"l":[{"b":1}]}`,
		`{"type":"FeatureCollection","crs":{"properties":{"name":"x"}},"features":[{"type":"Feature","id":1,"geometry":{"type":"Point","coordinates":[1,2]},"properties":{"a":1}}]}`,
		writeZip(f, spreadsheetParts([]string{"<t>x</t>"}, table)), "<html>", "PK\x03\x04",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := record.Open(bytes.NewReader(data), int64(len(data)), "", record.Options{})
		if err != nil {
			if !isOwnError(err) {
				t.Fatalf("%T %v", err, err)
			}
			return
		}
		rows, err := showRows(file)
		again, errAgain := showRows(file)
		if fmt.Sprint(rows, err) != fmt.Sprint(again, errAgain) || err != nil && !isOwnError(err) {
			t.Fatalf("got %q %v, then %q %v", rows, err, again, errAgain)
		}
	})
}

// FuzzSheet: no XML of a sheet makes Open or Records panic, or return an error that is not of the package.
func FuzzSheet(f *testing.F) {
	f.Add(`<worksheet><sheetData><row r="1"><c r="A1" t="s"><v>0</v></c><c t="inlineStr"><is><t>b</t></is></c></row><row r="7"><c s="3"><v>1.5</v></c></row></sheetData></worksheet>`, "dd/mm/yyyy")
	f.Add(`<row><c t="str"><v><![CDATA[a]]></v></c><c/></row><row><!-- --><c r="ZZZZ9"><v>&#65;</v></c></row>`, `[h]:mm;"x"0#\ 0`)
	f.Fuzz(func(t *testing.T, sheet, format string) {
		parts := spreadsheetParts([]string{"<t>x</t>"}, namedSheet{name: "Sites"})
		parts["xl/worksheets/sheet1.xml"] = sheet
		parts["xl/styles.xml"] = `<styleSheet><numFmts><numFmt numFmtId="164" formatCode="` + format + `"/></numFmts><cellXfs><xf numFmtId="164"/></cellXfs></styleSheet>`
		_, _, err := readText(t, writeZip(t, parts), "", record.Options{})
		if err != nil && !isOwnError(err) {
			t.Fatalf("%T %v", err, err)
		}
	})
}
