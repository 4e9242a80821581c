package projector_test

import (
	"strings"
	"sync"
	"testing"

	"lieudit/eventstore"
	"lieudit/projections/projector"
	"lieudit/projections/projector/projectortest"
	"lieudit/projections/register"
	"lieudit/projections/tally"
	"lieudit/schemas/event"
	"lieudit/schemas/ledger"
	"lieudit/schemas/plan"
	"lieudit/schemas/table"
	"lieudit/schemas/table/tabletest"
)

var period = plan.Date{Year: 2025, Month: 11, Day: 21}

func opening(contract string) event.Event {
	return event.UsageOpened{Contract: contract, First: period, Next: plan.Date{Year: 2025, Month: 12, Day: 21}, Cap: 1 << 40}
}

func tick(contract string, sequence int64) event.Event {
	return event.UsageTicked{Incarnation: "i", Sequence: sequence, Day: period,
		Counts: []event.UsageCount{{Account: contract, Key: contract + "-k", Endpoint: "GET /me", Requests: 1}}}
}

func TestWhatIsAddedUpIsAddedOnceWhenTheDatabaseGoesAway(t *testing.T) {
	t.Parallel()
	g, address := through(t, tabletest.Postgres(t))
	s := newScene(t, address)
	i := s.start(t, tally.Model)
	i.passed(t, projectortest.Append(t, s.log, s.codec, ledger.Stream("a", period), opening("a")))
	const ticks = 600
	half := make(chan struct{})
	var writer sync.WaitGroup
	writer.Go(func() {
		for n := range int64(ticks) {
			projectortest.Append(t, s.log, s.codec, ledger.Stream("a", period), tick("a", n+1))
			if n == ticks/2 {
				close(half)
			}
		}
	})
	for range 5 { // in the middle of whatever is going on
		g.set(true)
		g.set(false)
		i.passed(t, projectortest.Append(t, s.log, s.codec, ledger.Stream("b", period), opening("b")))
	}
	<-half
	g.set(true)
	writer.Wait()
	end := projectortest.Append(t, s.log, s.codec, ledger.Stream("a", period), tick("a", ticks)) // told before
	i.down(t, end)
	g.set(false)
	i.passed(t, end)
	if requests, used := i.counted(t, "a"); requests != ticks || used != ticks {
		t.Errorf("%d requests in lines and %d in the book, want %d", requests, used, ticks)
	}
}

// counted is what the lines and the book of an account hold.
func (i *instance) counted(t *testing.T, account string) (requests, used int64) {
	t.Helper()
	err := i.shelf.Read(t.Context(), table.Usage, func(db *table.DB) error {
		err := db.QueryRow(t.Context(), "select coalesce(sum(requests), 0) from usage_line where account = ?", account).Scan(&requests)
		if err != nil {
			return err
		}
		return db.QueryRow(t.Context(), "select coalesce(sum(used), 0) from usage_period where contract = ?", account).Scan(&used)
	})
	if err != nil {
		t.Fatal(err)
	}
	return requests, used
}

func TestModelsOfTwoLogsAreEachFilledFromTheirOwn(t *testing.T) {
	t.Parallel()
	tabletest.Each(t, func(t *testing.T, address string) {
		s, other := newScene(t, address), projectortest.Journal(t)
		shelf, err := table.OpenShelf(address)
		if err != nil {
			t.Fatal(err)
		}
		p := projector.New(s.log, s.codec, shelf, register.Model)
		p.Follow(other, tally.Model)
		i := s.run(t, p, shelf)
		accounts := projectortest.Fill(t, s.log, s.codec, 2)
		ticks := projectortest.Append(t, other, s.codec, ledger.Stream("a", period), opening("a"), tick("a", 1), tick("a", 2))
		i.passed(t, accounts, "register")
		i.passed(t, ticks, "usage")
		if requests, _ := i.counted(t, "a"); requests != 2 {
			t.Errorf("%d requests, want 2", requests)
		}
		until(t, "both are ready", func() bool { return i.Ready(t.Context()) == nil })
		all, err := i.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, st := range all {
			if want := map[string]eventstore.Position{"register": accounts, "usage": ticks}[st.Model]; st.Position < want || st.Behind != 0 {
				t.Errorf("%s is at %d, %d behind, want %d", st.Copy, st.Position, st.Behind, want)
			}
		}
		fresh, err := i.Rebuild(t.Context(), "usage")
		if err != nil {
			t.Fatal(err)
		}
		until(t, "the fresh copy serves", func() bool {
			c, err := i.shelf.Reads(t.Context(), table.Usage)
			return err == nil && c.Name == fresh
		})
		until(t, "the copy of before is dropped", func() bool {
			dropped, err := i.Prune(t.Context())
			return err == nil && strings.Join(dropped, " ") == "usage-v2-g1"
		})
	})
}
