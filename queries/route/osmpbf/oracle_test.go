package osmpbf_test

import (
	"context"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"os"
	"runtime"
	"testing"

	"github.com/paulmach/osm"
	paulmach "github.com/paulmach/osm/osmpbf"

	"lieudit/queries/route/osmpbf"
	"lieudit/queries/route/osmpbf/osmtest"
)

// digest is what a reader found: counts, and a hash over all elements in order.
type digest struct {
	nodes, ways, relations int
	hash                   uint64
}

// sum hashes elements in a form of their own.
type sum struct {
	digest
	out interface {
		io.Writer
		Sum64() uint64
	}
}

func newSum() *sum { return &sum{out: fnv.New64a()} }

func (s *sum) end() digest {
	s.hash = s.out.Sum64()
	return s.digest
}

func (s *sum) addNode(n osmpbf.Node) {
	s.nodes++
	fmt.Fprint(s.out, "n", n.ID, n.Lon, n.Lat, n.Tags)
}

func (s *sum) addWay(w osmpbf.Way) {
	s.ways++
	fmt.Fprint(s.out, "w", w.ID, w.Nodes, w.Tags)
}

func (s *sum) addRelation(r osmpbf.Relation) {
	s.relations++
	fmt.Fprint(s.out, "r", r.ID, r.Members, r.Tags)
}

func (s *sum) addBlock(b *osmpbf.Block) error {
	for _, n := range b.Nodes {
		s.addNode(n)
	}
	for _, w := range b.Ways {
		s.addWay(w)
	}
	for _, r := range b.Relations {
		s.addRelation(r)
	}
	return nil
}

// addForeign adds an element as the other library reads it.
func (s *sum) addForeign(o osm.Object) {
	tags := func(all osm.Tags) (own osmpbf.Tags) {
		for _, t := range all {
			own = append(own, osmpbf.Tag{Key: t.Key, Value: t.Value})
		}
		return own
	}
	switch e := o.(type) {
	case *osm.Node:
		units := func(degrees float64) int32 { return int32(math.Round(degrees * osmpbf.UnitsPerDegree)) }
		s.addNode(osmpbf.Node{ID: int64(e.ID), Lon: units(e.Lon), Lat: units(e.Lat), Tags: tags(e.Tags)})
	case *osm.Way:
		w := osmpbf.Way{ID: int64(e.ID), Tags: tags(e.Tags)}
		for _, n := range e.Nodes {
			w.Nodes = append(w.Nodes, int64(n.ID))
		}
		s.addWay(w)
	case *osm.Relation:
		r := osmpbf.Relation{ID: int64(e.ID), Tags: tags(e.Tags)}
		kinds := map[osm.Type]osmpbf.MemberType{osm.TypeNode: osmpbf.NodeMember, osm.TypeWay: osmpbf.WayMember,
			osm.TypeRelation: osmpbf.RelationMember}
		for _, m := range e.Members {
			r.Members = append(r.Members, osmpbf.Member{Type: kinds[m.Type], ID: m.Ref, Role: m.Role})
		}
		s.addRelation(r)
	}
}

// scanForeign reads a file with the other library.
func scanForeign(tb testing.TB, path string, visit func(osm.Object)) {
	tb.Helper()
	file, err := os.Open(path)
	if err != nil {
		tb.Fatal(err)
	}
	defer file.Close()
	scanner := paulmach.New(context.Background(), file, runtime.GOMAXPROCS(0))
	defer scanner.Close()
	for scanner.Scan() {
		visit(scanner.Object())
	}
	if err := scanner.Err(); err != nil {
		tb.Fatal(err)
	}
}

func open(tb testing.TB, path string) *osmpbf.File {
	tb.Helper()
	f, err := osmpbf.Open(path)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { f.Close() })
	return f
}

func TestRealMapsReadAsAnotherLibraryReadsThem(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"bondy", "monaco", "delaware"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := osmtest.Path(t, name)
			want := newSum()
			scanForeign(t, path, want.addForeign)
			got := newSum()
			err := open(t, path).Scan(t.Context(), osmpbf.Nodes|osmpbf.Ways|osmpbf.Relations, nil, got.addBlock)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := got.end(), want.end(); got != want || got.nodes == 0 {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}
