package address

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/google/uuid"

	"lieudit/queries/address/vintage"
)

// View is the record an id names: of a commune, a street, a locality or a house number, of this vintage or an earlier
// one, or an id_ban.
func (e *Engine) View(id string) (Record, bool) {
	if len(id) == 5 {
		return e.viewCommune(id)
	}
	entity, ok := e.v.ByID(id)
	if !ok && len(id) == 36 {
		if u, err := uuid.Parse(id); err == nil {
			entity, ok = e.v.ByUUID(u)
		}
	}
	if !ok {
		return Record{}, false
	}
	c := candidateOf(e.v, entity)
	return e.record(&c, &question{v: e.v}), true
}

// viewCommune is the commune of a code. That of Paris, Lyon or Marseille is the city, which the base knows by its
// arrondissements; that of a former commune is the one it is part of.
func (e *Engine) viewCommune(code string) (Record, bool) {
	ordinals := e.ordinals(strings.ToUpper(code))
	if len(ordinals) == 0 {
		return e.unmapped(strings.ToUpper(code))
	}
	r := e.communeRecord(ordinals[0], e.v.CommunePostcodes(ordinals[0]).At(0))
	if known, ok := e.table.ByCode(code); ok && len(ordinals) > 1 {
		r.ID, r.CityCode, r.City, r.Label, r.District, r.Population = known.Code, known.Code, known.Name, known.Name, "", int(known.Population)
		r.CityLine = cityLine(r.Postcode, known.Name)
		if known.Located() {
			r.Lon, r.Lat, r.X, r.Y = known.Lon, known.Lat, 0, 0
		}
	}
	return r, true
}

// Neighbour is a record and how far it lies.
type Neighbour struct {
	Record
	Distance int // metres
}

// near is a candidate and how far it lies.
type near struct {
	candidate
	metres int
	id     string
}

// Near is what lies within so many metres of a position, the nearest first, ties by id: at most limit records. Of types
// none means all but communes.
func (e *Engine) Near(at Position, metres float64, limit int, types ...Type) []Neighbour {
	if len(types) == 0 {
		types = []Type{HouseNumber, StreetType, LocalityType}
	}
	centre := vintage.Point{Lon: degrees(at.Lon), Lat: degrees(at.Lat)}
	var found []near
	for radius := min(metres, 60); ; radius = min(radius*2, metres) {
		found = e.within(centre, radius, types)
		if radius >= metres || nearer(found, radius-1) >= limit {
			break
		}
	}
	if slices.Contains(types, Municipality) {
		found = append(found, e.communesWithin(centre, metres)...)
	}
	sortNear(found)
	found = found[:min(len(found), limit)]
	out := make([]Neighbour, len(found))
	for i := range found {
		out[i] = Neighbour{e.record(&found[i].candidate, &question{v: e.v}), found[i].metres}
	}
	return out
}

func sortNear(found []near) {
	slices.SortFunc(found, func(x, y near) int { return cmp.Or(cmp.Compare(x.metres, y.metres), cmp.Compare(x.id, y.id)) })
}

// nearer is how many lie no further than so many metres, before rounding.
func nearer(found []near, metres float64) (n int) {
	for i := range found {
		if float64(found[i].metres) <= metres {
			n++
		}
	}
	return n
}

// within are the entities of some types in a circle, communes aside.
func (e *Engine) within(centre vintage.Point, radius float64, types []Type) (found []near) {
	keep := func(c candidate, entity vintage.Entity, p vintage.Point) {
		if d := vintage.Metres(centre, p); d <= radius && slices.Contains(types, c.kind) {
			found = append(found, near{c, int(math.Round(d)), e.v.ID(entity)})
		}
	}
	if slices.Contains(types, HouseNumber) {
		e.v.RowsAround(centre.Lon, centre.Lat, radius, func(row uint32, p vintage.Point) {
			if vintage.Metres(centre, p) <= radius {
				keep(candidateOf(e.v, vintage.RowEntity(row)), vintage.RowEntity(row), p)
			}
		})
	}
	if slices.Contains(types, StreetType) || slices.Contains(types, LocalityType) {
		e.v.StreetsAround(centre.Lon, centre.Lat, radius, func(street uint32, p vintage.Point) {
			keep(candidateOf(e.v, e.v.StreetEntity(street)), e.v.StreetEntity(street), p)
		})
	}
	return found
}

// communesWithin are the communes whose centre lies in a circle.
func (e *Engine) communesWithin(centre vintage.Point, radius float64) (found []near) {
	const least = 0.11 // metres in a millionth of a degree of latitude
	for i := range uint32(e.v.Communes) {
		at := e.v.Commune(i)
		if math.Abs(float64(at.Lat)-float64(centre.Lat))*least > radius {
			continue
		}
		c := candidate{kind: Municipality, street: vintage.None, row: vintage.None, guess: guess{commune: i, place: vintage.None}}
		if d := vintage.Metres(centre, at.Point); d <= radius {
			found = append(found, near{c, int(math.Round(d)), at.String()})
		}
	}
	return found
}
