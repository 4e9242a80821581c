package live

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"lieudit/queries/mappedfile"
	"lieudit/queries/route"
	"lieudit/queries/route/network"
	"lieudit/queries/route/osmpbf"
	"lieudit/schemas/geo"
)

// Places of the maps: home and work are joined by a straight road, or by one over a hill.
var (
	home = geo.Point{Lon: 0, Lat: 0}
	hill = geo.Point{Lon: 0.001, Lat: 0.001}
	work = geo.Point{Lon: 0.002, Lat: 0}
	farm = geo.Point{Lon: 0.003, Lat: 0} // beyond work on both maps
)

// The length of a route from home to work on the two maps, in metres.
const (
	straight = 222.6
	hilly    = 314.8
)

// writeMap writes a map of a road from home to work through nodes by their numbers from 1 on, and of a lane to the farm.
func writeMap(t *testing.T, road ...int64) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "map.osm.pbf")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	out := osmpbf.NewWriter(file, osmpbf.Header{})
	for i, p := range []geo.Point{home, hill, work, farm} {
		n := osmpbf.Node{ID: int64(i + 1), Lon: int32(math.Round(p.Lon * 1e7)), Lat: int32(math.Round(p.Lat * 1e7))}
		err = errors.Join(err, out.WriteNode(n))
	}
	for i, nodes := range [][]int64{road, {3, 4}} {
		tags := osmpbf.Tags{{Key: "highway", Value: "residential"}}
		err = errors.Join(err, out.WriteWay(osmpbf.Way{ID: int64(i + 1), Nodes: nodes, Tags: tags}))
	}
	if err := errors.Join(err, out.Close(), file.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

// buildNetwork builds the network of a map with a road through nodes and returns its path.
func buildNetwork(t *testing.T, road ...int64) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "network")
	if _, err := network.Build(t.Context(), path, writeMap(t, road...), network.Options{}); err != nil {
		t.Fatal(err)
	}
	return path
}

func buildStraight(t *testing.T) string { t.Helper(); return buildNetwork(t, 1, 3) }

func buildHilly(t *testing.T) string { t.Helper(); return buildNetwork(t, 1, 2, 3) }

// open opens a network that a holder is to own.
func open(t *testing.T, path string) *network.Network {
	t.Helper()
	n, err := network.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func isClosed(t *testing.T, n *network.Network) bool {
	t.Helper()
	return errors.Is(n.Verify(t.Context()), os.ErrClosed)
}

// bounds are positions without a street.
func bounds(points ...geo.Point) (b []route.Bound) {
	for _, p := range points {
		b = append(b, route.Bound{Point: p})
	}
	return b
}

func byCar() route.Profile { return route.Profile{Mode: route.Car, Optimization: route.Fastest} }

func homeToWork() route.Query { return route.Query{Profile: byCar(), Bounds: bounds(home, work)} }

// checkDistance checks what the route from home to work has.
func checkDistance(t *testing.T, r route.Router, want float64) {
	t.Helper()
	a, err := r.Route(t.Context(), homeToWork())
	if err != nil {
		t.Error(err)
	} else if got := a.Routes[0].Distance; math.Abs(got-want) > 1 {
		t.Errorf("from home to work %.1f m, want %.1f m", got, want)
	}
}

// questions has one question of every kind that reads the file.
func questions() map[string]func(context.Context, route.Router) error {
	return map[string]func(context.Context, route.Router) error{
		"route": func(ctx context.Context, r route.Router) error {
			_, err := r.Route(ctx, homeToWork())
			return err
		},
		"matrix": func(ctx context.Context, r route.Router) error {
			_, err := r.Matrix(ctx, route.MatrixQuery{Profile: byCar(), Origins: bounds(home), Destinations: bounds(work, farm)})
			return err
		},
		"nearest": func(ctx context.Context, r route.Router) error {
			_, err := r.Nearest(ctx, route.NearestQuery{Profile: byCar(), Origin: bounds(home)[0], Destinations: bounds(farm, work), Limit: 1})
			return err
		},
		"isochrone": func(ctx context.Context, r route.Router) error {
			q := route.IsochroneQuery{Profile: byCar(), Center: bounds(home)[0], Cost: route.ByDistance, Limits: []float64{250}}
			_, err := r.Isochrone(ctx, q)
			return err
		},
	}
}

// describe asks for the network, which reads nothing of the file.
func describe(ctx context.Context, r route.Router) error {
	_, err := r.Network(ctx)
	return err
}

func TestAQuestionKeepsTheNetworkItBeganOn(t *testing.T) {
	t.Parallel()
	var n Router
	first, second := open(t, buildStraight(t)), open(t, buildHilly(t))
	n.Swap(first)
	_, err := mappedfile.Query(&n.own, func(e route.Router) (struct{}, error) {
		checkDistance(t, e, straight)
		n.Swap(second)
		if checkDistance(t, e, straight); isClosed(t, first) {
			t.Error("it is closed under its reader")
		}
		checkDistance(t, &n, hilly)
		return struct{}{}, nil
	})
	if err != nil {
		t.Error(err)
	}
	if !isClosed(t, first) {
		t.Error("its last reader left it open")
	}
	if n.Swap(nil); !isClosed(t, second) {
		t.Error("it is open, and nothing is served")
	}
}

func TestSwapsDuringQuestionsLoseNoAnswer(t *testing.T) {
	t.Parallel()
	var n Router
	path := buildStraight(t)
	n.Swap(open(t, path))
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for range 500 {
				checkDistance(t, &n, straight)
			}
		})
	}
	for range 20 {
		n.Swap(open(t, path))
	}
	readers.Wait()
	n.Swap(nil)
}

func TestATruncatedFileIsWithdrawnByEveryQuestion(t *testing.T) {
	t.Parallel()
	for name, question := range questions() {
		var n Router
		path := buildStraight(t)
		served := open(t, path)
		n.Swap(served)
		if err := question(t.Context(), &n); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := os.Truncate(path, 0); err != nil {
			t.Fatal(err)
		}
		for _, question := range []func(context.Context, route.Router) error{question, question, describe} {
			if err := question(t.Context(), &n); !errors.Is(err, route.ErrUnavailable) || !errors.Is(err, network.ErrDamaged) {
				t.Errorf("%s: %v, want %v for %v", name, err, route.ErrUnavailable, network.ErrDamaged)
			}
		}
		if !isClosed(t, served) {
			t.Errorf("%s: the damaged network is open", name)
		}
		n.Swap(open(t, buildHilly(t)))
		checkDistance(t, &n, hilly)
		n.Swap(nil)
	}
}

func TestAFileTruncatedUnderManyReadersIsUnavailableToAll(t *testing.T) {
	t.Parallel()
	var n Router
	path := buildStraight(t)
	served := open(t, path)
	n.Swap(served)
	var begun, readers sync.WaitGroup
	for range 2 {
		for name, question := range questions() {
			begun.Add(1)
			readers.Go(func() {
				err := question(t.Context(), &n)
				if begun.Done(); err != nil {
					t.Errorf("%s before the damage: %v", name, err)
				}
				for err == nil {
					err = question(t.Context(), &n)
				}
				if !errors.Is(err, route.ErrUnavailable) {
					t.Errorf("%s: %v, want %v", name, err, route.ErrUnavailable)
				}
			})
		}
	}
	begun.Wait()
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	readers.Wait()
	if !isClosed(t, served) {
		t.Error("its last reader left it open")
	}
}

func TestWithoutANetworkEveryQuestionIsUnavailableForTheReason(t *testing.T) {
	t.Parallel()
	var n Router
	reason := errors.New("no such disk")
	all := questions()
	all["network"] = describe
	check := func(isWithdrawn bool) {
		t.Helper()
		for name, question := range all {
			err := question(t.Context(), &n)
			if !errors.Is(err, route.ErrUnavailable) || errors.Is(err, reason) != isWithdrawn {
				t.Errorf("%s: %v, want %v, for the reason: %v", name, err, route.ErrUnavailable, isWithdrawn)
			}
		}
	}
	check(false)
	n.Withdraw(reason)
	check(true)
	n.Swap(open(t, buildStraight(t)))
	checkDistance(t, &n, straight)
	n.Swap(nil)
	check(false)
}

func TestErrorsOfTheEngineAreNotAnUnavailableNetwork(t *testing.T) {
	t.Parallel()
	var n Router
	n.Swap(open(t, buildStraight(t)))
	defer n.Swap(nil)
	q := route.Query{Profile: byCar(), Bounds: bounds(home, geo.Point{Lon: 1, Lat: 1})}
	_, err := n.Route(t.Context(), q)
	if off, ok := errors.AsType[*route.OffRoadError](err); !ok || off.Bound != 1 || errors.Is(err, route.ErrUnavailable) {
		t.Errorf("far from any road: %v, want bound 1", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := n.Route(ctx, homeToWork()); !errors.Is(err, context.Canceled) || errors.Is(err, route.ErrUnavailable) {
		t.Errorf("canceled: %v", err)
	}
	checkDistance(t, &n, straight)
}
