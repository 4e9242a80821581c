package route

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"lieudit/cmd/bench/measure"
	"lieudit/queries/route"
	"lieudit/queries/route/engine"
	"lieudit/queries/route/network"
	"lieudit/schemas/geo"
)

// PairOptions configure ComparePairs.
type PairOptions struct {
	File           string // the map, as PBF
	OSRM, Valhalla string // URLs of servers on the same map
	Programs       string // folder with the programs of servers without a URL
	Pairs          string // file of pairs, as ReadPairs reads it; "" draws Random pairs
	Random         int
	Junctions      int // compare pairs of this many junctions with a one-way street, instead of random pairs
	Seed           uint64
	Worst          int  // pairs listed for each verdict
	OverHTTP       bool // also measure times over HTTP
}

// ReadPairs reads a file of pairs, one a line: lat,lon lat,lon. It skips empty lines and those that begin with #.
func ReadPairs(path string) (pairs [][2]geo.Point, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for number := 1; lines.Scan(); number++ {
		text := strings.TrimSpace(lines.Text())
		if text == "" || text[0] == '#' {
			continue
		}
		pair, err := parsePair(text)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, number, err)
		}
		pairs = append(pairs, pair)
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(pairs) == 0 {
		return nil, fmt.Errorf("%s has no pairs", path)
	}
	return pairs, nil
}

func parsePair(text string) (pair [2]geo.Point, err error) {
	fields := strings.Fields(text)
	if len(fields) != 2 {
		return pair, fmt.Errorf("%q is not of the form lat,lon lat,lon", text)
	}
	for i, field := range fields {
		lat, lon, _ := strings.Cut(field, ",")
		var latErr, lonErr error
		pair[i].Lat, latErr = strconv.ParseFloat(lat, 64)
		pair[i].Lon, lonErr = strconv.ParseFloat(lon, 64)
		// A comparison with NaN is false, so NaN is outside too.
		if inRange := pair[i].Lat >= -90 && pair[i].Lat <= 90 && pair[i].Lon >= -180 && pair[i].Lon <= 180; errors.Join(latErr, lonErr) != nil || !inRange {
			return pair, fmt.Errorf("%q is not of the form lat,lon", field)
		}
	}
	return pair, nil
}

// ComparePairs compares our own engine's routes with those of real OSRM and Valhalla servers, pair by pair, and names the kinds of the worst
// differences. Then it times the pairs over HTTP.
func ComparePairs(ctx context.Context, dir string, o PairOptions, out measure.Output) (err error) {
	if o.Programs == "" && (o.OSRM == "" || o.Valhalla == "") {
		return errors.New("pairs are compared with both OSRM and Valhalla: --routers FOLDER, or --osrm URL and --valhalla URL")
	}
	roads, err := readMapRoads(ctx, o.File)
	if err != nil {
		return err
	}
	points, err := o.points(roads)
	if err != nil {
		return err
	}
	path := filepath.Join(dir, "bench.network")
	out.Progress("import: own", 0, 0)
	if _, err := network.Build(ctx, path, o.File, network.Options{}); err != nil {
		return err
	}
	n, err := network.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.Close()) }()
	quiet := measure.Output{Progress: out.Progress, Report: func(measure.Figure) error { return nil }}
	p, err := openPeers(ctx, dir, Options{File: o.File, OSRM: o.OSRM, Valhalla: o.Valhalla, Programs: o.Programs}, quiet)
	defer func() { err = errors.Join(err, p.stop()) }()
	if err != nil {
		return err
	}
	own := engine.New(n)
	pairs, err := askPairs(ctx, append([]namedRouter{{"own", own, false}}, p.routers...), points, out)
	if err != nil {
		return err
	}
	if err := reportPairs(ctx, &judge{own, roads, newWayReader(n.Layer(route.Car)).reckon}, pairs, o, out); err != nil {
		return err
	}
	if !o.OverHTTP {
		return nil
	}
	return measureOverHTTP(ctx, dir, o, p, own, routedPairs(pairs), out)
}

// points returns the pairs of the file, or random ones.
func (o *PairOptions) points(roads *mapRoads) (pairs [][2]geo.Point, err error) {
	if o.Pairs != "" {
		return ReadPairs(o.Pairs)
	}
	r := rand.New(rand.NewPCG(o.Seed, 41))
	if o.Junctions > 0 {
		return roads.drawJunctionPairs(r, o.Junctions), nil
	}
	for range o.Random {
		pairs = append(pairs, roads.drawPair(r))
	}
	return pairs, nil
}

// askPairs asks all routers about all pairs.
func askPairs(ctx context.Context, routers []namedRouter, points [][2]geo.Point, out measure.Output) ([]answeredPair, error) {
	pairs := make([]answeredPair, len(points))
	for i, at := range points {
		out.Progress("compare pairs", i, len(points))
		var err error
		if pairs[i], err = askPair(ctx, routers, at); err != nil {
			return nil, err
		}
	}
	return pairs, nil
}

// routedPairs returns the pairs that all routers route: only those are timed.
func routedPairs(pairs []answeredPair) (points [][2]geo.Point) {
	for i := range pairs {
		if v := pairs[i].verdict(); v != peersDisagree && v != noResults {
			points = append(points, pairs[i].points)
		}
	}
	return points
}

// routerNames are the routers in the order of answeredPair.
var routerNames = []string{"own", "OSRM", "Valhalla"}

// reportPairs reports the counts and the quantiles, and of each verdict the kinds and the worst pairs.
func reportPairs(ctx context.Context, j *judge, pairs []answeredPair, o PairOptions, out measure.Output) error {
	of := map[verdict][]*answeredPair{}
	for i := range pairs {
		of[pairs[i].verdict()] = append(of[pairs[i].verdict()], &pairs[i])
	}
	if err := out.Report(countPairs(filepath.Base(o.File), of, len(pairs))); err != nil {
		return err
	}
	for peer, name := range routerNames[1:] {
		if err := out.Report(durationFigure(pairs, 1+peer, name)); err != nil {
			return err
		}
	}
	if o.Junctions > 0 {
		if err := reportJunctions(ctx, j, pairs, o.Worst, out); err != nil {
			return err
		}
	}
	for _, v := range []verdict{noResults, longer, otherDuration, shorter} {
		slices.SortStableFunc(of[v], func(a, b *answeredPair) int { return cmp.Compare(b.excess(), a.excess()) })
		if err := reportVerdict(ctx, j, v, of[v], o.Worst, out); err != nil {
			return err
		}
	}
	return nil
}

// reportJunctions reports how many junctions have slow routes, and the kinds of these.
func reportJunctions(ctx context.Context, j *judge, pairs []answeredPair, worst int, out measure.Output) error {
	for _, f := range junctionFigures(pairs) {
		if err := out.Report(f); err != nil {
			return err
		}
	}
	var slow []*answeredPair
	for i := range pairs {
		if pairs[i].slowness() > slowBy {
			slow = append(slow, &pairs[i])
		}
	}
	slices.SortStableFunc(slow, func(a, b *answeredPair) int { return cmp.Compare(b.slowness(), a.slowness()) })
	return reportVerdict(ctx, j, slower, slow, worst, out)
}

// countPairs returns the figure of the verdicts. Its value is the share of pairs without a difference.
func countPairs(file string, of map[verdict][]*answeredPair, all int) measure.Figure {
	routed := all - len(of[peersDisagree])
	f := measure.Figure{
		Labels: []measure.Label{{Name: "map", Value: file}}, Unit: "% agree",
		Extra: map[string]float64{
			"pairs": float64(all), "both peers route": float64(routed), "no_results": float64(len(of[noResults])),
			"longer by 10 %": float64(len(of[longer])), "shorter by 10 %": float64(len(of[shorter])),
			"other duration": float64(len(of[otherDuration])),
		},
	}
	if routed > 0 {
		f.Value = 100 * float64(len(of[agrees])) / float64(routed)
	}
	return f
}

// durationFigure returns the durations as shares of a peer's, for pairs on which both drive nearly the same way.
func durationFigure(pairs []answeredPair, peer int, name string) measure.Figure {
	var ratios []float64
	for i := range pairs {
		p := &pairs[i]
		if v := p.verdict(); v != peersDisagree && v != noResults && p.isSameWay(peer) && p.duration(peer) > 0 {
			ratios = append(ratios, p.duration(0)/p.duration(peer))
		}
	}
	slices.Sort(ratios)
	f := measure.Figure{
		Labels: []measure.Label{{Name: "same way as", Value: name}}, Unit: "median duration, own / theirs",
		Extra: map[string]float64{"pairs": float64(len(ratios))},
	}
	if len(ratios) > 0 {
		quantile := func(share float64) float64 { return ratios[int(share*float64(len(ratios)-1))] }
		f.Value, f.Extra["p5"], f.Extra["p95"] = quantile(0.5), quantile(0.05), quantile(0.95)
	}
	return f
}

// reportVerdict reports how many pairs of a verdict each kind has, and lists the worst.
func reportVerdict(ctx context.Context, j *judge, v verdict, pairs []*answeredPair, worst int, out measure.Output) error {
	kinds := map[string]int{}
	var listed []measure.Figure
	for i, p := range pairs {
		out.Progress("explain "+string(v), i, len(pairs))
		kind, detail, err := j.explain(ctx, p)
		if err != nil {
			return err
		}
		kinds[kind]++
		if i < worst {
			listed = append(listed, p.figure(v, kind, detail))
		}
	}
	names := slices.Collect(maps.Keys(kinds))
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(kinds[b]-kinds[a], cmp.Compare(a, b)) })
	for _, name := range names {
		if err := out.Report(measure.Figure{
			Labels: []measure.Label{{Name: "verdict", Value: string(v)}, {Name: "kind", Value: name}}, Value: float64(kinds[name]), Unit: "pairs",
		}); err != nil {
			return err
		}
	}
	for _, f := range listed {
		if err := out.Report(f); err != nil {
			return err
		}
	}
	return nil
}

// figure returns a pair as a line of a list. Distances are metres, durations seconds; our own are omitted if there is no route.
func (p *answeredPair) figure(v verdict, kind, detail string) measure.Figure {
	f := measure.Figure{
		Labels: []measure.Label{
			{Name: "verdict", Value: string(v)}, {Name: "from", Value: showPoint(p.points[0])}, {Name: "to", Value: showPoint(p.points[1])},
			{Name: "kind", Value: kind}, {Name: "what differs", Value: detail},
		},
		Extra: map[string]float64{},
	}
	for i, name := range routerNames {
		if p.errs[i] == nil {
			f.Extra[name+" m"], f.Extra[name+" s"] = p.distance(i), p.duration(i)
		}
	}
	return f
}

func showPoint(p geo.Point) string { return fmt.Sprintf("%.6f,%.6f", p.Lat, p.Lon) }
