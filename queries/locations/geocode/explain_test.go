package geocode_test

import (
	"testing"

	"lieudit/queries/address"
	"lieudit/queries/address/live"
	"lieudit/queries/locations/geocode"
	"lieudit/schemas/locations"
)

func TestASiteWithoutAPositionSaysWhy(t *testing.T) {
	t.Parallel()
	s := geocode.New(newAddresses(t))
	for name, c := range map[string]struct {
		content locations.Content
		want    address.Reason
	}{
		"placed":                        {at("3 rue de l'Ermitage", "", "48000", "Mende"), ""},
		"in a commune without rows":     {at("3 rue de Metz", "", "31000", "Toulouse"), address.NotCovered},
		"abroad":                        {abroad(at("3 rue de l'Ermitage", "", "48000", "Mende"), "BE"), address.NotCovered},
		"in no commune":                 {at("3 rue Haute", "", "", "Villequelconque"), address.CityUnknown},
		"with the code of another":      {coded(at("3 rue de l'Ermitage", "", "48000", "Mende"), "48140"), address.CityContradicted},
		"with the postcode of another":  {at("3 rue de l'Ermitage", "", "48200", "Mende"), address.PostcodeContradicted},
		"a street that is not there":    {at("14 boulevard du Nulle Part", "", "48000", "Mende"), address.StreetAbsent},
		"below the name of a building":  {at("Bâtiment C", "14 boulevard du Nulle Part", "48000", "Mende"), address.StreetAbsent},
		"a building alone":              {at("Bâtiment C", "", "48000", "Mende"), address.StreetAbsent},
		"a number that is not there":    {at("99 rue de l'Ermitage", "", "48000", "Mende"), address.NumberAbsent},
		"with a building, none of them": {at("Bâtiment C", "99 rue de l'Ermitage", "48000", "Mende"), address.NumberAbsent},
		"in several communes":           {at("1 rue Haute", "", "", ""), address.SeveralFit},
		"no address in it":              {at("-", "", "", ""), address.WordsUnknown},
		"without an address":            {locations.Content{Name: "Mende"}, ""},
	} {
		if got, err := s.Explain(t.Context(), c.content); got != c.want || err != nil {
			t.Errorf("%s: %q (%v), want %q", name, got, err, c.want)
		}
		if _, isPlaced, _ := s.Geocode(t.Context(), c.content); isPlaced != (name == "placed") {
			t.Errorf("%s: placed %v", name, isPlaced)
		}
	}
	none := geocode.New(live.New(nil))
	if got, err := none.Explain(t.Context(), at("3 rue de l'Ermitage", "", "48000", "Mende")); got != address.NotCovered || err != nil {
		t.Errorf("without a vintage: %q (%v), want %q", got, err, address.NotCovered)
	}
}
