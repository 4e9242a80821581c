package vintage

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/csv"
	"iter"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"lieudit/queries/address/ban"
	"lieudit/queries/address/officialtest"
)

// readOfficialRows reads official rows with another parser than package ban; without the files the test is skipped.
func readOfficialRows(t testing.TB, name string) []ban.Row {
	t.Helper()
	plain, err := gzip.NewReader(officialtest.Open(t, "ban/"+name))
	if err != nil {
		t.Fatal(err)
	}
	r := csv.NewReader(plain)
	r.Comma, r.LazyQuotes = ';', true
	lines, err := r.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	rows := make([]ban.Row, 0, len(lines))
	for _, f := range lines[1:] {
		rows = append(rows, rowOf(f))
	}
	return rows
}

func rowOf(f []string) ban.Row {
	number, _ := strconv.Atoi(f[2])
	float := func(s string) float64 { v, _ := strconv.ParseFloat(s, 64); return v }
	row := ban.Row{ID: f[0], Numero: uint32(number), Rep: f[3], Voie: f[4], CodePostal: f[5], CodeInsee: f[6], Commune: f[7],
		CodeInseeAncienne: f[8], CommuneAncienne: f[9], X: float(f[10]), Y: float(f[11]), Lon: float(f[12]), Lat: float(f[13]),
		TypePosition: f[14], LieuDit: f[16], Acheminement: f[17], NomAFNOR: f[18], Certifie: f[21] == "1"}
	if f[22] != "" {
		row.Parcelles = strings.Split(f[22], "|")
	}
	return row
}

func yieldRows(rows []ban.Row) iter.Seq2[ban.Row, error] {
	return func(yield func(ban.Row, error) bool) {
		for _, r := range rows {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// buildVintage builds and opens a vintage of rows.
func buildVintage(t testing.TB, rows []ban.Row, o Options) *Vintage {
	t.Helper()
	path := filepath.Join(t.TempDir(), "vintage")
	if _, err := Build(context.Background(), path, yieldRows(rows), o); err != nil {
		t.Fatal(err)
	}
	v, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { v.Close() })
	return v
}

func TestEveryRowIsFoundByItsIDAndItsUUIDAsItWas(t *testing.T) {
	t.Parallel()
	rows := readOfficialRows(t, "adresses-48.csv.gz")
	v := buildVintage(t, rows, Options{Millesime: "2024-10-01"})
	if v.Addresses != len(rows) {
		t.Fatalf("%d addresses, want %d", v.Addresses, len(rows))
	}
	for i := range rows {
		e, ok := v.ByID(rows[i].ID)
		if !ok {
			t.Fatalf("%s is not found", rows[i].ID)
		}
		checkRow(t, v, e, &rows[i])
		if at, ok := v.ByUUID(v.UUID(e)); !ok || at != e {
			t.Fatalf("%s is not found by its UUID", rows[i].ID)
		}
	}
	if err := v.Verify(context.Background()); err != nil {
		t.Error(err)
	}
}

func checkRow(t *testing.T, v *Vintage, e Entity, want *ban.Row) {
	t.Helper()
	row, _ := v.Row(e)
	street := v.StreetOf(row)
	s := v.Street(street)
	f, p := v.RowFacet(row, s), v.RowPoint(row)
	position, certified := v.RowKind(row)
	got := ban.Row{ID: v.ID(e), Numero: v.Number(row), Rep: string(v.Rep(row)), Voie: string(v.Name(s.Name)),
		LieuDit: string(v.Name(f.LieuDit)), Acheminement: string(v.Name(f.Delivery)), TypePosition: string(v.Name(position)),
		CodeInsee: v.Commune(s.Commune).String(), Commune: string(v.Name(v.Commune(s.Commune).Name)), Certifie: certified,
		CodePostal: want.CodePostal, NomAFNOR: want.NomAFNOR, Parcelles: v.Parcels(row, street),
		Lon: float64(p.Lon) / 1e6, Lat: float64(p.Lat) / 1e6, X: float64(p.X) / 100, Y: float64(p.Y) / 100}
	if f.Old != None {
		got.CommuneAncienne, got.CodeInseeAncienne = string(v.Name(v.Place(f.Old).Name)), v.Place(f.Old).String()
	}
	if parsePostcode(want.CodePostal) != f.Postcode || compareRows(got, *want) != 0 {
		t.Fatalf("got  %+v\nwant %+v", got, *want)
	}
}

func TestTheSameRowsInAnyOrderMakeTheSameBytes(t *testing.T) {
	t.Parallel()
	rows := readOfficialRows(t, "adresses-93010-bondy.csv.gz")
	files := make([][]byte, 2)
	for i := range files {
		path := filepath.Join(t.TempDir(), "vintage")
		if _, err := Build(context.Background(), path, yieldRows(rows), Options{}); err != nil {
			t.Fatal(err)
		}
		files[i], _ = os.ReadFile(path)
		for a, b := 0, len(rows)-1; a < b; a, b = a+1, b-1 {
			rows[a], rows[b] = rows[b], rows[a]
		}
	}
	if len(files[0]) == 0 || !bytes.Equal(files[0], files[1]) {
		t.Error("the bytes differ")
	}
}

// BenchmarkBuild builds a vintage of the file LIEUDIT_TEST_ROWS, plain CSV in the official format, or of Bondy's.
func BenchmarkBuild(b *testing.B) {
	path := os.Getenv("LIEUDIT_TEST_ROWS")
	for b.Loop() {
		from := yieldRows(readOfficialRows(b, "adresses-93010-bondy.csv.gz"))
		if path != "" {
			file, err := os.Open(path)
			if err != nil {
				b.Fatal(err)
			}
			defer file.Close()
			from = ban.Read(file, path, &ban.Report{})
		}
		s, err := Build(context.Background(), filepath.Join(b.TempDir(), "vintage"), from, Options{})
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(s.Bytes)/float64(s.Addresses), "bytes/address")
	}
	reportPeakMemory(b)
}
