package osrm

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"lieudit/queries/route"
	"lieudit/queries/route/routeserver"
	"lieudit/schemas/geo"
)

// server is the server of one mode.
type server struct {
	mode route.Mode
	http *routeserver.Server

	weight atomic.Pointer[string] // name of what the profile minimises; nil until a route was found
}

// answer is a server's answer to any request. Code is Ok, or an error code.
type answer struct {
	Code        string `json:"code"`
	Message     string `json:"message"`
	DataVersion string `json:"data_version"`

	Routes    []routeAnswer `json:"routes"`
	Waypoints []waypoint    `json:"waypoints"`

	Sources      []waypoint   `json:"sources"`
	Destinations []waypoint   `json:"destinations"`
	Durations    [][]*float64 `json:"durations"`
	Distances    [][]*float64 `json:"distances"`
}

// waypoint is where a position meets the network.
type waypoint struct {
	Location []float64 `json:"location"`
	Name     string    `json:"name"`
}

// The refusals of a server besides route.ErrNoRoute.
var (
	errOffRoad = errors.New("a position is too far from any road")
	errTooBig  = fmt.Errorf("%w: the server of OSRM takes less in one request", route.ErrUnavailable)

	errContradiction = &routeserver.BadAnswerError{Reason: "that positions beside a road are beside none"}
)

// ask sends a request and reads the answer.
func (s *server) ask(ctx context.Context, path string, timeout time.Duration) (a answer, err error) {
	err = s.http.Ask(ctx, routeserver.Call{Path: path, Timeout: timeout}, func(status int, body []byte) error {
		if err := routeserver.Decode(body, &a); err != nil {
			return err
		}
		if status != http.StatusOK && status != http.StatusBadRequest {
			return &routeserver.BadAnswerError{Reason: fmt.Sprintf("with status %d", status)}
		}
		return refusal(a, strings.Contains(path, "&exclude="))
	})
	if err != nil {
		return answer{}, err
	}
	return a, nil
}

// refusal returns the error for the code of an answer.
func refusal(a answer, excludes bool) error {
	switch {
	case a.Code == "Ok":
		return nil
	case a.Code == "NoRoute" || a.Code == "NoTable":
		return route.ErrNoRoute
	case a.Code == "NoSegment":
		return errOffRoad
	case a.Code == "TooBig":
		return errTooBig
	case a.Code == "InvalidValue" && excludes:
		return fmt.Errorf("%w: the profile of the server does not exclude these roads together", route.ErrUnsupported)
	}
	return &routeserver.BadAnswerError{Reason: "with the code " + strconv.Quote(a.Code)}
}

// requestPath is the path of a request about positions.
func (s *server) requestPath(service string, at []geo.Point, options string, excluded route.Avoid) string {
	path := make([]byte, 0, 64+32*len(at))
	path = fmt.Appendf(path, "/%s/v1/%s/", service, profileNames[s.mode])
	for i, p := range at {
		if i > 0 {
			path = append(path, ';')
		}
		path = append(strconv.AppendFloat(path, p.Lon, 'f', 6, 64), ',')
		path = strconv.AppendFloat(path, p.Lat, 'f', 6, 64)
	}
	path = append(path, "?radiuses="...)
	radius := strconv.Itoa(route.MaxAccessDistance)
	path = append(path, radius+strings.Repeat(";"+radius, len(at)-1)...)
	path = append(path, options...)
	if names := classNames(excluded); len(names) > 0 {
		path = append(path, "&exclude="+strings.Join(names, ",")...)
	}
	return string(path)
}

// profileNames are the names of the modes in paths. A server ignores them; a proxy in front of several may not.
var profileNames = map[route.Mode]string{route.Car: "driving", route.Foot: "foot", route.Bike: "bike"}

// classes are the kinds of roads that can be avoided, and the classes that OSRM's own profiles give them.
var classes = [...]struct {
	kind route.Avoid
	name string
}{{route.Tolls, "toll"}, {route.Motorways, "motorway"}, {route.Ferries, "ferry"}}

func classNames(set route.Avoid) (names []string) {
	for _, c := range classes {
		if set&c.kind != 0 {
			names = append(names, c.name)
		}
	}
	return names
}

// point returns the position of a waypoint.
func (w waypoint) point() (geo.Point, error) {
	if len(w.Location) != 2 {
		return geo.Point{}, &routeserver.BadAnswerError{Reason: "a waypoint without a position"}
	}
	p := geo.Point{Lon: w.Location[0], Lat: w.Location[1]}
	return p, routeserver.CheckPoint(p)
}

// dataDate asks for the date of the data, which is zero if the data has none. Without a radius, every position is near a road.
func (s *server) dataDate(ctx context.Context) (time.Time, error) {
	a, err := s.ask(ctx, "/nearest/v1/"+profileNames[s.mode]+"/0,0", s.http.Route)
	if err != nil {
		return time.Time{}, err
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", time.DateOnly} {
		if date, err := time.Parse(layout, a.DataVersion); err == nil {
			return date.UTC(), nil
		}
	}
	return time.Time{}, nil
}
