package address

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"lieudit/eventstore/leveltest"
	"lieudit/queries/address/addresstest"
	"lieudit/queries/address/vintage"
	"lieudit/schemas/geo"
)

func TestNeighboursComeNearestFirst(t *testing.T) {
	t.Parallel()
	leveltest.Need(t, leveltest.Usual, "") // it takes seconds
	e := lozere(t)
	at := geo.Point{Lon: 3.4985, Lat: 44.5177}
	for _, c := range []struct {
		metres float64
		limit  int
		filter Filter
	}{
		{500, 10, Filter{}}, {60, 100, Filter{}}, {10_000, 100, Filter{Types: []Type{StreetType}}},
		{10_000, 100, Filter{Types: []Type{Municipality}}}, {700, 100, Filter{Types: []Type{HouseNumber, StreetType}}},
		{10_000, 20, Filter{CityCodes: []string{"48016", "48039"}}}, {10_000, 20, Filter{Postcodes: []string{"48230"}}},
		{5_000, 20, Filter{Postcodes: []string{"48000"}, CityCodes: []string{"48016"}}}, {500, 10, Filter{CityCodes: []string{"93010"}}},
		{10_000, 100, Filter{Types: []Type{Municipality}, Postcodes: []string{"48000"}}}, {500, 10, Filter{Postcodes: []string{"99999"}}},
	} {
		got, want := e.Near(at, c.metres, c.limit, c.filter), e.nearByHand(at, c.metres, c.filter)
		if len(got) != min(c.limit, len(want)) {
			t.Fatalf("%+v: %d, want %d", c, len(got), min(c.limit, len(want)))
		}
		for i := range got {
			if got[i].Distance != want[i].metres || got[i].ID != want[i].id {
				t.Errorf("%+v: %d is %s at %d m, want %s at %d m", c, i, got[i].ID, got[i].Distance, want[i].id, want[i].metres)
			}
		}
	}
}

type neighbourByHand struct {
	id     string
	metres int
}

// nearByHand looks at everything there is, one after the other. A commune is as far as its nearest street, the nearest one
// as far as its nearest house number.
func (e *Engine) nearByHand(at geo.Point, metres float64, f Filter) (found []neighbourByHand) {
	if f.Types == nil {
		f.Types = []Type{HouseNumber, StreetType, LocalityType}
	}
	centre := vintage.Fix(at)
	communes := map[string]float64{}
	nearestRow, ofCommune := metres, ""
	for i := range uint32(e.v.Addresses + e.v.Streets + e.v.Localities) {
		r := e.entityRecord(vintage.Entity(i))
		d := vintage.Metres(centre, vintage.Fix(geo.Point{Lon: r.Lon, Lat: r.Lat}))
		if d > metres || len(f.Postcodes) > 0 && !slices.Contains(f.Postcodes, r.Postcode) || len(f.CityCodes) > 0 && !slices.Contains(f.CityCodes, r.CityCode) {
			continue
		}
		if slices.Contains(f.Types, r.Type) {
			found = append(found, neighbourByHand{r.ID, int(math.Round(d))})
		}
		if known, ok := communes[r.CityCode]; r.Type != HouseNumber && (!ok || d < known) {
			communes[r.CityCode] = d
		}
		if r.Type == HouseNumber && d < nearestRow {
			nearestRow, ofCommune = d, r.CityCode
		}
	}
	if ofCommune != "" {
		communes[ofCommune] = min(communes[ofCommune], nearestRow)
	}
	for code, d := range communes {
		if slices.Contains(f.Types, Municipality) {
			found = append(found, neighbourByHand{code, int(math.Round(d))})
		}
	}
	slices.SortFunc(found, func(x, y neighbourByHand) int {
		return cmp.Or(cmp.Compare(x.metres, y.metres), cmp.Compare(x.id, y.id))
	})
	return found
}

func TestACommuneIsFoundWhereverInItOneStands(t *testing.T) {
	t.Parallel()
	rows := hamlet()
	far := addresstest.NewHouse(addresstest.NewArea("48000", "48095", "Mende"), "0070", "Chemin du Haut", 1, "")
	far.Lon, far.Lat = 3.47, 44.555
	neighbour := addresstest.NewHouse(addresstest.NewArea("48190", "48030", "Brenoux"), "0010", "Rue Haute", 1, "")
	neighbour.Lon, neighbour.Lat = 3.52, 44.49
	e := engineOf(t, append(rows, far, neighbour))
	for name, c := range map[string]struct {
		at     geo.Point
		metres float64
		filter Filter
		want   []string
	}{
		"beside a house":              {geo.Point{Lon: 3.4701, Lat: 44.555}, 100, Filter{}, []string{"48095"}},
		"far from all houses":         {geo.Point{Lon: 3.48, Lat: 44.545}, 100, Filter{}, []string{"48095"}},
		"a house of a neighbour":      {geo.Point{Lon: 3.5199, Lat: 44.49}, 100, Filter{}, []string{"48030"}},
		"two within reach":            {geo.Point{Lon: 3.5199, Lat: 44.49}, 5000, Filter{}, []string{"48030", "48095"}},
		"in no commune":               {geo.Point{Lon: 4.9, Lat: 43.2}, 10_000, Filter{}, nil},
		"a postcode that it has":      {geo.Point{Lon: 3.48, Lat: 44.545}, 100, Filter{Postcodes: []string{"48000"}}, []string{"48095"}},
		"a postcode that it has not":  {geo.Point{Lon: 3.48, Lat: 44.545}, 100, Filter{Postcodes: []string{"48190"}}, nil},
		"a commune that is not there": {geo.Point{Lon: 3.48, Lat: 44.545}, 100, Filter{CityCodes: []string{"99999"}}, nil},
	} {
		c.filter.Types = []Type{Municipality}
		var got []string
		for _, n := range e.Near(c.at, c.metres, 2, c.filter) {
			got = append(got, n.ID)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestAStreetShowsThePostcodeThatIsAskedFor(t *testing.T) {
	t.Parallel()
	rows := hamlet()
	rows[0].CodePostal, rows[1].CodePostal = "48001", "48001" // of 48095_0010, whose other numbers have 48000
	e := engineOf(t, rows)
	for _, code := range []string{"48000", "48001"} {
		for _, kind := range []Type{StreetType, Municipality} {
			found := e.Near(geo.Point{Lon: 3.5012, Lat: 44.5}, 500, 5, Filter{Types: []Type{kind}, Postcodes: []string{code}, CityCodes: []string{"48095"}})
			if len(found) == 0 || found[0].Postcode != code {
				t.Errorf("%s of postcode %s: %+v", kind, code, found)
			}
		}
	}
}
