package engine

import (
	"slices"

	"lieudit/queries/route/guidance"
	"lieudit/schemas/geo"
)

// roadReader reads what package guidance needs to know about the roads along a path. It remembers recent roads, because their texts
// are copies and a street has many edges, and it reuses its memory. It is not safe for concurrent use.
type roadReader struct {
	mode   *modeEngine
	known  map[uint32]*guidance.Road // by network.Layer.RoadNumber
	points []geo.Point
	seen   []uint32
	all    []guidance.Branch
}

// mostKnownRoads is how many roads a roadReader remembers.
const mostKnownRoads = 1 << 12

// borrowRoadReader returns a reader for one path, which the caller puts back into roads.
func (m *modeEngine) borrowRoadReader() *roadReader {
	r, ok := m.roads.Get().(*roadReader)
	if !ok {
		return &roadReader{mode: m, known: map[uint32]*guidance.Road{}}
	}
	r.all = nil // the stretches of the last path keep it
	return r
}

// road is what guidance needs to know about a segment. It must not be changed.
func (r *roadReader) road(segment uint32) *guidance.Road {
	number := r.mode.layer.RoadNumber(segment)
	if known, ok := r.known[number]; ok {
		return known
	}
	if len(r.known) >= mostKnownRoads {
		clear(r.known)
	}
	read := r.mode.layer.Road(segment)
	road := &guidance.Road{
		Name: read.Name, Ref: read.Ref, Destinations: read.Destinations, Exit: read.Exit, Class: read.Class, IsLink: read.IsLink,
		IsRoundabout: read.IsRoundabout,
	}
	r.known[number] = road
	return road
}

// keepsLeft reports whether traffic keeps left on a segment at a position.
func (r *roadReader) keepsLeft(segment uint32, at geo.Point) bool {
	return r.mode.layer.Road(segment).Side.KeepsLeft(at.Lon, at.Lat)
}

// branches are the roads at the junction between two edges of a path, besides those two: those that may be entered, and those
// that only lead there.
func (r *roadReader) branches(from, to uint32) []guidance.Branch {
	g := r.mode.graph
	// A segment is identified here along with the direction in which it leaves the junction: so the copies of an edge are one
	// branch, and a two-way road is not listed again for the edge that arrives.
	r.seen = append(r.seen[:0], g.Segment[from]^1, g.Segment[to])
	begin, junction := len(r.all), g.Head[from]
	first, end := g.OutEdges(junction)
	for e := first; e < end; e++ {
		if s := g.Segment[e]; !slices.Contains(r.seen, s) {
			r.addBranch(s, r.canEnter(from, e))
		}
	}
	for _, e := range g.InEdges(junction) {
		r.addBranch(g.Segment[e]^1, false)
	}
	return r.all[begin:len(r.all):len(r.all)]
}

// canEnter reports whether the mode may drive from an edge onto another, either to stay there or to drive through. The copy of an
// edge on which routes arrive at restricted roads leads only to those, but the driver sees the public roads next to them too.
func (r *roadReader) canEnter(from, to uint32) bool {
	g := r.mode.graph
	if g.LeadsOnto(from, to) {
		return true
	}
	plain := g.CopiesOf(from)[0]
	return plain != from && r.mode.layer.Road(g.Segment[from]>>1).IsRestricted && g.LeadsOnto(plain, to)
}

// addBranch adds a segment as it leaves a junction, unless it was seen there. s is its number × 2, + 1 where it leaves against the
// geometry.
func (r *roadReader) addBranch(s uint32, canEnter bool) {
	if slices.Contains(r.seen, s) {
		return
	}
	r.seen = append(r.seen, s)
	r.points = r.mode.layer.AppendGeometry(r.points[:0], s>>1, s&1 == 1)
	r.all = append(r.all, guidance.Branch{Road: *r.road(s >> 1), Bearing: guidance.Bearing(r.points), CanEnter: canEnter})
}
