package address

import (
	"cmp"
	"math"
	"slices"

	"lieudit/queries/address/parse"
	"lieudit/queries/address/search"
	"lieudit/queries/address/vintage"
	"lieudit/schemas/geo"
)

// Neighbour is a record and how far it lies.
type Neighbour struct {
	Record
	Distance int // metres
}

// Near returns what lies within n metres of a position and passes a filter, the nearest first, ties by id: at most limit
// records. Without types it returns all but communes. A commune is as far as its nearest address; if no commune has one so
// near, it returns the one whose bounds hold the position, at any distance.
func (e *Engine) Near(at geo.Point, metres float64, limit int, f Filter) []Neighbour {
	s := e.newNearSearch(at, f)
	if s.within != nil && len(s.within) == 0 {
		return nil
	}
	found := s.entities(metres, limit)
	if slices.Contains(s.types, Municipality) {
		found = append(found, s.communes(metres)...)
	}
	s.sort(found)
	found = found[:min(len(found), limit)]
	out := make([]Neighbour, len(found))
	for i, n := range found {
		out[i] = Neighbour{s.record(n), n.metres}
	}
	return out
}

// nearSearch searches around a centre, within a filter.
type nearSearch struct {
	e         *Engine
	at        geo.Point
	centre    vintage.Point
	types     []Type
	postcodes []uint32
	within    search.Area
	rows      [][2]uint32 // of the communes within, in their order
}

// near is a row, a street or a commune by its ordinal, and how far it lies.
type near struct {
	kind    Type
	ordinal uint32
	metres  int
}

func (e *Engine) newNearSearch(at geo.Point, f Filter) *nearSearch {
	s := &nearSearch{e: e, at: at, centre: vintage.Fix(at), types: f.Types, within: e.areaOf(f)}
	if len(s.types) == 0 {
		s.types = []Type{HouseNumber, StreetType, LocalityType}
	}
	for _, code := range f.Postcodes {
		s.postcodes = append(s.postcodes, parse.Number(code))
	}
	for _, c := range s.within {
		if from, to := e.v.CommuneStreets(c); from < to {
			s.rows = append(s.rows, [2]uint32{e.v.Street(from).From, e.v.Street(to - 1).To})
		}
	}
	return s
}

// entities are the house numbers, streets and localities within n metres: all of them, or those of a smaller circle
// that holds as many as the limit.
func (s *nearSearch) entities(metres float64, limit int) (found []near) {
	for radius := min(metres, 60); ; radius = min(radius*2, metres) {
		found = s.entitiesWithin(radius)
		if radius >= metres || nearer(found, radius-1) >= limit {
			return found
		}
	}
}

// nearer counts the results within n metres, before rounding.
func nearer(found []near, metres float64) (n int) {
	for i := range found {
		if float64(found[i].metres) <= metres {
			n++
		}
	}
	return n
}

func (s *nearSearch) entitiesWithin(radius float64) (found []near) {
	if slices.Contains(s.types, HouseNumber) {
		s.e.v.RowsAround(s.centre.Lon, s.centre.Lat, radius, func(row uint32, p vintage.Point) {
			if d := vintage.Metres(s.centre, p); d <= radius && s.acceptsRow(row) {
				found = append(found, near{HouseNumber, row, int(math.Round(d))})
			}
		})
	}
	if slices.Contains(s.types, StreetType) || slices.Contains(s.types, LocalityType) {
		s.streetsWithin(radius, func(street uint32, d float64) {
			if kind := s.streetKind(street); slices.Contains(s.types, kind) {
				found = append(found, near{kind, street, int(math.Round(d))})
			}
		})
	}
	return found
}

// streetsWithin calls yield with the streets and localities in a circle that pass the filter, whatever the types.
func (s *nearSearch) streetsWithin(radius float64, yield func(street uint32, metres float64)) {
	s.e.v.StreetsAround(s.centre.Lon, s.centre.Lat, radius, func(street uint32, p vintage.Point) {
		if d := vintage.Metres(s.centre, p); d <= radius && s.acceptsStreet(street) {
			yield(street, d)
		}
	})
}

func (s *nearSearch) streetKind(street uint32) Type {
	if s.e.v.Street(street).Locality {
		return LocalityType
	}
	return StreetType
}

// acceptsRow reports whether a house number passes the filter.
func (s *nearSearch) acceptsRow(row uint32) bool {
	if s.within == nil {
		return true
	}
	i, _ := slices.BinarySearchFunc(s.rows, row, func(r [2]uint32, row uint32) int {
		if r[1] <= row {
			return -1
		}
		return 1
	})
	if i == len(s.rows) || row < s.rows[i][0] {
		return false
	}
	return len(s.postcodes) == 0 || s.isServed(s.e.v.RowFacet(row, s.e.v.Street(s.e.v.StreetOf(row))))
}

// acceptsStreet reports whether a street passes the filter.
func (s *nearSearch) acceptsStreet(street uint32) bool {
	return s.within.Has(s.e.v.StreetCommune(street)) && (len(s.postcodes) == 0 || s.isServed(s.facet(street)))
}

func (s *nearSearch) isServed(f vintage.Facet) bool { return slices.Contains(s.postcodes, f.Postcode) }

// facet is what the record of a street shows: the first of its facets with a postcode that is asked for, otherwise the first.
func (s *nearSearch) facet(street uint32) vintage.Facet {
	from, to := s.e.v.StreetFacets(street)
	for i := from; i < to && len(s.postcodes) > 0; i++ {
		if f := s.e.v.Facet(i); s.isServed(f) {
			return f
		}
	}
	return s.e.v.Facet(from)
}

// communes are the communes with an address within n metres, otherwise the one whose bounds hold the centre.
func (s *nearSearch) communes(metres float64) (found []near) {
	nearest := map[uint32]float64{}
	note := func(commune uint32, d float64) {
		if known, ok := nearest[commune]; !ok || d < known {
			nearest[commune] = d
		}
	}
	if row, d, ok := s.nearestRow(metres); ok {
		note(s.e.v.StreetCommune(s.e.v.StreetOf(row)), d)
	}
	s.streetsWithin(metres, func(street uint32, d float64) { note(s.e.v.StreetCommune(street), d) })
	if len(nearest) == 0 {
		return s.holding()
	}
	for commune, d := range nearest {
		found = append(found, near{Municipality, commune, int(math.Round(d))})
	}
	return found
}

// nearestRow is the house number nearest to the centre within n metres. The position of a street is that of
// one of its numbers, which is too far from the centre to decide on which side of a boundary the centre lies.
func (s *nearSearch) nearestRow(metres float64) (row uint32, least float64, ok bool) {
	for radius := min(metres, 60); ; radius = min(radius*2, metres) {
		least = radius
		s.e.v.RowsAround(s.centre.Lon, s.centre.Lat, radius, func(r uint32, p vintage.Point) {
			if d := vintage.Metres(s.centre, p); (d < least || d == least && (!ok || r < row)) && s.acceptsRow(r) {
				row, least, ok = r, d, true
			}
		})
		if ok || radius >= metres {
			return row, least, ok
		}
	}
}

// holding is the commune whose bounds hold the centre, as far as its nearest street. Bounds of neighbours overlap: that of
// the nearest house number counts, otherwise the one with the nearest street.
func (s *nearSearch) holding() []near {
	best, least := uint32(vintage.None), math.Inf(1)
	row, toRow, isNumbered := s.nearestRow(lastCircle)
	for _, c := range s.e.table.Around(s.at.Lon, s.at.Lat) {
		commune, ok := s.e.v.CommuneOf(c.Code)
		if !ok || !s.within.Has(commune) {
			continue
		}
		if isNumbered && s.e.v.StreetCommune(s.e.v.StreetOf(row)) == commune {
			best, least = commune, toRow
			break
		}
		if d := s.toNearestStreet(commune); d < least {
			best, least = commune, d
		}
	}
	if best == vintage.None {
		return nil
	}
	return []near{{Municipality, best, int(math.Round(least))}}
}

// toNearestStreet is the distance to the nearest street or locality of a commune.
func (s *nearSearch) toNearestStreet(commune uint32) float64 {
	least := math.Inf(1)
	for street, to := s.e.v.CommuneStreets(commune); street < to; street++ {
		least = min(least, vintage.Metres(s.centre, s.e.v.Street(street).Point))
	}
	return least
}

// sort puts the nearest first, in whole metres, and breaks ties by id.
func (s *nearSearch) sort(found []near) {
	slices.SortFunc(found, func(x, y near) int {
		if c := cmp.Compare(x.metres, y.metres); c != 0 {
			return c
		}
		return cmp.Compare(s.id(x), s.id(y))
	})
}

func (s *nearSearch) id(n near) string {
	switch n.kind {
	case Municipality:
		return s.e.v.Commune(n.ordinal).String()
	case HouseNumber:
		return s.e.v.ID(vintage.RowEntity(n.ordinal))
	}
	return s.e.v.ID(s.e.v.StreetEntity(n.ordinal))
}

// record makes the record of a result, with a postcode of the filter if it has several.
func (s *nearSearch) record(n near) Record {
	switch n.kind {
	case Municipality:
		codes := s.e.v.CommunePostcodes(n.ordinal)
		for i := range codes.Len() {
			if slices.Contains(s.postcodes, codes.At(i)) {
				return s.e.communeRecord(n.ordinal, codes.At(i))
			}
		}
		return s.e.communeRecord(n.ordinal, codes.At(0))
	case HouseNumber:
		return s.e.rowRecord(n.ordinal, s.e.v.StreetOf(n.ordinal))
	}
	return s.e.streetRecord(n.ordinal, s.facet(n.ordinal))
}
