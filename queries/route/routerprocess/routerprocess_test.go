package routerprocess

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lieudit/eventstore/deadlinetest"
	"lieudit/queries/route"
)

// linkProgram makes a link to ls a program of OSRM, and returns the folder of programs. A script that the test writes could be busy: a
// process that another test starts meanwhile holds it open for writing.
func linkProgram(t *testing.T, name string) string {
	t.Helper()
	programs := t.TempDir()
	bin := filepath.Join(programs, OSRM, "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/bin/ls", filepath.Join(bin, name)); err != nil {
		t.Fatal(err)
	}
	return programs
}

func TestAProgramThatFailsIsNamedWithWhatItSays(t *testing.T) {
	t.Parallel()
	o := Options{Programs: linkProgram(t, "osrm-extract"), Folder: t.TempDir(), Map: "map.pbf"}
	_, err := PrepareOSRM(t.Context(), o, route.Car)
	for _, want := range []string{"osrm-extract: exit status", "data_version"} { // which ls does not know
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
}

func TestProgramsThatAreMissingAreAnError(t *testing.T) {
	t.Parallel()
	for _, programs := range []string{"", t.TempDir(), linkProgram(t, "osrm-routed")} {
		if err := CheckPrograms(programs, Valhalla); err == nil {
			t.Errorf("%q holds programs of Valhalla", programs)
		}
	}
}

// prepare returns a map whose server is a shell script, which never answers.
func prepare(t *testing.T, script string) Prepared {
	t.Helper()
	return Prepared{probePath: "/", command: func(_, _ string) ([]string, error) { return []string{"/bin/sh", "-c", script}, nil }}
}

func TestAServerThatEndsAsItStartsIsAnErrorWithItsLog(t *testing.T) {
	t.Parallel()
	_, err := prepare(t, "echo no such port; exit 1").Serve(deadlinetest.Context(t, deadlinetest.DefaultLimit))
	if !errors.Is(err, errEnded) || !strings.Contains(err.Error(), "no such port") {
		t.Errorf("got %v", err)
	}
}

func TestAServerThatNeverAnswersIsStopped(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if s, err := prepare(t, "exec sleep 1000").Serve(ctx); s != nil || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, %v", s, err)
	}
}

// startServer starts a server that sleeps.
func startServer(t *testing.T) *Server {
	t.Helper()
	s := &Server{folder: t.TempDir(), ended: make(chan struct{})}
	if err := s.start(prepare(t, "exec sleep 1000")); err != nil {
		t.Fatal(err)
	}
	return s
}

// waitForEnd fails the test where a server does not end.
func waitForEnd(t *testing.T, s *Server) {
	t.Helper()
	select {
	case <-s.ended:
	case <-deadlinetest.Context(t, deadlinetest.DefaultLimit).Done():
		t.Fatal("the server goes on")
	}
}

func TestAServerEndsWithTheProcessThatStartedIt(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	if err := s.input.Close(); err != nil { // as the system does at the end of a process
		t.Fatal(err)
	}
	waitForEnd(t, s)
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
}

func TestAStoppedServerHasEndedAndLeavesNoFolder(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	for range 2 {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	}
	waitForEnd(t, s)
	if _, err := os.Stat(s.folder); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its folder: %v", err)
	}
}

func TestOnlyJSONIsAnAnswer(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]bool{`{"code": "Ok"}`: true, "": false, "<html>": false} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte(body)) }))
		if got := answersJSON(t.Context(), server.URL); got != want {
			t.Errorf("%q: got %v", body, got)
		}
		server.Close()
	}
}
