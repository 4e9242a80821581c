package local

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/google/uuid"

	"lieudit/queries/places"
	"lieudit/queries/places/finder"
	"lieudit/schemas/site"
	"lieudit/schemas/table"
)

// parcel is a site as it is held: one text that begins with what it is sorted by.
type parcel struct{ rest string }

func (p *parcel) text() string {
	n, size := uint64(p.rest[0]), 1
	if n >= 0x80 {
		n, size = p.long()
	}
	s := p.rest[size : size+int(n)]
	p.rest = p.rest[size+int(n):]
	return s
}

func (p *parcel) long() (n uint64, size int) {
	for shift := 0; ; shift += 7 {
		b := p.rest[size]
		size++
		n |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return n, size
		}
	}
}

func (p *parcel) number() int64 {
	n, size := p.long()
	p.rest = p.rest[size:]
	return int64(n)
}

// place is what the site is sorted by.
func (p parcel) place() finder.Place {
	return finder.Place{Name: p.text(), ExternalID: p.text(), Referential: p.text()}
}

// wrap writes a row's parcel.
func wrap(w *strings.Builder, place finder.Place, r *table.Site, squeezed []byte) {
	var number [binary.MaxVarintLen64]byte
	for _, s := range []string{place.Name, r.ExternalID, r.Referential, raw(r.Site), string(squeezed)} {
		w.Write(binary.AppendUvarint(number[:0], uint64(len(s))))
		w.WriteString(s)
	}
	for _, n := range []int64{r.Version, int64(r.Created), int64(r.Modified), int64(r.Deactivated), int64(flag(r.Active))} {
		w.Write(binary.AppendUvarint(number[:0], uint64(n)))
	}
}

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}

// raw is a site's id in its 16 bytes, where it is one that they tell.
func raw(siteID string) string {
	if id, err := uuid.Parse(siteID); err == nil && id.String() == siteID {
		return string(id[:])
	}
	return siteID
}

func unraw(raw string) string {
	if id, err := uuid.FromBytes([]byte(raw)); err == nil {
		return id.String()
	}
	return strings.Clone(raw)
}

// site is the site as it was stored.
func (p parcel) site(primer string) (site.Site, error) {
	p.text()
	r := table.Site{ExternalID: strings.Clone(p.text()), Referential: strings.Clone(p.text()), Site: unraw(p.text()), Content: stretch(primer, p.text())}
	r.Version, r.Created, r.Modified = p.number(), table.Instant(p.number()), table.Instant(p.number())
	r.Deactivated, r.Active = table.Instant(p.number()), p.number() != 0
	return places.SiteOf(r)
}

// entry is a site on its way into an index.
type entry struct {
	place  finder.Place
	at     uint64 // where its parcel is
	lat    float64
	lon    float64
	glance glance
}

// glance is what a search looks at in a stored site.
type glance struct {
	Content struct {
		Name    string        `json:"nom"`
		Address *site.Address `json:"adresse"`
		Tags    []string      `json:"tags"`
		Lat     *float64      `json:"lat"`
		Lon     *float64      `json:"lon"`
	} `json:"content"`
	Position *struct {
		Lat float64 `json:"lat"`
		Lon float64 `json:"lon"`
	} `json:"position"`
}

func entryOf(r *table.Site) (e entry, err error) {
	if r.Content != "" { // else its key was destroyed
		if err := json.Unmarshal([]byte(r.Content), &e.glance); err != nil {
			return e, fmt.Errorf("content of %s: %w", r.ID, err)
		}
	}
	e.place = finder.Place{Name: finder.Name(e.glance.Content.Name), ExternalID: r.ExternalID, Referential: r.Referential}
	e.lat, e.lon = math.NaN(), math.NaN()
	switch c := e.glance.Content; {
	case e.glance.Position != nil:
		e.lat, e.lon = e.glance.Position.Lat, e.glance.Position.Lon
	case c.Lat != nil && c.Lon != nil:
		e.lat, e.lon = *c.Lat, *c.Lon
	}
	return e, nil
}

// field tells where in a site a word is. What is in several fields counts for the first.
type field = uint8

const (
	inName field = iota
	inPlace
	inStreet
)

// texts calls yield with each text that is searched and where it is.
func (g *glance) texts(yield func(text string, in field)) {
	yield(g.Content.Name, inName)
	for _, tag := range g.Content.Tags {
		yield(tag, inPlace)
	}
	a := g.Content.Address
	if a == nil {
		return
	}
	for _, text := range []string{a.City, a.PostalCode} {
		yield(text, inPlace)
	}
	for _, text := range []string{a.Line1, a.Line2, a.InseeCode, a.Country} {
		yield(text, inStreet)
	}
}

// Marks are what a site has or has not: its referential and its tags.
func referentialMark(code string) string { return "r" + code }
func tagMark(tag string) string          { return "t" + finder.Tag(tag) }

func (e *entry) marks(yield func(mark string, in field)) {
	yield(referentialMark(e.place.Referential), inName)
	for _, tag := range e.glance.Content.Tags {
		yield(tagMark(tag), inName)
	}
}
