package vintage

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lieudit/queries/address/ban"
)

// villageRows are the rows of a small commune: streets of numbered rows a few metres apart.
func villageRows() []ban.Row {
	var rows []ban.Row
	for s, name := range []string{"Rue des Buis", "Rue Haute", "Place du Pont"} {
		for n := 1; n <= 5; n++ {
			key := fmt.Sprintf("48095_000%d", s)
			rows = append(rows, ban.Row{ID: fmt.Sprintf("%s_%05d", key, n), Numero: uint32(n), Voie: name, CodePostal: "48000",
				CodeInsee: "48095", Commune: "Mende", Lon: 3.5 + float64(s)/100 + float64(n)/5000, Lat: 44.5})
		}
	}
	return rows
}

// change is a change to the village in the next vintage.
type change struct {
	name string
	make func([]ban.Row)
}

func changes() []change {
	return []change{
		{"nothing", func([]ban.Row) {}},
		{"a street is renamed", func(rows []ban.Row) {
			for i := range 5 {
				rows[i].Voie = "Rue Simone Veil"
			}
		}},
		{"a street is renamed and gets another code", func(rows []ban.Row) {
			for i := range 5 {
				rows[i].Voie, rows[i].ID = "Rue Simone Veil", fmt.Sprintf("48095_abcdef_%05d", i+1)
			}
		}},
		{"a number moves by 3 m", func(rows []ban.Row) { rows[7].Lat += 0.000027 }},
		{"a number moves by 30 m and gets another id", func(rows []ban.Row) {
			rows[7].Lat += 0.00027
			rows[7].ID = "48095_zzzzzz_00003"
		}},
		{"an id is retyped", func(rows []ban.Row) { rows[11].ID = "48095_2zz_00002" }},
	}
}

func TestAnOldIDAndAnIDBanFindTheirAddressInTheNextVintage(t *testing.T) {
	t.Parallel()
	for _, c := range changes() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			rows := villageRows()
			before := buildVintage(t, rows, Options{})
			c.make(rows)
			after := buildVintage(t, rows, Options{Previous: before})
			third := buildVintage(t, rows, Options{Previous: after})
			for i, r := range villageRows() {
				for _, v := range []*Vintage{after, third} {
					checkSuccessor(t, before, v, r.ID, rows[i])
				}
			}
		})
	}
}

// checkSuccessor checks that a former id, and the id_ban it had, lead to a row.
func checkSuccessor(t *testing.T, before, after *Vintage, old string, want ban.Row) {
	t.Helper()
	was, _ := before.ByID(old)
	is, ok := after.ByID(old)
	if !ok || after.ID(is) != want.ID {
		t.Errorf("%s leads to %q (%v), want %s", old, after.ID(is), ok, want.ID)
	}
	if byUUID, ok := after.ByUUID(before.UUID(was)); !ok || byUUID != is {
		t.Errorf("the id_ban of %s leads to %q (%v)", old, after.ID(byUUID), ok)
	}
}

func TestAnAddressHasAtMostOneSuccessor(t *testing.T) {
	t.Parallel()
	rows := villageRows()
	before := buildVintage(t, rows, Options{})
	twin := rows[0]
	twin.ID, twin.Voie = "48095_twin_00001", "Rue Simone Veil"
	after := buildVintage(t, append(rows, twin), Options{Previous: before})
	a, _ := after.ByID(rows[0].ID)
	b, _ := after.ByID(twin.ID)
	if after.UUID(a) == after.UUID(b) {
		t.Error("two addresses have the same id_ban")
	}
}

func TestAnIDBanOfTheFileWins(t *testing.T) {
	t.Parallel()
	rows := villageRows()
	before := buildVintage(t, rows, Options{})
	rows[0].IDBan = "0a1b2c3d-0000-4000-8000-000000000001"
	after := buildVintage(t, rows, Options{Previous: before})
	e, _ := after.ByID(rows[0].ID)
	if got := after.UUID(e).String(); got != rows[0].IDBan {
		t.Errorf("id_ban is %s, want %s", got, rows[0].IDBan)
	}
}

func TestStreetsKeepTheirIDBanUnderAnotherName(t *testing.T) {
	t.Parallel()
	rows := villageRows()
	before := buildVintage(t, rows, Options{})
	for i := range 5 {
		rows[i].Voie, rows[i].ID = "Rue Simone Veil", fmt.Sprintf("48095_abcdef_%05d", i+1)
	}
	after := buildVintage(t, rows, Options{Previous: before})
	was, _ := before.ByID("48095_0000")
	is, ok := after.ByID("48095_0000")
	if !ok || after.ID(is) != "48095_abcdef" || after.UUID(is) != before.UUID(was) {
		t.Errorf("48095_0000 leads to %q (%v) with id_ban %s, want %s", after.ID(is), ok, after.UUID(is), before.UUID(was))
	}
}

// changeDepartment changes a department as the next vintage may: a third of the streets have another code, some of them
// another name, and some numbers have moved a little.
func changeDepartment(rows []ban.Row) []ban.Row {
	rng, next := rand.New(rand.NewPCG(4, 4)), slices.Clone(rows)
	codes := map[string]string{}
	for i := range next {
		r := &next[i]
		key := streetKey(r)
		if _, known := codes[key]; !known {
			codes[key] = key
			if rng.IntN(3) == 0 {
				codes[key] = fmt.Sprintf("%s_%06x", r.CodeInsee, len(codes))
			}
		}
		r.ID = codes[key] + r.ID[len(key):]
		if codes[key] == key && strings.HasSuffix(key, "0") {
			r.Voie = "Nouvelle " + r.Voie
		}
		if rng.IntN(10) == 0 {
			r.Lat += 0.000027
		}
	}
	return next
}

func TestEveryAddressOfADepartmentIsFoundAgain(t *testing.T) {
	t.Parallel()
	rows := readOfficialRows(t, "adresses-48.csv.gz")
	before := buildVintage(t, rows, Options{})
	next := changeDepartment(rows)
	after := buildVintage(t, next, Options{Previous: before})
	lost := 0
	for i := range rows {
		was, _ := before.ByID(rows[i].ID)
		is, ok := after.ByID(rows[i].ID)
		byUUID, found := after.ByUUID(before.UUID(was))
		if !ok || !found || after.ID(is) != next[i].ID || byUUID != is {
			if lost++; lost < 10 {
				t.Errorf("%s leads to %q, its id_ban to %q, want %s", rows[i].ID, after.ID(is), after.ID(byUUID), next[i].ID)
			}
		}
	}
	if lost > 0 {
		t.Errorf("%d of %d are lost", lost, len(rows))
	}
}

// withBANIDs gives every row an id_ban as the base does.
func withBANIDs(rows []ban.Row) []ban.Row {
	for i := range rows {
		rows[i].IDBan = fmt.Sprintf("9a1b2c3d-0000-4000-8000-%012d", i)
	}
	return rows
}

// renameStreet gives the first street another name and its rows other ids.
func renameStreet(rows []ban.Row) []ban.Row {
	for i := range 5 {
		rows[i].Voie, rows[i].ID = "Rue Simone Veil", fmt.Sprintf("48095_abcdef_%05d", i+1)
	}
	return rows
}

func villageWithLocality() []ban.Row {
	return append(villageRows(), ban.Row{ID: "48095_b001", Kind: ban.Locality, Voie: "Le Chapitre", CodePostal: "48000", CodeInsee: "48095",
		Commune: "Mende", Lon: 3.6, Lat: 44.6})
}

// checkFormerUUIDs checks that every id_ban of a vintage leads to the entity of a later one that its id leads to.
func checkFormerUUIDs(t *testing.T, before, after *Vintage) {
	t.Helper()
	for i := range before.Addresses + before.Streets + before.Localities {
		id, u := before.ID(Entity(i)), before.UUID(Entity(i))
		want, known := after.ByID(id)
		if got, ok := after.ByUUID(u); !ok || !known || got != want {
			t.Errorf("id_ban %s of %s leads to %q (%v), want %q (%v)", u, id, after.ID(got), ok, after.ID(want), known)
		}
	}
}

func TestAGeneratedIDBanStaysFindableWhenTheBaseBringsItsOwn(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func([]ban.Row) []ban.Row{
		"nothing else changes": func(rows []ban.Row) []ban.Row { return rows }, "a street is renamed before": renameStreet,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first := buildVintage(t, villageWithLocality(), Options{Millesime: "1"})
			renamed := buildVintage(t, change(villageWithLocality()), Options{Millesime: "2", Previous: first})
			given := buildVintage(t, withBANIDs(change(villageWithLocality())), Options{Millesime: "3", Previous: renamed})
			again := buildVintage(t, withBANIDs(change(villageWithLocality())), Options{Millesime: "4", Previous: given})
			without := buildVintage(t, change(villageWithLocality()), Options{Millesime: "5", Previous: again})
			for _, v := range []*Vintage{given, again, without} {
				checkFormerUUIDs(t, first, v)
				checkFormerUUIDs(t, renamed, v)
				checkFormerUUIDs(t, given, v)
				if err := v.Verify(context.Background()); err != nil {
					t.Error(err)
				}
				for i := range v.Addresses {
					if v.IsGenerated(Entity(i)) || v.UUID(Entity(i)) != given.UUID(Entity(i)) {
						t.Errorf("millésime %s: %s has %s, generated: %v", v.Millesime, v.ID(Entity(i)), v.UUID(Entity(i)), v.IsGenerated(Entity(i)))
					}
				}
			}
		})
	}
}

func TestAFormerIDBanOutlivesARenameAfterIt(t *testing.T) {
	t.Parallel()
	first := buildVintage(t, villageWithLocality(), Options{})
	given := buildVintage(t, withBANIDs(villageWithLocality()), Options{Previous: first})
	later := buildVintage(t, withBANIDs(renameStreet(villageWithLocality())), Options{Previous: given})
	last := buildVintage(t, withBANIDs(renameStreet(villageWithLocality())), Options{Previous: later})
	checkFormerUUIDs(t, first, later)
	checkFormerUUIDs(t, first, last)
}

func TestWhoMadeAnIDBanIsKept(t *testing.T) {
	t.Parallel()
	rows := villageWithLocality()
	rows[7].IDBan = "0a1b2c3d-0000-4000-8000-000000000001"
	rows[15].IDBan = "0a1b2c3d-0000-5000-8000-000000000002" // of the version that the program makes
	rows[8].IDBan = "00000000-0000-0000-0000-000000000000"  // the base has none
	before := buildVintage(t, rows, Options{})
	after := buildVintage(t, renameStreet(villageWithLocality()), Options{Previous: before})
	for _, v := range []*Vintage{before, after} {
		for i, r := range rows {
			e, _ := v.ByID(r.ID)
			if want := i != 7 && i != 15; v.IsGenerated(e) != want || v.UUID(e) != before.UUID(entityOf(before.ByID(r.ID))) {
				t.Errorf("%s: id_ban %s, generated %v, want %v", r.ID, v.UUID(e), v.IsGenerated(e), want)
			}
		}
	}
}

func entityOf(e Entity, _ bool) Entity { return e }

func TestAnIDThatIsUsedAgainMakesAnotherIDBan(t *testing.T) {
	t.Parallel()
	first := buildVintage(t, villageRows(), Options{})
	moved := buildVintage(t, renameStreet(villageRows()), Options{Previous: first})
	reuser := villageRows()[0] // the id that the first row had
	reuser.Voie, reuser.Lon = "Rue des Lilas", 3.7
	after := buildVintage(t, append(renameStreet(villageRows()), reuser), Options{Previous: moved})
	again := buildVintage(t, append(renameStreet(villageRows()), reuser), Options{Previous: after})
	for _, v := range []*Vintage{after, again} {
		was := first.UUID(entityOf(first.ByID(reuser.ID)))
		successor, _ := v.ByUUID(was)
		other, _ := v.ByID(reuser.ID)
		if v.ID(successor) != "48095_abcdef_00001" || v.ID(other) != reuser.ID || v.UUID(other) == was || !v.IsGenerated(other) {
			t.Errorf("%s leads to %s, %s has %s", was, v.ID(successor), v.ID(other), v.UUID(other))
		}
		if byUUID, ok := v.ByUUID(after.UUID(entityOf(after.ByID(reuser.ID)))); !ok || byUUID != other {
			t.Errorf("the id_ban of %s leads to %s", reuser.ID, v.ID(byUUID))
		}
	}
}

func TestTheSameRowsAndTheSameVintageBeforeMakeTheSameBytes(t *testing.T) {
	t.Parallel()
	first := buildVintage(t, renameStreet(villageWithLocality()), Options{Previous: buildVintage(t, villageWithLocality(), Options{})})
	var files [2][]byte
	for i := range files {
		rows := withBANIDs(renameStreet(villageWithLocality()))
		for a, b := 0, len(rows)-1; i > 0 && a < b; a, b = a+1, b-1 {
			rows[a], rows[b] = rows[b], rows[a]
		}
		path := filepath.Join(t.TempDir(), "vintage")
		if _, err := Build(context.Background(), path, yieldRows(rows), Options{Previous: first}); err != nil {
			t.Fatal(err)
		}
		files[i], _ = os.ReadFile(path)
	}
	if len(files[0]) == 0 || !bytes.Equal(files[0], files[1]) {
		t.Error("the bytes differ")
	}
}

// TestAFileOfTheFirstFormatIsReadAndInheritedFrom reads what an earlier program wrote: the village with a renamed street,
// and one id_ban of the base.
func TestAFileOfTheFirstFormatIsReadAndInheritedFrom(t *testing.T) {
	t.Parallel()
	v, err := Open(filepath.Join("testdata", "format-1.vintage"))
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	if err := v.Verify(context.Background()); err != nil || v.Digest() != "50e008940b7b6368" || v.Addresses != 15 {
		t.Fatalf("digest %s, %d addresses, %v", v.Digest(), v.Addresses, err)
	}
	for i, r := range renameStreet(villageRows()) {
		e, ok := v.ByID(r.ID)
		if byUUID, found := v.ByUUID(v.UUID(e)); !ok || !found || byUUID != e || v.IsGenerated(e) != (i != 7) {
			t.Errorf("%s: %v, its id_ban %v, generated %v", r.ID, ok, found, v.IsGenerated(e))
		}
	}
	after := buildVintage(t, withBANIDs(renameStreet(villageRows())), Options{Previous: v})
	for i, r := range villageRows() {
		was, _ := v.ByID(r.ID)
		is, _ := after.ByID(r.ID)
		if got, ok := after.ByUUID(v.UUID(was)); (!ok || got != is) && i != 7 {
			t.Errorf("the id_ban of %s leads to %q (%v)", r.ID, after.ID(got), ok)
		}
	}
}

func TestAFileOfALaterFormatIsRefused(t *testing.T) {
	t.Parallel()
	data := buildFile(t)
	data[16] = 3
	if _, _, err := openBytes(t, data); err == nil || !bytes.Contains([]byte(err.Error()), []byte("its format is 3, this program reads 1 to 2")) {
		t.Errorf("got %v", err)
	}
}
