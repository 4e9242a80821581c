package accuracy

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"lieudit/cmd/bench/measure"
	"lieudit/queries/address"
	"lieudit/schemas/geo"
)

func TestQuestionsAreReadAndGroupedInTheOrderOfTheFile(t *testing.T) {
	t.Parallel()
	got, err := readQuestions(strings.NewReader(questionColumns + `
tester;city;" 10 Rue ""X"" 48000";44.5;3.5;48095_0001_00010;10 Rue X
absent;commune;5 Rue Y;;;;
tester;city;11 Rue X;;;48095_0001_00011;11 Rue X
completion;both cut;10 ru;0;0;48095_0001_00010;10 Rue X
`))
	if err != nil {
		t.Fatal(err)
	}
	want := []group{
		{set: "tester", kind: "city", questions: []question{
			{set: "tester", kind: "city", text: ` 10 Rue "X" 48000`, bias: &geo.Point{Lon: 3.5, Lat: 44.5}, id: "48095_0001_00010", label: "10 Rue X"},
			{set: "tester", kind: "city", text: "11 Rue X", id: "48095_0001_00011", label: "11 Rue X"},
		}},
		{set: "absent", kind: "commune", questions: []question{{set: "absent", kind: "commune", text: "5 Rue Y"}}},
		{set: "completion", kind: "both cut", questions: []question{
			{set: "completion", kind: "both cut", text: "10 ru", bias: &geo.Point{}, completes: true, id: "48095_0001_00010", label: "10 Rue X"},
		}},
	}
	if groups := groupQuestions(got); !reflect.DeepEqual(groups, want) {
		t.Errorf("got %+v, want %+v", groups, want)
	}
}

func TestAFileOfOtherColumnsOrPositionsIsRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ file, want string }{
		"empty":              {"", "EOF"},
		"other columns":      {"set;q;kind;lat;lon;id;label\n", "columns"},
		"a missing column":   {questionColumns + "\ntester;city;10 Rue X;;;48095_0001_00010\n", "line 2"},
		"a position of text": {questionColumns + "\na;b;c;;;;\ntester;city;10 Rue X;north;3.5;;\n", "line 3"},
		"half a position":    {questionColumns + "\ntester;city;10 Rue X;44.5;;;\n", "line 2"},
	} {
		if _, err := readQuestions(strings.NewReader(c.file)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestResultsThatAreWrittenAreReadAsAPeers(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "results.csv")
	w, err := newResultWriter(name)
	if err != nil {
		t.Fatal(err)
	}
	q := question{set: "tester", kind: "city", text: `10; "Rue X"`, id: "48095_0001_00010"}
	best := address.Match{Record: address.Record{ID: "48095_0001_00012", Label: "12 Rue X"}, Score: 0.81234, Verdict: address.Probable}
	for i, took := range []time.Duration{3 * time.Millisecond, time.Millisecond, 2 * time.Millisecond} {
		if err := w.write(q, []address.Match{best}[:i%2], i == 0, took); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.close(); err != nil {
		t.Fatal(err)
	}
	want := `set;kind;q;expected id;found id;label;score;right;milliseconds;verdict
tester;city;"10; ""Rue X""";48095_0001_00010;;;;1;3.000;
tester;city;"10; ""Rue X""";48095_0001_00010;48095_0001_00012;12 Rue X;0.8123;0;1.000;match_probable
tester;city;"10; ""Rue X""";48095_0001_00010;;;;0;2.000;
`
	if got, err := os.ReadFile(name); err != nil || string(got) != want {
		t.Errorf("got %s (%v), want %s", got, err, want)
	}
	p, err := readPeerFile(name)
	if err != nil {
		t.Fatal(err)
	}
	f := measure.Figure{Samples: 2, Extra: map[string]float64{}}
	p.addTo(f, group{set: "tester", kind: "city"})
	p.addTo(f, group{set: "tester", kind: "postcode"})
	if want := map[string]float64{"peer first %": 33.3, "peer p50 ms": 2, "peer asked": 3}; !reflect.DeepEqual(f.Extra, want) {
		t.Errorf("got %v, want %v", f.Extra, want)
	}
}

func TestAPeersFileMayHaveNoHeadLine(t *testing.T) {
	t.Parallel()
	p, err := readPeer(strings.NewReader("a;b;q;id;id;label;0.9;1;4.5\na;b;q;id;;;;0;0.5\n"))
	if err != nil || len(p) != 1 || p[[2]string{"a", "b"}].asked != 2 || p[[2]string{"a", "b"}].right != 1 {
		t.Errorf("%v, %v", p, err)
	}
	for name, file := range map[string]string{
		"too few columns": "a;b;q;id;id;label;0.9;1\n", "no time": "a;b;q;id;id;label;0.9;1;\n", "neither right nor wrong": "a;b;q;id;id;label;0.9;yes;1\n",
	} {
		if _, err := readPeer(strings.NewReader(file)); err == nil || !strings.Contains(err.Error(), "line 1") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
