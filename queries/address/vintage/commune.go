package vintage

import (
	"slices"
	"strconv"
	"strings"

	"lieudit/queries/address/ban"
	"lieudit/queries/address/text"
)

// writing is what the rows of one commune share while they are written.
type writing struct {
	ordinal   uint32
	code      string
	postcodes map[uint32]bool
	old       map[[2]string]uint32 // places of former communes
	facets    map[Facet]uint16     // of the street under way
	first     uint32               // first facet of the street under way
}

// writeCommune writes a commune with its streets and rows.
func (b *builder) writeCommune(ordinal uint32, of *sorted) {
	code, streets := of.code, of.streets
	b.summary.Duplicates += of.duplicates
	w := &writing{ordinal: ordinal, code: code, postcodes: map[uint32]bool{}, old: map[[2]string]uint32{}}
	name := usual(streets, func(r *ban.Row) string { return r.Commune })
	b.addPlaces(w, name, usual(streets, func(r *ban.Row) string { return r.Acheminement }))
	if b.prior != nil {
		b.prior.enter(code, streets)
	}
	firstStreet, firstPostcode := uint32(len(b.streets)), b.w.length(secCommunePostcodes)/4
	var middle []ban.Row
	count := 0
	for i := range streets {
		b.writeStreet(w, &streets[i])
		middle = append(middle, streets[i].rows[len(streets[i].rows)/2])
		count += len(streets[i].rows)
	}
	b.writePostcodes(w)
	c := CodeOf(code)
	p := centre(middle)
	b.w.bytes(secCommunes, c[:])
	b.w.u32(secCommunes, b.names.of(name), firstStreet, uint32(count), uint32(p.Lon), uint32(p.Lat), uint32(p.X), uint32(p.Y), firstPostcode)
}

func (b *builder) writePostcodes(w *writing) {
	codes := make([]uint32, 0, len(w.postcodes))
	for code := range w.postcodes {
		codes = append(codes, code)
	}
	slices.Sort(codes)
	b.w.column(secCommunePostcodes, codes)
	for _, code := range codes {
		b.postcodes[code] = append(b.postcodes[code], w.ordinal)
	}
}

// addPlaces adds the names under which a commune is known.
func (b *builder) addPlaces(w *writing, name, delivery string) {
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

// arrondissement is the city and the number of a municipal arrondissement, or zero.
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

func (b *builder) addPlace(w *writing, name string, kind PlaceKind, code string) uint32 {
	b.places = append(b.places, Place{Name: b.names.of(name), Commune: w.ordinal, Kind: kind, Code: CodeOf(code)})
	return uint32(len(b.places) - 1)
}

func (b *builder) writeStreet(w *writing, s *gathered) {
	ordinal := uint32(len(b.streets))
	name := b.names.of(s.name)
	b.streets, b.keys = append(b.streets, name), append(b.keys, s.key)
	w.facets, w.first = map[Facet]uint16{}, b.facets
	p, afnor, local := centre(s.rows), uint32(none), uint32(0)
	if given := s.rows[0].NomAFNOR; given != "" && given != strings.ToUpper(text.Fold(s.name)) {
		afnor = b.names.of(given)
	}
	if s.locality {
		local = 1
		b.summary.Localities++
	} else {
		b.summary.Streets++
	}
	b.w.u32(secStreets, w.ordinal, name, uint32(b.summary.Addresses), w.first, b.w.length(secParcels), b.w.length(secStreetKeys),
		afnor, local, uint32(p.Lon), uint32(p.Lat), uint32(p.X), uint32(p.Y), uint32(len(s.rows)))
	b.w.bytes(secStreetKeys, []byte(s.key))
	b.identifyStreet(s, ordinal)
	for i := range s.rows {
		facet := b.facet(w, &s.rows[i])
		if !s.locality {
			b.writeRow(s, &s.rows[i], facet)
		}
	}
}

// facet is the ordinal, within its street, of what a row shares with others.
func (b *builder) facet(w *writing, r *ban.Row) uint16 {
	f := Facet{Postcode: postcode(r.CodePostal), Old: none, LieuDit: none, Delivery: none}
	if f.Postcode != 0 {
		w.postcodes[f.Postcode] = true
	}
	if r.CodeInseeAncienne != "" || r.CommuneAncienne != "" {
		f.Old = b.old(w, r)
	}
	for _, n := range [...]struct {
		to   *uint32
		text string
	}{{&f.LieuDit, r.LieuDit}, {&f.Delivery, r.Acheminement}} {
		if n.text != "" {
			*n.to = b.names.of(n.text)
		}
	}
	at, known := w.facets[f]
	if !known && len(w.facets) < 1<<16 {
		at = uint16(len(w.facets))
		w.facets[f] = at
		b.facets++
		b.w.u32(secFacets, f.Postcode, f.Old, f.LieuDit, f.Delivery)
	}
	return at
}

func (b *builder) old(w *writing, r *ban.Row) uint32 {
	key := [2]string{r.CodeInseeAncienne, r.CommuneAncienne}
	at, known := w.old[key]
	if !known {
		at = b.addPlace(w, r.CommuneAncienne, Old, r.CodeInseeAncienne)
		w.old[key] = at
	}
	return at
}

// postcode reads a postcode; 0 is none.
func postcode(s string) uint32 {
	n, err := strconv.ParseUint(s, 10, 32)
	if err != nil || len(s) != 5 {
		return 0
	}
	return uint32(n)
}

func (b *builder) writeRow(s *gathered, r *ban.Row, facet uint16) {
	row, p := uint32(b.summary.Addresses), pointOf(r)
	b.summary.Addresses++
	b.w.u16(secNumbers, uint16(r.Numero))
	b.w.u16(secReps, b.rep(r.Rep))
	b.w.u16(secRowFacets, facet)
	b.w.u32(secLons, uint32(p.Lon))
	b.w.u32(secLats, uint32(p.Lat))
	b.w.u32(secXs, uint32(p.X))
	b.w.u32(secYs, uint32(p.Y))
	b.w.bytes(secRowKinds, []byte{b.rowKind(r)})
	b.w.bytes(secParcels, appendParcels(nil, r.CodeInsee, r.Parcelles))
	b.identifyRow(s, r, row)
}

// rowKind is what the position of a row is of, with the certification in the lowest bit.
func (b *builder) rowKind(r *ban.Row) byte {
	kind := byte(0)
	if r.TypePosition != "" {
		at, known := b.positions[r.TypePosition]
		if !known && len(b.positions) < 127 {
			at = byte(len(b.positions) + 1)
			b.positions[r.TypePosition] = at
			b.w.u32(secPositions, b.names.of(r.TypePosition))
		}
		kind = at << 1
	}
	if r.Certifie {
		kind |= 1
	}
	return kind
}

// rep is the ordinal of a repetition index, counted from 1; 0 is none.
func (b *builder) rep(rep string) uint16 {
	if rep == "" {
		return 0
	}
	n, known := b.reps[rep]
	if !known && len(b.reps) < 1<<16-1 {
		n = uint16(len(b.reps) + 1)
		b.reps[rep] = n
		b.w.u32(secRepNames, b.names.of(rep))
	}
	return n
}
