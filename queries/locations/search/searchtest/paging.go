package searchtest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lieudit/queries/locations/search"
	"lieudit/schemas/geo"
	"lieudit/schemas/locations"
	"lieudit/schemas/table"
)

// Rules of the order of hits, and of what a hit shows. These orders are the same in every engine, so whole lists are
// compared.
var orders = []rule{
	{"by name: folded, without a name last, then by external id", byName},
	{"by distance: without a position last, then by name", byDistance},
	{"without a text relevance is distance, without a center the name", byDefault},
	{"a site is found as it was written", roundTrip},
}

// byName has names that differ in case, accents and ligatures alone, and names that fold to nothing. Numbers are compared
// as text: 12 is before 9.
func byName(t *testing.T, s Fixture) {
	s.WriteSites(t, namedRow("b-2", "Éclair"), namedRow("b-1", "eclair"), namedRow("c", "École"), namedRow("a", "Zoo"), namedRow("z", "abeille"), namedRow("x", "L'Abri"),
		namedRow("2", "12 Rue"), namedRow("1", "9 Rue"), namedRow("none", ""), namedRow("NONE", "★"), namedRow("œ", "œuf"), namedRow("of", "Office"))
	want := []string{"2", "1", "z", "b-1", "b-2", "c", "x", "œ", "of", "a", "NONE", "none"}
	wantOrder(t, s, search.Query{Sort: search.ByName}, want...)
	wantOrder(t, s, search.Query{}, want...)
	wantOrder(t, s, search.Query{Text: "rue", Sort: search.ByName}, "2", "1")
	wantOrder(t, s, search.Query{Text: "e", Sort: search.ByName}, "b-1", "b-2", "c")
}

// byDistance has two sites in one place, which are ordered by name, and two without a position.
func byDistance(t *testing.T, s Fixture) {
	s.WriteSites(t, placedRow("north", 44.6, 3.5), placedRow("here", 44.5, 3.5), placedRow("b", 44.52, 3.5), placedRow("a", 44.52, 3.5), namedRow("nowhere-2", "Zoo"), namedRow("nowhere-1", "zoo"),
		placedRow("east", 44.5, 3.55))
	center := &geo.Point{Lat: 44.5, Lon: 3.5}
	wantOrder(t, s, search.Query{Center: center, Sort: search.ByDistance}, "here", "a", "b", "east", "north", "nowhere-1", "nowhere-2")
	wantOrder(t, s, search.Query{Center: center, Sort: search.ByDistance, Radius: 5_000}, "here", "a", "b", "east")
	wantOrder(t, s, search.Query{Center: &geo.Point{Lat: 44.6, Lon: 3.5}, Sort: search.ByDistance, Text: "north"}, "north")
}

// byDefault has the orders of queries that ask for none: search.Query.EffectiveSort says which they get. A blank text is no
// text.
func byDefault(t *testing.T, s Fixture) {
	s.WriteSites(t, placedRow("a", 44.6, 3.5), placedRow("b", 44.5, 3.5), placedRow("c", 44.55, 3.5))
	center := &geo.Point{Lat: 44.5, Lon: 3.5}
	for _, sort := range []search.Sort{"", search.ByRelevance} {
		wantOrder(t, s, search.Query{Sort: sort}, "a", "b", "c")
		wantOrder(t, s, search.Query{Sort: sort, Text: "  "}, "a", "b", "c")
		wantOrder(t, s, search.Query{Sort: sort, Center: center}, "b", "c", "a")
		wantOrder(t, s, search.Query{Sort: sort, Center: center, Text: " "}, "b", "c", "a")
	}
	wantOrder(t, s, search.Query{Sort: search.ByName, Center: center}, "a", "b", "c")
}

// roundTrip compares every member of a site with what was written. The numbers have more digits than a float of 32 bits
// holds, and the properties a number that no float holds exactly.
func roundTrip(t *testing.T, s Fixture) {
	lat, lon := 44.5180123456789, 3.5010987654321
	stored := locations.StoredSite{
		Content: locations.Content{
			Name: `Le "Bœuf" <&> 🥐`, Address: &locations.SiteAddress{Line1: "1 rue A", Line2: "Bât. B", PostalCode: "48000", City: "Mende", InseeCode: "48095", Country: "FR"},
			Hours: []byte(`{"lun":["09:00-12:00"]}`), Phone: "04", Email: "a@b.fr", Website: "https://b.fr", Tags: []string{"b", "a"},
			Properties: []byte(`{"n":12345678901234567890,"x":1.0}`),
		},
		Position: &locations.Position{Lat: lat, Lon: lon, Source: locations.SourceBAN, IDBan: "id-ban", Score: 0.875, Precision: locations.PrecisionStreet},
	}
	row := deactivatedRow(NewSiteRow("a", "shops", "x", stored))
	s.WriteSites(t, row)
	want := locations.Site{
		ID: row.PublicID, Referential: "shops", ExternalID: "x", Content: stored.Content, Source: locations.SourceBAN, Score: 0.875, Precision: locations.PrecisionStreet,
		Version: 2, Created: row.Created.Time(), Modified: row.Modified.Time(), Deactivated: row.Deactivated.Time(),
	}
	want.Lat, want.Lon, want.IDBan = &lat, &lon, "id-ban"
	hits := searchPage(t, s, search.Query{Status: search.All, Text: "boeuf"}).Hits
	if diff := cmp.Diff([]search.Hit{{Site: want}}, hits); diff != "" {
		t.Error(diff)
	}
}

// Rules of pages and cursors. A cursor is Result.Next, which the next query has as After.
var pages = []rule{
	{"pages hold each site once, whatever their size", pageSizes},
	{"pages neither repeat nor skip what stays while others come, go and move", concurrentChanges},
	{"11,000 sites are paged through in every order", manySites},
	{"a cursor of another order is refused", cursors},
}

// pagedQueries are queries of every kind of order. Each finds every row of townRows.
func pagedQueries() map[string]search.Query {
	center := &geo.Point{Lat: 44.5, Lon: 3.5}
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

// townRow is a site that all pagedQueries find. Many of them have the same name, and many the same position. The names with
// %d are numbered, up to 97 of each.
func townRow(i int) table.Site {
	names := []string{"Magasin", "magasin %d", "Le Magasin", "Magasins réunis %d", "Magasin rouge"}
	name := names[i%len(names)]
	if i%len(names)%2 == 1 && i%len(names) < 4 {
		name = fmt.Sprintf(name, i%97)
	}
	return NewSiteRow("a", fmt.Sprint("r", i%3), fmt.Sprintf("x%05d", i), locations.StoredSite{
		Content: locations.Content{Name: name, Tags: []string{fmt.Sprint("t", i%7)}}, Position: positionAt(44.5+float64(i%101)/100, 3.5+float64(i%89)/100)})
}

// townRows are the rows from the number from up to and without to.
func townRows(from, to int) []table.Site {
	rows := make([]table.Site, 0, to-from)
	for i := from; i < to; i++ {
		rows = append(rows, townRow(i))
	}
	return rows
}

// collectPages reads all pages, and calls between after each but the last. Pages are numbered from 0.
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

// pageSizes compares pages of several sizes with one page of all. The sizes are such that a page ends before, at and after
// the last site.
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

// concurrentChanges changes three sites of four while it pages: the fourth must be found exactly once.
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

// changeTowns deactivates some towns, moves and renames others, and adds new ones. A page changes the towns of one
// remainder of i%4; those of the remainder 3 never change, so each of them must be found exactly once.
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

// manySites pages through 11,000 sites by 1,000. By relevance it checks only that each site comes once, as engines may
// differ in the order of those that answer equally well.
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

// sortKeyOf is the sort key of a hit by name, or by distance where it has one. A distance of 0 is right by name, where
// there is no center.
func sortKeyOf(h search.Hit) search.SortKey {
	return search.SortKey{Distance: h.Distance, Name: search.FoldName(h.Site.Name), ExternalID: h.Site.ExternalID, Referential: h.Site.Referential}
}

// cursors has cursors of another order, and texts that are none. Each is refused with ErrInvalidCursor.
func cursors(t *testing.T, s Fixture) {
	s.WriteSites(t, townRows(0, 5)...)
	byName := searchPage(t, s, search.Query{Limit: 1}).Next
	if byName == "" {
		t.Fatal("got no cursor")
	}
	center := &geo.Point{Lat: 44.5, Lon: 3.5}
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

// Rules that keep accounts apart. All sites of a rule are in one index or database, as those of all customers are.
var tenants = []rule{
	{"an account sees its own sites alone", isolation},
	{"an account that is not known has no sites", unknownAccounts},
}

// sortedKeys makes the order of queries the same in every run, as recordings need it.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// isolation gives the same sites to accounts whose ids look alike, and searches each by every kind of query. A site's phone
// is its account, and the number of sites differs from account to account.
func isolation(t *testing.T, s Fixture) {
	accounts := []string{"a", "b", "a-b", "ab"}
	for i, account := range accounts {
		for j := range i + 2 {
			s.WriteSites(t, NewSiteRow(account, "shops", fmt.Sprint("x", j), locations.StoredSite{
				Content:  locations.Content{Name: "Magasin", Phone: account, Tags: []string{"drive"}, Address: &locations.SiteAddress{City: "Mende"}},
				Position: positionAt(44.5, 3.5),
			}))
		}
	}
	s.WriteSites(t, deactivatedRow(NewSiteRow("b", "shops", "x0", locations.StoredSite{Content: locations.Content{Name: "Magasin", Phone: "b"}})))
	center := &geo.Point{Lat: 44.5, Lon: 3.5}
	for i, account := range accounts {
		for _, q := range []search.Query{
			{}, {Text: "magasin mende"}, {Text: "magazin"}, {Center: center, Radius: 10}, {Center: center, Sort: search.ByDistance}, {Tags: []string{"drive"}},
			{Referential: "shops"}, {Text: "x1", MatchExternalIDs: true}, {Status: search.All}, {Box: &search.Box{West: 3, South: 44, East: 4, North: 45}},
		} {
			q.Account, q.Limit = account, 1
			hits := collectPages(t, s, q, func(int) {})
			want := i + 2
			switch {
			case q.MatchExternalIDs:
				want = 1
			case account == "b" && q.Status != search.All:
				want--
			}
			if len(hits) != want {
				t.Errorf("%+v: got %d sites, want %d", q, len(hits), want)
			}
			wantOwnSites(t, account, hits)
		}
	}
}

// wantOwnSites fails unless all hits are sites of the account, by their phone.
func wantOwnSites(t *testing.T, account string, hits []search.Hit) {
	t.Helper()
	for _, h := range hits {
		if h.Site.Phone != account {
			t.Errorf("%s was shown a site of %s", account, h.Site.Phone)
		}
	}
}

// unknownAccounts has ids that would find sites of account a if they were part of a statement or a pattern.
func unknownAccounts(t *testing.T, s Fixture) {
	s.WriteSites(t, []table.Site{namedRow("x", "Magasin"), deactivatedRow(namedRow("y", "Magasin"))}...)
	for _, account := range []string{"unknown", "A", "a/", "a/shops", "a%", "*", "a' or '1'='1", `a" OR account = "a`} {
		for _, status := range []search.Status{search.Active, search.All} {
			for _, text := range []string{"", "magasin"} {
				wantSites(t, s, search.Query{Account: account, Status: status, Text: text})
			}
		}
	}
}
