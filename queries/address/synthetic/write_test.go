package synthetic

import (
	"bytes"
	"context"
	"errors"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"

	"lieudit/queries/address/ban"
	"lieudit/queries/address/commune"
)

func loadCommunes(t testing.TB) *commune.Table {
	t.Helper()
	table, err := commune.Load()
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func writeRows(t *testing.T, o Options) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Write(t.Context(), &b, loadCommunes(t), o); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func readRows(t *testing.T, o Options) []ban.Row {
	t.Helper()
	report := &ban.Report{}
	var rows []ban.Row
	for row, err := range ban.Read(bytes.NewReader(writeRows(t, o)), "synthetic rows", report) {
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, row)
	}
	if report.Bad() > 0 || report.Synthetic != len(rows) {
		t.Fatalf("%d bad rows: %v; %d of %d synthetic", report.Bad(), report.First, report.Synthetic, len(rows))
	}
	return rows
}

func TestASeedGivesTheSameBytesAndAnotherGivesOthers(t *testing.T) {
	t.Parallel()
	first, again := writeRows(t, Options{Addresses: 5000, Seed: 1}), writeRows(t, Options{Addresses: 5000, Seed: 1})
	if !bytes.Equal(first, again) {
		t.Error("the same seed gave other bytes")
	}
	if bytes.Equal(first, writeRows(t, Options{Addresses: 5000, Seed: 2})) {
		t.Error("another seed gave the same bytes")
	}
}

func TestThereAreAsManyRowsAsAskedForAndNoneIsBad(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 2, 99, 20_000, 200_000} {
		if got := len(readRows(t, Options{Addresses: n, Seed: 7})); got != n {
			t.Errorf("%d rows, want %d", got, n)
		}
	}
}

func TestIDsAreUniqueAndOfTheRightForm(t *testing.T) {
	t.Parallel()
	seen, communes := map[string]bool{}, []string{}
	for _, r := range readRows(t, Options{Addresses: 200_000, Seed: 3}) {
		parts := strings.Split(r.ID, "_")
		if seen[r.ID] || parts[0] != r.CodeInsee || len(parts[1]) != 4 && len(parts[1]) != 6 {
			t.Fatalf("%+v", r)
		}
		if r.Kind == ban.HouseNumber && (len(parts[2]) != 5 || len(parts) == 4 && parts[3] != r.Rep) {
			t.Fatalf("%+v", r)
		}
		seen[r.ID] = true
		if len(communes) == 0 || communes[len(communes)-1] != r.CodeInsee {
			communes = append(communes, r.CodeInsee)
		}
	}
	if !slices.IsSorted(communes) {
		t.Error("rows are not grouped by commune")
	}
}

func TestAllSortsOfRowsOccur(t *testing.T) {
	t.Parallel()
	sorts := map[string]int{}
	for _, r := range readRows(t, Options{Addresses: 100_000, Seed: 4}) {
		c, ok := loadCommunes(t).ByCode(r.CodeInsee)
		if !ok || r.Commune != c.Name || !c.HasPostcode(r.CodePostal) || r.Lon < c.Bounds.West-1e-6 || r.Lat > c.Bounds.North+1e-6 {
			t.Fatalf("not in its commune: %+v", r)
		}
		for sort, is := range map[string]bool{"locality": r.Kind == ban.Locality, "repeated": r.Rep != "", "old": r.CommuneAncienne != "",
			"in a hamlet": r.LieuDit != "", "certified": r.Certifie, "parcel": len(r.Parcelles) > 0, "parcels": len(r.Parcelles) > 1,
			"overseas": r.CodeInsee >= "97", "district": c.Kind == commune.Arrondissement, "even": r.Numero > 0 && r.Numero%2 == 0} {
			if is {
				sorts[sort]++
			}
		}
	}
	for _, sort := range []string{"locality", "repeated", "old", "in a hamlet", "certified", "parcel", "parcels", "overseas", "district", "even"} {
		if sorts[sort] < 100 {
			t.Errorf("%s: %d rows", sort, sorts[sort])
		}
	}
}

func TestNothingIsWrittenForNothing(t *testing.T) {
	t.Parallel()
	if err := Write(t.Context(), io.Discard, loadCommunes(t), Options{}); !errors.Is(err, ErrNone) {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Write(ctx, io.Discard, loadCommunes(t), Options{Addresses: 100}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func BenchmarkWrite(b *testing.B) {
	const rows = 500_000
	for b.Loop() {
		if err := Write(b.Context(), io.Discard, loadCommunes(b), Options{Addresses: rows, Seed: 1}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}

func TestRowsAreThoseThatAreWritten(t *testing.T) {
	t.Parallel()
	o := Options{Addresses: 3000, Seed: 4}
	var got []ban.Row
	for row, err := range Rows(t.Context(), loadCommunes(t), o) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, row)
	}
	if want := readRows(t, o); !reflect.DeepEqual(got, want) {
		t.Errorf("got %d rows, want %d, or others", len(got), len(want))
	}
}

func TestRowsEndWhereTheyAreNoLongerRead(t *testing.T) {
	t.Parallel()
	read := 0
	for _, err := range Rows(t.Context(), loadCommunes(t), Options{Addresses: 100_000, Seed: 4}) {
		if read++; err != nil || read == 10 {
			break
		}
	}
	if read != 10 {
		t.Errorf("%d rows, want 10", read)
	}
}

func TestRowsYieldTheErrorThatEndsThem(t *testing.T) {
	t.Parallel()
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		ctx  context.Context
		o    Options
		want error
	}{"canceled": {canceled, Options{Addresses: 10}, context.Canceled}, "no rows": {t.Context(), Options{}, ErrNone}} {
		var got error
		for _, err := range Rows(c.ctx, loadCommunes(t), c.o) {
			got = err
		}
		if !errors.Is(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
