package record_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lieudit/http/sitefile/record"
)

// readText reads a file that is given as its text. rows are the texts of the values, with the line before them: "2 a|b".
func readText(t testing.TB, file, name string, o record.Options) (f *record.File, rows []string, err error) {
	t.Helper()
	f, err = record.Open(strings.NewReader(file), int64(len(file)), name, o)
	if err != nil {
		return nil, nil, err
	}
	rows, err = showRows(f)
	again, errAgain := showRows(f)
	if diff := cmp.Diff(rows, again); diff != "" || fmt.Sprint(err) != fmt.Sprint(errAgain) {
		t.Errorf("the second run gives something else: %s %v %v", diff, err, errAgain)
	}
	return f, rows, err
}

// showRows shows each value as its text, or as its JSON in brackets where it has no text.
func showRows(f *record.File) (rows []string, err error) {
	for r, err := range f.Records() {
		if err != nil {
			return rows, err
		}
		shown := make([]string, len(r.Values))
		for i, v := range r.Values {
			shown[i] = v.Text
			if v.JSON != nil && v.Text == "" {
				shown[i] = string(v.JSON)
			}
		}
		rows = append(rows, fmt.Sprintf("%d %s", r.Line, strings.Join(shown, "|")))
	}
	return rows, nil
}

// showColumns shows the names of columns; id: and geometry: stand before those of features.
func showColumns(f *record.File) string {
	prefixes := map[record.ColumnKind]string{record.FeatureID: "id:", record.Geometry: "geometry:"}
	var names []string
	for _, c := range f.Columns() {
		names = append(names, prefixes[c.Kind]+c.Name)
	}
	return strings.Join(names, "|")
}

// fileCase is a file, and what is read from it: its columns, rows, and the error at its end.
type fileCase struct {
	rule, file, name string
	options          record.Options
	columns          string
	rows             []string
	err              string
}

func runFileCases(t *testing.T, cases []fileCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			f, rows, err := readText(t, c.file, c.name, c.options)
			if diff := cmp.Diff(c.rows, rows); diff != "" {
				t.Errorf("rows (-want +got):\n%s", diff)
			}
			switch {
			case err == nil && c.err != "", err != nil && c.err == "", err != nil && !strings.Contains(err.Error(), c.err):
				t.Errorf("got error %v, want %q", err, c.err)
			}
			if err != nil && !isOwnError(err) {
				t.Errorf("the error is a %T", err)
			}
			if f != nil && c.columns != "" && showColumns(f) != c.columns {
				t.Errorf("got columns %s, want %s", showColumns(f), c.columns)
			}
		})
	}
}

// isOwnError reports whether an error is one that the package promises.
func isOwnError(err error) bool {
	var line *record.LineError
	var format *record.FormatError
	var titles *record.TitleRowsError
	return errors.As(err, &line) || errors.As(err, &format) || errors.As(err, &titles)
}

func TestASheetOfATextIsRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"nom;lat\nmairie;44.5\n", `[{"nom":"mairie"}]`} {
		var refused *record.FormatError
		if _, err := record.Open(strings.NewReader(text), int64(len(text)), "places", record.Options{Sheet: "Feuil1"}); !errors.As(err, &refused) {
			t.Errorf("%q: %v, want a *FormatError", text, err)
		}
	}
}
