package commune

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/csv"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"lieudit/queries/address/officialtest"
)

var update = flag.Bool("update", false, "make communes.tsv.gz of its source again")

// kinds are the source's words.
var kinds = map[string]Kind{"commune-actuelle": Current, "commune-deleguee": Delegated, "commune-associee": Associated,
	"arrondissement-municipal": Arrondissement}

func source(t *testing.T) [][]string {
	t.Helper()
	plain, err := gzip.NewReader(officialtest.Open(t, "communes/communes-2026.csv.gz"))
	if err != nil {
		t.Fatal(err)
	}
	r := csv.NewReader(plain)
	r.Comma = ';'
	rows, err := r.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	rows = rows[1:]
	slices.SortStableFunc(rows, func(a, b []string) int {
		return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(kinds[a[2]], kinds[b[2]]))
	})
	return rows
}

// line is an entry as the program keeps it.
func line(r []string) string {
	kind, place := "", make([]string, 6)
	if kinds[r[2]] != Current {
		kind = fmt.Sprint(kinds[r[2]])
	}
	if r[8] != "" {
		lon, lat := thousandths(r[8]), thousandths(r[9])
		box := strings.Split(r[10], ",")
		west, south, east, north := thousandths(box[0]), thousandths(box[1]), thousandths(box[2]), thousandths(box[3])
		for i, n := range []int{lon, lat, lon - west, lat - south, east - lon, north - lat} {
			place[i] = strconv.Itoa(n)
		}
	}
	return strings.Join(append([]string{r[0], r[1], kind, r[3], r[6], strings.ReplaceAll(r[7], "|", "")}, place...), "\t") + "\n"
}

func thousandths(s string) int {
	v, _ := strconv.ParseFloat(s, 64)
	return int(math.Round(v * milli))
}

func TestTheTableIsWhatItsSourceSays(t *testing.T) {
	t.Parallel()
	var want strings.Builder
	for _, r := range source(t) {
		want.WriteString(line(r))
	}
	if *update {
		var b bytes.Buffer
		w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression)
		io.WriteString(w, want.String())
		w.Close()
		if err := os.WriteFile("communes.tsv.gz", b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(r)
	if err != nil || string(got) != want.String() {
		t.Error("the table differs from its source: go test ./queries/address/commune -update", err)
	}
}

func TestDepartmentAndRegionOfEveryCommuneAreTheSources(t *testing.T) {
	t.Parallel()
	for _, r := range source(t) {
		c := Commune{Code: r[0], Parent: r[3]}
		d, known := Department(c.Department())
		region, ok := RegionOf(d.Code)
		if !known || !ok || d.Code != r[4] || region.Code != r[5] {
			t.Fatalf("%s: department %v, want %s; region %v, want %s", r[0], d, r[4], region, r[5])
		}
	}
}
