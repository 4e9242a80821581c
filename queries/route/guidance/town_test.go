package guidance

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"lieudit/queries/route"
	"lieudit/queries/route/profile"
	"lieudit/schemas/geo"
)

// town is a drawn road network. A letter is a node; a row or column of the drawing is 10 metres.
type town struct {
	mode  profile.Mode
	nodes map[rune]geo.Point
	minis map[rune]bool
	roads []townRoad
}

// townRoad is a piece of a way between two nodes, in one direction that is open or not.
type townRoad struct {
	from, to rune
	road     Road
	isOpen   bool
}

// newTown reads a drawing and ways such as "abc name=Rue~Foch highway=primary". A way is called by its nodes, and is residential,
// unless its tags say otherwise; name=- means without a name. "mini a" makes a node a mini roundabout.
func newTown(t *testing.T, mode profile.Mode, drawing, ways string) *town {
	t.Helper()
	town := &town{mode: mode, nodes: map[rune]geo.Point{}, minis: map[rune]bool{}}
	const lat, lon, step = 45.75, 4.85, 10.0
	for y, line := range strings.Split(drawing, "\n") {
		for x, c := range line {
			if c >= 'a' && c <= 'z' {
				town.nodes[c] = geo.Point{
					Lon: lon + float64(x)*step/geo.MetresPerDegree/math.Cos(lat*math.Pi/180), Lat: lat - float64(y)*step/geo.MetresPerDegree,
				}
			}
		}
	}
	for line := range strings.SplitSeq(ways, "\n") {
		if fields := strings.Fields(line); len(fields) > 0 {
			town.addWay(t, fields)
		}
	}
	return town
}

type townTags map[string]string

func (t townTags) Get(key string) string { return t[key] }

func (town *town) addWay(t *testing.T, fields []string) {
	t.Helper()
	if fields[0] == "mini" {
		town.minis[rune(fields[1][0])] = true
		return
	}
	tags := townTags{"name": fields[0], "highway": "residential"}
	for _, f := range fields[1:] {
		key, value, _ := strings.Cut(f, "=")
		tags[key] = strings.ReplaceAll(strings.TrimPrefix(value, "-"), "~", " ")
	}
	if tags["route"] != "" {
		delete(tags, "highway")
	}
	w, ok := profile.ReadWay(tags)
	if !ok {
		t.Fatalf("no road: %v", fields)
	}
	road := Road{
		Name: w.Name, Ref: w.Ref, Destinations: w.Destinations, Exit: w.Exit, Class: w.Class, IsLink: w.IsLink, IsRoundabout: w.IsRoundabout,
	}
	nodes := []rune(fields[0])
	for i := 1; i < len(nodes); i++ {
		town.roads = append(town.roads,
			townRoad{nodes[i-1], nodes[i], road, w.IsOpen(town.mode, profile.Forward)},
			townRoad{nodes[i], nodes[i-1], road, w.IsOpen(town.mode, profile.Backward)})
	}
}

// stretches is the path through nodes.
func (town *town) stretches(t *testing.T, path string) (stretches []Stretch) {
	t.Helper()
	nodes := []rune(path)
	for i := 1; i < len(nodes); i++ {
		at := slices.IndexFunc(town.roads, func(r townRoad) bool { return r.from == nodes[i-1] && r.to == nodes[i] && r.isOpen })
		if at < 0 {
			t.Fatalf("no road from %c to %c", nodes[i-1], nodes[i])
		}
		s := Stretch{Road: town.roads[at].road, Points: []geo.Point{town.nodes[nodes[i-1]], town.nodes[nodes[i]]}}
		x, y := geo.PlaneAt(s.Points[0]).Project(s.Points[1])
		s.Distance = math.Hypot(x, y)
		s.Duration = s.Distance / 10
		if i > 1 {
			s.Branches = town.branches(nodes[i-2], nodes[i-1], nodes[i])
			s.IsMiniRoundabout = town.minis[nodes[i-1]]
		}
		stretches = append(stretches, s)
	}
	return stretches
}

func (town *town) branches(from, at, to rune) (branches []Branch) {
	for _, r := range town.roads {
		if r.from == at && r.to != from && r.to != to {
			bearing := Bearing([]geo.Point{town.nodes[at], town.nodes[r.to]})
			branches = append(branches, Branch{Road: r.road, Bearing: bearing, CanEnter: r.isOpen})
		}
	}
	return branches
}

// tell is what the steps of a path are, without the departure and the arrival: "tourner gauche Rue Foch; continuer tout_droit D 12".
func (town *town) tell(t *testing.T, path string) string {
	t.Helper()
	steps := Steps(town.mode.Route(), town.stretches(t, path))
	if first, last := steps[0].Maneuver.Type, steps[len(steps)-1].Maneuver.Type; first != route.Depart || last != route.Arrive {
		t.Errorf("begins with %s and ends with %s", first, last)
	}
	var told []string
	for _, s := range steps[1 : len(steps)-1] {
		words := []string{string(s.Maneuver.Type), string(s.Maneuver.Modifier)}
		if s.Maneuver.Exit > 0 {
			words[1] = fmt.Sprint(s.Maneuver.Exit)
		}
		words = append(words, s.Maneuver.Sign, s.Name, s.Ref, s.Destinations)
		told = append(told, strings.Join(strings.Fields(strings.Join(words, " ")), " "))
	}
	return strings.Join(told, "; ")
}

// situation is a drawn junction and the instructions on paths over it.
type situation struct {
	rule          string
	mode          profile.Mode
	drawing, ways string
	paths         map[string]string
}

func testSituations(t *testing.T, situations []situation) {
	t.Helper()
	for _, s := range situations {
		t.Run(s.rule, func(t *testing.T) {
			t.Parallel()
			town := newTown(t, s.mode, s.drawing, s.ways)
			for path, want := range s.paths {
				if got := town.tell(t, path); got != want {
					t.Errorf("%s: got %q, want %q", path, got, want)
				}
			}
		})
	}
}
