package vintage

import (
	"bytes"
	"math"
	"math/bits"
	"sort"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"lieudit/queries/address/text"
	"lieudit/schemas/geo"
)

// minTwoEditTerm is the length from which on terms are found within two edits; shorter ones are found within one.
const minTwoEditTerm = 8

// Terms is the number of terms. Terms are sorted, so that those with a common prefix are a range.
func (v *Vintage) Terms() uint32 { return uint32(v.terms.count()) }

// Term is the text of a term.
func (v *Vintage) Term(i uint32) []byte { return v.terms.text(i) }

// FindTerm returns the ordinal of a term.
func (v *Vintage) FindTerm(term string) (uint32, bool) {
	i := v.searchTerm(term)
	return i, i < v.Terms() && string(v.terms.text(i)) == term
}

// searchTerm is the ordinal of the first term that is not before the given one.
func (v *Vintage) searchTerm(term string) uint32 {
	heads, head := v.termHeads(), headOf([]byte(term))
	from, to := heads[head], heads[head+1]
	return from + uint32(sort.Search(int(to-from), func(i int) bool { return string(v.terms.text(from+uint32(i))) >= term }))
}

// headOf is the first two bytes of a term as a number, in the order of terms.
func headOf(term []byte) int {
	switch len(term) {
	case 0:
		return 0
	case 1:
		return int(term[0]) << 8
	}
	return int(term[0])<<8 | int(term[1])
}

// headsOf returns for each head the ordinal of the first term that has this head or a later one. The search for a term begins
// with it, since a search in all of them spends most of its time on reading terms far apart.
func headsOf(terms texts) []uint32 {
	heads, next := make([]uint32, 1<<16+1), 0
	for i := range uint32(terms.count()) {
		for head := headOf(terms.text(i)); next <= head; next++ {
			heads[next] = i
		}
	}
	for ; next < len(heads); next++ {
		heads[next] = uint32(terms.count())
	}
	return heads
}

// TermsWithPrefix is the range of the terms that begin with a prefix.
func (v *Vintage) TermsWithPrefix(prefix string) (from, to uint32) {
	from = v.searchTerm(prefix)
	rest := v.terms.count() - int(from)
	return from, from + uint32(sort.Search(rest, func(i int) bool {
		return !bytes.HasPrefix(v.terms.text(from+uint32(i)), []byte(prefix))
	}))
}

// Like calls yield with the terms near a term and their distance in edits, edits+1 for one that is farther. Some terms
// come more than once. It stops when yield returns false.
func (v *Vintage) Like(term string, edits int, yield func(term uint32, distance int) bool) {
	going := true
	text.Deletes(term, edits, func(left []byte) {
		if !going {
			return
		}
		bucket := v.deletes.list(bucketOf(left, v.deletes.first.Len()-1))
		for i := 0; i < bucket.Len() && going; i++ {
			id := bucket.At(i)
			going = yield(id, text.Distance(term, string(v.terms.text(id)), edits))
		}
	})
}

// Sounding calls yield with the terms that have a phonetic key. It stops when yield returns false.
func (v *Vintage) Sounding(sound string, yield func(term uint32) bool) {
	bucket := v.sounds.list(bucketOf([]byte(sound), v.sounds.first.Len()-1))
	for i := range bucket.Len() {
		if id := bucket.At(i); text.PhoneticKey(string(v.terms.text(id))) == sound && !yield(id) {
			return
		}
	}
}

// bucketOf is the bucket of a key among a power of two of buckets (FNV-1a, folded).
func bucketOf(key []byte, buckets int) uint32 {
	if buckets < 1 {
		return none
	}
	h := uint64(14695981039346656037)
	for _, c := range key {
		h = (h ^ uint64(c)) * 1099511628211
	}
	h ^= h >> 32
	return uint32(h) & uint32(1<<(bits.Len(uint(buckets))-1)-1)
}

// StreetsWith returns the streets whose name has a term, sorted, so that those of the largest communes come first.
func (v *Vintage) StreetsWith(term uint32) Column { return v.termStreets.list(term) }

// CountStreetsWith returns how many streets have a term in [from, to), each counted once for each of these terms that it has.
func (v *Vintage) CountStreetsWith(from, to uint32) int {
	first := v.termStreets.first
	if from >= to || uint64(to) >= uint64(first.Len()) {
		return 0
	}
	return max(int(first.At(int(to)))-int(first.At(int(from))), 0)
}

// PlacesWith returns the places whose name has a term, in the same order.
func (v *Vintage) PlacesWith(term uint32) Column { return v.termPlaces.list(term) }

// PostcodeCommunes returns the communes that have addresses with a postcode.
func (v *Vintage) PostcodeCommunes(postcode uint32) Column {
	codes := Column(v.sections[secPostcodes])
	i := sort.Search(codes.Len(), func(i int) bool { return codes.At(i) >= postcode })
	if codes.At(i) != postcode {
		return nil
	}
	return lists{Column(v.sections[secPostcodesFirst]), Column(v.sections[secPostcodeCommunes])}.list(uint32(i))
}

// PostcodesCommunes returns the communes that have addresses with the postcodes in [from, to). A commune comes once for
// each of its postcodes.
func (v *Vintage) PostcodesCommunes(from, to uint32) Column {
	codes, first := Column(v.sections[secPostcodes]), Column(v.sections[secPostcodesFirst])
	i := sort.Search(codes.Len(), func(i int) bool { return codes.At(i) >= from })
	j := sort.Search(codes.Len(), func(i int) bool { return codes.At(i) >= to })
	items := Column(v.sections[secPostcodeCommunes])
	a, b := bounded(first.At(i), first.At(j), items.Len())
	return items[a*4 : b*4]
}

// CommuneOf returns the commune with an INSEE code.
func (v *Vintage) CommuneOf(code string) (uint32, bool) {
	byCode, want := Column(v.sections[secCommunesByCode]), CodeOf(code)
	i := sort.Search(byCode.Len(), func(i int) bool {
		c := v.communes.record(byCode.At(i)).code(0)
		return bytes.Compare(c[:], want[:]) >= 0
	})
	if i == byCode.Len() || v.communes.record(byCode.At(i)).code(0) != want {
		return 0, false
	}
	return byCode.At(i), true
}

// Gazetteer is the places whose names begin with the same terms, as a range of all places in the order of their names.
// Stop words are left out. Narrow extends the terms by one.
type Gazetteer struct {
	v        *Vintage
	depth    int
	from, to int
}

// Gazetteer returns the range of all places.
func (v *Vintage) Gazetteer() Gazetteer {
	return Gazetteer{v: v, to: Column(v.sections[secPlacesByName]).Len()}
}

// Len is the number of places.
func (g Gazetteer) Len() int { return g.to - g.from }

// key is the terms of the place at i in the order of names.
func (g Gazetteer) key(i int) Column {
	return lists{Column(g.v.sections[secPlaceKeysFirst]), Column(g.v.sections[secPlaceKeys])}.list(uint32(i))
}

// Narrow is the range of the places whose name continues with a term in [from, to).
func (g Gazetteer) Narrow(from, to uint32) Gazetteer {
	isBefore := func(i int, least uint32) bool {
		key := g.key(i)
		return key.Len() <= g.depth || key.At(g.depth) < least
	}
	lo := g.from + sort.Search(g.to-g.from, func(i int) bool { return !isBefore(g.from+i, from) })
	// The range is nearly always short, so the search for its end doubles its steps.
	step, hi := 1, lo
	for hi+step <= g.to && isBefore(hi+step-1, to) {
		hi += step
		step *= 2
	}
	hi += sort.Search(min(step-1, g.to-hi), func(i int) bool { return !isBefore(hi+i, to) })
	return Gazetteer{g.v, g.depth + 1, lo, hi}
}

// CountComplete is the number of places whose name has no further term. They come first.
func (g Gazetteer) CountComplete() int {
	return sort.Search(g.to-g.from, func(i int) bool { return g.key(g.from+i).Len() > g.depth })
}

// PlaceAt is the ordinal of the place at i of the range.
func (g Gazetteer) PlaceAt(i int) uint32 { return Column(g.v.sections[secPlacesByName]).At(g.from + i) }

// Place is PlaceAt with the number of terms that the name has beyond the range's.
func (g Gazetteer) Place(i int) (place uint32, unnamed int) {
	return g.PlaceAt(i), g.key(g.from+i).Len() - g.depth
}

// zOrder is the position of a point on a Z-order curve.
func zOrder(lon, lat int32) uint64 {
	return spreadBits(uint32(lon)^(1<<31)) | spreadBits(uint32(lat)^(1<<31))<<1
}

// spreadBits inserts a zero bit before each bit.
func spreadBits(x uint32) uint64 {
	v := uint64(x)
	v = (v | v<<16) & 0x0000ffff0000ffff
	v = (v | v<<8) & 0x00ff00ff00ff00ff
	v = (v | v<<4) & 0x0f0f0f0f0f0f0f0f
	v = (v | v<<2) & 0x3333333333333333
	return (v | v<<1) & 0x5555555555555555
}

// RowsAround calls yield with the rows in a box around a circle of n metres, and with some beyond it. The caller
// checks the distance.
func (v *Vintage) RowsAround(lon, lat int32, metres float64, yield func(row uint32, p Point)) {
	scanAround(Column(v.sections[secRowsByPosition]), v.RowPoint, box{lon, lat, metres}, yield)
}

// StreetsAround is RowsAround for streets and localities.
func (v *Vintage) StreetsAround(lon, lat int32, metres float64, yield func(street uint32, p Point)) {
	at := func(i uint32) Point {
		r := v.streets.record(i)
		return Point{r.i32(32), r.i32(36), r.i32(40), r.i32(44)}
	}
	scanAround(Column(v.sections[secStreetsByPosition]), at, box{lon, lat, metres}, yield)
}

// box is a circle: its centre in millionths of degrees, its radius in metres.
type box struct {
	lon, lat int32
	metres   float64
}

// halfSize is half the width and half the height of the box around the circle, in millionths of degrees.
func (b box) halfSize() (w, h float64) {
	h = b.metres/geo.MetresPerDegree*PointUnit + 1 // never smaller than the circle, however numbers are rounded
	return h / max(math.Cos(float64(b.lat)/PointUnit*geo.Radian), 0.01), h
}

// scanAround scans the cells of the curve that touch the box. Cells are squares, of the smallest size that needs few of
// them.
func scanAround(order Column, at func(uint32) Point, b box, yield func(uint32, Point)) {
	w, h := b.halfSize()
	level := uint(0)
	for float64(uint64(1)<<level) < max(w, h) && level < 31 {
		level++
	}
	west, east := curveCoordinate(float64(b.lon)-w), curveCoordinate(float64(b.lon)+w)
	south, north := curveCoordinate(float64(b.lat)-h), curveCoordinate(float64(b.lat)+h)
	for y := south >> level; y <= north>>level; y++ {
		for x := west >> level; x <= east>>level; x++ {
			scanCell(order, at, (spreadBits(uint32(x<<level)) | spreadBits(uint32(y<<level))<<1), 2*level, yield)
		}
	}
}

// curveCoordinate shifts a coordinate into the unsigned range of the curve.
func curveCoordinate(f float64) uint64 { return uint64(min(max(f+(1<<31), 0), 1<<32-1)) }

// scanCell calls yield with the points of one cell: a contiguous range of the order.
func scanCell(order Column, at func(uint32) Point, from uint64, bits uint, yield func(uint32, Point)) {
	i := sort.Search(order.Len(), func(i int) bool {
		p := at(order.At(i))
		return zOrder(p.Lon, p.Lat) >= from
	})
	for ; i < order.Len(); i++ {
		p := at(order.At(i))
		if c := zOrder(p.Lon, p.Lat); c>>bits != from>>bits {
			return
		}
		yield(order.At(i), p)
	}
}

// ByID finds the entity that an id names, or named in an earlier vintage.
func (v *Vintage) ByID(id string) (Entity, bool) {
	if s, ok := v.findStreet(id); ok {
		return v.StreetEntity(s), true
	}
	if e, ok := v.findRegular(id); ok {
		return e, true
	}
	return v.findAlias(id)
}

// findAlias finds the entity of an irregular id or of an id of an earlier vintage.
func (v *Vintage) findAlias(id string) (Entity, bool) {
	i := sort.Search(v.aliases.count(), func(i int) bool { return string(v.aliases.text(uint32(i))) >= id })
	if i < v.aliases.count() && string(v.aliases.text(uint32(i))) == id {
		return Entity(Column(v.sections[secAliasEntities]).At(i)), true
	}
	return 0, false
}

// findStreet finds a street by its key.
func (v *Vintage) findStreet(key string) (uint32, bool) {
	byKey := Column(v.sections[secStreetsByKey])
	i := v.searchKey(key)
	if i == byKey.Len() || string(v.StreetKey(byKey.At(i))) != key {
		return 0, false
	}
	return byKey.At(i), true
}

// searchKey is the position of the first street whose key is not before the given one.
func (v *Vintage) searchKey(key string) int {
	byKey := Column(v.sections[secStreetsByKey])
	return sort.Search(byKey.Len(), func(i int) bool {
		return bytes.Compare(v.StreetKey(byKey.At(i)), []byte(key)) >= 0
	})
}

// findRegular finds a row by a regular id.
func (v *Vintage) findRegular(id string) (Entity, bool) {
	key, number, rep, ok := splitID(id)
	if !ok {
		return 0, false
	}
	byKey := Column(v.sections[secStreetsByKey])
	for i := v.searchKey(key); i < byKey.Len() && string(v.StreetKey(byKey.At(i))) == key; i++ {
		s := v.Street(byKey.At(i))
		for row := v.FirstNumber(s, number); row < s.To && v.Number(row) == number; row++ {
			if string(v.Rep(row)) == rep && v.ID(RowEntity(row)) == id {
				return RowEntity(row), true
			}
		}
	}
	return 0, false
}

// splitID splits a regular id into the street's key, the number and the repetition index.
func splitID(id string) (key string, number uint32, rep string, ok bool) {
	parts := strings.SplitN(id, "_", 4)
	if len(parts) < 3 || len(parts[2]) != 5 {
		return "", 0, "", false
	}
	n, err := strconv.ParseUint(parts[2], 10, 16)
	if err != nil {
		return "", 0, "", false
	}
	if len(parts) == 4 {
		rep = parts[3]
	}
	return id[:len(parts[0])+1+len(parts[1])], uint32(n), rep, true
}

// FirstNumber is the first row of a street with a number or a higher one.
func (v *Vintage) FirstNumber(s Street, number uint32) uint32 {
	n := sort.Search(int(s.To-s.From), func(i int) bool { return v.Number(s.From+uint32(i)) >= number })
	return s.From + uint32(n)
}

// HighestNumber is the highest house number of a street, 0 if it has none.
func (v *Vintage) HighestNumber(street uint32) uint32 {
	if all := v.highest(); int(street) < len(all) {
		return uint32(all[street])
	}
	return 0
}

// HasNumber reports whether a row of a street has a number.
func (v *Vintage) HasNumber(street, number uint32) bool {
	from, to := v.streetRows(street)
	row := v.FirstNumber(Street{From: from, To: to}, number)
	return row < to && v.Number(row) == number
}

// streetRows are the rows of a street, without the rest of what Street reads.
func (v *Vintage) streetRows(street uint32) (from, to uint32) {
	return bounded(v.streets.record(street).u32(8), v.streets.record(street+1).u32(8), v.Addresses)
}

// highestNumbers are those of all streets. A line that is being typed searches tens of thousands of streets for a number, and each
// look at the rows is a read from another part of the file.
func (v *Vintage) highestNumbers() []uint16 {
	all := make([]uint16, v.Streets+v.Localities)
	for street := range all {
		if from, to := v.streetRows(uint32(street)); from < to {
			all[street] = uint16(v.Number(to - 1))
		}
	}
	return all
}

// ByUUID finds the entity with an id_ban: its current one, otherwise one that the program generated before the base had its
// own.
func (v *Vintage) ByUUID(u uuid.UUID) (Entity, bool) {
	if u == uuid.Nil { // the base uses it for addresses without an id_ban
		return 0, false
	}
	space, own, former := uuidNamespace(), Column(v.sections[secByUUID]), Column(v.sections[secFormerEntities])
	if i, ok := searchUUID(own.Len(), u, func(i int) uuid.UUID { return v.uuidInNamespace(space, Entity(own.At(i))) }); ok {
		return Entity(own.At(i)), true
	}
	if i, ok := searchUUID(former.Len(), u, func(i int) uuid.UUID { return v.formerUUID(space, i) }); ok {
		return Entity(former.At(i)), true
	}
	return 0, false
}

// searchUUID finds a UUID among n that are sorted by their first halves.
func searchUUID(n int, u uuid.UUID, at func(int) uuid.UUID) (int, bool) {
	half := func(i int) int {
		other := at(i)
		return bytes.Compare(other[:8], u[:8])
	}
	for i := sort.Search(n, func(i int) bool { return half(i) >= 0 }); i < n && half(i) == 0; i++ {
		if at(i) == u {
			return i, true
		}
	}
	return 0, false
}
