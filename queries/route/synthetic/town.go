package synthetic

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"lieudit/queries/route/osmpbf"
)

// street numbers of edges. Numbers from 0 on are indexes of town.names.
const unnamed = -1

// edge is a piece of street between two junctions of a town.
type edge struct {
	a, b     int32
	class    class
	street   int32 // unnamed, or the street that it belongs to
	isLaid   bool  // along addresses: it stays straight and keeps its name
	isOneWay bool  // from a to b
}

// isOpen reports whether cars may use the edge.
func (e *edge) isOpen() bool { return e.class <= service }

// town is a place while its streets are invented. Junction 0 is the centre.
type town struct {
	*place
	rand      *rand.Rand
	junctions []point
	edges     []edge
	names     []string // of streets that are known before the others get theirs
	radius    float64  // of the built area
	gateAt    []int32  // the junction where each of the place's roads begins
	incident  [][]int32
}

// drawTown invents the town of a place. It depends on the seed and the place alone.
func (g *generator) drawTown(i int) *drawing {
	t := &town{place: &g.places[i], rand: g.randomOf(i)}
	t.scatter()
	t.connect()
	t.layStreets()
	t.joinParts()
	t.openMainStreets(g.plan, int32(i))
	t.closeCentre()
	t.setOneWays()
	return t.draw(g.plan)
}

// chance is true with a probability.
func (t *town) chance(share float64) bool { return t.rand.Float64() < share }

// The shape of towns, in metres.
const (
	spacing    = 62 // of junctions: about twice as much lies between two
	minSpacing = 18
)

// scatter invents the junctions: most in the town, more near the centre, the others in hamlets.
func (t *town) scatter() {
	hamlets := 0.12
	if t.Population < 2000 {
		hamlets = 0.45
	}
	width, height := (t.Bounds.East-t.Bounds.West)*t.width/2, (t.Bounds.North-t.Bounds.South)*metresPerDegree/2
	width, height = max(width, 800), max(height, 800)
	inTown := int(float64(t.place.junctions) * (1 - hamlets))
	t.radius = min(spacing*math.Sqrt(float64(inTown)), 0.6*min(width, height))
	taken := map[[2]int32]bool{}
	t.addJunction(point{}, taken)
	for range inTown {
		sin, cos := math.Sincos(t.rand.Float64() * 2 * math.Pi)
		r := t.radius * math.Pow(t.rand.Float64(), 0.7)
		t.addJunction(point{r * cos, r * sin}, taken)
	}
	for left := t.place.junctions - inTown; left > 0; {
		n := min(left, 2+t.rand.IntN(7))
		left -= n
		hamlet := point{(2*t.rand.Float64() - 1) * 0.8 * width, (2*t.rand.Float64() - 1) * 0.8 * height}
		for range n {
			t.addJunction(hamlet.plus(point{t.rand.NormFloat64() * 90, t.rand.NormFloat64() * 90}), taken)
		}
	}
}

// addJunction adds a junction unless another is near.
func (t *town) addJunction(p point, taken map[[2]int32]bool) {
	cell := [2]int32{int32(math.Floor(p.x / minSpacing)), int32(math.Floor(p.y / minSpacing))}
	if !taken[cell] {
		taken[cell] = true
		t.junctions = append(t.junctions, p)
	}
}

// connect joins neighbours by streets, and some others by paths. Streets to nowhere are service roads as often as not.
func (t *town) connect() {
	degree := make([]int, len(t.junctions))
	pairs := listNeighbours(t.junctions)
	for _, p := range pairs {
		if p.isRelative {
			degree[p.a]++
			degree[p.b]++
		}
	}
	for _, p := range pairs {
		length := t.junctions[p.a].distance(t.junctions[p.b])
		e := edge{a: p.a, b: p.b, class: residential, street: unnamed}
		chance := t.rand.Float64()
		switch {
		case !p.isRelative && (length > 300 || chance > 0.27):
			continue
		case !p.isRelative && chance > 0.12:
			e.class = [...]class{footway, footway, footway, path, cycleway, cycleway, steps}[t.rand.IntN(7)]
		case length > 250:
			e.class = unclassified
		case (degree[p.a] == 1 || degree[p.b] == 1) && chance < 0.4:
			e.class = service
		case chance < 0.03:
			e.class = livingStreet
		}
		t.edges = append(t.edges, e)
	}
}

// joinParts joins what cars cannot reach from the centre, by short lanes between the nearest junctions.
func (t *town) joinParts() {
	known := newParts(len(t.junctions))
	for _, e := range t.edges {
		if e.isOpen() {
			known.join(e.a, e.b)
		}
	}
	index := newGrid(t.junctions)
	for i := range int32(len(t.junctions)) {
		for k := 8; known.find(i) != known.find(0); k *= 4 {
			for _, j := range index.nearest(i, k) {
				if known.join(i, j) {
					t.edges = append(t.edges, edge{a: i, b: j, class: unclassified, street: unnamed})
					break
				}
			}
		}
	}
}

// index lists the edges of each junction, those for cars or all.
func (t *town) index(onlyOpen bool) {
	t.incident = make([][]int32, len(t.junctions))
	for i := range t.edges {
		if e := &t.edges[i]; e.isOpen() || !onlyOpen {
			t.incident[e.a] = append(t.incident[e.a], int32(i))
			t.incident[e.b] = append(t.incident[e.b], int32(i))
		}
	}
}

// openMainStreets finds the gate of each road out of town, and makes a main street of the shortest path from the centre to it.
func (t *town) openMainStreets(p *plan, self int32) {
	arcs := make([][]arc, len(t.junctions))
	for i, e := range t.edges {
		if e.isOpen() {
			length := t.junctions[e.a].distance(t.junctions[e.b])
			arcs[e.a] = append(arcs[e.a], arc{e.b, int32(i), length})
			arcs[e.b] = append(arcs[e.b], arc{e.a, int32(i), length})
		}
	}
	for _, number := range t.roads {
		r := p.roads[number]
		other := &p.places[r.other(self)]
		gate := t.findGate(t.at.towards(other.at))
		t.gateAt = append(t.gateAt, gate)
		t.names = append(t.names, mainStreetName(t.place, other))
		for _, i := range findPath(arcs, 0, gate) {
			e := &t.edges[i]
			// A street with addresses keeps its name, and what two roads share has the name of the first.
			e.class = min(e.class, r.class)
			if !e.isLaid && e.street == unnamed {
				e.street = int32(len(t.names) - 1)
			}
		}
	}
}

// findGate is the junction that lies farthest in a direction.
func (t *town) findGate(direction point) (gate int32) {
	best := math.Inf(-1)
	for i, p := range t.junctions {
		if far := p.dot(direction) - 0.8*math.Abs(p.cross(direction)); far > best {
			gate, best = int32(i), far
		}
	}
	return gate
}

// closeCentre makes a pedestrian zone of the centre of larger towns. Streets that cars need to reach every junction stay open.
func (t *town) closeCentre() {
	if t.Population < 8000 {
		return
	}
	isInside := func(e *edge) bool {
		middle := t.junctions[e.a].part(t.junctions[e.b], 0.5)
		return e.class == residential && !e.isLaid && middle.distance(point{}) < 0.12*t.radius
	}
	// First the streets that stay open are joined. Then each street inside closes unless it joins separate parts.
	known := newParts(len(t.junctions))
	for i := range t.edges {
		if e := &t.edges[i]; e.isOpen() && !isInside(e) {
			known.join(e.a, e.b)
		}
	}
	for i := range t.edges {
		if e := &t.edges[i]; isInside(e) && !known.join(e.a, e.b) {
			e.class = pedestrian
		}
	}
}

// setOneWays makes many streets in the town one-way, and reverts those that would make a junction impossible to leave or reach.
func (t *town) setOneWays() {
	share := 0.05
	if t.Population > 3000 {
		share = 0.35
	}
	for i := range t.edges {
		e := &t.edges[i]
		isNear := t.junctions[e.a].distance(point{}) < 0.45*t.radius
		if isNear && e.isOpen() && e.class >= tertiary && e.class < service && t.chance(share) {
			e.isOneWay = true
			if t.chance(0.5) {
				e.a, e.b = e.b, e.a
			}
		}
	}
	// With every street open both ways all junctions are connected. Only one-way streets between two parts separate them, so one
	// round is enough.
	out, in := make([][]int32, len(t.junctions)), make([][]int32, len(t.junctions))
	add := func(a, b int32) { out[a], in[b] = append(out[a], b), append(in[b], a) }
	for _, e := range t.edges {
		if e.isOpen() {
			add(e.a, e.b)
			if !e.isOneWay {
				add(e.b, e.a)
			}
		}
	}
	part := strongParts(out, in)
	for i := range t.edges {
		if e := &t.edges[i]; part[e.a] != part[e.b] {
			e.isOneWay = false
		}
	}
}

// turn is the angle between two directions, 0 straight on, positive to the left.
func turn(from, to point) float64 { return math.Atan2(from.cross(to), from.dot(to)) }

// sortAround sorts the edges of a junction by their direction, counter-clockwise.
func (t *town) sortAround(at int32, edges []int32) []int32 {
	direction := func(i int32) float64 {
		to := t.junctions[t.edges[i].other(at)].minus(t.junctions[at])
		return math.Atan2(to.y, to.x)
	}
	return slices.SortedStableFunc(slices.Values(edges), func(i, j int32) int { return cmp.Compare(direction(i), direction(j)) })
}

// other is the end of the edge that is not at.
func (e *edge) other(at int32) int32 { return e.a + e.b - at }

// tag is a tag.
func tag(key, value string) osmpbf.Tag { return osmpbf.Tag{Key: key, Value: value} }
