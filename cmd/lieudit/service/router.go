package service

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"lieudit/queries/route"
)

// Engines that find routes, as --router names them.
const (
	OwnRouter      = "own"      // the own engine on the road network of the data folder
	OSRMRouter     = "osrm"     // a server of OSRM for each mode of travel
	ValhallaRouter = "valhalla" // a server of Valhalla
)

// RouterSetting is the engine that finds routes and, for one on servers, their addresses.
type RouterSetting struct {
	Engine  string
	Servers map[route.Mode]string // base URL of the server of each mode; Valhalla's answers all modes. nil for OwnRouter
}

// routerForms are the forms of a RouterSetting as text.
const routerForms = "own, osrm:car=URL,foot=URL,bike=URL or valhalla:URL"

// ParseRouter parses a setting: own, osrm:car=URL,foot=URL,bike=URL with one mode or more, or valhalla:URL. Its errors do not
// repeat a URL, which may hold a password.
func ParseRouter(text string) (RouterSetting, error) {
	engine, rest, hasRest := strings.Cut(text, ":")
	s := RouterSetting{Engine: strings.ToLower(engine)}
	switch {
	case s.Engine == OwnRouter && !hasRest:
		return s, nil
	case s.Engine == OwnRouter:
		return s, errors.New("own takes nothing after it: its road network is imported with lieudit roads import")
	case s.Engine == ValhallaRouter:
		s.Servers = make(map[route.Mode]string)
		for _, mode := range modes() {
			s.Servers[mode] = rest
		}
		return s, checkRouterURL(rest)
	case s.Engine == OSRMRouter:
		return s, s.parseServers(rest)
	}
	return s, fmt.Errorf("it is %s", routerForms)
}

// modes are all modes of travel.
func modes() []route.Mode { return []route.Mode{route.Car, route.Foot, route.Bike} }

// parseServers parses what follows osrm: a mode and a URL for each server.
func (s *RouterSetting) parseServers(text string) error {
	s.Servers = make(map[route.Mode]string)
	for _, server := range strings.Split(text, ",") {
		name, address, ok := strings.Cut(server, "=")
		mode := route.Mode(strings.TrimSpace(name))
		if !ok || !slices.Contains(modes(), mode) {
			return errors.New("osrm takes a server for each mode: osrm:car=URL,foot=URL,bike=URL; a mode that is left out has no routes")
		}
		if s.Servers[mode] != "" {
			return fmt.Errorf("osrm has two servers for %s", mode)
		}
		if err := checkRouterURL(address); err != nil {
			return fmt.Errorf("%s: %w", mode, err)
		}
		s.Servers[mode] = address
	}
	return nil
}

// checkRouterURL refuses what is not an address of a server. A query would swallow the paths of the requests.
func checkRouterURL(address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return errors.New("the address of a routing server is of the form http://HOST:PORT")
	}
	return nil
}

// describeRouter says in the text at start what finds routes. It shows no password.
func (c Config) describeRouter() string {
	switch c.Router.Engine {
	case OSRMRouter:
		var servers []string
		for _, mode := range modes() {
			if address := c.Router.Servers[mode]; address != "" {
				servers = append(servers, fmt.Sprintf("%s %s", mode, hidePassword(address)))
			}
		}
		return "OSRM, " + strings.Join(servers, ", ")
	case ValhallaRouter:
		return "Valhalla, " + hidePassword(c.Router.Servers[route.Car])
	}
	return "own"
}
