package meili

import (
	"encoding/base64"
	"encoding/json"
	"math"
	"strings"

	"lieudit/queries/places"
	"lieudit/queries/places/finder"
	"lieudit/schemas/site"
	"lieudit/schemas/table"
)

// document is a site as the server keeps it.
type document struct {
	ID          string   `json:"id"` // of the row, as the server has ids
	Fill        string   `json:"copie"`
	Account     string   `json:"compte"`
	Referential string   `json:"referentiel"`
	Active      bool     `json:"actif"`
	Tags        []string `json:"tags"`
	External    string   `json:"externe"`
	Name        string   `json:"nom"`     // words of the name
	Town        string   `json:"lieu"`    // of tags, town and postcode
	Address     string   `json:"adresse"` // of the rest of the address
	Sorted      string   `json:"tri"`     // the name as it is sorted by
	Key0        string   `json:"ordre0"`
	Key1        string   `json:"ordre1"`
	Key2        string   `json:"ordre2"`
	Key3        string   `json:"ordre3"`
	Lat         *float64 `json:"lat,omitempty"`
	Lon         *float64 `json:"lon,omitempty"`
}

// documentOf is the document of a row.
func documentOf(fill string, r table.Site) (document, error) {
	c, err := places.SiteOf(r)
	if err != nil {
		return document{}, err
	}
	v, a := vocabularyOf(r.Account), c.Address
	if a == nil {
		a = &site.Address{}
	}
	name := finder.Name(c.Name)
	key := v.key(finder.Place{Name: name, ExternalID: r.ExternalID, Referential: r.Referential})
	d := document{
		ID: idOf(r.ID), Fill: digest(fill), Account: digest(r.Account), Referential: digest(r.Referential), Active: r.Active,
		External: v.external(r.ExternalID), Sorted: name,
		Name: v.text(c.Name), Town: v.text(append([]string{a.City, a.PostalCode}, c.Tags...)...),
		Address: v.text(a.Line1, a.Line2, a.InseeCode, a.Country),
		Key0:    key[0], Key1: key[1], Key2: key[2], Key3: key[3],
	}
	for _, tag := range c.Tags {
		d.Tags = append(d.Tags, digest(finder.Tag(tag)))
	}
	if c.Lat != nil && c.Lon != nil && math.Abs(*c.Lat) <= 90 && math.Abs(*c.Lon) <= 180 {
		d.Lat, d.Lon = c.Lat, c.Lon
	}
	return d, nil
}

// idOf is the id of a row's document: the server takes no others.
func idOf(row string) string { return base64.RawURLEncoding.EncodeToString([]byte(row)) }

// found is what the server gives back of a document.
type found struct {
	ID      string          `json:"id"`
	Sorted  string          `json:"tri"`
	Lat     *float64        `json:"lat"`
	Lon     *float64        `json:"lon"`
	Score   float64         `json:"_rankingScore"`
	Details json.RawMessage `json:"_rankingScoreDetails"`
}

// shown are the attributes the server gives back, whoever asks it.
var shown = []string{"id", "tri", "lat", "lon"}

// parts are the parts of a row's id.
func (f found) parts() (row, referential, externalID string, ok bool) {
	b, err := base64.RawURLEncoding.DecodeString(f.ID)
	if err != nil {
		return "", "", "", false
	}
	parts := strings.SplitN(string(b), "/", 3)
	if len(parts) != 3 {
		return "", "", "", false
	}
	return string(b), parts[1], parts[2], true
}
