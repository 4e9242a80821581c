// Package locations is a customer's place: what the customer says of it (Content), where it is (Position), and how it stands
// (Site). Commands decide on it, the log keeps it, read models and answers show it; this is the one home of its
// form, its limits and of what makes two of its contents the same.
package locations

import (
	"encoding/json"
	"time"
)

// Content is what a customer says of a site. What was not said is zero. Its JSON is the API's.
type Content struct {
	Name       string          `json:"nom,omitempty" max:"200"`
	Address    *SiteAddress    `json:"adresse,omitempty"`
	IDBan      string          `json:"id_ban,omitempty" max:"64" doc:"The address in the BAN. Without lat and lon the site is placed at it, where the BAN has it"`
	Lat        *float64        `json:"lat,omitempty" min:"-90" max:"90" doc:"With lon. Without, the site is placed by its address"`
	Lon        *float64        `json:"lon,omitempty" min:"-180" max:"180"`
	Hours      json.RawMessage `json:"horaires,omitempty" bytes:"16384" doc:"Opening hours in any JSON form, at most 16 KiB"`
	Phone      string          `json:"telephone,omitempty" max:"64"`
	Email      string          `json:"email,omitempty" max:"254"`
	Website    string          `json:"site_web,omitempty" max:"2048"`
	Tags       []string        `json:"tags,omitempty" max:"50" each:"1 64" unique:"items" doc:"None twice"`
	Properties json.RawMessage `json:"proprietes,omitempty" members:"50" bytes:"16384" doc:"An object of the customer's own, at most 16 KiB; never shown to a publishable key"`
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

// Source is who said where a site is.
type Source string

const (
	SourceBAN    Source = "ban"    // the address was verified on the BAN
	SourceClient Source = "client" // the customer's own coordinates
)

// Position is where a site is.
type Position struct {
	Lat    float64 `json:"lat"`
	Lon    float64 `json:"lon"`
	Source Source  `json:"source"`
	IDBan  string  `json:"id_ban,omitempty"` // of the address it was placed at
	Score  float64 `json:"score,omitempty"`  // of the verification, 0–1; 0 for the customer's own
}

// StoredSite is what the log and the tables keep of a site, as one JSON text: what the customer said, and where that is.
// A site that could not be placed has no position.
type StoredSite struct {
	Content  Content   `json:"content"`
	Position *Position `json:"position,omitempty"`
}

// Site is a site as its customer sees it.
type Site struct {
	ID          string    `json:"id"`
	Referential string    `json:"referentiel"`
	ExternalID  string    `json:"external_id"`
	Content               // with Lat, Lon and IDBan as the position says, where there is one
	Source      Source    `json:"position_source,omitempty" enum:"ban client" doc:"Who said where it is; left out while nobody did: its address was not found"`
	Score       float64   `json:"geocode_score,omitzero" doc:"How sure the verification is that placed it, 0 to 1"`
	Active      bool      `json:"actif"`
	Version     int64     `json:"version" doc:"1 at first, one more with each change"`
	Created     time.Time `json:"cree_le"`
	Modified    time.Time `json:"modifie_le"`
	Deactivated time.Time `json:"desactive_le,omitzero"`
}

// ShownContent is the content with the position in it.
func (s StoredSite) ShownContent() (c Content, source Source, score float64) {
	c = s.Content
	if p := s.Position; p != nil {
		lat, lon := p.Lat, p.Lon
		c.Lat, c.Lon, source, score = &lat, &lon, p.Source, p.Score
		if p.IDBan != "" {
			c.IDBan = p.IDBan
		}
	}
	return c, source, score
}

// OwnPosition is the position the customer gave, or nil.
func (c Content) OwnPosition() *Position {
	if c.Lat == nil || c.Lon == nil {
		return nil
	}
	return &Position{Lat: *c.Lat, Lon: *c.Lon, Source: SourceClient}
}
