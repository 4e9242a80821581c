package network

import (
	"bytes"
	"encoding/binary"
	"iter"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"lieudit/eventstore/leveltest"
	"lieudit/queries/route"
	"lieudit/queries/route/graph"
	"lieudit/queries/route/osmpbf/osmtest"
	"lieudit/queries/route/profile"
	"lieudit/queries/route/search"
	"lieudit/schemas/geo"
)

// buildFile builds the network of a map and returns its path.
func buildFile(t testing.TB, source string, o Options) (string, Summary) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "network")
	s, err := Build(t.Context(), path, source, o)
	if err != nil {
		t.Fatal(err)
	}
	return path, s
}

// buildOpen builds the network of a map and opens it until the test ends.
func buildOpen(t testing.TB, source string, o Options) (*Network, Summary) {
	t.Helper()
	path, s := buildFile(t, source, o)
	n, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Close() })
	return n, s
}

func modes() []route.Mode { return []route.Mode{route.Car, route.Foot, route.Bike} }

func TestTheSameMapMakesTheSameBytes(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"bondy", "monaco"} {
		var files [2][]byte
		for i := range files {
			path, _ := buildFile(t, osmtest.Path(t, name), Options{})
			files[i], _ = os.ReadFile(path)
		}
		if len(files[0]) == 0 || !bytes.Equal(files[0], files[1]) {
			t.Errorf("%s: the bytes differ", name)
		}
	}
}

func TestDelawareHasTheRoadsThatAnotherReaderCounted(t *testing.T) {
	t.Parallel()
	leveltest.Need(t, leveltest.Usual, "") // it takes seconds
	n, s := buildOpen(t, osmtest.Path(t, "delaware"), Options{})
	car := n.Meta.Modes[profile.Car]
	directed := slices.Compact(slices.Sorted(slices.Values(n.Layer(route.Car).Graph.Segment))) // without copies
	if got, want := float64(len(directed)), 172_049.0; math.Abs(got/want-1) > 0.05 {
		t.Errorf("%v edges, want about %v", got, want)
	}
	if got, want := float64(car.Junctions), 71_853.0; math.Abs(got/want-1) > 0.05 {
		t.Errorf("%v junctions, want about %v", got, want)
	}
	if s.Restrictions < 450 || s.Restrictions > 521 {
		t.Errorf("%d restrictions, want most of 521; left out: %v", s.Restrictions, s.LeftOut)
	}
	if got, want := n.Meta.Date.Format("2006-01-02"), "2016-08-10"; got != want {
		t.Errorf("date %s, want %s", got, want)
	}
	main := 0
	g := n.Layer(route.Car).Graph
	for edge := range uint32(g.Edges()) {
		if g.IsMain(edge) {
			main++
		}
	}
	if share := float64(main) / float64(car.Edges); share < 0.9 {
		t.Errorf("%.2f of the edges are connected", share)
	}
	if err := n.Verify(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestTheColumnsOfAGraphFitTogether(t *testing.T) {
	t.Parallel()
	n, _ := buildOpen(t, osmtest.Path(t, "monaco"), Options{})
	for _, m := range modes() {
		l := n.Layer(m)
		g := l.Graph
		at := make([]*geo.Point, g.Junctions())
		for edge := range uint32(g.Edges()) {
			segment, backward := g.Segment[edge]/2, g.Segment[edge]%2 == 1
			points := l.AppendGeometry(nil, segment, backward)
			for junction, p := range map[uint32]geo.Point{g.Tail[edge]: points[0], g.Head[edge]: points[len(points)-1]} {
				if at[junction] == nil {
					at[junction] = &p
				}
				if g.Tail[edge] != g.Head[edge] && *at[junction] != p {
					t.Fatalf("%s: edge %d is at %v where others of its junction are at %v", m, edge, p, *at[junction])
				}
			}
			checkEdge(t, l, edge, points)
		}
	}
}

func TestFixedPointsAreThoseOfTheGeometry(t *testing.T) {
	t.Parallel()
	n, _ := buildOpen(t, osmtest.Path(t, "monaco"), Options{})
	for _, m := range modes() {
		l := n.Layer(m)
		for segment := range uint32(l.Segments()) {
			var got []geo.Point
			for _, p := range l.AppendFixed(nil, segment) {
				got = append(got, p.Point())
			}
			want := l.AppendGeometry(nil, segment, false)
			if got = slices.Compact(got); len(got) == 1 { // a segment without length
				got = append(got, got[0])
			}
			if !slices.Equal(got, want) {
				t.Fatalf("%s: segment %d is %v, want %v", m, segment, got, want)
			}
		}
	}
}

func TestDifferencesOfAnySizeAreDecoded(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(41, 3))
	for range 200 {
		lon, lat := int32(r.Uint32()), int32(r.Uint32())
		data := binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, uint32(lon)), uint32(lat))
		want := []route.FixedPoint{{Lon: lon, Lat: lat}}
		for range r.IntN(20) {
			next := route.FixedPoint{Lon: int32(r.Uint32()) >> r.IntN(32), Lat: int32(r.Uint32()) >> r.IntN(32)}
			if r.IntN(2) == 0 { // nearly all of a real map have two bytes
				next = route.FixedPoint{Lon: 64 + r.Int32N(8192-64), Lat: -64 - r.Int32N(8192-64)}
			}
			data = binary.AppendVarint(binary.AppendVarint(data, int64(next.Lon)), int64(next.Lat))
			next.Lon, next.Lat = next.Lon+want[len(want)-1].Lon, next.Lat+want[len(want)-1].Lat
			want = append(want, next)
		}
		s := shape{geometry: data, geometryFirst: []uint32{0, uint32(len(data))}}
		var got []route.FixedPoint
		d := s.firstPoint(0)
		for isPoint := true; isPoint; isPoint = d.next() {
			got = append(got, route.FixedPoint{Lon: d.lon, Lat: d.lat})
		}
		if !slices.Equal(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
		if got := s.appendPiece(nil, 0); !slices.Equal(got, want) {
			t.Fatalf("got %v at once, want %v", got, want)
		}
	}
}

// checkEdge compares the columns of an edge with its geometry and with each other.
func checkEdge(t *testing.T, l *Layer, edge uint32, points []geo.Point) {
	t.Helper()
	g := l.Graph
	length := 0.0
	for i := range points[1:] {
		length += geo.Distance(points[i], points[i+1])
	}
	if math.Abs(length*graph.DistanceUnit-float64(g.Distance[edge])) > 1 || g.Duration[edge] < 1 {
		t.Fatalf("edge %d: %d of distance and %d of duration for %.2f m", edge, g.Distance[edge], g.Duration[edge], length)
	}
	forward, backward := l.SegmentEdges(g.Segment[edge] / 2)
	if own := []uint32{forward, backward}[g.Segment[edge]%2]; !slices.Contains(g.CopiesOf(own), edge) {
		t.Fatalf("edge %d is not that of its segment, nor a copy", edge)
	}
	first, end := g.OutEdges(g.Tail[edge])
	if edge < first || edge >= end || !slices.Contains(g.InEdges(g.Head[edge]), edge) {
		t.Fatalf("edge %d is not listed at its junctions", edge)
	}
	if from, to := g.OutEdges(g.Head[edge]); from == to {
		return
	} else if g.InEdges(g.Head[edge])[g.InRank[edge]] != edge {
		t.Fatalf("edge %d has another's rank", edge)
	}
}

func TestAnEdgeIsConnectedAsItsTurnsLead(t *testing.T) {
	t.Parallel()
	n, _ := buildOpen(t, osmtest.Path(t, "bondy"), Options{})
	for _, m := range modes() {
		g := n.Layer(m).Graph
		start := uint32(slices.IndexFunc(slices.Collect(edgesOf(g)), func(e uint32) bool { return g.IsMain(e) && len(g.CopiesOf(e)) == 1 }))
		after := reach(g, start, func(from, to uint32) (uint32, uint32) { return from, to })
		before := reach(g, start, func(from, to uint32) (uint32, uint32) { return to, from })
		kinds := map[graph.Connection]int{}
		for edge, got := range g.Connection {
			want := graph.Connection(0)
			if before[edge] {
				want |= graph.ReachesMain
			}
			if slices.ContainsFunc(g.CopiesOf(uint32(edge)), func(e uint32) bool { return after[e] }) {
				want |= graph.IsReachedFromMain
			}
			if got != want {
				t.Fatalf("%s: edge %d has %d, want %d", m, edge, got, want)
			}
			kinds[got]++
		}
		if main := kinds[graph.ReachesMain|graph.IsReachedFromMain]; 2*main < g.Edges() || m == route.Car && len(kinds) < 4 {
			t.Errorf("%s: %v of %d edges", m, kinds, g.Edges())
		}
	}
}

// edgesOf yields all edges.
func edgesOf(g *graph.Graph) iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		for e := range uint32(g.Edges()) {
			if !yield(e) {
				return
			}
		}
	}
}

// reach returns the edges that turns lead to from an edge. turn gives the direction in which turns are followed.
func reach(g *graph.Graph, start uint32, turn func(from, to uint32) (uint32, uint32)) []bool {
	next := make([][]uint32, g.Edges())
	for from := range uint32(g.Edges()) {
		first, end := g.OutEdges(g.Head[from])
		for to := first; to < end; to++ {
			if g.Turn(from, to) != graph.ForbiddenTurn {
				a, b := turn(from, to)
				next[a] = append(next[a], b)
			}
		}
	}
	reached := make([]bool, g.Edges())
	reached[start] = true
	for queue := []uint32{start}; len(queue) > 0; queue = queue[1:] {
		for _, to := range next[queue[0]] {
			if !reached[to] {
				reached[to] = true
				queue = append(queue, to)
			}
		}
	}
	return reached
}

func TestNearVisitsAllSegmentsInAscendingDistance(t *testing.T) {
	t.Parallel()
	leveltest.Need(t, leveltest.Usual, "") // it takes seconds
	n, _ := buildOpen(t, osmtest.Path(t, "monaco"), Options{})
	rng, box := rand.New(rand.NewPCG(1, 1)), n.Meta.Box
	for range 60 {
		p := geo.Point{Lon: box.West + rng.Float64()*(box.East-box.West), Lat: box.South + rng.Float64()*(box.North-box.South)}
		l := n.Layer(modes()[rng.IntN(3)])
		radius := 30 + 300*rng.Float64()
		want := map[uint32]float64{}
		for segment := range uint32(l.Segments()) {
			if d := distanceTo(p, l.AppendGeometry(nil, segment, false)); d <= radius {
				want[segment] = d
			}
		}
		last := 0.0
		l.Near(p, radius, func(h Hit) bool {
			d, ok := want[h.Segment]
			if !ok || math.Abs(d-h.Distance) > 0.01 || h.Distance < last || math.Abs(geo.Distance(p, h.Point)-d) > 0.01+d/1000 {
				t.Errorf("%+v after %v, want %v, %v", h, last, d, ok)
			}
			delete(want, h.Segment)
			last = h.Distance
			return true
		})
		if len(want) > 0 {
			t.Errorf("%d segments within %.0f m of %v are not visited: %v", len(want), radius, p, want)
		}
	}
}

// distanceTo is the distance of a position from a line, found by small steps along a plane.
func distanceTo(p geo.Point, line []geo.Point) float64 {
	scale := math.Cos(p.Lat * math.Pi / 180)
	least := math.Inf(1)
	for i := range line[1:] {
		ax, ay := (line[i].Lon-p.Lon)*scale, line[i].Lat-p.Lat
		bx, by := (line[i+1].Lon-p.Lon)*scale, line[i+1].Lat-p.Lat
		low, high := 0.0, 1.0
		at := func(t float64) float64 { return math.Hypot(ax+t*(bx-ax), ay+t*(by-ay)) }
		for range 100 {
			a, b := low+(high-low)/3, high-(high-low)/3
			if at(a) <= at(b) {
				high = b
			} else {
				low = a
			}
		}
		least = min(least, at(low)*geo.MetresPerDegree)
	}
	return least
}

func TestTheOverlayOfAFileIsExact(t *testing.T) {
	t.Parallel()
	n, _ := buildOpen(t, osmtest.Path(t, "monaco"), Options{})
	rng := rand.New(rand.NewPCG(2, 2))
	for range 150 {
		p := route.Profile{Mode: modes()[rng.IntN(3)], Optimization: []route.Optimization{route.Fastest, route.Shortest}[rng.IntN(2)], Avoid: route.Avoid(rng.IntN(8))}
		l := n.Layer(p.Mode)
		from := []search.Place{search.PlaceOn(l.Graph, rng.Uint32N(uint32(l.Graph.Edges())), rng.Float64())}
		to := []search.Place{search.PlaceOn(l.Graph, rng.Uint32N(uint32(l.Graph.Edges())), rng.Float64())}
		path, err := search.New(l.Graph, l.Topology, l).Route(t.Context(), p, from, to)
		want, ok := search.Dijkstra(l.Graph, p, from, to)
		if ok != (err == nil) || ok && path.Cost != want {
			t.Errorf("%+v from %v to %v: %v, %v, want %v, %v", p, from, to, path.Cost, err, want, ok)
		}
	}
}
