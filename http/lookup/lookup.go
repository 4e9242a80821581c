// Package lookup finds the row of a route table that a request asks for, by its exact method and path as they were
// sent: no path is ever cleaned or redirected. It only finds; what is answered is the caller's business.
package lookup

import (
	"net/http"
	"net/url"
	"slices"

	"github.com/gorilla/mux"

	"lieudit/http/problem"
)

// Table is routes under a base path. It is safe for concurrent use.
type Table[R any] struct {
	router *mux.Router
	routes map[string]map[string]R // by path, then method
}

// Place is where a route stands in its table.
type Place struct{ Method, Path string }

// New is a table of routes; of tells where each stands. Paths are gorilla/mux patterns.
func New[R any](base string, routes []R, of func(R) Place) *Table[R] {
	t := &Table[R]{mux.NewRouter().UseEncodedPath(), map[string]map[string]R{}}
	for _, r := range routes {
		p := of(r)
		if t.routes[p.Path] == nil {
			t.routes[p.Path] = map[string]R{}
			t.router.NewRoute().Name(p.Path).Path(base + p.Path)
		}
		t.routes[p.Path][p.Method] = r
	}
	return t
}

// Find is the route of a request and the variables of its path, unescaped; else problem.NotFound or
// problem.MethodNotAllowed. OPTIONS is among the methods it says are allowed when preflight is set.
func (t *Table[R]) Find(r *http.Request, preflight bool) (route R, vars map[string]string, err error) {
	var m mux.RouteMatch
	if !t.router.Match(r, &m) {
		return route, nil, problem.NotFound()
	}
	here := t.routes[m.Route.GetName()]
	route, ok := here[r.Method]
	if !ok {
		return route, nil, problem.MethodNotAllowed(methods(here, preflight)...)
	}
	vars, err = unescaped(m.Vars)
	return route, vars, err
}

func methods[R any](here map[string]R, preflight bool) []string {
	var all []string
	if preflight {
		all = append(all, http.MethodOptions)
	}
	for method := range here {
		all = append(all, method)
	}
	slices.Sort(all)
	return all
}

func unescaped(vars map[string]string) (map[string]string, error) {
	for name, text := range vars {
		plain, err := url.PathUnescape(text)
		if err != nil {
			return nil, problem.NotFound()
		}
		vars[name] = plain
	}
	return vars, nil
}
