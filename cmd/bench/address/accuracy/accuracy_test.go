package accuracy

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"lieudit/cmd/bench/measure"
	"lieudit/queries/address"
	"lieudit/queries/address/addresstest"
	"lieudit/queries/address/ban"
	"lieudit/queries/address/commune"
	"lieudit/queries/address/text"
	"lieudit/queries/address/vintage"
)

// runForTest runs the benchmark and returns its figures.
func runForTest(t *testing.T, dir string, o Options) (figures []measure.Figure) {
	t.Helper()
	err := Run(t.Context(), dir, o, measure.Output{Progress: func(string, int, int) {}, Report: func(f measure.Figure) error {
		figures = append(figures, f)
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	return figures
}

// openHamlet returns the vintage of a few rows and an engine on it.
func openHamlet(t *testing.T) (*vintage.Vintage, *address.Engine) {
	t.Helper()
	v, err := addresstest.BuildVintage(addresstest.Hamlet())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { v.Close() })
	communes, err := commune.Load()
	if err != nil {
		t.Fatal(err)
	}
	return v, address.New(v, communes)
}

func TestAKeptVintageGivesTheSameResults(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	o := Options{Invented: 2000, Seed: 3, Vintage: filepath.Join(dir, "kept"), Absent: 40, Exact: 10, Out: filepath.Join(dir, "out.csv")}
	first := runForTest(t, dir, o)
	answers := readResults(t, o.Out)
	info, err := os.Stat(o.Vintage)
	if err != nil {
		t.Fatal(err)
	}
	o.Peer, o.Out = o.Out, filepath.Join(dir, "again.csv")
	again := runForTest(t, dir, o)
	if later, err := os.Stat(o.Vintage); err != nil || !later.ModTime().Equal(info.ModTime()) {
		t.Errorf("the vintage was built again: %v", err)
	}
	if got := readResults(t, o.Out); !reflect.DeepEqual(got, answers) {
		t.Error("the answers differ")
	}
	asked := 0
	for i, f := range again {
		asked += f.Samples
		if f.Value != first[i].Value || f.Extra["peer first %"] != f.Value {
			t.Errorf("%v: %v, first %v, peer %v", f.Labels, f.Value, first[i].Value, f.Extra)
		}
		if f.Label("kind") == "clean" && (f.Value != 100 || f.Extra[countExact] == 0) {
			t.Errorf("clean addresses are not found: %v", f)
		}
	}
	if asked != len(answers) || asked < 40+10 {
		t.Errorf("%d questions, %d lines", asked, len(answers))
	}
}

// noCandidates is an index that never finds anything.
type noCandidates struct{}

// Find implements address.Source.
func (noCandidates) Find(_ context.Context, queries []address.CandidateQuery) ([]address.CandidateResult, error) {
	return make([]address.CandidateResult, len(queries)), nil
}

func TestEveryIndexIsAskedAndHasNumbersOfItsOwn(t *testing.T) {
	t.Parallel()
	v, engine := openHamlet(t)
	communes, err := commune.Load()
	if err != nil {
		t.Fatal(err)
	}
	var got measure.Figure
	r := run{Output: measure.Output{Progress: func(string, int, int) {}, Report: func(f measure.Figure) error {
		got = f
		return nil
	}}}
	searches := int64(0) // 3 more each time it is read
	counts := func() (int64, int64) {
		searches += 3
		return 1, searches
	}
	dir := t.TempDir()
	out := filepath.Join(dir, "out.csv")
	if err := errors.Join(r.addIndex("", engineAnswers(engine), nil, out), r.addIndex("empty ", engineAnswers(address.NewOn(v, communes, noCandidates{})), counts, out)); err != nil {
		t.Fatal(err)
	}
	groups := storedGroups(engine, []question{{set: "tester", kind: "city", text: "12 bis rue des Lilas Mende", id: "48095_0010_00012_bis"}})
	if err := errors.Join(r.askGroups(t.Context(), groups), r.closeResults()); err != nil {
		t.Fatal(err)
	}
	if got.Value != 100 || got.Extra["top 5 %"] != 100 || got.Extra["empty first %"] != 0 || got.Extra["empty top 5 %"] != 0 ||
		got.Extra["empty searches a question"] != 3 {
		t.Errorf("got %+v", got)
	}
	for _, name := range []string{"empty first %", "empty " + countFalseExact, countFalseExact} {
		if _, ok := got.Extra[name]; !ok {
			t.Errorf("no %q in %v", name, got.Extra)
		}
	}
	for name, found := range map[string]string{"out.csv": "48095_0010_00012_bis", "empty-out.csv": ""} {
		if lines := readResults(t, filepath.Join(dir, name)); len(lines) != 1 || lines[0][4] != found {
			t.Errorf("%s: got %q, want %q found", name, lines, found)
		}
	}
}

// readResults reads a file of results without its times.
func readResults(t *testing.T, name string) [][]string {
	t.Helper()
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	r := csv.NewReader(file)
	r.Comma = ';'
	lines, err := r.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for i := range lines {
		lines[i] = slices.Delete(lines[i], peerMilliseconds, peerMilliseconds+1)
	}
	return lines[1:]
}

func TestAVintageOfOtherContentsIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	o := Options{Invented: 100, Seed: 3, Vintage: filepath.Join(dir, "kept"), Exact: 1}
	runForTest(t, dir, o)
	file := filepath.Join(dir, "rows.csv")
	if err := os.WriteFile(file, []byte("id;numero\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	o.Files = []string{file}
	err := Run(t.Context(), dir, o, measure.Output{Progress: func(string, int, int) {}})
	if err == nil || !strings.Contains(err.Error(), "rows.csv (10 bytes), 100 invented rows of seed 3") {
		t.Errorf("got %v", err)
	}
}

func TestAnInventedStreetWithTheIDOfARealOneIsLeftOut(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	rowsOf := func(end error, ids ...string) iter.Seq2[ban.Row, error] {
		return func(yield func(ban.Row, error) bool) {
			for _, id := range ids {
				if !yield(ban.Row{ID: id}, nil) {
					return
				}
			}
			if end != nil {
				yield(ban.Row{}, end)
			}
		}
	}
	real := []string{"48095_0001_00012", "48095_0002"}
	var got []string
	var last error
	for row, err := range addInvented(rowsOf(nil, real...), rowsOf(broken, "48095_0001_00014", "48095_0002_00003", "48095_0003_00012")) {
		if last = err; err == nil {
			got = append(got, row.ID)
		}
	}
	if want := append(real, "48095_0003_00012"); !slices.Equal(got, want) || !errors.Is(last, broken) {
		t.Errorf("got %q, %v, want %q, %v", got, last, want, broken)
	}
	for _, err := range addInvented(rowsOf(broken), rowsOf(nil, "48095_0003_00012")) {
		if !errors.Is(err, broken) {
			t.Errorf("rows after an error: %v", err)
		}
	}
}

func TestAbsentAddressesAreOfNoCommuneThatMayBeMeant(t *testing.T) {
	t.Parallel()
	v, _ := openHamlet(t)
	groups := drawAbsent(v, 1, 80)
	if again := drawAbsent(v, 1, 80); !slices.EqualFunc(groups, again, haveEqualTexts) {
		t.Error("the same seed drew others")
	}
	if other := drawAbsent(v, 2, 80); slices.EqualFunc(groups, other, haveEqualTexts) {
		t.Error("another seed drew the same")
	}
	for _, g := range groups {
		if len(g.questions) != 20 {
			t.Errorf("%s: %d questions, want 20", g.kind, len(g.questions))
		}
		for _, q := range g.questions {
			line := text.Fold(q.text)
			// Mende and Chanac both have a Rue des Lilas; Mende and Balsièges share 48000 and have a Rue de l'Église.
			for street, towns := range map[string][]string{"lilas": {"mende", "chanac", "48000", "48230"}, "eglise": {"mende", "balsieges", "48000"}} {
				if strings.Contains(line, street) && slices.ContainsFunc(towns, func(town string) bool { return strings.HasSuffix(line, town) }) {
					t.Errorf("%s: %s is not absent", g.kind, q.text)
				}
			}
			if g.kind == "postcode + commune, unaccented" && q.text != line {
				t.Errorf("%s is not plain", q.text)
			}
		}
	}
}

func haveEqualTexts(a, b group) bool {
	return slices.EqualFunc(a.questions, b.questions, func(x, y question) bool { return x.text == y.text })
}

func TestAnAnswerToAnAbsentAddressLiesElsewhereUnlessItsCommuneWasTyped(t *testing.T) {
	t.Parallel()
	v, _ := openHamlet(t)
	mende, ok := v.CommuneOf("48095")
	if !ok {
		t.Fatal("no Mende")
	}
	judge := (&absentDrawer{v: v}).newJudge("Mende", []uint32{mende})
	if got := judge(nil); !got.first || len(got.counted) > 0 {
		t.Errorf("no answer: %+v", got)
	}
	for name, c := range map[string]struct {
		record address.Record
		want   []string
	}{
		"typed":             {address.Record{CityCode: "48095", City: "Mende"}, []string{countAnswered, countFalseResolved}},
		"of the typed name": {address.Record{CityCode: "99999", City: "MENDE"}, []string{countAnswered, countFalseResolved}},
		"another":           {address.Record{CityCode: "48039", City: "Chanac"}, []string{countAnswered, countElsewhere, countFalseResolved}},
	} {
		got := judge([]address.Match{{Record: c.record, Score: 0.9, IsResolved: true}})
		if got.first || !slices.Equal(got.counted, c.want) {
			t.Errorf("%s: got %+v, want %q", name, got, c.want)
		}
	}
}

func TestNamesThatDifferByTypeOrLinksHaveACommonKey(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"Chemin de l'Église", "Rue Église", true},
		{"Venelle du Four", "Rue du Four", true},
		{"Le Moulin", "Rue du Moulin", true},
		{"Rue du Four", "Rue du Moulin", false},
		{"Rue du Four Neuf", "Rue du Four", false},
		{"Rue", "Chemin", false},
	} {
		common := slices.ContainsFunc(nameKeys(c.a), func(key string) bool { return slices.Contains(nameKeys(c.b), key) })
		if common != c.want {
			t.Errorf("%s, %s: %q, %q", c.a, c.b, nameKeys(c.a), nameKeys(c.b))
		}
	}
}

func TestRowsAreDrawnAsTheyAre(t *testing.T) {
	t.Parallel()
	v, engine := openHamlet(t)
	known := addresstest.Hamlet()
	rows := drawRows(v, engine, 1, 50)
	if len(rows) != 50 {
		t.Fatalf("%d rows, want 50", len(rows))
	}
	for _, got := range rows {
		i := slices.IndexFunc(known, func(r ban.Row) bool { return r.ID == got.ID })
		if i < 0 {
			t.Fatalf("%s is not a row", got.ID)
		}
		want := known[i]
		got.IDBan, got.Acheminement, got.TypePosition = "", want.Acheminement, want.TypePosition
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
}

// TestAnotherGeocoderIsAskedTheSameQuestions checks that another geocoder's answers are judged like the engine's, and reported next to them.
func TestAnotherGeocoderIsAskedTheSameQuestions(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := "48095_0010_00012" // the answer to every question
		fmt.Fprintf(w, `{"features":[{"properties":{"id":%q,"type":"housenumber","label":"12 Rue X"}}]}`, id)
	}))
	defer server.Close()
	dir := t.TempDir()
	questions := filepath.Join(dir, "questions.csv")
	lines := questionColumns + "\na;number;12 rue x;;;48095_0010_00012;\na;number;14 rue x;;;48095_0010_00014;\na;none;1 rue y;;;;\n"
	if err := os.WriteFile(questions, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	var figures []measure.Figure
	err := Run(t.Context(), dir, Options{Invented: 100, Seed: 3, Questions: []string{questions}, PeerURL: server.URL, Out: filepath.Join(dir, "out.csv")},
		measure.Output{Progress: func(string, int, int) {}, Report: func(f measure.Figure) error {
			figures = append(figures, f)
			return nil
		}})
	if err != nil || len(figures) < 2 {
		t.Fatalf("%v, %v", figures, err)
	}
	numbers, none := figures[0].Extra, figures[1].Extra
	if numbers["addok first %"] != 50 || numbers["addok other number"] != 1 || none["addok first %"] != 0 {
		t.Errorf("%v, %v", numbers, none)
	}
	if written, err := os.ReadFile(filepath.Join(dir, "addok-out.csv")); err != nil || strings.Count(string(written), "12 Rue X") != 3 {
		t.Errorf("%s, %v", written, err)
	}
}
