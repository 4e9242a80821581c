// Package router finds the row of a route table that a request asks for, by its exact method and path as they were
// sent: no path is ever cleaned or redirected. It only finds; what is answered is the caller's business.
package router

import (
	"maps"
	"net/http"
	"net/url"
	"slices"

	"github.com/gorilla/mux"

	"lieudit/http/problem"
	"lieudit/schemas/refusal"
)

// Table is routes under a base path. It is safe for concurrent use.
type Table[R any] struct{ paths []pathRoutes[R] }

// pathRoutes is what can be done at one path.
type pathRoutes[R any] struct {
	matcher  *mux.Route
	template string
	byMethod map[string]R
}

// Pattern is where a route stands in its table.
type Pattern struct{ Method, Path string }

// New is a table of routes; of tells where each stands. Paths are gorilla/mux patterns.
func New[R any](base string, routes []R, patternOf func(R) Pattern) *Table[R] {
	t := &Table[R]{}
	patterns := mux.NewRouter().UseEncodedPath()
	for _, r := range routes {
		pattern := patternOf(r)
		i := slices.IndexFunc(t.paths, func(p pathRoutes[R]) bool { return p.template == pattern.Path })
		if i < 0 {
			i = len(t.paths)
			t.paths = append(t.paths, pathRoutes[R]{patterns.NewRoute().Path(base + pattern.Path), pattern.Path, map[string]R{}})
		}
		t.paths[i].byMethod[pattern.Method] = r
	}
	return t
}

// Match is the route of a request and the variables of its path, unescaped; else problem.NotFound or
// problem.MethodNotAllowed. OPTIONS is among the methods it says are allowed when preflight is set. Where
// several paths fit ("/sites/{code}" and "/sites/{code}:close"), the first that has the method is meant.
func (t *Table[R]) Match(r *http.Request, allowOptions bool) (route R, vars map[string]string, err error) {
	var allowed []string
	for _, p := range t.paths {
		var m mux.RouteMatch
		if !p.matcher.Match(r, &m) {
			continue
		}
		if route, ok := p.byMethod[r.Method]; ok {
			vars, err = unescapeVars(m.Vars)
			return route, vars, err
		}
		allowed = slices.AppendSeq(allowed, maps.Keys(p.byMethod))
	}
	if allowed == nil {
		return route, nil, refusal.NotFound
	}
	if allowOptions {
		allowed = append(allowed, http.MethodOptions)
	}
	slices.Sort(allowed)
	return route, nil, problem.MethodNotAllowed(slices.Compact(allowed)...)
}

func unescapeVars(vars map[string]string) (map[string]string, error) {
	for name, text := range vars {
		unescaped, err := url.PathUnescape(text)
		if err != nil {
			return nil, refusal.NotFound
		}
		vars[name] = unescaped
	}
	return vars, nil
}
