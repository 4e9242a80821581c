// Package server is the API: every request passes the same checks in the same order, then does the work of its
// row in routes.go. Requests are matched as they were sent: no path is ever cleaned or redirected.
package server

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"lieudit/http/answer"
	"lieudit/http/auth"
	"lieudit/http/lookup"
	"lieudit/http/problem"
	"lieudit/http/throttle"
	"lieudit/queries/address/atlas"
	"lieudit/schemas/body"
	"lieudit/schemas/grant"
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
	Meter    Meter              // nil: nothing is counted, nothing refused
	Throttle *throttle.Throttle // of publishable keys; nil: none
	Atlas    *atlas.Atlas       // of addresses; nil: none
	Tokens   token.Prefixes     // as configured
	Now      func() time.Time
	Log      *slog.Logger // tokens are redacted on the way to it
	Version  string       // of the program
}

// New is the API.
func New(p Parts) http.Handler {
	if p.Meter == nil {
		p.Meter = unmetered{}
	}
	p.Log = slog.New(p.Tokens.Redacting(p.Log.Handler()))
	a := &api{Parts: p, gate: auth.NewGate(p.Ring, p.Tokens, searchPath, p.Now)}
	a.paths = lookup.New(Base, a.routes(), route.place)
	return problem.Guard(p.Log, a)
}

type api struct {
	Parts
	gate  *auth.Gate
	paths *lookup.Table[route]
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
		a.write(w, v, err)
	default:
		if a.throttled(r) {
			w.Header().Del("Access-Control-Allow-Origin")
			problem.Write(w, a.Log, problem.Throttled())
			return
		}
		w.Header().Set("Cache-Control", "no-store")
		v, err := a.keyed(w, r)
		a.write(w, v, err)
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

func (a *api) write(w http.ResponseWriter, v any, err error) {
	if err == nil {
		err = answer.JSON(w, http.StatusOK, v)
	}
	if err != nil {
		problem.Write(w, a.Log, err)
	}
}

// keyed is the order of checks: key, scope, route, method, plan, syntax, quota; then the work.
func (a *api) keyed(w http.ResponseWriter, r *http.Request) (any, error) {
	g, err := a.gate.Admit(w.Header(), r)
	if err != nil {
		return nil, err
	}
	route, vars, err := a.paths.Find(r, true)
	if err != nil {
		return nil, a.refused(r.Context(), g, r.Method+" "+elsewhere, err)
	}
	if !includes(g.Plan, route.service) {
		return nil, a.refused(r.Context(), g, route.name(), problem.PlanInsufficient(g.Plan))
	}
	r.Body = http.MaxBytesReader(w, r.Body, route.limit)
	do, err := route.endpoint(r)
	if err != nil {
		return nil, err
	}
	return a.metered(r.Context(), route, func(ctx context.Context) (any, error) {
		return do(ctx, call{grant: g, now: a.Now(), vars: vars})
	}, g)
}

// elsewhere stands for every path that is no route.
const elsewhere = "*"

// refused is the refusal of a request, or why even that cannot be counted.
func (a *api) refused(ctx context.Context, g grant.Grant, endpoint string, cause error) error {
	if err := a.Meter.Refused(ctx, g, endpoint); err != nil {
		return err
	}
	return cause
}

// metered does the work between the two halves of metering it. Work that panics is settled as the 500 it becomes.
func (a *api) metered(ctx context.Context, rt route, do func(context.Context) (any, error), g grant.Grant) (v any, err error) {
	settle, err := a.Meter.Admit(ctx, g, rt.name(), rt.writes())
	if err != nil {
		return nil, err
	}
	status := http.StatusInternalServerError
	defer func() {
		spent, refused := settle(ctx, status)
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

// statusOf is the status of the answer to what came out of the work.
func statusOf(err error) int {
	if err == nil {
		return http.StatusOK
	}
	p, _ := problem.Of(err)
	return p.Status
}
