package vintage

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"
)

// whole is a small finished file.
func whole(t testing.TB) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "vintage")
	if _, err := Build(context.Background(), path, each(village()), Options{}); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// written opens bytes as a vintage.
func written(t testing.TB, data []byte) (*Vintage, string, error) {
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
	data := whole(t)
	for _, n := range []int{0, 1, 15, headerSize - 1, headerSize, 500, len(data) / 2, len(data) - 1} {
		_, path, err := written(t, data[:n])
		if err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%d of %d bytes: %v, want a refusal that names %s", n, len(data), err, path)
		}
		if !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrNotVintage) {
			t.Errorf("%d bytes: %v is neither damage nor another format", n, err)
		}
	}
}

func TestAFlippedByteIsRefusedOrHarmless(t *testing.T) {
	t.Parallel()
	data := whole(t)
	rng := rand.New(rand.NewPCG(1, 1))
	for range 300 {
		spoilt := append([]byte(nil), data...)
		at := rng.IntN(len(spoilt))
		spoilt[at] ^= byte(1 + rng.IntN(255))
		v, _, err := written(t, spoilt)
		if err == nil {
			if inSection(v, at) {
				t.Fatalf("byte %d was flipped and the file opens", at)
			}
			v.Close()
		}
	}
}

// inSection says whether a byte of the file is part of a section, and not padding.
func inSection(v *Vintage, at int) bool {
	for id := secMeta; id < sectionEnd; id++ {
		if part := v.parts[id]; len(part) > 0 {
			from := cap(v.data) - cap(v.data[at:])
			for i := range part {
				if &part[i] == &v.data[from] {
					return true
				}
			}
		}
	}
	return false
}

// FuzzReader lays views over sections of any bytes: what it reads may be wrong, it may not crash.
func FuzzReader(f *testing.F) {
	f.Add([]byte("00000000000000000000000000000000"), uint32(3), "48095_0000_00001")
	f.Add([]byte{255, 255, 255, 255, 0, 0, 0, 0, 1, 0, 0, 0, 255, 0, 0, 0}, uint32(0), "a")
	data := whole(f)
	f.Add(data[len(data)/2:len(data)/2+512], uint32(9), "48095")
	f.Fuzz(func(t *testing.T, junk []byte, at uint32, word string) {
		v := &Vintage{data: data}
		if err := v.lay(smallSection); err != nil {
			t.Fatal(err)
		}
		id := section(at%uint32(sections)) + 1
		v.parts[id] = junk
		v.layViews()
		touch(v, at, word)
		for i := range uint32(20) {
			touch(v, i, word)
		}
		streets, _ := gather(village())
		newLineage(v).enter("48095", streets)
	})
}

// touch reads everything about one ordinal.
func touch(v *Vintage, i uint32, word string) {
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
	v.IsInvented(Entity(i))
	v.ByID(word)
	v.ByUUID(uuid.NewSHA1(uuid.Nil, []byte(word)))
	v.CommuneOf(word)
	v.PostcodeCommunes(i)
	v.PostcodesCommunes(i, i+1000)
	v.CommuneStreets(v.StreetCommune(i))
	v.Name(v.StreetName(i))
	v.Find(word)
	from, to = v.Prefix(word)
	g := v.Gazetteer().Next(from, to)
	for j := range min(g.Whole(), 3) {
		g.Place(j)
	}
	v.Like(word, 1, func(term uint32, _ int) bool { v.StreetsWith(term); return true })
	v.Sounding(word, func(term uint32) bool { v.PlacesWith(term); return true })
	n := 0
	v.RowsAround(3_500_000, 44_500_000, 1000, func(uint32, Point) { n++ })
	v.StreetsAround(3_500_000, 44_500_000, 1000, func(uint32, Point) { n++ })
}
