package search_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lieudit/queries/locations/search"
)

var somewhere = &search.Point{Lat: 44, Lon: 3}

func TestACursorGivesItsPlaceBack(t *testing.T) {
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

func FuzzPlace(f *testing.F) {
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

func TestPlacesAreOrderedByTheirFieldsWithoutANameLast(t *testing.T) {
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

func TestTheOrderThatHolds(t *testing.T) {
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
