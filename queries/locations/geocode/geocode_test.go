package geocode_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"lieudit/queries/address/addresstest"
	"lieudit/queries/address/ban"
	"lieudit/queries/address/commune"
	"lieudit/queries/address/live"
	"lieudit/queries/address/vintage"
	"lieudit/queries/locations/geocode"
	"lieudit/queries/worker/workertest"
	"lieudit/schemas/locations"
)

const banID = "5c1a1f0e-3c0f-4a53-9d36-6b5b0e7f0a01"

// newAddresses is a live vintage of a handful of addresses, the first with an id_ban.
func newAddresses(t *testing.T) *live.Vintage {
	t.Helper()
	mende := ban.Row{CodePostal: "48000", CodeInsee: "48095", Commune: "Mende"}
	at := func(row ban.Row, id string, numero uint32, voie string, lat float64) ban.Row {
		row.ID, row.Numero, row.Voie, row.Lon, row.Lat = id, numero, voie, 3.5, lat
		return row
	}
	rows := []ban.Row{
		at(mende, "48095_0275_00003", 3, "Rue de l’Ermitage", 44.51),
		at(mende, "48095_0275_00005", 5, "Rue de l’Ermitage", 44.52),
		at(mende, "48095_0300_00001", 1, "Place Urbain V", 44.53),
		at(ban.Row{CodePostal: "48200", CodeInsee: "48140", Commune: "Saint-Chély-d'Apcher"}, "48140_0010_00001", 1, "Rue Haute", 44.80),
		at(ban.Row{CodePostal: "48210", CodeInsee: "48146", Commune: "Gorges du Tarn Causses"}, "48146_0010_00001", 1, "Rue Haute", 44.36),
	}
	rows[0].IDBan = banID
	return serve(t, rows)
}

// serve is a live vintage of a few rows.
func serve(t testing.TB, rows []ban.Row) *live.Vintage {
	t.Helper()
	communes, err := commune.Load()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "v")
	all := func(yield func(ban.Row, error) bool) {
		for _, r := range rows {
			if !yield(r, nil) {
				return
			}
		}
	}
	if _, err := vintage.Build(context.Background(), path, all, vintage.Options{Millesime: "2026-01-01"}); err != nil {
		t.Fatal(err)
	}
	v, err := vintage.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	a := live.New(communes)
	a.Swap(v)
	t.Cleanup(func() { a.Swap(nil) })
	return a
}

func TestASiteIsGeocodedOnlyWhereOneAddressCanBeMeant(t *testing.T) {
	t.Parallel()
	s := geocode.New(newAddresses(t))
	for name, c := range map[string]struct {
		content locations.Content
		lat     float64 // 0: not placed
		sure    float64 // the least score
	}{
		"exactly":                    {at("3 rue de l'Ermitage", "", "48000", "Mende"), 44.51, 1},
		"with a slip":                {at("5 rue de l'Ermitaje", "", "48000", "Mende"), 44.52, 0.8},
		"behind a building":          {at("Bâtiment C", "3 rue de l'Ermitage", "48000", "Mende"), 44.51, 1},
		"with a floor":               {at("5 rue de l'Ermitage", "2e étage", "48000", "Mende"), 44.52, 1},
		"by its commune alone":       {at("", "", "48000", "Mende"), 44.5, 0.9},
		"not by a commune it is in":  {at("14 boulevard du Nulle Part", "", "48000", "Mende"), 0, 0},
		"not where several fit":      {at("1 rue Haute", "", "", ""), 0, 0},
		"by what tells them apart":   {at("1 rue Haute", "", "48200", ""), 44.80, 0.9},
		"not abroad":                 {abroad(at("3 rue de l'Ermitage", "", "48000", "Mende"), "BE"), 0, 0},
		"in France by name":          {abroad(at("3 rue de l'Ermitage", "", "48000", "Mende"), "FRANCE"), 44.51, 1},
		"by an id_ban":               {locations.Content{IDBan: banID}, 44.51, 1},
		"by its address, id unknown": {with(at("1 place Urbain V", "", "48000", "Mende"), "5c1a1f0e-3c0f-4a53-9d36-6b5b0e7fffff"), 44.53, 1},
		"not without an address":     {locations.Content{Name: "Mende"}, 0, 0},
		"not by an empty address":    {at("", "", "", ""), 0, 0},
		"not by what is no address":  {at("-", "", "", ""), 0, 0},
		"not by a building alone":    {at("Bâtiment C", "", "48000", "Mende"), 0, 0},
		"with a post box":            {at("3 rue de l'Ermitage", "BP 12", "48001", "Mende cedex"), 44.51, 0.8},
		"not without its number":     {at("99 rue de l'Ermitage", "", "48000", "Mende"), 0, 0},
		"by a street":                {at("rue de l'Ermitage", "", "48000", "Mende"), 44.51, 1},
		"by its INSEE code":          {coded(at("1 rue Haute", "", "", ""), "48146"), 44.36, 0.9},
		"not in another commune":     {coded(at("3 rue de l'Ermitage", "", "48000", "Mende"), "48140"), 0, 0},
		"not by a code of none":      {coded(at("3 rue de l'Ermitage", "", "48000", "Mende"), "48999"), 0, 0},
		"not with another's code":    {coded(at("3 rue de l'Ermitage", "", "48000", "Mende"), "31555"), 0, 0},
		"not with another postcode":  {at("3 rue de l'Ermitage", "", "48200", "Mende"), 0, 0},
		"not in another department":  {at("3 rue de l'Ermitage", "", "75999", "Mende"), 0, 0},
		"not where the code differs": {coded(at("3 rue de l'Ermitage", "", "31000", ""), "48095"), 0, 0},
	} {
		p, ok, err := s.Geocode(t.Context(), c.content)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if ok != (c.lat != 0) || ok && (p.Lat < c.lat-0.03 || p.Lat > c.lat+0.03 || c.sure == 1 && p.Lat != c.lat) || p.Score < c.sure {
			t.Errorf("%s: %+v, %v, want latitude %v with %v at least", name, p, ok, c.lat, c.sure)
		}
		if ok && p.Source != locations.SourceBAN {
			t.Errorf("%s: said by %q", name, p.Source)
		}
	}
}

func TestAPositionSaysWhatItIsThePositionOf(t *testing.T) {
	t.Parallel()
	s := geocode.New(newAddresses(t))
	for want, c := range map[locations.Precision]locations.Content{
		locations.PrecisionHouseNumber:  at("3 rue de l'Ermitage", "", "48000", "Mende"),
		locations.PrecisionStreet:       at("rue de l'Ermitage", "", "48000", "Mende"),
		locations.PrecisionMunicipality: at("", "", "48000", "Mende"),
	} {
		if p, ok, err := s.Geocode(t.Context(), c); p.Precision != want || !ok || err != nil {
			t.Errorf("%+v: %+v, %v, %v, want precision %s", c.Address, p, ok, err, want)
		}
	}
}

// Real addresses are placed where they are, and streets of another town nowhere.
func TestRealAddressesArePlacedWhereTheyAre(t *testing.T) {
	t.Parallel()
	o := addresstest.Lozere(t)
	communes, err := commune.Load()
	if err != nil {
		t.Fatal(err)
	}
	a := live.New(communes)
	a.Swap(o.Vintage)
	t.Cleanup(func() { a.Swap(nil) })
	s := geocode.New(a)
	asked, placed := 0, 0
	for i := 0; i < len(o.Rows); i += 101 {
		r := &o.Rows[i]
		if r.Kind == ban.Locality || r.Numero == 0 {
			continue
		}
		line := strings.TrimSpace(fmt.Sprintf("%d%s %s", r.Numero, r.Rep, r.Voie))
		p, ok, err := s.Geocode(t.Context(), at(line, "2e étage", r.CodePostal, r.Commune))
		asked++
		if ok && math.Hypot(p.Lon-r.Lon, p.Lat-r.Lat) < 0.001 {
			placed++
		} else if ok || err != nil {
			t.Errorf("%s %s %s is placed at %+v, want %v %v (%v)", line, r.CodePostal, r.Commune, p, r.Lat, r.Lon, err)
		}
		town := [2]string{"48000", "Mende"}
		if r.CodeInsee != "93010" {
			town = [2]string{"93140", "Bondy"}
		}
		if p, ok, err := s.Geocode(t.Context(), at(line, "", town[0], town[1])); err != nil || ok && (p.Lat > 46) != (town[1] == "Bondy") {
			t.Errorf("%s %s is placed at %+v (%v)", line, town[1], p, err)
		}
	}
	if placed*100 < asked*95 {
		t.Errorf("%d of %d rows are placed, want 95 in 100", placed, asked)
	}
}

func at(line1, line2, postcode, city string) locations.Content {
	return locations.Content{Address: &locations.SiteAddress{Line1: line1, Line2: line2, PostalCode: postcode, City: city}}
}

func abroad(c locations.Content, country string) locations.Content {
	c.Address.Country = country
	return c
}

func coded(c locations.Content, code string) locations.Content {
	c.Address.InseeCode = code
	return c
}

func with(c locations.Content, id string) locations.Content {
	c.IDBan = id
	return c
}

func TestWithoutAVintageNothingIsGeocoded(t *testing.T) {
	t.Parallel()
	communes, err := commune.Load()
	if err != nil {
		t.Fatal(err)
	}
	if p, ok, err := geocode.New(live.New(communes)).Geocode(t.Context(), at("3 rue de l'Ermitage", "", "48000", "Mende")); ok || err != nil {
		t.Errorf("placed at %+v, %v", p, err)
	}
}

func TestAWithdrawnVintageIsAnError(t *testing.T) {
	t.Parallel()
	a := newAddresses(t)
	reason := errors.New("the vintage is damaged")
	a.Withdraw(reason)
	if p, ok, err := geocode.New(a).Geocode(t.Context(), at("3 rue de l'Ermitage", "", "48000", "Mende")); ok || !errors.Is(err, reason) {
		t.Errorf("placed at %+v, %v, %v, want the error %v", p, ok, err, reason)
	}
}

func TestManySitesNeedAWorkerAndOneDoesNot(t *testing.T) {
	t.Parallel()
	g := geocode.New(newAddresses(t))
	site := locations.Content{Address: &locations.SiteAddress{Line1: "3 rue de l’Ermitage", PostalCode: "48000", City: "Mende"}}
	for n, want := range map[int]bool{1: false, 1000: true} {
		if got := workertest.NeedsWorker(t, func(ctx context.Context) error {
			for range n {
				if _, _, err := g.Geocode(ctx, site); err != nil {
					return err
				}
			}
			return nil
		}); got != want {
			t.Errorf("%d sites need a worker: %t, want %t", n, got, want)
		}
	}
}
