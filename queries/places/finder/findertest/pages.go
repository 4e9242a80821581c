package findertest

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lieudit/queries/places/finder"
	"lieudit/schemas/site"
	"lieudit/schemas/table"
)

var pages = []rule{
	{"pages hold each site once, whatever their size", sizes},
	{"pages neither repeat nor skip what stays while others come, go and move", moving},
	{"11,000 sites are paged through in every order", many},
	{"a cursor of another order is refused", cursors},
}

// ways are the questions that have an order of their own, each finding every town.
func ways() map[string]finder.Query {
	center := &finder.Point{Lat: 44.5, Lon: 3.5}
	return map[string]finder.Query{
		"name":               {Sort: finder.ByName},
		"distance":           {Sort: finder.ByDistance, Center: center},
		"relevance":          {Text: "magasin"},
		"relevance, center":  {Text: "magasin", Center: center},
		"beginnings":         {Text: "mag"},
		"name, with a text":  {Text: "magasin", Sort: finder.ByName},
		"radius":             {Center: center, Radius: 200_000},
		"distance, in a box": {Sort: finder.ByDistance, Center: center, Box: &finder.Box{West: 3, South: 44, East: 5, North: 46}},
	}
}

// town is a site that all ways find: many have the same name, and the same position.
func town(i int) table.Site {
	names := []string{"Magasin", "magasin %d", "Le Magasin", "Magasins réunis %d", "Magasin rouge"}
	name := names[i%len(names)]
	if i%len(names)%2 == 1 && i%len(names) < 4 {
		name = fmt.Sprintf(name, i%97)
	}
	return Row("a", fmt.Sprint("r", i%3), fmt.Sprintf("x%05d", i), site.Stored{
		Content: site.Content{Name: name, Tags: []string{fmt.Sprint("t", i%7)}}, Position: placed(44.5+float64(i%101)/100, 3.5+float64(i%89)/100)})
}

func townsFrom(from, to int) []table.Site {
	rows := make([]table.Site, 0, to-from)
	for i := from; i < to; i++ {
		rows = append(rows, town(i))
	}
	return rows
}

// walk reads all pages and calls between after each.
func walk(t *testing.T, s Stage, q finder.Query, between func(page int)) (all []finder.Hit) {
	t.Helper()
	for page := 0; ; page++ {
		r := search(t, s, q)
		all = append(all, r.Hits...)
		if r.Next == "" || len(r.Hits) == 0 {
			return all
		}
		between(page)
		q.After = r.Next
	}
}

func sizes(t *testing.T, s Stage) {
	const n = 23
	s.Put(t, townsFrom(0, n)...)
	for _, name := range sortedKeys(ways()) {
		q := ways()[name]
		whole := ids(search(t, s, q).Hits)
		if len(whole) != n {
			t.Errorf("%s: got %d sites, want %d", name, len(whole), n)
		}
		for _, limit := range []int{1, 2, 7, n - 1, n, n + 1} {
			q.Limit = limit
			if diff := cmp.Diff(whole, ids(walk(t, s, q, func(int) {}))); diff != "" {
				t.Errorf("%s by %d: %s", name, limit, diff)
			}
		}
	}
}

func moving(t *testing.T, s Stage) {
	const n = 60
	for _, name := range sortedKeys(ways()) {
		q := ways()[name]
		q.Limit = 7
		s.Put(t, townsFrom(0, n)...)
		got := map[string]int{}
		for _, h := range walk(t, s, q, func(page int) { disturb(t, s, page, n) }) {
			got[h.Site.ExternalID]++
		}
		for i := range n {
			id := town(i).ExternalID
			if stays := i%4 == 3; stays && got[id] != 1 {
				t.Errorf("%s: %s was found %d times", name, id, got[id])
			}
		}
	}
}

// disturb changes most towns: some go, some get another name and position, some come back.
func disturb(t *testing.T, s Stage, page, n int) {
	var rows []table.Site
	for i := page % 4; i < n; i += 4 {
		switch row := town(i); {
		case i%4 == 0:
			rows = append(rows, inactive(row))
		case i%4 == 1:
			rows = append(rows, changed(row, site.Stored{Content: site.Content{Name: fmt.Sprint("Magasin ", page)}, Position: placed(44.5+float64(page)/50, 3.5)}))
		case i%4 == 2:
			rows = append(rows, town(i+1000*(1+page)))
		}
	}
	if len(rows) > 0 {
		s.Put(t, rows...)
	}
}

func many(t *testing.T, s Stage) {
	const n = 11_000
	for from := 0; from < n; from += 1000 {
		s.Put(t, townsFrom(from, from+1000)...)
	}
	for _, name := range []string{"name", "distance", "relevance"} {
		q := ways()[name]
		q.Limit = 1000
		hits := walk(t, s, q, func(int) {})
		inOrder := slices.IsSortedFunc(hits, func(a, b finder.Hit) int {
			if q.Order() == finder.ByRelevance {
				return 0
			}
			return placeOf(a).Compare(placeOf(b))
		})
		found := ids(hits)
		slices.Sort(found)
		if got := len(slices.Compact(found)); got != n || len(hits) != n || !inOrder {
			t.Errorf("%s: got %d sites in %d hits, want %d; in order: %v", name, got, len(hits), n, inOrder)
		}
	}
}

// placeOf is where a hit stands by name, or by distance where there is one.
func placeOf(h finder.Hit) finder.Place {
	return finder.Place{Distance: h.Distance, Name: finder.Name(h.Site.Name), ExternalID: h.Site.ExternalID, Referential: h.Site.Referential}
}

func cursors(t *testing.T, s Stage) {
	s.Put(t, townsFrom(0, 5)...)
	byName := search(t, s, finder.Query{Limit: 1}).Next
	if byName == "" {
		t.Fatal("got no cursor")
	}
	center := &finder.Point{Lat: 44.5, Lon: 3.5}
	for _, q := range []finder.Query{
		{After: byName, Text: "magasin"}, {After: byName, Center: center}, {After: byName, Center: center, Text: "magasin"},
		{After: "nonsense"}, {After: " "}, {After: byName + "x"}, {After: byName[1:]}, {After: "\x00"}, {After: "é"}, {After: byName[:len(byName)-3] + "===", Sort: finder.ByName},
	} {
		q.Account, q.Limit = "a", 1
		if _, err := s.Engine().Search(t.Context(), q); !errors.Is(err, finder.ErrCursor) {
			t.Errorf("%+v: got %v, want %v", q, err, finder.ErrCursor)
		}
	}
}
