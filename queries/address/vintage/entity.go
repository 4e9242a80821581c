package vintage

import "sort"

// Code is a commune's INSEE code, padded with zero bytes.
type Code [8]byte

// CodeOf is a code as read.
func CodeOf(s string) (c Code) {
	copy(c[:], s)
	return c
}

func (c Code) String() string {
	n := 0
	for n < len(c) && c[n] != 0 {
		n++
	}
	return string(c[:n])
}

// The sizes of the records. Communes, streets and facets end in one that only says where the last but one ends.
const (
	communeSize = 40
	placeSize   = 20
	streetSize  = 52
	facetSize   = 16
)

// Point is a position: millionths of degrees, and centimetres in the legal projection.
type Point struct{ Lon, Lat, X, Y int32 }

// Commune is a commune of the vintage. They are sorted by the number of their addresses, the largest first, so that
// ordinals sort by importance.
type Commune struct {
	Code
	Name     uint32 // a name
	From, To uint32 // its streets
	Rows     uint32 // how many addresses it has
	Point
}

// Commune is the commune of an ordinal.
func (v *Vintage) Commune(i uint32) Commune {
	r := v.communes.at(i)
	from, to := v.CommuneStreets(i)
	return Commune{Code: r.code(0), Name: r.u32(8), From: from, To: to, Rows: r.u32(16),
		Point: Point{r.i32(20), r.i32(24), r.i32(28), r.i32(32)}}
}

// CommuneStreets are the streets of a commune.
func (v *Vintage) CommuneStreets(i uint32) (from, to uint32) {
	return bounded(v.communes.at(i).u32(12), v.communes.at(i+1).u32(12), v.Streets+v.Localities)
}

// bounded is a range that lies within n, or an empty one.
func bounded(from, to uint32, n int) (uint32, uint32) {
	if from > to || uint64(to) > uint64(n) {
		return 0, 0
	}
	return from, to
}

// CommunePostcodes are the postcodes of a commune's addresses, sorted.
func (v *Vintage) CommunePostcodes(i uint32) Column {
	all := Column(v.parts[secCommunePostcodes])
	from, to := bounded(v.communes.at(i).u32(36), v.communes.at(i+1).u32(36), all.Len())
	return all[from*4 : to*4]
}

// PlaceKind tells why a name stands for a commune.
type PlaceKind uint32

const (
	// Current is the commune's own name.
	Current PlaceKind = iota
	// Old is the name of a former commune that is part of it now.
	Old
	// Delivery is what La Poste writes on the last line.
	Delivery
	// Parent is the city an arrondissement belongs to.
	Parent
)

// Place is a name under which a commune is known.
type Place struct {
	Name    uint32
	Commune uint32
	Kind    PlaceKind
	Code    // of the former commune
}

// Place is the place of an ordinal.
func (v *Vintage) Place(i uint32) Place {
	r := v.places.at(i)
	return Place{Name: r.u32(0), Commune: r.u32(4), Kind: PlaceKind(r.u32(8)), Code: r.code(12)}
}

// CommunePlaces are the places that a commune is known as.
func (v *Vintage) CommunePlaces(commune uint32) (from, to uint32) {
	first := func(least uint32) uint32 {
		return uint32(sort.Search(v.places.len(), func(i int) bool { return v.places.at(uint32(i)).u32(4) >= least }))
	}
	return first(commune), first(commune + 1)
}

// Street is a named way of one commune, or a locality, which has no rows.
type Street struct {
	Commune  uint32
	Name     uint32 // a name
	AFNOR    uint32 // a name, or none
	From, To uint32 // its rows, sorted by number and repetition index
	Facets   uint32 // its first facet
	Locality bool
	Point
	key uint32
}

// Street is the street of an ordinal. Streets are sorted by commune.
func (v *Vintage) Street(i uint32) Street {
	r, next := v.streets.at(i), v.streets.at(i+1)
	from, to := bounded(r.u32(8), next.u32(8), v.Addresses)
	return Street{Commune: r.u32(0), Name: r.u32(4), From: from, To: to, Facets: r.u32(12), AFNOR: r.u32(24),
		Locality: r.u32(28) != 0, Point: Point{r.i32(32), r.i32(36), r.i32(40), r.i32(44)}, key: r.u32(20)}
}

// StreetName is the name of a street.
func (v *Vintage) StreetName(i uint32) uint32 { return v.streets.at(i).u32(4) }

// StreetCommune is the commune of a street.
func (v *Vintage) StreetCommune(i uint32) uint32 { return v.streets.at(i).u32(0) }

// StreetFacets is how many facets a street has.
func (v *Vintage) StreetFacets(i uint32) (from, to uint32) {
	return bounded(v.streets.at(i).u32(12), v.streets.at(i+1).u32(12), v.facets.len())
}

// StreetKey is the interoperability key of a street or locality.
func (v *Vintage) StreetKey(i uint32) []byte {
	from, to := bounded(v.streets.at(i).u32(20), v.streets.at(i+1).u32(20), len(v.parts[secStreetKeys]))
	return v.parts[secStreetKeys][from:to]
}

// StreetOf is the street that holds a row.
func (v *Vintage) StreetOf(row uint32) uint32 {
	lo, hi := uint32(0), uint32(max(v.streets.len()-1, 0))
	for lo < hi {
		if mid := (lo + hi) / 2; v.streets.at(mid+1).u32(8) <= row {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// Facet is what many rows of a street share.
type Facet struct {
	Postcode uint32 // 0 when there is none
	Old      uint32 // the place of the former commune, or none
	LieuDit  uint32 // a name, or none
	Delivery uint32 // a name, or none
}

// None is the ordinal of what is absent.
const None = none

// Facet is the facet of an ordinal.
func (v *Vintage) Facet(i uint32) Facet {
	r := v.facets.at(i)
	return Facet{r.u32(0), r.u32(4), r.u32(8), r.u32(12)}
}

// Number is the house number of a row.
func (v *Vintage) Number(row uint32) uint32 { return uint32(shorts(v.parts[secNumbers]).at(int(row))) }

// Rep is the repetition index of a row.
func (v *Vintage) Rep(row uint32) []byte {
	rep := shorts(v.parts[secReps]).at(int(row))
	if rep == 0 {
		return nil
	}
	return v.Name(Column(v.parts[secRepNames]).At(int(rep) - 1))
}

// RowFacet is the facet of a row of a street.
func (v *Vintage) RowFacet(row uint32, s Street) Facet {
	return v.Facet(s.Facets + uint32(shorts(v.parts[secRowFacets]).at(int(row))))
}

// RowKind is what the position of a row is of, a name or none, and whether the commune certified it.
func (v *Vintage) RowKind(row uint32) (position uint32, certified bool) {
	kinds := v.parts[secRowKinds]
	if int(row) >= len(kinds) {
		return none, false
	}
	position = none
	if at := int(kinds[row] >> 1); at > 0 {
		position = Column(v.parts[secPositions]).At(at - 1)
	}
	return position, kinds[row]&1 != 0
}

// RowPoint is where a row stands.
func (v *Vintage) RowPoint(row uint32) Point {
	at := func(s section) int32 { return int32(Column(v.parts[s]).At(int(row))) }
	return Point{at(secLons), at(secLats), at(secXs), at(secYs)}
}

// Name is the text of a name.
func (v *Vintage) Name(i uint32) []byte {
	if i == none {
		return nil
	}
	return v.names.at(i)
}

// BareTerms are the terms of a name without links, or all of them when there are no others.
func (v *Vintage) BareTerms(name uint32) []uint32 {
	column := v.NameTerms(name)
	terms := make([]uint32, column.Len())
	for i := range terms {
		terms[i] = column.At(i)
	}
	return withoutLinks(terms, func(t uint32) string { return string(v.Term(t)) })
}

// NameTerms are the terms of a name, in its order.
func (v *Vintage) NameTerms(i uint32) Column {
	if i == none {
		return nil
	}
	return v.nameTerms.at(i)
}
