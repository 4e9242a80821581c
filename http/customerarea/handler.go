// Package customerarea is the HTTP surface on which accounts are opened, keys and tokens issued, usage and history read, and
// read models maintained. It listens apart from the API, and knows its clients by customer-area tokens, each with one
// role. Its constraint: what a token may not see is answered exactly like what does not exist.
//
//	request ─> ServeHTTP ─> authenticate ─> router.Match ─> authorize ─> bodylimit.Limit ─> kit.Endpoint (decode)
//	                        token            route, method   role, account  redactedBody          │
//	                                                                                             v
//	answer <─ kit.Response.Write <─ kit.Await (read models show it) <─ command or query <─ kit.Operation
//
// Every check can end the request with an error, which kit.WriteError answers. routes.go is the table of operations.
package customerarea

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"lieudit/commands"
	"lieudit/eventstore/waitlimit"
	"lieudit/http/auth"
	"lieudit/http/bodylimit"
	"lieudit/http/kit"
	"lieudit/http/router"
	"lieudit/schemas/access"
	"lieudit/schemas/refusal"
	"lieudit/schemas/token"
)

// Base is the path every path of the customer area begins with.
const Base = "/customer-area/v1"

// TokenRing holds the valid customer-area tokens. A ring that is an auth.FreshnessSource too makes requests wait while it
// is stale.
type TokenRing interface {
	// FindToken is what a customer-area token gives; false: it is not valid.
	FindToken(token.Hash) (access.TokenGrant, bool)
	// IsFresh reports whether the ring holds all that the log held a second ago.
	IsFresh(now time.Time) bool
}

// Env is what the customer area runs in. Every part is required.
type Env struct {
	Limiter  *waitlimit.Limiter // of requests that wait for a silent log
	Bodies   *bodylimit.Budget  // of large bodies
	Prefixes token.Prefixes     // as configured
	Now      func() time.Time
	Log      *slog.Logger // tokens are redacted before they get to it
}

// New is the customer area over a ring of tokens and its three subjects.
func New(tokens TokenRing, accounts Accounts, usage Usage, maintenance Maintenance, env Env) http.Handler {
	env.Log = slog.New(env.Prefixes.RedactingHandler(env.Log.Handler()))
	h := &handler{Env: env, tokens: tokens, accounts: accounts, usage: usage, maintenance: maintenance}
	h.table = router.New(Base, h.routes(), route.pattern)
	return kit.RecoverPanics(env.Log, h)
}

type handler struct {
	Env
	tokens      TokenRing
	accounts    Accounts
	usage       Usage
	maintenance Maintenance
	table       *router.Table[route]
}

// principal is who makes a request: what the token gives.
type principal = access.TokenGrant

type call = kit.Call[principal]

// metadata says who makes a command, for which account, and why.
func metadata(c call, reason string) commands.Metadata {
	m := commands.Metadata{Actor: "token:" + c.Principal.TokenID, Reason: reason}
	if c.Principal.Role == access.RoleAgency {
		m.OnBehalfOf = c.Vars["id"]
	}
	return m
}

// ServeHTTP answers a request. No cache on the way may keep anything of it.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	v, err := h.serveAuthenticated(r)
	if err == nil {
		err = v.Write(r.Context(), w)
	}
	if err != nil {
		kit.WriteError(w, h.Log, err)
	}
}

const (
	maxBodyBytes   = 1 << 20          // the most a body may have
	commandTimeout = 15 * time.Second // of the work, once the request is decoded; a command tries for so long to learn whether it was appended
)

// serveAuthenticated makes the checks in their order: token, route, role, account, syntax; then it does the work.
func (h *handler) serveAuthenticated(r *http.Request) (kit.Response, error) {
	p, err := h.authenticate(r)
	if err != nil {
		return kit.Response{}, err
	}
	rt, vars, err := h.table.Match(r, false)
	if err != nil {
		return kit.Response{}, err
	}
	if err := h.authorize(r.Context(), p, rt, vars["id"]); err != nil {
		return kit.Response{}, err
	}
	defer h.Bodies.Limit(r, bodylimit.Admission{Account: p.Account, Limit: maxBodyBytes})()
	r.Body = &redactedBody{ReadCloser: r.Body, prefixes: h.Prefixes}
	do, err := rt.endpoint(r)
	if err != nil {
		return kit.Response{}, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), commandTimeout)
	defer cancel()
	return do(ctx, call{Principal: p, Vars: vars})
}

// authenticate is what the token of a request gives.
func (h *handler) authenticate(r *http.Request) (access.TokenGrant, error) {
	text, ok := auth.BearerToken(r.Header)
	if !ok {
		return access.TokenGrant{}, refusal.KeyRequired
	}
	if kind, ok := h.Prefixes.KindOf(text); !ok || kind != token.Area {
		return access.TokenGrant{}, refusal.KeyInvalid
	}
	hash := token.HashOf(text)
	if !h.tokens.IsFresh(h.Now()) && !h.awaitFreshTokens(r.Context(), hash) {
		return access.TokenGrant{}, refusal.AuthUnavailable
	}
	found, ok := h.tokens.FindToken(hash)
	if !h.tokens.IsFresh(h.Now()) { // it became stale, or began again from zero, meanwhile
		return access.TokenGrant{}, refusal.AuthUnavailable
	}
	if !ok {
		return access.TokenGrant{}, refusal.KeyInvalid
	}
	return found, nil
}

// awaitFreshTokens waits until the ring is fresh, and reports whether it is. It waits only for a token that the stale ring
// knows.
func (h *handler) awaitFreshTokens(ctx context.Context, hash token.Hash) bool {
	source, canGoStale := h.tokens.(auth.FreshnessSource)
	known, ok := h.tokens.FindToken(hash)
	if !ok || !canGoStale {
		return false
	}
	accountID := known.Account
	if accountID == "" {
		accountID = "token " + known.TokenID // no account is named so
	}
	return auth.WaitUntilFresh(ctx, source, h.Limiter, accountID, h.Now(), waitlimit.MaxWait)
}

// scope says on whose accounts a route may be used.
type scope uint8

const (
	unscoped       scope = iota // the route is about no account
	ownAccounts                 // one's own account, and an agency's sub-clients
	subClientsOnly              // an agency's sub-clients only
)

// authorize refuses a grant that may not use a route on an account. An account out of its reach is not found.
func (h *handler) authorize(ctx context.Context, p access.TokenGrant, rt route, id string) error {
	switch {
	case !slices.Contains(rt.roles, p.Role):
		return refusal.RoleForbidden
	case rt.scope == unscoped || p.Account == "":
		return nil
	case rt.scope == ownAccounts && p.Account == id:
		return nil
	case p.Role != access.RoleAgency:
		return refusal.NotFound
	}
	parent, err := h.accounts.Commands.AgencyOf(ctx, id)
	if err != nil {
		return err
	}
	if parent != p.Account {
		return refusal.NotFound
	}
	return nil
}

// redactedBody is a body in which every token is replaced by its hint. No request needs a token in its body, but people paste
// the key they write about into a label or a reason, and the log keeps these for good.
type redactedBody struct {
	io.ReadCloser
	prefixes token.Prefixes
	text     io.Reader // nil before the first read
}

func (c *redactedBody) Read(p []byte) (int, error) {
	if c.text == nil {
		whole, err := io.ReadAll(c.ReadCloser)
		if err != nil {
			return 0, err
		}
		c.text = strings.NewReader(c.prefixes.RedactValidTokens(string(whole)))
	}
	return c.text.Read(p)
}
