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

// oneKeyVault has the same key for every account, unless it is away.
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
