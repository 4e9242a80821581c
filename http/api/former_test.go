package api

import (
	"fmt"
	"slices"
	"testing"

	"lieudit/queries/address"
)

// neighboursOf are a thousand addresses, each a metre further away than the last; postcodes and communes repeat every hundred.
func neighboursOf(_ address.Position, _ float64, limit int, _ ...address.Type) []address.Neighbour {
	var all []address.Neighbour
	for i := range min(limit, 1000) {
		all = append(all, address.Neighbour{Record: address.Record{
			ID: fmt.Sprint(i), Postcode: fmt.Sprintf("480%02d", i%100), CityCode: fmt.Sprintf("751%02d", i%100),
		}, Distance: i})
	}
	return all
}

func TestTheNearestThatPassAFilterAreFound(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		limit  int
		filter address.Filter
		want   []string
	}{
		{"no filter", 2, address.Filter{}, []string{"0", "1"}},
		{"far beyond the first that are looked at", 2, address.Filter{Postcodes: []string{"48099"}}, []string{"99", "199"}},
		{"several values, the nearest first", 3, address.Filter{Postcodes: []string{"48007", "48005"}}, []string{"5", "7", "105"}},
		{"filters are joined by and", 1, address.Filter{Postcodes: []string{"48005"}, CityCodes: []string{"75106"}}, nil},
		{"a city's code takes its arrondissements in", 1, address.Filter{CityCodes: []string{"75056"}}, []string{"1"}},
		{"fewer than asked for", 20, address.Filter{Postcodes: []string{"48000"}}, []string{"0", "100", "200", "300", "400", "500", "600", "700", "800", "900"}},
	} {
		var got []string
		for _, n := range findNearest(neighboursOf, address.Position{}, c.limit, c.filter) {
			got = append(got, n.ID)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}
