// Package api is the API: every request passes the same checks in the same order, then does the work of its
// row in routes.go. Requests are matched as they were sent: no path is ever cleaned or redirected.
package api

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"lieudit/commands/locations"
	"lieudit/commands/usage"
	"lieudit/eventstore"
	"lieudit/eventstore/waitlimit"
	"lieudit/http/answer"
	"lieudit/http/auth"
	"lieudit/http/bodylimit"
	"lieudit/http/problem"
	"lieudit/http/router"
	"lieudit/http/throttle"
	"lieudit/queries/address/atlas"
	locationsqueries "lieudit/queries/locations"
	"lieudit/queries/locations/search"
	"lieudit/schemas/body"
	"lieudit/schemas/token"
)

// Base is the path every path of the API begins with.
const Base = "/services/v1"

const (
	versionPath = Base + "/version"
	searchPath  = Base + "/locations/search" // the one publishable keys open
)

// Dependencies is what the API is made of.
type Dependencies struct {
	KeyRing    auth.KeyRing
	Limiter    *waitlimit.Limiter // where requests wait for a silent log; nil: a room of their own
	Meter      RequestMeter       // nil: nothing is counted, nothing refused
	Throttle   *throttle.Throttle // of publishable keys; nil: none
	BodyBudget *bodylimit.Budget  // of large bodies; nil: none
	Addresses  *atlas.Atlas       // of addresses; nil: none

	LocationCommands *locations.Locations     // commands on places; nil: none are taken
	LocationQueries  *locationsqueries.Reader // the read model of places; nil: none is read
	SiteSearch       search.Engine            // of sites; nil: there are none
	// CursorSecret is the secret that an account's cursors are sealed with; nil: there are no second pages.
	CursorSecret func(ctx context.Context, account string) ([]byte, error)
	// LastLocationChange is where an account's places changed last on the log, 0 where that is not since the start; nil: it is not known.
	LastLocationChange func(account string) eventstore.Position
	// WaitForLocations returns when the read models show what the log held at a position, or when that takes too long.
	WaitForLocations func(context.Context, eventstore.Position)

	TokenPrefixes token.Prefixes // as configured
	Now           func() time.Time
	Log           *slog.Logger // tokens are redacted on the way to it
	Version       string       // of the program
}

// New is the API.
func New(d Dependencies) http.Handler {
	if d.Meter == nil {
		d.Meter = nopMeter{}
	}
	if d.Limiter == nil {
		d.Limiter = waitlimit.New(waitlimit.MaxRequests)
	}
	d.Log = slog.New(d.TokenPrefixes.RedactingHandler(d.Log.Handler()))
	h := &handler{Dependencies: d, authenticator: auth.NewAuthenticator(d.KeyRing, d.TokenPrefixes, searchPath, d.Now)}
	h.authenticator.SetLimiter(d.Limiter)
	if d.LocationCommands != nil {
		h.counts = &countCache{load: d.LocationCommands.CountLocations, lastChange: d.LastLocationChange}
	}
	h.table = router.New(Base, h.routes(), route.pattern)
	return problem.RecoverPanics(d.Log, h)
}

type handler struct {
	Dependencies
	authenticator *auth.Authenticator
	table         *router.Table[route]
	counts        *countCache // nil: of no places
}

// ServeHTTP answers what needs no key, and leaves the rest to keyed.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := r.URL.EscapedPath()
	if path == searchPath {
		auth.AllowAnyOrigin(w.Header())
	}
	switch {
	case r.Method == http.MethodOptions:
		auth.WritePreflight(w)
	case r.Method == http.MethodGet && path == versionPath:
		v, err := h.showVersion(r.Context(), call{}, body.Empty{})
		h.writeResult(w, r, v, err)
	default:
		if h.isThrottled(r) {
			w.Header().Del("Access-Control-Allow-Origin")
			problem.Write(w, h.Log, problem.Throttled())
			return
		}
		w.Header().Set("Cache-Control", "no-store")
		v, err := h.serveAuthenticated(w, r)
		h.writeResult(w, r, v, err)
	}
}

// isThrottled says whether a publishable key is used faster from one address than pages do.
func (h *handler) isThrottled(r *http.Request) bool {
	if h.Throttle == nil {
		return false
	}
	text, ok := auth.BearerToken(r.Header)
	return ok && strings.HasPrefix(text, h.TokenPrefixes.Publishable) && !h.Throttle.Allow(throttle.ParseClient(r.RemoteAddr, text), h.Now())
}

func (h *handler) writeResult(w http.ResponseWriter, r *http.Request, v any, err error) {
	if err == nil {
		switch v := v.(type) {
		case *siteExport:
			v.stream(r.Context(), w, h.Log)
		case createdBody:
			err = answer.WriteJSON(w, http.StatusCreated, v.body)
		default:
			err = answer.WriteJSON(w, http.StatusOK, v)
		}
	}
	if err != nil {
		problem.Write(w, h.Log, err)
	}
}

// serveAuthenticated is the order of checks: key, scope, route, method, plan, syntax, quota; then the work. A large body is read once the
// plan is checked and the quota is not known to be spent, and its share of the budget is held until there is an answer.
func (h *handler) serveAuthenticated(w http.ResponseWriter, r *http.Request) (any, error) {
	authentication, err := h.authenticator.Authenticate(w.Header(), r)
	if err != nil {
		return nil, err
	}
	g, budget := authentication.Grant, h.newWaitBudget(authentication)
	route, vars, err := h.table.Match(r, true)
	if err != nil {
		return nil, h.countRefusal(r.Context(), budget, r.Method+" "+unknownRoute, err)
	}
	if !planIncludes(g.Plan, route.service) {
		return nil, h.countRefusal(r.Context(), budget, route.endpointName(), problem.PlanInsufficient(g.Plan))
	}
	defer h.BodyBudget.Limit(r, bodylimit.Admission{Account: g.Account, Limit: route.bodyLimit, Allow: func() error {
		return h.checkLargeBody(r.Context(), budget, route.endpointName())
	}})()
	do, err := route.endpoint(r)
	if err != nil {
		return nil, err
	}
	return h.runMetered(r.Context(), route, func(ctx context.Context) (any, error) {
		return do(ctx, call{grant: g, now: h.Now(), vars: vars, budget: budget})
	}, budget)
}

// unknownRoute stands for every path that is no route.
const unknownRoute = "*"

// countRefusal is the refusal of a request, or why even that cannot be counted.
func (h *handler) countRefusal(ctx context.Context, c *waitBudget, endpoint string, cause error) error {
	err := c.runWithin(ctx, func(ctx context.Context) error { return h.Meter.CountRefused(ctx, c.Grant, endpoint) })
	if err != nil {
		return err
	}
	return cause
}

// checkLargeBody is nil, or the refusal of a large body that is not to be read: the account is checkLargeBody to be at its cap, or the key
// holds no longer.
func (h *handler) checkLargeBody(ctx context.Context, c *waitBudget, endpoint string) error {
	refused, err := c.runAndRevalidate(ctx, func(ctx context.Context) error { return h.Meter.CheckQuota(ctx, c.Grant, endpoint) })
	if refused != nil {
		return refused
	}
	return err
}

// runMetered does the work between the two halves of metering it. Work that panics is settled as the 500 it becomes.
func (h *handler) runMetered(ctx context.Context, rt route, do func(context.Context) (any, error), c *waitBudget) (v any, err error) {
	settle, err := h.admitMetered(ctx, rt, c)
	if err != nil {
		return nil, err
	}
	status := http.StatusInternalServerError
	defer func() {
		spent, refused := h.settleUsage(ctx, rt, c, settle, status)
		if f, ok := v.(*siteExport); ok && refused != nil {
			f.stop()
		}
		if refused != nil {
			v, err = nil, refused
		}
		if render, ok := v.(bodyWithUsage); ok {
			v = render(spent)
		}
	}()
	v, err = do(ctx)
	status = statusOf(err)
	return v, err
}

// admitMetered lets a request into the work. One that was counted for it and whose key holds no longer is taken back.
func (h *handler) admitMetered(ctx context.Context, rt route, c *waitBudget) (settle SettleFunc, err error) {
	refused, err := c.runAndRevalidate(ctx, func(ctx context.Context) (err error) {
		settle, err = h.Meter.Admit(ctx, c.Grant, rt.endpointName(), rt.isWrite())
		return err
	})
	if refused == nil {
		return settle, err
	}
	if err == nil && rt.isWrite() {
		c.undo(ctx, func(ctx context.Context) { settle(ctx, statusOf(refused)) })
	}
	return nil, refused
}

// settleUsage ends the metering of a request. What was read is answered only while the key holds; a write is done, and its
// answer says so.
func (h *handler) settleUsage(ctx context.Context, rt route, c *waitBudget, settle SettleFunc, status int) (spent usage.QuotaUsage, err error) {
	if rt.isWrite() {
		return settle(ctx, status)
	}
	refused, err := c.runAndRevalidate(ctx, func(ctx context.Context) (err error) {
		spent, err = settle(ctx, status)
		return err
	})
	if refused == nil {
		return spent, err
	}
	c.undo(ctx, func(ctx context.Context) {
		if refundErr := spent.Refund(ctx); refundErr != nil {
			h.Log.Warn("a refund is not durable yet", "account", c.Account, "endpoint", rt.endpointName(), "reason", refundErr)
		}
	})
	return usage.QuotaUsage{}, refused
}

// statusOf is the status of the answer to what came out of the work.
func statusOf(err error) int {
	if err == nil {
		return http.StatusOK
	}
	p, _ := problem.FromError(err)
	return p.Status
}
