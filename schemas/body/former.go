package body

import "strings"

// The requests and answers of /search and /reverse. They are those of the former national API (API Adresse), whose clients change
// the base URL and add a key. Parameters that are not declared here are ignored, because clients of that API send some.

// FormerFilters are the filters of the former API.
type FormerFilters struct {
	Types     []string `json:"type,omitempty" enum:"housenumber street locality municipality" max:"4" doc:"Only these; repeated or separated by commas"`
	Postcodes []string `json:"postcode,omitempty" pattern:"^[0-9]{5}$" max:"50" doc:"Only with one of these"`
	CityCodes []string `json:"citycode,omitempty" pattern:"^[0-9][0-9AB][0-9]{3}$" max:"50" doc:"Only in one of these communes"`
}

// Applied is what the answer says of the filters; nil where there is none.
func (f FormerFilters) Applied() *AppliedFilters {
	if len(f.Types)+len(f.Postcodes)+len(f.CityCodes) == 0 {
		return nil
	}
	return &AppliedFilters{strings.Join(f.Types, ","), strings.Join(f.Postcodes, ","), strings.Join(f.CityCodes, ",")}
}

// FormerPosition is a point under the names that the former API accepts. Lng and Long are other names of Lon; the first that is
// there counts.
type FormerPosition struct {
	Lat  *float64 `json:"lat,omitempty" min:"-90" max:"90" doc:"Degrees, with lon"`
	Lon  *float64 `json:"lon,omitempty" min:"-180" max:"180" doc:"Degrees, with lat"`
	Lng  *float64 `json:"lng,omitempty" min:"-180" max:"180" doc:"As lon"`
	Long *float64 `json:"long,omitempty" min:"-180" max:"180" doc:"As lon"`
}

// Coordinates is the point as GeoJSON has it, longitude first; nil where the point is not complete.
func (p FormerPosition) Coordinates() []float64 {
	lon := p.longitude()
	if p.Lat == nil || lon == nil {
		return nil
	}
	return []float64{*lon, *p.Lat}
}

func (p FormerPosition) longitude() *float64 {
	for _, lon := range []*float64{p.Lon, p.Lng, p.Long} {
		if lon != nil {
			return lon
		}
	}
	return nil
}

// FormerSearch is the query of GET /search.
type FormerSearch struct {
	Q            string `json:"q" min:"1" max:"200" syntax:"true" doc:"An address"`
	Limit        int    `json:"limit,omitempty" min:"1" max:"100" default:"5"`
	Autocomplete bool   `json:"autocomplete,omitempty" default:"1" doc:"The last word may be incomplete; 0: it is whole"`
	FormerFilters
	FormerPosition
}

// IsEmpty reports whether no address was sent.
func (q FormerSearch) IsEmpty() bool { return q.Q == "" }

// FormerReverse is the query of GET /reverse.
type FormerReverse struct {
	Limit int `json:"limit,omitempty" min:"1" max:"100" default:"1"`
	FormerFilters
	FormerPosition
}

// IsEmpty reports whether the point is not complete. Both its coordinates are required, which tags cannot say of a member with
// several names.
func (q FormerReverse) IsEmpty() bool { return q.Coordinates() == nil }

// FormerFileFields are the fields of POST /search/csv and POST /reverse/csv next to the file. All but the two lists, repli and expliquer are the names of
// columns of the file, whose cells are used row by row.
type FormerFileFields struct {
	Columns       []string `json:"columns,omitempty" max:"200" doc:"Columns with the address, in order, each once; all when left out. Repeat the field for each. Their cells, joined with spaces, have at most 200 characters a row"`
	ResultColumns []string `json:"result_columns,omitempty" max:"200" doc:"Columns to add; those of the former API when left out. result_verdict, result_resout and result_motif are added where they are named. Repeat the field for each"`
	Type          string   `json:"type,omitempty" max:"200" doc:"Column with the type that an answer must have"`
	Postcode      string   `json:"postcode,omitempty" max:"200" doc:"Column with the postcode that an answer must have"`
	CityCode      string   `json:"citycode,omitempty" max:"200" doc:"Column with the commune's INSEE code that an answer must have"`
	Lat           string   `json:"lat,omitempty" max:"200" doc:"Column with the latitude; of a search: what lies nearer comes first. Else latitude or lat, of a reverse search"`
	Fallback      string   `json:"repli,omitempty" enum:"aucun commune" default:"aucun" doc:"Of a search, and no column: commune lets the commune that was typed answer where the address is not found"`
	Explain       bool     `json:"expliquer,omitempty" doc:"Of a search, and no column: whether result_motif says why where nothing is found"`
	Lon           string   `json:"lon,omitempty" max:"200" doc:"Column with the longitude. Else longitude, lon, lng or long, of a reverse search"`
}

// FormerFile is the form of POST /search/csv and POST /reverse/csv.
type FormerFile struct {
	Data string `json:"data" min:"1" doc:"The CSV file: UTF-8, UTF-16, Windows-1252, ISO-8859-15, Macintosh or IBM850; at most 50 MiB, 200,000 rows, 1,024 columns and 1 MiB a row. A row whose address, or another cell that it is searched by, has more than 200 characters, or that lacks more than 512 cells, has result_status error, is not counted, and the file continues. A row becomes at most 1 KiB longer"`
	FormerFileFields
}

// FormerCollection is the answer of GET /search and GET /reverse: a FeatureCollection with the foreign members of the former API.
// Query, Filters and Center repeat the request.
type FormerCollection struct {
	Type        string          `json:"type" enum:"FeatureCollection"`
	Version     string          `json:"version" enum:"draft" doc:"Of GeocodeJSON"`
	Features    []Feature       `json:"features" doc:"The best first, or the nearest; empty when nothing was found"`
	Attribution string          `json:"attribution"`
	Licence     string          `json:"licence"`
	Query       string          `json:"query,omitempty"`
	Filters     *AppliedFilters `json:"filters,omitempty"`
	Center      []float64       `json:"center,omitempty" max:"2" doc:"Longitude, latitude"`
	Limit       int             `json:"limit"`
}

// AppliedFilters are the filters of a request; several values are separated by commas.
type AppliedFilters struct {
	Type     string `json:"type,omitempty"`
	Postcode string `json:"postcode,omitempty"`
	CityCode string `json:"citycode,omitempty"`
}
