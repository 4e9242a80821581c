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
	"lieudit/projections/history"
	"lieudit/projections/projector"
	"lieudit/projections/projector/projectortest"
	"lieudit/projections/register"
	"lieudit/schemas/deadlinetest"
	"lieudit/schemas/event"
	"lieudit/schemas/plan"
	"lieudit/schemas/table"
	"lieudit/schemas/table/tabletest"
)

// reason waits until the copy of a model that answers stands still, and says why.
func (i *instance) reason(t *testing.T, model string) (reason string) {
	t.Helper()
	until(t, model+" stands still", func() bool {
		all, err := i.Status(t.Context())
		for _, s := range all {
			if err == nil && s.Model == model && s.Answers {
				reason = s.Reason
			}
		}
		return reason != ""
	})
	return reason
}

// down fails unless waiting for a position is given up long before the test's limit.
func (i *instance) down(t *testing.T, position eventstore.Position) {
	t.Helper()
	ctx := deadlinetest.Context(t, deadlinetest.Hang)
	if err := i.Wait(ctx, position); !errors.Is(err, projector.ErrDown) {
		t.Errorf("got %v, want %v", err, projector.ErrDown)
	}
}

func TestEventItDoesNotKnowStopsAProjection(t *testing.T) {
	t.Parallel()
	tabletest.Each(t, func(t *testing.T, address string) {
		s := newScene(t, address)
		before := projectortest.Fill(t, s.log, s.codec, 1)
		i := s.start(t)
		i.passed(t, before)
		first := i.rows(t)
		unknown := eventstore.Proposed{ID: uuid.New(), Type: "account.painted.v1", Data: []byte("{}"), Metadata: []byte(`{"end":true}`)}
		if _, err := s.log.Append(t.Context(), "account-a000000", eventstore.Any, []eventstore.Proposed{unknown}); err != nil {
			t.Fatal(err)
		}
		after := projectortest.Append(t, s.log, s.codec, "account-a000000", event.AccountClosed{})
		for _, m := range []string{"register", "history"} {
			if got := i.reason(t, m); !strings.Contains(got, "account.painted.v1") {
				t.Errorf("%s: got reason %q", m, got)
			}
		}
		i.down(t, after)
		if err := i.Ready(t.Context()); err == nil {
			t.Error("ready although it stands still")
		}
		if diff := cmp.Diff(first, i.rows(t)); diff != "" {
			t.Errorf("rows changed: %s", diff)
		}
	})
}

// elusive is a vault that can be away.
type elusive struct {
	projectortest.Vault
	away atomic.Bool
}

func (v *elusive) Key(ctx context.Context, subject string, create bool) ([]byte, error) {
	if v.away.Load() {
		return nil, errors.New("vault is away")
	}
	return v.Vault.Key(ctx, subject, create)
}

func TestProjectionGoesOnWhenItsCauseIsGone(t *testing.T) {
	t.Parallel()
	tabletest.Each(t, func(t *testing.T, address string) {
		v := &elusive{}
		codec := eventstore.NewCodec(v)
		s := &scene{address: address, log: projectortest.Journal(t), codec: codec}
		i := s.start(t)
		i.passed(t, projectortest.Fill(t, s.log, codec, 1))
		opened, err := codec.Encode(t.Context(), "account-b", uuid.New(), eventstore.Metadata{}, []event.Event{event.AccountOpened{Account: "b", Name: "Bé", Anchor: plan.Date{Year: 2026, Month: 11, Day: 21}}})
		if err != nil {
			t.Fatal(err)
		}
		v.away.Store(true)
		done, err := s.log.Append(t.Context(), "account-b", eventstore.NoStream, opened)
		if err != nil {
			t.Fatal(err)
		}
		if got := i.reason(t, "register"); !strings.Contains(got, "vault is away") {
			t.Errorf("got reason %q", got)
		}
		v.away.Store(false)
		i.passed(t, done.Position)
		if got := i.rows(t).Accounts; len(got) != 2 || got[1].Name != "Bé" {
			t.Errorf("got accounts %v", got)
		}
		if err := i.Ready(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestOlderCopyOfTheLogStopsProjectionsUntilItIsReplaced(t *testing.T) {
	t.Parallel()
	tabletest.Each(t, func(t *testing.T, address string) {
		s := newScene(t, address)
		i := s.start(t)
		i.passed(t, projectortest.Fill(t, s.log, s.codec, 2))
		first := i.rows(t)
		i.stop()

		right := s.log
		s.log = projectortest.Journal(t)
		end := projectortest.Fill(t, s.log, s.codec, 3)
		i = s.start(t)
		if got := i.reason(t, "history"); !strings.Contains(got, "the log is not the one") {
			t.Errorf("got reason %q", got)
		}
		i.down(t, end+1_000_000)
		for _, m := range []table.Model{table.Register, table.History} {
			until(t, m.Name+" is not asked", func() bool {
				return errors.Is(i.shelf.Read(t.Context(), m, func(*table.DB) error { return nil }), table.ErrAstray)
			})
		}
		i.stop()

		s.log = right
		i = s.start(t)
		if diff := cmp.Diff(first, i.rows(t)); diff != "" {
			t.Errorf("rows changed: %s", diff)
		}
		i.passed(t, projectortest.Append(t, s.log, s.codec, "account-a000000", event.AccountClosed{}))
		if got, want := len(i.rows(t).Entries), len(first.Entries)+1; got != want {
			t.Errorf("got %d entries, want %d", got, want)
		}
	})
}

func TestRebuildMendsACopyOfAnotherLog(t *testing.T) {
	t.Parallel()
	tabletest.Each(t, func(t *testing.T, address string) {
		s := newScene(t, address)
		i := s.start(t, history.Model)
		i.passed(t, projectortest.Fill(t, s.log, s.codec, 9))
		i.stop()
		s.log = projectortest.Journal(t)
		end := projectortest.Fill(t, s.log, s.codec, 1)
		i = s.start(t, history.Model)
		i.reason(t, "history")
		if _, err := i.Rebuild(t.Context(), "history"); err != nil {
			t.Fatal(err)
		}
		until(t, "the fresh copy serves", func() bool {
			c, err := i.shelf.Reads(t.Context(), table.History)
			return err == nil && c.Generation == 2
		})
		i.passed(t, end)
	})
}

func TestTwoInstancesProjectWithoutGapOrDouble(t *testing.T) {
	t.Parallel()
	tabletest.Each(t, func(t *testing.T, address string) {
		s := newScene(t, address)
		a, b := s.start(t), s.start(t)
		projectortest.Fill(t, s.log, s.codec, 30)
		a.stop() // the other takes over at once
		end := projectortest.FillFrom(t, s.log, s.codec, 30, 60)
		c := s.start(t)
		b.passed(t, end)
		c.passed(t, end)
		if diff := cmp.Diff(b.rows(t), c.rows(t)); diff != "" {
			t.Error(diff)
		}
		if got, want := len(c.rows(t).Entries), 2*30*projectortest.LifeEvents; got != want {
			t.Errorf("got %d entries, want %d", got, want)
		}
	})
}

func TestFollowerSeesWhatTheOwnerWrites(t *testing.T) {
	t.Parallel()
	tabletest.Each(t, func(t *testing.T, address string) {
		s := newScene(t, address)
		a := s.start(t, register.Model)
		a.passed(t, projectortest.Fill(t, s.log, s.codec, 1))
		b := s.start(t, register.Model)
		for range 5 {
			end := projectortest.Append(t, s.log, s.codec, "account-a000000", event.AccountClosed{})
			ctx, cancel := context.WithTimeout(t.Context(), deadlinetest.Limit(deadlinetest.Hang))
			begin := time.Now()
			if err := b.Wait(ctx, end, "register"); err != nil {
				t.Error(err)
			}
			cancel()
			if took := time.Since(begin); took > 2*time.Second {
				t.Errorf("a write was seen after %v", took)
			}
		}
	})
}
