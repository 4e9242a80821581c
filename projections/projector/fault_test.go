package projector_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"lieudit/eventstore"
	"lieudit/eventstore/deadlinetest"
	"lieudit/eventstore/sqldb"
	"lieudit/eventstore/sqldb/sqldbtest"
	"lieudit/projections/account"
	"lieudit/projections/audit"
	"lieudit/projections/projector"
	"lieudit/projections/projector/projectortest"
	"lieudit/schemas/event"
	"lieudit/schemas/plan"
	"lieudit/schemas/table"
)

// awaitStopReason waits until the serving generation of a model is stuck, and returns why.
func (i *instance) awaitStopReason(t *testing.T, model string) (reason string) {
	t.Helper()
	until(t, model+" stands still", func() bool {
		all, err := i.Status(t.Context())
		for _, s := range all {
			if err == nil && s.Model == model && s.IsServedHere {
				reason = s.Reason
			}
		}
		return reason != ""
	})
	return reason
}

// requireDown fails unless waiting for a position ends with ErrDown long before the test's limit.
func (i *instance) requireDown(t *testing.T, position eventstore.Position) {
	t.Helper()
	ctx := deadlinetest.Context(t, deadlinetest.DefaultLimit)
	if err := i.AwaitPosition(ctx, position); !errors.Is(err, projector.ErrDown) {
		t.Errorf("got %v, want %v", err, projector.ErrDown)
	}
}

func TestUnknownEventTypeStopsProjection(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		s := newCluster(t, address)
		before := projectortest.AppendAccounts(t, s.log, s.codec, 1)
		i := s.startInstance(t)
		i.awaitPosition(t, before)
		first := i.readRows(t)
		unknown := eventstore.ProposedEvent{ID: uuid.New(), Type: "account.painted.v1", Data: []byte("{}"), Metadata: []byte(`{"end":true}`)}
		if _, err := s.log.Append(t.Context(), "account-a000000", eventstore.Any, []eventstore.ProposedEvent{unknown}); err != nil {
			t.Fatal(err)
		}
		after := projectortest.Append(t, s.log, s.codec, "account-a000000", event.AccountClosed{})
		for _, m := range []string{"register", "history"} {
			if got := i.awaitStopReason(t, m); !strings.Contains(got, "account.painted.v1") {
				t.Errorf("%s: got reason %q", m, got)
			}
		}
		i.requireDown(t, after)
		if err := i.Ready(t.Context()); err == nil {
			t.Error("ready although it stands still")
		}
		if diff := cmp.Diff(first, i.readRows(t)); diff != "" {
			t.Errorf("rows changed: %s", diff)
		}
	})
}

// flakyVault is a vault that can be unavailable.
type flakyVault struct {
	projectortest.Vault
	isAway atomic.Bool
}

func (v *flakyVault) Key(ctx context.Context, subject string, create bool) ([]byte, error) {
	if v.isAway.Load() {
		return nil, errors.New("vault is away")
	}
	return v.Vault.Key(ctx, subject, create)
}

func TestStoppedProjectionResumesWhenTheCauseIsGone(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		v := &flakyVault{}
		codec := eventstore.NewCodec(v)
		s := &cluster{address: address, log: projectortest.OpenJournal(t), codec: codec}
		i := s.startInstance(t)
		i.awaitPosition(t, projectortest.AppendAccounts(t, s.log, codec, 1))
		opened, err := codec.Encode(t.Context(), "account-b", uuid.New(), eventstore.Metadata{}, []event.Event{event.AccountOpened{Account: "b", Name: "Bé", Anchor: plan.Date{Year: 2026, Month: 11, Day: 21}}})
		if err != nil {
			t.Fatal(err)
		}
		v.isAway.Store(true)
		done, err := s.log.Append(t.Context(), "account-b", eventstore.NoStream, opened)
		if err != nil {
			t.Fatal(err)
		}
		if got := i.awaitStopReason(t, "register"); !strings.Contains(got, "vault is away") {
			t.Errorf("got reason %q", got)
		}
		v.isAway.Store(false)
		i.awaitPosition(t, done.Position)
		if got := i.readRows(t).Accounts; len(got) != 2 || got[1].Name != "Bé" {
			t.Errorf("got accounts %v", got)
		}
		if err := i.Ready(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestOlderCopyOfTheLogStopsProjectionsUntilItIsReplaced(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		s := newCluster(t, address)
		i := s.startInstance(t)
		i.awaitPosition(t, projectortest.AppendAccounts(t, s.log, s.codec, 2))
		first := i.readRows(t)
		i.stop()

		right := s.log
		s.log = projectortest.OpenJournal(t)
		end := projectortest.AppendAccounts(t, s.log, s.codec, 3)
		i = s.startInstance(t)
		if got := i.awaitStopReason(t, "history"); !strings.Contains(got, "the log is not the one") {
			t.Errorf("got reason %q", got)
		}
		i.requireDown(t, end+1_000_000)
		for _, m := range []table.ReadModel{table.AccountModel, table.AuditModel} {
			until(t, m.Name+" is not asked", func() bool {
				return errors.Is(i.registry.Read(t.Context(), m, func(*sqldb.DB) error { return nil }), sqldb.ErrDiverged)
			})
		}
		i.stop()

		s.log = right
		i = s.startInstance(t)
		if diff := cmp.Diff(first, i.readRows(t)); diff != "" {
			t.Errorf("rows changed: %s", diff)
		}
		i.awaitPosition(t, projectortest.Append(t, s.log, s.codec, "account-a000000", event.AccountClosed{}))
		if got, want := len(i.readRows(t).Entries), len(first.Entries)+1; got != want {
			t.Errorf("got %d entries, want %d", got, want)
		}
	})
}

func TestRebuildReplacesAGenerationOfAnotherLog(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		s := newCluster(t, address)
		i := s.startInstance(t, audit.Model)
		i.awaitPosition(t, projectortest.AppendAccounts(t, s.log, s.codec, 9))
		i.stop()
		s.log = projectortest.OpenJournal(t)
		end := projectortest.AppendAccounts(t, s.log, s.codec, 1)
		i = s.startInstance(t, audit.Model)
		i.awaitStopReason(t, "history")
		if _, err := i.Rebuild(t.Context(), "history"); err != nil {
			t.Fatal(err)
		}
		until(t, "the new generation serves", func() bool {
			c, err := i.registry.ServingGeneration(t.Context(), table.AuditModel)
			return err == nil && c.Number == 2
		})
		i.awaitPosition(t, end)
	})
}

func TestTwoInstancesWriteEachEventOnce(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		s := newCluster(t, address)
		a, b := s.startInstance(t), s.startInstance(t)
		projectortest.AppendAccounts(t, s.log, s.codec, 30)
		a.stop() // the other takes over at once
		end := projectortest.AppendAccountRange(t, s.log, s.codec, 30, 60)
		c := s.startInstance(t)
		b.awaitPosition(t, end)
		c.awaitPosition(t, end)
		if diff := cmp.Diff(b.readRows(t), c.readRows(t)); diff != "" {
			t.Error(diff)
		}
		if got, want := len(c.readRows(t).Entries), 2*30*projectortest.EventsPerAccount; got != want {
			t.Errorf("got %d entries, want %d", got, want)
		}
	})
}

func TestInstanceWithoutLeaseSeesWhatTheOwnerWrites(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		s := newCluster(t, address)
		a := s.startInstance(t, account.Model)
		a.awaitPosition(t, projectortest.AppendAccounts(t, s.log, s.codec, 1))
		b := s.startInstance(t, account.Model)
		for range 5 {
			end := projectortest.Append(t, s.log, s.codec, "account-a000000", event.AccountClosed{})
			ctx, cancel := context.WithTimeout(t.Context(), deadlinetest.Scale(deadlinetest.DefaultLimit))
			begin := time.Now()
			if err := b.AwaitPosition(ctx, end, "register"); err != nil {
				t.Error(err)
			}
			cancel()
			if took := time.Since(begin); took > 2*time.Second {
				t.Errorf("a write was seen after %v", took)
			}
		}
	})
}

// TestDeadOwnerIsReplacedAlthoughTheClockWasSetBack: a lease with an impossibly late end was taken before the database's
// clock was set back.
func TestDeadOwnerIsReplacedAlthoughTheClockWasSetBack(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		s := newCluster(t, address)
		a := s.startInstance(t, audit.Model)
		a.awaitPosition(t, projectortest.AppendAccounts(t, s.log, s.codec, 1))
		a.stop()

		registry, err := sqldb.OpenRegistry(address)
		if err != nil {
			t.Fatal(err)
		}
		defer registry.Close()
		err = registry.Read(t.Context(), table.AuditModel, func(db *sqldb.DB) error {
			_, err := db.Exec(t.Context(), "update {checkpoint} set owner = 'dead', until = "+db.Now()+" + ?", time.Hour.Microseconds())
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		b := s.startInstance(t, audit.Model)
		b.awaitPosition(t, projectortest.Append(t, s.log, s.codec, "account-a000000", event.AccountClosed{}))
	})
}
