package live

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"lieudit/queries/route"
	"lieudit/queries/route/osrm"
	"lieudit/queries/route/routeserver"
)

// fakeServer answers every question with err, and Network with networkErr.
type fakeServer struct{ err, networkErr error }

func (r *fakeServer) Route(context.Context, route.Query) (route.Answer, error) {
	return route.Answer{}, r.err
}

func (r *fakeServer) Matrix(context.Context, route.MatrixQuery) (route.Matrix, error) {
	return route.Matrix{}, r.err
}

func (r *fakeServer) Nearest(context.Context, route.NearestQuery) (route.Nearest, error) {
	return route.Nearest{}, r.err
}

func (r *fakeServer) Isochrone(context.Context, route.IsochroneQuery) (route.Isochrone, error) {
	return route.Isochrone{}, r.err
}

func (r *fakeServer) Network(context.Context) (route.Network, error) {
	return route.Network{Modes: []route.Mode{route.Car, route.Foot}}, r.networkErr
}

// newWatched returns a router that watches another one, and its log.
func newWatched(inner route.Router) (*Router, *bytes.Buffer) {
	var log bytes.Buffer
	return New(inner, "osrm", slog.New(slog.NewTextHandler(&log, nil))), &log
}

func by(mode route.Mode) route.Profile { return route.Profile{Mode: mode} }

var errBad = &routeserver.BadAnswerError{Reason: "without a route"}

func TestAFailureIsAProblemUntilAQuestionOfItsModeIsAnswered(t *testing.T) {
	t.Parallel()
	questions := map[string]func(*Router, route.Mode) error{
		"route": func(r *Router, mode route.Mode) error {
			_, err := r.Route(t.Context(), route.Query{Profile: by(mode)})
			return err
		},
		"matrix": func(r *Router, mode route.Mode) error {
			_, err := r.Matrix(t.Context(), route.MatrixQuery{Profile: by(mode)})
			return err
		},
		"nearest": func(r *Router, mode route.Mode) error {
			_, err := r.Nearest(t.Context(), route.NearestQuery{Profile: by(mode)})
			return err
		},
		"isochrone": func(r *Router, mode route.Mode) error {
			_, err := r.Isochrone(t.Context(), route.IsochroneQuery{Profile: by(mode)})
			return err
		},
	}
	for name, ask := range questions {
		inner := &fakeServer{err: errBad}
		r, log := newWatched(inner)
		for range 3 {
			if err := ask(r, route.Car); !errors.Is(err, errBad) {
				t.Errorf("%s: got %v, want the router's error", name, err)
			}
		}
		r.Network(t.Context()) // answers, and ends nothing
		inner.err = nil
		ask(r, route.Foot)
		if err := r.Problem(); err == nil || err.Error() != "osrm, car: the routing server answered without a route" {
			t.Errorf("%s: the problem is %v", name, err)
		}
		ask(r, route.Car)
		if err := r.Problem(); err != nil {
			t.Errorf("%s: answered, and the problem is %v", name, err)
		}
		ask(r, route.Car)
		if warnings, infos := strings.Count(log.String(), "level=WARN"), strings.Count(log.String(), "level=INFO"); warnings != 1 || infos != 1 {
			t.Errorf("%s: want a line as the outage begins and one as it ends, got %s", name, log)
		}
	}
}

func TestOnlyFailuresOfAServerAreProblems(t *testing.T) {
	t.Parallel()
	for _, err := range []error{nil, route.ErrNoRoute, &route.OffRoadError{}, route.ErrUnsupported, route.ErrTooMuchWork, route.ErrUnavailable,
		context.Canceled, context.DeadlineExceeded} {
		r, log := newWatched(&fakeServer{err: err})
		r.Route(t.Context(), route.Query{Profile: by(route.Car)})
		if problem := r.Problem(); problem != nil || log.Len() > 0 {
			t.Errorf("%v: the problem is %v, the log %s", err, problem, log)
		}
	}
}

func TestARefusalIsNoEndOfAnOutage(t *testing.T) {
	t.Parallel()
	for err, isEnd := range map[error]bool{nil: true, route.ErrNoRoute: true, route.ErrUnsupported: false, context.Canceled: false} {
		inner := &fakeServer{err: errBad}
		r, _ := newWatched(inner)
		r.Route(t.Context(), route.Query{Profile: by(route.Car)})
		inner.err = err
		r.Route(t.Context(), route.Query{Profile: by(route.Car)})
		if got := r.Problem() == nil; got != isEnd {
			t.Errorf("%v ends the outage: %v, want %v", err, got, isEnd)
		}
	}
}

func TestAFailedProbeIsAProblemUntilOneSucceeds(t *testing.T) {
	t.Parallel()
	inner := &fakeServer{networkErr: errBad}
	r, _ := newWatched(inner)
	r.Network(t.Context())
	if err := r.Problem(); !errors.Is(err, errBad) {
		t.Errorf("the problem is %v, want %v", err, errBad)
	}
	inner.networkErr = nil
	r.Network(t.Context())
	if err := r.Problem(); err != nil {
		t.Errorf("the problem is %v", err)
	}
}

// TestAProbeEndsTheOutageOfAServerThatWasGone has a server without connections: one that answers anything is back.
func TestAProbeEndsTheOutageOfAServerThatWasGone(t *testing.T) {
	t.Parallel()
	gone := osrm.New(map[route.Mode]string{route.Car: "http://user:secret@127.0.0.1:1"}, time.Now)
	inner := &replaceable{Router: gone}
	r, log := newWatched(inner)
	r.Route(t.Context(), route.Query{Profile: by(route.Car), Bounds: make([]route.Bound, 2)})
	if err := r.Problem(); err == nil || !strings.Contains(err.Error(), "osrm, car: ") || !strings.Contains(err.Error(), "refused") {
		t.Errorf("the problem is %v", err)
	}
	inner.Router = &fakeServer{}
	r.Network(t.Context())
	if err := r.Problem(); err != nil || !strings.Contains(log.String(), "level=INFO") {
		t.Errorf("the problem is %v, the log %s", err, log)
	}
	if strings.Contains(log.String(), "secret") {
		t.Errorf("the log shows a password: %s", log)
	}
}

// replaceable is a router in whose place another one can be put.
type replaceable struct{ route.Router }

// TestAServerThatAnswersNothingUsefulIsAProblem has a server of OSRM that says Ok and finds nothing, whatever it is asked.
func TestAServerThatAnswersNothingUsefulIsAProblem(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Write([]byte(`{"code":"Ok","routes":[]}`))
	}))
	defer server.Close()
	r, _ := newWatched(osrm.New(map[route.Mode]string{route.Car: server.URL}, time.Now))
	_, err := r.Route(t.Context(), route.Query{Profile: by(route.Car), Bounds: make([]route.Bound, 2)})
	if !errors.Is(err, route.ErrUnavailable) {
		t.Errorf("a route: %v", err)
	}
	if _, err := r.Network(t.Context()); err != nil {
		t.Errorf("the probe: %v", err)
	}
	if err := r.Problem(); err == nil || !strings.Contains(err.Error(), "osrm, car: the routing server answered") {
		t.Errorf("the problem is %v", err)
	}
}

func TestManyQuestionsAtOnceLogOneLine(t *testing.T) {
	t.Parallel()
	r, log := newWatched(&fakeServer{err: errBad})
	var asking sync.WaitGroup
	for range 20 {
		asking.Go(func() { r.Route(t.Context(), route.Query{Profile: by(route.Car)}) })
	}
	asking.Wait()
	if got := strings.Count(log.String(), "\n"); got != 1 {
		t.Errorf("%d lines: %s", got, log)
	}
}
