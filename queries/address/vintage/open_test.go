package vintage

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"
)

// buildFile is the content of a small vintage.
func buildFile(t testing.TB) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "vintage")
	if _, err := Build(context.Background(), path, yieldRows(villageRows()), Options{}); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// openBytes writes bytes to a file and opens it.
func openBytes(t testing.TB, data []byte) (*Vintage, string, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "damaged")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	v, err := Open(path)
	return v, path, err
}

func TestATruncatedFileIsRefusedByName(t *testing.T) {
	t.Parallel()
	data := buildFile(t)
	for _, n := range []int{0, 1, 15, 39, 40, 500, len(data) / 2, len(data) - 1} {
		_, path, err := openBytes(t, data[:n])
		if err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%d of %d bytes: %v, want a refusal that names %s", n, len(data), err, path)
		}
		if !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrNotVintage) {
			t.Errorf("%d bytes: %v is neither damage nor another format", n, err)
		}
	}
}

// FuzzReader replaces a section by any bytes: reads may give wrong values and must not crash.
func FuzzReader(f *testing.F) {
	f.Add([]byte("00000000000000000000000000000000"), uint32(3), "48095_0000_00001")
	f.Add([]byte{255, 255, 255, 255, 0, 0, 0, 0, 1, 0, 0, 0, 255, 0, 0, 0}, uint32(0), "a")
	data := buildFile(f)
	whole, _, err := openBytes(f, data)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data[len(data)/2:len(data)/2+512], uint32(9), "48095")
	f.Fuzz(func(t *testing.T, junk []byte, at uint32, word string) {
		damaged := *whole
		v := &damaged
		id := section(at)%(sectionEnd-1) + 1
		v.sections[id] = junk
		v.bindViews()
		readEverything(v, at, word)
		for i := range uint32(20) {
			readEverything(v, i, word)
		}
		streets, _ := groupByStreet(villageRows())
		newPredecessorIndex(v).matchCommune("48095", streets)
	})
}

// readEverything reads everything about one ordinal and one word.
func readEverything(v *Vintage, i uint32, word string) {
	c, s := v.Commune(i), v.Street(i)
	v.CommunePostcodes(i)
	v.NameTerms(c.Name)
	v.Name(s.Name)
	v.Place(i)
	from, to := v.StreetFacets(i)
	v.Facet(from)
	v.Facet(to)
	v.FirstNumber(s, i)
	v.RowFacet(i, s)
	v.RowPoint(i)
	v.RowKind(i)
	v.Rep(i)
	v.Parcels(i, i)
	v.ID(Entity(i))
	v.UUID(Entity(i))
	v.IsGenerated(Entity(i))
	v.ByID(word)
	v.ByUUID(uuid.NewSHA1(uuid.Nil, []byte(word)))
	v.CommuneOf(word)
	v.PostcodeCommunes(i)
	v.PostcodesCommunes(i, i+1000)
	v.CommuneStreets(v.StreetCommune(i))
	v.Name(v.StreetName(i))
	v.FindTerm(word)
	from, to = v.TermsWithPrefix(word)
	g := v.Gazetteer().Narrow(from, to)
	for j := range min(g.CountComplete(), 3) {
		g.Place(j)
	}
	v.Like(word, 1, func(term uint32, _ int) bool { v.StreetsWith(term); return true })
	v.Sounding(word, func(term uint32) bool { v.PlacesWith(term); return true })
	n := 0
	v.RowsAround(3_500_000, 44_500_000, 1000, func(uint32, Point) { n++ })
	v.StreetsAround(3_500_000, 44_500_000, 1000, func(uint32, Point) { n++ })
}

// openVillage opens a small vintage.
func openVillage(t *testing.T) (*Vintage, string) {
	t.Helper()
	v, path, err := openBytes(t, buildFile(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { v.Close() })
	return v, path
}

func TestAFileCutShortUnderAReaderEndsTheReadAndNotTheProcess(t *testing.T) {
	t.Parallel()
	v, path := openVillage(t)
	read := func() error {
		return v.Guard(func() error {
			readEverything(v, 0, "haute")
			return nil
		})
	}
	if err := read(); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	if err := read(); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "cut short") {
		t.Errorf("got %v, want %v", err, ErrDamaged)
	}
	if err := v.Guard(func() error { t.Error("it is read again"); return nil }); !errors.Is(err, ErrDamaged) {
		t.Errorf("read again: %v, want %v", err, ErrDamaged)
	}
}

func TestABuildWhosePredecessorIsCutShortFailsAndLeavesNothing(t *testing.T) {
	t.Parallel()
	v, path := openVillage(t)
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "next")
	_, err := Build(t.Context(), out, yieldRows(villageRows()), Options{Previous: v})
	if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "id_ban") {
		t.Errorf("got %v, want %v", err, ErrDamaged)
	}
	if _, err := os.Stat(out); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("there is something: %v", err)
	}
}

// BenchmarkGuard measures what Guard costs a query.
func BenchmarkGuard(b *testing.B) {
	path := filepath.Join(b.TempDir(), "v")
	if _, err := Build(context.Background(), path, yieldRows(villageRows()), Options{}); err != nil {
		b.Fatal(err)
	}
	v, err := Open(path)
	if err != nil {
		b.Fatal(err)
	}
	defer v.Close()
	for b.Loop() {
		if err := v.Guard(func() error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
}
