package account_test

import (
	"testing"
	"time"

	"lieudit/commands"
	"lieudit/commands/account"
	"lieudit/eventstore"
	"lieudit/eventstore/memory"
	"lieudit/eventstore/vault"
	"lieudit/schemas/plan"
	"lieudit/schemas/token"
)

// TestTermsAtOnceAreInForceWhenTheyAreRecorded: an instance's clock has nanoseconds, the log keeps microseconds. An upgrade
// that began a fraction of a microsecond after its event would be shown as scheduled, and with another time in lists.
func TestTermsAtOnceAreInForceWhenTheyAreRecorded(t *testing.T) {
	t.Parallel()
	recorded := time.Date(2026, 11, 21, 12, 0, 0, 123456000, time.UTC)
	clock := func() time.Time { return recorded.Add(789) }
	log := memory.New(clock)
	keys, err := vault.New(t.TempDir()+"/vault.db", nil, clock)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { keys.Close() })
	a, operator := account.New(log, eventstore.NewCodec(keys), token.DefaultPrefixes, clock), commands.Metadata{Actor: "token:operator"}
	if _, err := a.OpenAccount(t.Context(), operator, account.OpenRequest{ID: "mende", Name: "Mende", Plan: plan.Starter}); err != nil {
		t.Fatal(err)
	}
	if _, err := a.ChangePlan(t.Context(), "mende", operator, account.Terms{Plan: plan.Growth}); err != nil {
		t.Fatal(err)
	}
	s, err := a.CurrentState(t.Context(), "mende")
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Terms.At(recorded).Plan; got != plan.Growth {
		t.Errorf("when the upgrade is recorded, the plan is %s", got)
	}
	if next, from, ok := s.Terms.Next(recorded); ok {
		t.Errorf("when the upgrade is recorded, %v is to come at %v", next, from)
	}
}
