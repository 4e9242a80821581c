package isochrone

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"lieudit/queries/route"
	"lieudit/schemas/geo"
)

// metres is a point n metres east and north of a place in France.
func metres(x, y float64) geo.Point {
	return geo.Point{Lon: 2.4 + x/(geo.MetresPerDegree*math.Cos(48.9*math.Pi/180)), Lat: 48.9 + y/geo.MetresPerDegree}
}

// city is a net of streets around the origin, some missing: each costs its way on the net from the middle, and streets far out
// are left away.
func city(seed uint64, streets int, block, missing, last float64) []line {
	r := rand.New(rand.NewPCG(seed, 2))
	var lines []line
	cost := func(x, y int) float64 { return (math.Abs(float64(x)) + math.Abs(float64(y))) * block / 10 }
	jitter := make(map[[2]int]geo.Point)
	at := func(x, y int) geo.Point {
		p, ok := jitter[[2]int{x, y}]
		if !ok {
			p = metres((float64(x)+0.5*r.Float64())*block, (float64(y)+0.5*r.Float64())*block)
			jitter[[2]int{x, y}] = p
		}
		return p
	}
	for x := -streets; x <= streets; x++ {
		for y := -streets; y <= streets; y++ {
			for _, d := range [2][2]int{{1, 0}, {0, 1}} {
				if c := cost(x, y); c <= last*1.2 && r.Float64() >= missing {
					lines = append(lines, line{at(x, y), at(x+d[0], y+d[1]), c, cost(x+d[0], y+d[1])})
				}
			}
		}
	}
	return lines
}

// scattered are lines anywhere, at any cost.
func scattered(seed uint64, n int, size float64) []line {
	r := rand.New(rand.NewPCG(seed, 3))
	lines := make([]line, n)
	for i := range lines {
		x, y := r.Float64()*size, r.Float64()*size
		lines[i] = line{metres(x, y), metres(x+r.NormFloat64()*size/30, y+r.NormFloat64()*size/30), r.Float64() * 900, r.Float64() * 900}
	}
	return lines
}

type testCase struct {
	name   string
	lines  []line
	limits []float64
}

func testCases() []testCase {
	cases := []testCase{
		{"one line", []line{{metres(0, 0), metres(1_000, 300), 0, 100}}, []float64{50}},
		{"a point", []line{{metres(0, 0), metres(0, 0), 0, 0}}, []float64{0, 10}},
		{"a roundabout", roundabout(), []float64{10, 20, 30}},
		{"antimeridian", []line{{geo.Point{Lon: 179.99, Lat: -17}, geo.Point{Lon: -179.99, Lat: -17.01}, 0, 100}}, []float64{60, 200}},
		{"far north", []line{{geo.Point{Lon: 5, Lat: 89.9}, geo.Point{Lon: 9, Lat: 89.95}, 0, 100}}, []float64{60, 200}},
		{"city", city(1, 30, 120, 0.2, 300), []float64{100, 200, 300}},
		{"sparse city", city(2, 60, 300, 0.45, 1_500), []float64{300, 600, 900, 1_500}},
		{"wide", city(3, 40, 1_500, 0.3, 6_000), []float64{2_000, 6_000}},
		{"four like limits", scattered(9, 300, 5_000), []float64{500, 500, 501, 502}},
	}
	for seed := range uint64(8) {
		for _, n := range []int{3, 40, 400, 2_000} {
			cases = append(cases, testCase{fmt.Sprint("scattered ", seed, " ", n), scattered(seed, n, 8_000), []float64{150, 300, 450, 600}})
		}
	}
	return cases
}

// roundabout is a ring road.
func roundabout() []line {
	var lines []line
	at := func(i int) geo.Point {
		sin, cos := math.Sincos(float64(i) * math.Pi / 20)
		return metres(500*cos, 500*sin)
	}
	for i := range 40 {
		lines = append(lines, line{at(i), at(i + 1), math.Abs(float64(i - 20)), math.Abs(float64(i - 19))})
	}
	return lines
}

func TestAreasAreValid(t *testing.T) {
	t.Parallel()
	for _, c := range testCases() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			areas := areasOf(t, c.lines, c.limits)
			if len(areas) != len(c.limits) {
				t.Fatalf("%d areas for %d limits", len(areas), len(c.limits))
			}
			checkRings(t, areas)
			checkCrossings(t, areas)
			checkHoles(t, areas)
			checkNesting(t, areas)
		})
	}
}

// checkRings checks that rings are closed, long enough and go the right way round.
func checkRings(t *testing.T, areas []route.Area) {
	t.Helper()
	for k, area := range areas {
		for _, polygon := range area {
			for i, r := range polygon {
				if len(r) < 4 || r[0] != r[len(r)-1] {
					t.Errorf("limit %d: a ring of %d points from %v to %v", k, len(r), r[0], r[len(r)-1])
				}
				if a := ringArea(r); (a > 0) != (i == 0) {
					t.Errorf("limit %d: ring %d of a polygon has the area %g", k, i, a)
				}
			}
		}
	}
}

// ringArea is the area of a ring in square degrees, positive when it goes counter-clockwise.
func ringArea(r []geo.Point) float64 {
	sum := 0.0
	for i := 1; i < len(r); i++ {
		sum += (r[i-1].Lon-r[0].Lon)*(r[i].Lat-r[0].Lat) - (r[i].Lon-r[0].Lon)*(r[i-1].Lat-r[0].Lat)
	}
	return sum / 2
}

// segment is a piece of a ring; consecutive ones share an end.
type segment struct {
	a, b      geo.Point
	ring, num int
	len       int
}

// checkCrossings checks that no two pieces of any rings, of all limits, meet but at the end that neighbours share.
func checkCrossings(t *testing.T, areas []route.Area) {
	t.Helper()
	buckets, ring := map[[2]int][]segment{}, 0
	const size = 0.004
	for _, area := range areas {
		for _, polygon := range area {
			for _, r := range polygon {
				for i := 1; i < len(r); i++ {
					s := segment{r[i-1], r[i], ring, i - 1, len(r) - 1}
					for x := math.Floor(min(s.a.Lon, s.b.Lon) / size); x <= math.Floor(max(s.a.Lon, s.b.Lon)/size); x++ {
						for y := math.Floor(min(s.a.Lat, s.b.Lat) / size); y <= math.Floor(max(s.a.Lat, s.b.Lat)/size); y++ {
							buckets[[2]int{int(x), int(y)}] = append(buckets[[2]int{int(x), int(y)}], s)
						}
					}
				}
				ring++
			}
		}
	}
	for _, segments := range buckets {
		for i, s := range segments {
			for _, u := range segments[:i] {
				if s.meets(u) {
					t.Fatalf("pieces of ring %d and %d meet: %v–%v and %v–%v", s.ring, u.ring, s.a, s.b, u.a, u.b)
				}
			}
		}
	}
}

// meets returns whether two pieces have a point in common that they should not.
func (s segment) meets(u segment) bool {
	turn := func(a, b, c geo.Point) float64 {
		return (b.Lon-a.Lon)*(c.Lat-a.Lat) - (b.Lat-a.Lat)*(c.Lon-a.Lon)
	}
	if s.ring == u.ring {
		if (s.num+1)%s.len == u.num || (u.num+1)%u.len == s.num { // neighbours: the second must not go back on the first
			a, b, c := s.a, s.b, u.b
			if (s.num+1)%s.len != u.num {
				a, b, c = u.a, u.b, s.b
			}
			return turn(a, b, c) == 0 && (b.Lon-a.Lon)*(c.Lon-b.Lon)+(b.Lat-a.Lat)*(c.Lat-b.Lat) < 0
		}
	}
	return turn(s.a, s.b, u.a)*turn(s.a, s.b, u.b) <= 0 && turn(u.a, u.b, s.a)*turn(u.a, u.b, s.b) <= 0 &&
		min(s.a.Lon, s.b.Lon) <= max(u.a.Lon, u.b.Lon) && min(u.a.Lon, u.b.Lon) <= max(s.a.Lon, s.b.Lon) &&
		min(s.a.Lat, s.b.Lat) <= max(u.a.Lat, u.b.Lat) && min(u.a.Lat, u.b.Lat) <= max(s.a.Lat, s.b.Lat)
}

// checkHoles checks that a hole lies in its polygon's border, and in none of its other holes.
func checkHoles(t *testing.T, areas []route.Area) {
	t.Helper()
	for k, area := range areas {
		for _, polygon := range area {
			for i, hole := range polygon[1:] {
				if !inRing(polygon[0], hole[0]) {
					t.Errorf("limit %d: a hole lies outside of its polygon", k)
				}
				for j, other := range polygon[1:] {
					if i != j && inRing(other, hole[0]) {
						t.Errorf("limit %d: a hole lies in another", k)
					}
				}
			}
		}
	}
}

// checkNesting checks that each corner of an area lies in the next wider one. As no borders meet, so does the area.
func checkNesting(t *testing.T, areas []route.Area) {
	t.Helper()
	for k := 1; k < len(areas); k++ {
		for _, polygon := range areas[k-1] {
			for _, r := range polygon {
				if !inArea(areas[k], r[0]) {
					t.Errorf("limit %d: %v is not in the area of limit %d", k-1, r[0], k)
				}
			}
		}
	}
}

// inRing returns whether a point lies within a ring.
func inRing(r []geo.Point, p geo.Point) bool {
	in := false
	for i := 1; i < len(r); i++ {
		a, b := r[i-1], r[i]
		if (a.Lat > p.Lat) != (b.Lat > p.Lat) && p.Lon < a.Lon+(p.Lat-a.Lat)/(b.Lat-a.Lat)*(b.Lon-a.Lon) {
			in = !in
		}
	}
	return in
}

func inArea(area route.Area, p geo.Point) bool {
	in := false
	for _, polygon := range area {
		for _, r := range polygon {
			in = in != inRing(r, p)
		}
	}
	return in
}

func TestPointsReachedLieInsideAndThoseFarBeyondOutside(t *testing.T) {
	t.Parallel()
	for _, c := range testCases() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			g, ok := newGrid(NewRoads(roadsOf(c.lines), c.limits), c.limits)
			if !ok {
				t.Fatal("no grid")
			}
			areas := areasOf(t, c.lines, c.limits)
			r := rand.New(rand.NewPCG(4, 4))
			for range 400 {
				l, share := c.lines[r.IntN(len(c.lines))], r.Float64()
				checkPoint(t, c, areas, g.side, l.at(share), l.FromCost+share*(l.ToCost-l.FromCost))
			}
		})
	}
}

// checkPoint checks that a point on a road lies inside where the road is reached there, and outside where that is more than two
// squares from all that is reached.
func checkPoint(t *testing.T, c testCase, areas []route.Area, side float64, p geo.Point, cost float64) {
	t.Helper()
	for k, limit := range c.limits {
		in := inArea(areas[k], p)
		if cost <= limit-1e-9 && !in {
			t.Errorf("limit %g: %v is reached for %g and lies outside", limit, p, cost)
		}
		if cost > limit && in && distanceTo(c.lines, limit, p) > 2.3*side {
			t.Errorf("limit %g: %v costs %g, lies inside and is %.0f m from what is reached; a square is %.0f m", limit, p, cost,
				distanceTo(c.lines, limit, p), side)
		}
	}
}

// distanceTo is how many metres a point is from the nearest part of lines that is within a limit.
func distanceTo(lines []line, limit float64, p geo.Point) float64 {
	least := math.Inf(1)
	scale := math.Cos(p.Lat * math.Pi / 180)
	for _, l := range lines {
		from, to, ok := l.within(limit)
		if !ok {
			continue
		}
		a, b := l.at(from), l.at(to)
		ax, ay, bx, by := (a.Lon-p.Lon)*scale, a.Lat-p.Lat, (b.Lon-p.Lon)*scale, b.Lat-p.Lat
		share := 0.0
		if d := (bx-ax)*(bx-ax) + (by-ay)*(by-ay); d > 0 {
			share = min(1, max(0, -(ax*(bx-ax)+ay*(by-ay))/d))
		}
		least = min(least, math.Hypot(ax+share*(bx-ax), ay+share*(by-ay))*geo.MetresPerDegree)
	}
	return least
}

func TestTheInsideOfARingRoadIsAHole(t *testing.T) {
	t.Parallel()
	areas := areasOf(t, roundabout(), []float64{30})
	if len(areas[0]) != 1 || len(areas[0][0]) != 2 {
		t.Fatalf("%d polygons, want one with one hole", len(areas[0]))
	}
	if inArea(areas[0], metres(0, 0)) {
		t.Error("the middle of the ring road is inside")
	}
}

func TestAFieldIsAHoleOnlyWhereAnUnreachedRoadLeadsIn(t *testing.T) {
	t.Parallel()
	field := []line{
		{metres(0, 0), metres(400, 0), 0, 10}, {metres(400, 0), metres(400, 400), 10, 20},
		{metres(400, 400), metres(0, 400), 20, 10}, {metres(0, 400), metres(0, 0), 10, 0},
	}
	for name, c := range map[string]struct {
		lines []line
		rings int
	}{
		"no road":          {field, 1},
		"a slow road":      {append(field[:4:4], line{metres(200, 0), metres(200, 200), 5, 1_000}), 2},
		"a road reached":   {append(field[:4:4], line{metres(200, 0), metres(200, 200), 5, 15}), 1},
		"no way in at all": {append(field[:4:4], line{metres(150, 200), metres(250, 200), 1_000, 1_010}), 2},
	} {
		areas := areasOf(t, c.lines, []float64{25})
		if len(areas[0]) != 1 || len(areas[0][0]) != c.rings {
			t.Errorf("%s: %d polygons, the first with %d rings, want one with %d", name, len(areas[0]), len(areas[0][0]), c.rings)
		}
	}
}

func TestABlockOfATownIsNoHole(t *testing.T) {
	t.Parallel()
	areas := areasOf(t, city(1, 10, 110, 0, 1_000), []float64{1_000})
	if len(areas[0]) != 1 || len(areas[0][0]) != 1 {
		t.Errorf("%d polygons, the first with %d rings; want one without holes", len(areas[0]), len(areas[0][0]))
	}
}

func TestNothingReachedMakesEmptyAreas(t *testing.T) {
	t.Parallel()
	road := []line{{metres(0, 0), metres(100, 0), 50, 60}}
	for _, c := range []struct {
		lines  []line
		limits []float64
		want   []bool // whether the area is empty
	}{
		{nil, []float64{1, 2}, []bool{true, true}},
		{road, []float64{10, 40}, []bool{true, true}},
		{road, []float64{10, 55}, []bool{true, false}},
		{road, nil, []bool{}},
	} {
		got := []bool{}
		for _, a := range areasOf(t, c.lines, c.limits) {
			got = append(got, len(a) == 0)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("limits %v: %s", c.limits, diff)
		}
	}
}

// areasOf are the areas of lines.
func areasOf(t testing.TB, lines []line, limits []float64) []route.Area {
	t.Helper()
	areas, err := new(Drawer).Areas(NewRoads(roadsOf(lines), limits), limits, goOn)
	if err != nil {
		t.Fatal(err)
	}
	return areas
}

// roadsOf are roads of one piece each.
func roadsOf(lines []line) []Road {
	roads := make([]Road, len(lines))
	for i, l := range lines {
		roads[i] = Road{[]route.FixedPoint{route.Fix(l.From), route.Fix(l.To)}, l.FromCost, l.ToCost}
	}
	return roads
}

func TestARoadIsDrawnAsItsPiecesAre(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 5))
	limits := []float64{100, 200, 300}
	var d Drawer
	for range 50 {
		var roads, pieces []Road
		for range 30 {
			x, y, from := r.Float64()*3_000, r.Float64()*3_000, r.Float64()*320
			road := Road{FromCost: from, ToCost: from + r.Float64()*60 - 30}
			for range 2 + r.IntN(5) {
				road.Points = append(road.Points, route.Fix(metres(x, y)))
				x, y = x+r.NormFloat64()*40, y+r.NormFloat64()*40
			}
			roads = append(roads, road)
			road.eachPiece(func(l *line) {
				pieces = append(pieces, Road{[]route.FixedPoint{route.Fix(l.From), route.Fix(l.To)}, l.FromCost, l.ToCost})
			})
			if last := pieces[len(pieces)-1]; last.ToCost != road.ToCost {
				t.Errorf("a road ends at %v, its last piece at %v", road.ToCost, last.ToCost)
			}
		}
		whole, err1 := d.Areas(NewRoads(roads, limits), limits, goOn)
		apart, err2 := d.Areas(NewRoads(pieces, limits), limits, goOn)
		if diff := cmp.Diff(apart, whole); diff != "" || err1 != nil || err2 != nil {
			t.Fatalf("%v, %v: %s", err1, err2, diff)
		}
	}
}

func BenchmarkAreas(b *testing.B) {
	for _, c := range []struct {
		name    string
		streets int
		block   float64
		last    float64
	}{{"10 minutes", 60, 150, 900}, {"30 minutes", 180, 200, 3_600}, {"60 minutes", 255, 300, 15_300 / 2}} {
		all, limits := roadsOf(city(1, c.streets, c.block, 0.2, c.last)), []float64{c.last / 2, c.last}
		roads := NewRoads(all, limits)
		b.Run(fmt.Sprint(c.name, " ", len(all), " roads"), func(b *testing.B) {
			var d Drawer
			for b.Loop() {
				if _, err := d.Areas(roads, limits, goOn); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// goOn is the Yield of a caller that nobody waits for.
func goOn(time.Duration) error { return nil }

// checkYields does work twice: whole, in which it must yield that often or more and tell of that much work, and with an error of the
// last of these times, which must end it.
func checkYields(t *testing.T, least int, leastWork time.Duration, work func(Yield) error) {
	t.Helper()
	times, sum := 0, time.Duration(0)
	if err := work(func(done time.Duration) error { times++; sum += done; return nil }); err != nil || times < least || sum < leastWork {
		t.Fatalf("%v after %v in %d pieces, want an answer after %v in %d", err, sum, times, leastWork, least)
	}
	t.Logf("%v in %d pieces", sum, times)
	ended, left := errors.New("the client left"), times
	err := work(func(time.Duration) error {
		if left--; left == 0 {
			return ended
		}
		return nil
	})
	if !errors.Is(err, ended) || left != 0 {
		t.Errorf("got %v, want that the work ends with the error", err)
	}
}

func TestLargeAreasGiveWay(t *testing.T) {
	t.Parallel()
	limits := []float64{900, 1_800, 2_700, 3_600}
	roads := NewRoads(roadsOf(city(1, 180, 200, 0.2, 3_600)), limits)
	checkYields(t, 20, 20*time.Millisecond, func(yield Yield) error {
		_, err := new(Drawer).Areas(roads, limits, yield)
		return err
	})
}
