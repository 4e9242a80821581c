package commands_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"lieudit/commands/account"
	"lieudit/eventstore"
	"lieudit/schemas/plan"
	"lieudit/schemas/token"
)

func TestAppendOfUnknownOutcomeEndsWithTheContext(t *testing.T) {
	t.Parallel()
	log := openLog(t, t.TempDir())
	openAccount(t, newAccounts(log), "a", plan.Starter)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := newAccounts(unknownOutcomeStore{log}).CloseAccount(ctx, "a", operator)
	if !errors.Is(err, eventstore.ErrUnknown) {
		t.Errorf("got %v, want ErrUnknown", err)
	}
}

// unknownOutcomeStore never hears what became of an append.
type unknownOutcomeStore struct{ eventstore.Store }

func (unknownOutcomeStore) Append(context.Context, string, eventstore.Revision, []eventstore.ProposedEvent) (eventstore.AppendResult, error) {
	return eventstore.AppendResult{}, eventstore.ErrUnknown
}

// unavailableAfterAppendStore makes an append, loses its reply, and is away for a while.
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
		t.Errorf("got keys %v, %v, want the one that was told", s.Keys, err)
	}
}

// closedAfterAppendStore makes an append, loses its reply, and is closed.
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
	if _, err := newAccounts(&closedAfterAppendStore{Store: log}).CloseAccount(t.Context(), "a", operator); !errors.Is(err, eventstore.ErrUnknown) {
		t.Errorf("got %v, want ErrUnknown", err)
	}
}
