package server

import (
	"net/http"
	"net/url"
	"slices"

	"github.com/gorilla/mux"

	"lieudit/http/problem"
	"lieudit/schemas/plan"
)

// paths finds the route of a request. It only matches: the router answers nothing by itself.
type paths struct {
	router *mux.Router
	routes map[string][]route // by path
}

func newPaths(table []route) *paths {
	p := &paths{mux.NewRouter().UseEncodedPath(), make(map[string][]route)}
	for _, rt := range table {
		if p.routes[rt.path] == nil {
			p.router.NewRoute().Name(rt.path).Path(Base + rt.path)
		}
		p.routes[rt.path] = append(p.routes[rt.path], rt)
	}
	return p
}

// find is the route of a request's exact path and method with the variables of the path, else 404 or 405.
func (p *paths) find(r *http.Request) (*route, map[string]string, error) {
	var m mux.RouteMatch
	if !p.router.Match(r, &m) {
		return nil, nil, problem.NotFound()
	}
	here := p.routes[m.Route.GetName()]
	i := slices.IndexFunc(here, func(rt route) bool { return rt.method == r.Method })
	if i < 0 {
		return nil, nil, problem.MethodNotAllowed(methods(here)...)
	}
	vars, err := unescaped(m.Vars)
	return &here[i], vars, err
}

func methods(here []route) []string {
	all := []string{http.MethodOptions}
	for _, rt := range here {
		all = append(all, rt.method)
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

// includes says whether a plan gives access to a service.
func includes(name plan.Name, s plan.Service) bool {
	p, ok := plan.Lookup(name)
	return ok && p.Allows(s)
}
