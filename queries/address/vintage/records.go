package vintage

import (
	"encoding/binary"
	"sort"

	"lieudit/queries/address/text"
	"lieudit/schemas/geo"
)

// Column is a sequence of 32-bit numbers in the file. Positions outside of it read as zero, so a damaged file cannot
// crash a reader.
type Column []byte

// Len is the number of items.
func (c Column) Len() int { return len(c) / 4 }

// At is the item at i.
func (c Column) At(i int) uint32 {
	at := i * 4
	if i < 0 || at+4 > len(c) {
		return 0
	}
	return binary.LittleEndian.Uint32(c[at:])
}

// From is the part of a sorted column from the first item that is at least least.
func (c Column) From(least uint32) Column {
	i := sort.Search(c.Len(), func(i int) bool { return c.At(i) >= least })
	return c[i*4:]
}

// indexOf is the position of a number in a sorted column.
func (c Column) indexOf(n uint32) (i int, ok bool) {
	i = sort.Search(c.Len(), func(i int) bool { return c.At(i) >= n })
	return i, i < c.Len() && c.At(i) == n
}

// Within is the part of a sorted column with the items in [from, to).
func (c Column) Within(from, to uint32) Column {
	c = c.From(from)
	i := sort.Search(c.Len(), func(i int) bool { return c.At(i) >= to })
	return c[:i*4]
}

// column16 is a column of 16-bit numbers.
type column16 []byte

func (c column16) value(i int) uint16 {
	at := i * 2
	if i < 0 || at+2 > len(c) {
		return 0
	}
	return binary.LittleEndian.Uint16(c[at:])
}

// lists is a sequence of lists of numbers: list i lies between first[i] and first[i+1] of items.
type lists struct{ first, items Column }

func (l lists) list(i uint32) Column {
	if uint64(i)+1 >= uint64(l.first.Len()) {
		return nil
	}
	from, to := int(l.first.At(int(i))), int(l.first.At(int(i)+1))
	if from > to || to > l.items.Len() {
		return nil
	}
	return l.items[from*4 : to*4 : to*4]
}

// texts is a sequence of texts, laid out like lists.
type texts struct {
	first Column
	bytes []byte
}

func (t texts) count() int { return max(t.first.Len()-1, 0) }

func (t texts) text(i uint32) []byte {
	if uint64(i)+1 >= uint64(t.first.Len()) {
		return nil
	}
	from, to := int(t.first.At(int(i))), int(t.first.At(int(i)+1))
	if from > to || to > len(t.bytes) {
		return nil
	}
	return t.bytes[from:to:to]
}

// records is a sequence of records of one size. Records outside of it are nil and read as zero.
type records struct {
	bytes []byte
	size  int
}

func (r records) count() int { return len(r.bytes) / r.size }

func (r records) record(i uint32) record {
	at := int(i) * r.size
	if at+r.size > len(r.bytes) {
		return nil
	}
	return record(r.bytes[at : at+r.size : at+r.size])
}

// record is the bytes of one record. Fields are read by their offset.
type record []byte

func (r record) u32(at int) uint32 {
	if at+4 > len(r) {
		return 0
	}
	return binary.LittleEndian.Uint32(r[at:])
}

func (r record) i32(at int) int32 { return int32(r.u32(at)) }

func (r record) code(at int) Code {
	var c Code
	if at+len(c) <= len(r) {
		copy(c[:], r[at:])
	}
	return c
}

// Code is the INSEE code of a commune, padded with zero bytes.
type Code [8]byte

// CodeOf converts an INSEE code.
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

// The sizes of the records. Communes, streets and facets have one record more at the end, with the end of the last range.
const (
	communeSize = 40
	placeSize   = 20
	streetSize  = 52
	facetSize   = 16
)

// Point is a position: PointUnit parts of a degree (WGS 84), and centimetres in the legal projection.
type Point struct{ Lon, Lat, X, Y int32 }

// PointUnit is how many units of a Point are a degree.
const PointUnit = 1e6

// Fix returns the Point of a position in degrees, without a position in the legal projection.
func Fix(p geo.Point) Point {
	return Point{Lon: roundInt32(p.Lon * PointUnit), Lat: roundInt32(p.Lat * PointUnit)}
}

// Degrees returns the position in degrees.
func (p Point) Degrees() geo.Point {
	return geo.Point{Lon: float64(p.Lon) / PointUnit, Lat: float64(p.Lat) / PointUnit}
}

// Commune is a commune of the vintage. Communes are sorted by the number of their addresses, the largest first, so that
// their ordinals rank them.
type Commune struct {
	Code
	Name     uint32 // a name
	From, To uint32 // range of its streets
	Rows     uint32 // number of its addresses
	Point
}

// Commune returns the commune of an ordinal.
func (v *Vintage) Commune(i uint32) Commune {
	r := v.communes.record(i)
	from, to := v.CommuneStreets(i)
	return Commune{Code: r.code(0), Name: r.u32(8), From: from, To: to, Rows: r.u32(16),
		Point: Point{r.i32(20), r.i32(24), r.i32(28), r.i32(32)}}
}

// CommuneStreets is the range of a commune's streets.
func (v *Vintage) CommuneStreets(i uint32) (from, to uint32) {
	return bounded(v.communes.record(i).u32(12), v.communes.record(i+1).u32(12), v.Streets+v.Localities)
}

// bounded is a range that lies within n, or an empty range.
func bounded(from, to uint32, n int) (uint32, uint32) {
	if from > to || uint64(to) > uint64(n) {
		return 0, 0
	}
	return from, to
}

// CommunePostcodes returns the postcodes of a commune's addresses, sorted.
func (v *Vintage) CommunePostcodes(i uint32) Column {
	all := Column(v.sections[secCommunePostcodes])
	from, to := bounded(v.communes.record(i).u32(36), v.communes.record(i+1).u32(36), all.Len())
	return all[from*4 : to*4]
}

// PlaceKind is why a name stands for a commune.
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

// Place returns the place of an ordinal.
func (v *Vintage) Place(i uint32) Place {
	r := v.places.record(i)
	return Place{Name: r.u32(0), Commune: r.u32(4), Kind: PlaceKind(r.u32(8)), Code: r.code(12)}
}

// CommunePlaces is the range of the places that name a commune.
func (v *Vintage) CommunePlaces(commune uint32) (from, to uint32) {
	first := func(least uint32) uint32 {
		return uint32(sort.Search(v.places.count(), func(i int) bool { return v.places.record(uint32(i)).u32(4) >= least }))
	}
	return first(commune), first(commune + 1)
}

// Street is a named street of one commune, or a locality, which has no rows.
type Street struct {
	Commune  uint32
	Name     uint32 // a name
	AFNOR    uint32 // a name, or None
	From, To uint32 // range of its rows, sorted by number and repetition index
	Facets   uint32 // its first facet
	Locality bool
	Point
	key uint32
}

// Street returns the street of an ordinal. Streets are sorted by commune.
func (v *Vintage) Street(i uint32) Street {
	r := v.streets.record(i)
	from, to := v.streetRows(i)
	return Street{Commune: r.u32(0), Name: r.u32(4), From: from, To: to, Facets: r.u32(12), AFNOR: r.u32(24),
		Locality: r.u32(28) != 0, Point: Point{r.i32(32), r.i32(36), r.i32(40), r.i32(44)}, key: r.u32(20)}
}

// StreetName is the name of a street, as an ordinal of Name.
func (v *Vintage) StreetName(i uint32) uint32 { return v.streets.record(i).u32(4) }

// StreetCommune is the commune of a street.
func (v *Vintage) StreetCommune(i uint32) uint32 { return v.streets.record(i).u32(0) }

// StreetFacets is the range of a street's facets.
func (v *Vintage) StreetFacets(i uint32) (from, to uint32) {
	return bounded(v.streets.record(i).u32(12), v.streets.record(i+1).u32(12), v.facets.count())
}

// StreetKey is the interoperability key of a street or locality: the beginning of the ids of its rows.
func (v *Vintage) StreetKey(i uint32) []byte {
	from, to := bounded(v.streets.record(i).u32(20), v.streets.record(i+1).u32(20), len(v.sections[secStreetKeys]))
	return v.sections[secStreetKeys][from:to]
}

// StreetOf is the street of a row.
func (v *Vintage) StreetOf(row uint32) uint32 {
	lo, hi := uint32(0), uint32(max(v.streets.count()-1, 0))
	for lo < hi {
		if mid := (lo + hi) / 2; v.streets.record(mid+1).u32(8) <= row {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// Facet is a combination of values that many rows of a street share. A row stores the number of its facet, which saves
// the values themselves.
type Facet struct {
	Postcode uint32 // 0 if unknown
	Old      uint32 // the place of the former commune, or None
	LieuDit  uint32 // a name, or None
	Delivery uint32 // a name, or None
}

// None is the ordinal of something absent.
const None = none

// Facet returns the facet of an ordinal.
func (v *Vintage) Facet(i uint32) Facet {
	r := v.facets.record(i)
	return Facet{r.u32(0), r.u32(4), r.u32(8), r.u32(12)}
}

// Number is the house number of a row.
func (v *Vintage) Number(row uint32) uint32 {
	return uint32(column16(v.sections[secNumbers]).value(int(row)))
}

// Rep is the repetition index of a row.
func (v *Vintage) Rep(row uint32) []byte {
	rep := column16(v.sections[secReps]).value(int(row))
	if rep == 0 {
		return nil
	}
	return v.Name(Column(v.sections[secRepNames]).At(int(rep) - 1))
}

// RowFacet returns the facet of a row of a street.
func (v *Vintage) RowFacet(row uint32, s Street) Facet {
	return v.Facet(s.Facets + uint32(column16(v.sections[secRowFacets]).value(int(row))))
}

// RowKind returns the kind of thing at the position of a row, as a name or None, and whether the commune certified the
// row.
func (v *Vintage) RowKind(row uint32) (position uint32, certified bool) {
	kinds := v.sections[secRowKinds]
	if int(row) >= len(kinds) {
		return none, false
	}
	position = none
	if at := int(kinds[row] >> 1); at > 0 {
		position = Column(v.sections[secPositions]).At(at - 1)
	}
	return position, kinds[row]&1 != 0
}

// RowPoint is the position of a row.
func (v *Vintage) RowPoint(row uint32) Point {
	at := func(s section) int32 { return int32(Column(v.sections[s]).At(int(row))) }
	return Point{at(secLons), at(secLats), at(secXs), at(secYs)}
}

// Name is the text of a name, nil for None.
func (v *Vintage) Name(i uint32) []byte {
	if i == none {
		return nil
	}
	return v.names.text(i)
}

// BareTerms returns the terms of a name without stop words, or all of them if they are all stop words.
func (v *Vintage) BareTerms(name uint32) []uint32 {
	column := v.NameTerms(name)
	terms, bare := make([]uint32, column.Len()), 0
	for i := range terms {
		terms[i] = column.At(i)
		if text.ClassOf(string(v.Term(terms[i]))) != text.StopWord {
			terms[bare], terms[i] = terms[i], terms[bare]
			bare++
		}
	}
	if bare == 0 {
		return terms
	}
	return terms[:bare]
}

// NameTerms returns the terms of a name in their order.
func (v *Vintage) NameTerms(i uint32) Column {
	if i == none {
		return nil
	}
	return v.nameTerms.list(i)
}

// Metres is geo.Distance of two points, exact to a millimetre over the distances within a commune.
func Metres(a, b Point) float64 {
	const unit = geo.Radian / PointUnit
	return geo.Haversine(float64(a.Lat)*unit, float64(b.Lat)*unit, float64(a.Lat-b.Lat)*unit, float64(a.Lon-b.Lon)*unit)
}
