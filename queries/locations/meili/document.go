package meili

import (
	"encoding/base64"
	"encoding/json"
	"math"
	"strings"

	"lieudit/queries/locations"
	"lieudit/queries/locations/search"
	locationsschemas "lieudit/schemas/locations"
	"lieudit/schemas/table"
)

// document is a site as the server keeps it.
type document struct {
	ID          string   `json:"id"` // of the row, as the server has ids
	Generation  string   `json:"copie"`
	Account     string   `json:"compte"`
	Referential string   `json:"referentiel"`
	Active      bool     `json:"actif"`
	Tags        []string `json:"tags"`
	ExternalID  string   `json:"externe"`
	Name        string   `json:"nom"`     // words of the name
	Town        string   `json:"lieu"`    // of tags, town and postcode
	Address     string   `json:"adresse"` // of the rest of the address
	FoldedName  string   `json:"tri"`     // the name as it is sorted by
	SortKey0    string   `json:"ordre0"`
	SortKey1    string   `json:"ordre1"`
	SortKey2    string   `json:"ordre2"`
	SortKey3    string   `json:"ordre3"`
	Lat         *float64 `json:"lat,omitempty"`
	Lon         *float64 `json:"lon,omitempty"`
}

// newDocument is the document of a row.
func newDocument(generation string, r table.Site) (document, error) {
	c, err := locations.SiteFromRow(r)
	if err != nil {
		return document{}, err
	}
	v, a := newWordEncoder(r.Account), c.Address
	if a == nil {
		a = &locationsschemas.SiteAddress{}
	}
	name := search.FoldName(c.Name)
	key := v.encodeSortKey(search.SortKey{Name: name, ExternalID: r.ExternalID, Referential: r.Referential})
	d := document{
		ID: documentID(r.ID), Generation: hashText(generation), Account: hashText(r.Account), Referential: hashText(r.Referential), Active: r.Active,
		ExternalID: v.encodeExternalID(r.ExternalID), FoldedName: name,
		Name: v.encodeTexts(c.Name), Town: v.encodeTexts(append([]string{a.City, a.PostalCode}, c.Tags...)...),
		Address:  v.encodeTexts(a.Line1, a.Line2, a.InseeCode, a.Country),
		SortKey0: key[0], SortKey1: key[1], SortKey2: key[2], SortKey3: key[3],
	}
	for _, tag := range c.Tags {
		d.Tags = append(d.Tags, hashText(search.FoldTag(tag)))
	}
	if c.Lat != nil && c.Lon != nil && math.Abs(*c.Lat) <= 90 && math.Abs(*c.Lon) <= 180 {
		d.Lat, d.Lon = c.Lat, c.Lon
	}
	return d, nil
}

// documentID is the id of a row's document: the server takes no others.
func documentID(row string) string { return base64.RawURLEncoding.EncodeToString([]byte(row)) }

// serverHit is what the server gives back of a document.
type serverHit struct {
	ID         string          `json:"id"`
	FoldedName string          `json:"tri"`
	Lat        *float64        `json:"lat"`
	Lon        *float64        `json:"lon"`
	Score      float64         `json:"_rankingScore"`
	Details    json.RawMessage `json:"_rankingScoreDetails"`
}

// displayedAttributes are the attributes the server gives back, whoever asks it.
var displayedAttributes = []string{"id", "tri", "lat", "lon"}

// parseID are the parseID of a row's id.
func (f serverHit) parseID() (row, referential, externalID string, ok bool) {
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
