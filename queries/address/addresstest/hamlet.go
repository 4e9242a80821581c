package addresstest

import (
	"fmt"

	"lieudit/queries/address/ban"
)

// where is the part of a row that tells where it lies.
type where struct{ postcode, code, city string }

// Where is a commune that a row lies in.
func Where(postcode, code, city string) where { return where{postcode, code, city} }

func mende() where  { return where{"48000", "48095", "Mende"} }
func chanac() where { return where{"48230", "48039", "Chanac"} }
func badaro() where { return where{"48000", "48016", "Balsièges"} }
func paris(n int) where {
	return where{fmt.Sprintf("750%02d", n), fmt.Sprintf("751%02d", n), fmt.Sprintf("Paris %de Arrondissement", n)}
}

// House is a row; rep may be empty.
func House(w where, key, street string, number int, rep string) ban.Row {
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

// Hamlet holds one of each thing the rules speak of.
func Hamlet() []ban.Row {
	rows := []ban.Row{
		House(mende(), "0010", "Rue des Lilas", 12, "bis"), House(mende(), "0010", "Rue des Lilas", 12, ""),
		House(mende(), "0010", "Rue des Lilas", 14, ""), House(mende(), "0010", "Rue des Lilas", 20, ""),
		House(mende(), "0020", "Avenue du Général Leclerc", 3, "ter"), House(mende(), "0030", "Rue du 8 Mai 1945", 8, ""),
		House(mende(), "0040", "Rue de l'Église", 3, ""), House(badaro(), "0040", "Rue de l'Église", 3, ""),
		House(chanac(), "0010", "Rue des Lilas", 5, ""), House(chanac(), "0050", "Route de Mende", 7, ""),
		House(paris(13), "0010", "Rue Jenner", 10, ""), House(paris(2), "0010", "Rue de la Paix", 10, ""),
		place(mende(), "b001", "Le Chapitre"),
	}
	old := House(chanac(), "0060", "Place du Foirail", 2, "")
	old.CodeInseeAncienne, old.CommuneAncienne, old.LieuDit = "48102", "Le Monastier", "Les Hermaux"
	return append(rows, old)
}
