package locations_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lieudit/eventstore/sqldb/sqldbtest"
	"lieudit/projections/locations"
	"lieudit/projections/projector/projectortest"
	"lieudit/schemas/event"
	"lieudit/schemas/table"
)

func TestErasureDeletesTheSitesOfItsAccountAlone(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		s := projectortest.Start(t, address, locations.Model(true))
		for _, stream := range []string{"locations-a", "locations-b"} {
			s.Append(stream, event.ReferentialOpened{Code: code})
			s.Append(stream, sitesChanged(1, siteRow(event.SiteCreated, "p", 1, "1")))
		}
		s.Append("account-a", event.AccountErased{})
		late := sitesChanged(2, siteRow(event.SiteUpdated, "p", 2, "2"), siteRow(event.SiteCreated, "q", 1, "1")) // was under way
		s.Append("locations-a", late)
		for _, how := range []string{"filled", "filled again"} {
			sites := projectortest.Rows(s, table.LocationsModel, table.Sites)
			if len(sites) != 1 || sites[0].Account != "b" {
				t.Errorf("%s: got %+v, want that of b", how, sites)
			}
			if got := projectortest.Rows(s, table.LocationsModel, table.Referentials); len(got) != 2 {
				t.Errorf("%s: got %+v, want both", how, got)
			}
			var told []string
			for _, o := range projectortest.Rows(s, table.LocationsModel, table.Outbox) {
				told = append(told, o.ID)
			}
			if diff := cmp.Diff([]string{"a/", "a/magasins/p", "b/magasins/p"}, told); diff != "" {
				t.Errorf("%s: %s", how, diff)
			}
			s.Rebuild(table.LocationsModel) // now all in one batch
		}
	})
}

func TestErasedSiteIsScrubbedFromEveryFile(t *testing.T) {
	t.Parallel()
	const accounts = 40
	folder := t.TempDir()
	s := projectortest.Start(t, folder, locations.Model(true))
	name := func(account, i int) string { return fmt.Sprintf("Boutique-%d-%d-", account, i) }
	for a := range accounts {
		var rows []event.SiteRow
		for i := range 20 {
			content := name(a, i) + strings.Repeat("x", i*i*i) // some far longer than a page
			rows = append(rows, siteRow(event.SiteCreated, fmt.Sprint(i), 1, event.Personal(content)))
		}
		s.Append(fmt.Sprintf("locations-%d", a), event.ReferentialOpened{Code: code})
		s.Sync(fmt.Sprintf("locations-%d", a), sitesWritten(20), rows)
	}
	projectortest.Rows(s, table.LocationsModel, table.Sites)
	if !projectortest.FolderContains(t, folder, name(1, 19)) {
		t.Fatal("the name is in no file while it is in use")
	}
	for a := range accounts {
		if a%5 > 0 {
			s.Append(fmt.Sprintf("account-%d", a), event.AccountErased{})
		}
	}
	projectortest.Rows(s, table.LocationsModel, table.Sites)
	for a := range accounts {
		for _, i := range []int{0, 10, 19} {
			if got, want := projectortest.FolderContains(t, folder, name(a, i)), a%5 == 0; got != want {
				t.Fatalf("site %d of account %d in files: %v, want %v", i, a, got, want)
			}
		}
	}
}
