package route

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"

	"lieudit/queries/route/osmpbf"
	"lieudit/schemas/geo"
)

// mapRoads are the roads of a map by their tags alone, independent of any engine. So the roads that a route uses are described in the same way
// for all engines.
type mapRoads struct {
	lines []roadLine
	near  map[roadCell][]uint32 // lines by the cells that they touch
	gates map[roadCell][]gate
	car   []uint32            // lines of roads for cars, among which positions are drawn
	nodes map[int64]*roadNode // of roads for cars
	walls map[roadCell][]wall // lines that nobody can cross on foot
}

// roadLine is the line between two nodes of a way.
type roadLine struct {
	from, to geo.Point
	uses     roadUse
	level    string // of a bridge, a tunnel, or by the tag layer; "" is the ground
}

// roadUse is a set of facts about a road that explain why a route takes or avoids it.
type roadUse uint16

// The facts, in the order in which they explain a difference.
const (
	useRestricted roadUse = 1 << iota // private, destination, delivery, customers, permit
	useForbidden                      // no car by its access tags
	useFerry
	useConstruction
	useTrack // made for no cars, or a track
	useToll
	useService
	useNarrow // one lane, or narrow
	useMotorway
	useMain // trunk to tertiary
	useStreet
)

// useNames are the names of the facts, in their order.
var useNames = []string{
	"restricted", "forbidden", "ferry", "construction", "track or path", "toll", "service", "narrow", "motorway", "main road", "street",
}

// gate is a barrier on a road.
type gate struct {
	at   geo.Point
	name string // of the barrier, with its access tag if there is one
}

// roadCell is a square of the map of some 50 to 100 metres.
type roadCell struct{ x, y int32 }

const cellsPerDegree = 1000

func cellOf(p geo.Point) roadCell {
	return roadCell{int32(math.Floor(p.Lon * cellsPerDegree)), int32(math.Floor(p.Lat * cellsPerDegree))}
}

func newMapRoads() *mapRoads {
	return &mapRoads{near: map[roadCell][]uint32{}, gates: map[roadCell][]gate{}, nodes: map[int64]*roadNode{}, walls: map[roadCell][]wall{}}
}

// readMapRoads reads the ways with a highway, a ferry, or a shuttle train, and the barriers.
func readMapRoads(ctx context.Context, path string) (m *mapRoads, err error) {
	file, err := osmpbf.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	m = newMapRoads()
	nodes := map[int64]geo.Point{}
	if err := file.Scan(ctx, osmpbf.Nodes, nil, func(b *osmpbf.Block) error {
		for _, n := range b.Nodes {
			p := geo.Point{Lon: float64(n.Lon) / osmpbf.UnitsPerDegree, Lat: float64(n.Lat) / osmpbf.UnitsPerDegree}
			nodes[n.ID] = p
			if barrier := n.Tags.Get("barrier"); barrier != "" && !openBarriers[barrier] {
				m.addGate(p, barrier, n.Tags)
			}
		}
		return nil
	}); err != nil {
		return nil, err
	}
	err = file.Scan(ctx, osmpbf.Ways, nil, func(b *osmpbf.Block) error {
		for _, w := range b.Ways {
			m.addWay(w, nodes)
		}
		return nil
	})
	if err == nil && len(m.car) == 0 {
		err = errors.New("the map has no roads for cars")
	}
	return m, err
}

// openBarriers are barriers that stop nobody.
var openBarriers = map[string]bool{
	"kerb": true, "no": true, "entrance": true, "cattle_grid": true, "border_control": true, "toll_booth": true, "height_restrictor": true,
}

func (m *mapRoads) addGate(p geo.Point, barrier string, tags osmpbf.Tags) {
	for _, key := range []string{"motorcar", "motor_vehicle", "vehicle", "access"} {
		if v := tags.Get(key); v != "" {
			barrier += " " + key + "=" + v
			break
		}
	}
	m.gates[cellOf(p)] = append(m.gates[cellOf(p)], gate{p, barrier})
}

// addWay adds the lines of a way. The tags of a way that is not a road have no uses.
func (m *mapRoads) addWay(w osmpbf.Way, nodes map[int64]geo.Point) {
	m.addWalls(w, nodes)
	uses := usesOf(w.Tags)
	if uses == 0 {
		return
	}
	level := levelOf(w.Tags)
	for i := 1; i < len(w.Nodes); i++ {
		from, hasFrom := nodes[w.Nodes[i-1]]
		to, hasTo := nodes[w.Nodes[i]]
		if !hasFrom || !hasTo {
			continue
		}
		line := uint32(len(m.lines))
		m.lines = append(m.lines, roadLine{from, to, uses, level})
		if uses&(useForbidden|useFerry|useConstruction|useTrack) == 0 {
			m.car = append(m.car, line)
			m.noteNode(w.Nodes[i-1], from, w.Tags)
			m.noteNode(w.Nodes[i], to, w.Tags)
		}
		for cell := range cellsAlong(from, to) {
			m.near[cell] = append(m.near[cell], line)
		}
	}
}

// cellsAlong returns the cells of points along a line, at most half a cell apart.
func cellsAlong(from, to geo.Point) map[roadCell]bool {
	cells := map[roadCell]bool{}
	steps := 1 + int(2*cellsPerDegree*max(math.Abs(to.Lon-from.Lon), math.Abs(to.Lat-from.Lat)))
	for i := range steps + 1 {
		cells[cellOf(geo.Between(from, to, float64(i)/float64(steps)))] = true
	}
	return cells
}

// classUses are the uses of the values of highway. A missing value is not made for cars.
var classUses = map[string]roadUse{
	"motorway": useMotorway, "motorway_link": useMotorway, "trunk": useMain, "trunk_link": useMain, "primary": useMain, "primary_link": useMain,
	"secondary": useMain, "secondary_link": useMain, "tertiary": useMain, "tertiary_link": useMain,
	"unclassified": useStreet, "residential": useStreet, "living_street": useStreet, "road": useStreet,
	"service": useService, "construction": useConstruction, "proposed": useConstruction,
}

// accessUses are the uses of the values of access tags.
var accessUses = map[string]roadUse{
	"private": useRestricted, "destination": useRestricted, "delivery": useRestricted, "customers": useRestricted, "permit": useRestricted,
	"residents": useRestricted, "no": useForbidden, "agricultural": useForbidden, "forestry": useForbidden, "emergency": useForbidden,
	"bus": useForbidden, "psv": useForbidden, "military": useForbidden,
}

// usesOf returns the uses in the tags of a way; 0: it is not a road.
func usesOf(tags osmpbf.Tags) roadUse {
	highway, vehicle := tags.Get("highway"), tags.Get("route")
	if vehicle == "ferry" || vehicle == "shuttle_train" {
		return useFerry
	}
	if highway == "" {
		return 0
	}
	uses, ok := classUses[highway]
	if !ok {
		uses = useTrack
	}
	for _, key := range []string{"motorcar", "motor_vehicle", "vehicle", "access"} {
		if v := tags.Get(key); v != "" {
			uses |= accessUses[v]
			break
		}
	}
	if tags.Get("toll") == "yes" {
		uses |= useToll
	}
	if tags.Get("lanes") == "1" && tags.Get("oneway") != "yes" || tags.Get("narrow") == "yes" {
		uses |= useNarrow
	}
	return uses
}

// drawPair draws two positions next to roads for cars, at most 20 metres away from their lines.
func (m *mapRoads) drawPair(r *rand.Rand) [2]geo.Point { return [2]geo.Point{m.draw(r), m.draw(r)} }

func (m *mapRoads) draw(r *rand.Rand) geo.Point {
	const aside = 20.0 / geo.MetresPerDegree
	l := m.lines[m.car[r.IntN(len(m.car))]]
	p := geo.Between(l.from, l.to, r.Float64())
	return geo.Point{
		Lon: roundDegrees(p.Lon + aside*(2*r.Float64()-1)/math.Cos(p.Lat*math.Pi/180)), Lat: roundDegrees(p.Lat + aside*(2*r.Float64()-1)),
	}
}

// roundDegrees rounds to six digits, as in the questions to all servers.
func roundDegrees(x float64) float64 { return math.Round(x*1e6) / 1e6 }

// usage is what a route uses: metres on roads by fact, and the gates that it passes.
type usage struct {
	metres [16]float64 // by the number of the fact's bit
	gates  []string
}

// on returns the metres on roads with a fact.
func (u *usage) on(fact roadUse) float64 {
	for i := range useNames {
		if fact == 1<<i {
			return u.metres[i]
		}
	}
	return 0
}

// usageOf returns the usage of a route of any engine, by the road nearest to the middle of each of its lines.
func (m *mapRoads) usageOf(line []geo.Point) (u usage) {
	for i := 1; i < len(line); i++ {
		length := geo.Distance(line[i-1], line[i])
		parts := 1 + int(length/50)
		for k := range parts {
			uses := m.usesAt(line[i-1], line[i], (float64(k)+0.5)/float64(parts))
			for bit := range useNames {
				if uses&(1<<bit) != 0 {
					u.metres[bit] += length / float64(parts)
				}
			}
		}
		if i < len(line)-1 {
			u.addGates(m, line[i])
		}
	}
	return u
}

// addGates adds the gates at a node of a route.
func (u *usage) addGates(m *mapRoads, p geo.Point) {
	const same = 1.0 // metres
	for _, g := range m.gates[cellOf(p)] {
		if geo.Distance(g.at, p) < same {
			u.gates = append(u.gates, g.name)
		}
	}
}

// usesAt returns the facts of the road at a share of a line, within 6 metres. It ignores roads that only cross there, and prefers a road for
// cars to a path on the same line.
func (m *mapRoads) usesAt(from, to geo.Point, share float64) (uses roadUse) {
	const most, preference = 6.0, 0.5
	best, p := most, geo.Between(from, to, share)
	for _, i := range m.near[cellOf(p)] {
		l := m.lines[i]
		d := distanceToLine(p, l.from, l.to)
		if l.uses&(useTrack|useForbidden|useConstruction) != 0 {
			d += preference
		}
		if d < best && !crosses(from, to, l.from, l.to) {
			best, uses = d, l.uses
		}
	}
	return uses
}

// crosses reports whether two lines differ in direction by more than 30 degrees.
func crosses(a, b, c, d geo.Point) bool {
	const cos = 0.866
	scale := math.Cos(a.Lat * math.Pi / 180)
	x, y, u, v := (b.Lon-a.Lon)*scale, b.Lat-a.Lat, (d.Lon-c.Lon)*scale, d.Lat-c.Lat
	return math.Abs(x*u+y*v) < cos*math.Hypot(x, y)*math.Hypot(u, v)
}

// distanceToLine returns the metres from a position to a short line.
func distanceToLine(p, from, to geo.Point) float64 {
	scale := math.Cos(p.Lat * math.Pi / 180)
	x, y := (to.Lon-from.Lon)*scale, to.Lat-from.Lat
	share := 0.0
	if length := x*x + y*y; length > 0 {
		share = max(0, min(1, ((p.Lon-from.Lon)*scale*x+(p.Lat-from.Lat)*y)/length))
	}
	return geo.Distance(p, geo.Between(from, to, share))
}
