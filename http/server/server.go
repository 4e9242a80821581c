// Package server is the API: every request passes the same checks in the same order, then does the work of its
// row in routes.go. Requests are matched as they were sent: no path is ever cleaned or redirected.
package server

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"lieudit/commands/locations"
	"lieudit/commands/usage"
	"lieudit/eventstore"
	"lieudit/eventstore/waiting"
	"lieudit/http/answer"
	"lieudit/http/auth"
	"lieudit/http/bodies"
	"lieudit/http/lookup"
	"lieudit/http/problem"
	"lieudit/http/throttle"
	"lieudit/queries/address/atlas"
	"lieudit/queries/places"
	"lieudit/queries/places/finder"
	"lieudit/schemas/body"
	"lieudit/schemas/token"
)

// Base is the path every path of the API begins with.
const Base = "/services/v1"

const (
	versionPath = Base + "/version"
	searchPath  = Base + "/locations/search" // the one publishable keys open
)

// Parts is what the API is made of.
type Parts struct {
	Ring     auth.Ring
	Waiting  *waiting.Room      // where requests wait for a silent log; nil: a room of their own
	Meter    Meter              // nil: nothing is counted, nothing refused
	Throttle *throttle.Throttle // of publishable keys; nil: none
	Bodies   *bodies.Budget     // of large bodies; nil: none
	Atlas    *atlas.Atlas       // of addresses; nil: none

	Locations *locations.Locations // commands on places; nil: none are taken
	Places    *places.Places       // the read model of places; nil: none is read
	Search    finder.Engine        // of sites; nil: there are none
	// Cursors is the secret that an account's cursors are sealed with; nil: there are no second pages.
	Cursors func(ctx context.Context, account string) ([]byte, error)
	// Changed is where an account's places changed last on the log, 0 where that is not since the start; nil: it is not known.
	Changed func(account string) eventstore.Position
	// Wait returns when the read models show what the log held at a position, or when that takes too long.
	Wait func(context.Context, eventstore.Position)

	Tokens  token.Prefixes // as configured
	Now     func() time.Time
	Log     *slog.Logger // tokens are redacted on the way to it
	Version string       // of the program
}

// New is the API.
func New(p Parts) http.Handler {
	if p.Meter == nil {
		p.Meter = unmetered{}
	}
	if p.Waiting == nil {
		p.Waiting = waiting.NewRoom(waiting.Places)
	}
	p.Log = slog.New(p.Tokens.Redacting(p.Log.Handler()))
	a := &api{Parts: p, gate: auth.NewGate(p.Ring, p.Tokens, searchPath, p.Now)}
	a.gate.WaitIn(p.Waiting)
	if p.Locations != nil {
		a.figures = &figures{of: p.Locations.Figures, changed: p.Changed}
	}
	a.paths = lookup.New(Base, a.routes(), route.place)
	return problem.Guard(p.Log, a)
}

type api struct {
	Parts
	gate    *auth.Gate
	paths   *lookup.Table[route]
	figures *figures // nil: of no places
}

// ServeHTTP answers what needs no key, and leaves the rest to keyed.
func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := r.URL.EscapedPath()
	if path == searchPath {
		auth.AllowPages(w.Header())
	}
	switch {
	case r.Method == http.MethodOptions:
		auth.Preflight(w)
	case r.Method == http.MethodGet && path == versionPath:
		v, err := a.version(r.Context(), call{}, body.Empty{})
		a.write(w, r, v, err)
	default:
		if a.throttled(r) {
			w.Header().Del("Access-Control-Allow-Origin")
			problem.Write(w, a.Log, problem.Throttled())
			return
		}
		w.Header().Set("Cache-Control", "no-store")
		v, err := a.keyed(w, r)
		a.write(w, r, v, err)
	}
}

// throttled says whether a publishable key is used faster from one address than pages do.
func (a *api) throttled(r *http.Request) bool {
	if a.Throttle == nil {
		return false
	}
	text, ok := auth.Bearer(r.Header)
	return ok && strings.HasPrefix(text, a.Tokens.Publishable) && !a.Throttle.Allow(throttle.CallerOf(r.RemoteAddr, text), a.Now())
}

func (a *api) write(w http.ResponseWriter, r *http.Request, v any, err error) {
	if err == nil {
		switch v := v.(type) {
		case *file:
			v.send(r.Context(), w, a.Log)
		case created:
			err = answer.JSON(w, http.StatusCreated, v.body)
		default:
			err = answer.JSON(w, http.StatusOK, v)
		}
	}
	if err != nil {
		problem.Write(w, a.Log, err)
	}
}

// keyed is the order of checks: key, scope, route, method, plan, syntax, quota; then the work. A large body is read once the
// plan is checked and the quota is not known to be spent, and its share of the budget is held until there is an answer.
func (a *api) keyed(w http.ResponseWriter, r *http.Request) (any, error) {
	admitted, err := a.gate.Admit(w.Header(), r)
	if err != nil {
		return nil, err
	}
	g, caller := admitted.Grant, a.caller(admitted)
	route, vars, err := a.paths.Find(r, true)
	if err != nil {
		return nil, a.refused(r.Context(), caller, r.Method+" "+elsewhere, err)
	}
	if !includes(g.Plan, route.service) {
		return nil, a.refused(r.Context(), caller, route.name(), problem.PlanInsufficient(g.Plan))
	}
	defer a.Bodies.Limit(r, bodies.Admission{Account: g.Account, Limit: route.limit, Allow: func() error {
		return a.known(r.Context(), caller, route.name())
	}})()
	do, err := route.endpoint(r)
	if err != nil {
		return nil, err
	}
	return a.metered(r.Context(), route, func(ctx context.Context) (any, error) {
		return do(ctx, call{grant: g, now: a.Now(), vars: vars, caller: caller})
	}, caller)
}

// elsewhere stands for every path that is no route.
const elsewhere = "*"

// refused is the refusal of a request, or why even that cannot be counted.
func (a *api) refused(ctx context.Context, c *caller, endpoint string, cause error) error {
	err := c.wait(ctx, func(ctx context.Context) error { return a.Meter.Refused(ctx, c.Grant, endpoint) })
	if err != nil {
		return err
	}
	return cause
}

// known is nil, or the refusal of a large body that is not to be read: the account is known to be at its cap, or the key
// holds no longer.
func (a *api) known(ctx context.Context, c *caller, endpoint string) error {
	refused, err := c.spend(ctx, func(ctx context.Context) error { return a.Meter.Known(ctx, c.Grant, endpoint) })
	if refused != nil {
		return refused
	}
	return err
}

// metered does the work between the two halves of metering it. Work that panics is settled as the 500 it becomes.
func (a *api) metered(ctx context.Context, rt route, do func(context.Context) (any, error), c *caller) (v any, err error) {
	settle, err := a.admit(ctx, rt, c)
	if err != nil {
		return nil, err
	}
	status := http.StatusInternalServerError
	defer func() {
		spent, refused := a.settle(ctx, rt, c, settle, status)
		if f, ok := v.(*file); ok && refused != nil {
			f.drop()
		}
		if refused != nil {
			v, err = nil, refused
		}
		if tell, ok := v.(afterwards); ok {
			v = tell(spent)
		}
	}()
	v, err = do(ctx)
	status = statusOf(err)
	return v, err
}

// admit lets a request into the work. One that was counted for it and whose key holds no longer is taken back.
func (a *api) admit(ctx context.Context, rt route, c *caller) (settle Settle, err error) {
	refused, err := c.spend(ctx, func(ctx context.Context) (err error) {
		settle, err = a.Meter.Admit(ctx, c.Grant, rt.name(), rt.writes())
		return err
	})
	if refused == nil {
		return settle, err
	}
	if err == nil && rt.writes() {
		c.takeBack(ctx, func(ctx context.Context) { settle(ctx, statusOf(refused)) })
	}
	return nil, refused
}

// settle ends the metering of a request. What was read is answered only while the key holds; a write is done, and its
// answer says so.
func (a *api) settle(ctx context.Context, rt route, c *caller, settle Settle, status int) (spent usage.Spending, err error) {
	if rt.writes() {
		return settle(ctx, status)
	}
	refused, err := c.spend(ctx, func(ctx context.Context) (err error) {
		spent, err = settle(ctx, status)
		return err
	})
	if refused == nil {
		return spent, err
	}
	c.takeBack(ctx, func(ctx context.Context) {
		if back := spent.TakeBack(ctx); back != nil {
			a.Log.Warn("a refund is not durable yet", "account", c.Account, "endpoint", rt.name(), "reason", back)
		}
	})
	return usage.Spending{}, refused
}

// statusOf is the status of the answer to what came out of the work.
func statusOf(err error) int {
	if err == nil {
		return http.StatusOK
	}
	p, _ := problem.Of(err)
	return p.Status
}
