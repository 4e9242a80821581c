package projector_test

import (
	"strings"
	"sync"
	"testing"

	"lieudit/eventstore"
	"lieudit/eventstore/sqldb"
	"lieudit/eventstore/sqldb/sqldbtest"
	"lieudit/projections/account"
	"lieudit/projections/projector"
	"lieudit/projections/projector/projectortest"
	"lieudit/projections/usage"
	"lieudit/schemas/event"
	"lieudit/schemas/plan"
	"lieudit/schemas/table"
	"lieudit/schemas/usagefold"
)

var period = plan.Date{Year: 2025, Month: 11, Day: 21}

func usageOpened(contract string) event.Event {
	return event.UsageOpened{Contract: contract, First: period, Next: plan.Date{Year: 2025, Month: 12, Day: 21}, Cap: 1 << 40}
}

func usageTicked(contract string, sequence int64) event.Event {
	return event.UsageTicked{InstanceID: "i", Sequence: sequence, Day: period,
		Counts: []event.UsageCount{{Account: contract, Key: contract + "-k", Endpoint: "GET /me", Requests: 1}}}
}

func TestMergedRowsAreAddedOnceWhenTheDatabaseGoesAway(t *testing.T) {
	t.Parallel()
	g, address := startProxy(t, sqldbtest.NewPostgresDatabase(t))
	s := newCluster(t, address)
	i := s.startInstance(t, usage.Model)
	i.awaitPosition(t, projectortest.Append(t, s.log, s.codec, usagefold.StreamName("a", period), usageOpened("a")))
	const ticks = 600
	half := make(chan struct{})
	var writer sync.WaitGroup
	writer.Go(func() {
		for n := range int64(ticks) {
			projectortest.Append(t, s.log, s.codec, usagefold.StreamName("a", period), usageTicked("a", n+1))
			if n == ticks/2 {
				close(half)
			}
		}
	})
	for range 5 { // at arbitrary moments
		g.setShut(true)
		g.setShut(false)
		i.awaitPosition(t, projectortest.Append(t, s.log, s.codec, usagefold.StreamName("b", period), usageOpened("b")))
	}
	<-half
	g.setShut(true)
	writer.Wait()
	end := projectortest.Append(t, s.log, s.codec, usagefold.StreamName("a", period), usageTicked("a", ticks)) // a duplicate
	i.requireDown(t, end)
	g.setShut(false)
	i.awaitPosition(t, end)
	if requests, used := i.usageTotals(t, "a"); requests != ticks || used != ticks {
		t.Errorf("%d requests in lines and %d in the book, want %d", requests, used, ticks)
	}
}

// usageTotals returns the totals of the usage lines and the period state of an account. A cut connection is noticed only when
// it is used, so it retries.
func (i *instance) usageTotals(t *testing.T, account string) (requests, used int64) {
	t.Helper()
	until(t, "usage read", func() bool {
		err := i.registry.Read(t.Context(), table.UsageModel, func(db *sqldb.DB) error {
			err := db.QueryRow(t.Context(), "select coalesce(sum(requests), 0) from {usage_line} where account = ?", account).Scan(&requests)
			if err != nil {
				return err
			}
			return db.QueryRow(t.Context(), "select coalesce(sum(used), 0) from {usage_period} where contract = ?", account).Scan(&used)
		})
		if err != nil {
			t.Log(err)
		}
		return err == nil
	})
	return requests, used
}

func TestModelsOfTwoLogsAreEachFilledFromTheirOwn(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		s, other := newCluster(t, address), projectortest.OpenJournal(t)
		registry, err := sqldb.OpenRegistry(address)
		if err != nil {
			t.Fatal(err)
		}
		p := projector.New(s.log, s.codec, registry, account.Model)
		p.AddModelFrom(other, usage.Model)
		i := s.runProjector(t, p, registry)
		accounts := projectortest.AppendAccounts(t, s.log, s.codec, 2)
		ticks := projectortest.Append(t, other, s.codec, usagefold.StreamName("a", period), usageOpened("a"), usageTicked("a", 1), usageTicked("a", 2))
		i.awaitPosition(t, accounts, "register")
		i.awaitPosition(t, ticks, "usage")
		if requests, _ := i.usageTotals(t, "a"); requests != 2 {
			t.Errorf("%d requests, want 2", requests)
		}
		until(t, "both are ready", func() bool { return i.Ready(t.Context()) == nil })
		all, err := i.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, st := range all {
			if want := map[string]eventstore.Position{"register": accounts, "usage": ticks}[st.Model]; st.Position < want || st.Lag != 0 {
				t.Errorf("%s is at %d, %d behind, want %d", st.Generation, st.Position, st.Lag, want)
			}
		}
		fresh, err := i.Rebuild(t.Context(), "usage")
		if err != nil {
			t.Fatal(err)
		}
		until(t, "the new generation serves", func() bool {
			c, err := i.registry.ServingGeneration(t.Context(), table.UsageModel)
			return err == nil && c.Name == fresh
		})
		until(t, "the earlier generation is dropped", func() bool {
			dropped, err := i.Prune(t.Context())
			return err == nil && strings.Join(dropped, " ") == "usage-v4-g1"
		})
	})
}
