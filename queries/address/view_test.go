package address

import (
	"math"
	"slices"
	"testing"

	"github.com/google/uuid"

	"lieudit/queries/address/vintage"
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
	if r, ok := e.View(rows[0].IDBan); !ok || r.ID != rows[0].ID {
		t.Errorf("an id_ban of the file leads to %q", r.ID)
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

func TestNeighboursComeNearestFirst(t *testing.T) {
	t.Parallel()
	e := lozere(t)
	at := Position{3.4985, 44.5177}
	for _, c := range []struct {
		metres float64
		limit  int
		types  []Type
	}{{500, 10, nil}, {60, 100, nil}, {10_000, 100, []Type{StreetType}}, {10_000, 100, []Type{Municipality}}, {700, 100, []Type{HouseNumber, StreetType}}} {
		got := e.Near(at, c.metres, c.limit, c.types...)
		want := e.byHand(at, c.metres, c.types)
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

// byHand looks at everything there is, one after the other.
func (e *Engine) byHand(at Position, metres float64, types []Type) (found []near) {
	if types == nil {
		types = []Type{HouseNumber, StreetType, LocalityType}
	}
	add := func(id string, kind Type, p vintage.Point) {
		d := vintage.Metres(vintage.Point{Lon: degrees(at.Lon), Lat: degrees(at.Lat)}, p)
		if d <= metres && slices.Contains(types, kind) {
			found = append(found, near{metres: int(math.Round(d)), id: id})
		}
	}
	for row := range uint32(e.v.Addresses) {
		add(e.v.ID(vintage.RowEntity(row)), HouseNumber, e.v.RowPoint(row))
	}
	for i := range uint32(e.v.Streets + e.v.Localities) {
		c := candidateOf(e.v, e.v.StreetEntity(i))
		add(e.v.ID(e.v.StreetEntity(i)), c.kind, e.v.Street(i).Point)
	}
	for i := range uint32(e.v.Communes) {
		add(e.v.Commune(i).String(), Municipality, e.v.Commune(i).Point)
	}
	sortNear(found)
	return found
}
