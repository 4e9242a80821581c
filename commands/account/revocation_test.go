package account_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"lieudit/commands"
	"lieudit/commands/account"
	"lieudit/commands/areatoken"
	"lieudit/eventstore"
	"lieudit/eventstore/memory"
	"lieudit/schemas/event"
	"lieudit/schemas/grant"
	"lieudit/schemas/plan"
	"lieudit/schemas/token"
)

// oneKeyVault has the same key for every account, unless it is away. Like the vault of an instance on which the key is still in
// memory, it gives the key even after it was destroyed.
type oneKeyVault struct{ away error }

func (v *oneKeyVault) Key(context.Context, string, bool) ([]byte, error) {
	return make([]byte, 32), v.away
}

func (v *oneKeyVault) DestroyKey(context.Context, string) error { return v.away }

func (v *oneKeyVault) ForgetKeys() {}

func TestARevocationDoesNotWaitForTheVaultAndSaysWhatItLeavesOut(t *testing.T) {
	t.Parallel()
	log, keys := memory.New(time.Now), &oneKeyVault{}
	codec := eventstore.NewCodec(keys)
	a, tokens := account.New(log, codec, token.DefaultPrefixes, time.Now), areatoken.New(log, codec, token.DefaultPrefixes, time.Now)
	meta := commands.Metadata{Actor: "token:operator", Reason: "Zoé has left"}
	if _, err := a.OpenAccount(t.Context(), meta, account.OpenRequest{ID: "a", Name: "A", Plan: plan.Starter}); err != nil {
		t.Fatal(err)
	}
	var issued [2]account.IssuedKey
	for i := range issued {
		var err error
		if issued[i], err = a.IssueKey(t.Context(), "a", meta, account.KeyRequest{Kind: token.Secret, Label: "Zoé's laptop"}); err != nil {
			t.Fatal(err)
		}
	}
	area, err := tokens.Issue(t.Context(), meta, areatoken.TokenRequest{Role: grant.RoleCustomer, Account: "a", Label: "Zoé"})
	if err != nil {
		t.Fatal(err)
	}
	revoked, _, err := a.RevokeKey(t.Context(), "a", meta, issued[0].ID)
	if err != nil || revoked.Active() || revoked.Label != "Zoé's laptop" || revoked.Reason != "Zoé has left" || revoked.OmitsLabel || revoked.OmitsReason {
		t.Errorf("with the vault: got %+v, %v", revoked, err)
	}

	keys.away = errors.New("away")
	revoked, _, err = a.RevokeKey(t.Context(), "a", meta, issued[1].ID)
	if err != nil || revoked.Active() || revoked.Label+revoked.Reason != "" || !revoked.OmitsLabel || !revoked.OmitsReason {
		t.Errorf("a key without the vault: got %+v, %v", revoked, err)
	}
	state, _, err := tokens.Revoke(t.Context(), meta, area.Token)
	if err != nil || state.RevokedAt.IsZero() || state.Issued.Label+state.Reason != "" || !state.OmitsLabel || !state.OmitsReason {
		t.Errorf("a token without the vault: got %+v, %v", state, err)
	}
	if _, isOmitted, err := a.CloseAccount(t.Context(), "a", meta); err != nil || !isOmitted {
		t.Errorf("closing without the vault: got %v, %v", isOmitted, err)
	}

	keys.away = nil
	again, _, err := a.RevokeKey(t.Context(), "a", commands.Metadata{Actor: "token:operator", Reason: "another"}, issued[0].ID)
	if err != nil || again.Reason != "Zoé has left" {
		t.Errorf("the first revocation, shown again: got %+v, %v", again, err)
	}
	again, _, err = a.RevokeKey(t.Context(), "a", commands.Metadata{Actor: "token:operator", Reason: "another"}, issued[1].ID)
	if err != nil || again.Reason != "" || again.Label != "Zoé's laptop" || again.OmitsReason {
		t.Errorf("the one without a reason, shown again: got %+v, %v", again, err)
	}
	for r, err := range log.ReadStream(t.Context(), "account-a", eventstore.End, eventstore.Backward) {
		if m, metaErr := r.DecodeMetadata(); err != nil || metaErr != nil || r.Type != (event.AccountClosed{}).EventType() || m.StoredReason() != "" {
			t.Errorf("the closing: got %+v, %v, %v", m, err, metaErr)
		}
		break
	}
}

func TestTheTextsOfAnErasedAccountAreGoneAlthoughTheKeyIsInMemory(t *testing.T) {
	t.Parallel()
	s := startIssuing(t)
	meta := commands.Metadata{Actor: "token:operator", Reason: "Zoé has left"}
	var ids [2]string
	for i := range ids {
		ids[i] = s.mustIssue(operator, account.KeyRequest{Kind: token.Secret, Label: "Zoé's laptop"}).ID
	}
	if _, _, err := s.RevokeKey(t.Context(), "a", meta, ids[0]); err != nil {
		t.Fatal(err)
	}
	before := s.now
	s.now = s.now.Add(time.Hour)
	if _, _, err := s.CloseAccount(t.Context(), "a", meta); err != nil {
		t.Fatal(err)
	}
	other := s.instance() // it has the keys with their labels before the erasure
	if k, _, err := other.FindKey(t.Context(), "a", ids[0]); err != nil || k.Label != "Zoé's laptop" || k.Reason != "Zoé has left" {
		t.Fatalf("before the erasure: got %+v, %v", k, err)
	}
	if _, err := s.EraseAccount(t.Context(), "a", meta); err != nil {
		t.Fatal(err)
	}

	revoked, _, err := other.RevokeKey(t.Context(), "a", meta, ids[1])
	if err != nil || revoked.Active() || revoked.Label+revoked.Reason != "" || revoked.OmitsLabel || !revoked.OmitsReason {
		t.Errorf("a revocation: got %+v, %v", revoked, err)
	}
	for _, id := range ids {
		again, _, err := other.RevokeKey(t.Context(), "a", meta, id)
		if err != nil || again.Active() || again.Label+again.Reason != "" {
			t.Errorf("a revocation again: got %+v, %v", again, err)
		}
		if k, _, err := other.FindKey(t.Context(), "a", id); err != nil || k.Active() || k.Label+k.Reason != "" {
			t.Errorf("a key: got %+v, %v", k, err)
		}
	}
	for _, asOf := range []time.Time{before, {}} {
		state, _, err := other.StateAsOf(t.Context(), "a", asOf)
		if err != nil || state.Closed() != asOf.IsZero() || state.Name != "" || len(state.Keys) != len(ids) {
			t.Fatalf("the state as of %v: got %+v, %v", asOf, state, err)
		}
		for _, k := range state.Keys {
			if k.Label+k.Reason != "" {
				t.Errorf("the state as of %v: got %+v", asOf, k)
			}
		}
	}
}
