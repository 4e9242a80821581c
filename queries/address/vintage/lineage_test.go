package vintage

import (
	"fmt"
	"testing"

	"lieudit/queries/address/ban"
)

// village is a small commune: streets of numbered rows a few metres apart.
func village() []ban.Row {
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

// change is what becomes of the village in the next vintage.
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
			rows := village()
			before := built(t, rows, Options{})
			c.make(rows)
			after := built(t, rows, Options{Previous: before})
			third := built(t, rows, Options{Previous: after})
			for i, r := range village() {
				for _, v := range []*Vintage{after, third} {
					checkHeir(t, before, v, r.ID, rows[i])
				}
			}
		})
	}
}

// checkHeir wants an old id, and the id_ban it had, to lead to a row.
func checkHeir(t *testing.T, before, after *Vintage, old string, want ban.Row) {
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

func TestAnAddressHasOneHeirAtMost(t *testing.T) {
	t.Parallel()
	rows := village()
	before := built(t, rows, Options{})
	twin := rows[0]
	twin.ID, twin.Voie = "48095_twin_00001", "Rue Simone Veil"
	after := built(t, append(rows, twin), Options{Previous: before})
	a, _ := after.ByID(rows[0].ID)
	b, _ := after.ByID(twin.ID)
	if after.UUID(a) == after.UUID(b) {
		t.Error("two addresses have the same id_ban")
	}
}

func TestAnIDBanOfTheFileWins(t *testing.T) {
	t.Parallel()
	rows := village()
	before := built(t, rows, Options{})
	rows[0].IDBan = "0a1b2c3d-0000-4000-8000-000000000001"
	after := built(t, rows, Options{Previous: before})
	e, _ := after.ByID(rows[0].ID)
	if got := after.UUID(e).String(); got != rows[0].IDBan {
		t.Errorf("id_ban is %s, want %s", got, rows[0].IDBan)
	}
}

func TestStreetsKeepTheirIDBanUnderAnotherName(t *testing.T) {
	t.Parallel()
	rows := village()
	before := built(t, rows, Options{})
	for i := range 5 {
		rows[i].Voie, rows[i].ID = "Rue Simone Veil", fmt.Sprintf("48095_abcdef_%05d", i+1)
	}
	after := built(t, rows, Options{Previous: before})
	was, _ := before.ByID("48095_0000")
	is, ok := after.ByID("48095_0000")
	if !ok || after.ID(is) != "48095_abcdef" || after.UUID(is) != before.UUID(was) {
		t.Errorf("48095_0000 leads to %q (%v) with id_ban %s, want %s", after.ID(is), ok, after.UUID(is), before.UUID(was))
	}
}
