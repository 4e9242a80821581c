package synthetic

import (
	"bytes"
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"testing"

	addresses "lieudit/queries/address/synthetic"

	"lieudit/queries/address/commune"
	"lieudit/queries/route/osmpbf"
)

func load(t testing.TB) *commune.Table {
	t.Helper()
	table, err := commune.Load()
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// generate returns an invented network as bytes.
func generate(t testing.TB, o Options) []byte {
	t.Helper()
	var out bytes.Buffer
	if _, err := Generate(t.Context(), &out, load(t), o); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// network is a generated network as a test looks at it.
type network struct {
	nodes     []osmpbf.Node // node n has the ID n+1
	ways      []osmpbf.Way
	relations []osmpbf.Relation
}

func read(t testing.TB, content []byte) *network {
	t.Helper()
	path := filepath.Join(t.TempDir(), "roads.osm.pbf")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := osmpbf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	n := &network{}
	err = f.Scan(t.Context(), osmpbf.Nodes|osmpbf.Ways|osmpbf.Relations, nil, func(b *osmpbf.Block) error {
		for _, node := range b.Nodes {
			node.Tags = append(osmpbf.Tags{}, node.Tags...)
			n.nodes = append(n.nodes, node)
		}
		for _, w := range b.Ways {
			w.Nodes = append([]int64{}, w.Nodes...)
			w.Tags = append(osmpbf.Tags{}, w.Tags...)
			n.ways = append(n.ways, w)
		}
		for _, r := range b.Relations {
			r.Members = append([]osmpbf.Member{}, r.Members...)
			n.relations = append(n.relations, r)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range n.nodes {
		if n.nodes[i].ID != int64(i)+1 {
			t.Fatalf("node %d has the ID %d", i, n.nodes[i].ID)
		}
	}
	return n
}

// carSenses returns the directions of a way in which cars may drive.
func carSenses(w osmpbf.Way) (forth, back bool) {
	switch w.Tags.Get("highway") {
	case "pedestrian", "footway", "path", "cycleway", "steps":
		return false, false
	}
	isOneWay := w.Tags.Get("oneway") == "yes" || w.Tags.Get("junction") == "roundabout"
	return true, !isOneWay
}

// arcs are the directed steps of cars from node to node.
func (n *network) arcs() (out, in [][]int32) {
	out, in = make([][]int32, len(n.nodes)), make([][]int32, len(n.nodes))
	for _, w := range n.ways {
		forth, back := carSenses(w)
		for i := 1; i < len(w.Nodes); i++ {
			a, b := int32(w.Nodes[i-1]-1), int32(w.Nodes[i]-1)
			if forth {
				out[a], in[b] = append(out[a], b), append(in[b], a)
			}
			if back {
				out[b], in[a] = append(out[b], a), append(in[a], b)
			}
		}
	}
	return out, in
}

// reached counts the nodes that can be reached from one.
func reached(out [][]int32, from int32) (n int, seen []bool) {
	seen = make([]bool, len(out))
	seen[from] = true
	todo := []int32{from}
	for len(todo) > 0 {
		v := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		n++
		for _, to := range out[v] {
			if !seen[to] {
				seen[to] = true
				todo = append(todo, to)
			}
		}
	}
	return n, seen
}

// segments counts directed stretches for cars between junctions: nodes where ways meet or end.
func (n *network) segments() (count int) {
	uses := make([]int, len(n.nodes)+1)
	for _, w := range n.ways {
		if forth, _ := carSenses(w); forth {
			for i, id := range w.Nodes {
				uses[id]++
				if i == 0 || i == len(w.Nodes)-1 {
					uses[id]++
				}
			}
		}
	}
	for _, w := range n.ways {
		forth, back := carSenses(w)
		for _, id := range w.Nodes[1:] {
			if forth && uses[id] > 1 {
				count++
				if back {
					count++
				}
			}
		}
	}
	return count
}

func TestTheSameOptionsGiveTheSameBytes(t *testing.T) {
	t.Parallel()
	a, b := generate(t, Options{Segments: 6000, Seed: 7}), generate(t, Options{Segments: 6000, Seed: 7})
	if !bytes.Equal(a, b) {
		t.Error("two runs differ")
	}
	if bytes.Equal(a, generate(t, Options{Segments: 6000, Seed: 8})) {
		t.Error("another seed gives the same network")
	}
}

func TestCarsReachEveryRoadOfALandAndComeBack(t *testing.T) {
	t.Parallel()
	table := load(t)
	streets, err := ReadStreets(addresses.Rows(t.Context(), table, addresses.Options{Addresses: 4000, Seed: 3}))
	if err != nil {
		t.Fatal(err)
	}
	for name, o := range map[string]Options{
		"invented": {Segments: 20_000, Seed: 1},
		"few":      {Segments: 100, Seed: 2},
		"one town": {Segments: 3000, Seed: 2, Communes: []string{"31555"}},
		"with islands": {Segments: 4000, Seed: 4,
			Communes: []string{"29155", "29019", "29083", "2A004", "2B033", "13201", "06088", "83137", "56152"}},
		"for addresses": {Seed: 5, Streets: withoutOverseas(streets)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := read(t, generate(t, o))
			out, in := n.arcs()
			roads, start := 0, int32(0)
			for v := range out {
				if len(out[v])+len(in[v]) > 0 {
					roads++
					start = int32(v)
				}
			}
			forth, _ := reached(out, start)
			back, _ := reached(in, start)
			if forth != roads || back != roads || roads == 0 {
				t.Errorf("of %d nodes on roads %d are reached and %d lead back", roads, forth, back)
			}
		})
	}
}

// withoutOverseas leaves out the territories that no ferry leads to.
func withoutOverseas(streets []Street) (kept []Street) {
	for _, s := range streets {
		if !isOverseas(landOf(&commune.Commune{Code: s.Commune})) {
			kept = append(kept, s)
		}
	}
	return kept
}

func TestThereAreAboutAsManySegmentsAsAsked(t *testing.T) {
	t.Parallel()
	for _, want := range []int{3000, 30_000, 100_000} {
		got := read(t, generate(t, Options{Segments: want, Seed: 11})).segments()
		if ratio := float64(got) / float64(want); ratio < 0.9 || ratio > 1.1 {
			t.Errorf("got %d segments, want about %d", got, want)
		}
		t.Logf("%d segments where %d were asked for", got, want)
	}
}

func TestEveryAddressIsOnARoadOfItsStreet(t *testing.T) {
	t.Parallel()
	streets, err := ReadStreets(addresses.Rows(t.Context(), load(t), addresses.Options{Addresses: 5000, Seed: 2026}))
	if err != nil {
		t.Fatal(err)
	}
	n := read(t, generate(t, Options{Seed: 1, Streets: streets}))
	named := map[string][]osmpbf.Way{}
	for _, w := range n.ways {
		named[w.Tags.Get("name")] = append(named[w.Tags.Get("name")], w)
	}
	for _, s := range streets {
		for _, p := range s.Points {
			if d := n.distance(named[s.Name], p); d > 30 {
				t.Errorf("%s in %s: a number is %.0f m from its road", s.Name, s.Commune, d)
			}
		}
	}
}

// distance is how far a position is from the nearest of some ways, in metres.
func (n *network) distance(ways []osmpbf.Way, p Position) float64 {
	around, nearest := newPlane(p.Lon, p.Lat), math.Inf(1)
	at := func(id int64) point {
		node := n.nodes[id-1]
		return around.project(float64(node.Lon)/osmpbf.UnitsPerDegree, float64(node.Lat)/osmpbf.UnitsPerDegree)
	}
	for _, w := range ways {
		for i := 1; i < len(w.Nodes); i++ {
			nearest = min(nearest, distanceToSegment(point{}, at(w.Nodes[i-1]), at(w.Nodes[i])))
		}
	}
	return nearest
}

func TestANetworkHasRoadsOfEveryKind(t *testing.T) {
	t.Parallel()
	n := read(t, generate(t, Options{Segments: 60_000, Seed: 1}))
	seen := map[string]int{}
	for _, w := range n.ways {
		for _, tag := range w.Tags {
			seen[tag.Key]++
			seen[tag.Key+"="+tag.Value]++
		}
	}
	for _, node := range n.nodes {
		for _, tag := range node.Tags {
			seen[tag.Key+"="+tag.Value]++
		}
	}
	wanted := []string{"highway=motorway", "highway=motorway_link", "highway=motorway_junction", "toll=yes", "barrier=toll_booth",
		"route=ferry", "junction=roundabout", "oneway=yes", "highway=traffic_signals", "name", "ref", "maxspeed=30", "destination"}
	for _, value := range highways {
		wanted = append(wanted, "highway="+value)
	}
	for _, want := range wanted {
		if seen[want] == 0 {
			t.Errorf("there is no %s", want)
		}
	}
	if len(n.relations) == 0 {
		t.Error("there is no restriction")
	}
	t.Log(len(n.nodes), "nodes,", len(n.ways), "ways,", len(n.relations), "restrictions,", n.segments(), "segments")
}

func TestRestrictionsJoinWaysThatMeet(t *testing.T) {
	t.Parallel()
	n := read(t, generate(t, Options{Segments: 20_000, Seed: 3}))
	for _, r := range n.relations {
		from, via, to := r.Members[0], r.Members[1], r.Members[2]
		for _, id := range []int64{from.ID, to.ID} {
			nodes := n.ways[id-1].Nodes
			if nodes[0] != via.ID && nodes[len(nodes)-1] != via.ID || from.ID == to.ID {
				t.Fatalf("restriction %d: way %d does not end at node %d", r.ID, id, via.ID)
			}
		}
	}
}

func TestAnEmptyOrUnknownRequestIsRefused(t *testing.T) {
	t.Parallel()
	if _, err := Generate(t.Context(), &bytes.Buffer{}, load(t), Options{}); !errors.Is(err, ErrNone) {
		t.Errorf("got %v, want %v", err, ErrNone)
	}
	if _, err := Generate(t.Context(), &bytes.Buffer{}, load(t), Options{Segments: 10, Communes: []string{"99999"}}); err == nil {
		t.Error("an unknown commune is accepted")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Generate(ctx, &bytes.Buffer{}, load(t), Options{Segments: 100}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the end of the context", err)
	}
}
