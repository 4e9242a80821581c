// Package routertest is the contract of route.Router as tests: a town of some seventy roads, and rules that each state what a
// router does there. The test of a router names the rules that it breaks, with the reason, and the suite fails once the router
// keeps one of them, so that the list stays true.
//
//	drawing ── readTown ──► town ── write ──► PBF ── newRouter ──► route.Router ──► rules, each one subtest
//
// StartOSRM and StartValhalla serve a PBF with real servers of these programs, for the tests of the adapters.
package routertest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"lieudit/eventstore/deadlinetest"
	"lieudit/queries/route"
	"lieudit/schemas/geo"
)

// ruleLimit is how long one rule may take.
const ruleLimit = time.Minute

// Options say how a router differs from the contract.
type Options struct {
	// Tolerance is the share by which distances may differ from the lengths of the drawn roads: engines use different models of the
	// Earth and round their coordinates and results.
	Tolerance float64
	// MatrixTolerance is the share by which the cells of a matrix may differ from routes: 0 except for foreign engines.
	MatrixTolerance float64
	// Cannot maps the rules that the router breaks to the reasons. The suite fails if the router keeps one after all.
	Cannot map[string]string
}

// WriteTown writes the town as a PBF into a folder of the test's, and returns its path.
func WriteTown(t testing.TB) string {
	t.Helper()
	town, err := readTown()
	if err != nil {
		t.Fatal(err)
	}
	return town.write(t)
}

// Bounds returns bounds without streets at positions of a quarter of the town, such as "0A B AB@20".
func Bounds(t testing.TB, quarter, positions string) []route.Bound {
	t.Helper()
	town, err := readTown()
	if err != nil {
		t.Fatal(err)
	}
	bounds, err := (&suite{town: town}).bounds(quarter, positions)
	if err != nil {
		t.Fatal(err)
	}
	return bounds
}

// rule is something that a router does. check returns an error that says what the router did instead.
type rule struct {
	name  string
	check func(context.Context, *suite) error
}

// suite is a router and the town that it serves.
type suite struct {
	*town
	router route.Router
	Options
}

// Test runs the contract on the router that newRouter makes of a PBF.
func Test(t *testing.T, newRouter func(t testing.TB, pbf string) route.Router, o Options) {
	town, err := readTown()
	if err != nil {
		t.Fatal(err)
	}
	s := &suite{town, newRouter(t, town.write(t)), o}
	known := map[string]bool{}
	for _, r := range allRules() {
		known[r.name] = true
		t.Run(r.name, func(t *testing.T) { s.run(t, r) })
	}
	for name := range o.Cannot {
		if !known[name] {
			t.Errorf("no rule is called %q", name)
		}
	}
}

// run runs a rule. The rules of one router run one after the other: some servers have one thread.
func (s *suite) run(t *testing.T, r rule) {
	err := r.check(deadlinetest.Context(t, ruleLimit), s)
	reason, isKnown := s.Cannot[r.name]
	switch {
	case isKnown && err == nil:
		t.Errorf("the router keeps this rule, and its test says that it cannot: %s", reason)
	case isKnown:
		t.Logf("known: %s (%v)", reason, err)
	case err != nil:
		t.Error(err)
	}
}

// allRules are the rules, in a good order for a reader.
func allRules() []rule {
	rules := make([]rule, 0, 64)
	for _, j := range journeys {
		rules = append(rules, rule{j.rule, j.check})
	}
	rules = append(rules, answerRules()...)
	rules = append(rules, boundRules()...)
	rules = append(rules, matrixRules()...)
	return append(rules, areaRules()...)
}

// position returns a position of a quarter: "A" is a junction, "AB" the middle between two, "AB@20" 20 % of the way.
func (s *suite) position(quarter, text string) (geo.Point, error) {
	letters, share, hasShare := strings.Cut(text, "@")
	percent := 50.0
	if hasShare {
		if _, err := fmt.Sscan(share, &percent); err != nil {
			return geo.Point{}, err
		}
	}
	from, ok := s.points[quarter+"."+letters[:1]]
	to, ok2 := s.points[quarter+"."+letters[len(letters)-1:]]
	if !ok || !ok2 {
		return geo.Point{}, fmt.Errorf("nothing is at %s of %s", text, quarter)
	}
	return geo.Between(from, to, percent/100), nil
}

// positions returns several positions of a quarter, separated by spaces.
func (s *suite) positions(quarter, text string) (points []geo.Point, err error) {
	for field := range strings.FieldsSeq(text) {
		p, err := s.position(quarter, field)
		if err != nil {
			return nil, err
		}
		points = append(points, p)
	}
	return points, nil
}

// bounds returns bounds without streets at several positions.
func (s *suite) bounds(quarter, text string) ([]route.Bound, error) {
	points, err := s.positions(quarter, text)
	bounds := make([]route.Bound, len(points))
	for i, p := range points {
		bounds[i].Point = p
	}
	return bounds, err
}

// length returns the metres of a line.
func length(line []geo.Point) (metres float64) {
	for i := 1; i < len(line); i++ {
		metres += geo.Distance(line[i-1], line[i])
	}
	return metres
}

// isNear reports whether two distances are the same within the router's tolerance, and a metre for each end.
func (s *suite) isNear(got, want float64) bool { return math.Abs(got-want) <= 2+want*s.Tolerance }

// checkWhole checks what is true of every answer to a query.
func (s *suite) checkWhole(q route.Query, a route.Answer) error {
	if len(a.Accesses) != len(q.Bounds) || len(a.Routes) < 1 || len(a.Routes) > 1+q.Alternatives {
		return fmt.Errorf("%d accesses and %d routes for %d bounds", len(a.Accesses), len(a.Routes), len(q.Bounds))
	}
	for i, r := range a.Routes {
		if err := s.checkRoute(q, a, r); err != nil {
			return fmt.Errorf("route %d: %w", i, err)
		}
	}
	return nil
}

// checkRoute checks that the parts of a route add up.
func (s *suite) checkRoute(q route.Query, a route.Answer, r route.Route) error {
	var duration, distance float64
	for i, l := range r.Legs {
		duration, distance = duration+l.Duration, distance+l.Distance
		if q.Steps {
			if err := s.checkSteps(l); err != nil {
				return fmt.Errorf("leg %d: %w", i, err)
			}
		}
	}
	n, last := len(r.Geometry), len(a.Accesses)-1
	switch {
	case len(r.Legs) != len(q.Bounds)-1:
		return fmt.Errorf("%d legs for %d bounds", len(r.Legs), len(q.Bounds))
	case math.Abs(duration-r.Duration) > 1 || math.Abs(distance-r.Distance) > 1+s.Tolerance*distance:
		return fmt.Errorf("the legs make %.1f s, %.1f m, and the route %.1f s, %.1f m", duration, distance, r.Duration, r.Distance)
	case !q.Geometry:
		return errors.Join(unless(n == 0, "a geometry that nobody asked for"))
	case n == 0:
		return errors.New("no geometry")
	case !s.isNear(length(r.Geometry), r.Distance):
		return fmt.Errorf("the geometry has %.1f m, and the route %.1f m", length(r.Geometry), r.Distance)
	case geo.Distance(r.Geometry[0], a.Accesses[0].Point) > 3 || geo.Distance(r.Geometry[n-1], a.Accesses[last].Point) > 3:
		return errors.New("the geometry does not lead from the first access to the last")
	}
	return nil
}

// checkSteps checks that the steps of a leg begin with a departure, end with an arrival and add up to the leg.
func (s *suite) checkSteps(l route.Leg) error {
	n := len(l.Steps)
	if n < 2 || l.Steps[0].Maneuver.Type != route.Depart || l.Steps[n-1].Maneuver.Type != route.Arrive {
		return fmt.Errorf("%d steps that do not lead from a departure to an arrival", n)
	}
	var distance, duration float64
	for _, step := range l.Steps {
		distance, duration = distance+step.Distance, duration+step.Duration
	}
	if math.Abs(distance-l.Distance) > 2+s.Tolerance*l.Distance || math.Abs(duration-l.Duration) > 2 {
		return fmt.Errorf("the steps make %.1f s, %.1f m, and the leg %.1f s, %.1f m", duration, distance, l.Duration, l.Distance)
	}
	return unless(l.Steps[n-1].Distance == 0, "the arrival has a length")
}

// unless returns an error with the words unless the condition holds.
func unless(condition bool, words string) error {
	if condition {
		return nil
	}
	return errors.New(words)
}
