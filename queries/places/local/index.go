package local

import (
	"cmp"
	"slices"
	"sort"
	"strings"
	"sync"

	"lieudit/queries/places/finder"
	"lieudit/schemas/table"
)

// index is a set of an account's sites. A site's ordinal is its place in the order of names. An index does not change: a
// later one is made of it, and shares the texts.
type index struct {
	rows   []uint64 // where each site's parcel is: the text, and the byte in it
	texts  []string
	primer string    // of the contents in the parcels
	primed int       // live when the primer was made
	lat    []float64 // NaN for a site without a position
	lon    []float64
	byID   []uint32 // ordinals in the order of external ids, whatever their case
	words  dict
	marks  dict
	live   int // bytes of parcels that are in use
	kept   int // bytes of texts
}

const inText = 40 // bits of a row for the byte in its text

func (x *index) parcel(ordinal uint32) parcel {
	at := x.rows[ordinal]
	return parcel{x.texts[at>>inText][at&(1<<inText-1):]}
}

func (x *index) place(ordinal uint32) finder.Place { return x.parcel(ordinal).place() }

// after is the first ordinal whose place is after p, by name alone.
func (x *index) after(p finder.Place) uint32 {
	p.Rank, p.Distance = 0, 0
	return uint32(sort.Search(len(x.rows), func(i int) bool { return x.place(uint32(i)).Compare(p) > 0 }))
}

// compareIDs is the order of byID.
func compareIDs(a, b finder.Place) int {
	return cmp.Or(compareFolded(a.ExternalID, b.ExternalID),
		strings.Compare(a.ExternalID, b.ExternalID), strings.Compare(a.Referential, b.Referential))
}

// compareFolded compares texts of letters without accents, whatever their case.
func compareFolded(a, b string) int {
	for i := range min(len(a), len(b)) {
		if c := cmp.Compare(lower(a[i]), lower(b[i])); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(a), len(b))
}

func lower(b byte) byte {
	if 'A' <= b && b <= 'Z' {
		return b + 'a' - 'A'
	}
	return b
}

// from is where in byID the sites begin that are not before p.
func (x *index) from(p finder.Place) int {
	return sort.Search(len(x.byID), func(n int) bool { return compareIDs(x.place(x.byID[n]), p) >= 0 })
}

// find is the ordinal of a site.
func (x *index) find(code, externalID string) (uint32, bool) {
	wanted := finder.Place{ExternalID: externalID, Referential: code}
	n := x.from(wanted)
	if n == len(x.byID) || compareIDs(x.place(x.byID[n]), wanted) != 0 {
		return 0, false
	}
	return x.byID[n], true
}

// changed is the index after rows took the place of those of the same sites. It has those that holds says.
func (x *index) changed(rows []table.Site, holds func(active bool) bool) (*index, error) {
	left, there := make([]bool, len(x.rows)), len(x.rows)
	made := &index{texts: slices.Clip(x.texts), primer: x.primer, primed: x.primed, live: x.live, kept: x.kept}
	if len(x.rows) == 0 {
		made.primer = primerOf(rows)
	}
	read, err := readAll(rows, holds, made.primer)
	if err != nil {
		return nil, err
	}
	fresh := make([]entry, 0, len(rows))
	var text strings.Builder
	for i := range rows {
		r := &rows[i]
		if n, ok := x.find(r.Referential, r.ExternalID); ok && !left[n] {
			left[n] = true
			there--
			made.live -= x.size(n)
		}
		if !holds(r.Active) {
			continue
		}
		e := read[i].entry
		e.at = uint64(len(x.texts))<<inText | uint64(text.Len())
		wrap(&text, e.place, r, read[i].squeezed)
		fresh = append(fresh, e)
	}
	made.texts = append(made.texts, strings.Clone(text.String()))
	made.live, made.kept = made.live+text.Len(), made.kept+text.Len()
	if len(x.rows) == 0 {
		made.primed = made.live
	}
	slices.SortFunc(fresh, func(a, b entry) int { return a.place.Compare(b.place) })
	made.merge(x, left, there, fresh)
	return made.packed(), nil
}

func (x *index) size(ordinal uint32) int {
	p := x.parcel(ordinal)
	whole := len(p.rest)
	for range 5 {
		p.text()
	}
	for range 5 {
		p.number()
	}
	return whole - len(p.rest)
}

// merge fills the index with the sites of another but those that left, and fresh ones.
func (x *index) merge(old *index, left []bool, there int, fresh []entry) {
	n := there + len(fresh)
	var words, marks dict
	var cut sync.WaitGroup
	cut.Go(func() { words, marks = dictsOf(fresh) })
	x.rows, x.lat, x.lon = make([]uint64, 0, n), make([]float64, 0, n), make([]float64, 0, n)
	stay, come := make([]uint32, len(old.rows)), make([]uint32, len(fresh))
	from := uint32(0)
	carry := func(until uint32) {
		for ; from < until; from++ {
			if stay[from] = gone; !left[from] {
				stay[from] = x.append(old.rows[from], old.lat[from], old.lon[from])
			}
		}
	}
	for i := range fresh {
		e := &fresh[i]
		carry(old.after(e.place))
		come[i] = x.append(e.at, e.lat, e.lon)
	}
	carry(uint32(len(old.rows)))
	cut.Wait()
	x.words, x.marks = merged(&old.words, &words, stay, come), merged(&old.marks, &marks, stay, come)
	x.sortIDs(old, stay, come)
}

// append adds a site at the end of the order and gives its ordinal.
func (x *index) append(row uint64, lat, lon float64) uint32 {
	x.rows, x.lat, x.lon = append(x.rows, row), append(x.lat, lat), append(x.lon, lon)
	return uint32(len(x.rows) - 1)
}

// dictsOf are the words and marks of sites, by their place in the list.
func dictsOf(fresh []entry) (words, marks dict) {
	w, m := newGathering(), newGathering()
	for i := range fresh {
		e := &fresh[i]
		e.glance.texts(func(text string, in field) { w.cut(text, uint32(i), in) })
		e.marks(func(mark string, in field) { m.add(m.number(mark), uint32(i), in) })
	}
	return w.dict(), m.dict()
}

// sortIDs merges the old order of ids with the fresh ones.
func (x *index) sortIDs(old *index, stay, come []uint32) {
	slices.SortFunc(come, func(a, b uint32) int { return compareIDs(x.place(a), x.place(b)) })
	x.byID = make([]uint32, 0, len(x.rows))
	from := 0
	carry := func(until int) {
		for ; from < until; from++ {
			if n := stay[old.byID[from]]; n != gone {
				x.byID = append(x.byID, n)
			}
		}
	}
	for _, n := range come {
		carry(old.from(x.place(n)))
		x.byID = append(x.byID, n)
	}
	carry(len(old.byID))
}

// maxTexts is how many texts the parcels of an index may be in.
const maxTexts = 64

// packed is the index with its parcels in one text where they are in too many, or more is kept than is in use.
func (x *index) packed() *index {
	if len(x.texts) <= maxTexts && x.kept <= 2*x.live+1<<12 {
		return x
	}
	var text strings.Builder
	text.Grow(x.live)
	for i := range x.rows {
		n := uint32(i)
		from := text.Len()
		text.WriteString(x.parcel(n).rest[:x.size(n)])
		x.rows[i] = uint64(from)
	}
	x.texts, x.live, x.kept = []string{text.String()}, text.Len(), text.Len()
	return x
}
