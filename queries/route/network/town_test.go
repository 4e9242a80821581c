package network

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"lieudit/queries/route"
	"lieudit/queries/route/graph"
	"lieudit/queries/route/osmpbf"
	"lieudit/queries/route/search"
	"lieudit/schemas/geo"
)

// town is a map drawn with letters. Letters that stand side by side are 100 m apart; each is a node.
type town struct {
	grid      string
	ways      []string // the letters of the nodes and tags: "abc highway=primary"; a node ? is missing in the map
	nodes     []string // the letter and tags: "b barrier=bollard"
	relations []string // the kind and the members: "no_left_turn ab b bc"; a via way is written as its letters
	date      time.Time
}

const townStep = 100 / geo.MetresPerDegree // degrees, near the equator

// position is where a letter of the grid lies.
func (w *town) position(letter byte) (geo.Point, bool) {
	for y, line := range strings.Split(w.grid, "\n") {
		if x := strings.IndexByte(line, letter); x >= 0 {
			return geo.Point{Lon: math.Round(float64(x)*townStep*1e7) / 1e7, Lat: math.Round(float64(-y)*townStep*1e7) / 1e7}, true
		}
	}
	return geo.Point{}, false
}

// writeMap writes the town as a map and returns its path. Ways are numbered from 1 on, nodes by their letters.
func (w *town) writeMap(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "town.osm.pbf")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	out := osmpbf.NewWriter(file, osmpbf.Header{Date: w.date})
	w.writeElements(t, out)
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func (w *town) writeElements(t testing.TB, out *osmpbf.Writer) {
	t.Helper()
	tags := map[byte]osmpbf.Tags{}
	for _, line := range w.nodes {
		_, tags[line[0]] = parseTags(line)
	}
	for letter := byte('A'); letter <= 'z'; letter++ {
		if p, ok := w.position(letter); ok {
			n := osmpbf.Node{ID: int64(letter), Lon: int32(math.Round(p.Lon * 1e7)), Lat: int32(math.Round(p.Lat * 1e7)), Tags: tags[letter]}
			if err := out.WriteNode(n); err != nil {
				t.Fatal(err)
			}
		}
	}
	ids := map[string]int64{"missing": 999}
	for i, line := range w.ways {
		letters, tags := parseTags(line)
		way := osmpbf.Way{ID: int64(i + 1), Tags: tags}
		for _, letter := range letters {
			way.Nodes = append(way.Nodes, int64(letter))
		}
		ids[letters] = way.ID
		if err := out.WriteWay(way); err != nil {
			t.Fatal(err)
		}
	}
	for i, line := range w.relations {
		if err := out.WriteRelation(parseRestriction(int64(i+1), line, ids)); err != nil {
			t.Fatal(err)
		}
	}
}

func parseTags(line string) (letters string, tags osmpbf.Tags) {
	fields := strings.Fields(line)
	for _, f := range fields[1:] {
		key, value, _ := strings.Cut(f, "=")
		tags = append(tags, osmpbf.Tag{Key: key, Value: strings.ReplaceAll(value, "_", " ")})
		if !strings.HasPrefix(key, "name") {
			tags[len(tags)-1].Value = value
		}
	}
	return fields[0], tags
}

func parseRestriction(id int64, line string, ids map[string]int64) osmpbf.Relation {
	fields := strings.Fields(line)
	r := osmpbf.Relation{ID: id, Tags: osmpbf.Tags{{Key: "type", Value: "restriction"}, {Key: "restriction", Value: fields[0]}}}
	for i, name := range fields[1:] {
		role := "via"
		if i == 0 {
			role = "from"
		} else if i == len(fields)-2 {
			role = "to"
		}
		m := osmpbf.Member{Type: osmpbf.WayMember, ID: ids[name], Role: role}
		if len(name) == 1 {
			m = osmpbf.Member{Type: osmpbf.NodeMember, ID: int64(name[0]), Role: role}
		}
		r.Members = append(r.Members, m)
	}
	return r
}

// drawnNetwork is the network of a town.
type drawnNetwork struct {
	*Network
	town    *town
	summary Summary
}

func openTown(t testing.TB, w *town) *drawnNetwork {
	t.Helper()
	n, s := buildOpen(t, w.writeMap(t), Options{})
	return &drawnNetwork{n, w, s}
}

// places are the points of the network at a letter.
func (d *drawnNetwork) places(t testing.TB, l *Layer, letter byte) (places []search.Place) {
	t.Helper()
	p, ok := d.town.position(letter)
	if !ok {
		t.Fatalf("no %c on the grid", letter)
	}
	l.Near(p, 0.5, func(h Hit) bool {
		forward, backward := l.SegmentEdges(h.Segment)
		if forward != graph.None {
			places = append(places, search.PlaceOn(l.Graph, forward, h.Fraction))
		}
		if backward != graph.None {
			places = append(places, search.PlaceOn(l.Graph, backward, 1-h.Fraction))
		}
		return true
	})
	return places
}

// way returns the letters along the fastest way between two letters, and what it costs; "" where there is none. The overlay and
// Dijkstra's algorithm must agree.
func (d *drawnNetwork) way(t testing.TB, m route.Mode, from, to byte) (string, search.Cost) {
	t.Helper()
	l, p := d.Layer(m), route.Profile{Mode: m, Optimization: route.Fastest}
	starts, ends := d.places(t, l, from), d.places(t, l, to)
	path, err := search.New(l.Graph, l.Topology, l).Route(t.Context(), p, starts, ends)
	want, ok := search.Dijkstra(l.Graph, p, starts, ends)
	if ok != (err == nil) || ok && path.Cost != want {
		t.Errorf("%s from %c to %c: %v, %v; Dijkstra says %v, %v", m, from, to, path.Cost, err, want, ok)
	}
	if err != nil {
		return "", search.Cost{}
	}
	letters := ""
	var points []geo.Point
	for _, edge := range path.Edges {
		points = l.AppendGeometry(points, l.Graph.Segment[edge]/2, l.Graph.Segment[edge]%2 == 1)
	}
	for _, p := range slices.Compact(points) {
		letters += string(d.letterAt(p))
	}
	letters = letters[strings.IndexByte(letters, from):]
	return letters[:strings.LastIndexByte(letters, to)+1], path.Cost
}

func (d *drawnNetwork) letterAt(p geo.Point) byte {
	for letter := byte('A'); letter <= 'z'; letter++ {
		if at, ok := d.town.position(letter); ok && geo.Distance(at, p) < 0.1 {
			return letter
		}
	}
	return '.'
}
