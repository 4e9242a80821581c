package isochrone

import (
	"math"
	"time"

	"lieudit/queries/route"
)

// draw returns a plane for each limit: the nodes inside its area. roads are the corners of all squares with a road, of any cost.
func (g *grid) draw(all []Road, limits []float64, yield Yield) (inside []*plane, roads *plane, err error) {
	squares := make([]*plane, len(limits)+1) // the last: roads beyond the limits
	for k := range squares {
		squares[k] = newPlane(g.perLine, g.rows)
	}
	const roadsToYield = 4096
	for i := range all {
		if i%roadsToYield == roadsToYield-1 {
			if err := yield(roadsToYield * drawWork); err != nil {
				return nil, nil, err
			}
		}
		g.drawRoad(&all[i], limits, squares)
	}
	for k := 1; k < len(squares); k++ {
		squares[k].include(squares[k-1])
	}
	for _, p := range squares {
		p.growToCorners()
	}
	inside, roads = squares[:len(limits)], squares[len(limits)]
	for _, p := range inside {
		p.closeGaps(max(1, int(gapSize/g.side/2)), roads)
		if err := yield(time.Duration(len(p.words)*64) * nodeWork); err != nil {
			return nil, nil, err
		}
	}
	return inside, roads, nil
}

// drawRoad marks the squares that a road leads through. Nearly all roads lie whole between two limits: of them the costs along the road
// do not matter.
func (g *grid) drawRoad(r *Road, limits []float64, squares []*plane) {
	k := 0
	for k < len(limits) && r.cheapest() > limits[k] {
		k++
	}
	if k < len(limits) && r.dearest() > limits[k] {
		r.eachPiece(func(l *line) { g.drawLine(l, limits, squares) })
		return
	}
	x0, y0 := g.project(r.Points[0])
	for i := 1; i < len(r.Points); i++ {
		x1, y1 := g.project(r.Points[i])
		if lon := r.Points[i].Lon - r.Points[i-1].Lon; lon != wrap(lon) || math.Abs(x1-x0) > 180*g.perLon {
			g.drawPart(squares[k], x0, y0, x0+wrap(lon)*g.perLon, y1)
		} else {
			g.drawPart(squares[k], x0, y0, x1, y1)
		}
		x0, y0 = x1, y1
	}
}

// project returns a point in squares from the origin.
func (g *grid) project(p route.Point) (x, y float64) {
	return (g.unwrap(p.Lon) - g.originLon) * g.perLon, (p.Lat - g.originLat) * g.perLat
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
	if int(x0) == int(x1) && int(y0) == int(y1) {
		g.mark(p, int(x0), int(y0))
		return
	}
	if !g.holds(x0, y0) || !g.holds(x1, y1) {
		var ok bool
		if x0, y0, x1, y1, ok = g.clip(x0, y0, x1, y1); !ok {
			return
		}
	}
	x, y := int(x0), int(y0)
	steps := abs(int(x1)-x) + abs(int(y1)-y)
	stepX, nextX, everyX := pace(x0, x1)
	stepY, nextY, everyY := pace(y0, y1)
	g.mark(p, x, y)
	for range steps {
		if nextX < nextY {
			x, nextX = x+stepX, nextX+everyX
		} else {
			y, nextY = y+stepY, nextY+everyY
		}
		g.mark(p, x, y)
	}
}

// pace returns in which direction a coordinate goes, after which share of the way it enters the next square, and after which
// share each further one.
func pace(from, to float64) (step int, next, every float64) {
	switch d := to - from; {
	case d > 0:
		return 1, (math.Floor(from) + 1 - from) / d, 1 / d
	case d < 0:
		return -1, (math.Floor(from) - from) / d, -1 / d
	}
	return 0, math.Inf(1), math.Inf(1)
}

func abs(i int) int { return max(i, -i) }

// mark marks a square unless it lies at the border of the grid or outside.
func (g *grid) mark(p *plane, x, y int) {
	if x >= 2 && y >= 2 && x < g.columns-3 && y < g.rows-3 {
		p.set(y*g.perLine + x)
	}
}

// holds returns whether a point, given in squares from the origin, lies in the grid.
func (g *grid) holds(x, y float64) bool {
	return x >= 1 && y >= 1 && x <= float64(g.columns-2) && y <= float64(g.rows-2)
}

// clip cuts a line down to the grid.
func (g *grid) clip(x0, y0, x1, y1 float64) (a, b, c, d float64, ok bool) {
	from, to := 0.0, 1.0
	for _, side := range [4][2]float64{
		{x0 - x1, x0 - 1}, {x1 - x0, float64(g.columns) - 2 - x0}, {y0 - y1, y0 - 1}, {y1 - y0, float64(g.rows) - 2 - y0},
	} {
		switch toward, room := side[0], side[1]; {
		case toward == 0 && room < 0:
			return 0, 0, 0, 0, false
		case toward < 0:
			from = max(from, room/toward)
		case toward > 0:
			to = min(to, room/toward)
		}
	}
	if !(from <= to) {
		return 0, 0, 0, 0, false
	}
	return x0 + from*(x1-x0), y0 + from*(y1-y0), x0 + to*(x1-x0), y0 + to*(y1-y0), true
}
