package projector_test

import (
	"slices"
	"testing"

	"lieudit/eventstore"
	"lieudit/eventstore/sqldb/sqldbtest"
	"lieudit/projections/projector/projectortest"
	"lieudit/schemas/event"
	"lieudit/schemas/plan"
	"lieudit/schemas/table"
)

func TestUnreadableAccountsAreListedOnceAcrossGenerations(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		v := &lockedVault{lost: map[string]bool{}}
		s := &cluster{address: address, log: projectortest.OpenJournal(t), codec: eventstore.NewCodec(v)}
		accounts := []string{"a", "b", "c"}
		for _, account := range accounts {
			s.appendEvents(t, "locations-"+account, event.ReferentialOpened{Code: "m"}, siteRow("m", "x", event.SiteCreated, 1))
			s.appendEvents(t, "account-"+account, event.AccountOpened{Account: account, Name: "N", Anchor: plan.Date{Year: 2026, Month: 11, Day: 21}})
			v.setLost(account, account != "b")
		}
		i := s.startAllModels(t)
		i.awaitPosition(t, s.appendEvents(t, "locations-b", siteRow("m", "y", event.SiteCreated, 1)))
		i.requireStopped(t, table.LocationsModel, "a")
		i.requireStopped(t, table.AccountModel, "a")
		var found []string
		for after := ""; ; after = found[len(found)-1] {
			next, err := i.UnreadableAccounts(t.Context(), after, 1)
			if err != nil {
				t.Fatal(err)
			}
			if len(next) == 0 {
				break
			}
			found = append(found, next...)
		}
		if !slices.Equal(found, []string{"a", "c"}) {
			t.Errorf("got %v, want a and c, each once", found)
		}
	})
}
