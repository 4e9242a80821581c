// Package customerarea is the HTTP surface on which accounts are opened, keys and tokens issued, usage and history read, and
// read models maintained. It listens on an address of its own, apart from the API, and authenticates its clients by
// customer-area tokens, each with one role. Its constraint: what a token may not see is answered exactly like what does not
// exist. An agency is an account that has other accounts, its sub-clients, and pays for them.
//
//	request ─> ServeHTTP ─> authenticate ─> router.Match ─> authorize ─> budget.LimitBody ─> kit.Endpoint (decode)
//	                        token            route, method   role, account  redactedBody          │
//	                                                                                             v
//	answer <─ kit.Response.Write <─ kit.Await (read models show it) <─ command or query <─ kit.Operation
//
// Every check can end the request with an error, which kit.WriteError answers. routes.go is the table of operations. Writes go
// to commands; single accounts are read from their streams, lists from the read models.
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
	"lieudit/http/budget"
	"lieudit/http/clientip"
	"lieudit/http/kit"
	"lieudit/http/router"
	"lieudit/http/throttle"
	"lieudit/schemas/grant"
	"lieudit/schemas/refusal"
	"lieudit/schemas/token"
)

// Base is the path every path of the customer area begins with.
const Base = "/customer-area/v1"

// TokenRing holds the valid customer-area tokens. A ring that is an auth.FreshnessSource too makes requests wait while it
// is stale; with any other ring they are refused. It must be safe for concurrent use.
type TokenRing interface {
	// FindToken is what a customer-area token gives; false: it is not valid.
	FindToken(token.Hash) (grant.TokenGrant, bool)
	// FindSession returns what the token of a session gives, and FindLink what that of a link does.
	FindSession(hash token.Hash, now time.Time) (grant.TokenGrant, bool)
	FindLink(hash token.Hash, now time.Time) (grant.TokenGrant, bool)
	// IsFresh reports whether the ring holds all that the log held a second ago.
	IsFresh(now time.Time) bool
}

// Env is what the customer area runs in. Every part is required.
type Env struct {
	Limiter  *waitlimit.Limiter // of requests that wait for a silent log
	Bodies   *budget.Budget     // of large bodies
	Answers  *budget.Budget     // of large answers
	Lists    *budget.Budget     // of long lists: how many are read at once
	Prefixes token.Prefixes     // as configured
	Now      func() time.Time   // wall clock
	Log      *slog.Logger       // tokens are redacted before they get to it
	Clients  *clientip.Finder   // whose address Logins counts
	Logins   *throttle.Throttle // of failed attempts to open a session
	Address  Address            // where people reach the customer area
}

// New is the customer area over a ring of tokens and what its three groups of operations need. A panic is answered with a 500.
func New(tokens TokenRing, accounts Accounts, usage Usage, maintenance Maintenance, env Env) *Area {
	env.Log = slog.New(env.Prefixes.RedactingHandler(env.Log.Handler()))
	h := &handler{Env: env, tokens: tokens, accounts: accounts, usage: usage, maintenance: maintenance, crossOrigin: http.NewCrossOriginProtection()}
	h.table = router.New(Base, h.routes(), route.pattern)
	return &Area{Handler: kit.RecoverPanics(env.Log, h), rows: h}
}

type handler struct {
	Env
	tokens      TokenRing
	accounts    Accounts
	usage       Usage
	maintenance Maintenance
	table       *router.Table[route]
	crossOrigin *http.CrossOriginProtection
}

// Principal is who makes a request: what the token or the session grants.
type Principal = grant.TokenGrant

type principal = Principal

type call = kit.Call[principal]

// metadata names who makes a command, for which account, and why. OnBehalfOf is set only for an agency, which acts for the
// account of the path: the history of that account shows both.
func metadata(c call, reason string) commands.Metadata {
	m := commands.Metadata{Actor: "token:" + c.Principal.TokenID, Reason: reason}
	if c.Principal.Role == grant.RoleAgency {
		m.OnBehalfOf = c.Vars["id"]
	}
	return m
}

// ServeHTTP answers a request. Caches must not keep any of it.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	reservation := budget.NewAnswer(r.Context(), h.Answers)
	defer reservation.Release()
	v, err := h.serve(w, r, reservation)
	if err == nil {
		err = v.Write(r.Context(), w)
	}
	if err != nil {
		kit.WriteError(w, h.Log, err)
	}
}

// serve answers what needs no token, and leaves the rest to serveAuthenticated.
func (h *handler) serve(w http.ResponseWriter, r *http.Request, answer *budget.Answer) (kit.Response, error) {
	if r.Method == http.MethodPost && r.URL.EscapedPath() == sessionsPath {
		return h.openSession(w, r)
	}
	return h.serveAuthenticated(r, answer)
}

// maxBodyBytes is the most that a body may have.
const maxBodyBytes = 1 << 20

// commandTimeout limits the work, once the request is decoded. While the log does not answer, a command tries for so long to
// learn whether its events were appended. Streams are written after the work and have no limit.
const commandTimeout = 15 * time.Second

// serveAuthenticated makes the checks in their order: token, route, role, account, syntax; then it does the work. The body is
// read only after the checks before syntax. Its share of the budget is held until the work is done. answer reserves memory for
// the answer until it is sent.
func (h *handler) serveAuthenticated(r *http.Request, answer *budget.Answer) (kit.Response, error) {
	p, err := h.authenticate(r)
	if err != nil {
		return kit.Response{}, err
	}
	return h.do(r, p, answer)
}

// do makes the checks after the token, and the work.
func (h *handler) do(r *http.Request, p principal, answer *budget.Answer) (kit.Response, error) {
	answer.Account = p.Account
	rt, vars, err := h.table.Match(r, false)
	if err != nil {
		return kit.Response{}, err
	}
	if err := h.authorize(r.Context(), p, rt, vars["id"]); err != nil {
		return kit.Response{}, err
	}
	defer budget.LimitBody(h.Bodies, r, budget.Admission{Account: p.Account, Limit: maxBodyBytes})()
	r.Body = &redactedBody{ReadCloser: r.Body, prefixes: h.Prefixes}
	do, err := rt.endpoint(r)
	if err != nil {
		return kit.Response{}, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), commandTimeout)
	defer cancel()
	v, err := do(ctx, call{Principal: p, Vars: vars, Answer: answer})
	if err != nil {
		return kit.Response{}, kit.FitError(answer, err)
	}
	return v.Fit(answer, rt.method != http.MethodGet)
}

// authenticate is what the token of a request gives. A stale ring cannot be relied on, not even for an unknown token, which may
// have been issued a moment ago; so a request is refused with AuthUnavailable unless the ring is fresh before and after the
// token was looked up.
func (h *handler) authenticate(r *http.Request) (grant.TokenGrant, error) {
	text, ok := auth.BearerToken(r.Header)
	if !ok {
		return h.authenticateSession(r)
	}
	if kind, ok := h.Prefixes.KindOf(text); !ok || kind != token.Area {
		return grant.TokenGrant{}, refusal.KeyInvalid
	}
	return h.authenticateHash(r.Context(), token.HashOf(text), h.tokens.FindToken)
}

// finder looks a hash up in the ring.
type finder func(token.Hash) (grant.TokenGrant, bool)

// authenticateHash is what find gives for a hash, in a ring that is fresh before and after.
func (h *handler) authenticateHash(ctx context.Context, hash token.Hash, find finder) (grant.TokenGrant, error) {
	if !h.tokens.IsFresh(time.Now()) && !h.awaitFreshTokens(ctx, hash, find) {
		return grant.TokenGrant{}, refusal.AuthUnavailable
	}
	found, ok := find(hash)
	if !h.tokens.IsFresh(time.Now()) { // it became stale, or began again from zero, meanwhile
		return grant.TokenGrant{}, refusal.AuthUnavailable
	}
	switch {
	case !ok:
		return grant.TokenGrant{}, refusal.KeyInvalid
	case found.Stopped: // perhaps it is revoked, perhaps not: nobody is told that it is invalid
		return grant.TokenGrant{}, refusal.Internal
	}
	return found, nil
}

// awaitFreshTokens waits until the ring is fresh, and reports whether it is. It waits only for a token that the stale ring
// holds, so that nobody without a token can use up the Limiter. A token of no account has a share of the Limiter by itself.
func (h *handler) awaitFreshTokens(ctx context.Context, hash token.Hash, find finder) bool {
	source, canGoStale := h.tokens.(auth.FreshnessSource)
	known, ok := find(hash)
	if !ok || !canGoStale {
		return false
	}
	accountID := known.Account
	if accountID == "" {
		accountID = "token " + known.TokenID // no account has this id: ids have no spaces
	}
	return auth.WaitUntilFresh(ctx, source, h.Limiter.NewWait(accountID), time.Now())
}

// scope is on whose accounts a route may be used.
type scope uint8

const (
	unscoped       scope = iota // the route is about no account
	ownAccounts                 // one's own account, and an agency's sub-clients
	subClientsOnly              // an agency's sub-clients only
)

// authorize refuses a grant that may not use a route on an account. id is the account of the path, or "". An account out of
// the grant's reach is answered like one that does not exist. Grants without an account reach every account.
func (h *handler) authorize(ctx context.Context, p grant.TokenGrant, rt route, id string) error {
	switch {
	case !slices.Contains(rt.roles, p.Role):
		return refusal.RoleForbidden.With(refusal.Details{Reason: nameRoles(rt.roles)})
	case rt.scope == unscoped || p.Account == "":
		return nil
	case rt.scope == ownAccounts && p.Account == id:
		return nil
	case p.Role != grant.RoleAgency:
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

// nameRoles names roles as a sentence does: operator, billing or auditor.
func nameRoles(roles []grant.Role) string {
	text := ""
	for i, role := range roles {
		switch {
		case i > 0 && i == len(roles)-1:
			text += " or "
		case i > 0:
			text += ", "
		}
		text += string(role)
	}
	return text
}

// redactedBody is a body in which every token is replaced by its hint. No request needs a token in its body, but people paste
// the key they write about into a label or a reason, and the log keeps these for good. The first Read reads the whole body,
// because a token may lie across two reads.
type redactedBody struct {
	io.ReadCloser
	prefixes token.Prefixes
	text     io.Reader // nil before the first read
}

func (b *redactedBody) Read(p []byte) (int, error) {
	if b.text == nil {
		whole, err := io.ReadAll(b.ReadCloser)
		if err != nil {
			return 0, err
		}
		b.text = strings.NewReader(b.prefixes.RedactValidTokens(string(whole)))
	}
	return b.text.Read(p)
}
