package commands_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"lieudit/commands"
	"lieudit/commands/account"
	"lieudit/eventstore"
	"lieudit/eventstore/journal"
	"lieudit/schemas/event"
	"lieudit/schemas/plan"
	"lieudit/schemas/refusal"
	"lieudit/schemas/token"
)

// fakeVault has a key for every subject.
type fakeVault struct{}

func (fakeVault) Key(context.Context, string, bool) ([]byte, error) { return make([]byte, 32), nil }
func (fakeVault) DestroyKey(context.Context, string) error          { return nil }
func (fakeVault) ForgetKeys()                                       {}

func openLog(t *testing.T, dir string) *journal.Journal {
	t.Helper()
	j, err := journal.Open(dir, journal.Options{SegmentSize: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	return j
}

func newAccounts(store eventstore.Store) *account.Accounts {
	return account.New(store, eventstore.NewCodec(fakeVault{}), token.DefaultPrefixes, time.Now)
}

var operator = commands.Metadata{Actor: "token:operator"}

func openAccount(t *testing.T, a *account.Accounts, id string, onPlan plan.Name) {
	t.Helper()
	if _, err := a.OpenAccount(t.Context(), operator, account.OpenRequest{ID: id, Name: "Chez " + id, Plan: onPlan}); err != nil {
		t.Fatal(err)
	}
}

func publishable(label string) account.KeyRequest {
	return account.KeyRequest{Kind: token.Publishable, Label: label, Origins: []string{"https://a.fr"}}
}

// lossyStore loses the replies of some appends, before or after they are made.
type lossyStore struct {
	eventstore.Store
	mu  sync.Mutex
	rng *rand.Rand
}

func (s *lossyStore) Append(ctx context.Context, stream string, expected eventstore.Revision, events []eventstore.ProposedEvent) (eventstore.AppendResult, error) {
	s.mu.Lock()
	dice := s.rng.IntN(4)
	s.mu.Unlock()
	if dice == 0 {
		return eventstore.AppendResult{}, eventstore.ErrUnknown
	}
	done, err := s.Store.Append(ctx, stream, expected, events)
	if dice == 1 {
		return eventstore.AppendResult{}, eventstore.ErrUnknown
	}
	return done, err
}

func TestCapHoldsOnSeveralInstancesWithLostReplies(t *testing.T) {
	t.Parallel()
	log := openLog(t, t.TempDir())
	openAccount(t, newAccounts(log), "a", plan.Growth)
	var wg sync.WaitGroup
	issuedKeys := make(chan bool, 200)
	for instance := range 4 {
		accounts := newAccounts(&lossyStore{Store: log, rng: rand.New(rand.NewPCG(1, uint64(instance)))})
		for n := range 8 {
			wg.Go(func() {
				_, err := accounts.IssueKey(t.Context(), "a", operator, publishable(fmt.Sprint(instance, n)))
				if err != nil && !errors.Is(err, refusal.KeysOverCapacity) {
					t.Error(err)
				}
				issuedKeys <- err == nil
			})
		}
	}
	wg.Wait()
	close(issuedKeys)
	issued := 0
	for ok := range issuedKeys {
		if ok {
			issued++
		}
	}
	if issued != 5 {
		t.Errorf("got %d publishable keys issued, want GROWTH's 5", issued)
	}
	onLog, refusals := 0, 0
	for r, err := range log.ReadStream(t.Context(), "account-a", 0, eventstore.Forward) {
		if err != nil {
			t.Fatal(err)
		}
		switch r.Type {
		case (event.PublishableKeyIssued{}).EventType():
			onLog++
		case (event.AccountActionRefused{}).EventType():
			refusals++
		}
	}
	if onLog != 5 || refusals != 27 {
		t.Errorf("got %d issues and %d refusals on the log, want 5 and 27", onLog, refusals)
	}
}

func TestNothingIsRefusedOnAStaleState(t *testing.T) {
	t.Parallel()
	log := openLog(t, t.TempDir())
	here, there := newAccounts(log), newAccounts(log)
	openAccount(t, here, "a", plan.Starter)
	made, err := here.IssueKey(t.Context(), "a", operator, publishable("first"))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := there.RevokeKey(t.Context(), "a", operator, made.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := here.IssueKey(t.Context(), "a", operator, publishable("second")); err != nil {
		t.Errorf("the slot freed by another instance was not seen: %v", err)
	}
}

// replaceableStore is a log that a test replaces under its users, as a restore from a copy does.
type replaceableStore struct{ eventstore.Store }

func TestStateIsFoldedAgainWhenTheLogWasRestored(t *testing.T) {
	t.Parallel()
	older, newer := openLog(t, t.TempDir()), openLog(t, t.TempDir())
	openAccount(t, newAccounts(older), "a", plan.Starter)
	openAccount(t, newAccounts(newer), "a", plan.Starter)
	log := &replaceableStore{newer}
	accounts := newAccounts(log)
	if _, err := accounts.IssueKey(t.Context(), "a", operator, publishable("of the newer log")); err != nil {
		t.Fatal(err)
	}
	log.Store = older
	if _, err := accounts.IssueKey(t.Context(), "a", operator, publishable("of the older log")); err != nil {
		t.Errorf("a slot taken only in the log that is gone still counts: %v", err)
	}
}

func TestStateAsOf(t *testing.T) {
	t.Parallel()
	log := openLog(t, t.TempDir())
	a := newAccounts(log)
	openAccount(t, a, "a", plan.Starter)
	made, err := a.IssueKey(t.Context(), "a", operator, account.KeyRequest{Kind: token.Secret, Label: "k"})
	if err != nil {
		t.Fatal(err)
	}
	before := time.Now()
	if _, _, err := a.RevokeKey(t.Context(), "a", commands.Metadata{Actor: "token:x", Reason: "leak"}, made.ID); err != nil {
		t.Fatal(err)
	}
	then, _, err := a.StateAsOf(t.Context(), "a", before)
	if err != nil {
		t.Fatal(err)
	}
	if k := then.Keys[made.ID]; k == nil || !k.Active() || then.Name != "Chez a" {
		t.Errorf("before the revocation: got key %+v of %q, want an active one of %q", k, then.Name, "Chez a")
	}
	now, _, err := a.StateAsOf(t.Context(), "a", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if k := now.Keys[made.ID]; k.Active() || k.RevokedBy != "token:x" || k.Reason != "leak" {
		t.Errorf("after the revocation: got key %+v, want it revoked by token:x for a leak", k)
	}
	if _, _, err := a.StateAsOf(t.Context(), "a", before.Add(-time.Hour)); !errors.Is(err, account.ErrUnknownAccount) {
		t.Errorf("before the opening: got %v, want ErrUnknown", err)
	}
}

func TestSubClientHasItsAgencysPlan(t *testing.T) {
	t.Parallel()
	a := newAccounts(openLog(t, t.TempDir()))
	openAccount(t, a, "agency", plan.Starter)
	if _, err := a.OpenAccount(t.Context(), operator, account.OpenRequest{ID: "sub", Name: "Sub", Agency: "agency"}); !errors.Is(err, refusal.AgencyUnknown) {
		t.Fatalf("under an account that is no agency: got %v, want ErrNoAgency", err)
	}
	if _, err := a.ActivateAgency(t.Context(), "agency", operator); err != nil {
		t.Fatal(err)
	}
	if _, err := a.OpenAccount(t.Context(), operator, account.OpenRequest{ID: "sub", Name: "Sub", Agency: "agency"}); err != nil {
		t.Fatal(err)
	}
	if _, err := a.IssueKey(t.Context(), "sub", operator, publishable("1")); err != nil {
		t.Fatal(err)
	}
	if _, err := a.IssueKey(t.Context(), "sub", operator, publishable("2")); err == nil {
		t.Error("STARTER's one publishable key was passed")
	}
	if _, err := a.ChangePlan(t.Context(), "agency", operator, account.Terms{Plan: plan.Growth}); err != nil {
		t.Fatal(err)
	}
	if _, err := a.IssueKey(t.Context(), "sub", operator, publishable("2")); err != nil {
		t.Errorf("the agency's upgrade did not reach its sub-client: %v", err)
	}
	if parent, err := a.AgencyOf(t.Context(), "sub"); err != nil || parent != "agency" {
		t.Errorf("got agency %q, %v", parent, err)
	}
}

func TestAppendOfUnknownOutcomeEndsWithTheContext(t *testing.T) {
	t.Parallel()
	log := openLog(t, t.TempDir())
	openAccount(t, newAccounts(log), "a", plan.Starter)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, _, err := newAccounts(unknownOutcomeStore{log}).CloseAccount(ctx, "a", operator)
	if !errors.Is(err, eventstore.ErrUnknown) {
		t.Errorf("got %v, want ErrUnknown", err)
	}
}

// unknownOutcomeStore never learns the outcome of an append.
type unknownOutcomeStore struct{ eventstore.Store }

func (unknownOutcomeStore) Append(context.Context, string, eventstore.Revision, []eventstore.ProposedEvent) (eventstore.AppendResult, error) {
	return eventstore.AppendResult{}, eventstore.ErrUnknown
}

// unavailableAfterAppendStore makes an append, loses its reply, and is unavailable for a while.
type unavailableAfterAppendStore struct {
	eventstore.Store
	calls int
}

func (s *unavailableAfterAppendStore) Append(ctx context.Context, stream string, expected eventstore.Revision, events []eventstore.ProposedEvent) (eventstore.AppendResult, error) {
	s.calls++
	if s.calls > 1 && s.calls < 4 {
		return eventstore.AppendResult{}, eventstore.ErrUnavailable
	}
	done, err := s.Store.Append(ctx, stream, expected, events)
	if s.calls == 1 {
		return eventstore.AppendResult{}, eventstore.ErrUnknown
	}
	return done, err
}

func TestUnknownOutcomeIsNotTakenForNoneWhenTheLogIsUnavailable(t *testing.T) {
	t.Parallel()
	log := openLog(t, t.TempDir())
	openAccount(t, newAccounts(log), "a", plan.Starter)
	made, err := newAccounts(&unavailableAfterAppendStore{Store: log}).IssueKey(t.Context(), "a", operator, account.KeyRequest{Kind: token.Secret, Label: "k"})
	if err != nil {
		t.Fatalf("the append was made, the command says %v", err)
	}
	s, _, err := newAccounts(log).StateAsOf(t.Context(), "a", time.Now())
	if err != nil || len(s.Keys) != 1 || s.Keys[made.ID] == nil {
		t.Errorf("got keys %v, %v, want the issued one", s.Keys, err)
	}
}

// closedAfterAppendStore makes an append, loses its reply, and is closed then.
type closedAfterAppendStore struct {
	eventstore.Store
	calls int
}

func (s *closedAfterAppendStore) Append(ctx context.Context, stream string, expected eventstore.Revision, events []eventstore.ProposedEvent) (eventstore.AppendResult, error) {
	if s.calls++; s.calls > 1 {
		return eventstore.AppendResult{}, eventstore.ErrClosed
	}
	if _, err := s.Store.Append(ctx, stream, expected, events); err != nil {
		return eventstore.AppendResult{}, err
	}
	return eventstore.AppendResult{}, eventstore.ErrUnknown
}

func TestUnknownOutcomeIsNotTakenForNoneWhenTheLogIsClosed(t *testing.T) {
	t.Parallel()
	log := openLog(t, t.TempDir())
	openAccount(t, newAccounts(log), "a", plan.Starter)
	if _, _, err := newAccounts(&closedAfterAppendStore{Store: log}).CloseAccount(t.Context(), "a", operator); !errors.Is(err, eventstore.ErrUnknown) {
		t.Errorf("got %v, want ErrUnknown", err)
	}
}
