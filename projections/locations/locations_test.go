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

const (
	stream = "locations-a"
	code   = "magasins"
)

func siteRow(op, id string, version int64, content event.Personal) event.SiteRow {
	return event.SiteRow{ExternalID: id, SiteID: "site of " + id, Operation: op, Version: version, Content: content}
}

func sitesChanged(after int, rows ...event.SiteRow) event.SitesChanged {
	return event.SitesChanged{SiteWriteSummary: sitesWritten(after), Rows: rows}
}

func sitesWritten(after int) event.SiteWriteSummary {
	return event.SiteWriteSummary{Referential: code, Action: "sync", ActiveAfter: after}
}

// storedSites returns the sites without the fields that depend on times and positions; it only checks that those are set.
func storedSites(t *testing.T, s *projectortest.Fixture) []table.Site {
	t.Helper()
	rows := projectortest.Rows(s, table.LocationsModel, table.Sites)
	for i, r := range rows {
		if r.Created == 0 || r.Modified < r.Created || r.Position == 0 || r.Active == (r.Deactivated != 0) {
			t.Errorf("got %+v", r)
		}
		rows[i].Created, rows[i].Modified, rows[i].Deactivated, rows[i].Position = 0, 0, 0, 0
	}
	return rows
}

func wantSite(id string, version int64, active bool, content string) table.Site {
	return table.Site{ID: "a/magasins/" + id, Account: "a", Referential: code, ExternalID: id, PublicID: "site of " + id,
		Active: active, Version: version, Content: content}
}

func TestEveryEventOfLocationsHasAHandler(t *testing.T) {
	t.Parallel()
	for _, outbox := range []bool{false, true} {
		for _, missing := range locations.Model(outbox).Unhandled() {
			if !strings.HasPrefix(missing, "account.") { // of those it handles only the erasure
				t.Errorf("no handler for %s", missing)
			}
		}
	}
}

func TestSitesAreWhatTheirRowsSay(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		s := projectortest.Start(t, address, locations.Model(false))
		s.Append(stream, event.ReferentialOpened{Code: code})
		s.Append(stream, sitesChanged(3, siteRow(event.SiteCreated, "p", 1, "1"), siteRow(event.SiteCreated, "q", 1, "1"), siteRow(event.SiteCreated, "r", 1, "1"), siteRow(event.SiteCreated, "s", 1, "1")))
		s.Append(stream, sitesChanged(2, siteRow(event.SiteUpdated, "p", 2, "2"), siteRow(event.SiteDeactivated, "q", 2, ""), siteRow(event.SiteDeactivated, "r", 2, ""), siteRow(event.SiteDeactivated, "s", 2, "")))
		s.Append(stream, sitesChanged(3, siteRow(event.SiteReactivated, "q", 3, ""), siteRow(event.SiteReactivated, "r", 3, "3")))
		s.Append(stream, event.UnchangedWriteRecorded{SiteWriteSummary: sitesWritten(3)})
		want := []table.Site{wantSite("p", 2, true, "2"), wantSite("q", 3, true, "1"), wantSite("r", 3, true, "3"), wantSite("s", 2, false, "1")}
		if diff := cmp.Diff(want, storedSites(t, s)); diff != "" {
			t.Error(diff)
		}
		if got := projectortest.Rows(s, table.LocationsModel, table.Outbox); len(got) > 0 {
			t.Errorf("got %v in an outbox that is off", got)
		}
	})
}

func TestReferentialIsWhatItsEventsSay(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		s := projectortest.Start(t, address, locations.Model(false))
		s.Append(stream, event.ReferentialOpened{Code: code, Name: "Magasins"}, event.ReferentialOpened{Code: "other"})
		s.Append(stream, sitesChanged(7), event.ReferentialRenamed{Code: code, Name: "Boutiques"})
		got := projectortest.Rows(s, table.LocationsModel, table.Referentials)
		if len(got) != 2 || got[0].Created == 0 || got[0].Position <= got[1].Position {
			t.Fatalf("got %+v", got)
		}
		if r := got[0]; r.Changed != r.Position || r.Modified <= r.Created {
			t.Errorf("got %+v, want it changed when it was renamed", r)
		}
		renamed := got[0]
		got[0].Created, got[0].Position, got[0].Changed, got[0].Modified = 0, 0, 0, 0
		want := table.Referential{ID: "a/magasins", Account: "a", Code: code, Name: "Boutiques", ActiveSites: 7}
		if diff := cmp.Diff(want, got[0]); diff != "" {
			t.Error(diff)
		}
		s.Append(stream, sitesChanged(6))
		if r := projectortest.Rows(s, table.LocationsModel, table.Referentials)[0]; r.Changed != renamed.Changed || r.Modified != renamed.Modified || r.Position <= renamed.Position {
			t.Errorf("got %+v after %+v, want it unchanged by a write of sites", r, renamed)
		}
		s.Append(stream, sitesChanged(0), event.ReferentialArchived{Code: code})
		if got := projectortest.Rows(s, table.LocationsModel, table.Referentials)[0]; got.ActiveSites != 0 || got.Archived == 0 || got.Changed != got.Position {
			t.Errorf("got %+v, want it archived and without sites", got)
		}
	})
}

func TestStagedRowsGetThePositionOfTheirCommit(t *testing.T) {
	t.Parallel()
	const n = 1000
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		s := projectortest.Start(t, address, locations.Model(false))
		s.Append(stream, event.ReferentialOpened{Code: code})
		s.Sync(stream, sitesWritten(n), projectortest.SiteRows(event.SiteCreated, 1, n))
		s.Sync(stream, sitesWritten(n), projectortest.SiteRows(event.SiteUpdated, 2, n-1))
		s.Append(stream, sitesChanged(n, siteRow(event.SiteUpdated, "shop-00000", 3, "{}")))
		sites := projectortest.Rows(s, table.LocationsModel, table.Sites)
		counts := projectortest.Rows(s, table.LocationsModel, table.Referentials)
		if len(sites) != n || counts[0].ActiveSites != n || counts[0].Position != sites[0].Position {
			t.Fatalf("got %d sites and %+v, want %d", len(sites), counts, n)
		}
		first, second, last := sites[0], sites[1], sites[n-1]
		if first.Version != 3 || second.Version != 2 || last.Version != 1 || first.Position <= second.Position || second.Position <= last.Position {
			t.Errorf("got %+v, %+v, %+v", first, second, last)
		}
		if want := string(projectortest.SiteContent(n - 1)); last.Content != want {
			t.Errorf("got %s, want %s", last.Content, want)
		}
	})
}

func TestOutboxNamesWhatChanged(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		s := projectortest.Start(t, address, locations.Model(true))
		s.Append(stream, event.ReferentialOpened{Code: code})
		s.Append(stream, sitesChanged(2, siteRow(event.SiteCreated, "p", 1, "1"), siteRow(event.SiteCreated, "q", 1, "1")))
		s.Append(stream, sitesChanged(1, siteRow(event.SiteDeactivated, "p", 2, "")))
		sites := projectortest.Rows(s, table.LocationsModel, table.Sites)
		want := []table.OutboxEntry{{ID: sites[0].ID, Position: sites[0].Position}, {ID: sites[1].ID, Position: sites[1].Position}}
		if diff := cmp.Diff(want, projectortest.Rows(s, table.LocationsModel, table.Outbox)); diff != "" {
			t.Error(diff)
		}
	})
}

func TestReplayGivesTheSameRows(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		s := projectortest.Start(t, address, locations.Model(true))
		s.Append(stream, event.ReferentialOpened{Code: code})
		s.Sync(stream, sitesWritten(300), projectortest.SiteRows(event.SiteCreated, 1, 300))
		s.Sync(stream, sitesWritten(0), projectortest.SiteRows(event.SiteDeactivated, 2, 300))
		s.Append("account-b", event.AccountErased{})
		s.Append(stream, sitesChanged(1, siteRow(event.SiteReactivated, "shop-00007", 3, "")), event.ReferentialArchived{Code: code})
		type rows struct {
			Referentials []table.Referential
			Sites        []table.Site
			Outbox       []table.OutboxEntry
			Erasures     []table.Erasure
		}
		all := func() rows {
			return rows{projectortest.Rows(s, table.LocationsModel, table.Referentials), projectortest.Rows(s, table.LocationsModel, table.Sites),
				projectortest.Rows(s, table.LocationsModel, table.Outbox), projectortest.Rows(s, table.LocationsModel, table.Erasures)}
		}
		want := all()
		s.Rebuild(table.LocationsModel)
		if diff := cmp.Diff(want, all()); diff != "" {
			t.Error(diff)
		}
	})
}

func TestReadModelServesWhileItIsRebuilt(t *testing.T) {
	t.Parallel()
	const n = 500
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		m := locations.Model(true)
		s := projectortest.Start(t, address, m)
		s.Append(stream, event.ReferentialOpened{Code: code})
		for version := int64(1); version <= 6; version++ {
			op := event.SiteUpdated
			if version == 1 {
				op = event.SiteCreated
			}
			s.Sync(stream, sitesWritten(n), projectortest.SiteRows(op, version, n))
			switch version {
			case 2, 5:
				s.Rebuild(m.ReadModel)
			case 3, 4:
				s.Restart(m) // in the middle of it
			}
			if sites := projectortest.Rows(s, m.ReadModel, table.Sites); len(sites) != n || sites[0].Version != version || sites[n-1].Version != version {
				t.Fatalf("got %d sites, %+v first, want version %d", len(sites), sites[0], version)
			}
		}
	})
}

func TestErasureDeletesTheSitesOfItsAccountAlone(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		s := projectortest.Start(t, address, locations.Model(true))
		for _, stream := range []string{"locations-a", "locations-b"} {
			s.Append(stream, event.ReferentialOpened{Code: code})
			s.Append(stream, sitesChanged(1, siteRow(event.SiteCreated, "p", 1, "1")))
		}
		s.Append("account-a", event.AccountErased{})
		late := sitesChanged(2, siteRow(event.SiteUpdated, "p", 2, "2"), siteRow(event.SiteCreated, "q", 1, "1")) // was in progress
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
