// Package geometry reads positions as they occur in files of sites: pairs of numbers in one text, points as JSON, shapes as WKT, WKB or
// GeoJSON, and metres of a French projection. It knows neither files nor columns, and rejects what it cannot read for certain.
//
//	"44.5, 3.5" ──ParsePair──► pair ──OrderPairs, over the whole column──► Order ──Order.Point──► Point
//	{"lat":…}   ──ParseJSONPoint──► Point
//	WKT, WKB    ──ParseWKT──► Shape ──Center──► x, y ──CRS.ToWGS84──► Point
//	GeoJSON     ──ParseGeoJSON──► Shape
//
// The shapes are our own code. paulmach/orb reads them too, but its GeoJSON brings a driver of MongoDB along, and it has no
// point that is sure to lie on the surface of a polygon. peterstace/simplefeatures v0.50 has one, but it does not read the SRID that
// PostGIS writes, and it is not made for files of strangers: nine bytes of well-known binary make it ask for 128 GB, which ends the
// process, and its time grows with the square of the depth of collections. The projections are our own as well: the project has their other half
// in queries/address/commune, and wroge/wgs84 has none of the Lambert zones on the old French datum.
package geometry

import (
	"encoding/json"
	"lieudit/schemas/geo"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// box is a rectangle of degrees.
type box struct{ south, west, north, east float64 }

// contains reports whether a point is in the box or on its edge. No box crosses the antimeridian.
func (b box) contains(p geo.Point) bool {
	return b.south <= p.Lat && p.Lat <= b.north && b.west <= p.Lon && p.Lon <= b.east
}

// franceBoxes are the mainland with Corsica and the territories overseas, each with a margin of some kilometres. No box contains a
// point of another one with its coordinates swapped, so the boxes decide the order of a pair.
var franceBoxes = []box{
	{41.2, -5.4, 51.2, 9.7},        // mainland and Corsica
	{15.7, -62.0, 16.7, -60.8},     // Guadeloupe
	{17.75, -63.3, 18.25, -62.65},  // Saint-Martin, Saint-Barthélemy
	{14.3, -61.35, 15.0, -60.7},    // Martinique
	{2.0, -54.8, 6.0, -51.4},       // Guyane
	{-21.5, 55.1, -20.75, 55.95},   // La Réunion
	{-13.15, 44.9, -12.5, 45.4},    // Mayotte
	{46.65, -56.6, 47.25, -56.0},   // Saint-Pierre-et-Miquelon
	{-23.2, 162.8, -17.5, 168.5},   // Nouvelle-Calédonie
	{-28.0, -155.0, -7.5, -134.0},  // Polynésie française
	{-14.5, -178.4, -13.0, -175.9}, // Wallis-et-Futuna
	{-50.2, 50.0, -37.5, 78.0},     // islands of the southern seas
}

// IsInFrance reports whether a position lies in France or in a French territory overseas, as far as rectangles can decide: places
// just across a border count as French.
func IsInFrance(p geo.Point) bool {
	for _, b := range franceBoxes {
		if b.contains(p) {
			return true
		}
	}
	return false
}

// Order is the order of the two numbers in a column of pairs.
type Order int

const (
	UnknownOrder Order = iota
	LatLon
	LonLat
)

// Point is the position of a pair. A pair of unknown order is read as latitude, longitude.
func (o Order) Point(a, b float64) geo.Point {
	if o == LonLat {
		return geo.Point{Lat: b, Lon: a}
	}
	return geo.Point{Lat: a, Lon: b}
}

// clearMajority is the share of the pairs that must lie in France in one order if some do in the other.
const clearMajority = 0.9

// OrderPairs is the order in which the pairs of a column lie in France. All pairs decide together: a few that are swapped do not
// change the order of the others. It is unknown if no pair lies in France in either order, or as many do in both; in that case a
// first number that is not a latitude, or a second one, still decides the order.
func OrderPairs(pairs [][2]float64) Order {
	var latLon, lonLat float64
	for _, p := range pairs {
		if IsInFrance(geo.Point{Lat: p[0], Lon: p[1]}) {
			latLon++
		}
		if IsInFrance(geo.Point{Lat: p[1], Lon: p[0]}) {
			lonLat++
		}
	}
	switch both := latLon + lonLat; {
	case both == 0:
		return orderByRange(pairs)
	case latLon >= clearMajority*both:
		return LatLon
	case lonLat >= clearMajority*both:
		return LonLat
	}
	return UnknownOrder
}

// orderByRange is the order in which every pair is on the globe, if only one is.
func orderByRange(pairs [][2]float64) Order {
	canBeLatLon, canBeLonLat := len(pairs) > 0, len(pairs) > 0
	for _, p := range pairs {
		canBeLatLon = canBeLatLon && geo.Point{Lat: p[0], Lon: p[1]}.IsOnGlobe()
		canBeLonLat = canBeLonLat && geo.Point{Lat: p[1], Lon: p[0]}.IsOnGlobe()
	}
	switch {
	case canBeLatLon && !canBeLonLat:
		return LatLon
	case canBeLonLat && !canBeLatLon:
		return LonLat
	}
	return UnknownOrder
}

// ParsePair parses two numbers in one text: 44.5, 3.5 or 44,5;3,5 or [3.5,44.5] or (44.5 3.5) or 44.5|3.5. A third number, an
// altitude, is dropped. Degrees, minutes and seconds with the letters of the directions are read too; their latitude comes
// first, whatever their order. One number with a decimal comma is not a pair, and neither are two whole numbers without brackets: they
// may be a date or a part of a telephone number.
func ParsePair(s string) (a, b float64, ok bool) {
	s = strings.TrimSpace(strings.ReplaceAll(s, "\u00a0", " "))
	if p, ok := parseSexagesimal(s); ok {
		return p.Lat, p.Lon, true
	}
	inner := strings.TrimSpace(trimBrackets(s))
	for _, split := range []func(string) []string{splitAtSigns, splitAtCommas, splitAtPoint, strings.Fields} {
		if parts := split(inner); len(parts) == 2 || len(parts) == 3 {
			a, b, ok = parseTwo(parts)
			return a, b, ok && (inner != s || strings.ContainsAny(strings.Join(parts, " "), ".,"))
		}
	}
	return 0, 0, false
}

// trimBrackets removes one pair of brackets.
func trimBrackets(s string) string {
	for _, brackets := range []string{"[]", "()", "{}"} {
		if len(s) > 2 && s[0] == brackets[0] && s[len(s)-1] == brackets[1] {
			return s[1 : len(s)-1]
		}
	}
	return s
}

// splitAtSigns splits a text at characters that do not occur in numbers.
func splitAtSigns(s string) []string {
	if !strings.ContainsAny(s, ";|/\t") {
		return nil
	}
	return strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune(";|/\t", r) })
}

// splitAtCommas splits a text at the commas between its numbers. If commas are decimal signs as well, three of them, or one
// followed by a space, make a pair.
func splitAtCommas(s string) []string {
	parts := strings.Split(s, ",")
	switch {
	case len(parts) == 4 && !strings.Contains(s, "."):
		return []string{parts[0] + "." + parts[1], parts[2] + "." + parts[3]}
	case len(parts) == 2 && !strings.Contains(s, ".") && !strings.Contains(s, ", "):
		return nil
	case len(parts) == 3 && !strings.Contains(s, "."):
		return nil // 44,5 3,5 has spaces; 44,5,3 could be two pairs
	}
	if len(parts) == 3 && len(strings.Fields(s)) == 2 {
		return nil
	}
	return parts
}

// splitAtPoint splits a text whose comma a spreadsheet turned into a point: 41.93. 8.75.
func splitAtPoint(s string) []string {
	if parts := strings.Split(s, ". "); len(parts) == 2 && strings.Contains(parts[0], ".") {
		return parts
	}
	return nil
}

// parseTwo parses the first two texts, and requires that a third one is a number too.
func parseTwo(parts []string) (a, b float64, ok bool) {
	var numbers [3]float64
	for i, p := range parts {
		if numbers[i], ok = parseDecimal(p); !ok {
			return 0, 0, false
		}
	}
	return numbers[0], numbers[1], true
}

var decimalPattern = regexp.MustCompile(`^[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d{1,2})?$`)

// parseDecimal parses a number with a decimal point or comma.
func parseDecimal(s string) (float64, bool) {
	s = strings.TrimSpace(strings.NewReplacer("−", "-", "°", "").Replace(s))
	if !decimalPattern.MatchString(s) {
		return 0, false
	}
	n, err := strconv.ParseFloat(strings.Replace(s, ",", ".", 1), 64)
	return n, err == nil && !math.IsInf(n, 0)
}

// sexagesimalPattern matches degrees with optional minutes and seconds, followed by the letter of a direction.
var sexagesimalPattern = regexp.MustCompile(`(?i)^(\d{1,3}(?:[.,]\d+)?)\s*[°º]\s*` +
	`(?:(\d{1,2}(?:[.,]\d+)?)\s*['’′]\s*)?` +
	`(?:(\d{1,2}(?:[.,]\d+)?)\s*(?:["”″]|''|’’)\s*)?` +
	`([NSEWO])[\s,;/]*`)

// parseSexagesimal parses a latitude and a longitude in degrees, minutes and seconds, in any order.
func parseSexagesimal(s string) (p geo.Point, ok bool) {
	first := sexagesimalPattern.FindStringSubmatch(s)
	if first == nil {
		return p, false
	}
	rest := s[len(first[0]):]
	second := sexagesimalPattern.FindStringSubmatch(rest)
	if second == nil || len(second[0]) != len(rest) {
		return p, false
	}
	firstIsLat, secondIsLat := setDegrees(&p, first), setDegrees(&p, second)
	return p, firstIsLat != secondIsLat && p.IsOnGlobe()
}

// setDegrees sets the coordinate that the letter of a direction names, and reports whether that is the latitude.
func setDegrees(p *geo.Point, parts []string) (isLat bool) {
	var degrees float64
	for i, unit := range []float64{1, 60, 3600} {
		n, _ := parseDecimal(parts[i+1])
		degrees += n / unit
	}
	switch strings.ToUpper(parts[4]) {
	case "N":
		p.Lat, isLat = degrees, true
	case "S":
		p.Lat, isLat = -degrees, true
	case "E":
		p.Lon = degrees
	default: // West, or Ouest
		p.Lon = -degrees
	}
	return isLat
}

// pointMembers are the names of latitude and longitude in objects. If x and y are degrees, x is the longitude.
var pointMembers = [][2]string{{"lat", "lon"}, {"lat", "lng"}, {"lat", "long"}, {"latitude", "longitude"}, {"y", "x"}}

// ParseJSONPoint parses a position as a JSON object: members lat and lon by several names, as numbers or texts, or a GeoJSON point.
// Objects as Python prints them, in single quotes, are read too. A list is not a point: its order is not known.
func ParseJSONPoint(text string) (geo.Point, bool) {
	text = quotePython(text)
	var members map[string]json.RawMessage
	if json.Unmarshal([]byte(text), &members) != nil {
		return geo.Point{}, false
	}
	if _, isGeoJSON := members["coordinates"]; isGeoJSON {
		s, err := ParseGeoJSON([]byte(text))
		x, y := s.Center()
		p := geo.Point{Lat: y, Lon: x}
		return p, err == nil && s.IsOnePoint() && p.IsOnGlobe()
	}
	for _, names := range pointMembers {
		lat, hasLat := parseMember(members[names[0]])
		lon, hasLon := parseMember(members[names[1]])
		if p := (geo.Point{Lat: lat, Lon: lon}); hasLat && hasLon {
			return p, p.IsOnGlobe()
		}
	}
	return geo.Point{}, false
}

// parseMember parses a JSON number, or one inside a JSON text.
func parseMember(value json.RawMessage) (float64, bool) {
	var text string
	if json.Unmarshal(value, &text) != nil {
		text = string(value)
	}
	return parseDecimal(text)
}

// quotePython turns an object that Python printed into JSON. A text with double quotes is returned unchanged.
func quotePython(text string) string {
	if strings.Contains(text, `"`) {
		return text
	}
	return strings.ReplaceAll(text, "'", `"`)
}
