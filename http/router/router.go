// Package router finds the row of a route table for a request. Method and path are matched exactly as they were sent: no path
// is ever cleaned or redirected, so that a key is never sent on to another path. New compiles the patterns of a table; Match
// returns a row and the variables of its path.
//
// gorilla/mux matches the patterns. Its own router is not used: it cleans a path with a 301 before any key is checked.
package router

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/gorilla/mux"

	"lieudit/http/problem"
	"lieudit/schemas/refusal"
)

// Table is a table of routes of type R under a base path. It is safe for concurrent use.
type Table[R any] struct {
	paths []pathRoutes[R]
	plain map[string]pathRoutes[R] // paths without variables, with their base, that no other path of the table matches
}

// pathRoutes are the routes of one path.
type pathRoutes[R any] struct {
	matcher  *mux.Route
	template string
	isAction bool // it ends in a variable, a colon and a verb: "/sites/{code}:close"
	byMethod map[string]R
}

// Pattern is the method and the path of a route. The path follows the base.
type Pattern struct{ Method, Path string }

// New is a table of routes. Paths are gorilla/mux patterns.
func New[R any](base string, routes []R, patternOf func(R) Pattern) *Table[R] {
	t := &Table[R]{}
	patterns := mux.NewRouter().UseEncodedPath()
	for _, r := range routes {
		pattern := patternOf(r)
		i := slices.IndexFunc(t.paths, func(p pathRoutes[R]) bool { return p.template == pattern.Path })
		if i < 0 {
			added := pathRoutes[R]{patterns.NewRoute().Path(base + pattern.Path), pattern.Path, isAction(pattern.Path), map[string]R{}}
			if i = len(t.paths); added.isAction {
				i = 0 // Match asks actions first
			}
			t.paths = slices.Insert(t.paths, i, added)
		}
		t.paths[i].byMethod[pattern.Method] = r
	}
	t.plain = map[string]pathRoutes[R]{}
	for _, p := range t.paths {
		if path := base + p.template; !strings.Contains(path, "{") && t.countMatches(path) == 1 {
			t.plain[path] = p
		}
	}
	return t
}

// countMatches returns how many paths of the table match a path.
func (t *Table[R]) countMatches(path string) (n int) {
	for _, p := range t.paths {
		if p.matcher.Match(&http.Request{URL: &url.URL{Path: path}}, &mux.RouteMatch{}) {
			n++
		}
	}
	return n
}

// isAction reports whether a path ends in a variable, a colon and a verb.
func isAction(template string) bool {
	return strings.HasPrefix(template[strings.LastIndexByte(template, '}')+1:], ":")
}

// Match is the route of a request and the variables of its path, unescaped; otherwise it fails with refusal.NotFound or
// problem.MethodNotAllowed, which also lists OPTIONS if allowOptions is set. A path that ends in the verb of an action only
// matches that action: "/sites/a:close" is "/sites/{code}:close" and not the site a:close, whose path is "/sites/a%3Aclose".
// Otherwise variables may contain colons: "/sites/a:b:close" closes a:b.
func (t *Table[R]) Match(r *http.Request, allowOptions bool) (route R, vars map[string]string, err error) {
	if route, ok := t.plain[r.URL.EscapedPath()].byMethod[r.Method]; ok { // expressions are slow
		return route, nil, nil
	}
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
		if p.isAction {
			break
		}
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
