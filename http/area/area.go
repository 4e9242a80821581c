// Package area is the customer area: where accounts are opened, keys issued, tokens given, history read and read
// models looked after. It listens apart from the API, and knows its callers by customer-area tokens, each with
// one role. What a token may not see answers exactly as what does not exist.
package area

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/gorilla/mux"

	"lieudit/commands/access"
	"lieudit/commands/account"
	"lieudit/eventstore"
	"lieudit/http/problem"
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
	// Prune drops the copies that nobody reads.
	Prune(context.Context) error
}

// Parts is what the customer area is made of.
type Parts struct {
	Accounts   *account.Accounts
	Tokens     *access.Tokens
	Register   *keys.Keys
	Trail      *trail.Trail
	Passes     Passes
	ReadModels ReadModels
	// Wait returns when the read models show what the log held at a position, or when that takes too long.
	Wait     func(context.Context, eventstore.Position)
	Prefixes token.Prefixes
	Now      func() time.Time
	Log      *slog.Logger // tokens are redacted on the way to it
}

// New is the customer area.
func New(p Parts) http.Handler {
	p.Log = slog.New(p.Prefixes.Redacting(p.Log.Handler()))
	a := &area{Parts: p}
	router := mux.NewRouter().SkipClean(true).UseEncodedPath()
	for _, rt := range a.routes() {
		router.Methods(rt.method).Path(Base + rt.path).Handler(a.serve(rt))
	}
	router.NotFoundHandler = a.refusing(problem.NotFound())
	router.MethodNotAllowedHandler = a.refusing(problem.MethodNotAllowed())
	return problem.Guard(p.Log, router)
}

type area struct{ Parts }
