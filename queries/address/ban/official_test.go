package ban

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"testing"

	"lieudit/queries/address/officialtest"
)

func official(t testing.TB, name string) []byte {
	t.Helper()
	data, err := io.ReadAll(officialtest.Open(t, "ban/"+name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestTheOfficialFilesAreReadWhole(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]int{"adresses-48.csv.gz": 47629, "adresses-93010-bondy.csv.gz": 8413} {
		rows, report, err := all(t, bytes.NewReader(official(t, name)))
		if err != nil || len(rows) != want || report.Bad() != 0 {
			t.Errorf("%s: %d rows, want %d; %v, %v", name, len(rows), want, report, err)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(header + one))
	f.Add([]byte(packed(header + one)))
	f.Add([]byte(header + "\"a;\n" + one + "\"\"\"\n"))
	f.Add([]byte("id;nom_lieu_dit;code_insee;nom_commune;lon;lat\n48095_b1;\"Le\n\"\"X\"\"\";2A004;Mende;3.5;44.52\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		rows, report, err := all(t, bytes.NewReader(data))
		if report.Good != len(rows) {
			t.Errorf("%d rows given, %d reported", len(rows), report.Good)
		}
		var format *FormatError
		if err != nil && !errors.As(err, &format) {
			t.Errorf("an error without a reason: %v", err)
		}
		for _, r := range rows {
			if r.Voie == "" || r.ID == "" || len(r.CodeInsee) != 5 || r.Numero > 9999 || !inFrance(r.Lon, r.Lat) {
				t.Errorf("a row that should be bad: %+v", r)
			}
		}
	})
}

func FuzzCoordinate(f *testing.F) {
	for _, s := range []string{"3.24568", "-0.1", "1e3", ".", "-", "44.897472", "123456789012.34", "NaN", "1.2.3"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		got, ok := parseCoordinate(b)
		want, known := parseSlowly(b)
		if known && (!ok || got != want) {
			t.Errorf("%q: %v %v, want %v", b, got, ok, want)
		}
	})
}

func BenchmarkRead(b *testing.B) {
	plain, err := gzip.NewReader(bytes.NewReader(official(b, "adresses-48.csv.gz")))
	if err != nil {
		b.Fatal(err)
	}
	data, err := io.ReadAll(plain)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	rows := 0
	for b.Loop() {
		for _, err := range Read(bytes.NewReader(data), "48", &Report{}) {
			if err != nil {
				b.Fatal(err)
			}
			rows++
		}
	}
	b.ReportMetric(float64(rows)/b.Elapsed().Seconds(), "rows/s")
}
