package customerarea

import (
	"context"
	"net/http"
	"slices"

	"lieudit/eventstore/waitlimit"
	"lieudit/http/auth"
	"lieudit/http/problem"
	"lieudit/schemas/access"
	"lieudit/schemas/token"
)

// authenticate is who the request is from.
func (h *handler) authenticate(r *http.Request) (access.TokenGrant, error) {
	text, ok := auth.BearerToken(r.Header)
	if !ok {
		return access.TokenGrant{}, problem.KeyRequired()
	}
	if kind, ok := h.TokenPrefixes.KindOf(text); !ok || kind != token.Area {
		return access.TokenGrant{}, problem.KeyInvalid()
	}
	hash := token.HashOf(text)
	if !h.TokenRing.IsFresh(h.Now()) && !h.awaitFreshTokens(r.Context(), hash) {
		return access.TokenGrant{}, problem.AuthUnavailable()
	}
	found, ok := h.TokenRing.FindToken(hash)
	if !h.TokenRing.IsFresh(h.Now()) { // it grew old, or began again from zero, while it was asked
		return access.TokenGrant{}, problem.AuthUnavailable()
	}
	if !ok {
		return access.TokenGrant{}, problem.KeyInvalid()
	}
	return found, nil
}

// awaitFreshTokens waits until the passes are fresh, with a token that the stale ones know, and says whether they are.
func (h *handler) awaitFreshTokens(ctx context.Context, hash token.Hash) bool {
	source, canGoStale := h.TokenRing.(auth.FreshnessSource)
	known, ok := h.TokenRing.FindToken(hash)
	if !ok || !canGoStale {
		return false
	}
	accountID := known.Account
	if accountID == "" {
		accountID = "token " + known.TokenID // which is no account's name
	}
	return auth.WaitUntilFresh(ctx, source, h.Limiter, accountID, h.Now(), waitlimit.MaxWait)
}

// scope is whose accounts a route may be used on.
type scope uint8

const (
	unscoped       scope = iota // the route is about no account
	ownAccounts                 // one's own account, and an agency's sub-clients
	subClientsOnly              // an agency's sub-clients only
)

// authorize says whether a pass may use a route on an account. What it may not reach is not found.
func (h *handler) authorize(ctx context.Context, p access.TokenGrant, rt route, id string) error {
	switch {
	case !slices.Contains(rt.roles, p.Role):
		return problem.Forbidden()
	case rt.scope == unscoped || p.Account == "":
		return nil
	case rt.scope == ownAccounts && p.Account == id:
		return nil
	case p.Role != access.RoleAgency:
		return problem.NotFound()
	}
	parent, err := h.AccountCommands.AgencyOf(ctx, id)
	if err != nil {
		return err
	}
	if parent != p.Account {
		return problem.NotFound()
	}
	return nil
}
