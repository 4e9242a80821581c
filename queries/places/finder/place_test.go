package finder_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lieudit/queries/places/finder"
)

var somewhere = &finder.Point{Lat: 44, Lon: 3}

func TestACursorGivesItsPlaceBack(t *testing.T) {
	t.Parallel()
	for _, p := range []finder.Place{
		{}, {Name: "le magasin", ExternalID: "MAG-1", Referential: "shops"}, {Rank: math.MaxUint64, Distance: math.Inf(1), Name: strings.Repeat("é", 200)},
		{Rank: 257, Distance: 1234.5678, ExternalID: "~"},
	} {
		for _, q := range []finder.Query{{}, {Center: somewhere}, {Text: "a"}, {Text: "a", Center: somewhere}} {
			q.After = q.Cursor(p)
			got, ok, err := q.Place()
			if err != nil || !ok || got != p {
				t.Errorf("got %+v, %v, %v, want %+v", got, ok, err, p)
			}
			for _, other := range []finder.Query{{}, {Center: somewhere}, {Text: "a"}, {Text: "a", Center: somewhere}} {
				if other.Order() == q.Order() && (other.Center == nil) == (q.Center == nil) {
					continue
				}
				other.After = q.After
				if _, _, err := other.Place(); !errors.Is(err, finder.ErrCursor) {
					t.Errorf("%+v takes the cursor of %+v: %v", other, q, err)
				}
			}
		}
	}
}

func FuzzPlace(f *testing.F) {
	q := finder.Query{Text: "a"}
	f.Add("")
	f.Add("nonsense")
	f.Add(q.Cursor(finder.Place{Rank: 3, Distance: math.NaN()}))
	f.Add(q.Cursor(finder.Place{Rank: 300, Name: "a\x00b"}))
	f.Fuzz(func(t *testing.T, cursor string) {
		q.After = cursor
		p, ok, err := q.Place()
		switch {
		case err != nil && !errors.Is(err, finder.ErrCursor):
			t.Errorf("%q: %v", cursor, err)
		case ok && q.Cursor(p) != cursor:
			t.Errorf("%q is the cursor of %+v, which is %q", cursor, p, q.Cursor(p))
		case math.IsNaN(p.Distance):
			t.Errorf("%q: %+v", cursor, p)
		}
	})
}

func TestPlacesAreOrderedByTheirFieldsWithoutANameLast(t *testing.T) {
	t.Parallel()
	want := []finder.Place{
		{Name: "a", ExternalID: "2", Referential: "a"}, {Name: "a", ExternalID: "2", Referential: "b"}, {Name: "a", ExternalID: "3"}, {Name: "b", ExternalID: "1"}, {ExternalID: "0"},
		{Distance: 1, Name: "a"}, {Distance: math.Inf(1), Name: "a"}, {Rank: 1, Name: "a"},
	}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, finder.Place.Compare)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestTheOrderThatHolds(t *testing.T) {
	t.Parallel()
	for want, questions := range map[finder.Sort][]finder.Query{
		finder.ByName:      {{}, {Text: " "}, {Sort: finder.ByRelevance}, {Sort: finder.ByName, Text: "a", Center: somewhere}},
		finder.ByDistance:  {{Center: somewhere}, {Sort: finder.ByRelevance, Center: somewhere}, {Sort: finder.ByDistance, Text: "a", Center: somewhere}},
		finder.ByRelevance: {{Text: "a"}, {Text: "?"}, {Sort: finder.ByRelevance, Text: "a", Center: somewhere}},
	} {
		for _, q := range questions {
			if got := q.Order(); got != want {
				t.Errorf("%+v: got %s, want %s", q, got, want)
			}
		}
	}
}
