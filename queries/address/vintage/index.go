package vintage

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math/bits"
	"slices"

	"golang.org/x/sync/errgroup"

	"lieudit/queries/address/text"
	"lieudit/queries/mappedfile"
)

// writeIndex writes the parts that need all rows: the terms and their postings, the lookups, and the orders of rows and streets.
func (b *builder) writeIndex(ctx context.Context) error {
	terms := b.names.sortTerms()
	b.writeTerms(terms)
	b.writeNameTerms()
	b.writePlacesTable(uint32(len(terms)))
	b.writePlaceKeys(terms)
	b.writeStreetPostings(uint32(len(terms)))
	b.writeHashTable(secDeletesFirst, secDeletes, terms, yieldDeletes)
	b.writeHashTable(secSoundsFirst, secSounds, terms, yieldPhoneticKey)
	b.names.allTerms, b.names.firstTerm = nil, nil
	b.writePostcodeTable()
	b.writeOrders()
	if err := errors.Join(ctx.Err(), b.out.Err()); err != nil {
		return err
	}
	var both errgroup.Group
	both.Go(func() error { return b.writeIdentity(ctx) })
	both.Go(func() error { return b.writePositionOrders(ctx) })
	return errors.Join(both.Wait(), b.out.Err())
}

// writeTerms writes the dictionary: all terms in sorted order.
func (b *builder) writeTerms(terms []string) {
	at := uint32(0)
	b.out.AppendU32(secTermFirst, at)
	for _, t := range terms {
		b.out.Append(secTermText, []byte(t))
		at += uint32(len(t))
		b.out.AppendU32(secTermFirst, at)
	}
}

// writeNameTerms writes the terms of each name.
func (b *builder) writeNameTerms() {
	mappedfile.AppendColumn(b.out, secNameTermsFirst, b.names.firstTerm)
	mappedfile.AppendColumn(b.out, secNameTerms, b.names.allTerms)
}

// writePlacesTable writes the places and the postings of their names.
func (b *builder) writePlacesTable(terms uint32) {
	names := make([]uint32, len(b.places))
	for i, p := range b.places {
		names[i] = p.Name
		b.out.AppendU32(secPlaces, p.Name, p.Commune, uint32(p.Kind))
		b.out.Append(secPlaces, p.Code[:])
	}
	b.writePostings(secTermPlacesFirst, secTermPlaces, names, terms)
}

// writePlaceKeys writes the places in the order of their names without stop words (see Gazetteer).
func (b *builder) writePlaceKeys(terms []string) {
	keys := make([][]uint32, len(b.places))
	for i, p := range b.places {
		keys[i] = withoutLinks(b.names.termsOf(p.Name), func(t uint32) string { return terms[t] })
	}
	order := sortOrdinals(len(keys), func(i, j uint32) int { return slices.Compare(keys[i], keys[j]) })
	at := uint32(0)
	b.out.AppendU32(secPlaceKeysFirst, at)
	for _, i := range order {
		mappedfile.AppendColumn(b.out, secPlaceKeys, keys[i])
		at += uint32(len(keys[i]))
		b.out.AppendU32(secPlaceKeysFirst, at)
	}
	mappedfile.AppendColumn(b.out, secPlacesByName, order)
}

// withoutLinks returns the terms without stop words, or all terms if they are all stop words.
func withoutLinks(terms []uint32, of func(uint32) string) []uint32 {
	var out []uint32
	for _, t := range terms {
		if text.ClassOf(of(t)) != text.StopWord {
			out = append(out, t)
		}
	}
	if len(out) == 0 {
		return terms
	}
	return out
}

func (b *builder) writeStreetPostings(terms uint32) {
	b.writePostings(secTermStreetsFirst, secTermStreets, b.streetNames, terms)
}

// writePostings inverts the names: for each term it writes the ordinals of the items whose name has the term.
func (b *builder) writePostings(first, items section, names []uint32, terms uint32) {
	starts := make([]uint32, terms+1)
	for _, name := range names {
		for _, t := range distinct(b.names.termsOf(name)) {
			starts[t+1]++
		}
	}
	for i := range terms {
		starts[i+1] += starts[i]
	}
	mappedfile.AppendColumn(b.out, first, starts)
	out := make([]uint32, starts[terms])
	for i, name := range names {
		for _, t := range distinct(b.names.termsOf(name)) {
			out[starts[t]] = uint32(i)
			starts[t]++
		}
	}
	mappedfile.AppendColumn(b.out, items, out)
}

// distinct returns the terms without repetitions, sorted when there were any.
func distinct(terms []uint32) []uint32 {
	for i, t := range terms {
		if slices.Contains(terms[:i], t) {
			out := slices.Clone(terms)
			slices.Sort(out)
			return slices.Compact(out)
		}
	}
	return terms
}

// yieldDeletes yields the keys under which a misspelt term is found: two letters deleted of a long term, one of a short
// one. Numbers have no such keys.
func yieldDeletes(term string, yield func([]byte)) {
	switch {
	case len(term) < 3 || term[0] >= '0' && term[0] <= '9':
	case len(term) >= minTwoEditTerm:
		text.Deletes(term, 2, yield)
	default:
		text.Deletes(term, 1, yield)
	}
}

// yieldPhoneticKey yields the phonetic key of a term.
func yieldPhoneticKey(term string, yield func([]byte)) {
	if sound := text.PhoneticKey(term); sound != "" {
		yield([]byte(sound))
	}
}

// writeHashTable writes a hash table from keys of terms to the terms. Keys are not stored: readers compare the terms.
func (b *builder) writeHashTable(first, items section, terms []string, each func(string, func([]byte))) {
	total := 0
	for _, t := range terms {
		each(t, func([]byte) { total++ })
	}
	buckets := 1 << bits.Len(uint(total/4))
	starts := make([]uint32, buckets+1)
	b.eachBucket(terms, each, buckets, func(_, bucket uint32) { starts[bucket+1]++ })
	for i := range buckets {
		starts[i+1] += starts[i]
	}
	mappedfile.AppendColumn(b.out, first, starts)
	out := make([]uint32, starts[buckets])
	b.eachBucket(terms, each, buckets, func(term, bucket uint32) {
		out[starts[bucket]] = term
		starts[bucket]++
	})
	mappedfile.AppendColumn(b.out, items, out)
}

// eachBucket yields each term with the buckets of its keys, each bucket once.
func (b *builder) eachBucket(terms []string, each func(string, func([]byte)), buckets int, yield func(term, bucket uint32)) {
	var seen []uint32
	for i, t := range terms {
		seen = seen[:0]
		each(t, func(key []byte) { seen = append(seen, bucketOf(key, buckets)) })
		slices.Sort(seen)
		for _, bucket := range slices.Compact(seen) {
			yield(uint32(i), bucket)
		}
	}
}

// writePostcodeTable writes the postcodes in order, each with its communes.
func (b *builder) writePostcodeTable() {
	codes := make([]uint32, 0, len(b.postcodes))
	for code := range b.postcodes {
		codes = append(codes, code)
	}
	slices.Sort(codes)
	mappedfile.AppendColumn(b.out, secPostcodes, codes)
	at := uint32(0)
	b.out.AppendU32(secPostcodesFirst, at)
	for _, code := range codes {
		mappedfile.AppendColumn(b.out, secPostcodeCommunes, b.postcodes[code])
		at += uint32(len(b.postcodes[code]))
		b.out.AppendU32(secPostcodesFirst, at)
	}
}

// writeOrders writes the communes in the order of their codes and the streets in the order of their keys.
func (b *builder) writeOrders() {
	codes := make([]Code, b.summary.Communes)
	for _, p := range b.places {
		if p.Kind == Current {
			codes[p.Commune] = p.Code
		}
	}
	mappedfile.AppendColumn(b.out, secCommunesByCode, sortOrdinals(len(codes), func(i, j uint32) int { return slices.Compare(codes[i][:], codes[j][:]) }))
	mappedfile.AppendColumn(b.out, secStreetsByKey, sortOrdinals(len(b.streetKeys), func(i, j uint32) int { return cmp.Compare(b.streetKeys[i], b.streetKeys[j]) }))
}

// sortOrdinals returns the numbers below n, sorted, equal ones by number.
func sortOrdinals(n int, compare func(i, j uint32) int) []uint32 {
	out := make([]uint32, n)
	for i := range out {
		out[i] = uint32(i)
	}
	slices.SortFunc(out, func(i, j uint32) int { return cmp.Or(compare(i, j), cmp.Compare(i, j)) })
	return out
}

// writePositionOrders writes rows and streets in their order along the Z-order curve. It reads the positions back from
// the written sections.
func (b *builder) writePositionOrders(ctx context.Context) error {
	rows, err := b.readCurveKeys(secLons, secLats, 4, 0)
	if err != nil {
		return err
	}
	sortByKey(rows)
	for _, k := range rows {
		b.out.AppendU32(secRowsByPosition, k.entity)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	streets, err := b.readCurveKeys(secStreets, secStreets, streetSize, 32)
	if err != nil {
		return err
	}
	streets = streets[:len(b.streetNames)]
	sortByKey(streets)
	for _, k := range streets {
		b.out.AppendU32(secStreetsByPosition, k.entity)
	}
	return ctx.Err()
}

// readCurveKeys reads the positions of records of one size back from their sections, at an offset in each record. When
// both coordinates are in one section, the latitude follows 4 bytes after the longitude.
func (b *builder) readCurveKeys(lons, lats section, size int64, at int64) ([]keyedEntity, error) {
	x, err := b.out.ReadBack(lons)
	if err != nil {
		return nil, err
	}
	y, further := x, at+4
	if lons != lats {
		if y, err = b.out.ReadBack(lats); err != nil {
			return nil, err
		}
		further = at
	}
	all := make([]keyedEntity, int64(b.out.Length(lons))/size)
	xr, yr := newPointReader(x, size), newPointReader(y, size)
	for i := range all {
		lon, lat := xr.readInt32(int64(i)*size+at), yr.readInt32(int64(i)*size+further)
		all[i] = keyedEntity{zOrder(lon, lat), uint32(i)}
	}
	return all, errors.Join(xr.err, yr.err)
}

// pointReader reads numbers from a file at growing offsets.
type pointReader struct {
	file  io.ReaderAt
	buf   []byte
	start int64
	size  int64
	err   error
}

func newPointReader(file io.ReaderAt, size int64) *pointReader {
	return &pointReader{file: file, size: size, buf: make([]byte, 0, size*16384)}
}

func (s *pointReader) readInt32(at int64) int32 {
	if at+4 > s.start+int64(len(s.buf)) {
		s.start = at / s.size * s.size
		n, err := s.file.ReadAt(s.buf[:cap(s.buf)], s.start)
		if err != nil && !errors.Is(err, io.EOF) {
			s.err = errors.Join(s.err, err)
		}
		s.buf = s.buf[:n]
	}
	if at+4 > s.start+int64(len(s.buf)) {
		s.err = io.ErrUnexpectedEOF
		return 0
	}
	return int32(binary.LittleEndian.Uint32(s.buf[at-s.start:]))
}
