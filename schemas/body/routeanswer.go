package body

import "lieudit/schemas/body/shape"

// The answers of /route/*. Durations are whole seconds and distances whole metres, each rounded by itself. Where nothing is found the
// answer is NoRoute.

// RouteNetwork is what every answer says of the roads that it is from.
type RouteNetwork struct {
	Mode        string `json:"mode" enum:"car foot bike"`
	RoadNetwork string `json:"reseau_routier,omitempty" doc:"Date of the road data"`
	Attribution string `json:"attribution,omitempty" doc:"To be shown beside the answer"`
}

// ResolvedBound is a bound and what it was resolved to. Address, Score and Verdict are those of an address, Site is an own site; a
// position has none of them.
type ResolvedBound struct {
	Input   string    `json:"saisi,omitempty" doc:"As it was sent; an object in the form of a text"`
	Score   float64   `json:"score,omitzero" doc:"Of an address"`
	Verdict string    `json:"verdict,omitempty" enum:"match_exact match_probable"`
	Address *Address  `json:"adresse,omitempty" doc:"What it was resolved to, unless it was a position or a site"`
	Site    *SiteName `json:"site,omitempty"`
	Lon     float64   `json:"lon"`
	Lat     float64   `json:"lat"`
	Access  *Access   `json:"acces,omitempty" doc:"Of roads that are about as near, such as those at a junction, the one that the route takes; in a matrix, of the nearest and of an area the nearest one. How much farther one is counts when the route is chosen, and not in durations. An address is moved onto its street within 150 m, and not onto motorways, ramps, tunnels and bridges; a position may lie there. Left out where no road is near enough"`
}

// The reasons of NoRoute.
const (
	NoWayReason   = "aucun_chemin"
	OffRoadReason = "hors_reseau"
)

// NoRoute is the answer to a question about routes where nothing is found. Without expliquer=true it is NoResults.
type NoRoute struct {
	NoResults
	Reason string          `json:"motif,omitempty" enum:"aucun_chemin hors_reseau" doc:"With expliquer=true: no way leads through the bounds, or one lies too far from any road"`
	Bounds []ResolvedBound `json:"bornes,omitempty" doc:"With expliquer=true: those that it is about"`
}

// SiteName names an own site.
type SiteName struct {
	Referential string `json:"referentiel"`
	ExternalID  string `json:"external_id"`
	Name        string `json:"nom,omitempty"`
}

// Access is where a bound meets the road network.
type Access struct {
	Lon      float64 `json:"lon"`
	Lat      float64 `json:"lat"`
	Distance int     `json:"distance" doc:"Metres from the bound"`
	Street   string  `json:"voie,omitempty" doc:"The road's name"`
	IsOnOwn  *bool   `json:"sur_sa_voie,omitempty" doc:"Whether the road has the name of the bound's street; left out where that is not known"`
}

// Line is a way through positions: a GeoJSON LineString, or an encoded polyline. It is a text or an object in JSON.
type Line struct {
	Type        string      `json:"type" enum:"LineString"`
	Coordinates [][]float64 `json:"coordinates" doc:"Each longitude, latitude"`

	polyline string // "": it is GeoJSON
}

// PolylineOf is a line as an encoded polyline.
func PolylineOf(text string) *Line { return &Line{polyline: text} }

// SetText implements shape.TextForm.
func (l *Line) SetText(text string) error {
	l.polyline = text
	return nil
}

// TextLength implements shape.TextForm.
func (l *Line) TextLength() (shortest, longest int) { return 0, 0 }

// PolylinePrecision is how many decimals the degrees of an encoded polyline have.
const PolylinePrecision = 5

// ComputedRoute is the answer of /route/compute.
type ComputedRoute struct {
	Envelope
	Bounds []ResolvedBound `json:"bounds" doc:"Origin, waypoints, destination"`
	RoutePath
	Alternatives      []RoutePath `json:"alternatives,omitempty" doc:"Other routes, the best first"`
	PolylinePrecision int         `json:"precision_polyline,omitzero" doc:"With geometry=polyline: decimals of its degrees"`
	RouteNetwork
}

// RoutePath is a way through all bounds.
type RoutePath struct {
	Distance     int       `json:"distance" doc:"Metres"`
	Duration     int       `json:"duration" doc:"Seconds on the way, without what only made others a worse choice"`
	BBox         []float64 `json:"bbox,omitempty" max:"4" doc:"West, south, east, north; west is above east across the antimeridian"`
	Geometry     *Line     `json:"geometry,omitempty"`
	Legs         []Leg     `json:"legs" doc:"From each bound to the next"`
	Avoided      []Avoided `json:"evitements,omitempty" doc:"What could not be avoided"`
	TollDistance int       `json:"peages_m,omitzero" doc:"Metres on roads with a toll"`
}

// Avoided is how far a route continues roads of a kind that was to be avoided.
type Avoided struct {
	Type     string `json:"type" enum:"toll motorway ferry"`
	Distance int    `json:"metres"`
}

// Leg is the way from one bound to the next.
type Leg struct {
	Distance int    `json:"distance" doc:"Metres"`
	Duration int    `json:"duration" doc:"Seconds"`
	Steps    []Step `json:"steps,omitempty"`
}

// Step is a manoeuvre and the road that follows it, up to the next one. The last of a leg is arrivee.
type Step struct {
	Distance   int      `json:"distance" doc:"Metres"`
	Duration   int      `json:"duration" doc:"Seconds"`
	Street     string   `json:"voie,omitempty" doc:"Name of the road that follows"`
	Ref        string   `json:"ref,omitempty" doc:"Its number, such as D 806"`
	Directions string   `json:"directions,omitempty" doc:"What its signs show"`
	Maneuver   Maneuver `json:"manoeuvre"`
	Text       string   `json:"texte,omitempty" doc:"In the language of lang"`
	Geometry   *Line    `json:"geometry,omitempty"`
}

// Maneuver is what a driver does where a step begins.
type Maneuver struct {
	Type     string  `json:"type" enum:"depart arrivee tourner continuer bifurcation bretelle sortie insertion rond_point demi_tour bac"`
	Modifier string  `json:"sens,omitempty" enum:"tout_droit legerement_gauche gauche fortement_gauche legerement_droite droite fortement_droite demi_tour" doc:"Of a depart demi_tour alone: the leg goes back on the road by which the leg before came"`
	Exit     int     `json:"sortie,omitzero" doc:"Of a roundabout, from 1"`
	Lon      float64 `json:"lon"`
	Lat      float64 `json:"lat"`
}

// Matrix is the answer of /route/matrix: a row for each origin, a column for each destination.
type Matrix struct {
	Envelope
	Origins      []ResolvedBound         `json:"origins"`
	Destinations []ResolvedBound         `json:"destinations" doc:"In the order of the request; sites by referentiel and external_id"`
	Durations    [][]shape.Nullable[int] `json:"durations" doc:"Seconds; null: unreachable"`
	Distances    [][]shape.Nullable[int] `json:"distances" doc:"Metres, of the same ways; null: unreachable"`
	RouteNetwork
}

// Isochrone is the answer of /route/isochrone.
type Isochrone struct {
	Envelope
	Origin   ResolvedBound `json:"origin"`
	CostType string        `json:"cost_type" enum:"duration distance"`
	Areas    []Area        `json:"areas" doc:"One for each of cost_values, in their order"`
	RouteNetwork
}

// Area is what lies within reach for a value. Sites are by referentiel and external_id.
type Area struct {
	Value    int           `json:"valeur" doc:"Seconds or metres"`
	Geometry *MultiPolygon `json:"geometry,omitempty"`
	Sites    []SitePoint   `json:"sites,omitzero" doc:"With sites=true: the account's active sites within the value"`
}

// MultiPolygon is an area as GeoJSON: of each polygon the first ring is its border, the others are holes.
type MultiPolygon struct {
	Type        string          `json:"type" enum:"MultiPolygon"`
	Coordinates [][][][]float64 `json:"coordinates"`
}

// SitePoint is an own site and where it lies.
type SitePoint struct {
	SiteName
	Lon float64 `json:"lon"`
	Lat float64 `json:"lat"`
}

// Nearest is the answer of /route/nearest.
type Nearest struct {
	Envelope
	Origin  ResolvedBound        `json:"origin"`
	Results []NearestDestination `json:"results" doc:"The nearest by optimization first"`
	RouteNetwork
}

// NearestDestination is a destination that can be reached.
type NearestDestination struct {
	Index *int `json:"indice,omitempty" doc:"Among destinations, from 0; left out for sites"`
	ResolvedBound
	Distance int `json:"distance" doc:"Metres"`
	Duration int `json:"duration" doc:"Seconds"`
}

// Tour is the answer of /route/optimize.
type Tour struct {
	Envelope
	Order   []int           `json:"order" doc:"The stops in the order of the tour, by their place in the request, from 0"`
	Optimal bool            `json:"optimal" doc:"Whether no order takes less"`
	Bounds  []ResolvedBound `json:"bounds" doc:"The stops in the order of the request"`
	RoutePath
	PolylinePrecision int `json:"precision_polyline,omitzero" doc:"With geometry=polyline: decimals of its degrees"`
	RouteNetwork
}
