package engine

import (
	"maps"
	"slices"
	"testing"

	"lieudit/queries/address/ban"
	"lieudit/queries/address/officialtest"
	"lieudit/queries/route"
	"lieudit/queries/route/osmpbf/osmtest"
	"lieudit/schemas/geo"
)

// numbersOfBondy are the addresses of the town by their streets, as bounds.
func numbersOfBondy(t *testing.T) map[string][]route.Bound {
	t.Helper()
	streets := map[string][]route.Bound{}
	for r, err := range ban.Read(officialtest.Open(t, "ban/adresses-93010-bondy.csv.gz"), "bondy", &ban.Report{}) {
		if err != nil {
			t.Fatal(err)
		}
		streets[r.Voie] = append(streets[r.Voie], route.Bound{Point: geo.Point{Lon: r.Lon, Lat: r.Lat}, Street: r.Voie, IsAddress: true})
	}
	return streets
}

// TestNumbersOfAStreetReachEachOther asks for the routes between numbers of each street of Bondy, in both directions: also of streets
// that the border of the map cuts, which are only entered or only left.
func TestNumbersOfAStreetReachEachOther(t *testing.T) {
	t.Parallel()
	e := open(t, osmtest.Path(t, "bondy"))
	p := route.Profile{Mode: route.Car, Optimization: route.Fastest}
	streets, pairs := numbersOfBondy(t), 0
	for _, name := range slices.Sorted(maps.Keys(streets)) {
		bounds := spread(streets[name], numbersOfAStreet)
		m, err := e.Matrix(t.Context(), route.MatrixQuery{Profile: p, Origins: bounds, Destinations: bounds})
		if err != nil {
			t.Fatal(err)
		}
		for i := range bounds {
			for j := range bounds {
				pairs++
				a, err := e.Route(t.Context(), route.Query{Profile: p, Bounds: []route.Bound{bounds[i], bounds[j]}})
				if err != nil {
					t.Errorf("%s: from %v to %v: %v", name, bounds[i].Point, bounds[j].Point, err)
					continue
				}
				if got, want := m.Durations[i][j], a.Routes[0].Duration; got != want || m.Distances[i][j] != a.Routes[0].Distance {
					t.Errorf("%s: from %v to %v: the cell is %v s, the route %v s", name, bounds[i].Point, bounds[j].Point, got, want)
				}
			}
		}
	}
	if pairs < 5_000 {
		t.Errorf("only %d pairs are compared", pairs)
	}
}

// numbersOfAStreet is how many numbers of each street are compared with each other.
const numbersOfAStreet = 6

// spread returns n bounds of a list, from its first to its last.
func spread(all []route.Bound, n int) (some []route.Bound) {
	if len(all) <= n {
		return all
	}
	for i := range n {
		some = append(some, all[i*(len(all)-1)/(n-1)])
	}
	return some
}
