package route

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"lieudit/cmd/bench/measure"
	"lieudit/eventstore/deadlinetest"
	"lieudit/queries/route"
	"lieudit/queries/route/routerprocess"
	"lieudit/queries/route/routertest"
	"lieudit/schemas/geo"
)

// fakeRouter gives every question the same answer: one route, the durations, and a square of one degree as the area within reach.
type fakeRouter struct {
	route.Router // nil: no other method is called
	err          error
	durations    []float64
}

func (f fakeRouter) Route(context.Context, route.Query) (route.Answer, error) {
	return route.Answer{Routes: []route.Route{{Distance: 1000, Duration: 100}}}, f.err
}

func (f fakeRouter) Matrix(context.Context, route.MatrixQuery) (route.Matrix, error) {
	return route.Matrix{Durations: [][]float64{f.durations}}, f.err
}

func (f fakeRouter) Isochrone(context.Context, route.IsochroneQuery) (route.Isochrone, error) {
	square := []geo.Point{{Lon: 2, Lat: 46}, {Lon: 3, Lat: 46}, {Lon: 3, Lat: 47}, {Lon: 2, Lat: 47}, {Lon: 2, Lat: 46}}
	return route.Isochrone{Areas: []route.Area{{{square}}}}, f.err
}

// askRoute is a task that asks for a route.
var askRoute = task{"route", func(ctx context.Context, r route.Router) error {
	_, err := r.Route(ctx, route.Query{})
	return err
}}

func TestErrorsOfAPeerAreCountedAndThoseOfTheOwnEngineEndTheRun(t *testing.T) {
	t.Parallel()
	unavailable := fmt.Errorf("no answer: %w", route.ErrUnavailable)
	for _, c := range []struct {
		name       string
		router     namedRouter
		wantErr    error
		wantFailed bool
	}{
		{"a peer that answers", namedRouter{"OSRM", fakeRouter{}, true}, nil, false},
		{"a peer that fails", namedRouter{"OSRM", fakeRouter{err: unavailable}, true}, nil, true},
		{"a peer that cannot", namedRouter{"OSRM", fakeRouter{err: route.ErrUnsupported}, true}, route.ErrUnsupported, false},
		{"the own engine", namedRouter{"own", fakeRouter{err: unavailable}, false}, route.ErrUnavailable, false},
	} {
		f, err := askRoute.measure(t.Context(), c.router, time.Millisecond)
		failed := f.Extra["errors"]
		if !errors.Is(err, c.wantErr) || (failed > 0) != c.wantFailed || failed > maxErrors {
			t.Errorf("%s: got %+v, %v, want %v and errors %v", c.name, f, err, c.wantErr, c.wantFailed)
		}
		if hasAnswers := err == nil && !c.wantFailed; (f.Samples > 0) != hasAnswers {
			t.Errorf("%s: got %d answers", c.name, f.Samples)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	peer := namedRouter{"OSRM", fakeRouter{err: context.Canceled}, true}
	if _, err := askRoute.measure(ended, peer, time.Millisecond); !errors.Is(err, context.Canceled) {
		t.Errorf("a run that was ended goes on: %v", err)
	}
}

func TestRoutesThatAPeerDoesNotAnswerAreCounted(t *testing.T) {
	t.Parallel()
	own := namedRouter{"own", fakeRouter{}, false}
	var c comparison
	for _, err := range []error{nil, route.ErrUnavailable, route.ErrNoRoute, &route.OffRoadError{}} {
		if err := c.compare(t.Context(), own, namedRouter{"OSRM", fakeRouter{err: err}, true}, route.Query{}); err != nil {
			t.Fatal(err)
		}
	}
	if c.errors != 1 || c.onlyOne != 2 || len(c.ratios) != 1 || c.near != 1 {
		t.Errorf("got %+v", c)
	}
}

func TestAnAreaAgreesWhereItHasWhatIsWithinTheLimit(t *testing.T) {
	t.Parallel()
	inside, outside := route.Bound{Point: geo.Point{Lon: 2.5, Lat: 46.5}}, route.Bound{Point: geo.Point{Lon: 3.5, Lat: 46.5}}
	var c areaComparison
	err := c.compare(t.Context(), fakeRouter{durations: []float64{100, 100, 900, 900, route.Unreachable, 545, 655}},
		areaQuestion{positions: []route.Bound{inside, outside, inside, outside, outside, outside, inside}})
	if want := (areaComparison{agree: 3, counted: 5, within: 2, nearLimit: 2}); err != nil || c != want {
		t.Errorf("got %+v, %v, want %+v", c, err, want)
	}
}

func TestServersThatAreStartedAreMeasuredBesideTheOwnEngine(t *testing.T) {
	t.Parallel()
	for _, engine := range []string{routerprocess.OSRM, routerprocess.Valhalla} {
		routertest.FindPrograms(t, engine)
	}
	seen := map[string]measure.Figure{}
	out := measure.Output{
		Progress: func(string, int, int) {},
		Report: func(f measure.Figure) error {
			seen[f.Label("what")+"|"+f.Label("router")+f.Label("compared with")] = f
			return nil
		},
	}
	o := Options{
		File: routertest.WriteTown(t), Programs: routertest.FindPrograms(t, routerprocess.OSRM), Pairs: 3, Sites: 20,
		FigureDuration: time.Millisecond, Seed: 1,
	}
	if err := Run(deadlinetest.Context(t, 5*time.Minute), t.TempDir(), o, out); err != nil {
		t.Fatal(err)
	}
	for _, router := range []string{"own", "OSRM", "Valhalla"} {
		if f := seen["import|"+router]; f.Value <= 0 || f.Bytes <= 0 || f.Extra["peak MiB"] <= 0 {
			t.Errorf("%s: the import is %+v", router, f)
		}
		if f := seen["matrix 100 × 100|"+router]; f.Samples == 0 || f.Extra["errors"] != 0 {
			t.Errorf("%s: the matrix is %+v", router, f)
		}
	}
	areas := 0
	for name, f := range seen {
		if strings.HasPrefix(name, "isochrone 10 min agrees") && f.Extra["positions"] > 0 {
			areas++
		}
	}
	if areas != 2 || seen["|OSRM"].Unit == "" || seen["|Valhalla"].Unit == "" {
		t.Errorf("%d routers have areas, of 2, and the figures are %v", areas, seen)
	}
}
