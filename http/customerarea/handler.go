// Package customerarea is the customer area: where accounts are opened, keys issued, tokens given, history read and read
// models looked after. It listens apart from the API, and knows its callers by customer-area tokens, each with
// one role. What a token may not see answers exactly as what does not exist.
package customerarea

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"lieudit/commands/access"
	"lieudit/commands/account"
	"lieudit/commands/repair"
	"lieudit/commands/usage"
	"lieudit/eventstore"
	"lieudit/eventstore/waitlimit"
	"lieudit/http/auth"
	"lieudit/http/bodylimit"
	"lieudit/http/problem"
	"lieudit/http/router"
	accountqueries "lieudit/queries/account"
	"lieudit/queries/audit"
	usagequeries "lieudit/queries/usage"
	accessschemas "lieudit/schemas/access"
	"lieudit/schemas/body"
	"lieudit/schemas/token"
)

// Base is the path every path of the customer area begins with.
const Base = "/customer-area/v1"

// TokenRing is who may come in.
type TokenRing interface {
	// FindToken is what a customer-area token gives, or false when it gives nothing.
	FindToken(token.Hash) (accessschemas.TokenGrant, bool)
	// IsFresh says whether the passes are those of the log a second ago.
	IsFresh(now time.Time) bool
}

// ReadModels is what can be done about the read models.
type ReadModels interface {
	Status(context.Context) ([]body.Projection, error)
	// Rebuild fills a fresh copy of a read model beside the one that serves; an unknown one is a problem.NotFound.
	Rebuild(ctx context.Context, name string) error
	// RebuildAll is Rebuild of every read model there is.
	RebuildAll(context.Context) error
	// Prune drops the copies that nobody reads.
	Prune(context.Context) error
	// Refold has the rows of an account, where they are stopped, written again from its streams.
	Refold(ctx context.Context, account string) error
}

// Dependencies is what the customer area is made of.
type Dependencies struct {
	AccountCommands *account.Accounts
	TokenCommands   *access.Tokens
	AccountQueries  *accountqueries.Reader
	AuditQueries    *audit.Reader
	UsageQueries    *usagequeries.Reader
	TokenRing       TokenRing          // where they are an auth.Follower too, requests wait for them
	Limiter         *waitlimit.Limiter // where that is; nil: a room of their own
	ReadModels      ReadModels
	Repairs         *repair.Repairs
	// WaitForAccounts returns when this instance shows what the log held at the position of an event of an account, or when that takes
	// too long; WaitForTokens does for an event of a token.
	WaitForAccounts, WaitForTokens func(context.Context, eventstore.Position)
	// WaitForUsage returns when the read model of usage shows all that was counted by now, or when that takes too long.
	WaitForUsage func(context.Context)
	UsageMeter   *usage.Meter
	BodyBudget   *bodylimit.Budget // of large bodies; nil: none
	// RunningInstances are the instances that run, by what they are called in the ledger.
	RunningInstances func(context.Context) (map[string]bool, error)
	TokenPrefixes    token.Prefixes
	Now              func() time.Time
	Log              *slog.Logger // tokens are redacted on the way to it
}

// New is the customer area.
func New(d Dependencies) http.Handler {
	if d.Limiter == nil {
		d.Limiter = waitlimit.New(waitlimit.MaxRequests)
	}
	d.Log = slog.New(d.TokenPrefixes.RedactingHandler(d.Log.Handler()))
	h := &handler{Dependencies: d}
	h.table = router.New(Base, h.routes(), route.pattern)
	return problem.RecoverPanics(d.Log, h)
}

type handler struct {
	Dependencies
	table *router.Table[route]
}

// ServeHTTP sends what was asked for, or why not. Nothing of it is to be kept by anyone on the way.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	resp, err := h.serveAuthenticated(r)
	if err == nil {
		err = resp.write(w, r)
	}
	if err != nil {
		problem.Write(w, h.Log, err)
	}
}

const (
	maxBodyBytes   = 1 << 20          // the most a request may hold
	commandTimeout = 15 * time.Second // how long a command tries to learn what became of it, once the request is read
)

// serveAuthenticated is the order of checks: token, route, role, account, syntax; then the work.
func (h *handler) serveAuthenticated(r *http.Request) (response, error) {
	p, err := h.authenticate(r)
	if err != nil {
		return response{}, err
	}
	rt, vars, err := h.table.Match(r, false)
	if err != nil {
		return response{}, err
	}
	c := call{p, vars}
	if err := h.authorize(r.Context(), p, rt, c.account()); err != nil {
		return response{}, err
	}
	defer h.BodyBudget.Limit(r, bodylimit.Admission{Account: p.Account, Limit: maxBodyBytes})()
	r.Body = &redactedBody{ReadCloser: r.Body, prefixes: h.TokenPrefixes}
	return rt.endpoint(r, c)
}

// authenticate is who the request is from.
func (h *handler) authenticate(r *http.Request) (accessschemas.TokenGrant, error) {
	text, ok := auth.BearerToken(r.Header)
	if !ok {
		return accessschemas.TokenGrant{}, problem.KeyRequired()
	}
	if kind, ok := h.TokenPrefixes.KindOf(text); !ok || kind != token.Area {
		return accessschemas.TokenGrant{}, problem.KeyInvalid()
	}
	hash := token.HashOf(text)
	if !h.TokenRing.IsFresh(h.Now()) && !h.awaitFreshTokens(r.Context(), hash) {
		return accessschemas.TokenGrant{}, problem.AuthUnavailable()
	}
	found, ok := h.TokenRing.FindToken(hash)
	if !h.TokenRing.IsFresh(h.Now()) { // it grew old, or began again from zero, while it was asked
		return accessschemas.TokenGrant{}, problem.AuthUnavailable()
	}
	if !ok {
		return accessschemas.TokenGrant{}, problem.KeyInvalid()
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
func (h *handler) authorize(ctx context.Context, p accessschemas.TokenGrant, rt route, id string) error {
	switch {
	case !slices.Contains(rt.roles, p.Role):
		return problem.Forbidden()
	case rt.scope == unscoped || p.Account == "":
		return nil
	case rt.scope == ownAccounts && p.Account == id:
		return nil
	case p.Role != accessschemas.RoleAgency:
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

// redactedBody is a body in which tokens are hints. No request needs one in its body; but people paste the key they
// talk about into a label or a reason, and the log keeps these for good.
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
