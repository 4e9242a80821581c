package areatoken_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"lieudit/commands"
	"lieudit/commands/areatoken"
	"lieudit/eventstore"
	"lieudit/eventstore/journal"
	"lieudit/schemas/grant"
	"lieudit/schemas/token"
)

var system = commands.Metadata{Actor: "system"}

func newTokensFactory(t *testing.T) func() *areatoken.Tokens {
	t.Helper()
	log, err := journal.Open(t.TempDir(), journal.Options{SegmentSize: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	return func() *areatoken.Tokens {
		return areatoken.New(log, eventstore.NewCodec(nil), token.DefaultPrefixes, time.Now)
	}
}

func TestFirstTokenIsMadeOnceByManyInstances(t *testing.T) {
	t.Parallel()
	newTokens := newTokensFactory(t)
	var made, taken atomic.Int32
	var wg sync.WaitGroup
	for range 8 {
		tokens := newTokens()
		wg.Go(func() {
			_, err := tokens.Claim(t.Context(), system, areatoken.FirstTokenID, token.DefaultPrefixes.New(token.Area), areatoken.TokenRequest{Role: grant.RoleOperator})
			switch {
			case err == nil:
				made.Add(1)
			case errors.Is(err, areatoken.ErrAlreadyIssued):
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
	newTokens := newTokensFactory(t)
	plaintext := token.DefaultPrefixes.New(token.Area)
	for range 2 {
		if _, err := newTokens().Claim(t.Context(), system, areatoken.FirstTokenID, plaintext, areatoken.TokenRequest{Role: grant.RoleOperator}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRevoke(t *testing.T) {
	t.Parallel()
	tokens := newTokensFactory(t)()
	if _, _, err := tokens.Revoke(t.Context(), system, "nobody"); !errors.Is(err, areatoken.ErrUnknownToken) {
		t.Errorf("unknown token: got %v, want ErrUnknown", err)
	}
	issued, err := tokens.Issue(t.Context(), system, areatoken.TokenRequest{Role: grant.RoleAuditor, Label: "audit"})
	if err != nil {
		t.Fatal(err)
	}
	first, position, err := tokens.Revoke(t.Context(), system, issued.Token)
	if err != nil || first.RevokedAt.IsZero() || first.RevokedBy != "system" {
		t.Fatalf("got %+v, %v", first, err)
	}
	if _, again, err := tokens.Revoke(t.Context(), system, issued.Token); err != nil || again != position {
		t.Errorf("twice is once: got position %d, %v, want %d", again, err, position)
	}
}
