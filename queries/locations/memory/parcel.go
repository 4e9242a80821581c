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

// siteRecord is a site as it is held: one text that begins with what it is sorted by.
type siteRecord struct{ rest string }

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

func (p *siteRecord) readInt() int64 {
	n, size := p.decodeUvarint()
	p.rest = p.rest[size:]
	return int64(n)
}

// sortKey is what the site is sorted by.
func (p siteRecord) sortKey() search.SortKey {
	return search.SortKey{Name: p.readString(), ExternalID: p.readString(), Referential: p.readString()}
}

// writeRecord writes a row's parcel.
func writeRecord(w *strings.Builder, sortKey search.SortKey, r *table.Site, compressed []byte) {
	var buf [binary.MaxVarintLen64]byte
	for _, s := range []string{sortKey.Name, r.ExternalID, r.Referential, packID(r.PublicID), string(compressed)} {
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

// packID is a site's id in its 16 bytes, where it is one that they tell.
func packID(siteID string) string {
	if id, err := uuid.Parse(siteID); err == nil && id.String() == siteID {
		return string(id[:])
	}
	return siteID
}

func unpackID(raw string) string {
	if id, err := uuid.FromBytes([]byte(raw)); err == nil {
		return id.String()
	}
	return strings.Clone(raw)
}

// decodeSite is the site as it was stored.
func (p siteRecord) decodeSite(dictionary string) (locations.Site, error) {
	p.readString()
	r := table.Site{ExternalID: strings.Clone(p.readString()), Referential: strings.Clone(p.readString()), PublicID: unpackID(p.readString()), Content: decompress(dictionary, p.readString())}
	r.Version, r.Created, r.Modified = p.readInt(), table.Instant(p.readInt()), table.Instant(p.readInt())
	r.Deactivated, r.Active = table.Instant(p.readInt()), p.readInt() != 0
	return locations.SiteFromRow(r)
}

// indexEntry is a site on its way into an index.
type indexEntry struct {
	sortKey    search.SortKey
	recordRef  uint64 // where its parcel is
	lat        float64
	lon        float64
	projection siteProjection
}

// siteProjection is what a search looks at in a stored site.
type siteProjection struct {
	Content struct {
		Name    string                 `json:"nom"`
		Address *locations.SiteAddress `json:"adresse"`
		Tags    []string               `json:"tags"`
		Lat     *float64               `json:"lat"`
		Lon     *float64               `json:"lon"`
	} `json:"content"`
	Position *struct {
		Lat float64 `json:"lat"`
		Lon float64 `json:"lon"`
	} `json:"position"`
}

func parseEntry(r *table.Site) (e indexEntry, err error) {
	if r.Content != "" { // else its key was destroyed
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

// field tells where in a site a word is. What is in several fields counts for the first.
type field = uint8

const (
	inName field = iota
	inTown
	inAddress
)

// visitTexts calls yield with each text that is searched and where it is.
func (g *siteProjection) visitTexts(yield func(text string, in field)) {
	yield(g.Content.Name, inName)
	for _, tag := range g.Content.Tags {
		yield(tag, inTown)
	}
	a := g.Content.Address
	if a == nil {
		return
	}
	for _, text := range []string{a.City, a.PostalCode} {
		yield(text, inTown)
	}
	for _, text := range []string{a.Line1, a.Line2, a.InseeCode, a.Country} {
		yield(text, inAddress)
	}
}

// Marks are what a site has or has not: its referential and its tags.
func referentialFacet(code string) string { return "r" + code }
func tagFacet(tag string) string          { return "t" + search.FoldTag(tag) }

func (e *indexEntry) visitFacets(yield func(mark string, in field)) {
	yield(referentialFacet(e.sortKey.Referential), inName)
	for _, tag := range e.projection.Content.Tags {
		yield(tagFacet(tag), inName)
	}
}
