package memory

import (
	"cmp"
	"runtime"
	"slices"
	"sort"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"lieudit/queries/locations/search"
	"lieudit/schemas/table"
)

// index is a set of an account's sites. A site's ordinal is its rank in the order of names. An index does not change:
// withChanges makes the next one, which shares the chunks of records.
type index struct {
	recordRefs          []uint64  // by ordinal, the location of the site's record: the chunk, and the byte in it
	chunks              []string  // of records, one after the other
	dictionary          string    // that the contents in the records are compressed with
	dictionaryLiveBytes int       // liveBytes when the dictionary was made
	lat                 []float64 // by ordinal; NaN for a site without a position
	lon                 []float64
	byID                []uint32      // ordinals in the order of compareIDs
	words               invertedIndex // of the texts that are searched
	facets              invertedIndex // of referentials and tags
	liveBytes           int           // bytes of records in use
	totalBytes          int           // bytes of all chunks
}

// chunkOffsetBits is how many low bits of a recordRef are the offset in its chunk; the bits above are the chunk.
const chunkOffsetBits = 40

// record returns the record of a site. It shares the chunk's bytes.
func (x *index) record(ordinal uint32) siteRecord {
	ref := x.recordRefs[ordinal]
	return siteRecord{x.chunks[ref>>chunkOffsetBits][ref&(1<<chunkOffsetBits-1):]}
}

// sortKey returns the sort key of a site, without rank and distance.
func (x *index) sortKey(ordinal uint32) search.SortKey { return x.record(ordinal).sortKey() }

// firstAfter returns the first ordinal whose sort key comes after p, by name, external id and referential alone.
func (x *index) firstAfter(p search.SortKey) uint32 {
	p.Rank, p.Distance = 0, 0
	return uint32(sort.Search(len(x.recordRefs), func(i int) bool { return x.sortKey(uint32(i)).Compare(p) > 0 }))
}

// compareIDs is the order of byID: external ids regardless of case, then as bytes, then referentials.
func compareIDs(a, b search.SortKey) int {
	return cmp.Or(compareFolded(a.ExternalID, b.ExternalID),
		strings.Compare(a.ExternalID, b.ExternalID), strings.Compare(a.Referential, b.Referential))
}

// compareFolded compares ASCII texts regardless of case.
func compareFolded(a, b string) int {
	for i := range min(len(a), len(b)) {
		if c := cmp.Compare(lower(a[i]), lower(b[i])); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(a), len(b))
}

// lower returns an ASCII letter in lower case, and any other byte unchanged.
func lower(b byte) byte {
	if 'A' <= b && b <= 'Z' {
		return b + 'a' - 'A'
	}
	return b
}

// lowerBoundByID returns the first index in byID whose site is not before p.
func (x *index) lowerBoundByID(p search.SortKey) int {
	return sort.Search(len(x.byID), func(n int) bool { return compareIDs(x.sortKey(x.byID[n]), p) >= 0 })
}

// findSite returns the ordinal of a site.
func (x *index) findSite(code, externalID string) (uint32, bool) {
	target := search.SortKey{ExternalID: externalID, Referential: code}
	n := x.lowerBoundByID(target)
	if n == len(x.byID) || compareIDs(x.sortKey(x.byID[n]), target) != 0 {
		return 0, false
	}
	return x.byID[n], true
}

// withChanges returns the index after rows have replaced those of the same sites. It keeps the sites that includes
// accepts. It fails if the content of a row cannot be read. x is not changed: the next index has x's chunks and one
// more with the records of the new rows. An empty x makes a dictionary from the rows.
func (x *index) withChanges(rows []table.Site, includes func(active bool) bool) (*index, error) {
	replaced, remaining := make([]bool, len(x.recordRefs)), len(x.recordRefs)
	next := &index{chunks: slices.Clip(x.chunks), dictionary: x.dictionary, dictionaryLiveBytes: x.dictionaryLiveBytes, liveBytes: x.liveBytes, totalBytes: x.totalBytes}
	if len(x.recordRefs) == 0 {
		next.dictionary = buildDictionary(rows)
	}
	parsed, err := parseRows(rows, includes, next.dictionary)
	if err != nil {
		return nil, err
	}
	added := make([]indexEntry, 0, len(rows))
	var chunk strings.Builder
	for i := range rows {
		r := &rows[i]
		if n, ok := x.findSite(r.Referential, r.ExternalID); ok && !replaced[n] {
			replaced[n] = true
			remaining--
			next.liveBytes -= x.recordSize(n)
		}
		if !includes(r.Active) {
			continue
		}
		e := parsed[i].indexEntry
		e.recordRef = uint64(len(x.chunks))<<chunkOffsetBits | uint64(chunk.Len())
		writeRecord(&chunk, e, r, parsed[i].compressed)
		added = append(added, e)
	}
	next.chunks = append(next.chunks, strings.Clone(chunk.String()))
	next.liveBytes, next.totalBytes = next.liveBytes+chunk.Len(), next.totalBytes+chunk.Len()
	if len(x.recordRefs) == 0 {
		next.dictionaryLiveBytes = next.liveBytes
	}
	slices.SortFunc(added, func(a, b indexEntry) int { return a.sortKey.Compare(b.sortKey) })
	next.merge(x, replaced, remaining, added)
	return next.compact(), nil
}

// recordSize returns the length of a site's record, which records do not hold, because only compact and withChanges
// need it.
func (x *index) recordSize(ordinal uint32) int {
	p := x.record(ordinal)
	whole := len(p.rest)
	for range 6 {
		p.readString()
	}
	for range 5 {
		p.readInt()
	}
	return whole - len(p.rest)
}

// merge fills the empty index x with the sites of old that were not replaced, and with added, both in the order of
// names. Every site gets a new ordinal: movedOrdinals maps the ordinals of old, addedOrdinals the indexes in added.
// The words of the added sites are inverted meanwhile.
func (x *index) merge(old *index, replaced []bool, remaining int, added []indexEntry) {
	n := remaining + len(added)
	var words, facets invertedIndex
	var indexing sync.WaitGroup
	indexing.Go(func() { words, facets = invertSites(added) })
	x.recordRefs, x.lat, x.lon = make([]uint64, 0, n), make([]float64, 0, n), make([]float64, 0, n)
	movedOrdinals, addedOrdinals := make([]uint32, len(old.recordRefs)), make([]uint32, len(added))
	nextOld := uint32(0)
	copyUntil := func(until uint32) {
		for ; nextOld < until; nextOld++ {
			if movedOrdinals[nextOld] = droppedOrdinal; !replaced[nextOld] {
				movedOrdinals[nextOld] = x.appendSite(old.recordRefs[nextOld], old.lat[nextOld], old.lon[nextOld])
			}
		}
	}
	for i := range added {
		e := &added[i]
		copyUntil(old.firstAfter(e.sortKey))
		addedOrdinals[i] = x.appendSite(e.recordRef, e.lat, e.lon)
	}
	copyUntil(uint32(len(old.recordRefs)))
	indexing.Wait()
	x.words, x.facets = mergeInverted(&old.words, &words, movedOrdinals, addedOrdinals), mergeInverted(&old.facets, &facets, movedOrdinals, addedOrdinals)
	x.mergeIDOrder(old, movedOrdinals, addedOrdinals)
}

// appendSite adds a site at the end of the order and returns its ordinal.
func (x *index) appendSite(recordRef uint64, lat, lon float64) uint32 {
	x.recordRefs, x.lat, x.lon = append(x.recordRefs, recordRef), append(x.lat, lat), append(x.lon, lon)
	return uint32(len(x.recordRefs) - 1)
}

// invertSites indexes the words and the facets of sites by their index in the list. mergeInverted turns these into
// ordinals.
func invertSites(added []indexEntry) (words, facets invertedIndex) {
	w, f := newPostingCollector(), newPostingCollector()
	for i := range added {
		e := &added[i]
		c := &e.projection.Content
		search.VisitTexts(c.Name, c.Tags, c.Address, func(text string, field search.Field) { w.addText(text, uint32(i), field) })
		e.visitFacets(func(facet string, field search.Field) { f.addPosting(f.wordID(facet), uint32(i), field) })
	}
	return w.build(), f.build()
}

// mergeIDOrder merges old's order of external ids with that of the added sites. It sorts addedOrdinals.
func (x *index) mergeIDOrder(old *index, movedOrdinals, addedOrdinals []uint32) {
	slices.SortFunc(addedOrdinals, func(a, b uint32) int { return compareIDs(x.sortKey(a), x.sortKey(b)) })
	x.byID = make([]uint32, 0, len(x.recordRefs))
	nextOld := 0
	copyUntil := func(until int) {
		for ; nextOld < until; nextOld++ {
			if n := movedOrdinals[old.byID[nextOld]]; n != droppedOrdinal {
				x.byID = append(x.byID, n)
			}
		}
	}
	for _, n := range addedOrdinals {
		copyUntil(old.lowerBoundByID(x.sortKey(n)))
		x.byID = append(x.byID, n)
	}
	copyUntil(len(old.byID))
}

// maxChunks is how many chunks the records of an index may be in: each refresh adds one, even for a single row.
const maxChunks = 64

// compact copies the records into one chunk if there are too many chunks, or if half of their bytes are unused. It
// changes x, which no query uses yet, but not the chunks, which x shares with earlier indexes.
func (x *index) compact() *index {
	if len(x.chunks) <= maxChunks && x.totalBytes <= 2*x.liveBytes+1<<12 {
		return x
	}
	var chunk strings.Builder
	chunk.Grow(x.liveBytes)
	for i := range x.recordRefs {
		n := uint32(i)
		start := chunk.Len()
		chunk.WriteString(x.record(n).rest[:x.recordSize(n)])
		x.recordRefs[i] = uint64(start)
	}
	x.chunks, x.liveBytes, x.totalBytes = []string{chunk.String()}, chunk.Len(), chunk.Len()
	return x
}

// parsedRow is a row in the form that withChanges adds.
type parsedRow struct {
	indexEntry
	compressed []byte
}

const rowsPerGoroutine = 256 // at least

// parseRows parses and compresses the rows that an index is to have, on all processors: an account that was never
// searched is read whole while a caller waits. The result has an element for each row, which is empty if includes
// refuses the row. A single unreadable content fails all.
func parseRows(rows []table.Site, includes func(active bool) bool, dictionary string) ([]parsedRow, error) {
	parsed := make([]parsedRow, len(rows))
	share := max(len(rows)/runtime.GOMAXPROCS(0)+1, rowsPerGoroutine)
	var readers errgroup.Group
	for start := 0; start < len(rows); start += share {
		readers.Go(func() (err error) {
			compressor, openings := newCompressor(dictionary), openingCache{}
			for i := start; i < min(start+share, len(rows)) && err == nil; i++ {
				if r := &rows[i]; includes(r.Active) {
					parsed[i].indexEntry, err = parseEntry(r)
					parsed[i].opening = openings.openingOf(&parsed[i].indexEntry)
					parsed[i].compressed = slices.Clone(compressor.compress(r.Content))
				}
			}
			return err
		})
	}
	return parsed, readers.Wait()
}
