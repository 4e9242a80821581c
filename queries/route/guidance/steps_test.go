package guidance

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"lieudit/queries/route"
	"lieudit/queries/route/profile"
	"lieudit/schemas/geo"
)

// newRandomTown draws 25 nodes and ways of all kinds between neighbours.
func newRandomTown(t *testing.T, r *rand.Rand) *town {
	t.Helper()
	const letters = "abcdefghijklmnopqrstuvwxy"
	var drawing, ways strings.Builder
	for i, c := range letters {
		if i%5 == 0 {
			drawing.WriteString("\n" + strings.Repeat("\n", r.IntN(4)))
		}
		drawing.WriteString(strings.Repeat(" ", 1+r.IntN(5)) + string(c))
	}
	kinds := []string{
		"highway=motorway oneway=no", "highway=motorway_link", "highway=primary", "highway=primary_link", "highway=service name=-",
		"highway=tertiary junction=roundabout oneway=no name=-", "route=ferry", "highway=residential ref=D~12", "highway=track motor_vehicle=yes",
	}
	for i := range letters {
		for _, next := range []int{i + 1, i + 5, i + 6} {
			if next < len(letters) && r.IntN(4) > 0 {
				fmt.Fprintf(&ways, "%c%c %s\n", letters[i], letters[next], kinds[r.IntN(len(kinds))])
			}
		}
	}
	return newTown(t, profile.Car, drawing.String(), ways.String())
}

// walk is a random path through a town.
func (town *town) walk(r *rand.Rand) string {
	at := town.roads[r.IntN(len(town.roads))].from
	nodes := []rune{at}
	for range 2 + r.IntN(20) {
		var next []rune
		for _, road := range town.roads {
			if road.from == at && road.isOpen {
				next = append(next, road.to)
			}
		}
		if len(next) == 0 {
			break
		}
		at = next[r.IntN(len(next))]
		nodes = append(nodes, at)
	}
	return string(nodes)
}

func TestStepsCoverThePath(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 21))
		town := newRandomTown(t, r)
		path := town.walk(r)
		stretches := town.stretches(t, path)
		if len(stretches) == 0 {
			continue
		}
		for _, mode := range []route.Mode{route.Car, route.Foot, route.Bike} {
			checkSteps(t, fmt.Sprintf("seed %d, %s, %s", seed, mode, path), Steps(mode, stretches), stretches)
		}
	}
}

// checkSteps holds what is true of the steps of any path.
func checkSteps(t *testing.T, name string, steps []route.Step, stretches []Stretch) {
	t.Helper()
	if steps[0].Maneuver.Type != route.Depart || steps[len(steps)-1].Maneuver.Type != route.Arrive {
		t.Errorf("%s: begins with %s and ends with %s", name, steps[0].Maneuver.Type, steps[len(steps)-1].Maneuver.Type)
	}
	var got, want struct {
		distance, duration float64
		points             []geo.Point
	}
	for _, s := range steps {
		got.distance += s.Distance
		got.duration += s.Duration
		got.points = copyLines([]Stretch{{Points: got.points}, {Points: s.Geometry}})
		if s.Maneuver.Type == "" || s.Maneuver.Point != s.Geometry[0] || Text(French, s) == "" {
			t.Errorf("%s: got %+v", name, s.Maneuver)
		}
	}
	for _, s := range stretches {
		want.distance += s.Distance
		want.duration += s.Duration
		want.points = copyLines([]Stretch{{Points: want.points}, {Points: s.Points}})
	}
	if math.Abs(got.distance-want.distance) > 1e-6 || math.Abs(got.duration-want.duration) > 1e-6 {
		t.Errorf("%s: got %v m, %v s, want %v, %v", name, got.distance, got.duration, want.distance, want.duration)
	}
	if !slices.Equal(got.points, want.points) {
		t.Errorf("%s: got %d points, want %d", name, len(got.points), len(want.points))
	}
}

func TestAStepIsMadeOfPathsWithoutLength(t *testing.T) {
	t.Parallel()
	at, near := geo.Point{Lon: 4.85, Lat: 45.75}, geo.Point{Lon: 4.86, Lat: 45.75}
	for name, stretches := range map[string][]Stretch{
		"one position":      {{Points: []geo.Point{at}}},
		"the same position": {{Points: []geo.Point{at, at}}},
		"before a road":     {{Points: []geo.Point{at}}, {Points: []geo.Point{at, near}, Distance: 780}},
		"behind a road":     {{Points: []geo.Point{near, at}, Distance: 780}, {Points: []geo.Point{at}}},
		"between roads": {
			{Points: []geo.Point{near, at}, Distance: 780}, {Points: []geo.Point{at}}, {Points: []geo.Point{at, near}},
		},
		"into a roundabout":     {{Points: []geo.Point{at}}, {Road: Road{IsRoundabout: true}, Points: []geo.Point{at}}},
		"within one roundabout": {{Road: Road{IsRoundabout: true}, Points: []geo.Point{at}}},
	} {
		checkSteps(t, name, Steps(route.Car, stretches), stretches)
	}
	if steps := Steps(route.Car, nil); steps != nil {
		t.Errorf("got %v of no stretches", steps)
	}
}

func TestASideOfTheDestinationIsTold(t *testing.T) {
	t.Parallel()
	north := []geo.Point{{Lon: 4.85, Lat: 45.75}, {Lon: 4.85, Lat: 45.751}}
	for _, tt := range []struct {
		rule     string
		position geo.Point
		want     route.Modifier
	}{
		{"east of a road to the north", geo.Point{Lon: 4.8502, Lat: 45.751}, route.Right},
		{"west of it", geo.Point{Lon: 4.8498, Lat: 45.751}, route.Left},
		{"on it", geo.Point{Lon: 4.850001, Lat: 45.751}, ""},
		{"ahead", geo.Point{Lon: 4.85, Lat: 45.752}, ""},
		{"behind", geo.Point{Lon: 4.85, Lat: 45.7505}, ""},
	} {
		if got := Side(north, tt.position); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.rule, got, tt.want)
		}
	}
	if got := Side(north[:1], north[1]); got != "" {
		t.Errorf("of a single position: got %q", got)
	}
}

func TestManeuversHaveTheirBearings(t *testing.T) {
	t.Parallel()
	town := newTown(t, profile.Car, `
    c
    |
a---b---d`, "abd\ncb")
	steps := Steps(route.Car, town.stretches(t, "abc"))
	for i, want := range [][2]float64{{90, 90}, {90, 0}, {0, 0}} {
		got := [2]float64{math.Round(steps[i].Maneuver.BearingBefore), math.Round(steps[i].Maneuver.BearingAfter)}
		if got[1] == 360 {
			got[1] = 0
		}
		if i != 0 && got != want || i == 0 && got[1] != want[1] {
			t.Errorf("step %d: got %v, want %v", i, got, want)
		}
	}
}

func TestLinesInOnePieceOfMemoryAreJoinedWithoutACopy(t *testing.T) {
	t.Parallel()
	at := func(i int) geo.Point { return geo.Point{Lon: float64(i)} }
	points := []geo.Point{at(0), at(1), at(2), at(3), at(3), at(4)}
	one := []Stretch{{Points: points[0:3]}, {Points: points[2:4]}, {Points: points[3:5]}, {Points: points[4:6]}}
	apart := make([]Stretch, len(one))
	for i := range one {
		apart[i].Points = slices.Clone(one[i].Points)
	}
	mixed := []Stretch{one[0], apart[1], one[2], one[3]}
	want := copyLines(apart)
	for name, stretches := range map[string][]Stretch{"in one piece": one, "apart": apart, "mixed": mixed} {
		for end := range len(stretches) + 1 {
			if got, want := joinLines(stretches[:end]), copyLines(apart[:end]); !slices.Equal(got, want) {
				t.Errorf("%s: of %d stretches got %v, want %v", name, end, got, want)
			}
		}
	}
	if got := joinLines(one); &got[0] != &points[0] || &append(got, at(9))[0] == &points[0] {
		t.Error("the line is a copy, or what is appended to it is written behind it")
	}
	if !slices.Equal(want, points) {
		t.Errorf("got %v, want %v", want, points)
	}
}
