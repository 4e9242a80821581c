package kit_test

import (
	"errors"
	"io"
	"iter"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"lieudit/http/kit"
	"lieudit/http/sitefile"
	"lieudit/schemas/locations"
	"lieudit/schemas/token"
)

func TestAnswersAreSentWhole(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	if err := kit.WriteJSON(w, 201, map[string]string{"nom": "<L'Été & co>"}); err != nil {
		t.Fatal(err)
	}
	want := "{\"nom\":\"<L'Été & co>\"}\n"
	if w.Code != 201 || w.Body.String() != want || w.Header().Get("Content-Length") != "25" || w.Header().Get("Content-Type") != "application/json" {
		t.Errorf("got %d %q %v, want 201 %q", w.Code, w.Body, w.Header(), want)
	}
}

func TestAnAnswerThatCannotBeEncodedIsNotBegun(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	if err := kit.WriteJSON(w, 200, math.Inf(1)); err == nil || len(w.Header()) != 0 || w.Body.Len() != 0 {
		t.Errorf("error %v, sent %v %q", err, w.Header(), w.Body)
	}
}

func TestAnAnswerThatIsCutIsNotTakenForAWholeOne(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusOK)
		http.NewResponseController(w).Flush()
		w.Write([]byte("half of it"))
		if err := kit.AbortResponse(w); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	resp, err := server.Client().Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if text, err := io.ReadAll(resp.Body); err == nil {
		t.Errorf("read %q and no error", text)
	}
}

// serveRecovered serves one request with h behind RecoverPanics: the answer, what is logged, and the panic that passes through.
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
	if strings.Count(logged, "\n") != 1 || !strings.Contains(logged, "respond_test.go") || strings.Contains(logged, secret[6:]) {
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

// someSites are n sites, then an error if there is one.
func someSites(n int, err error) iter.Seq2[locations.Site, error] {
	return func(yield func(locations.Site, error) bool) {
		for range n {
			if !yield(locations.Site{ExternalID: strings.Repeat("x", 1000)}, nil) {
				return
			}
		}
		if err != nil {
			yield(locations.Site{}, err)
		}
	}
}

func TestAnExportThatFailsIsNeverTakenForAWholeOne(t *testing.T) {
	t.Parallel()
	for _, format := range []sitefile.Format{sitefile.NDJSON, sitefile.GeoJSON} {
		for fails, want := range map[error]bool{nil: true, errors.New("database is gone"): false} {
			var log strings.Builder
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				f, err := kit.NewExport(format, someSites(50, fails))
				if err != nil {
					t.Error(err)
					return
				}
				f.Stream(r.Context(), w, slog.New(slog.NewTextHandler(&log, nil)))
			}))
			resp, err := http.Get(server.URL)
			whole := err == nil
			if err == nil {
				_, err = io.Copy(io.Discard, resp.Body)
				whole = err == nil
				resp.Body.Close()
			}
			server.Close()
			if whole != want || strings.Contains(log.String(), "broken off") == want {
				t.Errorf("%s with %v: whole is %v, logged %q", format.MediaType, fails, whole, log.String())
			}
		}
	}
}

func TestAnExportThatCannotBeginIsAnError(t *testing.T) {
	t.Parallel()
	if f, err := kit.NewExport(sitefile.NDJSON, someSites(0, errors.New("x"))); err == nil {
		f.Stop()
		t.Error("it begins")
	}
}
