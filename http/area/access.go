package area

import (
	"context"
	"net/http"
	"slices"

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
	if !a.Passes.Fresh(a.Now()) {
		return grant.Pass{}, problem.AuthUnavailable()
	}
	found, ok := a.Passes.FindPass(token.HashOf(text))
	if !ok {
		return grant.Pass{}, problem.KeyInvalid()
	}
	return found, nil
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
