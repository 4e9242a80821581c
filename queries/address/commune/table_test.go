package commune

import (
	"slices"
	"testing"
)

func table(t testing.TB) *Table {
	t.Helper()
	table, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func codes(found []*Commune) (codes []string) {
	for _, c := range found {
		codes = append(codes, c.Code)
	}
	return codes
}

func TestACommuneIsFoundByItsCode(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]struct {
		name, postcode, region string
		kind                   Kind
		population             uint32
	}{
		"48095": {"Mende", "48000", "Occitanie", Current, 12464},
		"2A004": {"Ajaccio", "20000", "Corse", Current, 76320},
		"75116": {"Paris 16e Arrondissement", "75016", "Île-de-France", Arrondissement, 0},
		"97411": {"Saint-Denis", "97400", "La Réunion", Current, 0},
		"89334": {"Le Val d'Ocre", "89110", "Bourgogne-Franche-Comté", Current, 563},
	} {
		c, ok := table(t).ByCode(code)
		if !ok || c.Name != want.name || !c.HasPostcode(want.postcode) || c.Kind != want.kind ||
			want.population > 0 && c.Population != want.population {
			t.Errorf("%s: got %+v", code, c)
			continue
		}
		if region, _ := RegionOf(c.Department()); region.Name != want.region {
			t.Errorf("%s: region %q, want %q", code, region.Name, want.region)
		}
	}
	for _, unknown := range []string{"", "00000", "4809", "48095x", "99999"} {
		if c, ok := table(t).ByCode(unknown); ok {
			t.Errorf("%q is %v", unknown, c)
		}
	}
}

func TestAPostcodeNamesAllItServes(t *testing.T) {
	t.Parallel()
	if got := codes(table(t).ByPostcode("93140")); !slices.Equal(got, []string{"93010"}) {
		t.Errorf("93140: %v", got)
	}
	if got := codes(table(t).ByPostcode("75001")); !slices.Equal(got, []string{"75056", "75101"}) {
		t.Errorf("75001: %v", got)
	}
	if got := table(t).ByPostcode("48000"); len(got) < 3 {
		t.Errorf("48000: %v", codes(got))
	}
	for _, unknown := range []string{"", "4800", "480000", "99999", "ABCDE"} {
		if got := table(t).ByPostcode(unknown); got != nil {
			t.Errorf("%q: %v", unknown, codes(got))
		}
	}
}

func TestThePartsOfACommuneAreItsChildren(t *testing.T) {
	t.Parallel()
	for parent, want := range map[string]int{"75056": 20, "69123": 9, "13055": 16, "48095": 0} {
		children := table(t).Children(parent)
		if len(children) != want {
			t.Errorf("%s has %d, want %d", parent, len(children), want)
		}
		for _, c := range children {
			if p, ok := table(t).Parent(c); !ok || p.Code != parent {
				t.Errorf("the parent of %s is %v", c.Code, p)
			}
		}
	}
	if got := codes(table(t).Children("89334")); !slices.Equal(got, []string{"89334", "89356"}) {
		t.Errorf("89334: %v", got)
	}
}

func TestEveryEntryIsWhole(t *testing.T) {
	t.Parallel()
	population, last := uint64(0), ""
	for c := range table(t).All() {
		if len(c.Code) != 5 || c.Name == "" || c.Code < last || (c.Kind == Current) != (c.Parent == "") {
			t.Errorf("odd: %+v", c)
		}
		if c.Located() && (c.Lon < c.Bounds.West || c.Lon > c.Bounds.East || c.Lat < c.Bounds.South || c.Lat > c.Bounds.North) {
			t.Errorf("%s lies outside of its bounds: %+v", c.Code, c)
		}
		if _, ok := table(t).Parent(c); ok == (c.Kind == Current) {
			t.Errorf("%s: parent %q", c.Code, c.Parent)
		}
		if c.Kind == Current {
			population += uint64(c.Population)
		}
		last = c.Code
	}
	if n := table(t).Len(); n != 37590 || population < 66e6 || population > 71e6 {
		t.Errorf("%d communes, %d inhabitants", n, population)
	}
}

func TestThereAreAllDepartmentsAndRegions(t *testing.T) {
	t.Parallel()
	inRegions, used := 0, map[string]bool{}
	for code := range departments {
		if r, ok := RegionOf(code); ok {
			if _, ok := Region(r.Code); ok {
				inRegions++
				used[r.Code] = true
			}
		}
	}
	if inRegions != 101 || len(used) != 18 {
		t.Errorf("%d departments in %d regions", inRegions, len(used))
	}
}

func TestATableThatIsDamagedIsRefused(t *testing.T) {
	t.Parallel()
	for name, data := range map[string][]byte{"empty": nil, "cut": packed[:len(packed)/2], "other": []byte("hello")} {
		if _, err := decode(data); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := decode(packed); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkPrepareSearch is what the first vintage waits for.
func BenchmarkPrepareSearch(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		newNameIndex(table(b))
	}
}
