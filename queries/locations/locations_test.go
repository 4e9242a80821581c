package locations_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"lieudit/eventstore/sqldb"
	"lieudit/eventstore/sqldb/sqldbtest"
	"lieudit/queries/locations"
	"lieudit/queries/locations/search"
	sites "lieudit/schemas/locations"
	"lieudit/schemas/table"
)

var begin = time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)

// openReader makes a Reader of the given rows, and a function that writes more sites.
func openReader(t *testing.T, address string, referentials []table.Referential, sites []table.Site) (*locations.Reader, func(...table.Site)) {
	t.Helper()
	registry, db, promote := sqldbtest.NewGeneration(t, address, table.LocationsModel)
	writeSites := func(sites ...table.Site) {
		t.Helper()
		if err := db.RunInTx(t.Context(), func(tx *sqldb.Tx) error { return sqldb.Upsert(t.Context(), tx, table.Sites, sites) }); err != nil {
			t.Fatal(err)
		}
	}
	writeSites(sites...)
	if err := db.RunInTx(t.Context(), func(tx *sqldb.Tx) error { return sqldb.Upsert(t.Context(), tx, table.Referentials, referentials) }); err != nil {
		t.Fatal(err)
	}
	promote()
	return locations.New(registry), writeSites
}

func row(account, code, id string, active bool) table.Site {
	return table.Site{ID: table.SiteID(account, code, id), Account: account, Referential: code, ExternalID: id, Active: active, Content: "{}"}
}

func TestReferentialsAreListedByCodeAndStatus(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		of := func(account, code string, archived time.Time) table.Referential {
			return table.Referential{ID: table.ReferentialID(account, code), Account: account, Code: code, Name: "Nom " + code, Created: table.InstantOf(begin), Archived: table.InstantOf(archived), ActiveSites: 3}
		}
		p, _ := openReader(t, address, []table.Referential{of("a", "z", begin), of("a", "m", time.Time{}), of("a", "A_", time.Time{}), of("b", "n", time.Time{})}, nil)
		for status, want := range map[string][]string{"": {"A_", "m", "z"}, "active": {"A_", "m"}, "archived": {"z"}} {
			for limit := 1; limit <= 4; limit++ {
				if diff := cmp.Diff(want, readReferentials(t, p, status, limit)); diff != "" {
					t.Errorf("%q by %d: %s", status, limit, diff)
				}
			}
		}
		got, err := p.FindReferential(t.Context(), "a", "z")
		want := locations.Referential{Code: "z", Name: "Nom z", Created: begin, Archived: begin, Active: 3}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Error(err, diff)
		}
	})
}

func readReferentials(t *testing.T, p *locations.Reader, status string, limit int) (codes []string) {
	t.Helper()
	for page := (locations.Page{Limit: limit}); ; {
		found, next, err := p.ListReferentials(t.Context(), "a", status, page)
		if err != nil || len(found) > limit {
			t.Fatalf("got %d of %d, %v", len(found), limit, err)
		}
		for _, r := range found {
			codes = append(codes, r.Code)
		}
		if next == "" {
			return codes
		}
		page.Cursor = next
	}
}

// TestAPageEndsWithTheSiteThatReachesItsBytes: the contents of the sites have 2, 14, 2, 14… bytes.
func TestAPageEndsWithTheSiteThatReachesItsBytes(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		var rows []table.Site
		for i := range 6 {
			r := row("a", "m", fmt.Sprint(i), true)
			if i%2 == 1 {
				r.Content = `{"x":"ééé"}` // more bytes than characters
			}
			rows = append(rows, r)
		}
		p, _ := openReader(t, address, nil, rows)
		for _, c := range []struct {
			limit, maxBytes int
			want            string // the last site of each page
		}{
			{9, 0, "5"}, {9, 1, "012345"}, {9, 2, "012345"}, {9, 3, "135"}, {9, 14, "135"}, {9, 17, "25"}, {9, 42, "5"}, {2, 14, "135"}, {2, 99, "135"}, {5, 99, "45"},
		} {
			got := ""
			for page := (locations.Page{Limit: c.limit, MaxBytes: c.maxBytes}); ; {
				found, next, err := p.ListSites(t.Context(), "a", "m", search.All, page)
				if err != nil || len(found) == 0 {
					t.Fatalf("got %d, %v", len(found), err)
				}
				got += found[len(found)-1].ExternalID
				if page.Cursor = next; next == "" {
					break
				}
			}
			if got != c.want {
				t.Errorf("%d rows, %d bytes: pages end with %s, want %s", c.limit, c.maxBytes, got, c.want)
			}
		}
	})
}

func TestSitesComeInPagesWithoutGap(t *testing.T) {
	t.Parallel()
	ids := []string{"-", ".", "0", "1", "10", "2", "A", "Z", "_", "a", "a.b", "z", "~"} // in the order of bytes
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		var rows []table.Site
		for i, id := range ids {
			rows = append(rows, row("a", "m", id, i%3 > 0), row("a", "m0", id, true), row("a", "m-", id, true), row("a", "l", id, true), row("b", "m", id, true))
		}
		p, _ := openReader(t, address, nil, rows)
		for status, want := range map[search.Status][]string{"": ids, search.All: ids, search.Inactive: {"-", "1", "A", "a", "~"},
			search.Active: {".", "0", "10", "2", "Z", "_", "a.b", "z"}} {
			for limit := 1; limit <= len(ids)+1; limit++ {
				if diff := cmp.Diff(want, readAllPages(t, p, status, limit)); diff != "" {
					t.Errorf("%q by %d: %s", status, limit, diff)
				}
			}
		}
	})
}

func readAllPages(t *testing.T, p *locations.Reader, status search.Status, limit int) (ids []string) {
	t.Helper()
	for page := (locations.Page{Limit: limit}); ; {
		found, next, err := p.ListSites(t.Context(), "a", "m", status, page)
		if err != nil || len(found) > limit {
			t.Fatalf("got %d of %d, %v", len(found), limit, err)
		}
		for _, s := range found {
			ids = append(ids, s.ExternalID)
		}
		if next == "" {
			return ids
		}
		page.Cursor = next
	}
}

func TestACursorStaysValidWhileSitesChange(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		p, writeSites := openReader(t, address, nil, []table.Site{row("a", "m", "b", true), row("a", "m", "d", true), row("a", "m", "f", true)})
		_, next, err := p.ListSites(t.Context(), "a", "m", search.Active, locations.Page{Limit: 2})
		if err != nil {
			t.Fatal(err)
		}
		writeSites(row("a", "m", "a", true), row("a", "m", "d", false), row("a", "m", "e", true))
		rest, _, err := p.ListSites(t.Context(), "a", "m", search.Active, locations.Page{Cursor: next, Limit: 9})
		if err != nil || len(rest) != 2 || rest[0].ExternalID != "e" || rest[1].ExternalID != "f" {
			t.Errorf("got %+v, %v", rest, err)
		}
		for _, cursor := range []string{"x", "!", "Lw", next + "A", next + "="} { // Lw is a slash
			if _, _, err := p.ListSites(t.Context(), "a", "m", search.All, locations.Page{Cursor: cursor, Limit: 1}); !errors.Is(err, locations.ErrInvalidCursor) {
				t.Errorf("%q: got %v, want %v", cursor, err, locations.ErrInvalidCursor)
			}
		}
	})
}

// atOnce has every page be read without a wait.
func atOnce(context.Context) (release func(), err error) { return func() {}, nil }

func TestActiveSitesYieldsAllActiveSites(t *testing.T) {
	t.Parallel()
	const n = 1200
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		var rows []table.Site
		for i := range n {
			rows = append(rows, row("a", "m", fmt.Sprintf("%05d", i), i%2 == 0))
		}
		p, _ := openReader(t, address, nil, rows)
		got := 0
		for s, err := range p.ActiveSites(t.Context(), "a", "m", atOnce) {
			if want := fmt.Sprintf("%05d", 2*got); err != nil || s.ExternalID != want {
				t.Fatalf("got %s, %v, want %s", s.ExternalID, err, want)
			}
			got++
		}
		if got != n/2 {
			t.Errorf("got %d, want %d", got, n/2)
		}
		for range p.ActiveSites(t.Context(), "a", "m", atOnce) {
			break
		}
	})
}

func TestAnAccountWithoutSitesGetsEmptyAnswers(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		p, _ := openReader(t, address, nil, []table.Site{row("a", "m", "p", true)})
		referentials, _, err := p.ListReferentials(t.Context(), "b", "", locations.Page{Limit: 9})
		sites, next, sitesErr := p.ListSites(t.Context(), "b", "m", search.All, locations.Page{Limit: 1})
		if len(referentials)+len(sites) > 0 || next != "" || err != nil || sitesErr != nil {
			t.Errorf("got %v, %v, %q, %v, %v", referentials, sites, next, err, sitesErr)
		}
		for s, err := range p.ActiveSites(t.Context(), "b", "m", atOnce) {
			t.Errorf("got %v, %v", s, err)
		}
		if _, err := p.FindSite(t.Context(), "b", "m", "p"); !errors.Is(err, locations.ErrNotFound) {
			t.Errorf("got %v", err)
		}
		if _, err := p.FindReferential(t.Context(), "b", "m"); !errors.Is(err, locations.ErrNotFound) {
			t.Errorf("got %v", err)
		}
	})
}

func TestASiteHasAllColumnsOfItsRow(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		stored := row("a", "m", "p", false)
		stored.PublicID, stored.Version, stored.Content = "id", 7, `{"content":{"nom":"Boutique","tags":["x"]},"position":{"lat":44.5,"lon":3.5,"source":"ban","id_ban":"u","score":0.9}}`
		stored.Created, stored.Modified, stored.Deactivated = table.InstantOf(begin), table.InstantOf(begin.Add(time.Hour)), table.InstantOf(begin.Add(time.Hour))
		erased := row("a", "m", "q", true)
		erased.Content = ""
		p, _ := openReader(t, address, nil, []table.Site{stored, erased})
		lat, lon := 44.5, 3.5
		want := sites.Site{ID: "id", Referential: "m", ExternalID: "p", Version: 7, Source: sites.SourceBAN, Score: 0.9,
			Content: sites.Content{Name: "Boutique", Tags: []string{"x"}, IDBan: "u", Lat: &lat, Lon: &lon},
			Created: begin, Modified: begin.Add(time.Hour), Deactivated: begin.Add(time.Hour)}
		got, err := p.FindSite(t.Context(), "a", "m", "p")
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Error(err, diff)
		}
		if got, err := p.FindSite(t.Context(), "a", "m", "q"); err != nil || got.Name != "" || !got.Active {
			t.Errorf("got %+v, %v", got, err)
		}
	})
}
