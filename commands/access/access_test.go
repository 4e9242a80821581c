package access_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"lieudit/commands"
	"lieudit/commands/access"
	"lieudit/eventstore"
	"lieudit/eventstore/journal"
	"lieudit/schemas/grant"
	"lieudit/schemas/token"
)

var system = commands.Intent{Actor: "system"}

func openTokens(t *testing.T) func() *access.Tokens {
	t.Helper()
	log, err := journal.Open(t.TempDir(), journal.Options{SegmentSize: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	return func() *access.Tokens { return access.New(log, eventstore.NewCodec(nil), token.Default, time.Now) }
}

func TestFirstTokenIsMadeOnceByManyInstances(t *testing.T) {
	t.Parallel()
	instance := openTokens(t)
	var made, taken atomic.Int32
	var wg sync.WaitGroup
	for range 8 {
		tokens := instance()
		wg.Go(func() {
			_, err := tokens.Claim(t.Context(), system, access.First, token.Default.New(token.Area), access.Issue{Role: grant.Operator})
			switch {
			case err == nil:
				made.Add(1)
			case errors.Is(err, access.ErrTaken):
				taken.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if made.Load() != 1 || taken.Load() != 7 {
		t.Errorf("got %d made, %d taken; want 1 and 7", made.Load(), taken.Load())
	}
}

func TestClaimOfTheSameTokenAgainIsNoError(t *testing.T) {
	t.Parallel()
	instance := openTokens(t)
	clear := token.Default.New(token.Area)
	for range 2 {
		if _, err := instance().Claim(t.Context(), system, access.First, clear, access.Issue{Role: grant.Operator}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRevoke(t *testing.T) {
	t.Parallel()
	tokens := openTokens(t)()
	if _, _, err := tokens.Revoke(t.Context(), system, "nobody"); !errors.Is(err, access.ErrUnknown) {
		t.Errorf("unknown token: got %v, want ErrUnknown", err)
	}
	made, err := tokens.Issue(t.Context(), system, access.Issue{Role: grant.Auditor, Label: "audit"})
	if err != nil {
		t.Fatal(err)
	}
	first, at, err := tokens.Revoke(t.Context(), system, made.Token)
	if err != nil || first.RevokedAt.IsZero() || first.RevokedBy != "system" {
		t.Fatalf("got %+v, %v", first, err)
	}
	if _, again, err := tokens.Revoke(t.Context(), system, made.Token); err != nil || again != at {
		t.Errorf("twice is once: got position %d, %v, want %d", again, err, at)
	}
}
