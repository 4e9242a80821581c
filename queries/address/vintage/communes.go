package vintage

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"lieudit/queries/address/ban"
	"lieudit/queries/address/text"
	"lieudit/queries/mappedfile"
	"lieudit/schemas/geo"
)

// communeState is what the rows of one commune share while they are written.
type communeState struct {
	ordinal      uint32
	code         string
	postcodes    map[uint32]bool
	formerPlaces map[[2]string]uint32 // places of former communes, by code and name
	facets       map[Facet]uint16     // of the current street
	firstFacet   uint32               // first facet of the current street
}

// writeCommune writes a commune with its streets and rows.
func (b *builder) writeCommune(ordinal uint32, group *communeRows) {
	code, streets := group.code, group.streets
	b.summary.Duplicates += group.duplicates
	w := &communeState{ordinal: ordinal, code: code, postcodes: map[uint32]bool{}, formerPlaces: map[[2]string]uint32{}}
	name := mostFrequent(streets, func(r *ban.Row) string { return r.Commune })
	b.addPlaces(w, name, mostFrequent(streets, func(r *ban.Row) string { return r.Acheminement }))
	if b.predecessors != nil {
		b.predecessors.matchCommune(code, streets)
	}
	firstStreet, firstPostcode := uint32(len(b.streetNames)), uint32(b.out.Length(secCommunePostcodes)/4)
	var middle []ban.Row
	count := 0
	for i := range streets {
		b.writeStreet(w, &streets[i])
		middle = append(middle, streets[i].rows[len(streets[i].rows)/2])
		count += len(streets[i].rows)
	}
	b.writePostcodes(w)
	c := CodeOf(code)
	p := centralPoint(middle)
	b.out.Append(secCommunes, c[:])
	b.out.AppendU32(secCommunes, b.names.intern(name), firstStreet, uint32(count), uint32(p.Lon), uint32(p.Lat), uint32(p.X), uint32(p.Y), firstPostcode)
}

// writePostcodes writes the postcodes of a commune and adds the commune to each postcode's list.
func (b *builder) writePostcodes(w *communeState) {
	codes := make([]uint32, 0, len(w.postcodes))
	for code := range w.postcodes {
		codes = append(codes, code)
	}
	slices.Sort(codes)
	mappedfile.AppendColumn(b.out, secCommunePostcodes, codes)
	for _, code := range codes {
		b.postcodes[code] = append(b.postcodes[code], w.ordinal)
	}
}

// addPlaces adds the names by which a commune is known.
func (b *builder) addPlaces(w *communeState, name, delivery string) {
	b.addPlace(w, name, Current, w.code)
	if delivery != "" && text.Fold(delivery) != text.Fold(name) {
		b.addPlace(w, delivery, Delivery, w.code)
	}
	if city, n := arrondissement(w.code); n > 0 {
		b.addPlace(w, city, Parent, w.code)
		b.addPlace(w, city+" "+strconv.Itoa(n), Parent, w.code)
		b.addPlace(w, city+" "+strconv.Itoa(n)+" Arrondissement", Parent, w.code)
	}
}

// arrondissement is the city and the number of a municipal arrondissement, 0 for any other commune.
func arrondissement(code string) (city string, n int) {
	number, err := strconv.Atoi(code)
	switch {
	case err != nil:
	case number > 75100 && number <= 75120:
		return "Paris", number - 75100
	case number > 69380 && number <= 69389:
		return "Lyon", number - 69380
	case number > 13200 && number <= 13216:
		return "Marseille", number - 13200
	}
	return "", 0
}

// addPlace adds a name of a commune and returns its ordinal.
func (b *builder) addPlace(w *communeState, name string, kind PlaceKind, code string) uint32 {
	b.places = append(b.places, Place{Name: b.names.intern(name), Commune: w.ordinal, Kind: kind, Code: CodeOf(code)})
	return uint32(len(b.places) - 1)
}

// writeStreet writes a street with its facets and its rows. A locality has a facet and no row.
func (b *builder) writeStreet(w *communeState, s *streetRows) {
	ordinal := uint32(len(b.streetNames))
	name := b.names.intern(s.name)
	b.streetNames, b.streetKeys = append(b.streetNames, name), append(b.streetKeys, s.key)
	w.facets, w.firstFacet = map[Facet]uint16{}, b.facetCount
	p, afnor, isLocality := centralPoint(s.rows), uint32(none), uint32(0)
	if given := s.rows[0].NomAFNOR; given != "" && given != strings.ToUpper(text.Fold(s.name)) {
		afnor = b.names.intern(given)
	}
	if s.isLocality {
		isLocality = 1
		b.summary.Localities++
	} else {
		b.summary.Streets++
	}
	b.out.AppendU32(secStreets, w.ordinal, name, uint32(b.summary.Addresses), w.firstFacet, uint32(b.out.Length(secParcels)), uint32(b.out.Length(secStreetKeys)),
		afnor, isLocality, uint32(p.Lon), uint32(p.Lat), uint32(p.X), uint32(p.Y), uint32(len(s.rows)))
	b.out.Append(secStreetKeys, []byte(s.key))
	b.identifyStreet(s, ordinal)
	for i := range s.rows {
		facet := b.addFacet(w, &s.rows[i])
		if !s.isLocality {
			b.writeRow(s, &s.rows[i], facet)
		}
	}
}

// addFacet returns the number of a row's facet within its street and adds the facet when it is new.
func (b *builder) addFacet(w *communeState, r *ban.Row) uint16 {
	f := Facet{Postcode: parsePostcode(r.CodePostal), Old: none, LieuDit: none, Delivery: none}
	if f.Postcode != 0 {
		w.postcodes[f.Postcode] = true
	}
	if r.CodeInseeAncienne != "" || r.CommuneAncienne != "" {
		f.Old = b.addFormerPlace(w, r)
	}
	for _, n := range [...]struct {
		to   *uint32
		text string
	}{{&f.LieuDit, r.LieuDit}, {&f.Delivery, r.Acheminement}} {
		if n.text != "" {
			*n.to = b.names.intern(n.text)
		}
	}
	at, known := w.facets[f]
	if !known && len(w.facets) < 1<<16 {
		at = uint16(len(w.facets))
		w.facets[f] = at
		b.facetCount++
		b.out.AppendU32(secFacets, f.Postcode, f.Old, f.LieuDit, f.Delivery)
	}
	return at
}

// addFormerPlace returns the place of a row's former commune and adds it when it is new.
func (b *builder) addFormerPlace(w *communeState, r *ban.Row) uint32 {
	key := [2]string{r.CodeInseeAncienne, r.CommuneAncienne}
	at, known := w.formerPlaces[key]
	if !known {
		at = b.addPlace(w, r.CommuneAncienne, Old, r.CodeInseeAncienne)
		w.formerPlaces[key] = at
	}
	return at
}

// parsePostcode parses a postcode, 0 if it is not one.
func parsePostcode(s string) uint32 {
	n, err := strconv.ParseUint(s, 10, 32)
	if err != nil || len(s) != 5 {
		return 0
	}
	return uint32(n)
}

// writeRow appends one row to each of the columns.
func (b *builder) writeRow(s *streetRows, r *ban.Row, facet uint16) {
	row, p := uint32(b.summary.Addresses), pointOf(r)
	b.summary.Addresses++
	b.out.AppendU16(secNumbers, uint16(r.Numero))
	b.out.AppendU16(secReps, b.addRep(r.Rep))
	b.out.AppendU16(secRowFacets, facet)
	b.out.AppendU32(secLons, uint32(p.Lon))
	b.out.AppendU32(secLats, uint32(p.Lat))
	b.out.AppendU32(secXs, uint32(p.X))
	b.out.AppendU32(secYs, uint32(p.Y))
	b.out.Append(secRowKinds, []byte{b.encodeRowKind(r)})
	b.out.Append(secParcels, appendParcels(nil, r.CodeInsee, r.Parcelles))
	b.identifyRow(s, r, row)
}

// encodeRowKind is the position type of a row with the certification in the lowest bit.
func (b *builder) encodeRowKind(r *ban.Row) byte {
	kind := byte(0)
	if r.TypePosition != "" {
		at, known := b.positions[r.TypePosition]
		if !known && len(b.positions) < 127 {
			at = byte(len(b.positions) + 1)
			b.positions[r.TypePosition] = at
			b.out.AppendU32(secPositions, b.names.intern(r.TypePosition))
		}
		kind = at << 1
	}
	if r.Certifie {
		kind |= 1
	}
	return kind
}

// addRep returns the number of a repetition index, counted from 1, and adds it when it is new; 0 means no index.
func (b *builder) addRep(rep string) uint16 {
	if rep == "" {
		return 0
	}
	n, known := b.reps[rep]
	if !known && len(b.reps) < 1<<16-1 {
		n = uint16(len(b.reps) + 1)
		b.reps[rep] = n
		b.out.AppendU32(secRepNames, b.names.intern(rep))
	}
	return n
}

// A cadastral parcel has 14 characters: the commune's code, three digits of a former commune, two letters or digits of a
// section, four digits. When the code is that of the address's commune, the rest is stored as one number.
const (
	parcelLength = 14
	sectionBase  = 36
)

// appendParcels encodes the parcels of one address after the length of their encoding.
func appendParcels(buf []byte, code string, parcels []string) []byte {
	var body []byte
	for _, p := range parcels {
		if n, ok := parcelNumber(code, p); ok {
			body = binary.AppendUvarint(body, n<<1)
		} else {
			body = append(binary.AppendUvarint(body, uint64(len(p))<<1|1), p...)
		}
	}
	return append(binary.AppendUvarint(buf, uint64(len(body))), body...)
}

// parcelNumber is a parcel of the usual form as a number.
func parcelNumber(code, parcel string) (uint64, bool) {
	rest, ok := strings.CutPrefix(parcel, code)
	if !ok || len(parcel) != parcelLength || len(rest) != 9 {
		return 0, false
	}
	var n uint64
	for i := range len(rest) {
		base := uint64(10)
		if i == 3 || i == 4 {
			base = sectionBase
		}
		digit, ok := digitOf(rest[i])
		if !ok || digit >= base {
			return 0, false
		}
		n = n*base + digit
	}
	return n, true
}

func digitOf(c byte) (uint64, bool) {
	switch {
	case c >= '0' && c <= '9':
		return uint64(c - '0'), true
	case c >= 'A' && c <= 'Z':
		return uint64(c-'A') + 10, true
	}
	return 0, false
}

// parcelText is the parcel of a number.
func parcelText(code string, n uint64) string {
	const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	number, n := n%10_000, n/10_000
	second, n := n%sectionBase, n/sectionBase
	first, n := n%sectionBase, n/sectionBase
	return fmt.Sprintf("%s%03d%c%c%04d", code, n, digits[first], digits[second], number)
}

// parcelsOf decodes the parcels of one address. It leaves out what is damaged.
func parcelsOf(code string, body []byte) (parcels []string) {
	for len(body) > 0 {
		n, size := binary.Uvarint(body)
		if size <= 0 {
			return parcels
		}
		body = body[size:]
		if n&1 == 0 {
			parcels = append(parcels, parcelText(code, n>>1))
			continue
		}
		if n>>1 > uint64(len(body)) {
			return parcels
		}
		parcels, body = append(parcels, string(body[:n>>1])), body[n>>1:]
	}
	return parcels
}

// Parcels returns the cadastral parcels of a row of a street.
func (v *Vintage) Parcels(row, street uint32) []string {
	from, to := bounded(v.streets.record(street).u32(16), v.streets.record(street+1).u32(16), len(v.sections[secParcels]))
	blob := v.sections[secParcels][from:to]
	for r := v.streets.record(street).u32(8); ; r++ {
		size, n := binary.Uvarint(blob)
		if n <= 0 || size > uint64(len(blob)-n) {
			return nil
		}
		if r == row {
			return parcelsOf(v.Commune(v.Street(street).Commune).String(), blob[n:n+int(size)])
		}
		blob = blob[n+int(size):]
	}
}

// mostFrequent is the value that most rows have; of equally frequent ones the first in order.
func mostFrequent(streets []streetRows, of func(*ban.Row) string) string {
	counts := map[string]int{}
	best := ""
	for i := range streets {
		for j := range streets[i].rows {
			counts[of(&streets[i].rows[j])]++
		}
	}
	for value, n := range counts {
		if c := cmp.Compare(n, counts[best]); c > 0 || c == 0 && value < best || best == "" {
			best = value
		}
	}
	return best
}

// centralPoint is the position of the row nearest to the mean of all positions.
func centralPoint(rows []ban.Row) (p Point) {
	var lon, lat float64
	for i := range rows {
		lon, lat = lon+rows[i].Lon, lat+rows[i].Lat
	}
	lon, lat = lon/float64(len(rows)), lat/float64(len(rows))
	least := -1.0
	for i := range rows {
		dx, dy := rows[i].Lon-lon, rows[i].Lat-lat
		if d := dx*dx + dy*dy; least < 0 || d < least {
			least, p = d, pointOf(&rows[i])
		}
	}
	return p
}

// pointOf is the position of a row in the units of the file.
func pointOf(r *ban.Row) Point {
	p := Fix(geo.Point{Lon: r.Lon, Lat: r.Lat})
	p.X, p.Y = roundInt32(r.X*100), roundInt32(r.Y*100)
	return p
}
