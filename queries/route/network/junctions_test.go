package network

import (
	"maps"
	"testing"

	"lieudit/queries/route"
	"lieudit/queries/route/graph"
	"lieudit/schemas/geo"
)

// junctionLetters returns the junctions of a layer by the letters of their nodes.
func (d *drawnNetwork) junctionLetters(l *Layer) map[byte][]uint32 {
	letters := map[byte][]uint32{}
	seen := map[uint32]bool{}
	for segment := range uint32(l.Segments()) {
		edge, backward := l.SegmentEdges(segment)
		points := l.AppendGeometry(nil, segment, edge == graph.None)
		if edge == graph.None {
			edge = backward
		}
		ends := map[uint32]geo.Point{l.Graph.Tail[edge]: points[0], l.Graph.Head[edge]: points[len(points)-1]}
		for junction, p := range ends {
			if !seen[junction] {
				seen[junction] = true
				letters[d.letterAt(p)] = append(letters[d.letterAt(p)], junction)
			}
		}
	}
	return letters
}

// Exits are read in the order of nodes, and junctions have another: c comes before e in the map and lies behind it on the road.
func TestAJunctionHasTheNumberOfItsExit(t *testing.T) {
	t.Parallel()
	n := openTown(t, &town{grid: "aeicgk\n f  d \n b    ", ways: []string{
		"aeicgk highway=motorway", "ef highway=motorway_link oneway=yes", "cd highway=motorway_link oneway=yes", "gd highway=primary",
		"fb highway=footway",
	}, nodes: []string{"e highway=motorway_junction ref=12", "c highway=motorway_junction ref=13a;13b", "g highway=motorway_junction",
		"i highway=motorway_junction ref=7", "d ref=9", "f highway=motorway_junction ref=4"}})
	for m, want := range map[route.Mode]map[byte]string{
		route.Car:  {'e': "12", 'c': "13a; 13b", 'f': "4"}, // no road begins at i, and d is the beginning of no exit
		route.Foot: {'f': "4"},
	} {
		l, got := n.Layer(m), map[byte]string{}
		for letter, junctions := range n.junctionLetters(l) {
			for _, junction := range junctions {
				if number := l.JunctionExit(junction); number != "" {
					got[letter] += number
				}
			}
		}
		if !maps.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", m, got, want)
		}
	}
}

func TestANetworkWithoutExitsHasNone(t *testing.T) {
	t.Parallel()
	l := openTown(t, &town{grid: "ab", ways: []string{"ab highway=primary"}}).Layer(route.Car)
	for junction := range uint32(l.Graph.Junctions()) {
		if got := l.JunctionExit(junction); got != "" {
			t.Errorf("junction %d: %q", junction, got)
		}
	}
}

func TestAJunctionKnowsThatItIsAMiniRoundabout(t *testing.T) {
	t.Parallel()
	n := openTown(t, &town{grid: " d \nabce\n f ", ways: []string{"abce highway=residential", "db highway=residential", "bf highway=footway"},
		nodes: []string{"b highway=mini_roundabout", "c highway=mini_roundabout", "e highway=turning_circle"}})
	for _, m := range []route.Mode{route.Car, route.Foot} {
		l := n.Layer(m)
		for letter, junctions := range n.junctionLetters(l) {
			for _, junction := range junctions {
				if got, want := l.IsMiniRoundabout(junction), letter == 'b'; got != want { // c is in the middle of a road
					t.Errorf("%s: %c: got %v, want %v", m, letter, got, want)
				}
			}
		}
	}
}
