package routertest

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"lieudit/eventstore/deadlinetest"
	"lieudit/queries/route"
	"lieudit/queries/route/routeserver"
)

// Question asks a router something whose answer is recorded.
type Question struct {
	Name string
	Ask  func(context.Context, route.Router) error
}

// Questions are one question of each kind about the town.
func Questions(t testing.TB) []Question {
	t.Helper()
	bounds := Bounds(t, "oneway", "0A BE BC")
	bounds[0].Street = "R DE L AVANCE"
	return []Question{
		{"route", func(ctx context.Context, r route.Router) error {
			_, err := r.Route(ctx, route.Query{Profile: byCar, Bounds: bounds, Geometry: true, Steps: true})
			return err
		}},
		{"matrix", func(ctx context.Context, r route.Router) error {
			_, err := r.Matrix(ctx, route.MatrixQuery{Profile: byCar, Origins: bounds, Destinations: bounds[1:]})
			return err
		}},
		{"nearest", func(ctx context.Context, r route.Router) error {
			_, err := r.Nearest(ctx, route.NearestQuery{Profile: byCar, Origin: bounds[0], Destinations: bounds[1:], Limit: 1})
			return err
		}},
		{"network", func(ctx context.Context, r route.Router) error {
			_, err := r.Network(ctx)
			return err
		}},
		{"isochrone", func(ctx context.Context, r route.Router) error {
			_, err := r.Isochrone(ctx, route.IsochroneQuery{Profile: byCar, Center: bounds[0], Cost: route.ByDuration, Limits: []float64{60, 120}})
			return err
		}},
	}
}

// nonsense are answers that a router must reject.
var nonsense = []struct {
	name   string
	status int
	body   string
}{
	{"nothing", http.StatusOK, ""},
	{"a page", http.StatusOK, "<!doctype html><html><body>Welcome to nginx!</body></html>"},
	{"null", http.StatusOK, "null"},
	{"an empty list", http.StatusOK, "[]"},
	{"an empty object", http.StatusOK, "{}"},
	{"a list of nothing", http.StatusOK, "[null, null, null]"},
	{"an unknown code", http.StatusBadRequest, `{"code": "Unheard", "error_code": 999, "error": "unheard"}`},
	{"half of an object", http.StatusOK, `{"code": "Ok", "routes": [`},
	{"a number too large", http.StatusOK, `{"code": 1e999, "version": 1e999}`},
	{"a missing page", http.StatusNotFound, "<html>404</html>"},
	{"a missing object", http.StatusNotFound, "{}"},
	{"an error of its own", http.StatusInternalServerError, `{"code": "Ok", "version": "1"}`},
	{"an error of a proxy", http.StatusBadGateway, "<html>502 Bad Gateway</html>"},
	{"a demand for a password", http.StatusUnauthorized, `{"message": "no"}`},
	{"deep lists", http.StatusOK, strings.Repeat("[", 100_000)},
}

// Router is a router on a server, whose timeouts can be set.
type Router interface {
	route.Router
	SetTimeouts(routeserver.Timeouts)
}

// Patient are timeouts for tests: a slow machine is not a failure of the server.
var Patient = routeserver.Timeouts{Route: ruleLimit, Matrix: ruleLimit}

// TestFailures checks what a router on a server does when the server is gone, slow or answers nonsense: it fails with
// route.ErrUnavailable, or with the error of its context. newRouter makes a router on the server at a URL, with Patient timeouts. The
// answers to questions are those of the recording.
func TestFailures(t *testing.T, newRouter func(serverURL string) Router, questions []Question) {
	recording := ReadRecording(t)
	for _, q := range questions {
		t.Run(q.Name, func(t *testing.T) {
			t.Parallel()
			f := failure{q, newRouter, recording}
			t.Run("a good server is understood", f.checkGood)
			t.Run("a connection that the server closes is opened again", f.checkClosing)
			t.Run("a server that is gone is unavailable", f.checkGone)
			t.Run("a server that breaks off is unavailable", f.checkBreaking)
			t.Run("nonsense is no answer", f.checkNonsense)
			t.Run("a question ends with its context", f.checkCancel)
			t.Run("a server that is silent is unavailable", f.checkSilent)
		})
	}
}

// failure is a question to a server that fails.
type failure struct {
	Question
	newRouter func(serverURL string) Router
	recording Recording
}

func (f failure) ask(t *testing.T, r Router) error {
	t.Helper()
	return f.Ask(deadlinetest.Context(t, ruleLimit), r)
}

func (f failure) checkGood(t *testing.T) {
	r := f.newRouter(StartStub(t, f.recording, Always(Answer)).URL)
	if err := f.ask(t, r); err != nil {
		t.Error(err)
	}
}

// checkClosing has a server that closes each kept connection, before it reads a request or after it did.
func (f failure) checkClosing(t *testing.T) {
	for name, behave := range map[string]func(int, int) Behaviour{
		"after each answer": Always(AnswerAndCut),
		"at each second request": func(_, onConnection int) Behaviour {
			if onConnection == 2 {
				return Drop
			}
			return Answer
		},
	} {
		r := f.newRouter(StartStub(t, f.recording, behave).URL)
		for range 20 {
			if err := f.ask(t, r); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

func (f failure) checkGone(t *testing.T) {
	stub := StartStub(t, f.recording, Always(Answer))
	r := f.newRouter(stub.URL)
	if err := f.ask(t, r); err != nil {
		t.Error(err)
	}
	stub.Stop()
	if err := f.ask(t, r); !errors.Is(err, route.ErrUnavailable) {
		t.Errorf("got %v, want %v", err, route.ErrUnavailable)
	}
}

func (f failure) checkBreaking(t *testing.T) {
	for _, b := range []Behaviour{Drop, CutShort} {
		err := f.ask(t, f.newRouter(StartStub(t, f.recording, Always(b)).URL))
		if !errors.Is(err, route.ErrUnavailable) {
			t.Errorf("got %v, want %v", err, route.ErrUnavailable)
		}
	}
}

func (f failure) checkNonsense(t *testing.T) {
	for _, n := range nonsense {
		stub := StartStub(t, f.recording, Always(Replace))
		stub.Status, stub.Body = n.status, n.body
		if err := f.ask(t, f.newRouter(stub.URL)); !errors.Is(err, route.ErrUnavailable) {
			t.Errorf("%s: got %v, want %v", n.name, err, route.ErrUnavailable)
		}
	}
}

func (f failure) checkCancel(t *testing.T) {
	stub := StartStub(t, f.recording, Always(Hang))
	ctx, cancel := context.WithCancel(deadlinetest.Context(t, ruleLimit))
	defer cancel()
	ended := make(chan error, 1)
	r := f.newRouter(stub.URL)
	go func() { ended <- f.Ask(ctx, r) }()
	deadlinetest.WaitUntil(t, ruleLimit, "the server has the question", func() bool { return stub.Requests.Load() > 0 })
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}

// checkSilent waits for the router's own time limit.
func (f failure) checkSilent(t *testing.T) {
	r := f.newRouter(StartStub(t, f.recording, Always(Hang)).URL)
	r.SetTimeouts(routeserver.Timeouts{Route: time.Millisecond, Matrix: time.Millisecond})
	if err := f.Ask(deadlinetest.Context(t, ruleLimit), r); !errors.Is(err, route.ErrUnavailable) {
		t.Errorf("got %v, want %v", err, route.ErrUnavailable)
	}
}
