package route

import (
	"maps"
	"math/rand/v2"
	"slices"

	"lieudit/cmd/bench/measure"
	"lieudit/queries/route/osmpbf"
	"lieudit/schemas/geo"
)

// roadNode is a node of roads for cars.
type roadNode struct {
	at       geo.Point
	lines    int  // the number of lines that meet there
	isOneWay bool // a line is open in one direction only
}

// noteNode notes that a line of a way begins or ends at a node.
func (m *mapRoads) noteNode(id int64, at geo.Point, tags osmpbf.Tags) {
	n, ok := m.nodes[id]
	if !ok {
		n = &roadNode{at: geo.Point{Lon: roundDegrees(at.Lon), Lat: roundDegrees(at.Lat)}}
		m.nodes[id] = n
	}
	n.lines++
	n.isOneWay = n.isOneWay || isOneWay(tags)
}

func isOneWay(tags osmpbf.Tags) bool {
	switch tags.Get("oneway") {
	case "yes", "1", "true", "-1":
		return true
	}
	return tags.Get("junction") == "roundabout"
}

// targetsOfJunction is the number of ways from each junction, and of ways to it.
const targetsOfJunction = 4

// drawJunctionPairs draws different junctions that have a one-way street among their roads: all, if the map has fewer. Each is paired with
// other junctions of any kind, in both directions. So no end is off the road, and the comparison shows how the routers handle the junctions and
// the way.
func (m *mapRoads) drawJunctionPairs(r *rand.Rand, n int) (pairs [][2]geo.Point) {
	var all, oneWay []geo.Point
	for _, id := range slices.Sorted(maps.Keys(m.nodes)) {
		node := m.nodes[id]
		if node.lines < 3 {
			continue
		}
		all = append(all, node.at)
		if node.isOneWay {
			oneWay = append(oneWay, node.at)
		}
	}
	r.Shuffle(len(oneWay), func(i, j int) { oneWay[i], oneWay[j] = oneWay[j], oneWay[i] })
	for _, junction := range oneWay[:min(n, len(oneWay))] {
		for range targetsOfJunction {
			target := all[r.IntN(len(all))]
			pairs = append(pairs, [2]geo.Point{junction, target}, [2]geo.Point{target, junction})
		}
	}
	return pairs
}

// The thresholds in seconds beyond OSRM's duration.
const (
	slowBy     = 5.0
	verySlowBy = 30.0
)

// slowness returns how many seconds our own route is slower than OSRM's.
func (p *answeredPair) slowness() float64 {
	if p.errs[0] != nil || p.errs[1] != nil {
		return 0
	}
	return p.duration(0) - p.duration(1)
}

// hasEndsOfOSRM reports whether our own route has the same ends as OSRM's.
func (p *answeredPair) hasEndsOfOSRM() bool {
	for end := range 2 {
		if own, osrm, _ := p.accesses(end); geo.Distance(own.Point, osrm.Point) > sameAccess {
			return false
		}
	}
	return true
}

// junctionFigures counts the junctions with a route that is slower than OSRM's, among all junctions and among those whose routes have the same
// ends.
func junctionFigures(pairs []answeredPair) (figures []measure.Figure) {
	for direction, name := range []string{"origin", "destination"} {
		var all, alike slowCount
		for first := 0; first < len(pairs); first += 2 * targetsOfJunction {
			worst, worstAlike := 0.0, 0.0
			for i := first + direction; i < first+2*targetsOfJunction; i += 2 {
				p := &pairs[i]
				worst = max(worst, p.slowness())
				if p.errs[0] == nil && p.errs[1] == nil && p.hasEndsOfOSRM() {
					worstAlike = max(worstAlike, p.slowness())
				}
			}
			all.add(worst)
			alike.add(worstAlike)
		}
		figures = append(figures, measure.Figure{
			Labels: []measure.Label{{Name: "a junction is the", Value: name}}, Value: all.slow, Unit: "over 5 s slower than OSRM",
			Extra: map[string]float64{
				"junctions": all.junctions, "over 30 s slower": all.verySlow,
				"over 5 s, between the same ends": alike.slow, "over 30 s, between the same ends": alike.verySlow,
			},
		})
	}
	return figures
}

// slowCount counts junctions by their slowest route.
type slowCount struct{ junctions, slow, verySlow float64 }

func (c *slowCount) add(seconds float64) {
	c.junctions++
	if seconds > slowBy {
		c.slow++
	}
	if seconds > verySlowBy {
		c.verySlow++
	}
}
