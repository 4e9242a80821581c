package vintage

import (
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
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
	for _, n := range []int{0, 1, 15, headerSize - 1, headerSize, 500, len(data) / 2, len(data) - 1} {
		_, path, err := openBytes(t, data[:n])
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
	data := buildFile(t)
	rng := rand.New(rand.NewPCG(1, 1))
	for range 300 {
		damaged := append([]byte(nil), data...)
		at := rng.IntN(len(damaged))
		damaged[at] ^= byte(1 + rng.IntN(255))
		v, _, err := openBytes(t, damaged)
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
		if part := v.sections[id]; len(part) > 0 {
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

// FuzzReader replaces a section by any bytes: reads may give wrong values and must not crash.
func FuzzReader(f *testing.F) {
	f.Add([]byte("00000000000000000000000000000000"), uint32(3), "48095_0000_00001")
	f.Add([]byte{255, 255, 255, 255, 0, 0, 0, 0, 1, 0, 0, 0, 255, 0, 0, 0}, uint32(0), "a")
	data := buildFile(f)
	f.Add(data[len(data)/2:len(data)/2+512], uint32(9), "48095")
	f.Fuzz(func(t *testing.T, junk []byte, at uint32, word string) {
		v := &Vintage{data: data}
		if err := v.loadSections(maxCheckedAtOpen); err != nil {
			t.Fatal(err)
		}
		id := section(at%uint32(sectionCount)) + 1
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

// flipBit is the file with one bit of a section flipped, nil when the section is empty.
func flipBit(t *testing.T, data []byte, id section) []byte {
	t.Helper()
	_, table, err := parseHeader(data)
	if err != nil {
		t.Fatal(err)
	}
	if table[id].length == 0 {
		return nil
	}
	damaged := append([]byte(nil), data...)
	damaged[table[id].offset+table[id].length/2] ^= 4
	return damaged
}

func TestABitInAnySectionIsFoundByOpenOrByVerify(t *testing.T) {
	t.Parallel()
	data := buildFile(t)
	for id := secMeta; id < sectionEnd; id++ {
		damaged := flipBit(t, data, id)
		if damaged == nil {
			continue
		}
		if _, _, err := openBytes(t, damaged); !errors.Is(err, ErrDamaged) {
			t.Errorf("section %d: opened with %v, want %v", id, err, ErrDamaged)
		}
		path := filepath.Join(t.TempDir(), "v")
		if err := os.WriteFile(path, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		v, err := openChecked(path, -1) // as if each section were too large to be looked at
		if errors.Is(err, ErrDamaged) && id == secMeta {
			continue // it says nothing any more
		}
		if err != nil {
			t.Fatalf("section %d: %v", id, err)
		}
		if err := v.Verify(t.Context()); !errors.Is(err, ErrDamaged) || !errors.Is(v.Damage(), ErrDamaged) {
			t.Errorf("section %d: verified with %v, want %v", id, err, ErrDamaged)
		}
		if err := v.Guard(func() error { t.Error("it is read"); return nil }); !errors.Is(err, ErrDamaged) {
			t.Errorf("section %d: read with %v, want %v", id, err, ErrDamaged)
		}
		v.Close()
	}
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

func TestVerifyChecksTheTableOfSectionsToo(t *testing.T) {
	t.Parallel()
	v, path := openVillage(t)
	data := append([]byte(nil), v.data...)
	data[headerSize+3*sectionEntrySize] ^= 1
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := v.Verify(t.Context()); !errors.Is(err, ErrDamaged) {
		t.Errorf("got %v, want %v", err, ErrDamaged)
	}
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

func TestWhatWasReadInADamagedVintageIsNotReliedOn(t *testing.T) {
	t.Parallel()
	v, _ := openVillage(t)
	damage := errors.New("found meanwhile")
	if err := v.Guard(func() error { v.MarkDamaged(damage); return nil }); !errors.Is(err, damage) {
		t.Errorf("got %v, want %v", err, damage)
	}
	if err := v.MarkDamaged(errors.New("later")); !errors.Is(err, damage) {
		t.Errorf("got %v, want what was said first", err)
	}
}

func TestOtherPanicsPassThroughAGuard(t *testing.T) {
	t.Parallel()
	v, _ := openVillage(t)
	for name, f := range map[string]func(){
		"a word": func() { panic("word") }, "an index": func() { _ = v.data[:0][v.Streets] }, "nil": func() { var m *Meta; m.Streets++ },
	} {
		func() {
			defer func() {
				if recover() == nil || v.Damage() != nil {
					t.Errorf("%s: swallowed, or taken for damage: %v", name, v.Damage())
				}
			}()
			v.Guard(func() error { f(); return nil })
		}()
	}
}

func TestVerifyNamesAFileThatWasCutShort(t *testing.T) {
	t.Parallel()
	v, path := openVillage(t)
	if err := v.VerifyGently(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, v.Size()/2); err != nil {
		t.Fatal(err)
	}
	if err := v.Verify(t.Context()); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "cut short") {
		t.Errorf("got %v, want %v", err, ErrDamaged)
	}
}

func TestACanceledOrClosedVerifyFindsNoDamage(t *testing.T) {
	t.Parallel()
	v, _, err := openBytes(t, buildFile(t))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := v.Verify(ctx); !errors.Is(err, context.Canceled) || v.Damage() != nil {
		t.Errorf("called off: %v, damage %v", err, v.Damage())
	}
	v.Close()
	if err := v.Verify(t.Context()); !errors.Is(err, fs.ErrClosed) || v.Damage() != nil {
		t.Errorf("closed: %v, damage %v", err, v.Damage())
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
