package kit_test

import (
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"lieudit/http/kit"
	"lieudit/schemas/token"
)

// serveRecovered is what a client of h gets, what is logged, and what passes the guard.
func serveRecovered(t *testing.T, h http.HandlerFunc) (w *httptest.ResponseRecorder, logged string, cause any) {
	t.Helper()
	var log strings.Builder
	w = httptest.NewRecorder()
	func() {
		defer func() { cause = recover() }()
		kit.RecoverPanics(slog.New(token.DefaultPrefixes.RedactingHandler(slog.NewTextHandler(&log, nil))), h).
			ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	}()
	return w, log.String(), cause
}

func TestAPanicIsA500AndOneRedactedLineWithTheStack(t *testing.T) {
	t.Parallel()
	secret := token.DefaultPrefixes.New(token.Secret)
	w, logged, cause := serveRecovered(t, func(http.ResponseWriter, *http.Request) { panic("no " + secret) })
	if want := "{\"detail\":\"Internal error\"}\n"; w.Code != 500 || w.Body.String() != want || cause != nil {
		t.Errorf("got %d %s and panic %v, want 500 %s", w.Code, w.Body, cause, want)
	}
	if strings.Count(logged, "\n") != 1 || !strings.Contains(logged, "guard_test.go") || strings.Contains(logged, secret[6:]) {
		t.Errorf("logged %q, want one line with the stack and without the token", logged)
	}
}

func TestAPanicAfterTheAnswerBeganCutsTheConnection(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]func(http.ResponseWriter){
		"header": func(w http.ResponseWriter) { w.WriteHeader(200) },
		"body":   func(w http.ResponseWriter) { w.Write([]byte("[")) },
		"flush":  func(w http.ResponseWriter) { http.NewResponseController(w).Flush() },
	} {
		w, logged, cause := serveRecovered(t, func(w http.ResponseWriter, _ *http.Request) { begin(w); panic("late") })
		if err, ok := cause.(error); !ok || !errors.Is(err, http.ErrAbortHandler) || w.Code != 200 || strings.Count(logged, "\n") != 1 {
			t.Errorf("%s sent: panic %v, %d, logged %q; want an abort and one line", name, cause, w.Code, logged)
		}
	}
}

func TestEarlyHintsAreNotAnAnswer(t *testing.T) {
	t.Parallel()
	w, _, cause := serveRecovered(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(103); panic("late") })
	if cause != nil || !strings.Contains(w.Body.String(), "Internal error") {
		t.Errorf("panic %v, body %s; want the 500", cause, w.Body)
	}
}

func TestAnAbortedHandlerStaysAborted(t *testing.T) {
	t.Parallel()
	_, logged, cause := serveRecovered(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	if err, ok := cause.(error); !ok || !errors.Is(err, http.ErrAbortHandler) || logged != "" {
		t.Errorf("panic %v, logged %q; want the abort alone", cause, logged)
	}
}
