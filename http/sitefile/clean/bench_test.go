package clean_test

import (
	"testing"

	"lieudit/http/sitefile/clean"
)

// BenchmarkRow fixes the values of a row as files have them: what 20,000 rows cost is a part of every import.
func BenchmarkRow(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		for _, text := range []string{"Crêperie  de l'Étoile", "12 rue de la République", "Prévenchères", "Chez Paul", "<p>Ouvert &amp; accueillant</p>"} {
			clean.Text(text, false)
		}
		clean.Postcode("75001")
		clean.Phones("04 66 65 12 34", "FR")
		clean.Website("www.exemple.fr")
		clean.Email("contact@exemple.fr")
		clean.Hours("Du lundi au vendredi de 9h à 12h30 et de 14h à 19h, samedi 9h-12h", nil)
	}
}
