package inventory_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"lieudit/projections/inventory"
	"lieudit/projections/projector/projectortest"
	"lieudit/schemas/event"
	"lieudit/schemas/table"
	"lieudit/schemas/table/tabletest"
)

const (
	stream = "locations-a"
	code   = "magasins"
)

func row(op, id string, version int64, content event.Personal) event.SiteRow {
	return event.SiteRow{ExternalID: id, Site: "site of " + id, Op: op, Version: version, Content: content}
}

func changed(after int, rows ...event.SiteRow) event.SitesChanged {
	return event.SitesChanged{SitesWritten: written(after), Rows: rows}
}

func written(after int) event.SitesWritten {
	return event.SitesWritten{Referential: code, Action: "sync", After: after}
}

// told are sites without what depends on the log's clock and places, which is checked to be there.
func told(t *testing.T, s *projectortest.Stage) []table.Site {
	t.Helper()
	rows := projectortest.Rows(s, table.Places, table.Sites)
	for i, r := range rows {
		if r.Created == 0 || r.Modified < r.Created || r.Position == 0 || r.Active == (r.Deactivated != 0) {
			t.Errorf("got %+v", r)
		}
		rows[i].Created, rows[i].Modified, rows[i].Deactivated, rows[i].Position = 0, 0, 0, 0
	}
	return rows
}

func shop(id string, version int64, active bool, content string) table.Site {
	return table.Site{ID: "a/magasins/" + id, Account: "a", Referential: code, ExternalID: id, Site: "site of " + id,
		Active: active, Version: version, Content: content}
}

func TestNoEventIsUnruled(t *testing.T) {
	t.Parallel()
	for _, outbox := range []bool{false, true} {
		if missing := inventory.Model(outbox).Unruled(); len(missing) > 0 {
			t.Errorf("neither handles nor ignores %v", missing)
		}
	}
}

func TestSitesAreWhatTheirRowsSay(t *testing.T) {
	t.Parallel()
	tabletest.Each(t, func(t *testing.T, address string) {
		s := projectortest.Start(t, address, inventory.Model(false))
		s.Append(stream, event.ReferentialOpened{Code: code})
		s.Append(stream, changed(3, row(event.SiteCreated, "p", 1, "1"), row(event.SiteCreated, "q", 1, "1"), row(event.SiteCreated, "r", 1, "1"), row(event.SiteCreated, "s", 1, "1")))
		s.Append(stream, changed(2, row(event.SiteUpdated, "p", 2, "2"), row(event.SiteDeactivated, "q", 2, ""), row(event.SiteDeactivated, "r", 2, ""), row(event.SiteDeactivated, "s", 2, "")))
		s.Append(stream, changed(3, row(event.SiteReactivated, "q", 3, ""), row(event.SiteReactivated, "r", 3, "3")))
		s.Append(stream, event.RequestKept{SitesWritten: written(3)})
		want := []table.Site{shop("p", 2, true, "2"), shop("q", 3, true, "1"), shop("r", 3, true, "3"), shop("s", 2, false, "1")}
		if diff := cmp.Diff(want, told(t, s)); diff != "" {
			t.Error(diff)
		}
		if got := projectortest.Rows(s, table.Places, table.Outbox); len(got) > 0 {
			t.Errorf("got %v in an outbox that is off", got)
		}
	})
}

func TestReferentialIsWhatItsEventsSay(t *testing.T) {
	t.Parallel()
	tabletest.Each(t, func(t *testing.T, address string) {
		s := projectortest.Start(t, address, inventory.Model(false))
		s.Append(stream, event.ReferentialOpened{Code: code, Name: "Magasins"}, event.ReferentialOpened{Code: "other"})
		s.Append(stream, changed(7), event.ReferentialRenamed{Code: code, Name: "Boutiques"})
		got := projectortest.Rows(s, table.Places, table.Referentials)
		if len(got) != 2 || got[0].Created == 0 || got[0].Position <= got[1].Position {
			t.Fatalf("got %+v", got)
		}
		got[0].Created, got[0].Position = 0, 0
		want := table.Referential{ID: "a/magasins", Account: "a", Code: code, Name: "Boutiques", Active: 7}
		if diff := cmp.Diff(want, got[0]); diff != "" {
			t.Error(diff)
		}
		s.Append(stream, changed(0), event.ReferentialArchived{Code: code})
		if got := projectortest.Rows(s, table.Places, table.Referentials)[0]; got.Active != 0 || got.Archived == 0 {
			t.Errorf("got %+v, want it archived and without sites", got)
		}
	})
}

func TestStagedRowsAreAsIfTheyStoodInTheCommitsPlace(t *testing.T) {
	t.Parallel()
	const n = 1000
	tabletest.Each(t, func(t *testing.T, address string) {
		s := projectortest.Start(t, address, inventory.Model(false))
		s.Append(stream, event.ReferentialOpened{Code: code})
		s.Sync(stream, written(n), projectortest.SiteRows(event.SiteCreated, 1, n))
		s.Sync(stream, written(n), projectortest.SiteRows(event.SiteUpdated, 2, n-1))
		s.Append(stream, changed(n, row(event.SiteUpdated, "shop-00000", 3, "{}")))
		sites := projectortest.Rows(s, table.Places, table.Sites)
		counts := projectortest.Rows(s, table.Places, table.Referentials)
		if len(sites) != n || counts[0].Active != n || counts[0].Position != sites[0].Position {
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
	tabletest.Each(t, func(t *testing.T, address string) {
		s := projectortest.Start(t, address, inventory.Model(true))
		s.Append(stream, event.ReferentialOpened{Code: code})
		s.Append(stream, changed(2, row(event.SiteCreated, "p", 1, "1"), row(event.SiteCreated, "q", 1, "1")))
		s.Append(stream, changed(1, row(event.SiteDeactivated, "p", 2, "")))
		sites := projectortest.Rows(s, table.Places, table.Sites)
		want := []table.Outgoing{{ID: sites[0].ID, Position: sites[0].Position}, {ID: sites[1].ID, Position: sites[1].Position}}
		if diff := cmp.Diff(want, projectortest.Rows(s, table.Places, table.Outbox)); diff != "" {
			t.Error(diff)
		}
	})
}

func TestReplayGivesTheSameRows(t *testing.T) {
	t.Parallel()
	tabletest.Each(t, func(t *testing.T, address string) {
		s := projectortest.Start(t, address, inventory.Model(true))
		s.Append(stream, event.ReferentialOpened{Code: code})
		s.Sync(stream, written(300), projectortest.SiteRows(event.SiteCreated, 1, 300))
		s.Sync(stream, written(0), projectortest.SiteRows(event.SiteDeactivated, 2, 300))
		s.Append("account-b", event.AccountErased{})
		s.Append(stream, changed(1, row(event.SiteReactivated, "shop-00007", 3, "")), event.ReferentialArchived{Code: code})
		type rows struct {
			Referentials []table.Referential
			Sites        []table.Site
			Outbox       []table.Outgoing
			Erasures     []table.Erasure
		}
		all := func() rows {
			return rows{projectortest.Rows(s, table.Places, table.Referentials), projectortest.Rows(s, table.Places, table.Sites),
				projectortest.Rows(s, table.Places, table.Outbox), projectortest.Rows(s, table.Places, table.Erasures)}
		}
		want := all()
		s.Rebuild(table.Places)
		if diff := cmp.Diff(want, all()); diff != "" {
			t.Error(diff)
		}
	})
}

func TestItServesWhileItIsFilledAgain(t *testing.T) {
	t.Parallel()
	const n = 500
	tabletest.Each(t, func(t *testing.T, address string) {
		m := inventory.Model(true)
		s := projectortest.Start(t, address, m)
		s.Append(stream, event.ReferentialOpened{Code: code})
		for version := int64(1); version <= 6; version++ {
			op := event.SiteUpdated
			if version == 1 {
				op = event.SiteCreated
			}
			s.Sync(stream, written(n), projectortest.SiteRows(op, version, n))
			switch version {
			case 2, 5:
				s.Rebuild(m.Model)
			case 3, 4:
				s.Restart(m) // in the middle of it
			}
			if sites := projectortest.Rows(s, m.Model, table.Sites); len(sites) != n || sites[0].Version != version || sites[n-1].Version != version {
				t.Fatalf("got %d sites, %+v first, want version %d", len(sites), sites[0], version)
			}
		}
	})
}
