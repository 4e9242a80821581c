package body

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"

	"lieudit/schemas/body/shape"
)

// The requests of /route/*. GET and POST take the same; in a query the items of a list are repeated parameters, since addresses
// have commas, and a bound is a text.

// Bound is where a route begins, ends or stops, as a request names it: an object of a position or of one of the account's own
// sites, or a text. A text of two numbers is a position, one of the form site:CODE/EXTERNAL_ID an own site, any other an address,
// its id or its id_ban.
type Bound struct {
	Lon         *float64 `json:"lon,omitempty" min:"-180" max:"180" doc:"With lat: a position"`
	Lat         *float64 `json:"lat,omitempty" min:"-90" max:"90"`
	Referential string   `json:"referentiel,omitempty" pattern:"^[a-z0-9_-]{1,64}$" doc:"With external_id: an own site"`
	ExternalID  string   `json:"external_id,omitempty" pattern:"^[A-Za-z0-9._~:*@+-]{1,128}$"`

	text string // as it was typed; "" for an object
}

const maxBoundLength = 200

// TextLength implements shape.TextForm.
func (b *Bound) TextLength() (shortest, longest int) { return 1, maxBoundLength }

var (
	positionText = regexp.MustCompile(`^\s*(-?[0-9]+(?:\.[0-9]+)?)\s*,\s*(-?[0-9]+(?:\.[0-9]+)?)\s*$`)
	siteText     = regexp.MustCompile(`^\s*site:([a-z0-9_-]{1,64})/([A-Za-z0-9._~:*@+-]{1,128})\s*$`)
)

// SetText implements shape.TextForm.
func (b *Bound) SetText(text string) error {
	b.text = text
	if m := siteText.FindStringSubmatch(text); m != nil {
		b.Referential, b.ExternalID = m[1], m[2]
	}
	m := positionText.FindStringSubmatch(text)
	if m == nil {
		return nil
	}
	lon, lonErr := strconv.ParseFloat(m[1], 64)
	lat, latErr := strconv.ParseFloat(m[2], 64)
	if lonErr != nil || latErr != nil || max(lon, -lon) > 180 || max(lat, -lat) > 90 {
		return errors.New("a position is lon,lat with lon from -180 to 180 and lat from -90 to 90")
	}
	b.Lon, b.Lat = &lon, &lat
	return nil
}

// BrokenRules checks that an object is a position or a site, whole and not both.
func (b *Bound) BrokenRules() []string {
	isSite := b.Referential != "" || b.ExternalID != ""
	rules := latLonRule(b.Lat, b.Lon)
	rules = append(rules, brokenIf((b.Referential == "") != (b.ExternalID == ""), "referentiel and external_id go together")...)
	return append(rules, brokenIf(isSite == (b.Lat != nil || b.Lon != nil), "a bound is lon and lat, or referentiel and external_id")...)
}

// IsSite reports whether the bound is one of the account's own sites.
func (b *Bound) IsSite() bool { return b.ExternalID != "" }

// IsPosition reports whether the bound is a position.
func (b *Bound) IsPosition() bool { return b.Lon != nil }

// Typed is the bound as a text: as it was typed, or an object in the form of a text.
func (b *Bound) Typed() string {
	switch {
	case b.text != "":
		return b.text
	case b.IsSite():
		return SiteText(b.Referential, b.ExternalID)
	case b.IsPosition():
		return strconv.FormatFloat(*b.Lon, 'f', -1, 64) + "," + strconv.FormatFloat(*b.Lat, 'f', -1, 64)
	}
	return ""
}

// SiteText is the text of a bound that is an own site.
func SiteText(referential, externalID string) string {
	return "site:" + referential + "/" + externalID
}

// Travel is how to travel.
type Travel struct {
	Mode  string   `json:"mode,omitempty" enum:"car foot bike" default:"car" doc:"A car is driven to private roads and others for those who go there, never through. A route that begins and ends within one area of such roads stays in it if it can"`
	Avoid []string `json:"avoid,omitempty" enum:"toll motorway ferry" max:"3" doc:"As far as possible; evitements says what remained. In a query repeated or separated by commas"`
}

// TravelBy is Travel with what a route makes least.
type TravelBy struct {
	Travel
	Optimization string `json:"optimization,omitempty" enum:"fastest shortest" default:"fastest"`
}

// Drawing is what an answer shows of the way.
type Drawing struct {
	Geometry string `json:"geometry,omitempty" enum:"geojson polyline none" default:"geojson" doc:"none leaves bbox out too"`
	Steps    bool   `json:"steps,omitempty" doc:"Whether each leg has steps"`
	Lang     string `json:"lang,omitempty" enum:"fr en" default:"fr" doc:"Of the texts of steps"`
}

// ComputeRoute is the request of /route/compute.
type ComputeRoute struct {
	Origin       Bound   `json:"origin" syntax:"true" doc:"An address, its id or its id_ban; lon,lat; or site:CODE/EXTERNAL_ID"`
	Destination  Bound   `json:"destination" syntax:"true" doc:"As origin"`
	Waypoints    []Bound `json:"waypoints,omitempty" max:"23" doc:"Between them, in this order, each as origin; in a query repeat the parameter"`
	Alternatives int     `json:"alternatives,omitempty" min:"0" max:"2" doc:"Other routes, at most so many; only without waypoints"`
	TravelBy
	Drawing
	Explaining
}

// BrokenRules checks that alternatives lead from the origin straight to the destination.
func (q ComputeRoute) BrokenRules() []string {
	return brokenIf(q.Alternatives > 0 && len(q.Waypoints) > 0, "alternatives go without waypoints")
}

// SiteFilter selects active sites of the account that have a position: all of them, unless a member says less.
type SiteFilter struct {
	Referential string   `json:"referentiel,omitempty" pattern:"^[a-z0-9_-]{1,64}$" doc:"Only its sites"`
	Tags        []string `json:"tags,omitempty" max:"50" doc:"Sites with all of them"`
}

// SiteParameters is a SiteFilter in a query.
type SiteParameters struct {
	Sites       bool     `json:"sites,omitempty" doc:"The account's own active sites, in the place of destinations"`
	Referential string   `json:"referentiel,omitempty" pattern:"^[a-z0-9_-]{1,64}$" doc:"With sites: only those of this referential"`
	Tags        []string `json:"tags,omitempty" max:"50" doc:"With sites: those with all of these; repeat the parameter"`
}

// filter is the filter that the parameters mean; nil: they ask for no sites.
func (p SiteParameters) filter() *SiteFilter {
	if !p.Sites {
		return nil
	}
	return &SiteFilter{p.Referential, p.Tags}
}

func (p SiteParameters) brokenRules() []string {
	return brokenIf(!p.Sites && (p.Referential != "" || p.Tags != nil), "referentiel and tags go with sites=true")
}

// MaxMatrixCells is how many cells a matrix has at most.
const MaxMatrixCells = 625

// ComputeMatrix is the request of /route/matrix. Sites is in the place of Destinations; it is a member of the body and three
// parameters of the query, so it is declared in MatrixBody and MatrixQuery.
type ComputeMatrix struct {
	Origins      []Bound     `json:"origins" min:"1" max:"625" doc:"Each an address, its id or its id_ban; lon,lat; or site:CODE/EXTERNAL_ID. In a query repeat the parameter"`
	Destinations []Bound     `json:"destinations,omitempty" min:"1" max:"625" doc:"Each as an origin. Origins times destinations is at most 625"`
	sites        *SiteFilter // instead of destinations
	TravelBy
	Explaining
}

// SiteFilter selects the sites that are the destinations; nil: Destinations are.
func (q ComputeMatrix) SiteFilter() *SiteFilter { return q.sites }

// MatrixBody is the body of POST /route/matrix.
type MatrixBody struct {
	ComputeMatrix
	Sites *SiteFilter `json:"sites,omitempty" doc:"The account's own active sites, in the place of destinations"`
}

// MatrixQuery is the query of GET /route/matrix.
type MatrixQuery struct {
	ComputeMatrix
	SiteParameters
}

// Request is what the body asks for.
func (b MatrixBody) Request() ComputeMatrix {
	b.sites = b.Sites
	return b.ComputeMatrix
}

// Request is what the query asks for.
func (q MatrixQuery) Request() ComputeMatrix {
	q.sites = q.filter()
	return q.ComputeMatrix
}

// BrokenRules checks the size, and that destinations are given in one way.
func (b MatrixBody) BrokenRules() []string { return b.Request().brokenRules() }

// BrokenRules checks the size, and that destinations are given in one way.
func (q MatrixQuery) BrokenRules() []string {
	return append(q.Request().brokenRules(), q.SiteParameters.brokenRules()...)
}

func (q ComputeMatrix) brokenRules() []string {
	rules := brokenIf(len(q.Destinations) > 0 && q.sites != nil, destinationsOrSites)
	if cells := len(q.Origins) * len(q.Destinations); cells > MaxMatrixCells {
		rules = append(rules, MatrixSizeRule(cells))
	}
	return rules
}

const destinationsOrSites = "destinations and sites exclude each other"

// MatrixSizeRule is the rule that a matrix of n cells breaks.
func MatrixSizeRule(cells int) string {
	return fmt.Sprintf("origins times destinations is at most %d, not %d", MaxMatrixCells, cells)
}

// IsEmpty reports whether the request names no destinations.
func (q ComputeMatrix) IsEmpty() bool { return len(q.Destinations) == 0 && q.sites == nil }

// FindNearest is the request of /route/nearest. Sites is as that of ComputeMatrix.
type FindNearest struct {
	Origin       Bound   `json:"origin" syntax:"true" doc:"An address, its id or its id_ban; lon,lat; or site:CODE/EXTERNAL_ID"`
	Destinations []Bound `json:"destinations,omitempty" min:"1" max:"625" doc:"Each as origin; in a query repeat the parameter"`
	Limit        int     `json:"limit,omitempty" min:"1" max:"100" default:"10"`
	sites        *SiteFilter
	TravelBy
	Explaining
}

// SiteFilter selects the sites that are the destinations; nil: Destinations are.
func (q FindNearest) SiteFilter() *SiteFilter { return q.sites }

// IsEmpty reports whether the request names no destinations.
func (q FindNearest) IsEmpty() bool { return len(q.Destinations) == 0 && q.sites == nil }

// NearestBody is the body of POST /route/nearest.
type NearestBody struct {
	FindNearest
	Sites *SiteFilter `json:"sites,omitempty" doc:"The account's own active sites, in the place of destinations"`
}

// NearestQuery is the query of GET /route/nearest.
type NearestQuery struct {
	FindNearest
	SiteParameters
}

// Request is what the body asks for.
func (b NearestBody) Request() FindNearest {
	b.sites = b.Sites
	return b.FindNearest
}

// Request is what the query asks for.
func (q NearestQuery) Request() FindNearest {
	q.sites = q.filter()
	return q.FindNearest
}

// BrokenRules checks that destinations are given in one way.
func (b NearestBody) BrokenRules() []string {
	return brokenIf(b.Sites != nil && b.Destinations != nil, destinationsOrSites)
}

// BrokenRules checks that destinations are given in one way.
func (q NearestQuery) BrokenRules() []string {
	return append(brokenIf(q.Sites && q.Destinations != nil, destinationsOrSites), q.SiteParameters.brokenRules()...)
}

// ComputeIsochrone is the request of /route/isochrone.
type ComputeIsochrone struct {
	Origin    Bound  `json:"origin" syntax:"true" doc:"An address, its id or its id_ban; lon,lat; or site:CODE/EXTERNAL_ID"`
	CostType  string `json:"cost_type,omitempty" enum:"duration distance" default:"duration"`
	Costs     []int  `json:"cost_values" min:"1" max:"4" doc:"Seconds up to 3600, or metres up to 100000; answered in this order. In a query repeated or separated by commas"`
	Direction string `json:"direction,omitempty" enum:"departure arrival" default:"departure" doc:"arrival: from where the origin is reached"`
	Sites     bool   `json:"sites,omitempty" doc:"Whether each value lists the account's own active sites that the journey reaches within it, as /route/matrix says"`
	Geometry  string `json:"geometry,omitempty" enum:"geojson none" default:"geojson"`
	Travel
	Explaining
}

// The highest values of an isochrone: seconds and metres.
const (
	maxIsochroneDuration = 3_600
	maxIsochroneDistance = 100_000
)

// MemberFaults checks the values, whose highest depends on what they measure.
func (q ComputeIsochrone) MemberFaults() []shape.MemberFault {
	most, unit := maxIsochroneDuration, "seconds"
	if q.CostType == "distance" {
		most, unit = maxIsochroneDistance, "metres"
	}
	for _, v := range q.Costs {
		if v < 1 || v > most {
			return []shape.MemberFault{{Member: "cost_values", Rule: fmt.Sprintf("a value is from 1 to %d %s, not %d", most, unit, v)}}
		}
	}
	return nil
}

// OptimizeStops is the request of /route/optimize.
type OptimizeStops struct {
	Stops     []Bound `json:"stops" min:"2" max:"48" doc:"Each an address, its id or its id_ban; lon,lat; or site:CODE/EXTERNAL_ID. In a query repeat the parameter"`
	Start     string  `json:"start,omitempty" enum:"fixed free" default:"fixed" doc:"fixed: the tour begins at the first of the stops"`
	End       string  `json:"end,omitempty" enum:"fixed free" default:"free" doc:"fixed: the tour ends at the last of the stops"`
	RoundTrip bool    `json:"round_trip,omitempty" doc:"Back to where the tour began"`
	TravelBy
	Drawing
	Explaining
}

// BrokenRules checks that a tour that comes back has no end of its own.
func (q OptimizeStops) BrokenRules() []string {
	return brokenIf(q.RoundTrip && q.End == "fixed", "round_trip and end=fixed exclude each other")
}
