package search_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lieudit/queries/locations/search"
	"lieudit/schemas/geo"
)

var somewhere = &geo.Point{Lat: 44, Lon: 3}

func TestACursorParsesToItsSortKey(t *testing.T) {
	t.Parallel()
	for _, p := range []search.SortKey{
		{}, {Name: "le magasin", ExternalID: "MAG-1", Referential: "shops"}, {Rank: math.MaxUint64, Distance: math.Inf(1), Name: strings.Repeat("é", 200)},
		{Rank: 257, Distance: 1234.5678, ExternalID: "~"},
	} {
		for _, q := range []search.Query{{}, {Center: somewhere}, {Text: "a"}, {Text: "a", Center: somewhere}} {
			q.After = q.FormatCursor(p)
			got, ok, err := q.ParseCursor()
			if err != nil || !ok || got != p {
				t.Errorf("got %+v, %v, %v, want %+v", got, ok, err, p)
			}
			for _, other := range []search.Query{{}, {Center: somewhere}, {Text: "a"}, {Text: "a", Center: somewhere}} {
				if other.EffectiveSort() == q.EffectiveSort() && (other.Center == nil) == (q.Center == nil) {
					continue
				}
				other.After = q.After
				if _, _, err := other.ParseCursor(); !errors.Is(err, search.ErrInvalidCursor) {
					t.Errorf("%+v takes the cursor of %+v: %v", other, q, err)
				}
			}
		}
	}
}

func FuzzParseCursor(f *testing.F) {
	q := search.Query{Text: "a"}
	f.Add("")
	f.Add("nonsense")
	f.Add(q.FormatCursor(search.SortKey{Rank: 3, Distance: math.NaN()}))
	f.Add(q.FormatCursor(search.SortKey{Rank: 300, Name: "a\x00b"}))
	f.Fuzz(func(t *testing.T, cursor string) {
		q.After = cursor
		p, ok, err := q.ParseCursor()
		switch {
		case err != nil && !errors.Is(err, search.ErrInvalidCursor):
			t.Errorf("%q: %v", cursor, err)
		case ok && q.FormatCursor(p) != cursor:
			t.Errorf("%q is the cursor of %+v, which is %q", cursor, p, q.FormatCursor(p))
		case math.IsNaN(p.Distance):
			t.Errorf("%q: %+v", cursor, p)
		}
	})
}

func TestSortKeysAreOrderedByTheirFieldsWithoutANameLast(t *testing.T) {
	t.Parallel()
	want := []search.SortKey{
		{Name: "a", ExternalID: "2", Referential: "a"}, {Name: "a", ExternalID: "2", Referential: "b"}, {Name: "a", ExternalID: "3"}, {Name: "b", ExternalID: "1"}, {ExternalID: "0"},
		{Distance: 1, Name: "a"}, {Distance: math.Inf(1), Name: "a"}, {Rank: 1, Name: "a"},
	}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, search.SortKey.Compare)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestEffectiveSort(t *testing.T) {
	t.Parallel()
	for want, questions := range map[search.Sort][]search.Query{
		search.ByName:      {{}, {Text: " "}, {Sort: search.ByRelevance}, {Sort: search.ByName, Text: "a", Center: somewhere}},
		search.ByDistance:  {{Center: somewhere}, {Sort: search.ByRelevance, Center: somewhere}, {Sort: search.ByDistance, Text: "a", Center: somewhere}},
		search.ByRelevance: {{Text: "a"}, {Text: "?"}, {Sort: search.ByRelevance, Text: "a", Center: somewhere}},
	} {
		for _, q := range questions {
			if got := q.EffectiveSort(); got != want {
				t.Errorf("%+v: got %s, want %s", q, got, want)
			}
		}
	}
}

func TestABoxAroundContainsEveryPointWithin(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 1))
	within := 0
	for range 200_000 {
		p := geo.Point{Lat: rng.Float64()*180 - 90, Lon: rng.Float64()*360 - 180}
		metres := math.Pow(10, rng.Float64()*7.5)
		turn := metres / 6371008.8 * 180 / math.Pi
		o := geo.Point{
			Lat: max(-90, min(90, p.Lat+(rng.Float64()*2-1)*turn)),
			Lon: math.Mod(p.Lon+(rng.Float64()*2-1)*turn/math.Max(0.01, math.Cos(p.Lat*math.Pi/180))+540, 360) - 180,
		}
		if o.Lon < -180 {
			o.Lon += 360
		}
		if geo.Distance(p, o) > metres {
			continue
		}
		within++
		if box := search.BoxAround(p, metres); !box.Contains(o) {
			t.Fatalf("%v is %f from %v and not in %+v", o, geo.Distance(p, o), p, box)
		}
	}
	if within < 10_000 {
		t.Fatalf("only %d of the points were within", within)
	}
	edge := geo.Point{Lat: 44.51, Lon: 3.5}
	p := geo.Point{Lat: 44.5, Lon: 3.5}
	if !search.BoxAround(p, geo.Distance(p, edge)).Contains(edge) {
		t.Error("the edge is not held")
	}
}

func TestNoBoxContainsNaN(t *testing.T) {
	t.Parallel()
	nowhere := geo.Point{Lat: math.NaN(), Lon: math.NaN()}
	for _, b := range []search.Box{{-180, -90, 180, 90}, {170, -90, -170, 90}} {
		if b.Contains(nowhere) {
			t.Errorf("%+v holds it", b)
		}
	}
}
