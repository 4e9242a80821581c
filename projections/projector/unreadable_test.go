package projector_test

import (
	"slices"
	"testing"

	"lieudit/eventstore"
	"lieudit/projections/projector/projectortest"
	"lieudit/schemas/event"
	"lieudit/schemas/plan"
	"lieudit/schemas/table"
	"lieudit/schemas/table/tabletest"
)

func TestUnreadableAccountsAreListedInTurnAcrossCopies(t *testing.T) {
	t.Parallel()
	tabletest.Each(t, func(t *testing.T, address string) {
		v := &locked{lost: map[string]bool{}}
		s := &scene{address: address, log: projectortest.Journal(t), codec: eventstore.NewCodec(v)}
		accounts := []string{"a", "b", "c"}
		for _, account := range accounts {
			s.append(t, "locations-"+account, event.ReferentialOpened{Code: "m"}, siteRow("m", "x", event.SiteCreated, 1))
			s.append(t, "account-"+account, event.AccountOpened{Account: account, Name: "N", Anchor: plan.Date{Year: 2026, Month: 11, Day: 21}})
			v.lose(account, account != "b")
		}
		i := s.placed(t)
		i.passed(t, s.append(t, "locations-b", siteRow("m", "y", event.SiteCreated, 1)))
		i.stopped(t, table.Places, "a")
		i.stopped(t, table.Register, "a")
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
