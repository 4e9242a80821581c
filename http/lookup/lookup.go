// Package lookup finds the row of a route table that a request asks for, by its exact method and path as they were
// sent: no path is ever cleaned or redirected. It only finds; what is answered is the caller's business.
package lookup

import (
	"maps"
	"net/http"
	"net/url"
	"slices"

	"github.com/gorilla/mux"

	"lieudit/http/problem"
)

// Table is routes under a base path. It is safe for concurrent use.
type Table[R any] struct{ paths []path[R] }

// path is what can be done at one path.
type path[R any] struct {
	pattern *mux.Route
	text    string
	methods map[string]R
}

// Place is where a route stands in its table.
type Place struct{ Method, Path string }

// New is a table of routes; of tells where each stands. Paths are gorilla/mux patterns.
func New[R any](base string, routes []R, of func(R) Place) *Table[R] {
	t := &Table[R]{}
	router := mux.NewRouter().UseEncodedPath()
	for _, r := range routes {
		place := of(r)
		i := slices.IndexFunc(t.paths, func(p path[R]) bool { return p.text == place.Path })
		if i < 0 {
			i = len(t.paths)
			t.paths = append(t.paths, path[R]{router.NewRoute().Path(base + place.Path), place.Path, map[string]R{}})
		}
		t.paths[i].methods[place.Method] = r
	}
	return t
}

// Find is the route of a request and the variables of its path, unescaped; else problem.NotFound or
// problem.MethodNotAllowed. OPTIONS is among the methods it says are allowed when preflight is set. Where
// several paths fit ("/sites/{code}" and "/sites/{code}:close"), the first that has the method is meant.
func (t *Table[R]) Find(r *http.Request, preflight bool) (route R, vars map[string]string, err error) {
	var allowed []string
	for _, p := range t.paths {
		var m mux.RouteMatch
		if !p.pattern.Match(r, &m) {
			continue
		}
		if route, ok := p.methods[r.Method]; ok {
			vars, err = unescaped(m.Vars)
			return route, vars, err
		}
		allowed = slices.AppendSeq(allowed, maps.Keys(p.methods))
	}
	if allowed == nil {
		return route, nil, problem.NotFound()
	}
	if preflight {
		allowed = append(allowed, http.MethodOptions)
	}
	slices.Sort(allowed)
	return route, nil, problem.MethodNotAllowed(slices.Compact(allowed)...)
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
