package body

// LegacyParameters is what /address/* accepts under the names of the former national API.
type LegacyParameters struct {
	Postcodes    []string `json:"postcode,omitempty" pattern:"^[0-9]{5}$" max:"50" doc:"As code_postal, a filter"`
	CityCodes    []string `json:"citycode,omitempty" pattern:"^[0-9][0-9AB][0-9]{3}$" max:"50" doc:"As code_insee, a filter"`
	Autocomplete bool     `json:"autocomplete,omitempty" doc:"Without effect: each path has one way to search"`
}

// Bias is a point near which answers are preferred.
type Bias struct {
	Lat *float64 `json:"lat,omitempty" min:"-90" max:"90" doc:"With lon: what lies nearer comes first among what fits as well"`
	Lon *float64 `json:"lon,omitempty" min:"-180" max:"180" doc:"With lat"`
}

// CompleteAddress is the query of GET /address/autocomplete.
type CompleteAddress struct {
	Q           string   `json:"q" min:"1" max:"200" syntax:"true" doc:"An address as far as it is typed"`
	Limit       int      `json:"limit,omitempty" min:"1" max:"20" default:"5"`
	Types       []string `json:"type,omitempty" enum:"housenumber street locality municipality" max:"4" doc:"Only these; repeated or separated by commas"`
	PostalCodes []string `json:"code_postal,omitempty" pattern:"^[0-9]{5}$" max:"50" doc:"Only with one of these"`
	InseeCodes  []string `json:"code_insee,omitempty" pattern:"^[0-9][0-9AB][0-9]{3}$" max:"50" doc:"Only in one of these communes"`
	Departments []string `json:"departement,omitempty" pattern:"^([0-9]{2}|2[AB]|9[78][0-9])$" max:"50" doc:"Only in one of these departments"`
	Format      string   `json:"format,omitempty" enum:"json geojson"`
	Bias
	LegacyParameters
}

// VerifyAddress is the request of /address/verify: the address in one line, or in its parts.
type VerifyAddress struct {
	Q          string   `json:"q,omitempty" min:"1" max:"200" syntax:"true" doc:"An address in one line; without it the parts are read"`
	Number     string   `json:"numero,omitempty" max:"20" doc:"House number with its repetition index"`
	Street     string   `json:"voie,omitempty" max:"200" doc:"Street or locality"`
	Complement string   `json:"complement,omitempty" max:"200" doc:"Building, floor, hamlet"`
	PostalCode string   `json:"code_postal,omitempty" max:"10"`
	City       string   `json:"commune,omitempty" max:"100"`
	InseeCode  string   `json:"code_insee,omitempty" pattern:"^[0-9][0-9AB][0-9]{3}$"`
	Limit      int      `json:"limit,omitempty" min:"1" max:"20" default:"5"`
	Types      []string `json:"type,omitempty" enum:"housenumber street locality municipality" max:"4" doc:"Only these"`
	Format     string   `json:"format,omitempty" enum:"json geojson"`
	Bias
	LegacyParameters
}

// IsEmpty says whether no address was sent.
func (q VerifyAddress) IsEmpty() bool {
	return q.Q == "" && q.Number == "" && q.Street == "" && q.PostalCode == "" && q.City == "" && q.InseeCode == ""
}

// NearAddress is the request of /address/proximity.
type NearAddress struct {
	Center string   `json:"center,omitempty" min:"1" max:"200" syntax:"true" doc:"An address, its id or its id_ban"`
	Lat    *float64 `json:"lat,omitempty" min:"-90" max:"90" doc:"With lon, in the place of center"`
	Lon    *float64 `json:"lon,omitempty" min:"-180" max:"180"`
	Radius int      `json:"radius,omitempty" min:"1" max:"10000" default:"500" doc:"Metres"`
	Limit  int      `json:"limit,omitempty" min:"1" max:"100" default:"10"`
	Types  []string `json:"type,omitempty" enum:"housenumber street locality municipality" max:"4" doc:"Only these; all but municipality when left out"`
	Format string   `json:"format,omitempty" enum:"json geojson"`
}

// IsEmpty says whether no centre was sent.
func (q NearAddress) IsEmpty() bool { return q.Center == "" && q.Lat == nil && q.Lon == nil }

// SearchLocality is the query of GET /locality/search.
type SearchLocality struct {
	Q             string   `json:"q,omitempty" min:"1" max:"200" syntax:"true" doc:"A commune's name, whole or its beginning"`
	Limit         int      `json:"limit,omitempty" min:"1" max:"100" default:"20"`
	PostalCodes   []string `json:"code_postal,omitempty" pattern:"^[0-9]{5}$" max:"50"`
	Departments   []string `json:"departement,omitempty" pattern:"^([0-9]{2}|2[AB]|9[78][0-9])$" max:"50"`
	Regions       []string `json:"region,omitempty" pattern:"^[0-9]{2,3}$" max:"50"`
	PopulationMin *int     `json:"population_min,omitempty" min:"0" max:"100000000"`
	PopulationMax *int     `json:"population_max,omitempty" min:"0" max:"100000000"`
}

// IsEmpty says whether nothing was asked for.
func (q SearchLocality) IsEmpty() bool {
	return q.Q == "" && q.PostalCodes == nil && q.Departments == nil && q.Regions == nil && q.PopulationMin == nil && q.PopulationMax == nil
}
