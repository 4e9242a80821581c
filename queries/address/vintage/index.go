package vintage

import (
	"cmp"
	"context"
	"errors"
	"math/bits"
	"slices"

	"golang.org/x/sync/errgroup"

	"lieudit/queries/address/text"
)

// failed is the first error of a write.
func (s *sectionWriter) failed() error {
	var errs []error
	for _, p := range s.parts {
		if p != nil && p.err != nil {
			errs = append(errs, p.err)
		}
	}
	return errors.Join(errs...)
}

// writeIndex writes everything that is known only when all rows are: the dictionary, what it leads to, and the orders
// in which rows and streets can be searched.
func (b *builder) writeIndex(ctx context.Context) error {
	terms := b.names.settle()
	b.writeTerms(terms)
	b.writeNameTerms()
	b.writePlacesTable(uint32(len(terms)))
	b.writePlaceKeys(terms)
	b.writeStreetPostings(uint32(len(terms)))
	b.writeHashed(secDeletesFirst, secDeletes, terms, eachDelete)
	b.writeHashed(secSoundsFirst, secSounds, terms, eachSound)
	b.names.all, b.names.first = nil, nil
	b.writePostcodeTable()
	b.writeOrders()
	if err := errors.Join(ctx.Err(), b.w.failed()); err != nil {
		return err
	}
	var both errgroup.Group
	both.Go(func() error { return b.writeIdentity(ctx) })
	both.Go(func() error { return b.writeCurves(ctx) })
	return errors.Join(both.Wait(), b.w.failed())
}

func (b *builder) writeTerms(terms []string) {
	at := uint32(0)
	b.w.u32(secTermFirst, at)
	for _, t := range terms {
		b.w.bytes(secTermText, []byte(t))
		at += uint32(len(t))
		b.w.u32(secTermFirst, at)
	}
}

func (b *builder) writeNameTerms() {
	b.w.column(secNameTermsFirst, b.names.first)
	b.w.column(secNameTerms, b.names.all)
}

func (b *builder) writePlacesTable(terms uint32) {
	names := make([]uint32, len(b.places))
	for i, p := range b.places {
		names[i] = p.Name
		b.w.u32(secPlaces, p.Name, p.Commune, uint32(p.Kind))
		b.w.bytes(secPlaces, p.Code[:])
	}
	b.writePostings(secTermPlacesFirst, secTermPlaces, names, terms)
}

// writePlaceKeys writes the places in the order of their names, links left out.
func (b *builder) writePlaceKeys(terms []string) {
	keys := make([][]uint32, len(b.places))
	for i, p := range b.places {
		keys[i] = withoutLinks(b.names.termsOf(p.Name), func(t uint32) string { return terms[t] })
	}
	order := ordered(len(keys), func(i, j uint32) int { return slices.Compare(keys[i], keys[j]) })
	at := uint32(0)
	b.w.u32(secPlaceKeysFirst, at)
	for _, i := range order {
		b.w.column(secPlaceKeys, keys[i])
		at += uint32(len(keys[i]))
		b.w.u32(secPlaceKeysFirst, at)
	}
	b.w.column(secPlacesByName, order)
}

// withoutLinks are the terms that are no links, or all when there are no others.
func withoutLinks(terms []uint32, of func(uint32) string) []uint32 {
	var out []uint32
	for _, t := range terms {
		if text.ClassOf(of(t)) != text.Link {
			out = append(out, t)
		}
	}
	if len(out) == 0 {
		return terms
	}
	return out
}

func (b *builder) writeStreetPostings(terms uint32) {
	b.writePostings(secTermStreetsFirst, secTermStreets, b.streets, terms)
}

// writePostings turns what has which name into what each term is part of.
func (b *builder) writePostings(first, items section, names []uint32, terms uint32) {
	starts := make([]uint32, terms+1)
	for _, name := range names {
		for _, t := range unique(b.names.termsOf(name)) {
			starts[t+1]++
		}
	}
	for i := range terms {
		starts[i+1] += starts[i]
	}
	b.w.column(first, starts)
	out := make([]uint32, starts[terms])
	for i, name := range names {
		for _, t := range unique(b.names.termsOf(name)) {
			out[starts[t]] = uint32(i)
			starts[t]++
		}
	}
	b.w.column(items, out)
}

// unique are the terms without those said before.
func unique(terms []uint32) []uint32 {
	for i, t := range terms {
		if slices.Contains(terms[:i], t) {
			out := slices.Clone(terms)
			slices.Sort(out)
			return slices.Compact(out)
		}
	}
	return terms
}

// eachDelete gives what is left of a term when letters are dropped: two letters of a long term, one of a short one.
// Numbers have no misspellings.
func eachDelete(term string, yield func([]byte)) {
	switch {
	case len(term) < 3 || term[0] >= '0' && term[0] <= '9':
	case len(term) >= longTerm:
		text.Deletes(term, 2, yield)
	default:
		text.Deletes(term, 1, yield)
	}
}

func eachSound(term string, yield func([]byte)) {
	if sound := text.Sound(term); sound != "" {
		yield([]byte(sound))
	}
}

// writeHashed writes a table of buckets that leads from keys of terms to the terms.
func (b *builder) writeHashed(first, items section, terms []string, each func(string, func([]byte))) {
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
	b.w.column(first, starts)
	out := make([]uint32, starts[buckets])
	b.eachBucket(terms, each, buckets, func(term, bucket uint32) {
		out[starts[bucket]] = term
		starts[bucket]++
	})
	b.w.column(items, out)
}

// eachBucket gives each term the buckets of its keys, each once.
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

func (b *builder) writePostcodeTable() {
	codes := make([]uint32, 0, len(b.postcodes))
	for code := range b.postcodes {
		codes = append(codes, code)
	}
	slices.Sort(codes)
	b.w.column(secPostcodes, codes)
	at := uint32(0)
	b.w.u32(secPostcodesFirst, at)
	for _, code := range codes {
		b.w.column(secPostcodeCommunes, b.postcodes[code])
		at += uint32(len(b.postcodes[code]))
		b.w.u32(secPostcodesFirst, at)
	}
}

// writeOrders writes the order of communes by code and of streets by key.
func (b *builder) writeOrders() {
	codes := make([]Code, b.summary.Communes)
	for _, p := range b.places {
		if p.Kind == Current {
			codes[p.Commune] = p.Code
		}
	}
	b.w.column(secCommunesByCode, ordered(len(codes), func(i, j uint32) int { return slices.Compare(codes[i][:], codes[j][:]) }))
	b.w.column(secStreetsByKey, ordered(len(b.keys), func(i, j uint32) int { return cmp.Compare(b.keys[i], b.keys[j]) }))
}

// ordered are the numbers below n in an order, ties by themselves.
func ordered(n int, compare func(i, j uint32) int) []uint32 {
	out := make([]uint32, n)
	for i := range out {
		out[i] = uint32(i)
	}
	slices.SortFunc(out, func(i, j uint32) int { return cmp.Or(compare(i, j), cmp.Compare(i, j)) })
	return out
}
