package synthetic

import (
	"math"
	"strings"

	"lieudit/queries/address/synthetic"
	"lieudit/queries/route/osmpbf"
)

// townDrawer turns the edges of a town into nodes and ways.
type townDrawer struct {
	*town
	drawing
	nodes    []int64            // of each junction; -1 for a roundabout
	rings    map[[2]int32]int64 // the node of a roundabout's ring by junction and edge
	used     []bool             // edges that have their way
	newName  func() string
	isZone30 bool
	ends     [][]int // by junction: the ways that begin or end there
}

// draw draws the town.
func (t *town) draw(p *plan) *drawing {
	d := &townDrawer{town: t, rings: map[[2]int32]int64{}, used: make([]bool, len(t.edges)), ends: make([][]int, len(t.junctions)),
		isZone30: t.chance(0.3), newName: synthetic.StreetNames(p.table, t.Commune, p.options.Seed^0x5eed, t.names)}
	t.index(false)
	d.drawJunctions()
	for i := range t.edges {
		if !d.used[i] {
			d.drawChain(int32(i))
		}
	}
	d.banTurns()
	for _, gate := range t.gateAt {
		d.gates = append(d.gates, d.nodes[gate])
	}
	return &d.drawing
}

// drawJunctions draws the node of each junction, and roundabouts in place of some.
func (d *townDrawer) drawJunctions() {
	isGate := map[int32]bool{0: true}
	for _, gate := range d.gateAt {
		isGate[gate] = true
	}
	for i, p := range d.junctions {
		at := int32(i)
		open, mainRoads, isLaid := d.describeJunction(at)
		// A roundabout has no node in its middle. Gates need one, and streets along addresses must not move.
		if open >= 3 && !isGate[at] && !isLaid && open == len(d.incident[at]) && d.chance(0.02+0.04*float64(min(mainRoads, 3))) {
			d.nodes = append(d.nodes, -1)
			d.drawRoundabout(at)
			continue
		}
		var tags osmpbf.Tags
		if mainRoads >= 2 && open >= 4 && d.Population > 5000 && d.chance(0.6) {
			tags = osmpbf.Tags{tag("highway", "traffic_signals")}
		}
		lon, lat := d.degrees(p)
		d.nodes = append(d.nodes, d.addNode(lon, lat, tags...))
	}
}

// describeJunction counts the edges of a junction that are open to cars, those that are main roads, and reports whether one is laid
// along addresses.
func (d *townDrawer) describeJunction(at int32) (open, mainRoads int, isLaid bool) {
	for _, i := range d.incident[at] {
		e := &d.edges[i]
		if e.isOpen() {
			open++
		}
		if e.class <= tertiary {
			mainRoads++
		}
		isLaid = isLaid || e.isLaid
	}
	return open, mainRoads, isLaid
}

// drawRoundabout draws a ring with a node for each street that meets it. It is driven counter-clockwise.
func (d *townDrawer) drawRoundabout(at int32) {
	best, centre := residential, d.junctions[at]
	ring := osmpbf.Way{}
	for _, i := range d.sortAround(at, d.incident[at]) {
		best = min(best, d.edges[i].class)
		outward := centre.towards(d.junctions[d.edges[i].other(at)])
		lon, lat := d.degrees(centre.plus(outward.times(14)))
		node := d.addNode(lon, lat)
		d.rings[[2]int32{at, i}] = node
		ring.Nodes = append(ring.Nodes, node)
	}
	ring.Nodes = append(ring.Nodes, ring.Nodes[0])
	ring.Tags = osmpbf.Tags{tag("highway", highways[best]), tag("junction", "roundabout")}
	d.ways = append(d.ways, ring)
}

// nodeAt is the node of a junction where an edge ends.
func (d *townDrawer) nodeAt(at, edge int32) int64 {
	if node := d.nodes[at]; node >= 0 {
		return node
	}
	return d.rings[[2]int32{at, edge}]
}

// drawChain draws a street: an edge and those that continue from it, in both directions, as one way.
func (d *townDrawer) drawChain(first int32) {
	e := &d.edges[first]
	d.used[first] = true
	most := 3 + d.rand.IntN(8)
	// A one-way street is drawn from its first edge on; another is followed backward too, and its edges put before.
	chain := d.follow([]int32{first}, e.b, most)
	start := e.a
	if !e.isOneWay {
		back := d.follow([]int32{first}, e.a, most)
		for _, i := range back[1:] {
			start = d.edges[i].other(start)
			chain = append([]int32{i}, chain...)
		}
	}
	w := osmpbf.Way{Tags: d.tagsOf(e)}
	at := start
	for _, i := range chain {
		w.Nodes = append(w.Nodes, d.nodeAt(at, i))
		next := d.edges[i].other(at)
		w.Nodes = d.appendShape(w.Nodes, i, at, next)
		if at = next; i == chain[len(chain)-1] {
			w.Nodes = append(w.Nodes, d.nodeAt(at, i))
		}
	}
	d.ends[start], d.ends[at] = append(d.ends[start], len(d.ways)), append(d.ends[at], len(d.ways))
	d.ways = append(d.ways, w)
}

// follow appends edges to a chain whose last one ends at a junction, up to a number of them besides bends. A street that is named
// continues as long as the name does, others as long as they go straight.
func (d *townDrawer) follow(chain []int32, at int32, most int) []int32 {
	for d.nodes[at] >= 0 {
		last := &d.edges[chain[len(chain)-1]]
		isBend := len(d.incident[at]) == 2
		best, least := int32(-1), 0.7
		for _, i := range d.incident[at] {
			e := &d.edges[i]
			isSame := e.class == last.class && e.street == last.street && e.isOneWay == last.isOneWay && e.isLaid == last.isLaid
			if d.used[i] || !isSame || e.isOneWay && e.a != at {
				continue
			}
			here := d.junctions[at]
			angle := math.Abs(turn(d.junctions[last.other(at)].towards(here), here.towards(d.junctions[e.other(at)])))
			if isBend || e.street != unnamed {
				angle /= 8 // preferred to the others, however sharp
			}
			if angle < least {
				best, least = i, angle
			}
		}
		if !isBend {
			most--
		}
		if best < 0 || most <= 0 && last.street == unnamed {
			break
		}
		d.used[best] = true
		chain = append(chain, best)
		at = d.edges[best].other(at)
	}
	return chain
}

// appendShape appends the nodes between the ends of an edge. Streets along addresses stay where they were laid.
func (d *townDrawer) appendShape(nodes []int64, i, from, to int32) []int64 {
	if d.edges[i].isLaid {
		return nodes
	}
	for _, p := range bend(d.junctions[from], d.junctions[to], 45, 0.12, d.rand.Float64()*2*math.Pi) {
		lon, lat := d.degrees(p)
		nodes = append(nodes, d.addNode(lon, lat))
	}
	return nodes
}

// tagsOf are the tags of a way that begins with an edge.
func (d *townDrawer) tagsOf(e *edge) osmpbf.Tags {
	tags := osmpbf.Tags{tag("highway", highways[e.class])}
	switch {
	case e.street != unnamed:
		tags = append(tags, tag("name", d.names[e.street]))
	case e.class < service || e.class == pedestrian:
		tags = append(tags, tag("name", d.newName()))
	}
	if e.isOneWay {
		tags = append(tags, tag("oneway", "yes"))
		if d.chance(0.3) {
			tags = append(tags, tag("oneway:bicycle", "no"))
		}
	}
	switch {
	case e.class <= tertiary:
		tags = append(tags, tag("maxspeed", "50"))
	case d.isZone30 && e.class == residential && !d.isRemote(e):
		tags = append(tags, tag("maxspeed", "30"))
	}
	return tags
}

// isRemote reports whether an edge lies outside of the built area.
func (d *townDrawer) isRemote(e *edge) bool { return d.junctions[e.a].distance(point{}) > d.radius }

// banTurns forbids a turn at one junction in forty where two streets end. A third way out is always left.
func (d *townDrawer) banTurns() {
	for at, ways := range d.ends {
		if len(ways) < 2 || d.countTwoWay(int32(at)) < 3 || d.nodes[at] < 0 || !d.chance(0.025) {
			continue
		}
		from, to := ways[0], ways[1]
		if from == to || !isPlain(d.ways[from]) || !isPlain(d.ways[to]) {
			continue
		}
		kind := "no_left_turn"
		if d.turnAt(at, from, to) < 0 {
			kind = "no_right_turn"
		}
		d.bans = append(d.bans, turnBan{from, to, d.nodes[at], kind})
	}
}

// countTwoWay counts the edges of a junction that cars use in both directions, or none when some are one-way.
func (d *townDrawer) countTwoWay(at int32) (n int) {
	for _, i := range d.incident[at] {
		switch e := &d.edges[i]; {
		case e.isOpen() && e.isOneWay:
			return 0
		case e.isOpen():
			n++
		}
	}
	return n
}

// isPlain reports whether cars use a way in both directions.
func isPlain(w osmpbf.Way) bool {
	highway := w.Tags.Get("highway")
	return w.Tags.Get("oneway") == "" && w.Tags.Get("junction") == "" &&
		(highway == "residential" || highway == "unclassified" || strings.HasSuffix(highway, "ary"))
}

// turnAt is the angle of the turn from one way to another at a junction.
func (d *townDrawer) turnAt(at, from, to int) float64 {
	node := d.nodes[at]
	neighbour := func(w osmpbf.Way) point {
		other := w.Nodes[len(w.Nodes)-2]
		if w.Nodes[0] == node {
			other = w.Nodes[1]
		}
		n := d.drawing.nodes[other]
		return d.project(float64(n.Lon)/osmpbf.UnitsPerDegree, float64(n.Lat)/osmpbf.UnitsPerDegree)
	}
	here := d.junctions[at]
	return turn(neighbour(d.ways[from]).towards(here), here.towards(neighbour(d.ways[to])))
}

// mainStreetName is the name of the street from a town towards another.
func mainStreetName(of, towards *place) string {
	kind := "Route "
	if of.Population > 5000 {
		kind = "Avenue "
	}
	return kind + synthetic.PrefixDe(towards.Name)
}
