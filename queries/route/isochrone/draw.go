package isochrone

import (
	"math"
	"time"

	"lieudit/queries/route"
	"lieudit/schemas/geo"
)

// draw returns a plane for each limit: the nodes inside its area. roads are the corners of all squares with a road, of any cost.
func (d *Drawer) draw(g *grid, all Roads, limits []float64, yield Yield) (inside []*plane, roads *plane, err error) {
	squares := make([]*plane, len(limits)+1) // the last: roads beyond the limits
	for k := range squares {
		squares[k] = d.newPlane(g)
	}
	if err := g.drawAll(all, limits, squares, yield); err != nil {
		return nil, nil, err
	}
	for k := 1; k < len(squares); k++ {
		squares[k].include(squares[k-1])
	}
	for _, p := range squares {
		p.growToCorners()
	}
	inside, roads = squares[:len(limits)], squares[len(limits)]
	grown := d.newPlane(g)
	for _, p := range inside {
		p.closeGaps(max(1, int(gapSize/g.side/2)), roads, grown)
		if err := yield(time.Duration(len(p.words)*64) * nodeWork); err != nil {
			return nil, nil, err
		}
	}
	return inside, roads, nil
}

// drawAll marks the squares that roads lead through, in the plane of the first limit that they are within.
func (g *grid) drawAll(all Roads, limits []float64, squares []*plane, yield Yield) error {
	const roadsToYield = 4096
	roads := 0
	for k, points := range all.Whole {
		g.drawWhole(points, squares[k])
		if roads++; roads%roadsToYield == 0 {
			if err := yield(roadsToYield * drawWork); err != nil {
				return err
			}
		}
	}
	for i := range all.Parts {
		all.Parts[i].eachPiece(func(l *line) { g.drawLine(l, limits, squares) })
		if roads++; roads%roadsToYield == 0 {
			if err := yield(roadsToYield * drawWork); err != nil {
				return err
			}
		}
	}
	return yield(time.Duration(roads%roadsToYield) * drawWork)
}

// drawWhole marks the squares that a road leads through. Most of its pieces lie in one square or in two neighbours.
func (g *grid) drawWhole(points []route.FixedPoint, p *plane) {
	from := g.scale.place(points[0])
	g.mark(p, from.column(), from.row())
	for _, point := range points[1:] {
		to := g.scale.place(point)
		switch abs(to.column()-from.column()) + abs(to.row()-from.row()) {
		case 0:
		case 1:
			g.mark(p, to.column(), to.row())
		default:
			g.drawSteps(p, from, to)
		}
		from = to
	}
}

// project returns a point in squares from the origin.
func (g *grid) project(p geo.Point) (x, y float64) {
	return (g.unwrap(p.Lon) - g.originLon) * g.perLon, (p.Lat - g.originLat) * g.perLat
}

// place is a position in the grid, in 1 << placeBits parts of a square from the origin, so that arithmetic on it is exact.
type place struct{ x, y int }

const placeBits = 16

func (p place) column() int { return p.x >> placeBits }
func (p place) row() int    { return p.y >> placeBits }

// newPlace is the place of a point that is given in squares from the origin.
func newPlace(x, y float64) place {
	return place{int(math.Floor(x * (1 << placeBits))), int(math.Floor(y * (1 << placeBits)))}
}

// scale turns fixed points into places.
type scale struct {
	lon, lat       int // position of the origin
	perLon, perLat int // 1 << scaleBits parts of the unit of places to a unit of fixed points
}

// scaleBits leave room for a product with any difference of two positions, and for a precision of 1e-8.
const scaleBits = 24

func newScale(g *grid) scale {
	const parts = (1 << (placeBits + scaleBits)) / float64(route.FixedUnit)
	return scale{
		lon: int(math.Round(g.originLon * route.FixedUnit)), lat: int(math.Round(g.originLat * route.FixedUnit)),
		perLon: int(math.Round(g.perLon * parts)), perLat: int(math.Round(g.perLat * parts)),
	}
}

func (s *scale) place(p route.FixedPoint) place {
	return place{(int(p.Lon) - s.lon) * s.perLon >> scaleBits, (int(p.Lat) - s.lat) * s.perLat >> scaleBits}
}

// drawLine marks the squares that a line leads through: each part of it in the plane of the first limit that it is within.
func (g *grid) drawLine(l *line, limits []float64, squares []*plane) {
	x0, y0 := g.project(l.From)
	end := l.at(1)
	x1, y1 := x0+(end.Lon-l.From.Lon)*g.perLon, (end.Lat-g.originLat)*g.perLat
	low, high := math.Inf(1), math.Inf(-1) // what is drawn already lies between these shares
	for k := range squares {
		from, to, ok := 0.0, 1.0, true
		if k < len(limits) {
			from, to, ok = l.within(limits[k])
		}
		switch {
		case !ok:
			continue
		case low > high:
			g.drawPart(squares[k], x0+from*(x1-x0), y0+from*(y1-y0), x0+to*(x1-x0), y0+to*(y1-y0))
		default:
			if from < low {
				g.drawPart(squares[k], x0+from*(x1-x0), y0+from*(y1-y0), x0+low*(x1-x0), y0+low*(y1-y0))
			}
			if to > high {
				g.drawPart(squares[k], x0+high*(x1-x0), y0+high*(y1-y0), x0+to*(x1-x0), y0+to*(y1-y0))
			}
		}
		if low, high = from, to; low == 0 && high == 1 {
			return
		}
	}
}

// drawPart marks the squares between two points, given in squares from the origin.
func (g *grid) drawPart(p *plane, x0, y0, x1, y1 float64) {
	from, to := newPlace(x0, y0), newPlace(x1, y1)
	g.mark(p, from.column(), from.row())
	g.drawSteps(p, from, to)
}

// drawSteps marks the squares from one place to another, though perhaps not the first. A straight line comes to the next column
// after nextX, and to the next row after nextY, in parts of the line that are multiplied by both differences of its ends.
func (g *grid) drawSteps(p *plane, from, to place) {
	if !g.holds(from) || !g.holds(to) {
		var ok bool
		if from, to, ok = g.clip(from, to); !ok {
			return
		}
		g.mark(p, from.column(), from.row())
	}
	x, y := from.column(), from.row()
	steps := abs(to.column()-x) + abs(to.row()-y)
	width, height := abs(to.x-from.x), abs(to.y-from.y)
	stepX, nextX := firstStep(from.x, to.x)
	stepY, nextY := firstStep(from.y, to.y)
	nextX, nextY = nextX*height, nextY*width
	for range steps {
		if nextX < nextY {
			x, nextX = x+stepX, nextX+height<<placeBits
		} else {
			y, nextY = y+stepY, nextY+width<<placeBits
		}
		g.mark(p, x, y)
	}
	g.mark(p, to.column(), to.row())
}

// firstStep returns in which direction a coordinate goes, and how far it is to the next square.
func firstStep(from, to int) (step, distance int) {
	begin := from >> placeBits << placeBits
	if to < from {
		return -1, from - begin
	}
	return 1, begin + 1<<placeBits - from
}

func abs(i int) int { return max(i, -i) }

// mark marks a square unless it lies at the border of the grid or outside.
func (g *grid) mark(p *plane, x, y int) {
	if x >= 2 && y >= 2 && x < g.columns-3 && y < g.rows-3 {
		p.set(y*g.perLine + x)
	}
}

// holds reports whether a place lies in the grid.
func (g *grid) holds(p place) bool {
	const one = 1 << placeBits
	return p.x >= one && p.y >= one && p.x <= (g.columns-2)*one && p.y <= (g.rows-2)*one
}

// clip cuts a line down to the grid.
func (g *grid) clip(a, b place) (from, to place, ok bool) {
	const one = 1 << placeBits
	x0, y0, x1, y1 := float64(a.x)/one, float64(a.y)/one, float64(b.x)/one, float64(b.y)/one
	first, last := 0.0, 1.0
	for _, side := range [4][2]float64{
		{x0 - x1, x0 - 1}, {x1 - x0, float64(g.columns) - 2 - x0}, {y0 - y1, y0 - 1}, {y1 - y0, float64(g.rows) - 2 - y0},
	} {
		switch toward, room := side[0], side[1]; {
		case toward == 0 && room < 0:
			return from, to, false
		case toward < 0:
			first = max(first, room/toward)
		case toward > 0:
			last = min(last, room/toward)
		}
	}
	if !(first <= last) {
		return from, to, false
	}
	return newPlace(x0+first*(x1-x0), y0+first*(y1-y0)), newPlace(x0+last*(x1-x0), y0+last*(y1-y0)), true
}
