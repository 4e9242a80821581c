package local

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"strings"

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

// wrap appends a row's parcel.
func wrap(b []byte, place finder.Place, r *table.Site) []byte {
	for _, s := range []string{place.Name, r.ExternalID, r.Referential, r.Site, r.Content} {
		b = append(binary.AppendUvarint(b, uint64(len(s))), s...)
	}
	for _, n := range []int64{r.Version, int64(r.Created), int64(r.Modified), int64(r.Deactivated), int64(flag(r.Active))} {
		b = binary.AppendUvarint(b, uint64(n))
	}
	return b
}

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}

// site is the site as it was stored.
func (p parcel) site() (site.Site, error) {
	p.text()
	s := site.Site{ExternalID: strings.Clone(p.text()), Referential: strings.Clone(p.text()), ID: strings.Clone(p.text())}
	var stored site.Stored
	if err := json.Unmarshal([]byte(p.text()), &stored); err != nil {
		return s, fmt.Errorf("site %s/%s: %w", s.Referential, s.ExternalID, err)
	}
	s.Content, s.Source, s.Score = stored.Show()
	s.Version = p.number()
	s.Created, s.Modified = table.Instant(p.number()).Time(), table.Instant(p.number()).Time()
	s.Deactivated, s.Active = table.Instant(p.number()).Time(), p.number() != 0
	return s, nil
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
	if err := json.Unmarshal([]byte(r.Content), &e.glance); err != nil {
		return e, fmt.Errorf("site %s: %w", r.ID, err)
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

// words calls yield with each word of the site and where it is.
func (g *glance) words(yield func(word string, in field)) {
	say := func(in field, texts ...string) {
		for _, t := range texts {
			finder.Terms(t, func(word string) { yield(word, in) })
		}
	}
	say(inName, g.Content.Name)
	say(inPlace, g.Content.Tags...)
	if a := g.Content.Address; a != nil {
		say(inPlace, a.City, a.PostalCode)
		say(inStreet, a.Line1, a.Line2, a.InseeCode, a.Country)
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
