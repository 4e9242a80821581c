package record_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"lieudit/http/sitefile/record"
)

// randomTable is rows of texts with all signs that formats treat in a special way. It is longer than what the readers read at once.
func randomTable(r *rand.Rand) [][]string {
	signs := []string{"a", "é", "日", "\"", ";", ",", "\n", "\r\n", " ", "\\", "{", "]", "<", "&", "\t", "œuvre", "</v>", "12"}
	rows := make([][]string, 3000)
	for i := range rows {
		rows[i] = []string{fmt.Sprintf("r%d", i), "", "", "x"}
		for j := 1; j < 3; j++ {
			for range r.IntN(30) {
				rows[i][j] += signs[r.IntN(len(signs))]
			}
		}
	}
	rows[1500][1] = strings.Repeat("long \"text\";\n", 5_000)
	return rows
}

// TestTextsComeBackAsTheyWereWritten: whatever cells hold, and wherever the readers' pieces of a file end.
func TestTextsComeBackAsTheyWereWritten(t *testing.T) {
	t.Parallel()
	rows := randomTable(rand.New(rand.NewPCG(1, 2026)))
	for name, write := range map[string]func(testing.TB, [][]string) string{"CSV": writeCSV, "JSON": writeJSON, "NDJSON": writeNDJSON, "XLSX": writeXLSX} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := write(t, rows)
			f, err := record.Open(strings.NewReader(file), int64(len(file)), "", record.Options{})
			if err != nil {
				t.Fatal(err)
			}
			n := 0
			for got, err := range f.Records() {
				if err != nil {
					t.Fatal(err)
				}
				for i, want := range rows[n] {
					if got.Values[i].Text != want {
						t.Fatalf("row %d: got %.200q, want %.200q", n, got.Values[i].Text, want)
					}
				}
				n++
			}
			if n != len(rows) || f.Info().Format != name {
				t.Errorf("%d rows of %s", n, f.Info().Format)
			}
		})
	}
}

func writeCSV(_ testing.TB, rows [][]string) string {
	var out strings.Builder
	out.WriteString("a;b;c;d\n")
	for _, r := range rows {
		for i, cell := range r {
			out.WriteString(`"` + strings.ReplaceAll(cell, `"`, `""`) + `"` + ";;;\n"[i:i+1])
		}
	}
	return out.String()
}

func writeNDJSON(t testing.TB, rows [][]string) string { return writeObjects(t, rows, "", "\n", "\n") }
func writeJSON(t testing.TB, rows [][]string) string {
	return `{"total":3,"results":` + writeObjects(t, rows, "[", ", ", "]") + "}"
}

func writeObjects(t testing.TB, rows [][]string, before, between, behind string) string {
	t.Helper()
	objects := make([]string, len(rows))
	for i, r := range rows {
		object, err := json.Marshal(map[string]any{"a": r[0], "b": r[1], "c": r[2], "d": r[3]})
		if err != nil {
			t.Fatal(err)
		}
		objects[i] = string(object)
	}
	return before + strings.Join(objects, between) + behind
}

func writeXLSX(t testing.TB, rows [][]string) string {
	t.Helper()
	escape := strings.NewReplacer("&", "&amp;", "<", "&lt;")
	sheet := namedSheet{name: "Sites", rows: []string{textCells("a", "b", "c", "d")}}
	for _, r := range rows {
		escaped := make([]string, len(r))
		for i, cell := range r {
			escaped[i] = escape.Replace(cell)
		}
		sheet.rows = append(sheet.rows, textCells(escaped...))
	}
	return writeZip(t, spreadsheetParts(nil, sheet))
}

// tableFiles are files of one table in each format.
func tableFiles(t testing.TB) map[string]string {
	t.Helper()
	rows := make([][]string, 5_000)
	for i := range rows {
		rows[i] = []string{fmt.Sprint("A", i), "Mende", "é", "x"}
	}
	return map[string]string{"CSV": writeCSV(t, rows), "JSON": writeJSON(t, rows), "NDJSON": writeNDJSON(t, rows), "XLSX": writeXLSX(t, rows)}
}

func TestRecordsBeginAnewAfterARunThatStopped(t *testing.T) {
	t.Parallel()
	for name, file := range tableFiles(t) {
		f, err := record.Open(strings.NewReader(file), int64(len(file)), "", record.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for range f.Records() {
			break
		}
		rows, err := showRows(f)
		if err != nil || len(rows) != 5_000 || !strings.HasSuffix(rows[0], " A0|Mende|é|x") {
			t.Errorf("%s: %d rows, %v", name, len(rows), err)
		}
	}
}

var errDisk = errors.New("the disk is gone")

// failingFile is a file of which nothing can be read any more once it has failed.
type failingFile struct {
	*strings.Reader
	hasFailed *bool
}

func (f failingFile) ReadAt(p []byte, at int64) (int, error) {
	if *f.hasFailed {
		return 0, errDisk
	}
	return f.Reader.ReadAt(p, at)
}

func TestErrorsOfTheFileArePassedOn(t *testing.T) {
	t.Parallel()
	for name, content := range tableFiles(t) {
		hasFailed := false
		file := failingFile{strings.NewReader(content), &hasFailed}
		f, err := record.Open(file, int64(len(content)), "", record.Options{})
		if err != nil {
			t.Fatal(err)
		}
		hasFailed = true
		var last error
		for _, last = range f.Records() {
		}
		if !errors.Is(last, errDisk) {
			t.Errorf("%s: got %v", name, last)
		}
		if _, err := record.Open(file, int64(len(content)), "", record.Options{}); !errors.Is(err, errDisk) {
			t.Errorf("%s: got %v from Open", name, err)
		}
	}
}
