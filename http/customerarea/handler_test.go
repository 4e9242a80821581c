package customerarea

import (
	"errors"
	"net/http/httptest"
	"testing"
	"time"

	"lieudit/schemas/grant"
	"lieudit/schemas/refusal"
	"lieudit/schemas/token"
)

// heldTokens is a fresh ring that gives one grant for each token.
type heldTokens struct {
	grant grant.TokenGrant
	isIn  bool
}

func (h heldTokens) IsFresh(time.Time) bool                        { return true }
func (h heldTokens) FindToken(token.Hash) (grant.TokenGrant, bool) { return h.grant, h.isIn }

func (h heldTokens) FindSession(token.Hash, time.Time) (grant.TokenGrant, bool) {
	return h.grant, h.isIn
}
func (h heldTokens) FindLink(token.Hash, time.Time) (grant.TokenGrant, bool) { return h.grant, h.isIn }

// A stopped token may be a good one: whoever is told that it is invalid throws it away.
func TestAStoppedTokenIsAFailureAndNoInvalidToken(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		held heldTokens
		want error
	}{
		"held":    {heldTokens{grant.TokenGrant{TokenID: "1"}, true}, nil},
		"unknown": {heldTokens{}, refusal.KeyInvalid},
		"stopped": {heldTokens{grant.TokenGrant{TokenID: "1", Stopped: true}, true}, refusal.Internal},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := &handler{tokens: test.held}
			h.Prefixes = token.DefaultPrefixes
			text := h.Prefixes.New(token.Area)
			r := httptest.NewRequest("GET", "/accounts", nil)
			r.Header.Set("Authorization", "Bearer "+text)
			if _, err := h.authenticate(r); !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
		})
	}
}
