package projector_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lieudit/eventstore"
	"lieudit/eventstore/deadlinetest"
	"lieudit/eventstore/sqldb"
	"lieudit/eventstore/sqldb/sqldbtest"
	"lieudit/projections/account"
	"lieudit/projections/projector"
	"lieudit/projections/projector/projectortest"
	"lieudit/schemas/event"
	"lieudit/schemas/plan"
	"lieudit/schemas/table"
)

// restoreCase is how an older copy of the log is restored.
type restoreCase struct {
	accounts int  // how many another instance appends to the copy
	running  bool // it is restored under running instances
}

// restoreCases: the copy is shorter than the rows, or has grown past them.
func restoreCases() map[string]restoreCase {
	all := map[string]restoreCase{}
	for length, accounts := range map[string]int{"shorter": 0, "longer": 150} {
		for _, running := range []bool{false, true} {
			all[fmt.Sprintf("%s, running %t", length, running)] = restoreCase{accounts, running}
		}
	}
	return all
}

func TestDivergedGenerationAnswersNothing(t *testing.T) {
	t.Parallel()
	for name, r := range restoreCases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sqldbtest.EachDatabase(t, func(t *testing.T, address string) { checkRestoredLog(t, address, r) })
		})
	}
}

func checkRestoredLog(t *testing.T, address string, r restoreCase) {
	s := newCluster(t, address)
	log := projectortest.NewRestorableLog(t)
	s.log = log
	projectortest.AppendAccounts(t, log, s.codec, 10)
	older := log.Backup(t)
	lost := projectortest.AppendAccountRange(t, log, s.codec, 1000, 1050)
	one, two := s.startInstance(t), s.startInstance(t)
	one.awaitPosition(t, lost)
	two.awaitPosition(t, lost)
	if !r.running {
		one.stop()
		two.stop()
	}
	log.Restore(t, older, func() { projectortest.AppendAccountRange(t, log, s.codec, 2000, 2000+r.accounts) })
	if !r.running {
		one, two = s.startInstance(t), s.startInstance(t)
	}
	for _, i := range []*instance{one, two} {
		for _, m := range []table.ReadModel{table.AccountModel, table.AuditModel} {
			until(t, m.Name+" is not asked", func() bool {
				return errors.Is(i.registry.Read(t.Context(), m, func(*sqldb.DB) error { return nil }), sqldb.ErrDiverged)
			})
		}
		until(t, "readiness says what to do", func() bool {
			err := i.Ready(t.Context())
			return err != nil && strings.Contains(err.Error(), "projections rebuild --all")
		})
	}
	at := projectortest.AppendAccountRange(t, log, s.codec, 3000, 3001)
	if err := two.AwaitPosition(deadlinetest.Context(t, deadlinetest.DefaultLimit), at); !errors.Is(err, projector.ErrDown) {
		t.Errorf("a write waits: got %v, want %v", err, projector.ErrDown)
	}
	checkRebuilt(t, s, at, one, two)
}

// checkRebuilt rebuilds a diverged generation and compares it with that of a new database.
func checkRebuilt(t *testing.T, s *cluster, at eventstore.Position, one, two *instance) {
	t.Helper()
	for _, m := range []table.ReadModel{table.AccountModel, table.AuditModel} {
		if _, err := one.Rebuild(t.Context(), m.Name); err != nil {
			t.Fatal(err)
		}
	}
	one.awaitPosition(t, at)
	two.awaitPosition(t, at)
	anew := &cluster{t.TempDir(), s.log, s.codec, s.vault}
	other := anew.startInstance(t)
	other.awaitPosition(t, at)
	want := other.readRows(t)
	for _, i := range []*instance{one, two} {
		if diff := cmp.Diff(want, i.readRows(t)); diff != "" {
			t.Errorf("rebuilt (-from zero +got):\n%s", diff)
		}
		until(t, "ready", func() bool { return i.Ready(t.Context()) == nil })
	}
}

func TestDivergedGenerationAnswersAgainWhenItsLogIsBack(t *testing.T) {
	t.Parallel()
	s := newCluster(t, t.TempDir())
	log := projectortest.NewRestorableLog(t)
	s.log = log
	projectortest.AppendAccounts(t, log, s.codec, 10)
	older := log.Backup(t)
	at := projectortest.AppendAccountRange(t, log, s.codec, 1000, 1050)
	right := log.Backup(t)
	one, two := s.startInstance(t), s.startInstance(t)
	one.awaitPosition(t, at)
	two.awaitPosition(t, at)
	log.Restore(t, older, func() {})
	read := func(i *instance) error {
		return i.registry.Read(t.Context(), table.AccountModel, func(*sqldb.DB) error { return nil })
	}
	for _, i := range []*instance{one, two} {
		until(t, "it is not asked", func() bool { return errors.Is(read(i), sqldb.ErrDiverged) })
		if err := i.Projector.Ready(t.Context()); err == nil {
			t.Error("a generation that holds what is not on the log counts as ready")
		}
		until(t, "no generation that is not asked holds up the start", func() bool { return i.Projector.CaughtUp(t.Context()) == nil })
	}
	log.Restore(t, right, func() {})
	at = projectortest.AppendAccountRange(t, log, s.codec, 3000, 3001)
	for _, i := range []*instance{one, two} {
		until(t, "it is asked again", func() bool { return read(i) == nil })
		i.awaitPosition(t, at)
	}
}

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

// countingLog counts the events that are read from the log.
type countingLog struct {
	eventstore.Store
	read int
}

func (l *countingLog) ReadAll(ctx context.Context, after eventstore.Checkpoint, filter eventstore.Filter) iter.Seq2[eventstore.Signal, error] {
	return func(yield func(eventstore.Signal, error) bool) {
		for s, err := range l.Store.ReadAll(ctx, after, filter) {
			if l.read++; !yield(s, err) {
				return
			}
		}
	}
}

func TestReadinessReadsNoMoreOfTheLogThanItNeeds(t *testing.T) {
	t.Parallel()
	s := newCluster(t, t.TempDir())
	i := s.startInstance(t)
	i.awaitPosition(t, projectortest.AppendAccountRange(t, s.log, s.codec, 0, 1))
	i.stop()
	projectortest.AppendAccountRange(t, s.log, s.codec, 1, 1500)
	registry, err := sqldb.OpenRegistry(s.address)
	if err != nil {
		t.Fatal(err)
	}
	defer registry.Close()
	log := &countingLog{Store: s.log}
	p := projector.New(log, s.codec, registry, account.Model)
	if err := p.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), "more than 500 events behind") {
		t.Errorf("got %v, want that the model is behind", err)
	}
	if log.read == 0 || log.read > 501 {
		t.Errorf("%d events were read, want 501 at most", log.read)
	}
	if all, err := p.Status(t.Context()); err != nil || !slices.ContainsFunc(all, func(s projector.Status) bool { return s.Lag >= 1499 }) {
		t.Errorf("the status is %+v, %v, want the whole lag", all, err)
	}
}
