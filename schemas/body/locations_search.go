package body

import (
	"encoding/json"

	"lieudit/schemas/locations"
)

// SearchLocations is the query of GET /locations/search.
type SearchLocations struct {
	Q           string   `json:"q,omitempty" min:"1" max:"200" syntax:"true" doc:"Words of the site's name, address or tags"`
	Lat         *float64 `json:"lat,omitempty" min:"-90" max:"90" doc:"With lon: the centre"`
	Lon         *float64 `json:"lon,omitempty" min:"-180" max:"180" doc:"With lat: the centre"`
	Near        string   `json:"near,omitempty" min:"1" max:"200" doc:"An address as the centre, its id or its id_ban"`
	Radius      *int     `json:"radius,omitempty" min:"1" max:"100000" doc:"Metres around the centre; 10000 when left out"`
	BBox        string   `json:"bbox,omitempty" pattern:"^-?[0-9]+(\\.[0-9]+)?(,-?[0-9]+(\\.[0-9]+)?){3}$" doc:"lon,lat,lon,lat: the south-western corner, then the north-eastern one"`
	Referential string   `json:"referentiel,omitempty" pattern:"^[a-z0-9_-]{1,64}$" doc:"Only its sites"`
	Tags        []string `json:"tags,omitempty" max:"50" doc:"Sites with all of them; repeated or separated by commas"`
	Limit       int      `json:"limit,omitempty" min:"1" max:"100" default:"20"`
	Cursor      string   `json:"curseur,omitempty" max:"4000" doc:"As the page before gave it, with the same parameters but limit"`
	Sort        string   `json:"sort,omitempty" enum:"pertinence distance nom" doc:"distance needs a centre. When left out: pertinence with q, else distance with a centre, else nom"`
	Format      string   `json:"format,omitempty" enum:"json geojson"`
	Status      string   `json:"statut,omitempty" enum:"actif inactif tous" doc:"Secret keys only"`
}

// Locations is the answer of GET /locations/search to a secret key.
type Locations struct {
	Envelope
	Results []FoundSite `json:"results"`
	Cursor  string      `json:"curseur,omitempty" doc:"Of the page after; none after the last"`
}

// FoundSite is a site, and how far it is from the centre if there is one.
type FoundSite struct {
	locations.Site
	Distance *int `json:"distance,omitempty" doc:"Metres"`
}

// PublicLocations is the answer of GET /locations/search to a publishable key.
type PublicLocations struct {
	Envelope
	Results []PublicSite `json:"results"`
	Cursor  string       `json:"curseur,omitempty" doc:"Of the page after; none after the last"`
}

// PublicSite is what a publishable key may see of a site: these members and no others, whatever a site comes to have.
type PublicSite struct {
	Name     string          `json:"nom,omitempty"`
	Address  *PublicAddress  `json:"adresse,omitempty"`
	Lat      *float64        `json:"lat,omitempty"`
	Lon      *float64        `json:"lon,omitempty"`
	Hours    json.RawMessage `json:"horaires,omitempty"`
	Phone    string          `json:"telephone,omitempty"`
	Website  string          `json:"site_web,omitempty"`
	Tags     []string        `json:"tags,omitempty"`
	Distance *int            `json:"distance,omitempty" doc:"Metres"`
}

// PublicAddress is the address of a PublicSite.
type PublicAddress struct {
	Line1      string `json:"ligne_1,omitempty"`
	Line2      string `json:"ligne_2,omitempty"`
	PostalCode string `json:"code_postal,omitempty"`
	City       string `json:"commune,omitempty"`
	InseeCode  string `json:"code_insee,omitempty"`
	Country    string `json:"pays,omitempty"`
}

// LocationCollection is the answer of GET /locations/search with format=geojson to a secret key.
type LocationCollection struct {
	CollectionEnvelope
	Features []LocationFeature `json:"features"`
}

// PublicCollection is that to a publishable key.
type PublicCollection struct {
	CollectionEnvelope
	Features []PublicFeature `json:"features"`
}

// CollectionEnvelope is what is around the features of a page.
type CollectionEnvelope struct {
	Type string `json:"type" enum:"FeatureCollection"`
	Envelope
	Cursor string `json:"curseur,omitempty" doc:"Of the page after; none after the last"`
}

// LocationFeature is a site as GeoJSON.
type LocationFeature struct {
	FeatureGeometry
	Properties FoundSite `json:"properties"`
}

// PublicFeature is what a publishable key may see of a site, as GeoJSON.
type PublicFeature struct {
	FeatureGeometry
	Properties PublicSite `json:"properties"`
}

// FeatureGeometry is where a feature is.
type FeatureGeometry struct {
	Type     string `json:"type" enum:"Feature"`
	Geometry *Point `json:"geometry" doc:"null: the site has no position"`
}

// NewFeatureGeometry is where a feature with that position is.
func NewFeatureGeometry(lat, lon *float64) FeatureGeometry {
	p := FeatureGeometry{Type: "Feature"}
	if lat != nil && lon != nil {
		p.Geometry = &Point{Type: "Point", Coordinates: []float64{*lon, *lat}}
	}
	return p
}
