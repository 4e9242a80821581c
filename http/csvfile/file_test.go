package csvfile

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
)

func mustOpen(t *testing.T, text string, o Options) *File {
	t.Helper()
	f, err := Open(strings.NewReader(text), int64(len(text)), o)
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return f
}

// readAll returns the rows of a file.
func readAll(t *testing.T, f *File) (rows []Row, err error) {
	t.Helper()
	in, err := f.Rows(f.FirstRow)
	if err != nil {
		t.Fatal(err)
	}
	for {
		row, err := in.Read()
		if err != nil {
			if err == io.EOF {
				err = nil
			}
			return rows, err
		}
		rows = append(rows, row)
	}
}

// addColumns writes a file with more columns, of which each row has the same cells.
func addColumns(t *testing.T, f *File, names, cells []string) string {
	t.Helper()
	rows, err := readAll(t, f)
	if err != nil {
		t.Fatal(err)
	}
	w := f.AddColumns(names)
	text := w.AppendHeader(nil)
	for _, row := range rows {
		text = w.AppendRow(text, &row, cells)
	}
	out, err := w.Encode(text)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// encodeText writes a text in an encoding.
func encodeText(t *testing.T, e encoding.Encoding, text string) string {
	t.Helper()
	out, err := e.NewEncoder().String(text)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestAFileKeepsItsForm(t *testing.T) {
	t.Parallel()
	utf16 := unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM)
	for rule, c := range map[string]struct{ file, want string }{
		"a byte order mark":                     {"\ufeffa;b\n1;2\n", "\ufeffa;b;é\n1;2;à\n"},
		"a line that names the separator":       {"sep=|\r\na|b\r\n1;1|2\r\n", "sep=|\r\na|b|é\r\n1;1|2|à\r\n"},
		"a mark and such a line":                {"\ufeff\"sep=;\"\na;b\n1;2\n", "\ufeff\"sep=;\"\na;b;é\n1;2;à\n"},
		"Windows-1252":                          {"\xe8;b\n\xe0\x81;2\n", "\xe8;b;\xe9\n\xe0\x81;2;\xe0\n"},
		"UTF-16 without a mark":                 {encodeText(t, utf16, "a;b\n1;2\n"), encodeText(t, utf16, "a;b;é\n1;2;à\n")},
		"line ends of a Macintosh":              {"a;b\r1;\"x\ry\nz\"\r", "a;b;é\r1;\"x\ry\nz\";à\r"},
		"CR within a row of LF":                 {"a;b\n1;\"x\ry\"\n", "a;b;é\n1;\"x\ry\";à\n"},
		"quotes without need":                   {"\"a\";b\n\"1\";\"2\"", "\"a\";b;é\n\"1\";\"2\";à\n"},
		"quotes within a cell":                  {"a;b\n5\" x;2\"\"\n", "a;b;é\n5\" x;2\"\";à\n"},
		"an open quote in the last row":         {"a;b\n1;\"2", "a;b;é\n1;2;à\n"},
		"missing cells":                         {"a;b;c\n1;2;3\n1\n", "a;b;c;é\n1;2;3;à\n1;;;à\n"},
		"surplus cells":                         {"a;b\n\"1\";2;3\n1;2\n", "a;b;é\n\"1\";\"2;3\";à\n1;2;à\n"},
		"a column that is there already":        {"a;é;b\n1;0;\"2\"\n", "a;é;b\n1;à;\"2\"\n"},
		"one column with commas":                {"adresse\n1, rue\n", "adresse;é\n1, rue;à\n"},
		"one column with commas in quotes":      {"adresse\n\"1, rue\"\n", "adresse,é\n\"1, rue\",à\n"},
		"one column whose name has a comma":     {"adresse (rue, ville)\n1 rue\n2 rue\n", "adresse (rue, ville);é\n1 rue;à\n2 rue;à\n"},
		"names that rows have no cells for":     {"rue;cp;ville\n1, rue\n2, rue\n", "rue;cp;ville;é\n1, rue;;;à\n2, rue;;;à\n"},
		"decimal commas between semicolons":     {"x;n\n1,5;2\n1,5;3\n", "x;n;é\n1,5;2;à\n1,5;3;à\n"},
		"empty lines":                           {"\n\na;b\n\n1;2\n\n", "\n\na;b;é\n1;2;à\n"},
		"no line end behind the row of names":   {"a;b", "a;b;é\n"},
		"UTF-8 with a few broken characters":    {"è;ç\nà;è\xe9\n", "è;ç;é\nà;è\xe9;à\n"},
		"the encoding of a Macintosh":           {"rayonn\x8e;b\n1;2\n", "rayonn\x8e;b;\x8e\n1;2;\x88\n"},
		"a last row of spaces behind the cells": {"a;b\n1;2\n ;\n", "a;b;é\n1;2;à\n ;;à\n"},
	} {
		want := c.want
		if rule == "empty lines" {
			want = strings.TrimLeft(want, "\n")
		}
		if got := addColumns(t, mustOpen(t, c.file, Options{}), []string{"é"}, []string{"à"}); got != want {
			t.Errorf("%s: got %q, want %q", rule, got, want)
		}
	}
}

func TestAnOpenQuoteThatSwallowsRowsIsRefused(t *testing.T) {
	t.Parallel()
	for file, wantErr := range map[string]bool{
		"a;b\n1;\"2\n3;4\n": true, "a;b\n1;\"2\n\"\"": true, "a;b\n1;\"2\n": true, "a\n\"" + strings.Repeat("x\n", 1<<20) + "\"": true,
		"a;b\n1;\"2": false, "a;b\n1;\"2\n\"": false, "a;b\n1;\"2\n\"\n": false,
	} {
		f := mustOpen(t, file, Options{})
		rows, err := readAll(t, f)
		if _, isRow := errors.AsType[*RowError](err); isRow != wantErr || err != nil && !isRow {
			t.Errorf("%.30q: %d rows, %v", file, len(rows), err)
		}
	}
}

func TestWhatIsNotCSVIsRefused(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]string{
		"": "the file is empty", " \n": "the file is empty", "sep=;\n": "the file is empty",
		"\x1f\x8b\x08":       "this is compressed with gzip: unpack it first",
		"PK\x03\x04":         "this is a spreadsheet or another zip archive: save it as CSV",
		"a,b\n1,\x00\n":      "this is a binary file: save it as CSV",
		`[{"a":1}]`:          "this is JSON or GeoJSON: save it as CSV",
		"<kml></kml>":        "this is KML: save it as CSV",
		"<html>a,b</html>\n": "this is a web page, whatever its name ends in: save it as CSV",
	} {
		_, err := Open(strings.NewReader(file), int64(len(file)), Options{})
		if format, ok := errors.AsType[*FormatError](err); !ok || format.Reason != want {
			t.Errorf("%q: got %v, want %q", file, err, want)
		}
	}
}

func TestSurplusCellsAreValuesOfTheLastColumn(t *testing.T) {
	t.Parallel()
	f := mustOpen(t, "a;b\n1;2\n1;2;3\n1;2;;\n1\n", Options{})
	rows, err := readAll(t, f)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range [][]string{{"1", "2"}, {"1", "2;3"}, {"1", "2"}, {"1"}} {
		if got := f.Values(rows[i]); !slices.Equal(got, want) {
			t.Errorf("row %d: got %q, want %q", i+1, got, want)
		}
	}
	if got := f.Value(rows[3], 1) + f.Value(rows[0], -1); got != "" {
		t.Errorf("a cell that is missing is %q", got)
	}
}

func TestRowsAreReadFromAnOffsetOn(t *testing.T) {
	t.Parallel()
	for _, codec := range []encoding.Encoding{encoding.Nop, charmap.Windows1252, unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM)} {
		f := mustOpen(t, encodeText(t, codec, "é;b\r1;2\r\r\"3\r\";4\r5;6"), Options{})
		rows, err := f.Rows(f.FirstRow)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := rows.Skip(); err != nil {
			t.Fatal(err)
		}
		again, err := f.Rows(rows.Offset())
		if err != nil {
			t.Fatal(err)
		}
		if row, err := again.Read(); err != nil || row.Text != "\"3\n\";4" {
			t.Errorf("%v: got %q, %v", codec, row.Text, err)
		}
	}
}

func TestCharactersThatAnEncodingLacksGetTheirNearestForm(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		single     *charmap.Charmap
		text, want string
	}{
		{charmap.Windows1252, "l’Œuf d’Éléonore", "l\x92\x8cuf d\x92\xc9l\xe9onore"},
		{charmap.CodePage850, "l’Œuf", "l'OEuf"},
		{charmap.Windows1252, "Ker Gwenoĺ – ṽ", "Ker Gwenol \x96 v"},
		{charmap.ISO8859_15, "“a”…", `"a"...`},
		{charmap.Windows1252, "日", "?"},
	} {
		if got := (charset{single: c.single}).encodeCell(c.text); got != c.want {
			t.Errorf("%q in %s: %q, want %q", c.text, c.single, got, c.want)
		}
	}
	f := mustOpen(t, "a;b\n1;2\n", Options{Encoding: "iso-8859-15"})
	if got, want := addColumns(t, f, []string{"n"}, []string{"“a”"}), "a;b;n\n1;2;\"\"\"a\"\"\"\n"; got != want {
		t.Errorf("a sign that becomes a quote: %q, want %q", got, want)
	}
}

// FuzzFilesComeBack checks that rows that are read and written without added columns are the same bytes, and that added cells stand
// in their columns.
func FuzzFilesComeBack(f *testing.F) {
	for _, file := range []string{"a;b\n1 \"rue\";\"x\ny\"\n;;;\n\"z", "\"a\"\"\";b\n\"\"x;\"", "\"\"0", "\r00", "adresse;ville\r3 rue\rb\n", "a;b\r\n\xe9;\x81\r\n",
		"\xff\xfea\x00\n\x00", "\ufeffsep=;\r\na;b\r\n1;2", "a,b\n\n\n1,2\n", "a\tb\n1\t2\t\n"} {
		f.Add([]byte(file))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := Open(bytes.NewReader(data), int64(len(data)), Options{})
		if err != nil {
			return
		}
		rows, err := readAll(t, file)
		if err != nil {
			return
		}
		checkUnchanged(t, file, rows, data)
		for i := range rows {
			checkAddedCells(t, file, &rows[i])
		}
	})
}

// checkUnchanged checks that rows without added columns are those of the file. Empty lines may be missing, and the last line end.
func checkUnchanged(t *testing.T, f *File, rows []Row, data []byte) {
	t.Helper()
	w := f.AddColumns(nil)
	text := w.AppendHeader(nil)
	for _, row := range rows {
		if len(row.Cells) != len(f.Names) || row.isOpen {
			return
		}
		text = w.AppendRow(text, &row, nil)
	}
	if f.header.isOpen {
		return
	}
	want, err := io.ReadAll(f.decodeText(bytes.NewReader(data)))
	if err != nil {
		t.Fatal(err)
	}
	withoutLineEnds := func(text []byte) string { return strings.NewReplacer("\r", "", "\n", "").Replace(string(text)) }
	if withoutLineEnds(text) != withoutLineEnds(want) {
		t.Errorf("%q becomes %q", want, text)
	}
	if encoded, err := f.encodeText(slices.Clone(want)); err != nil || f.wide == nil && !bytes.Equal(encoded, data) {
		t.Errorf("%q is encoded as %q, %v", data, encoded, err)
	}
}

// checkAddedCells checks that cells that are added to a row stand behind its columns, which keep their values.
func checkAddedCells(t *testing.T, f *File, r *Row) {
	t.Helper()
	w := f.AddColumns([]string{"lieudit x", "lieudit y"})
	line := string(w.AppendRow(nil, r, []string{"r;1", "\"2\""}))
	got, err := newRowReader(strings.NewReader(line), f.Separator, 0).Read()
	n := len(f.Names)
	if err != nil || len(got.Cells) != n+2 || got.Cells[n] != "r;1" || got.Cells[n+1] != "\"2\"" {
		t.Fatalf("%q becomes %q, whose cells are %q, %v", r.Text, line, got.Cells, err)
	}
	withoutCR := func(cells []string) string { return strings.ReplaceAll(strings.Join(cells, "|"), "\r", "") } // encoding/csv drops some
	if len(r.Cells) == n && withoutCR(got.Cells[:n]) != withoutCR(r.Cells) {
		t.Errorf("%q becomes %q, whose cells are %q", r.Cells, line, got.Cells)
	}
}
