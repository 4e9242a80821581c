package live

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"lieudit/queries/route"
	"lieudit/queries/route/routeserver"
)

// server is the router of another engine. It remembers for each mode whether the last answer was a failure of a server, so that
// operators learn of it even if that server answers a simple probe. It is safe for concurrent use.
type server struct {
	route.Router
	engine string
	log    *slog.Logger

	mu       sync.Mutex
	failures map[route.Mode]error // by mode, if its last answer failed; under "" the last failure of Network
}

// problem returns nil while no mode's last answer is a failure. Otherwise its error names the engine and the modes, each with the reason.
func (s *server) problem() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var problems []error
	for _, mode := range []route.Mode{"", route.Car, route.Foot, route.Bike} {
		switch err := s.failures[mode]; {
		case err != nil && mode == "":
			problems = append(problems, err) // Network names what failed
		case err != nil:
			problems = append(problems, fmt.Errorf("%s, %s: %w", s.engine, mode, err))
		}
	}
	return errors.Join(problems...)
}

// record notes how a question ended. "No way" and "too far from any road" are answers. Other refusals, and the end of a question's
// own time, say nothing about the server.
func (s *server) record(ctx context.Context, mode route.Mode, err error) {
	isAnswer := err == nil || errors.Is(err, route.ErrNoRoute) || errors.As(err, new(*route.OffRoadError))
	switch {
	case isAnswer:
		s.forget(func(failed route.Mode, _ error) bool { return failed == mode })
	case ctx.Err() == nil && routeserver.IsFailure(err):
		s.remember(mode, err)
	}
}

// remember keeps a failure, and logs it if it is the first.
func (s *server) remember(mode route.Mode, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.failures) == 0 {
		s.log.Warn("the routing server fails", "router", s.engine, "mode", string(mode), "reason", err)
	}
	s.failures[mode] = err
}

// forget drops the failures that are over, and logs the end of the outage with the last of them.
func (s *server) forget(isOver func(route.Mode, error) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.failures) == 0 {
		return
	}
	for mode, err := range s.failures {
		if isOver(mode, err) {
			delete(s.failures, mode)
		}
	}
	if len(s.failures) == 0 {
		s.log.Info("the routing server answers again", "router", s.engine)
	}
}

// network is Network of the engine. Its success ends an outage only if servers could not be reached, because it asks for less than
// a question does.
func (s *server) network(ctx context.Context) (route.Network, error) {
	n, err := s.Router.Network(ctx)
	switch {
	case err == nil:
		s.forget(func(failed route.Mode, reason error) bool {
			return failed == "" || routeserver.IsUnconnected(reason) && slices.Contains(n.Modes, failed)
		})
	case ctx.Err() == nil && routeserver.IsFailure(err):
		s.remember("", err)
	}
	return n, err
}
