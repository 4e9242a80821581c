package address

import (
	"cmp"
	"math"
	"slices"

	"github.com/google/uuid"

	"lieudit/queries/address/vintage"
)

// View is the record an id names: of a commune, a street, a locality or a house number, of this vintage or an earlier
// one, or an id_ban.
func (e *Engine) View(id string) (Record, bool) {
	if commune, ok := e.v.CommuneOf(id); ok && len(id) == 5 {
		return e.communeRecord(commune, e.v.CommunePostcodes(commune).At(0)), true
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
	centre := vintage.Point{Lon: int32(math.Round(at.Lon * 1e6)), Lat: int32(math.Round(at.Lat * 1e6))}
	var found []near
	for radius := min(metres, 60); ; radius = min(radius*2, metres) {
		found = e.within(centre, radius, types)
		if len(found) >= limit || radius >= metres {
			break
		}
	}
	slices.SortFunc(found, func(x, y near) int { return cmp.Or(cmp.Compare(x.metres, y.metres), cmp.Compare(x.id, y.id)) })
	found = found[:min(len(found), limit)]
	out := make([]Neighbour, len(found))
	for i := range found {
		out[i] = Neighbour{e.record(&found[i].candidate, &question{v: e.v}), found[i].metres}
	}
	return out
}

// within are the entities of some types in a circle.
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
	if slices.Contains(types, Municipality) {
		for i := range uint32(e.v.Communes) {
			c := candidate{kind: Municipality, street: vintage.None, row: vintage.None, guess: guess{commune: i, place: vintage.None}}
			if d := vintage.Metres(centre, e.v.Commune(i).Point); d <= radius {
				found = append(found, near{c, int(math.Round(d)), e.v.Commune(i).String()})
			}
		}
	}
	return found
}
