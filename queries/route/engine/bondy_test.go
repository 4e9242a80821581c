package engine

import (
	"testing"

	"lieudit/queries/address/ban"
	"lieudit/queries/address/officialtest"
	"lieudit/queries/route"
	"lieudit/queries/route/graph"
	"lieudit/queries/route/osmpbf/osmtest"
	"lieudit/queries/route/streetname"
	"lieudit/schemas/geo"
)

func TestEveryNumberOfBondyMeetsItsOwnStreetWhereTheMapNamesIt(t *testing.T) {
	t.Parallel()
	e := open(t, osmtest.Path(t, "bondy"))
	m := e.modes[route.Car]
	named := map[string]bool{}
	for s := range uint32(m.layer.Segments()) {
		edge, backward := m.layer.SegmentEdges(s)
		if edge == graph.None {
			edge = backward
		}
		if m.graph.IsMain(edge) { // streets at the border of the map lead nowhere
			named[streetname.Fold(m.layer.Road(s).Name)] = true
		}
	}
	total, own, nearest := 0, 0, 0
	for r, err := range ban.Read(officialtest.Open(t, "ban/adresses-93010-bondy.csv.gz"), "bondy", &ban.Report{}) {
		if err != nil {
			t.Fatal(err)
		}
		if !named[streetname.Fold(r.Voie)] {
			continue
		}
		total++
		b := route.Bound{Point: geo.Point{Lon: r.Lon, Lat: r.Lat}, Street: r.Voie, IsAddress: true}
		if a, ok := m.bestMain(b); ok && a.IsOnOwn {
			own++
		}
		b.Street = ""
		if a, ok := m.bestMain(b); ok && streetname.Same(a.Street, r.Voie) {
			nearest++
		}
	}
	t.Logf("%d numbers, %d on their street (%.2f %%), %d without the name (%.2f %%)", total, own, 100*float64(own)/float64(total), nearest, 100*float64(nearest)/float64(total))
	if float64(own) < 0.99*float64(total) {
		t.Error("fewer than 99 %")
	}
}

// bestMain is the best access of a bound in the main part, from which routes lead all over the map.
func (m *modeEngine) bestMain(b route.Bound) (a route.Access, ok bool) {
	found := m.findRoads(b)
	main := found.ofMain()
	if len(main.roads) == 0 {
		return a, false
	}
	return main.roads[0].access, true
}
