package searchtest

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lieudit/queries/locations/search"
	"lieudit/schemas/locations"
	"lieudit/schemas/table"
)

var pages = []rule{
	{"pages hold each site once, whatever their size", pageSizes},
	{"pages neither repeat nor skip what stays while others come, go and move", concurrentChanges},
	{"11,000 sites are paged through in every order", manySites},
	{"a cursor of another order is refused", cursors},
}

// pagedQueries are the questions that have an order of their own, each finding every town.
func pagedQueries() map[string]search.Query {
	center := &search.Point{Lat: 44.5, Lon: 3.5}
	return map[string]search.Query{
		"name":               {Sort: search.ByName},
		"distance":           {Sort: search.ByDistance, Center: center},
		"relevance":          {Text: "magasin"},
		"relevance, center":  {Text: "magasin", Center: center},
		"beginnings":         {Text: "mag"},
		"name, with a text":  {Text: "magasin", Sort: search.ByName},
		"radius":             {Center: center, Radius: 200_000},
		"distance, in a box": {Sort: search.ByDistance, Center: center, Box: &search.Box{West: 3, South: 44, East: 5, North: 46}},
	}
}

// townRow is a site that all ways find: many have the same name, and the same position.
func townRow(i int) table.Site {
	names := []string{"Magasin", "magasin %d", "Le Magasin", "Magasins réunis %d", "Magasin rouge"}
	name := names[i%len(names)]
	if i%len(names)%2 == 1 && i%len(names) < 4 {
		name = fmt.Sprintf(name, i%97)
	}
	return NewSiteRow("a", fmt.Sprint("r", i%3), fmt.Sprintf("x%05d", i), locations.StoredSite{
		Content: locations.Content{Name: name, Tags: []string{fmt.Sprint("t", i%7)}}, Position: positionAt(44.5+float64(i%101)/100, 3.5+float64(i%89)/100)})
}

func townRows(from, to int) []table.Site {
	rows := make([]table.Site, 0, to-from)
	for i := from; i < to; i++ {
		rows = append(rows, townRow(i))
	}
	return rows
}

// collectPages reads all pages and calls between after each.
func collectPages(t *testing.T, s Fixture, q search.Query, between func(page int)) (all []search.Hit) {
	t.Helper()
	for page := 0; ; page++ {
		r := searchPage(t, s, q)
		all = append(all, r.Hits...)
		if r.Next == "" || len(r.Hits) == 0 {
			return all
		}
		between(page)
		q.After = r.Next
	}
}

func pageSizes(t *testing.T, s Fixture) {
	const n = 23
	s.WriteSites(t, townRows(0, n)...)
	for _, name := range sortedKeys(pagedQueries()) {
		q := pagedQueries()[name]
		whole := hitIDs(searchPage(t, s, q).Hits)
		if len(whole) != n {
			t.Errorf("%s: got %d sites, want %d", name, len(whole), n)
		}
		for _, limit := range []int{1, 2, 7, n - 1, n, n + 1} {
			q.Limit = limit
			if diff := cmp.Diff(whole, hitIDs(collectPages(t, s, q, func(int) {}))); diff != "" {
				t.Errorf("%s by %d: %s", name, limit, diff)
			}
		}
	}
}

func concurrentChanges(t *testing.T, s Fixture) {
	const n = 60
	for _, name := range sortedKeys(pagedQueries()) {
		q := pagedQueries()[name]
		q.Limit = 7
		s.WriteSites(t, townRows(0, n)...)
		got := map[string]int{}
		for _, h := range collectPages(t, s, q, func(page int) { changeTowns(t, s, page, n) }) {
			got[h.Site.ExternalID]++
		}
		for i := range n {
			id := townRow(i).ExternalID
			if stays := i%4 == 3; stays && got[id] != 1 {
				t.Errorf("%s: %s was found %d times", name, id, got[id])
			}
		}
	}
}

// changeTowns changes most towns: some go, some get another name and position, some come back.
func changeTowns(t *testing.T, s Fixture, page, n int) {
	var rows []table.Site
	for i := page % 4; i < n; i += 4 {
		switch row := townRow(i); {
		case i%4 == 0:
			rows = append(rows, deactivatedRow(row))
		case i%4 == 1:
			rows = append(rows, updatedRow(row, locations.StoredSite{Content: locations.Content{Name: fmt.Sprint("Magasin ", page)}, Position: positionAt(44.5+float64(page)/50, 3.5)}))
		case i%4 == 2:
			rows = append(rows, townRow(i+1000*(1+page)))
		}
	}
	if len(rows) > 0 {
		s.WriteSites(t, rows...)
	}
}

func manySites(t *testing.T, s Fixture) {
	const n = 11_000
	for from := 0; from < n; from += 1000 {
		s.WriteSites(t, townRows(from, from+1000)...)
	}
	for _, name := range []string{"name", "distance", "relevance"} {
		q := pagedQueries()[name]
		q.Limit = 1000
		hits := collectPages(t, s, q, func(int) {})
		inOrder := slices.IsSortedFunc(hits, func(a, b search.Hit) int {
			if q.EffectiveSort() == search.ByRelevance {
				return 0
			}
			return sortKeyOf(a).Compare(sortKeyOf(b))
		})
		found := hitIDs(hits)
		slices.Sort(found)
		if got := len(slices.Compact(found)); got != n || len(hits) != n || !inOrder {
			t.Errorf("%s: got %d sites in %d hits, want %d; in order: %v", name, got, len(hits), n, inOrder)
		}
	}
}

// sortKeyOf is where a hit stands by name, or by distance where there is one.
func sortKeyOf(h search.Hit) search.SortKey {
	return search.SortKey{Distance: h.Distance, Name: search.FoldName(h.Site.Name), ExternalID: h.Site.ExternalID, Referential: h.Site.Referential}
}

func cursors(t *testing.T, s Fixture) {
	s.WriteSites(t, townRows(0, 5)...)
	byName := searchPage(t, s, search.Query{Limit: 1}).Next
	if byName == "" {
		t.Fatal("got no cursor")
	}
	center := &search.Point{Lat: 44.5, Lon: 3.5}
	for _, q := range []search.Query{
		{After: byName, Text: "magasin"}, {After: byName, Center: center}, {After: byName, Center: center, Text: "magasin"},
		{After: "nonsense"}, {After: " "}, {After: byName + "x"}, {After: byName[1:]}, {After: "\x00"}, {After: "é"}, {After: byName[:len(byName)-3] + "===", Sort: search.ByName},
	} {
		q.Account, q.Limit = "a", 1
		if _, err := s.Engine().Search(t.Context(), q); !errors.Is(err, search.ErrInvalidCursor) {
			t.Errorf("%+v: got %v, want %v", q, err, search.ErrInvalidCursor)
		}
	}
}
