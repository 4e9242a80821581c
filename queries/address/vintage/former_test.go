package vintage

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"lieudit/queries/address/ban"
)

// withBANIDs gives every row an id_ban as the base does.
func withBANIDs(rows []ban.Row) []ban.Row {
	for i := range rows {
		rows[i].IDBan = fmt.Sprintf("9a1b2c3d-0000-4000-8000-%012d", i)
	}
	return rows
}

// renamed gives the first street another name and its rows other ids.
func renamed(rows []ban.Row) []ban.Row {
	for i := range 5 {
		rows[i].Voie, rows[i].ID = "Rue Simone Veil", fmt.Sprintf("48095_abcdef_%05d", i+1)
	}
	return rows
}

func hamlets() []ban.Row {
	return append(village(), ban.Row{ID: "48095_b001", Kind: ban.Locality, Voie: "Le Chapitre", CodePostal: "48000", CodeInsee: "48095",
		Commune: "Mende", Lon: 3.6, Lat: 44.6})
}

// checkFormers wants every id_ban of a vintage to lead to the entity of a later one that has the id it had.
func checkFormers(t *testing.T, before, after *Vintage) {
	t.Helper()
	for i := range before.Addresses + before.Streets + before.Localities {
		id, u := before.ID(Entity(i)), before.UUID(Entity(i))
		want, known := after.ByID(id)
		if got, ok := after.ByUUID(u); !ok || !known || got != want {
			t.Errorf("id_ban %s of %s leads to %q (%v), want %q (%v)", u, id, after.ID(got), ok, after.ID(want), known)
		}
	}
}

func TestAnInventedIDBanGoesOnWhenTheBaseBringsItsOwn(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func([]ban.Row) []ban.Row{
		"nothing else changes": func(rows []ban.Row) []ban.Row { return rows }, "a street is renamed before": renamed,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first := built(t, hamlets(), Options{Millesime: "1"})
			renamed := built(t, change(hamlets()), Options{Millesime: "2", Previous: first})
			given := built(t, withBANIDs(change(hamlets())), Options{Millesime: "3", Previous: renamed})
			again := built(t, withBANIDs(change(hamlets())), Options{Millesime: "4", Previous: given})
			without := built(t, change(hamlets()), Options{Millesime: "5", Previous: again})
			for _, v := range []*Vintage{given, again, without} {
				checkFormers(t, first, v)
				checkFormers(t, renamed, v)
				checkFormers(t, given, v)
				if err := v.Verify(context.Background()); err != nil {
					t.Error(err)
				}
				for i := range v.Addresses {
					if v.IsInvented(Entity(i)) || v.UUID(Entity(i)) != given.UUID(Entity(i)) {
						t.Errorf("millésime %s: %s has %s, invented: %v", v.Millesime, v.ID(Entity(i)), v.UUID(Entity(i)), v.IsInvented(Entity(i)))
					}
				}
			}
		})
	}
}

func TestAFormerIDBanOutlivesARenameAfterIt(t *testing.T) {
	t.Parallel()
	first := built(t, hamlets(), Options{})
	given := built(t, withBANIDs(hamlets()), Options{Previous: first})
	later := built(t, withBANIDs(renamed(hamlets())), Options{Previous: given})
	last := built(t, withBANIDs(renamed(hamlets())), Options{Previous: later})
	checkFormers(t, first, later)
	checkFormers(t, first, last)
}

func TestWhoMadeAnIDBanIsKept(t *testing.T) {
	t.Parallel()
	rows := hamlets()
	rows[7].IDBan = "0a1b2c3d-0000-4000-8000-000000000001"
	rows[15].IDBan = "0a1b2c3d-0000-5000-8000-000000000002" // of the version that the program makes
	rows[8].IDBan = "00000000-0000-0000-0000-000000000000"  // the base has none
	before := built(t, rows, Options{})
	after := built(t, renamed(hamlets()), Options{Previous: before})
	for _, v := range []*Vintage{before, after} {
		for i, r := range rows {
			e, _ := v.ByID(r.ID)
			if want := i != 7 && i != 15; v.IsInvented(e) != want || v.UUID(e) != before.UUID(must(before.ByID(r.ID))) {
				t.Errorf("%s: id_ban %s, invented %v, want %v", r.ID, v.UUID(e), v.IsInvented(e), want)
			}
		}
	}
}

func must(e Entity, _ bool) Entity { return e }

func TestAnIDThatIsUsedAgainMakesAnotherIDBan(t *testing.T) {
	t.Parallel()
	first := built(t, village(), Options{})
	moved := built(t, renamed(village()), Options{Previous: first})
	reuser := village()[0] // the id that the first row had
	reuser.Voie, reuser.Lon = "Rue des Lilas", 3.7
	after := built(t, append(renamed(village()), reuser), Options{Previous: moved})
	again := built(t, append(renamed(village()), reuser), Options{Previous: after})
	for _, v := range []*Vintage{after, again} {
		was := first.UUID(must(first.ByID(reuser.ID)))
		heir, _ := v.ByUUID(was)
		other, _ := v.ByID(reuser.ID)
		if v.ID(heir) != "48095_abcdef_00001" || v.ID(other) != reuser.ID || v.UUID(other) == was || !v.IsInvented(other) {
			t.Errorf("%s leads to %s, %s has %s", was, v.ID(heir), v.ID(other), v.UUID(other))
		}
		if byUUID, ok := v.ByUUID(after.UUID(must(after.ByID(reuser.ID)))); !ok || byUUID != other {
			t.Errorf("the id_ban of %s leads to %s", reuser.ID, v.ID(byUUID))
		}
	}
}

func TestTheSameRowsAndTheSameVintageBeforeMakeTheSameBytes(t *testing.T) {
	t.Parallel()
	first := built(t, renamed(hamlets()), Options{Previous: built(t, hamlets(), Options{})})
	var files [2][]byte
	for i := range files {
		rows := withBANIDs(renamed(hamlets()))
		for a, b := 0, len(rows)-1; i > 0 && a < b; a, b = a+1, b-1 {
			rows[a], rows[b] = rows[b], rows[a]
		}
		path := filepath.Join(t.TempDir(), "vintage")
		if _, err := Build(context.Background(), path, each(rows), Options{Previous: first}); err != nil {
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
	for i, r := range renamed(village()) {
		e, ok := v.ByID(r.ID)
		if byUUID, found := v.ByUUID(v.UUID(e)); !ok || !found || byUUID != e || v.IsInvented(e) != (i != 7) {
			t.Errorf("%s: %v, its id_ban %v, invented %v", r.ID, ok, found, v.IsInvented(e))
		}
	}
	after := built(t, withBANIDs(renamed(village())), Options{Previous: v})
	for i, r := range village() {
		was, _ := v.ByID(r.ID)
		is, _ := after.ByID(r.ID)
		if got, ok := after.ByUUID(v.UUID(was)); (!ok || got != is) && i != 7 {
			t.Errorf("the id_ban of %s leads to %q (%v)", r.ID, after.ID(got), ok)
		}
	}
}

func TestAFileOfALaterFormatIsRefused(t *testing.T) {
	t.Parallel()
	data := whole(t)
	data[16] = formatVersion + 1
	if _, _, err := written(t, data); err == nil || !bytes.Contains([]byte(err.Error()), []byte("its format is 3, this program reads 1 to 2")) {
		t.Errorf("got %v", err)
	}
}
