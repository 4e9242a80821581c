// Package locations is the form of a customer's site: the data that the customer gives (Content), where it is (Position), and
// how the customer sees it (Site). The limits of the fields are in their tags, and the rules that no tag expresses are in
// FindFaults.
//
//	request ──► Content ──command──► StoredSite ──► log, tables        Content.Hash ──► ContentHash.Digest ──► Digest
//	                                      └─Site.Show──► Site ──► answer               compared with the next Content
//
// The commands keep a Digest in memory instead of a content. Digest.Compare decides whether a write changes anything.
package locations

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"math"
	"time"
)

// ExternalIDPattern is the form of the id that a customer gives a site. Tags of package body repeat it.
const ExternalIDPattern = `^[A-Za-z0-9._~:*@+-]{1,128}$`

// Content is the data that a customer gives about a site. Missing members are zero. Its JSON is that of the API.
type Content struct {
	Name       string          `json:"nom,omitempty" max:"200"`
	Address    *SiteAddress    `json:"adresse,omitempty"`
	IDBan      string          `json:"id_ban,omitempty" max:"64" doc:"The address in the BAN. Without lat and lon the site is placed at it, where the BAN has it"`
	Lat        *float64        `json:"lat,omitempty" min:"-90" max:"90" doc:"With lon. Without, the site is placed by its address"`
	Lon        *float64        `json:"lon,omitempty" min:"-180" max:"180"`
	Hours      json.RawMessage `json:"horaires,omitempty" bytes:"16384" form:"Hours" doc:"Opening hours: {fuseau?, hebdo: [{jours: [lu, ma, me, je, ve, sa, di], de: 09:00, a: 12:30}], exceptions: [{du, au?, ferme: true | de, a}], texte?}; an exception has either ferme or de and a; at most 16 KiB; a before de is of the next day"`
	Phone      string          `json:"telephone,omitempty" max:"64" doc:"E.164 or French digits, with spaces, dots or hyphens between them"`
	Email      string          `json:"email,omitempty" max:"254" doc:"An address alone"`
	Website    string          `json:"site_web,omitempty" max:"2048" doc:"A URL with http or https"`
	Tags       []string        `json:"tags,omitempty" max:"50" each:"1 64" unique:"items" doc:"None twice"`
	Properties json.RawMessage `json:"proprietes,omitempty" members:"100" bytes:"16384" doc:"An object of the customer's own, at most 100 members and 16 KiB; never shown to a publishable key"`
}

// SiteAddress is a postal address as the customer has it.
type SiteAddress struct {
	Line1      string `json:"ligne_1,omitempty" max:"200" doc:"Number and street, or locality"`
	Line2      string `json:"ligne_2,omitempty" max:"200" doc:"Building, floor, hamlet"`
	PostalCode string `json:"code_postal,omitempty" max:"10"`
	City       string `json:"commune,omitempty" max:"100"`
	InseeCode  string `json:"code_insee,omitempty" max:"5"`
	Country    string `json:"pays,omitempty" max:"60" doc:"Left out or FR: an address of France, which the BAN is asked for"`
}

// Source is where the position of a site comes from.
type Source string

const (
	SourceBAN    Source = "ban"    // the address was verified on the BAN
	SourceClient Source = "client" // the customer's own coordinates
)

// Precision is the kind of thing that a geocoded position is the position of.
type Precision string

const (
	PrecisionHouseNumber  Precision = "housenumber"
	PrecisionStreet       Precision = "street"
	PrecisionLocality     Precision = "locality"
	PrecisionMunicipality Precision = "municipality" // the centre of a commune
)

// Position is where a site is.
type Position struct {
	Lat       float64   `json:"lat"`
	Lon       float64   `json:"lon"`
	Source    Source    `json:"source"`
	IDBan     string    `json:"id_ban,omitempty"`    // of the address it was placed at
	Score     float64   `json:"score,omitempty"`     // of the verification, 0–1; 0 for the customer's own
	Precision Precision `json:"precision,omitempty"` // "" for the customer's own, and for positions geocoded before this was kept
}

// StoredSite is what the log and the tables keep of a site, as one JSON text. A site has no position if the customer gave
// none and its address was not found.
type StoredSite struct {
	Content  Content   `json:"content"`
	Position *Position `json:"position,omitempty"`
}

// Site is a site as its customer sees it.
type Site struct {
	ID          string    `json:"id"`
	Referential string    `json:"referentiel"`
	ExternalID  string    `json:"external_id"`
	Content               // ShownContent: Lat, Lon and IDBan are those of the position
	Source      Source    `json:"position_source,omitempty" enum:"ban client" doc:"Who said where it is; left out while nobody did: its address was not found"`
	Score       float64   `json:"geocode_score,omitzero" doc:"How sure the verification is that placed it, 0 to 1"`
	Precision   Precision `json:"geocode_precision,omitempty" enum:"housenumber street locality municipality" doc:"Of what it has the position; left out for sites that were placed before this was kept"`
	Active      bool      `json:"actif"`
	Version     int64     `json:"version" doc:"1 at first, one more with each change"`
	Created     time.Time `json:"cree_le"`
	Modified    time.Time `json:"modifie_le"`
	Deactivated time.Time `json:"desactive_le,omitzero"`
}

// Show sets the parts of the site that come from the stored one: its content and how its position was found.
func (s *Site) Show(stored StoredSite) {
	s.Content = stored.ShownContent()
	if p := stored.Position; p != nil {
		s.Source, s.Score, s.Precision = p.Source, p.Score, p.Precision
	}
}

// ShownContent is the content as the site shows it: Lat, Lon and IDBan are those of the position, if there is one.
func (s StoredSite) ShownContent() Content {
	c := s.Content
	if p := s.Position; p != nil {
		lat, lon := p.Lat, p.Lon
		c.Lat, c.Lon = &lat, &lon
		if p.IDBan != "" {
			c.IDBan = p.IDBan
		}
	}
	return c
}

// OwnPosition is the position the customer gave, or nil.
func (c Content) OwnPosition() *Position {
	if c.Lat == nil || c.Lon == nil {
		return nil
	}
	return &Position{Lat: *c.Lat, Lon: *c.Lon, Source: SourceClient}
}

// Digest is enough of a site's content to decide later whether another content is the same. Its 32 bytes are hashes of
// everything that the customer gave except the position (16), of the position that the customer gave (8), and of the position
// that the site shows (8). Digests are on the log: their form must not change.
type Digest [32]byte

// DigestOf is the digest of a stored site.
func DigestOf(s StoredSite) Digest { return s.Content.Hash().Digest(s) }

// ContentHash is the hash of a content. Making it is the costly part of a Digest and of Compare, so it is made once.
// A Digest keeps all of fields and the first 8 bytes of position.
type ContentHash struct{ fields, position [16]byte }

// Digest is the digest of a stored site. x must be the hash of its content, which may differ in the position that the
// customer gave.
func (x ContentHash) Digest(s StoredSite) Digest {
	var d Digest
	typedPosition, shownPosition := s.Content.hashPosition(), s.ShownContent().hashPosition()
	copy(d[:16], x.fields[:])
	copy(d[16:24], typedPosition[:])
	copy(d[24:], shownPosition[:])
	return d
}

// Similarity is how a new content compares with the stored one.
type Similarity uint8

const (
	Different Similarity = iota
	// SameShownPosition: the content differs, and its position is the one that the site shows, not the one that the customer
	// gave. The client has read the site, changed something else and sent everything back. It does not mean to keep a position
	// that was found by the old address.
	SameShownPosition
	// Same: the content that the customer gave before, or the one that the site shows.
	Same
)

// Compare compares a content, by its hash, with the stored site of the digest. It misses a difference only if hashes collide.
func (d Digest) Compare(hash ContentHash) Similarity {
	asTyped, asShown := bytes.Equal(hash.position[:8], d[16:24]), bytes.Equal(hash.position[:8], d[24:])
	switch {
	case bytes.Equal(hash.fields[:], d[:16]) && (asTyped || asShown):
		return Same
	case asShown && !asTyped:
		return SameShownPosition
	}
	return Different
}

// Hash is the content's hash. A missing field and an empty one have the same hash, and so do JSON texts that differ in spaces
// or in the order of members. Numbers are compared as text: 1.5 is not 1.50.
func (c Content) Hash() ContentHash {
	a := c.Address
	if a == nil {
		a = &SiteAddress{}
	}
	texts := append([]string{
		c.Name, a.Line1, a.Line2, a.PostalCode, a.City, a.InseeCode, a.Country, c.Phone, c.Email, c.Website,
		canonicalJSON(c.Hours), canonicalJSON(c.Properties),
	}, c.Tags...)
	return ContentHash{fields: hashTexts(texts...), position: c.hashPosition()}
}

// hashPosition is the hash of the position in a content.
func (c Content) hashPosition() [16]byte {
	return hashTexts(c.IDBan, encodeCoordinate(c.Lat), encodeCoordinate(c.Lon))
}

// hashTexts hashes texts, each preceded by its length, so that a character cannot move from one text to the next unnoticed.
func hashTexts(texts ...string) [16]byte {
	var all []byte
	for _, t := range texts {
		all = binary.LittleEndian.AppendUint32(all, uint32(len(t)))
		all = append(all, t...)
	}
	sum := sha256.Sum256(all)
	return [16]byte(sum[:16])
}

// encodeCoordinate is the bits of a coordinate as a text, or "".
func encodeCoordinate(x *float64) string {
	if x == nil {
		return ""
	}
	var bits [8]byte
	binary.LittleEndian.PutUint64(bits[:], math.Float64bits(*x+0)) // adding 0 makes 0 of -0, so that both have one hash
	return string(bits[:])
}

// canonicalJSON is a JSON text with sorted members and without spaces. Null, an empty object and a missing text become "". A
// text that is not JSON is returned unchanged.
func canonicalJSON(text json.RawMessage) string {
	if len(text) == 0 {
		return ""
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return string(text)
	}
	if m, ok := v.(map[string]any); v == nil || ok && len(m) == 0 {
		return ""
	}
	compact, err := json.Marshal(v)
	if err != nil {
		return string(text)
	}
	return string(compact)
}
