package synthetic

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"

	"lieudit/queries/route/osmpbf"
)

// motorway leads past places, in the order of driving.
type motorway struct {
	number  int
	places  []int32
	crosses []point // where it passes each place, in the plane of the plan
}

// The distances of motorways from places and between junctions, in metres.
const (
	motorwayReach   = 8_000
	motorwaySpacing = 12_000
	motorwayOffset  = 2_500
)

// planMotorways plans motorways between the largest places.
func (p *plan) planMotorways() {
	towns := slices.DeleteFunc(p.largest(len(p.places)/150, 15_000), func(i int32) bool {
		return landOf(p.places[i].Commune) != "" || len(p.places[i].roads) == 0
	})
	points := make([]point, len(towns))
	for n, i := range towns {
		points[n] = p.places[i].at
	}
	for _, pair := range listNeighbours(points) {
		if pair.isRelative && points[pair.a].distance(points[pair.b]) > 2*motorwayOffset {
			p.motorways = append(p.motorways, p.newMotorway(len(p.motorways)+1, towns[pair.a], towns[pair.b]))
		}
	}
}

// newMotorway picks the places between two towns that a motorway has junctions for.
func (p *plan) newMotorway(number int, from, to int32) motorway {
	a, b := p.places[from].at, p.places[to].at
	along := a.towards(b)
	at := func(i int32) float64 { return p.places[i].at.minus(a).dot(along) }
	// Those near the straight line, with room for the ramps of two junctions between them.
	var near []int32
	for i := range p.places {
		q := &p.places[i]
		d, aside := at(int32(i)), math.Abs(q.at.minus(a).cross(along))
		isBetween := aside < motorwayReach && d > motorwaySpacing && d < at(to)-motorwaySpacing
		if isBetween && len(q.roads) > 0 && landOf(q.Commune) == "" {
			near = append(near, int32(i))
		}
	}
	slices.SortStableFunc(near, func(i, j int32) int { return cmp.Compare(at(i), at(j)) })
	m := motorway{number: number, places: []int32{from}}
	for _, i := range near {
		if at(i)-at(m.places[len(m.places)-1]) > motorwaySpacing {
			m.places = append(m.places, i)
		}
	}
	m.places = append(m.places, to)
	for _, i := range m.places {
		m.crosses = append(m.crosses, p.places[i].at.plus(along.left().times(motorwayOffset)))
	}
	// It begins behind the first town and ends before the last, so that it never stands still.
	m.crosses[0] = m.crosses[0].plus(along.times(motorwayOffset / 3))
	return m
}

// roadDrawer draws what lies between the towns.
type roadDrawer struct {
	*generator
	drawing
	rand *rand.Rand
}

// drawRoads draws roads, ferries and motorways. Their ways refer to the nodes of towns by their IDs.
func (g *generator) drawRoads(base int64) *drawing {
	d := roadDrawer{generator: g, rand: rand.New(rand.NewPCG(g.options.Seed, 3))}
	d.base = base
	for i, r := range g.roads {
		a, b := g.roadEnds[gateKey{r.a, int32(i)}], g.roadEnds[gateKey{r.b, int32(i)}]
		if r.isFerry {
			d.drawFerry(a, b, r)
			continue
		}
		d.drawRoad(a, b, roadTags(r)...)
	}
	for _, m := range g.motorways {
		d.drawMotorway(m)
	}
	return &d.drawing
}

// roadTags are the tags of a road between places.
func roadTags(r road) osmpbf.Tags {
	letter := "D "
	if r.class == trunk {
		letter = "N "
	}
	return osmpbf.Tags{{Key: "highway", Value: highways[r.class]}, {Key: "ref", Value: letter + strconv.Itoa(r.number)}}
}

// drawRoad draws a winding road between two nodes.
func (d *roadDrawer) drawRoad(a, b gate, tags ...osmpbf.Tag) {
	w := osmpbf.Way{Nodes: []int64{a.node}, Tags: tags}
	for _, p := range bend(d.whole.project(a.lon, a.lat), d.whole.project(b.lon, b.lat), 180, 0.05, d.rand.Float64()*2*math.Pi) {
		w.Nodes = append(w.Nodes, d.addPoint(p))
	}
	w.Nodes = append(w.Nodes, b.node)
	d.ways = append(d.ways, w)
}

// addPoint adds a node at a point of the plan.
func (d *roadDrawer) addPoint(p point, tags ...osmpbf.Tag) int64 {
	lon, lat := d.whole.degrees(p)
	return d.addNode(lon, lat, tags...)
}

// drawFerry draws a ferry for cars. It drives 25 km/h and takes ten minutes to load.
func (d *roadDrawer) drawFerry(a, b gate, r road) {
	length := d.whole.project(a.lon, a.lat).distance(d.whole.project(b.lon, b.lat))
	minutes := 10 + int(length/25_000*60)
	name := d.places[r.a].Name + " - " + d.places[r.b].Name
	duration := fmt.Sprintf("%02d:%02d", minutes/60, minutes%60)
	middle := d.addPoint(d.whole.project((a.lon+b.lon)/2, (a.lat+b.lat)/2))
	d.ways = append(d.ways, osmpbf.Way{Nodes: []int64{a.node, middle, b.node}, Tags: osmpbf.Tags{tag("route", "ferry"), tag("name", name),
		tag("motor_vehicle", "yes"), tag("foot", "yes"), tag("bicycle", "yes"), tag("duration", duration)}})
}

// carriageway is one direction of a motorway while it is drawn: the nodes of the section that has begun.
type carriageway struct {
	nodes  []int64
	isBack bool
}

// drawMotorway draws both carriageways, 30 m apart, with a junction at every place and tolls between them. A motorway of more than
// two sections is free on the first and the last.
func (d *roadDrawer) drawMotorway(m motorway) {
	forth, back := carriageway{}, carriageway{isBack: true}
	last := len(m.crosses) - 1
	for n, at := range m.crosses {
		along := m.crosses[max(n-1, 0)].towards(m.crosses[min(n+1, last)])
		hasToll := func(section int) bool {
			return section >= 0 && section < last && (last < 3 || section > 0 && section < last-1)
		}
		if n > 0 {
			previous := m.crosses[n-1]
			for _, p := range bend(previous.part(at, 0.03), previous.part(at, 0.97), 400, 0.03, d.rand.Float64()*2*math.Pi) {
				aside := previous.towards(at).left().times(15)
				forth.nodes = append(forth.nodes, d.addPoint(p.minus(aside)))
				back.nodes = append(back.nodes, d.addPoint(p.plus(aside)))
			}
		}
		// A booth stands where a section with toll begins or ends.
		j := newJunction(d, m, n, along, hasToll(n-1) || hasToll(n))
		d.endSection(&forth, m, j.forth, hasToll(n-1), n == 0)
		d.endSection(&back, m, j.back, hasToll(n-1), n == 0)
		if n > 0 && n < last { // between exit and entrance the motorway continues
			d.addMotorwayWay(m, forth.isBack, false, j.forth[0], j.forth[1])
			d.addMotorwayWay(m, back.isBack, false, j.back[0], j.back[1])
		}
		j.drawRamps(d, m, n > 0, n < last)
	}
}

// endSection ends the section of a carriageway at the first of two nodes, and begins one at the second. Nodes are in the order
// forth.
func (d *roadDrawer) endSection(c *carriageway, m motorway, at [2]int64, hasToll, isFirst bool) {
	if !isFirst {
		d.addMotorwayWay(m, c.isBack, hasToll, append(c.nodes, at[0])...)
	}
	c.nodes = []int64{at[1]}
}

// addMotorwayWay adds a piece of motorway. Nodes are in the order forth.
func (d *roadDrawer) addMotorwayWay(m motorway, isBack, hasToll bool, nodes ...int64) {
	if isBack {
		slices.Reverse(nodes)
	}
	tags := osmpbf.Tags{{Key: "highway", Value: "motorway"}, {Key: "ref", Value: "A " + strconv.Itoa(m.number)}, {Key: "oneway", Value: "yes"},
		{Key: "maxspeed", Value: "130"}}
	if hasToll {
		tags = append(tags, osmpbf.Tag{Key: "toll", Value: "yes"})
	}
	d.ways = append(d.ways, osmpbf.Way{Nodes: nodes, Tags: tags})
}

// junction is where ramps meet a motorway: two nodes on each carriageway, 300 m apart, in the order forth.
type junction struct {
	forth, back [2]int64
	at          [2][2]point // of forth and back
	terminal    gate
	terminalAt  point
	place       *place
	hasToll     bool
}

// newJunction draws the nodes of a junction, and the road from its ramps to the town. A carriageway is left at the node that its
// drivers meet first, and entered at the other.
func newJunction(d *roadDrawer, m motorway, n int, along point, hasToll bool) *junction {
	at := m.crosses[n]
	j := &junction{place: &d.places[m.places[n]], hasToll: hasToll}
	exit := osmpbf.Tags{{Key: "highway", Value: "motorway_junction"}, {Key: "ref", Value: strconv.Itoa(n + 1)}}
	for i, shift := range [...]float64{-150, 150} {
		middle, aside := at.plus(along.times(shift)), along.left().times(15)
		j.at[0][i], j.at[1][i] = middle.minus(aside), middle.plus(aside)
	}
	j.forth = [2]int64{d.addPoint(j.at[0][0], exit...), d.addPoint(j.at[0][1])}
	j.back = [2]int64{d.addPoint(j.at[1][0]), d.addPoint(j.at[1][1], exit...)}
	j.terminalAt = at.plus(at.towards(j.place.at).times(350))
	lon, lat := d.whole.degrees(j.terminalAt)
	j.terminal = gate{d.addNode(lon, lat), lon, lat}
	d.drawRoad(j.terminal, d.nearestGate(m.places[n], j.terminalAt), roadTags(road{class: secondary, number: 900 + m.number%99})...)
	return j
}

// nearestGate is the gate of a place that is nearest to a point.
func (d *roadDrawer) nearestGate(place int32, p point) (best gate) {
	nearest := math.Inf(1)
	for _, road := range d.places[place].roads {
		g := d.roadEnds[gateKey{place, road}]
		if to := d.whole.project(g.lon, g.lat).distance(p); to < nearest {
			best, nearest = g, to
		}
	}
	return best
}

// drawRamps draws the ramps that lead somewhere: the first junction has no exit of the carriageway forth, the last no entrance.
func (j *junction) drawRamps(d *roadDrawer, m motorway, hasBefore, hasAfter bool) {
	if hasBefore {
		j.drawRamp(d, j.forth[0], j.at[0][0], true)
		j.drawRamp(d, j.back[0], j.at[1][0], false)
	}
	if hasAfter {
		j.drawRamp(d, j.back[1], j.at[1][1], true)
		j.drawRamp(d, j.forth[1], j.at[0][1], false)
	}
}

// drawRamp draws one ramp between the motorway and the terminal. Where the motorway takes toll, so does a booth on the ramp.
func (j *junction) drawRamp(d *roadDrawer, node int64, at point, isExit bool) {
	var booth osmpbf.Tags
	tags := osmpbf.Tags{{Key: "highway", Value: "motorway_link"}, {Key: "oneway", Value: "yes"}}
	if j.hasToll {
		booth = osmpbf.Tags{{Key: "barrier", Value: "toll_booth"}}
	}
	if isExit {
		tags = append(tags, osmpbf.Tag{Key: "destination", Value: j.place.Name})
	}
	nodes := []int64{node, d.addPoint(at.part(j.terminalAt, 0.35)), d.addPoint(at.part(j.terminalAt, 0.7), booth...), j.terminal.node}
	if !isExit {
		slices.Reverse(nodes)
	}
	d.ways = append(d.ways, osmpbf.Way{Nodes: nodes, Tags: tags})
}
