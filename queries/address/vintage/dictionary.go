package vintage

import (
	"bytes"
	"math/bits"
	"sort"

	"lieudit/queries/address/text"
)

// Terms of so many letters and more are found across two edits, shorter ones across one.
const longTerm = 8

// Terms is how many terms the dictionary holds. They are sorted, so that a prefix is a range of them.
func (v *Vintage) Terms() uint32 { return uint32(v.terms.len()) }

// Term is the text of a term.
func (v *Vintage) Term(i uint32) []byte { return v.terms.at(i) }

// Find is the ordinal of a term.
func (v *Vintage) Find(term string) (uint32, bool) {
	i := v.search(term)
	return i, i < v.Terms() && string(v.terms.at(i)) == term
}

func (v *Vintage) search(term string) uint32 {
	return uint32(sort.Search(v.terms.len(), func(i int) bool { return string(v.terms.at(uint32(i))) >= term }))
}

// Prefix is the range of the terms that begin so.
func (v *Vintage) Prefix(prefix string) (from, to uint32) {
	from = v.search(prefix)
	rest := v.terms.len() - int(from)
	return from, from + uint32(sort.Search(rest, func(i int) bool {
		return !bytes.HasPrefix(v.terms.at(from+uint32(i)), []byte(prefix))
	}))
}

// Like calls yield with the terms within so many edits, some more than once, and stops when yield answers false. It
// counts a step for each term it looks at.
func (v *Vintage) Like(term string, edits int, yield func(term uint32, distance int) bool) {
	going := true
	text.Deletes(term, edits, func(left []byte) {
		if !going {
			return
		}
		bucket := v.deletes.at(bucketOf(left, v.deletes.first.Len()-1))
		for i := 0; i < bucket.Len() && going; i++ {
			id := bucket.At(i)
			going = yield(id, text.Distance(term, string(v.terms.at(id)), edits))
		}
	})
}

// Sounding calls yield with the terms that sound the same.
func (v *Vintage) Sounding(sound string, yield func(term uint32) bool) {
	bucket := v.sounds.at(bucketOf([]byte(sound), v.sounds.first.Len()-1))
	for i := range bucket.Len() {
		if id := bucket.At(i); text.Sound(string(v.terms.at(id))) == sound && !yield(id) {
			return
		}
	}
}

// bucketOf spreads keys over a power of two of buckets (FNV-1a, folded).
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

// StreetsWith are the streets whose name holds a term, sorted: the most important communes first.
func (v *Vintage) StreetsWith(term uint32) Column { return v.termStreets.at(term) }

// PlacesWith are the places whose name holds a term, sorted likewise.
func (v *Vintage) PlacesWith(term uint32) Column { return v.termPlaces.at(term) }

// PostcodeCommunes are the communes that have addresses of a postcode.
func (v *Vintage) PostcodeCommunes(postcode uint32) Column {
	codes := Column(v.parts[secPostcodes])
	i := sort.Search(codes.Len(), func(i int) bool { return codes.At(i) >= postcode })
	if codes.At(i) != postcode {
		return nil
	}
	return lists{Column(v.parts[secPostcodesFirst]), Column(v.parts[secPostcodeCommunes])}.at(uint32(i))
}

// PostcodesCommunes are the communes that have addresses of the postcodes in [from, to), once for each of those.
func (v *Vintage) PostcodesCommunes(from, to uint32) Column {
	codes, first := Column(v.parts[secPostcodes]), Column(v.parts[secPostcodesFirst])
	i := sort.Search(codes.Len(), func(i int) bool { return codes.At(i) >= from })
	j := sort.Search(codes.Len(), func(i int) bool { return codes.At(i) >= to })
	items := Column(v.parts[secPostcodeCommunes])
	a, b := bounded(first.At(i), first.At(j), items.Len())
	return items[a*4 : b*4]
}

// CommuneOf is the commune of a code.
func (v *Vintage) CommuneOf(code string) (uint32, bool) {
	byCode, want := Column(v.parts[secCommunesByCode]), CodeOf(code)
	i := sort.Search(byCode.Len(), func(i int) bool {
		c := v.communes.at(byCode.At(i)).code(0)
		return bytes.Compare(c[:], want[:]) >= 0
	})
	if i == byCode.Len() || v.communes.at(byCode.At(i)).code(0) != want {
		return 0, false
	}
	return byCode.At(i), true
}

// Gazetteer is a range of the places in the order of their names, links left out, that begin with the same terms.
type Gazetteer struct {
	v        *Vintage
	depth    int
	from, to int
}

// Gazetteer is the range of all places.
func (v *Vintage) Gazetteer() Gazetteer {
	return Gazetteer{v: v, to: Column(v.parts[secPlacesByName]).Len()}
}

// Len is how many places there are.
func (g Gazetteer) Len() int { return g.to - g.from }

func (g Gazetteer) key(i int) Column {
	return lists{Column(g.v.parts[secPlaceKeysFirst]), Column(g.v.parts[secPlaceKeys])}.at(uint32(i))
}

// Next narrows the range to names that go on with a term in [from, to).
func (g Gazetteer) Next(from, to uint32) Gazetteer {
	search := func(least uint32) int {
		return g.from + sort.Search(g.to-g.from, func(i int) bool {
			key := g.key(g.from + i)
			return key.Len() > g.depth && key.At(g.depth) >= least
		})
	}
	lo := search(from)
	return Gazetteer{g.v, g.depth + 1, lo, max(lo, search(to))}
}

// Whole is how many of the places have been named whole; they come first.
func (g Gazetteer) Whole() int {
	return sort.Search(g.to-g.from, func(i int) bool { return g.key(g.from+i).Len() > g.depth })
}

// Place is the ordinal of the place at i of the range, and how many of its terms have not been named.
func (g Gazetteer) Place(i int) (place uint32, unnamed int) {
	return Column(g.v.parts[secPlacesByName]).At(g.from + i), g.key(g.from+i).Len() - g.depth
}
