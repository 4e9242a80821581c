package synthetic

import (
	"cmp"
	"math"
	"slices"
)

// point is a position in metres in some plane.
type point struct{ x, y float64 }

func (p point) plus(q point) point            { return point{p.x + q.x, p.y + q.y} }
func (p point) minus(q point) point           { return point{p.x - q.x, p.y - q.y} }
func (p point) times(f float64) point         { return point{p.x * f, p.y * f} }
func (p point) dot(q point) float64           { return p.x*q.x + p.y*q.y }
func (p point) cross(q point) float64         { return p.x*q.y - p.y*q.x }
func (p point) distance(q point) float64      { return math.Hypot(p.x-q.x, p.y-q.y) }
func (p point) left() point                   { return point{-p.y, p.x} }
func (p point) towards(q point) point         { return q.minus(p).times(1 / max(p.distance(q), 1e-9)) }
func (p point) part(q point, t float64) point { return point{p.x + (q.x-p.x)*t, p.y + (q.y-p.y)*t} }

const metresPerDegree = 111_320 // metres of latitude

// plane is a flat piece of the earth around a position in degrees.
type plane struct{ lon, lat, width float64 }

func newPlane(lon, lat float64) plane {
	return plane{lon, lat, metresPerDegree * math.Cos(lat*math.Pi/180)}
}

// project returns metres east and north of the middle of the plane. Distances are right to a percent within some 100 km.
func (f plane) project(lon, lat float64) point {
	return point{(lon - f.lon) * f.width, (lat - f.lat) * metresPerDegree}
}

// degrees is the inverse of project.
func (f plane) degrees(p point) (lon, lat float64) {
	return f.lon + p.x/f.width, f.lat + p.y/metresPerDegree
}

// grid finds the nearest of many points. It is used by one goroutine at a time.
type grid struct {
	points        []point
	low           point
	cell          float64
	width, height int
	first, items  []int32 // the points of cell c are items[first[c]:first[c+1]]
	best          []found
	result        []int32
}

// newGrid makes as many cells as there are points.
func newGrid(points []point) *grid {
	g := &grid{points: points, low: points[0]}
	high := points[0]
	for _, p := range points {
		g.low = point{min(g.low.x, p.x), min(g.low.y, p.y)}
		high = point{max(high.x, p.x), max(high.y, p.y)}
	}
	w, h := high.x-g.low.x+1, high.y-g.low.y+1
	g.cell = max(math.Sqrt(w*h/float64(len(points))), max(w, h)/4096)
	g.width, g.height = int(w/g.cell)+1, int(h/g.cell)+1
	g.first = make([]int32, g.width*g.height+1)
	for _, p := range points {
		g.first[g.cellOf(p)+1]++
	}
	for c := range g.width * g.height {
		g.first[c+1] += g.first[c]
	}
	next := slices.Clone(g.first)
	g.items = make([]int32, len(points))
	for i, p := range points {
		c := g.cellOf(p)
		g.items[next[c]] = int32(i)
		next[c]++
	}
	return g
}

// cellOf is the cell that holds a point. Points on the far edges belong to the last cells.
func (g *grid) cellOf(p point) int {
	x, y := int((p.x-g.low.x)/g.cell), int((p.y-g.low.y)/g.cell)
	return min(y, g.height-1)*g.width + min(x, g.width-1)
}

// found is a point that nearest has found.
type found struct {
	square float64 // of its distance
	point  int32
}

// nearest returns the k points nearest to point i, the nearest first, without i itself. The slice is reused by the next call.
func (g *grid) nearest(i int32, k int) []int32 {
	home := g.cellOf(g.points[i])
	x, y := home%g.width, home/g.width
	best := g.best[:0]
	for ring := range g.width + g.height {
		// All points nearer than n cells are found by now.
		reach := float64(ring-1) * g.cell
		if len(best) == k && best[k-1].square <= reach*reach {
			break
		}
		for cy := max(y-ring, 0); cy <= min(y+ring, g.height-1); cy++ {
			step := 1
			if cy != y-ring && cy != y+ring {
				step = max(2*ring, 1)
			}
			for cx := x - ring; cx <= x+ring; cx += step {
				if cx >= 0 && cx < g.width {
					best = g.addCell(best, cy*g.width+cx, i, k)
				}
			}
		}
	}
	g.best, g.result = best, g.result[:0]
	for _, f := range best {
		g.result = append(g.result, f.point)
	}
	return g.result
}

// addCell adds the points of a cell to the k best, which stay sorted.
func (g *grid) addCell(best []found, cell int, i int32, k int) []found {
	at := g.points[i]
	for _, j := range g.items[g.first[cell]:g.first[cell+1]] {
		d := g.points[j].minus(at)
		f := found{d.dot(d), j}
		if j == i || len(best) == k && !f.isBefore(best[k-1]) {
			continue
		}
		if len(best) < k {
			best = append(best, f)
		}
		n := len(best) - 1
		for ; n > 0 && f.isBefore(best[n-1]); n-- {
			best[n] = best[n-1]
		}
		best[n] = f
	}
	return best
}

// isBefore orders by distance. Points as far as each other are in the order of their numbers, so that the order is always the same.
func (f found) isBefore(g found) bool {
	return f.square < g.square || f.square == g.square && f.point < g.point
}

// pair is two neighbours among points, a < b. Neighbours are relative when no third point is nearer to both than they are to each
// other; these join all points, as sparse as country roads. The others are Gabriel neighbours: no third point lies in the circle
// between them.
type pair struct {
	a, b       int32
	isRelative bool
}

// listNeighbours returns the neighbours among points, sorted.
func listNeighbours(points []point) (pairs []pair) {
	if len(points) < 2 {
		return nil
	}
	g := newGrid(points)
	for i := range int32(len(points)) {
		// Whatever lies between a point and one of its neighbours is nearer to it than that neighbour, so that it stands in near
		// before it: the test is exact. Neighbours beyond the twelfth are found from their own side, or by joinParts.
		near := g.nearest(i, 12)
		for n, j := range near {
			p, q := points[i], points[j]
			middle, between := p.part(q, 0.5), p.distance(q)
			isRelative, isGabriel := true, true
			for _, other := range near[:n] {
				isRelative = isRelative && points[other].distance(q) >= between
				isGabriel = isGabriel && points[other].distance(middle) >= between/2
			}
			if isGabriel {
				pairs = append(pairs, pair{min(i, j), max(i, j), isRelative})
			}
		}
	}
	slices.SortFunc(pairs, func(p, q pair) int { return cmp.Or(cmp.Compare(p.a, q.a), cmp.Compare(p.b, q.b)) })
	return slices.CompactFunc(pairs, func(p, q pair) bool { return p.a == q.a && p.b == q.b })
}

// bend returns points between two ends on a curve that leaves the straight line by at most about a share of its length.
func bend(from, to point, step, share, phase float64) (between []point) {
	length := from.distance(to)
	n := min(int(length/step), 1000)
	side := from.towards(to).left().times(min(share*length, 900))
	for i := 1; i <= n; i++ {
		t := float64(i) / float64(n+1)
		swing := math.Sin(math.Pi*t) * (0.6*math.Cos(phase) + 0.4*math.Sin(phase+t*length/700))
		between = append(between, from.part(to, t).plus(side.times(swing)))
	}
	return between
}
