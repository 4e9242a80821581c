package area

import (
	"context"
	"net/http"
	"slices"

	"lieudit/eventstore/waiting"
	"lieudit/http/auth"
	"lieudit/http/problem"
	"lieudit/schemas/grant"
	"lieudit/schemas/token"
)

// pass is who the request is from.
func (a *area) pass(r *http.Request) (grant.Pass, error) {
	text, ok := auth.Bearer(r.Header)
	if !ok {
		return grant.Pass{}, problem.KeyRequired()
	}
	if kind, ok := a.Prefixes.Kind(text); !ok || kind != token.Area {
		return grant.Pass{}, problem.KeyInvalid()
	}
	hash := token.HashOf(text)
	if !a.Passes.Fresh(a.Now()) && !a.awaitPasses(r.Context(), hash) {
		return grant.Pass{}, problem.AuthUnavailable()
	}
	found, ok := a.Passes.FindPass(hash)
	if !a.Passes.Fresh(a.Now()) { // it grew old, or began again from zero, while it was asked
		return grant.Pass{}, problem.AuthUnavailable()
	}
	if !ok {
		return grant.Pass{}, problem.KeyInvalid()
	}
	return found, nil
}

// awaitPasses waits until the passes are fresh, with a token that the stale ones know, and says whether they are.
func (a *area) awaitPasses(ctx context.Context, hash token.Hash) bool {
	passes, follows := a.Passes.(auth.Follower)
	known, ok := a.Passes.FindPass(hash)
	if !ok || !follows {
		return false
	}
	account := known.Account
	if account == "" {
		account = "token " + known.Token // which is no account's name
	}
	return auth.Await(ctx, passes, a.Waiting, account, a.Now(), waiting.Longest)
}

// reach is whose accounts a route may be used on.
type reach uint8

const (
	everything reach = iota // the route is about no account
	own                     // one's own account, and an agency's sub-clients
	subClients              // an agency's sub-clients only
)

// allow says whether a pass may use a route on an account. What it may not reach is not found.
func (a *area) allow(ctx context.Context, p grant.Pass, rt route, id string) error {
	switch {
	case !slices.Contains(rt.roles, p.Role):
		return problem.Forbidden()
	case rt.reach == everything || p.Account == "":
		return nil
	case rt.reach == own && p.Account == id:
		return nil
	case p.Role != grant.Agency:
		return problem.NotFound()
	}
	parent, err := a.Accounts.AgencyOf(ctx, id)
	if err != nil {
		return err
	}
	if parent != p.Account {
		return problem.NotFound()
	}
	return nil
}
