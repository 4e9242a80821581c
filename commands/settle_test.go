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
	opened(t, accounts(log), "a", plan.Starter)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := accounts(deaf{log}).Close(ctx, "a", operator)
	if !errors.Is(err, eventstore.ErrUnknown) {
		t.Errorf("got %v, want ErrUnknown", err)
	}
}

// deaf never hears what became of an append.
type deaf struct{ eventstore.Store }

func (deaf) Append(context.Context, string, eventstore.Revision, []eventstore.Proposed) (eventstore.Committed, error) {
	return eventstore.Committed{}, eventstore.ErrUnknown
}

// leaving makes an append, loses its reply, and is away for a while.
type leaving struct {
	eventstore.Store
	calls int
}

func (l *leaving) Append(ctx context.Context, stream string, expected eventstore.Revision, events []eventstore.Proposed) (eventstore.Committed, error) {
	l.calls++
	if l.calls > 1 && l.calls < 4 {
		return eventstore.Committed{}, eventstore.ErrUnavailable
	}
	done, err := l.Store.Append(ctx, stream, expected, events)
	if l.calls == 1 {
		return eventstore.Committed{}, eventstore.ErrUnknown
	}
	return done, err
}

func TestUnknownOutcomeIsNotTakenForNoneWhenTheLogIsAway(t *testing.T) {
	t.Parallel()
	log := openLog(t, t.TempDir())
	opened(t, accounts(log), "a", plan.Starter)
	made, err := accounts(&leaving{Store: log}).IssueKey(t.Context(), "a", operator, account.Issue{Kind: token.Secret, Label: "k"})
	if err != nil {
		t.Fatalf("the append was made, the command says %v", err)
	}
	s, _, err := accounts(log).State(t.Context(), "a", time.Now())
	if err != nil || len(s.Keys) != 1 || s.Keys[made.ID] == nil {
		t.Errorf("got keys %v, %v, want the one that was told", s.Keys, err)
	}
}

// closing makes an append, loses its reply, and is closed.
type closing struct {
	eventstore.Store
	calls int
}

func (c *closing) Append(ctx context.Context, stream string, expected eventstore.Revision, events []eventstore.Proposed) (eventstore.Committed, error) {
	if c.calls++; c.calls > 1 {
		return eventstore.Committed{}, eventstore.ErrClosed
	}
	if _, err := c.Store.Append(ctx, stream, expected, events); err != nil {
		return eventstore.Committed{}, err
	}
	return eventstore.Committed{}, eventstore.ErrUnknown
}

func TestUnknownOutcomeIsNotTakenForNoneWhenTheLogIsClosed(t *testing.T) {
	t.Parallel()
	log := openLog(t, t.TempDir())
	opened(t, accounts(log), "a", plan.Starter)
	if _, err := accounts(&closing{Store: log}).Close(t.Context(), "a", operator); !errors.Is(err, eventstore.ErrUnknown) {
		t.Errorf("got %v, want ErrUnknown", err)
	}
}
