package address

import (
	"encoding/csv"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lieudit/queries/address/addresstest"
	"lieudit/queries/address/ban"
	"lieudit/queries/address/officialtest"
)

// openReports are the reported questions that are still answered wrongly. One that is answered rightly must leave the list.
var openReports = map[string]bool{}

// reportedCase is a line of cases.tsv: what somebody asked of a geocoder in a public bug report, and what is meant.
type reportedCase struct{ kind, endpoint, question, label, rule string }

// TestWhatBugReportsAskForIsFound asks the questions of public bug reports.
func TestWhatBugReportsAskForIsFound(t *testing.T) {
	t.Parallel()
	e := newReportEngine(t)
	for _, c := range readReports(t) {
		name := c.kind + " " + c.endpoint + " " + c.question
		got, isRight := askReport(t, e, c)
		switch {
		case isRight && openReports[c.endpoint+" "+c.question]:
			t.Errorf("%s is answered with %s, as it should be: it is not open any more", name, got)
		case !isRight && !openReports[c.endpoint+" "+c.question]:
			t.Errorf("%s is answered with %s, want %q", name, got, c.label)
		}
	}
}

// askReport asks one question. It answers what came first, and whether that is what the report asks for.
func askReport(t *testing.T, e *Engine, c reportedCase) (got string, isRight bool) {
	t.Helper()
	q := Query{Text: c.question, Limit: 5}
	if c.endpoint == "p" {
		var parts struct{ Numero, Voie, Commune, Code_postal string }
		if err := json.Unmarshal([]byte(c.question), &parts); err != nil {
			t.Fatal(err)
		}
		q = Query{Number: parts.Numero, Street: parts.Voie, Commune: parts.Commune, Postcode: parts.Code_postal, Limit: 5}
	}
	if c.endpoint == "a" {
		found, err := e.Complete(t.Context(), q)
		if err != nil || len(found) == 0 {
			return "nothing", c.label == ""
		}
		return found[0].Label, strings.HasPrefix(found[0].Label, c.label)
	}
	found, err := e.Verify(t.Context(), q)
	if err != nil || len(found) == 0 {
		return "nothing", c.label == ""
	}
	isSame := found[0].Label == c.label || c.rule == "f" && strings.HasPrefix(found[0].Label, c.label)
	return found[0].Label, c.label != "" && isSame && (c.rule != "r" || found[0].IsResolved)
}

// newReportEngine makes an engine of the rows that the questions need, among those of Lozère and Bondy.
func newReportEngine(t *testing.T) *Engine {
	t.Helper()
	rows := slices.Clone(addresstest.Lozere(t).Rows)
	name := filepath.Join(officialtest.Folder(), "reports", "rows.csv")
	file, err := os.Open(name)
	if err != nil {
		officialtest.SkipOrFail(t, err)
	}
	defer file.Close()
	known := map[string]bool{}
	for _, r := range rows {
		known[r.ID] = true
	}
	for row, err := range ban.Read(file, name, &ban.Report{}) {
		if err != nil {
			t.Fatal(err)
		}
		if !known[row.ID] {
			rows = append(rows, row)
		}
	}
	return engineOf(t, rows)
}

func readReports(t *testing.T) (all []reportedCase) {
	t.Helper()
	file, err := os.Open(filepath.Join(officialtest.Folder(), "reports", "cases.tsv"))
	if err != nil {
		officialtest.SkipOrFail(t, err)
	}
	defer file.Close()
	r := csv.NewReader(file)
	r.Comma, r.Comment, r.LazyQuotes, r.FieldsPerRecord = '\t', '#', true, -1
	lines, err := r.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range lines {
		all = append(all, reportedCase{l[0], l[1], l[2], l[3], strings.Join(l[4:], "")})
	}
	if len(all) == 0 {
		t.Fatalf("no questions; open: %v", slices.Collect(maps.Keys(openReports)))
	}
	return all
}
