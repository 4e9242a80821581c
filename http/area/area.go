// Package area is the customer area: where accounts are opened, keys issued, tokens given, history read and read
// models looked after. It listens apart from the API, and knows its callers by customer-area tokens, each with
// one role. What a token may not see answers exactly as what does not exist.
package area

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"lieudit/commands/access"
	"lieudit/commands/account"
	"lieudit/commands/repair"
	"lieudit/commands/usage"
	"lieudit/eventstore"
	"lieudit/eventstore/waiting"
	"lieudit/http/bodies"
	"lieudit/http/lookup"
	"lieudit/http/problem"
	"lieudit/queries/consumption"
	"lieudit/queries/keys"
	"lieudit/queries/trail"
	"lieudit/schemas/body"
	"lieudit/schemas/grant"
	"lieudit/schemas/token"
)

// Base is the path every path of the customer area begins with.
const Base = "/customer-area/v1"

// Passes is who may come in.
type Passes interface {
	// FindPass is what a customer-area token gives, or false when it gives nothing.
	FindPass(token.Hash) (grant.Pass, bool)
	// Fresh says whether the passes are those of the log a second ago.
	Fresh(now time.Time) bool
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

// Parts is what the customer area is made of.
type Parts struct {
	Accounts    *account.Accounts
	Tokens      *access.Tokens
	Register    *keys.Keys
	Trail       *trail.Trail
	Consumption *consumption.Consumption
	Passes      Passes        // where they are an auth.Follower too, requests wait for them
	Waiting     *waiting.Room // where that is; nil: a room of their own
	ReadModels  ReadModels
	Repairs     *repair.Repairs
	// Wait returns when this instance shows what the log held at the position of an event of an account, or when that takes
	// too long; WaitTokens does for an event of a token.
	Wait, WaitTokens func(context.Context, eventstore.Position)
	// Tallied returns when the read model of usage shows all that was counted by now, or when that takes too long.
	Tallied func(context.Context)
	Ledger  *usage.Ledger
	Bodies  *bodies.Budget // of large bodies; nil: none
	// Alive are the instances that run, by what they are called in the ledger.
	Alive    func(context.Context) (map[string]bool, error)
	Prefixes token.Prefixes
	Now      func() time.Time
	Log      *slog.Logger // tokens are redacted on the way to it
}

// New is the customer area.
func New(p Parts) http.Handler {
	if p.Waiting == nil {
		p.Waiting = waiting.NewRoom(waiting.Places)
	}
	p.Log = slog.New(p.Prefixes.Redacting(p.Log.Handler()))
	a := &area{Parts: p}
	a.paths = lookup.New(Base, a.routes(), route.place)
	return problem.Guard(p.Log, a)
}

type area struct {
	Parts
	paths *lookup.Table[route]
}

// ServeHTTP sends what was asked for, or why not. Nothing of it is to be kept by anyone on the way.
func (a *area) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	answered, err := a.keyed(r)
	if err == nil {
		err = answered.send(w, r)
	}
	if err != nil {
		problem.Write(w, a.Log, err)
	}
}

const (
	maxBody = 1 << 20          // the most a request may hold
	maxWork = 15 * time.Second // how long a command tries to learn what became of it, once the request is read
)

// keyed is the order of checks: token, route, role, account, syntax; then the work.
func (a *area) keyed(r *http.Request) (reply, error) {
	p, err := a.pass(r)
	if err != nil {
		return reply{}, err
	}
	rt, vars, err := a.paths.Find(r, false)
	if err != nil {
		return reply{}, err
	}
	c := call{p, vars}
	if err := a.allow(r.Context(), p, rt, c.account()); err != nil {
		return reply{}, err
	}
	defer a.Bodies.Limit(r, bodies.Admission{Account: p.Account, Limit: maxBody})()
	r.Body = &concealing{ReadCloser: r.Body, tokens: a.Prefixes}
	return rt.endpoint(r, c)
}
