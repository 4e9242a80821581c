package commands_test

import (
	"errors"
	"testing"
	"time"

	"lieudit/commands/account"
	"lieudit/eventstore"
	"lieudit/schemas/plan"
	"lieudit/schemas/refusal"
	"lieudit/schemas/token"
)

// joinThenClose opens an agency and accounts that join it at their next period, and closes the agency.
func joinThenClose(t *testing.T, a *account.Accounts, ids ...string) {
	t.Helper()
	openAccount(t, a, "agency", plan.Business)
	if _, err := a.ActivateAgency(t.Context(), "agency", operator); err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		openAccount(t, a, id, plan.Starter)
		if _, err := a.JoinAgency(t.Context(), id, operator, "agency"); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := a.CloseAccount(t.Context(), "agency", operator); err != nil {
		t.Fatal(err)
	}
}

// TestAJoinToComeEndsWithItsAgency checks what each fold of the account's stream shows of a join that ended with its agency
// before it began.
func TestAJoinToComeEndsWithItsAgency(t *testing.T) {
	t.Parallel()
	for name, later := range map[string]time.Duration{"before the next period": 0, "in the next period": 62 * 24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			log := openLog(t, t.TempDir())
			joinThenClose(t, newAccounts(log), "a", "b")
			clock := func() time.Time { return time.Now().Add(later) }
			a := account.New(log, eventstore.NewCodec(fakeVault{}), token.DefaultPrefixes, clock)
			if agency, err := a.AgencyOf(t.Context(), "a"); err != nil || agency != "" {
				t.Errorf("agency %q, %v", agency, err)
			}
			if p, err := a.PlanOf(t.Context(), "a"); err != nil || p.Name != plan.Starter {
				t.Errorf("plan %s, %v", p.Name, err)
			}
			current, err := a.CurrentState(t.Context(), "a")
			atEnd, _, errAtEnd := a.StateAsOf(t.Context(), "a", time.Time{})
			if err := errors.Join(err, errAtEnd); err != nil {
				t.Fatal(err)
			}
			for _, s := range []account.State{current, atEnd} {
				if _, _, ok := s.Agency.Next(clock()); ok || s.AgencyAt(clock()) != "" {
					t.Errorf("the state has the membership %+v", s.Agency)
				}
			}
			if _, err := a.LeaveAgency(t.Context(), "a", operator); !errors.Is(err, refusal.NotSubClient) {
				t.Errorf("leaving: %v", err)
			}
			if _, err := a.ActivateAgency(t.Context(), "b", operator); err != nil {
				t.Errorf("it may become an agency: %v", err)
			}
			if _, err := a.JoinAgency(t.Context(), "a", operator, "b"); err != nil {
				t.Errorf("it may join another: %v", err)
			}
			if _, err := a.IssueKey(t.Context(), "a", operator, publishable("k")); err != nil {
				t.Errorf("a key: %v", err)
			}
		})
	}
}

// The state as of an earlier instant shows the join that was scheduled then.
func TestAStateBeforeTheClosingShowsTheJoinToCome(t *testing.T) {
	t.Parallel()
	log := openLog(t, t.TempDir())
	a := newAccounts(log)
	joinThenClose(t, a, "a")
	joined := time.Time{}
	for r, err := range log.ReadStream(t.Context(), "account-a", 0, eventstore.Forward) {
		if err != nil {
			t.Fatal(err)
		}
		joined = r.Time
	}
	s, _, err := a.StateAsOf(t.Context(), "a", joined)
	if next, _, ok := s.Agency.Next(joined); err != nil || !ok || next.Agency != "agency" {
		t.Errorf("next %+v, %v, %v, want the join", next, ok, err)
	}
}

// A membership that has begun does not end with its agency: no key is issued until an operator has the account leave.
func TestNoKeyForASubClientOfAClosedAgency(t *testing.T) {
	t.Parallel()
	log := openLog(t, t.TempDir())
	joinThenClose(t, newAccounts(log))
	a := account.New(log, eventstore.NewCodec(fakeVault{}), token.DefaultPrefixes, time.Now)
	openAccount(t, a, "agency-2", plan.Growth)
	if _, err := a.ActivateAgency(t.Context(), "agency-2", operator); err != nil {
		t.Fatal(err)
	}
	if _, err := a.OpenAccount(t.Context(), operator, account.OpenRequest{ID: "sub", Name: "Sub", Agency: "agency-2"}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := a.CloseAccount(t.Context(), "agency-2", operator); err != nil {
		t.Fatal(err)
	}
	for _, request := range []account.KeyRequest{publishable("k"), {Kind: token.Secret, Label: "k"}} {
		if _, err := a.IssueKey(t.Context(), "sub", operator, request); !errors.Is(err, refusal.AgencyClosed) {
			t.Errorf("%s key: %v", request.Kind, err)
		}
	}
	if _, err := a.LeaveAgency(t.Context(), "sub", operator); err != nil {
		t.Fatal(err)
	}
	later := account.New(log, eventstore.NewCodec(fakeVault{}), token.DefaultPrefixes, func() time.Time { return time.Now().AddDate(0, 2, 0) })
	if _, err := later.IssueKey(t.Context(), "sub", operator, publishable("k")); err != nil {
		t.Errorf("after it has left: %v", err)
	}
}

// If an agency's stream cannot be used, nobody knows its state, and an account that was to join it stays as it is.
func TestAJoinToAnUnusableAgencyLeavesTheAccountUsable(t *testing.T) {
	t.Parallel()
	log := openLog(t, t.TempDir())
	a := newAccounts(log)
	openAccount(t, a, "agency", plan.Business)
	if _, err := a.ActivateAgency(t.Context(), "agency", operator); err != nil {
		t.Fatal(err)
	}
	openAccount(t, a, "a", plan.Starter)
	if _, err := a.JoinAgency(t.Context(), "a", operator, "agency"); err != nil {
		t.Fatal(err)
	}
	appendRaw(t, log, "account-agency", "account.plan-changed.v1", `{"quota": "many"}`)
	for _, instance := range []*account.Accounts{a, newAccounts(log)} {
		s, err := instance.CurrentState(t.Context(), "a")
		if next, _, ok := s.Agency.Next(time.Now()); err != nil || !ok || next.Agency != "agency" {
			t.Errorf("next %+v, %v, %v", next, ok, err)
		}
		if _, err := instance.IssueKey(t.Context(), "a", operator, account.KeyRequest{Kind: token.Secret, Label: "k"}); err != nil {
			t.Errorf("a key: %v", err)
		}
	}
	var unusable *eventstore.UnusableError
	later := account.New(log, eventstore.NewCodec(fakeVault{}), token.DefaultPrefixes, func() time.Time { return time.Now().AddDate(0, 2, 0) })
	if _, err := later.IssueKey(t.Context(), "a", operator, publishable("k")); !errors.As(err, &unusable) {
		t.Errorf("once it has begun: %v, want the agency's unusable event", err)
	}
}
