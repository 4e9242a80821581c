package memory

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/google/uuid"

	"lieudit/queries/locations/search"
	"lieudit/schemas/locations"
	"lieudit/schemas/table"
)

// siteRecord is a site in memory, along with the bytes that follow it in its chunk: six strings, each after its length
// (folded name, external id, referential, opening, packed id, compressed content), then five numbers (version, times of
// creation, modification and deactivation, whether it is active). Numbers are varints. It begins with the fields of the
// sort key.
type siteRecord struct{ rest string }

// readString reads a length and n bytes.
func (p *siteRecord) readString() string {
	n, size := uint64(p.rest[0]), 1
	if n >= 0x80 {
		n, size = p.decodeUvarint()
	}
	s := p.rest[size : size+int(n)]
	p.rest = p.rest[size+int(n):]
	return s
}

func (p *siteRecord) decodeUvarint() (n uint64, size int) {
	for shift := 0; ; shift += 7 {
		b := p.rest[size]
		size++
		n |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return n, size
		}
	}
}

// readInt reads an unsigned varint. Negative numbers, of ten bytes, come back as they were.
func (p *siteRecord) readInt() int64 {
	n, size := p.decodeUvarint()
	p.rest = p.rest[size:]
	return int64(n)
}

// sortKey returns the sort key of the site. It shares the record's bytes.
func (p siteRecord) sortKey() search.SortKey {
	return search.SortKey{Name: p.readString(), ExternalID: p.readString(), Referential: p.readString()}
}

// opening returns the opening hours of the site. It shares the record's bytes.
func (p siteRecord) opening() locations.Opening {
	for range 3 {
		p.readString()
	}
	return locations.Opening(p.readString())
}

// writeRecord writes a row's record, in the form that siteRecord describes.
func writeRecord(w *strings.Builder, e indexEntry, r *table.Site, compressed []byte) {
	var buf [binary.MaxVarintLen64]byte
	for _, s := range []string{e.sortKey.Name, r.ExternalID, r.Referential, string(e.opening), packID(r.PublicID), string(compressed)} {
		w.Write(binary.AppendUvarint(buf[:0], uint64(len(s))))
		w.WriteString(s)
	}
	for _, n := range []int64{r.Version, int64(r.Created), int64(r.Modified), int64(r.Deactivated), int64(boolToInt(r.Active))} {
		w.Write(binary.AppendUvarint(buf[:0], uint64(n)))
	}
}

func boolToInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// packID returns a site's id in 16 bytes if it is a UUID in the usual form, otherwise the id itself.
func packID(siteID string) string {
	if id, err := uuid.Parse(siteID); err == nil && id.String() == siteID {
		return string(id[:])
	}
	return siteID
}

// unpackID is the inverse of packID. An id of 16 bytes that is not a UUID would come back as one.
func unpackID(raw string) string {
	if id, err := uuid.FromBytes([]byte(raw)); err == nil {
		return id.String()
	}
	return strings.Clone(raw)
}

// decodeSite returns the site as it was stored, in memory of its own.
func (p siteRecord) decodeSite(dictionary string) (locations.Site, error) {
	p.readString()
	r := table.Site{ExternalID: strings.Clone(p.readString()), Referential: strings.Clone(p.readString())}
	p.readString()
	r.PublicID, r.Content = unpackID(p.readString()), decompress(dictionary, p.readString())
	r.Version, r.Created, r.Modified = p.readInt(), table.Instant(p.readInt()), table.Instant(p.readInt())
	r.Deactivated, r.Active = table.Instant(p.readInt()), p.readInt() != 0
	return locations.SiteFromRow(r)
}

// indexEntry is a site that is about to be added to an index.
type indexEntry struct {
	sortKey    search.SortKey
	recordRef  uint64 // of its record
	lat        float64
	lon        float64
	opening    locations.Opening
	projection siteProjection
}

// siteProjection holds the fields of a stored site that a search uses. Decoding the whole site takes much longer.
type siteProjection struct {
	Content struct {
		Name    string                 `json:"nom"`
		Address *locations.SiteAddress `json:"adresse"`
		Tags    []string               `json:"tags"`
		Hours   json.RawMessage        `json:"horaires"`
		Lat     *float64               `json:"lat"`
		Lon     *float64               `json:"lon"`
	} `json:"content"`
	Position *struct {
		Lat float64 `json:"lat"`
		Lon float64 `json:"lon"`
	} `json:"position"`
}

// parseEntry reads the fields of a row that the index needs, and fails if the row's content is not JSON. The position is
// the stored one if there is one, otherwise that of the content. recordRef is left to the caller.
func parseEntry(r *table.Site) (e indexEntry, err error) {
	if r.Content != "" { // otherwise its key was destroyed
		if err := json.Unmarshal([]byte(r.Content), &e.projection); err != nil {
			return e, fmt.Errorf("content of %s: %w", r.ID, err)
		}
	}
	e.sortKey = search.SortKey{Name: search.FoldName(e.projection.Content.Name), ExternalID: r.ExternalID, Referential: r.Referential}
	e.lat, e.lon = math.NaN(), math.NaN()
	switch c := e.projection.Content; {
	case e.projection.Position != nil:
		e.lat, e.lon = e.projection.Position.Lat, e.projection.Position.Lon
	case c.Lat != nil && c.Lon != nil:
		e.lat, e.lon = *c.Lat, *c.Lon
	}
	return e, nil
}

// openingCache holds parsed opening hours, because many sites of a chain have the same text.
type openingCache map[string]locations.Opening

// maxCachedOpenings bounds an openingCache. A cache does not pay for sites that all differ in their hours.
const maxCachedOpenings = 1000

// openingOf returns the opening hours of a site.
func (c openingCache) openingOf(e *indexEntry) locations.Opening {
	content := &e.projection.Content
	if len(content.Hours) == 0 {
		return ""
	}
	lat, lon := &e.lat, &e.lon
	if math.IsNaN(e.lat) {
		lat, lon = nil, nil
	}
	zone := locations.ZoneOf(content.Address, lat, lon)
	key := zone + string(content.Hours)
	o, ok := c[key]
	if !ok {
		if o = locations.NewOpening(content.Hours, zone); len(c) < maxCachedOpenings {
			c[key] = o
		}
	}
	return o
}

// A facet is something that a site has or does not have: its referential, a tag. The first letter keeps a tag and a
// referential of the same text apart.
func referentialFacet(code string) string { return "r" + code }
func tagFacet(tag string) string          { return "t" + search.FoldTag(tag) }

// visitFacets calls yield with each facet. The field means nothing.
func (e *indexEntry) visitFacets(yield func(facet string, field search.Field)) {
	yield(referentialFacet(e.sortKey.Referential), search.InName)
	for _, tag := range e.projection.Content.Tags {
		yield(tagFacet(tag), search.InName)
	}
}

// The contents of an account's sites are very similar: the same members in the same order, often the same hours, the same
// beginning of a web address. So a content is stored as references to a dictionary, a text made of a few of them, and the
// rest. A content is a few hundred bytes: too short for the block headers and code tables that flate and zstd write into
// each.
const (
	maxDictionary   = 1 << 14 // bytes
	dictionaryShare = 16      // the dictionary is at most this part of the contents
	minMatch        = 6       // bytes that are worth a reference
	maxTries        = 12      // matches in the dictionary that are compared
)

// buildDictionary returns a dictionary for the contents of rows: those of at most 64 rows, spread evenly, as far as they
// fit. It is short or empty if there are too few rows for it to pay.
func buildDictionary(rows []table.Site) string {
	total := 0
	for i := range rows {
		total += len(rows[i].Content)
	}
	limit := min(maxDictionary, total/dictionaryShare)
	var sample strings.Builder
	for step := 1 + len(rows)/64; len(rows) > 0; rows = rows[min(step, len(rows)):] {
		c := rows[0].Content
		sample.WriteString(c[:min(len(c), limit-sample.Len())])
	}
	return sample.String()
}

// needsNewDictionary reports whether the index has grown so much since its dictionary was made that another would pay.
// Only loading all sites anew makes one.
func (x *index) needsNewDictionary() bool {
	return x.liveBytes > 1<<16 && x.liveBytes > 4*x.dictionaryLiveBytes
}

// compressor writes texts with references to a dictionary. It is used by one goroutine.
type compressor struct {
	dictionary string
	hashHeads  [1 << 12]uint16 // the last offset of four bytes with this hash, plus 1; 0 for none
	hashChain  []uint16        // by offset, the previous one with the same hash, plus 1; 0 for none
	out        []byte          // reused by each call of compress
}

// newCompressor hashes every offset of the dictionary, which may be empty.
func newCompressor(dictionary string) *compressor {
	q := &compressor{dictionary: dictionary, hashChain: make([]uint16, len(dictionary))}
	for i := 0; i+4 <= len(dictionary); i++ {
		h := hashPrefix(dictionary[i:])
		q.hashChain[i], q.hashHeads[h] = q.hashHeads[h], uint16(i+1)
	}
	return q
}

// hashPrefix returns a 12-bit hash of the first four bytes.
func hashPrefix(s string) uint32 {
	return (uint32(s[0]) | uint32(s[1])<<8 | uint32(s[2])<<16 | uint32(s[3])<<24) * 2654435761 >> 20
}

// compress returns the compressed text, which is valid until the next call. It consists of the text's length, followed
// alternately by a length with n bytes, and a length with an offset in the dictionary.
func (q *compressor) compress(s string) []byte {
	q.out = binary.AppendUvarint(q.out[:0], uint64(len(s)))
	literalStart := 0
	for i := 0; i+4 <= len(s); {
		at, n := q.longestMatch(s[i:])
		if n < minMatch {
			i++
			continue
		}
		q.writeLiteral(s[literalStart:i])
		q.out = binary.AppendUvarint(binary.AppendUvarint(q.out, uint64(n)), uint64(at))
		i += n
		literalStart = i
	}
	if literalStart < len(s) {
		q.writeLiteral(s[literalStart:])
	}
	return q.out
}

// writeLiteral writes bytes that are not in the dictionary; s is empty between two adjacent references.
func (q *compressor) writeLiteral(s string) {
	q.out = append(binary.AppendUvarint(q.out, uint64(len(s))), s...)
}

// longestMatch finds the longest prefix of the text, of at least four bytes, in the dictionary.
func (q *compressor) longestMatch(s string) (at, n int) {
	candidate := q.hashHeads[hashPrefix(s)]
	for try := 0; candidate > 0 && try < maxTries; try++ {
		if same := commonPrefix(s, q.dictionary[candidate-1:]); same > n {
			at, n = int(candidate-1), same
		}
		candidate = q.hashChain[candidate-1]
	}
	return at, n
}

func commonPrefix(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// decompress returns the text that was compressed. It panics on bytes that compress did not make, which cannot occur
// because compressed texts never leave memory.
func decompress(dictionary, compressed string) string {
	p := siteRecord{compressed}
	var text strings.Builder
	text.Grow(int(p.readInt()))
	for p.rest != "" {
		text.WriteString(p.readString())
		if p.rest == "" {
			break
		}
		n := int(p.readInt())
		at := int(p.readInt())
		text.WriteString(dictionary[at : at+n])
	}
	return text.String()
}
