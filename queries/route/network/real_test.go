package network

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"lieudit/queries/address/officialtest"
	"lieudit/queries/route"
)

// buildOpen builds the network of a map and opens it until the test ends.
func buildOpen(t testing.TB, source string, o Options) (*Network, Summary) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "network")
	s, err := Build(t.Context(), path, source, o)
	if err != nil {
		t.Fatal(err)
	}
	n, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Close() })
	return n, s
}

// officialMap is the path of a map of the official data.
func officialMap(t testing.TB, name string) string {
	t.Helper()
	return officialtest.Open(t, "osm/"+name).Name()
}

func TestRealMapsAreBuiltAndOpened(t *testing.T) {
	for _, p := range []string{officialMap(t, "bondy_2023.osm.pbf"), officialMap(t, "monaco-and-french-coast_2016.osm.pbf"),
		os.Getenv("LIEUDIT_TEST_MAP")} {
		if p == "" {
			continue
		}
		begun, last, stage := time.Now(), time.Now(), ""
		n, s := buildOpen(t, p, Options{Progress: func(st string, _, _ int64) {
			if st != stage {
				t.Log(stage, time.Since(last))
				last, stage = time.Now(), st
			}
		}})
		t.Logf("%s %v: %+v", p, time.Since(begun), s)
		m := n.Meta.Box
		for range 5 {
			begun = time.Now()
			k := 0
			n.Layer(route.Car).Near(route.Point{Lon: (m.West + m.East) / 2, Lat: (m.South + m.North) / 2}, 1000, func(h Hit) bool {
				if k < 3 {
					t.Logf("%+v %+v", h, n.Layer(route.Car).Road(h.Segment))
				}
				k++
				return k < 20
			})
			t.Log(time.Since(begun))
		}
	}
}
