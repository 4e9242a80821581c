package route

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"lieudit/cmd/bench/measure"
	"lieudit/eventstore/deadlinetest"
	"lieudit/queries/route"
	"lieudit/queries/route/osmpbf"
	"lieudit/queries/route/routerprocess"
	"lieudit/queries/route/routertest"
	"lieudit/schemas/geo"
)

// drawnRoads returns a map of roads, one from each line, on a grid of hundredths of a degree: "00 10 20 highway=primary toll=yes".
func drawnRoads(lines ...string) *mapRoads {
	m := newMapRoads()
	nodes := map[int64]geo.Point{}
	for _, line := range lines {
		var w osmpbf.Way
		for _, field := range strings.Fields(line) {
			if key, value, isTag := strings.Cut(field, "="); isTag {
				w.Tags = append(w.Tags, osmpbf.Tag{Key: key, Value: value})
				continue
			}
			id := int64(field[0])<<8 | int64(field[1])
			nodes[id] = at(field)
			w.Nodes = append(w.Nodes, id)
		}
		if len(w.Nodes) == 1 {
			m.addGate(nodes[w.Nodes[0]], w.Tags.Get("barrier"), w.Tags)
			continue
		}
		m.addWay(w, nodes)
	}
	return m
}

// at returns a position by its two digits: hundredths of a degree east and north.
func at(digits string) geo.Point {
	return geo.Point{Lon: float64(digits[0]-'0') / 100, Lat: float64(digits[1]-'0') / 100}
}

// along returns the line through positions.
func along(digits string) (line []geo.Point) {
	for _, d := range strings.Fields(digits) {
		line = append(line, at(d))
	}
	return line
}

// answering returns an answer with one route.
func answering(line string, distance, duration float64) route.Answer {
	points := along(line)
	return route.Answer{
		Accesses: []route.Access{{Point: points[0]}, {Point: points[len(points)-1]}},
		Routes:   []route.Route{{Distance: distance, Duration: duration, Geometry: points}},
	}
}

func TestAPairHasOneVerdict(t *testing.T) {
	t.Parallel()
	type answer struct {
		distance, duration float64
		err                error
	}
	for _, c := range []struct {
		rule                string
		own, osrm, valhalla answer
		want                verdict
	}{
		{"all alike", answer{1000, 100, nil}, answer{1000, 100, nil}, answer{1000, 100, nil}, agrees},
		{"longer than one alone", answer{1200, 100, nil}, answer{1000, 100, nil}, answer{1190, 100, nil}, agrees},
		{"longer than both", answer{1200, 100, nil}, answer{1000, 100, nil}, answer{1080, 100, nil}, longer},
		{"a short way longer by some metres", answer{120, 10, nil}, answer{100, 10, nil}, answer{100, 10, nil}, agrees},
		{"shorter than both", answer{900, 100, nil}, answer{1000, 100, nil}, answer{1080, 100, nil}, shorter},
		{"none where both have one", answer{err: route.ErrNoRoute}, answer{1000, 100, nil}, answer{1080, 100, nil}, noResults},
		{"off the road where both have one", answer{err: &route.OffRoadError{}}, answer{1000, 100, nil}, answer{1080, 100, nil}, noResults},
		{"a peer has none", answer{err: route.ErrNoRoute}, answer{1000, 100, nil}, answer{err: route.ErrNoRoute}, peersDisagree},
		{"the same way in another time", answer{5000, 500, nil}, answer{5010, 400, nil}, answer{5000, 300, nil}, otherDuration},
		{"the same way, a few seconds apart", answer{1000, 130, nil}, answer{1000, 100, nil}, answer{1000, 100, nil}, agrees},
		{"the same long way, some per cent apart", answer{90_000, 5000, nil}, answer{90_000, 4800, nil}, answer{90_000, 4000, nil}, agrees},
		{"another way in another time", answer{5300, 500, nil}, answer{5000, 400, nil}, answer{5000, 300, nil}, agrees},
	} {
		var p answeredPair
		for i, a := range []answer{c.own, c.osrm, c.valhalla} {
			p.errs[i] = a.err
			if a.err == nil {
				p.answers[i] = answering("00 10", a.distance, a.duration)
			}
		}
		if got := p.verdict(); got != c.want {
			t.Errorf("%s: got %s, want %s", c.rule, got, c.want)
		}
	}
}

// viaRouter answers a question through points with one route.
type viaRouter struct {
	route.Router
	distance float64
	err      error
}

func (r viaRouter) Route(context.Context, route.Query) (route.Answer, error) {
	return answering("00 10", r.distance, 200), r.err
}

func TestTheKindOfADifferenceIsTheFirstThatHolds(t *testing.T) {
	t.Parallel()
	roads := drawnRoads(
		"00 30 highway=primary", "00 03 33 30 highway=residential", "01 31 highway=service access=private", "02 32 route=ferry",
		"04 34 highway=track", "05 35 highway=service motor_vehicle=destination", "06 16 26 highway=residential", "16 barrier=gate access=private",
		"07 37 highway=service", "08 38 highway=residential motor_vehicle=no",
	)
	away := func(a route.Answer, degrees float64) route.Answer {
		a.Accesses = slices.Clone(a.Accesses)
		a.Accesses[1].Lat += degrees
		return a
	}
	direct := answering("00 30", 3000, 300)
	moved := away(direct, 0.001) // by a peer that ignores the nearest road
	moved.Accesses[1].Distance = 100
	farther, beyond := away(direct, 0.001), away(direct, -0.001)
	farther.Accesses[1].Distance, beyond.Accesses[1].Distance = 100, 100
	south := geo.Point{Lon: 0.03, Lat: -0.0005} // of the destination
	roads.addWalls(osmpbf.Way{Nodes: []int64{1, 2}, Tags: osmpbf.Tags{{Key: "barrier", Value: "wall"}}},
		map[int64]geo.Point{1: {Lon: south.Lon - 0.001, Lat: south.Lat}, 2: {Lon: south.Lon + 0.001, Lat: south.Lat}})
	for _, c := range []struct {
		rule      string
		own, osrm route.Answer
		ownErr    error
		via       viaRouter
		want      string
	}{
		{"ends that meet other roads as near", away(direct, 0.001), direct, nil, viaRouter{}, "as near"},
		{"an end on a road that is not the nearest", farther, direct, nil, viaRouter{}, "second road"},
		{"an end on a road beyond a wall", beyond, direct, nil, viaRouter{}, "second road, beyond a wall"},
		{"an end that the peers move away", direct, moved, nil, viaRouter{}, "peers farther"},
		{"ends a step apart", away(direct, 0.00001), direct, nil, viaRouter{distance: 3000}, "choice"},
		{"left the other way round", answering("00 03 30", 6000, 300), answering("00 00 30", 3000, 300), nil, viaRouter{distance: 3000}, "choice"},
		{"turned", answering("10 00 03 33 30 20", 6000, 300), answering("10 20", 1000, 300), nil, viaRouter{}, "direction"},
		{"a private road", answering("01 31", 3000, 300), answering("01 01 31", 3000, 300), nil, viaRouter{distance: 3000}, "choice"},
		{"OSRM on a private road", answering("01 00 30 31", 6000, 300), answering("01 31", 3000, 300), nil, viaRouter{}, "restricted"},
		{"OSRM on a road of destinations", answering("05 03 33 35", 6000, 300), answering("05 35", 3000, 300), nil, viaRouter{}, "restricted"},
		{"OSRM on a closed road", answering("08 03 33 38", 6000, 300), answering("08 38", 3000, 300), nil, viaRouter{}, "forbidden"},
		{"OSRM on a ferry", answering("02 00 30 32", 6000, 300), answering("02 32", 3000, 300), nil, viaRouter{}, "ferry"},
		{"OSRM on a track", answering("04 03 33 34", 6000, 300), answering("04 34", 3000, 300), nil, viaRouter{}, "track or path"},
		{"OSRM through a gate", answering("06 03 33 26", 6000, 300), answering("06 16 26", 3000, 300), nil, viaRouter{}, "gate"},
		{"what the own engine cannot drive", answering("00 03 33 30", 9000, 900), direct, nil, viaRouter{distance: 9000}, "closed"},
		{"what the own engine cannot reach", answering("00 03 33 30", 9000, 900), direct, nil, viaRouter{err: route.ErrNoRoute}, "closed"},
		{"what it drives more slowly", answering("00 03 33 30", 9000, 900), direct, nil, viaRouter{distance: 3010}, "choice"},
		{"none, through a gate", route.Answer{}, answering("06 16 26", 3000, 300), route.ErrNoRoute, viaRouter{err: route.ErrNoRoute}, "gate"},
		{"none, though the way is open", route.Answer{}, direct, route.ErrNoRoute, viaRouter{distance: 3000}, "access"},
		{"none, as the way is closed", route.Answer{}, direct, route.ErrNoRoute, viaRouter{err: route.ErrNoRoute}, "closed"},
		{"off the road", route.Answer{}, direct, &route.OffRoadError{Bound: 1}, viaRouter{}, "access"},
	} {
		p := answeredPair{points: [2]geo.Point{at("00"), at("30")}, answers: [3]route.Answer{c.own, c.osrm, c.osrm}, errs: [3]error{c.ownErr}}
		j := judge{own: c.via, roads: roads}
		kind, detail, err := j.explain(t.Context(), &p)
		if err != nil || kind != c.want || detail == "" {
			t.Errorf("%s: got %q (%s), %v, want %q", c.rule, kind, detail, err, c.want)
		}
	}
}

func TestTheKindOfAChoiceIsWhatTheOwnEngineThinksOfBothWays(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule      string
		own, osrm reckoning
		want      string
	}{
		{"one way", reckoning{isOpen: true, driving: 100, turns: 10}, reckoning{isOpen: true, driving: 100, turns: 10}, "told time"},
		{"a way that is as fast", reckoning{isOpen: true, driving: 100}, reckoning{isOpen: true, driving: 103}, "choice, like time"},
		{"a way that is slower", reckoning{isOpen: true, driving: 100}, reckoning{isOpen: true, driving: 120, turns: 10}, "choice, faster"},
		{"a way on worse roads", reckoning{isOpen: true, driving: 100}, reckoning{isOpen: true, driving: 80, penalty: 40}, "choice, better roads"},
		{"a way that is better", reckoning{isOpen: true, driving: 100}, reckoning{isOpen: true, driving: 90}, "worse by own reckoning"},
		{"a forbidden turn", reckoning{isOpen: true, driving: 100}, reckoning{reason: turnForbidden}, "forbidden turn"},
		{"a way over nodes of no own road", reckoning{isOpen: true, driving: 100}, reckoning{reason: "closed road"}, ""},
		{"an own way that is not understood", reckoning{reason: "closed road"}, reckoning{isOpen: true, driving: 90}, ""},
	} {
		p := answeredPair{answers: [3]route.Answer{answering("00 10", 1000, 100), answering("00 10", 1000, 100)}}
		kind, detail := explainReckoning(&p, c.own, c.osrm, &usage{}, &usage{})
		if kind != c.want || (detail == "") != (c.want == "") {
			t.Errorf("%s: got %q (%s), want %q", c.rule, kind, detail, c.want)
		}
	}
}

func TestAFileOfPairsIsReadLineByLine(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "pairs.txt")
	for text, want := range map[string]string{
		"# from, to\n\n48.9,2.49 48.8,2.5\n-1,-2 3,4\n": "",
		"48.9,2.49\n":                    "pairs.txt:1: \"48.9,2.49\" is not of the form lat,lon lat,lon",
		"48.9,2.49 48.8,2.5\n1,2 3,x":    "pairs.txt:2: \"3,x\" is not of the form lat,lon",
		"91,2 3,4":                       "is not of the form lat,lon",
		"NaN,2 3,4":                      "is not of the form lat,lon",
		"# nothing\n":                    "has no pairs",
		"48.9,2.49 48.8,2.5 47.1,2.0\n1": "is not of the form lat,lon lat,lon",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		pairs, err := ReadPairs(path)
		switch {
		case want == "" && (err != nil || len(pairs) != 2 || pairs[0][0] != geo.Point{Lon: 2.49, Lat: 48.9} || pairs[1][1] != geo.Point{Lon: 4, Lat: 3}):
			t.Errorf("%q: got %v, %v", text, pairs, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}

func TestPairsAreComparedWithBothPeers(t *testing.T) {
	t.Parallel()
	for _, engine := range []string{routerprocess.OSRM, routerprocess.Valhalla} {
		routertest.FindPrograms(t, engine)
	}
	var seen []measure.Figure
	out := measure.Output{
		Progress: func(string, int, int) {},
		Report:   func(f measure.Figure) error { seen = append(seen, f); return nil },
	}
	o := PairOptions{File: routertest.WriteTown(t), Programs: routertest.FindPrograms(t, routerprocess.OSRM), Random: 40, Seed: 1, Worst: 3}
	if err := ComparePairs(deadlinetest.Context(t, 5*time.Minute), t.TempDir(), o, out); err != nil {
		t.Fatal(err)
	}
	counts := seen[0].Extra
	sum := seen[0].Value / 100 * counts["both peers route"]
	for _, name := range []string{"no_results", "longer by 10 %", "shorter by 10 %", "other duration"} {
		sum += counts[name]
	}
	if counts["pairs"] != 40 || counts["both peers route"] == 0 || int(sum+0.5) != int(counts["both peers route"]) {
		t.Errorf("got %+v", seen[0])
	}
	listed := 0
	for _, f := range seen {
		if f.Label("what differs") != "" {
			listed++
		}
	}
	if differ := counts["both peers route"] * (100 - seen[0].Value) / 100; listed > 12 || (listed > 0) != (differ > 0.5) {
		t.Errorf("%d pairs are listed of %.1f that differ", listed, differ)
	}
}
