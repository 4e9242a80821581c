package geometry

import (
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
)

// Kind is the kind of a shape. A shape of several kinds has the last of them.
type Kind string

const (
	KindPoint   Kind = "Point"
	KindLine    Kind = "LineString"
	KindPolygon Kind = "Polygon"
)

var (
	// ErrEmpty is a geometry without coordinates.
	ErrEmpty = errors.New("the geometry is empty")
	// ErrUnreadable is a text that is not a geometry of a known form.
	ErrUnreadable = errors.New("this is no geometry")
)

// coordinate is a point in the plane of a shape: metres, or degrees of longitude and latitude.
type coordinate struct{ x, y float64 }

// Shape is a geometry with the parts of each kind that it has. Altitudes are dropped.
type Shape struct {
	Kind Kind
	// SRID is the number of the reference system that the text names; 0 if it names none.
	SRID     int
	points   []coordinate
	lines    [][]coordinate
	polygons [][][]coordinate // each: its outer ring, then its holes
}

// IsOnePoint reports whether the shape is a point, or a list of one point.
func (s Shape) IsOnePoint() bool { return s.Kind == KindPoint && len(s.points) == 1 }

// add adds the parts of another shape.
func (s *Shape) add(other Shape) {
	s.points = append(s.points, other.points...)
	s.lines = append(s.lines, other.lines...)
	s.polygons = append(s.polygons, other.polygons...)
	if s.SRID == 0 {
		s.SRID = other.SRID
	}
}

// finish checks the coordinates of a shape and finds its kind.
func (s Shape) finish() (Shape, error) {
	s.lines = slices.DeleteFunc(s.lines, func(l []coordinate) bool { return len(l) == 0 })
	s.polygons = slices.DeleteFunc(s.polygons, func(p [][]coordinate) bool { return len(p) == 0 || len(p[0]) == 0 })
	for c := range s.allCoordinates {
		if !isFinite(c.x) || !isFinite(c.y) {
			return Shape{}, ErrUnreadable
		}
	}
	switch {
	case len(s.polygons) > 0:
		s.Kind = KindPolygon
	case len(s.lines) > 0:
		s.Kind = KindLine
	case len(s.points) > 0:
		s.Kind = KindPoint
	default:
		return Shape{}, ErrEmpty
	}
	return s, nil
}

// maxCoordinate bounds coordinates, so that areas and lengths stay finite. It is far above any metres.
const maxCoordinate = 1e9

// isFinite reports whether a number can be a coordinate. It is false for NaN.
func isFinite(n float64) bool { return math.Abs(n) <= maxCoordinate }

// allCoordinates yields every coordinate of the shape.
func (s Shape) allCoordinates(yield func(coordinate) bool) {
	for _, list := range slices.Concat([][]coordinate{s.points}, s.lines, slices.Concat(s.polygons...)) {
		for _, c := range list {
			if !yield(c) {
				return
			}
		}
	}
}

// Bounds are the least and the greatest coordinates of the shape.
func (s Shape) Bounds() (minX, minY, maxX, maxY float64) {
	minX, minY, maxX, maxY = maxCoordinate, maxCoordinate, -maxCoordinate, -maxCoordinate
	for c := range s.allCoordinates {
		minX, maxX = min(minX, c.x), max(maxX, c.x)
		minY, maxY = min(minY, c.y), max(maxY, c.y)
	}
	return minX, minY, maxX, maxY
}

// Center is a position for the whole shape: the point itself, the middle of the longest line along its course, or the centre of mass
// of the largest polygon. It always lies on the shape: if the centre of mass falls outside, into a hole or a bay, it is the middle
// of the widest piece of the polygon next to it; of several points it is the one nearest to their mean. In degrees x is the
// longitude. The center of an empty shape is 0, 0.
func (s Shape) Center() (x, y float64) {
	var c coordinate
	switch s.Kind {
	case KindPolygon:
		c = centerOfPolygon(slices.MaxFunc(s.polygons, comparing(polygonArea)))
	case KindLine:
		c = middleOfLine(slices.MaxFunc(s.lines, comparing(lineLength)))
	case KindPoint:
		c = nearestToMean(s.points)
	}
	return c.x, c.y
}

// comparing returns a comparison of two values by a size.
func comparing[T any](size func(T) float64) func(a, b T) int {
	return func(a, b T) int {
		switch sa, sb := size(a), size(b); {
		case sa < sb:
			return -1
		case sa > sb:
			return 1
		}
		return 0
	}
}

// distance is the distance of two coordinates in their plane. Degrees count alike in both directions, which is enough to halve a line.
func distance(a, b coordinate) float64 { return math.Hypot(a.x-b.x, a.y-b.y) }

// nearestToMean is the point that is nearest to the mean of all.
func nearestToMean(points []coordinate) coordinate {
	var mean coordinate
	for _, p := range points {
		mean.x += p.x / float64(len(points))
		mean.y += p.y / float64(len(points))
	}
	return slices.MinFunc(points, comparing(func(p coordinate) float64 { return distance(p, mean) }))
}

// lineLength is the length of a line along its course.
func lineLength(line []coordinate) (length float64) {
	for i := 1; i < len(line); i++ {
		length += distance(line[i-1], line[i])
	}
	return length
}

// middleOfLine is the point of a line at half of its length.
func middleOfLine(line []coordinate) coordinate {
	left := lineLength(line) / 2
	for i := 1; i < len(line); i++ {
		a, b := line[i-1], line[i]
		d := distance(a, b)
		if d > 0 && d >= left {
			t := left / d
			return coordinate{a.x + t*(b.x-a.x), a.y + t*(b.y-a.y)}
		}
		left -= d
	}
	return line[0]
}

// sumRing is twice the signed area of a ring, and its moments, all from its first point. From there sums of large coordinates stay
// exact.
func sumRing(ring []coordinate, from coordinate) (area2, mx, my float64) {
	for i := range ring {
		a, b := ring[i], ring[(i+1)%len(ring)]
		a, b = coordinate{a.x - from.x, a.y - from.y}, coordinate{b.x - from.x, b.y - from.y}
		cross := a.x*b.y - b.x*a.y
		area2 += cross
		mx += (a.x + b.x) * cross
		my += (a.y + b.y) * cross
	}
	return area2, mx, my
}

// polygonArea is the area of a polygon's outer ring.
func polygonArea(polygon [][]coordinate) float64 {
	area2, _, _ := sumRing(polygon[0], polygon[0][0])
	return math.Abs(area2) / 2
}

// centerOfPolygon is the centre of mass of a polygon without its holes, or a point on its surface if that lies outside. A
// polygon without an area counts as a line.
func centerOfPolygon(polygon [][]coordinate) coordinate {
	origin := polygon[0][0]
	var area2, mx, my float64
	for i, ring := range polygon {
		a, x, y := sumRing(ring, origin)
		if sign := math.Copysign(1, a); i == 0 {
			area2, mx, my = sign*a, sign*x, sign*y
		} else { // a hole is subtracted, whichever way it turns
			area2, mx, my = area2-sign*a, mx-sign*x, my-sign*y
		}
	}
	c := coordinate{origin.x + mx/(3*area2), origin.y + my/(3*area2)}
	switch {
	case area2 <= 0 || !isFinite(c.x) || !isFinite(c.y):
		return middleOfLine(polygon[0])
	case slices.ContainsFunc(crossings(polygon, c.y), func(span [2]float64) bool { return span[0] <= c.x && c.x <= span[1] }):
		return c
	}
	return pointOnSurface(polygon, c)
}

// crossings are the pieces of a horizontal line that lie inside a polygon, from west to east.
func crossings(polygon [][]coordinate, y float64) (spans [][2]float64) {
	var xs []float64
	for _, ring := range polygon {
		for i := range ring {
			a, b := ring[i], ring[(i+1)%len(ring)]
			if (a.y > y) != (b.y > y) {
				xs = append(xs, a.x+(y-a.y)/(b.y-a.y)*(b.x-a.x))
			}
		}
	}
	slices.Sort(xs)
	for i := 0; i+1 < len(xs); i += 2 {
		spans = append(spans, [2]float64{xs[i], xs[i+1]})
	}
	return spans
}

// pointOnSurface is the middle of the widest piece inside a polygon on the horizontal line through c. A line through the centre of
// mass of a polygon always meets the polygon, but rounding and crossed rings may hide that; then it is the middle of its outline.
func pointOnSurface(polygon [][]coordinate, c coordinate) coordinate {
	spans := crossings(polygon, c.y)
	if len(spans) == 0 {
		return middleOfLine(polygon[0])
	}
	widest := slices.MaxFunc(spans, comparing(func(s [2]float64) float64 { return s[1] - s[0] }))
	return coordinate{(widest[0] + widest[1]) / 2, c.y}
}

// ParseShape parses a geometry in any of the forms that this package reads: GeoJSON, well-known text or binary.
func ParseShape(text string) (Shape, error) {
	if strings.HasPrefix(strings.TrimSpace(text), "{") {
		return ParseGeoJSON(json.RawMessage(text))
	}
	return ParseWKT(text)
}

// geoJSON is a geometry, a feature around one, or a collection of them.
type geoJSON struct {
	Type        string            `json:"type"`
	Coordinates json.RawMessage   `json:"coordinates"`
	Geometries  []json.RawMessage `json:"geometries"`
	Geometry    json.RawMessage   `json:"geometry"`
}

// maxDepth is how deep collections may be nested.
const maxDepth = 8

// ParseGeoJSON parses a geometry of any type, or a feature, as GeoJSON. Objects as Python prints them are read too.
func ParseGeoJSON(text json.RawMessage) (Shape, error) {
	s, err := parseGeoJSON([]byte(quotePython(string(text))), maxDepth)
	if err != nil {
		return Shape{}, err
	}
	return s.finish()
}

// parseGeoJSON parses a geometry. depth is how deep it may still nest others.
func parseGeoJSON(text json.RawMessage, depth int) (s Shape, err error) {
	var g geoJSON
	if depth == 0 || json.Unmarshal(text, &g) != nil {
		return s, ErrUnreadable
	}
	switch g.Type {
	case "Feature":
		return parseGeoJSON(g.Geometry, depth-1)
	case "GeometryCollection":
		for _, member := range g.Geometries {
			part, err := parseGeoJSON(member, depth-1)
			if err != nil {
				return s, err
			}
			s.add(part)
		}
		return s, nil
	}
	return parseCoordinates(g)
}

// parseCoordinates parses the coordinates of a type of geometry. Each type nests them in its own depth.
func parseCoordinates(g geoJSON) (s Shape, err error) {
	switch g.Type {
	case "Point":
		var p position
		err = json.Unmarshal(g.Coordinates, &p)
		s.points = toCoordinates([]position{p})
	case "MultiPoint":
		var points []position
		err = json.Unmarshal(g.Coordinates, &points)
		s.points = toCoordinates(points)
	case "LineString":
		var line []position
		err = json.Unmarshal(g.Coordinates, &line)
		s.lines = [][]coordinate{toCoordinates(line)}
	case "MultiLineString":
		var lines [][]position
		err = json.Unmarshal(g.Coordinates, &lines)
		s.lines = toRings(lines)
	case "Polygon":
		var rings [][]position
		err = json.Unmarshal(g.Coordinates, &rings)
		s.polygons = [][][]coordinate{toRings(rings)}
	case "MultiPolygon":
		var polygons [][][]position
		err = json.Unmarshal(g.Coordinates, &polygons)
		for _, rings := range polygons {
			s.polygons = append(s.polygons, toRings(rings))
		}
	default:
		err = ErrUnreadable
	}
	if err != nil {
		return Shape{}, ErrUnreadable
	}
	return s, nil
}

// position is a position of GeoJSON: x, y, and perhaps an altitude.
type position struct {
	coordinate
	isEmpty bool
}

// UnmarshalJSON reads a list of numbers. An empty list is an empty point; a list of one number is an error.
func (p *position) UnmarshalJSON(text []byte) error {
	var numbers []float64
	if err := json.Unmarshal(text, &numbers); err != nil {
		return err
	}
	if len(numbers) == 1 {
		return ErrUnreadable
	}
	if p.isEmpty = len(numbers) == 0; !p.isEmpty {
		p.x, p.y = numbers[0], numbers[1]
	}
	return nil
}

// toCoordinates leaves empty points out.
func toCoordinates(positions []position) []coordinate {
	list := make([]coordinate, 0, len(positions))
	for _, p := range positions {
		if !p.isEmpty {
			list = append(list, p.coordinate)
		}
	}
	return list
}

// toRings leaves empty lists out.
func toRings(rings [][]position) [][]coordinate {
	list := make([][]coordinate, 0, len(rings))
	for _, r := range rings {
		list = append(list, toCoordinates(r))
	}
	return slices.DeleteFunc(list, func(r []coordinate) bool { return len(r) == 0 })
}
