package address

import (
	"fmt"
	"testing"

	"lieudit/queries/address/ban"
	"lieudit/queries/address/commune"
	"lieudit/queries/address/vintage"
)

// where is the part of a row that tells where it lies.
type where struct{ postcode, code, city string }

func mende() where  { return where{"48000", "48095", "Mende"} }
func chanac() where { return where{"48230", "48039", "Chanac"} }
func badaro() where { return where{"48000", "48016", "Balsièges"} }
func paris(n int) where {
	return where{fmt.Sprintf("750%02d", n), fmt.Sprintf("751%02d", n), fmt.Sprintf("Paris %de Arrondissement", n)}
}

// house is a row; rep may be empty.
func house(w where, key, street string, number int, rep string) ban.Row {
	id := fmt.Sprintf("%s_%s_%05d", w.code, key, number)
	if rep != "" {
		id += "_" + rep
	}
	return ban.Row{ID: id, Numero: uint32(number), Rep: rep, Voie: street, CodePostal: w.postcode, CodeInsee: w.code, Commune: w.city,
		Acheminement: w.city, Lon: 3.5 + float64(number)/10000, Lat: 44.5, TypePosition: "entrée"}
}

func place(w where, key, name string) ban.Row {
	return ban.Row{ID: w.code + "_" + key, Voie: name, CodePostal: w.postcode, CodeInsee: w.code, Commune: w.city, Kind: ban.Locality,
		Lon: 3.6, Lat: 44.6}
}

// hamlet holds one of each thing the rules speak of.
func hamlet() []ban.Row {
	rows := []ban.Row{
		house(mende(), "0010", "Rue des Lilas", 12, "bis"), house(mende(), "0010", "Rue des Lilas", 12, ""),
		house(mende(), "0010", "Rue des Lilas", 14, ""), house(mende(), "0010", "Rue des Lilas", 20, ""),
		house(mende(), "0020", "Avenue du Général Leclerc", 3, "ter"), house(mende(), "0030", "Rue du 8 Mai 1945", 8, ""),
		house(mende(), "0040", "Rue de l'Église", 3, ""), house(badaro(), "0040", "Rue de l'Église", 3, ""),
		house(chanac(), "0010", "Rue des Lilas", 5, ""), house(chanac(), "0050", "Route de Mende", 7, ""),
		house(paris(13), "0010", "Rue Jenner", 10, ""), house(paris(2), "0010", "Rue de la Paix", 10, ""),
		place(mende(), "b001", "Le Chapitre"),
	}
	old := house(chanac(), "0060", "Place du Foirail", 2, "")
	old.CodeInseeAncienne, old.CommuneAncienne, old.LieuDit = "48102", "Le Monastier", "Les Hermaux"
	return append(rows, old)
}

func engineOf(t testing.TB, rows []ban.Row) *Engine {
	t.Helper()
	v, err := memory(rows)
	if err != nil {
		t.Fatal(err)
	}
	return engineFor(t, v)
}

func engineFor(t testing.TB, v *vintage.Vintage) *Engine {
	t.Helper()
	t.Cleanup(func() { v.Close() })
	table, err := commune.Load()
	if err != nil {
		t.Fatal(err)
	}
	return New(v, table)
}

// verified is the best match of a question.
func verified(t *testing.T, e *Engine, q Query) Match {
	t.Helper()
	q.Limit = 5
	found, err := e.Verify(t.Context(), q)
	if err != nil || len(found) == 0 {
		t.Fatalf("%+v: nothing (%v)", q, err)
	}
	return found[0]
}
