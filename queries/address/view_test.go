package address

import (
	"slices"
	"testing"

	"github.com/google/uuid"

	"lieudit/queries/address/addresstest"
	"lieudit/schemas/geo"
)

func TestEveryKindOfIDFindsItsRecord(t *testing.T) {
	t.Parallel()
	e := engineOf(t, hamlet())
	for id, want := range map[string]struct {
		id   string
		kind Type
	}{
		"48095_0010_00012_bis": {"48095_0010_00012_bis", HouseNumber},
		"48095_0010":           {"48095_0010", StreetType},
		"48095_b001":           {"48095_b001", LocalityType},
		"48095":                {"48095", Municipality},
		"75056":                {"75056", Municipality}, // the city of its arrondissements
	} {
		if r, ok := e.View(id); !ok || r.ID != want.id || r.Type != want.kind {
			t.Errorf("%s: %s %s (%v), want %s %s", id, r.Type, r.ID, ok, want.kind, want.id)
		}
	}
	for _, id := range []string{"", "48", "99999", "48095_9999", "48095_0010_00013", "48095_0010_00012_ter", "48095_0010_99999999", "x",
		"0a1b2c3d-0000-4000-8000-000000000001"} {
		if r, ok := e.View(id); ok {
			t.Errorf("%s: %s, want nothing", id, r.ID)
		}
	}
}

func TestEveryIDBanFindsItsRecord(t *testing.T) {
	t.Parallel()
	rows := hamlet()
	rows[0].IDBan = "0a1b2c3d-0000-4000-8000-000000000001"
	e := engineOf(t, rows)
	for _, id := range []string{"48095_0010_00012_bis", "48095_0010_00012", "48095_0010", "48095_b001"} {
		r, _ := e.View(id)
		if _, err := uuid.Parse(r.BanID); err != nil {
			t.Errorf("%s has id_ban %q", id, r.BanID)
		}
		if again, ok := e.View(r.BanID); !ok || again.ID != id {
			t.Errorf("%s leads to %s, want %s", r.BanID, again.ID, id)
		}
	}
	if r, ok := e.View(rows[0].IDBan); !ok || r.ID != rows[0].ID || r.BanIDOrigin != BAN {
		t.Errorf("an id_ban of the file leads to %q, made by %q", r.ID, r.BanIDOrigin)
	}
	for id, want := range map[string]Origin{"48095_0010_00014": Lieudit, "48095_0010": Lieudit, "48095": ""} {
		if r, ok := e.View(id); !ok || r.BanIDOrigin != want || (r.BanID == "") != (want == "") {
			t.Errorf("the id_ban %q of %s is made by %q, want %q", r.BanID, id, r.BanIDOrigin, want)
		}
	}
}

func TestARecordSaysAllThatIsKnown(t *testing.T) {
	t.Parallel()
	e := engineOf(t, hamlet())
	r, _ := e.View("48039_0060_00002")
	for name, pair := range map[string][2]string{
		"label": {r.Label, "2 Place du Foirail 48230 Chanac"}, "number": {r.Number, "2"}, "street": {r.Street, "Place du Foirail"},
		"locality": {r.Locality, "Les Hermaux"}, "old code": {r.OldCityCode, "48102"}, "old city": {r.OldCity, "Le Monastier"},
		"department": {r.Department.Name, "Lozère"}, "region": {r.Region.Name, "Occitanie"}, "vintage": {r.Vintage, "2024-10-01"},
		"street line": {r.StreetLine, "2 PLACE DU FOIRAIL"}, "complement": {r.ComplementLine, "LES HERMAUX"},
		"city line": {r.CityLine, "48230 CHANAC"}, "position": {r.PositionType, "entrée"},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s is %q, want %q", name, pair[0], pair[1])
		}
	}
	if p, _ := e.View("75113_0010_00010"); p.District != "Paris 13e Arrondissement" {
		t.Errorf("the arrondissement is %q", p.District)
	}
	if m, _ := e.View("48095"); m.Population < 10_000 || m.Postcode != "48000" || m.Lon == 0 {
		t.Errorf("Mende has %d people, postcode %q, longitude %v", m.Population, m.Postcode, m.Lon)
	}
}

func TestACommuneLiesAtOnePlaceWhoeverShowsIt(t *testing.T) {
	t.Parallel()
	rows := append(hamlet(), addresstest.NewHouse(addresstest.NewArea("49270", "49126", "Orée d'Anjou"), "0010", "Rue des Lilas", 5, ""))
	e := engineOf(t, rows)
	for _, code := range []string{"48095", "48039", "75113", "75056", "49126", "31555"} {
		viewed, _ := e.View(code)
		if viewed.Lon == 0 || viewed.Lat == 0 {
			t.Errorf("%s lies nowhere", code)
		}
		found, err := e.Localities(LocalityQuery{Text: viewed.City, Limit: 20})
		i := slices.IndexFunc(found, func(l Locality) bool { return l.Code == code })
		if err != nil || i < 0 || found[i].Lon != viewed.Lon || found[i].Lat != viewed.Lat {
			t.Errorf("%s: listed %+v, %v, viewed at %v %v", code, found, err, viewed.Lon, viewed.Lat)
		}
		for name, r := range e.shownAs(t, code) {
			if r.Lon != viewed.Lon || r.Lat != viewed.Lat || r.X != viewed.X || r.Y != viewed.Y {
				t.Errorf("%s lies at %v %v for %s, viewed at %v %v", code, r.Lon, r.Lat, name, viewed.Lon, viewed.Lat)
			}
		}
	}
}

// shownAs is a commune as questions show it.
func (e *Engine) shownAs(t *testing.T, code string) map[string]Record {
	t.Helper()
	shown := map[string]Record{}
	matches, err := e.Verify(t.Context(), Query{CityCode: code, Limit: 1, Filter: Filter{Types: []Type{Municipality}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range e.Near(geo.Point{Lon: 3.501, Lat: 44.5}, 10_000, 100, Filter{Types: []Type{Municipality}}) {
		if n.CityCode == code {
			shown["proximity"] = n.Record
		}
	}
	for _, m := range matches {
		if m.ID == code {
			shown["verify"] = m.Record
		}
	}
	return shown
}
