package csvgeocode

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"

	"lieudit/http/csvfile"
	"lieudit/queries/address"
	"lieudit/queries/address/ban"
	"lieudit/queries/address/commune"
	"lieudit/queries/address/vintage"
)

const addressCSV = "id;numero;rep;nom_voie;code_postal;code_insee;nom_commune;lon;lat\n" +
	"48095_a_00003;3;;Rue de l’Ermitage;48000;48095;Mende;3.4979;44.514163\n" +
	"48095_b_00012;12;bis;Avenue Foch;48000;48095;Mende;3.495;44.518\n" +
	"93010_c_00001;1;;Rue Carnot;93140;93010;Bondy;2.48;48.9\n" +
	"01004_d_00001;1;;Rue Carnot;01500;01004;Ambérieu-en-Bugey;5.35;45.96\n"

// newTestEngine builds an engine on a vintage of four addresses.
var newTestEngine = sync.OnceValues(func() (*address.Engine, error) {
	dir, err := os.MkdirTemp("", "lieudit-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir) // the mapping outlives the name
	path := filepath.Join(dir, "vintage")
	rows := ban.Read(strings.NewReader(addressCSV), "base", &ban.Report{})
	if _, err := vintage.Build(context.Background(), path, rows, vintage.Options{Millesime: "2026-01-01"}); err != nil {
		return nil, err
	}
	communes, err := commune.Load()
	if err != nil {
		return nil, err
	}
	v, err := vintage.Open(path)
	if err != nil {
		return nil, err
	}
	return address.New(v, communes), nil
})

// newTestJob returns a job for a file with the text.
func newTestJob(t *testing.T, text string) Job {
	t.Helper()
	engine, err := newTestEngine()
	if err != nil {
		t.Fatal(err)
	}
	in := filepath.Join(t.TempDir(), "in.csv")
	if err := os.WriteFile(in, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return Job{In: in, Out: in + ".out", Engine: engine, Vintage: "v1"}
}

// runJob runs a job and returns the file it wrote.
func runJob(t *testing.T, j Job) (string, Counts) {
	t.Helper()
	counts, err := j.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return readFile(t, j.Out), counts
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestRowsStayAsTheyAreAndGetTheirResults(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text    string
		columns []string
		want    []string // parts of the result
	}{
		"commas": {text: "adresse,ville\n\"3, rue de l'Ermitage\",Mende\n",
			want: []string{"adresse,ville,result_latitude", "\"3, rue de l'Ermitage\",Mende,44.514163,3.4979,", "true,ok"}},
		"semicolons, CRLF and a byte order mark": {text: "\ufeffadresse;ville\r\n1 rue Carnot;Bondy\r\n",
			want: []string{"\ufeffadresse;ville;result_latitude", "1 rue Carnot;Bondy;48.9;2.48;", "true;ok\r\n"}},
		"a line that names the separator": {text: "sep=;\r\nadresse, ou lieu;ville\r\n1 rue Carnot;Bondy\r\n", columns: []string{"adresse, ou lieu", "ville"},
			want: []string{"sep=;\r\nadresse, ou lieu;ville;result_latitude", "1 rue Carnot;Bondy;48.9;2.48;"}},
		"lines that end with CR": {text: "adresse;ville\r1 rue Carnot;Bondy\r", want: []string{"adresse;ville;result_latitude", "result_status\r1 rue Carnot;Bondy;48.9;2.48;", ";ok\r"}},
		"one column with commas": {text: "adresse\n1 rue Carnot, Bondy\n", want: []string{"adresse;result_latitude", "1 rue Carnot, Bondy;48.9;2.48;"}},
		"a line break within quotes": {text: "adresse;ville\n\"12 b\navenue Foch\";Mende\n",
			want: []string{"\"12 b\navenue Foch\";Mende;44.518;3.495;12bis Avenue Foch 48000 Mende;", "true;ok"}},
		"too few fields":                       {text: "adresse;b;c\n1 rue Carnot Bondy\n", want: []string{"1 rue Carnot Bondy;;;48.9;"}},
		"too many fields":                      {text: "a;b\n1 rue Carnot Bondy;Bondy;x;\"y;z\"\n", columns: []string{"a"}, want: []string{"1 rue Carnot Bondy;\"Bondy;x;y;z\";48.9;"}},
		"an address that a separator cuts":     {text: "a;b\nx;1 rue Carnot;Bondy\n", columns: []string{"b"}, want: []string{"x;\"1 rue Carnot;Bondy\";48.9;"}},
		"loose quotes":                         {text: "adresse;ville\n1 \"rue\" Carnot;Bondy\n", want: []string{"1 \"rue\" Carnot;Bondy;48.9;"}},
		"no end of the last line":              {text: "adresse\n1 rue Carnot Bondy", want: []string{"1 rue Carnot Bondy,48.9,"}},
		"a quote that the file does not close": {text: "b;adresse\nx;\"1 rue Carnot Bondy", columns: []string{"adresse"}, want: []string{"x;1 rue Carnot Bondy;48.9;"}},
		"nothing to look for":                  {text: "a;b\n;\n", columns: []string{"a"}, want: []string{";;;;", ";skipped\n"}},
		"nothing found":                        {text: "adresse\n7 boulevard zxwvtq quxybf\n", want: []string{"7 boulevard zxwvtq quxybf,", ",not-found\n"}},
		"not text":                             {text: "adresse;b\nM\xe9nilmontant;é é é é é é é é é é\n", want: []string{"M\xe9nilmontant;", ";error\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newTestJob(t, c.text)
			j.Columns = c.columns
			got, counts := runJob(t, j)
			for _, want := range c.want {
				if !strings.Contains(got, want) {
					t.Errorf("%q is not in %q", want, got)
				}
			}
			if counts.Rows != 1 {
				t.Errorf("%d rows were counted, want 1", counts.Rows)
			}
		})
	}
}

func TestOnlyNamedColumnsAndFiltersAreUsed(t *testing.T) {
	t.Parallel()
	text := "nom;rue;cp;code\nBondy;1 rue Carnot;93140;93010\nx;1 rue Carnot;48000;48095\n"
	j := newTestJob(t, text)
	j.Columns, j.CityCode = []string{"rue", "cp"}, "code"
	got, counts := runJob(t, j)
	if lines := strings.Split(got, "\n"); !strings.Contains(lines[1], ";93010_c_00001;") || strings.Contains(lines[2], "93010_c_00001") {
		t.Errorf("got %q", got)
	}
	if counts.Exact != 1 {
		t.Errorf("%d exact, want 1", counts.Exact)
	}
	var column *ColumnError
	other := newTestJob(t, text)
	other.Columns = []string{"ville"}
	if _, err := other.Run(t.Context()); !errors.As(err, &column) || !strings.Contains(err.Error(), "nom, rue, cp, code") {
		t.Errorf("an unknown column: %v", err)
	}
}

func TestTheCommuneAnswersWhereTheJobSaysSo(t *testing.T) {
	t.Parallel()
	text := "adresse\n7 boulevard zxwvtq 48000 Mende\n7 boulevard zxwvtq 31000 Toulouse\n7 boulevard zxwvtq\n3 rue de l'Ermitage Mende\n"
	got, counts := runJob(t, newTestJob(t, text))
	if want := (Counts{Rows: 4, Exact: 1, NotFound: 3}); counts != want {
		t.Errorf("without: %+v, want %+v:\n%s", counts, want, got)
	}
	j := newTestJob(t, text)
	j.Fallback = true
	got, counts = runJob(t, j)
	if want := (Counts{Rows: 4, Exact: 1, CommuneOnly: 2, NotFound: 1}); counts != want || !strings.Contains(got, ",municipality,31555,") || !strings.Contains(got, ",commune_seule,false,hors_couverture,false,ok") {
		t.Errorf("with: %+v, want %+v:\n%s", counts, want, got)
	}
}

// For a row that is found the columns say whether it is resolved; for one that is not, why, if the job asks for it.
func TestRowsSayWhetherTheyResolveAndWhyNot(t *testing.T) {
	t.Parallel()
	text := "adresse\n3 rue de l'Ermitage 48000 Mende\n9 rue de l'Ermitage 48000 Mende\n7 boulevard zxwvtq 48000 Mende\n7 boulevard zxwvtq 31000 Toulouse\n?!\n"
	for explains, want := range map[bool][]string{
		false: {",match_exact,true,,true,ok", ",match_probable,false,numero_absent,false,ok", ",,,,,not-found", ",,,,,not-found", ",,,,,not-found"},
		true:  {",match_exact,true,,true,ok", ",match_probable,false,numero_absent,false,ok", ",,,voie_absente,,not-found", ",,,hors_couverture,,not-found", ",,,mots_inconnus,,not-found"},
	} {
		j := newTestJob(t, text)
		j.Explain = explains
		got, _ := runJob(t, j)
		lines := strings.Split(strings.TrimSpace(got), "\n")[1:]
		for i, end := range want {
			if i >= len(lines) || !strings.HasSuffix(lines[i], end) {
				t.Errorf("explained %v, row %d: %q, want it to end in %q", explains, i, lines[min(i, len(lines)-1)], end)
			}
		}
	}
}

func TestAFileThatIsNoCSVIsRefusedWithItsKind(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "empty", "\n \n": "empty", "\x1f\x8bxx": "gzip", "PK\x03\x04": "lieudit sites import", "a\x00b\n": "binary",
		`{"type": "FeatureCollection", "features": []}`: "GeoJSON", "<html>": "web page", "nom;ville\n": "nothing below",
		"Liste des clients\n\nnom;adresse;ville\nA;1 rue Carnot;Bondy\n": "line 3",
	} {
		j := newTestJob(t, text)
		if _, err := j.Run(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	j := newTestJob(t, "adresse;ville\n1 rue Carnot;Bondy\n\"no end;"+strings.Repeat("x\n", inspectedBytes))
	_, err := j.Run(t.Context())
	if _, isRow := errors.AsType[*csvfile.RowError](err); !isRow || !strings.Contains(err.Error(), "no end;x") {
		t.Errorf("a quote that is not closed: %v, want one that names the row", err)
	}
}

// manyRows is a file of n rows of different lengths.
func manyRows(n int) string {
	var b bytes.Buffer
	b.WriteString("n;adresse\n")
	for i := range n {
		b.WriteString(strings.Repeat("x", i%50) + ";" + strings.Repeat(" ", i%3) + "3 rue de l'ermitage mende\n")
	}
	return b.String()
}

func TestInterruptedRunsResumeAndWriteTheSameResult(t *testing.T) {
	t.Parallel()
	text := manyRows(8 * batchRows)
	utf16 := unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM)
	for name, text := range map[string]string{
		"UTF-8": text, "UTF-16": encode(t, utf16, "\ufeff"+text), "Windows-1252": encode(t, charmap.Windows1252, "é"+text),
		"lines that end with CR": strings.ReplaceAll(text, "\n", "\r"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			interruptRuns(t, text)
		})
	}
}

// interruptRuns runs a job on a text to its end, once in one piece and once in several.
func interruptRuns(t *testing.T, text string) {
	t.Helper()
	want, _ := runJob(t, newTestJob(t, text))
	j := newTestJob(t, text)
	runs := 0
	for ; ; runs++ {
		ctx, cancel := context.WithCancel(t.Context())
		calls := 0
		j.Progress = func(Counts, int64) {
			if calls++; calls == 3 {
				cancel()
			}
		}
		counts, err := j.Run(ctx)
		cancel()
		if err == nil {
			if counts.Rows != 8*batchRows {
				t.Errorf("%d rows were counted, want %d", counts.Rows, 8*batchRows)
			}
			break
		}
		appendGarbage(t, j.Out+".part") // what a kill leaves behind the last saved progress
	}
	if got := readFile(t, j.Out); got != want {
		t.Errorf("the result differs from that of one run: %d bytes, want %d", len(got), len(want))
	}
	if runs < 2 {
		t.Errorf("it was interrupted %d times only", runs)
	}
	for _, left := range []string{".part", ".resume", ".resume.new"} {
		if _, err := os.Stat(j.Out + left); err == nil {
			t.Errorf("%s is left behind", left)
		}
	}
}

func appendGarbage(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path, append([]byte(readFile(t, path)), "half a li"...), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestAnUnfinishedRunOfAnotherInputIsNotResumed(t *testing.T) {
	t.Parallel()
	j := newTestJob(t, manyRows(10))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := j.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	j.Vintage = "v2"
	if _, err := j.Run(t.Context()); !errors.Is(err, ErrRunMismatch) {
		t.Errorf("got %v, want ErrRunMismatch", err)
	}
	j.Restart = true
	if _, counts := runJob(t, j); counts.Rows != 10 {
		t.Errorf("%d rows, want 10", counts.Rows)
	}
	if _, err := j.Run(t.Context()); !errors.Is(err, ErrResultExists) {
		t.Errorf("got %v, want ErrResultExists", err)
	}
}

func TestADamagedUnfinishedRunIsSaidAndRestartDropsIt(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(j Job) error{
		"progress that is no JSON": func(j Job) error { return os.WriteFile(j.Out+".resume", []byte("{\"de\""), 0o600) },
		"rows that are gone":       func(j Job) error { return os.Truncate(j.Out+".part", 3) },
	} {
		j := newTestJob(t, manyRows(10))
		want, _ := runJob(t, j)
		j.Out += "2"
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := j.Run(ctx); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if err := damage(j); err != nil {
			t.Fatal(err)
		}
		if _, err := j.Run(t.Context()); !errors.Is(err, ErrRunDamaged) {
			t.Errorf("%s: %v, want ErrRunDamaged", name, err)
		}
		j.Restart = true
		if got, _ := runJob(t, j); got != want {
			t.Errorf("%s: the result after --restart differs: %q", name, got)
		}
	}
}

func TestAFinishedResultIsNotTakenForAnUnfinishedOne(t *testing.T) {
	t.Parallel()
	j := newTestJob(t, manyRows(10))
	h, err := j.readHeader()
	if err != nil {
		t.Fatal(err)
	}
	want, _ := runJob(t, j) // as if it finished after another run had found Out free
	if p, err := j.openPartialResult(h); !errors.Is(err, ErrResultExists) {
		t.Errorf("%v, %v, want ErrResultExists", p, err)
	}
	if got := readFile(t, j.Out); got != want {
		t.Errorf("the result was changed: %q", got)
	}
}

func TestAFileOfMoreThan10000ColumnsIsRefused(t *testing.T) {
	t.Parallel()
	for _, columns := range [][]string{nil, {"adresse"}} {
		j := newTestJob(t, "adresse"+strings.Repeat(",", 300_000)+"\n3 rue de l'ermitage mende\n")
		j.Columns = columns
		_, err := j.Run(t.Context())
		if bad := new(csvfile.FormatError); !errors.As(err, &bad) || !strings.Contains(bad.Reason, "delete the empty") {
			t.Errorf("columns %q: %v", columns, err)
		}
	}
}

func TestABatchOfWideRowsIsSmall(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]string{"text": strings.Repeat("x", 100<<10), "fields": strings.Repeat(",", 20<<10)} {
		toVerify, toWrite := make(chan *batch, 1000), make(chan *batch, 1000)
		text := strings.Repeat(row+"\n", 501)
		file, err := csvfile.Open(strings.NewReader(text), int64(len(text)), csvfile.Options{Separator: ','})
		if err != nil {
			t.Fatal(err)
		}
		rows, err := file.Rows(file.FirstRow)
		if err != nil {
			t.Fatal(err)
		}
		if err := readBatches(t.Context(), rows, toVerify, toWrite); err != nil {
			t.Fatal(err)
		}
		close(toVerify)
		total := 0
		for b := range toVerify {
			if total += len(b.rows); len(b.rows) > 10 {
				t.Errorf("%s: a batch has %d rows", name, len(b.rows))
			}
		}
		if total != 500 {
			t.Errorf("%s: %d rows of 500", name, total)
		}
	}
}
