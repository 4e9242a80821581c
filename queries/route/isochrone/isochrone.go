// Package isochrone draws the areas that can be reached within limits, from the roads reached. The areas are valid polygons
// whatever the roads are, and each lies within the next wider one.
//
//	Roads ── draw ──► plane (a bit for each node of a grid and limit) ── closeGaps ──► plane ── traceRings ──► rings
//	      ── simplify ──► rings ── polygons ──► route.Area
//
// A city has some hundred thousand points of roads, and drawing them is most of the work. So roads are given in the integer
// coordinates of the map. Nearly all lie entirely within a limit: those are drawn in integers, one after the other as they are
// read, and are not kept.
//
// The nodes of the grid are the corners of its squares. The four corners of a square that contains a reached road are inside; so
// are the nodes in a narrow gap between reached roads, unless a road that is not reached leads through it. The border runs between
// the nodes inside and those outside, at a slightly different place for each limit, so that borders never touch. Simplifying a
// border never moves it across a node or another border.
package isochrone

import (
	"iter"
	"math"
	"time"

	"lieudit/queries/route"
	"lieudit/schemas/geo"
)

// Road is a line through at least two points. The cost of reaching a point of it changes linearly along its length.
type Road struct {
	Points           []route.FixedPoint
	FromCost, ToCost float64
}

// Roads are the roads of a question.
type Roads struct {
	// Whole are the points of each road whose cost lies between the same two neighbouring limits everywhere, with the index of the
	// upper limit; roads beyond all limits have the number of limits as their index. All longitudes lie within 180 degrees of each
	// other. The points are valid until the next ones.
	Whole iter.Seq2[int, []route.FixedPoint]
	// Box holds all points of Whole that are within some limit. It is empty if there are no such points.
	Box Box
	// Parts are the roads that cost no more than a limit in parts, and any others that are not among Whole.
	Parts []Road
}

// NewRoads divides roads into whole ones and parts.
func NewRoads(all []Road, limits []float64) Roads {
	around := EmptyBox()
	for i := range all {
		around.HoldAll(all[i].Points)
	}
	if around.IsRound() {
		return Roads{Whole: func(func(int, []route.FixedPoint) bool) {}, Box: EmptyBox(), Parts: all}
	}
	var whole, parts []Road
	box := EmptyBox()
	for _, r := range all {
		switch k := r.limitOf(limits); {
		case k < len(limits) && r.dearest() > limits[k]:
			parts = append(parts, r)
			continue
		case k < len(limits):
			box.HoldAll(r.Points)
		}
		whole = append(whole, r)
	}
	return Roads{Box: box, Parts: parts, Whole: func(visit func(int, []route.FixedPoint) bool) {
		for i := range whole {
			if !visit(whole[i].limitOf(limits), whole[i].Points) {
				return
			}
		}
	}}
}

// from are the same roads for count of the limits, beginning with the limit first.
func (r Roads) from(first, count int) Roads {
	whole := r.Whole
	r.Whole = func(visit func(int, []route.FixedPoint) bool) {
		for k, points := range whole {
			if !visit(min(max(k-first, 0), count), points) {
				return
			}
		}
	}
	return r
}

// limitOf is the index of the least limit that some point of a road is within; the number of limits if no point is within any.
func (r *Road) limitOf(limits []float64) (k int) {
	for k < len(limits) && r.cheapest() > limits[k] {
		k++
	}
	return k
}

// cheapest and dearest are the costs between which those of all points of a road lie.
func (r *Road) cheapest() float64 { return min(r.FromCost, r.ToCost) }
func (r *Road) dearest() float64  { return max(r.FromCost, r.ToCost) }

// eachPiece calls visit with the straight pieces of a road, from its first point to its last. A road is short enough for one scale of
// longitudes.
func (r *Road) eachPiece(visit func(*line)) {
	scale, whole := math.Cos(r.Points[0].Point().Lat*math.Pi/180), 0.0
	for i := 1; i < len(r.Points); i++ {
		whole += lengthBetween(r.Points[i-1].Point(), r.Points[i].Point(), scale)
	}
	perLength := 0.0
	if whole > 0 {
		perLength = (r.ToCost - r.FromCost) / whole
	}
	piece := line{ToCost: r.FromCost}
	for i := 1; i < len(r.Points); i++ {
		piece.From, piece.To, piece.FromCost = r.Points[i-1].Point(), r.Points[i].Point(), piece.ToCost
		piece.ToCost += perLength * lengthBetween(piece.From, piece.To, scale)
		if i == len(r.Points)-1 {
			piece.ToCost = r.ToCost // also for a road without length
		}
		visit(&piece)
	}
}

// lengthBetween is the distance of two points in degrees of latitude.
func lengthBetween(a, b geo.Point, scale float64) float64 {
	x, y := wrap(b.Lon-a.Lon)*scale, b.Lat-a.Lat
	return math.Sqrt(x*x + y*y)
}

// wrap turns a difference of longitudes into the difference the shorter way round.
func wrap(lon float64) float64 {
	if lon > 180 {
		return lon - 360
	} else if lon < -180 {
		return lon + 360
	}
	return lon
}

// line is a straight piece of a road. The cost of reaching a point of it changes linearly from one end to the other.
type line struct {
	From, To         geo.Point
	FromCost, ToCost float64
}

// MaxLimits is the number of limits that Areas draws together; more limits are drawn in independent groups.
const MaxLimits = 8

// The side of the squares of the grid: cellSize metres, more for areas so large that they would be more than maxCells squares
// wide.
const (
	cellSize = 30
	maxCells = 1_000
)

// gapSize is how wide gaps are closed, in metres, as far as the squares allow: always at least two squares.
const gapSize = 180

// A hole has at least minHole squares, and more than maxField square metres if it contains no known road: anyone who stands in a
// field comes from the roads around it.
const (
	minHole  = 4
	maxField = 250_000
)

// Yield is called about every half millisecond with the amount of work done since, so that the caller can give way to others. Its
// error ends the work.
type Yield func(done time.Duration) error

// Drawer draws areas. It reuses its memory in the next call: a city takes some megabytes. The zero value is ready. One goroutine
// uses it at a time.
type Drawer struct {
	planes  []*plane
	used    int // planes in use
	borders borders
}

// newPlane returns an empty plane for a grid.
func (d *Drawer) newPlane(g *grid) *plane {
	if d.used == len(d.planes) {
		d.planes = append(d.planes, &plane{})
	}
	p := d.planes[d.used]
	d.used++
	p.clear(g.perLine, g.rows)
	return p
}

// Areas returns, for each of the ascending limits, the area around the parts of roads that cost no more. Every such part lies
// inside. A point on a road that costs more lies outside if it is more than about two squares (of at least cellSize metres, and a
// thousandth of the widest area) from each such part, so roads that lead beyond the limits are worth giving. An area is empty if no
// road is reached within its limit. Holes that are small, or without roads and not large, are left out. Longitudes continue beyond
// 180 degrees if an area crosses the antimeridian. The error is that of yield.
func (d *Drawer) Areas(roads Roads, limits []float64, yield Yield) ([]route.Area, error) {
	if len(limits) > MaxLimits {
		first, err := d.Areas(roads.from(0, MaxLimits), limits[:MaxLimits], yield)
		if err != nil {
			return nil, err
		}
		rest, err := d.Areas(roads.from(MaxLimits, len(limits)-MaxLimits), limits[MaxLimits:], yield)
		return append(first, rest...), err
	}
	areas := make([]route.Area, len(limits))
	g, ok := newGrid(roads, limits)
	if !ok {
		return areas, nil
	}
	d.used = 0
	inside, known, err := d.draw(g, roads, limits, yield)
	if err != nil {
		return nil, err
	}
	d.borders.begin(g, inside, known, d.newPlane(g))
	all, err := d.borders.traceAll(yield)
	if err != nil {
		return nil, err
	}
	for k := range all {
		areas[k] = g.polygons(all[k])
	}
	return areas, nil
}

// The approximate times to read and draw a road, to visit a node of the grid, and to simplify a vertex of a border.
const (
	drawWork   = 100 * time.Nanosecond
	nodeWork   = time.Nanosecond
	vertexWork = 80 * time.Nanosecond
)

// traceAll returns the rings of each limit, made simpler.
func (b *borders) traceAll(yield Yield) (all [][]ring, err error) {
	all = make([][]ring, len(b.inside))
	for k := range all {
		all[k] = b.traceRings(k)
		if err := yield(time.Duration(len(b.crossings)) * nodeWork); err != nil {
			return nil, err
		}
	}
	for range simplifyPasses {
		for k := range all {
			for i := range all[k] {
				r := &all[k][i]
				if err := yield(time.Duration(len(r.vertices)) * vertexWork); err != nil {
					return nil, err
				}
				b.simplify(k, r)
			}
		}
	}
	return all, nil
}

// grid is a grid of squares over the reached lines. A square has the number of its south-western node. Two rows and columns of
// nodes at each border lie outside all areas.
type grid struct {
	originLon, originLat   float64 // position of node (0, 0), in degrees
	perLon, perLat         float64 // squares to a degree
	middleLon              float64 // longitudes are taken within 180 degrees of it
	columns, rows, perLine int     // nodes; nodes from the beginning of one row to that of the next
	side                   float64
	scale                  scale
}

// gridMargin is the number of squares around the lines. The outermost points lie in the middle of squares: on a side, rounding
// would decide which square they are in.
const gridMargin = 5.5

// newGrid returns a grid over the reached parts of roads; false if no part is reached.
func newGrid(roads Roads, limits []float64) (*grid, bool) {
	g, b := &grid{}, roads.Box
	switch {
	case len(limits) == 0:
		return nil, false
	case !b.isEmpty():
		g.middleLon = (b.west + b.east) / 2 / route.FixedUnit
	case len(roads.Parts) > 0:
		g.middleLon = roads.Parts[0].Points[0].Point().Lon
	}
	for i := range roads.Parts {
		roads.Parts[i].eachPiece(func(l *line) {
			if from, to, ok := l.within(limits[len(limits)-1]); ok {
				b.hold(g.unwrap(l.at(from).Lon), l.at(from).Lat)
				b.hold(g.unwrap(l.at(to).Lon), l.at(to).Lat)
			}
		})
	}
	if b.isEmpty() {
		return nil, false
	}
	g.cover(b)
	return g, true
}

// cover lays the squares over a box.
func (g *grid) cover(b Box) {
	west, south, east, north := b.west/route.FixedUnit, b.south/route.FixedUnit, b.east/route.FixedUnit, b.north/route.FixedUnit
	scale := max(0.01, math.Cos((south+north)/2*math.Pi/180))
	width, height := (east-west)*scale*geo.MetresPerDegree, (north-south)*geo.MetresPerDegree
	g.side = max(cellSize, max(width, height)/maxCells)
	g.perLat = geo.MetresPerDegree / g.side
	g.perLon = g.perLat * scale
	g.originLon, g.originLat = west-gridMargin/g.perLon, south-gridMargin/g.perLat
	g.columns, g.rows = int(width/g.side+2*gridMargin)+2, int(height/g.side+2*gridMargin)+2
	g.perLine = (g.columns + 63) / 64 * 64
	g.scale = newScale(g)
}

// unwrap turns a longitude into the same within 180 degrees of the middle.
func (g *grid) unwrap(lon float64) float64 {
	switch d := lon - g.middleLon; {
	case d > 180:
		return lon - 360
	case d < -180:
		return lon + 360
	}
	return lon
}

// within returns the shares of a line between which its cost is at most a limit; false if it is nowhere.
func (l *line) within(limit float64) (from, to float64, ok bool) {
	switch {
	case l.FromCost <= limit && l.ToCost <= limit:
		return 0, 1, true
	case l.FromCost <= limit:
		return 0, (limit - l.FromCost) / (l.ToCost - l.FromCost), true
	case l.ToCost <= limit:
		return 1 - (limit-l.ToCost)/(l.FromCost-l.ToCost), 1, true
	}
	return 0, 0, false
}

// at returns the point at a share of a line.
func (l *line) at(share float64) geo.Point {
	lon := wrap(l.To.Lon - l.From.Lon)
	return geo.Point{Lon: l.From.Lon + share*lon, Lat: l.From.Lat + share*(l.To.Lat-l.From.Lat)}
}
