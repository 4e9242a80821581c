package body

// FeatureCollection is the answer of an address search with format=geojson. Its members have the names of the former national
// API, whose clients can read it. The envelope is in foreign members, which GeoJSON allows (RFC 7946, section 6.1).
type FeatureCollection struct {
	Type string `json:"type" enum:"FeatureCollection"`
	Envelope
	Features    []Feature `json:"features"`
	Reason      string    `json:"motif,omitempty" enum:"hors_couverture commune_inconnue commune_contredite code_postal_contredit voie_absente numero_absent mots_inconnus plusieurs_adresses score_faible" doc:"Of a verification with expliquer=true, where nothing was found: why"`
	Attribution string    `json:"attribution"`
	Licence     string    `json:"licence"`
}

// Feature is an address as GeoJSON.
type Feature struct {
	Type       string     `json:"type" enum:"Feature"`
	Geometry   Point      `json:"geometry"`
	Properties Properties `json:"properties"`
}

// Point is a position in degrees (WGS 84): longitude first, then latitude, as GeoJSON demands.
type Point struct {
	Type        string    `json:"type" enum:"Point"`
	Coordinates []float64 `json:"coordinates" min:"2" max:"2"`
}

// Properties is an address with the names of the former national API. Importance is never set; it is declared because that API
// has it.
type Properties struct {
	Label       string   `json:"label"`
	Score       float64  `json:"score"`
	HouseNumber string   `json:"housenumber,omitempty"`
	ID          string   `json:"id"`
	BanID       string   `json:"banId,omitempty"`
	Name        string   `json:"name"`
	Street      string   `json:"street,omitempty"`
	PostCode    string   `json:"postcode,omitempty"`
	CityCode    string   `json:"citycode"`
	OldCityCode string   `json:"oldcitycode,omitempty"`
	OldCity     string   `json:"oldcity,omitempty"`
	X           float64  `json:"x,omitzero"`
	Y           float64  `json:"y,omitzero"`
	City        string   `json:"city"`
	District    string   `json:"district,omitempty"`
	Context     string   `json:"context,omitempty"`
	Type        string   `json:"type"`
	Importance  *float64 `json:"importance,omitempty"`
	Population  int      `json:"population,omitzero"`
	Distance    *int     `json:"distance,omitempty"`
}
