package routeserver

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"lieudit/queries/route"
)

func TestAServerThatIsLeftAloneTellsItsLastFailure(t *testing.T) {
	t.Parallel()
	busy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }))
	defer busy.Close()
	for address, want := range map[string]string{
		"http://127.0.0.1:1": "left alone for a moment; last: dial tcp 127.0.0.1:1: connect: connection refused",
		busy.URL:             "left alone for a moment; last: the routing server answered with status 502",
	} {
		var c clock
		s := New(address, c.now)
		var err error
		for range maxFailures + 1 {
			err = s.Ask(t.Context(), Call{Path: "/", Timeout: time.Minute}, accept)
		}
		if !errors.Is(err, route.ErrUnavailable) || !IsFailure(err) || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
		if got, want := IsUnconnected(err), address != busy.URL; got != want {
			t.Errorf("%s: without a connection %v, want %v", address, got, want)
		}
	}
}

func TestAServerThatHangsSaysHowLongItWasWaitedFor(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-ended }))
	defer server.Close()
	defer close(ended)
	s := New(server.URL, time.Now)
	err := s.Ask(t.Context(), Call{Path: "/", Timeout: 5 * time.Millisecond}, accept)
	if err == nil || err.Error() != "no answer within 5 ms" || !IsFailure(err) {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
	defer cancel()
	err = s.Ask(ctx, Call{Path: "/", Timeout: time.Minute}, accept)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.HasPrefix(err.Error(), "no answer within ") || IsFailure(err) {
		t.Errorf("got %v, want an end of the question's own time", err)
	}
	if got := noAnswerWithin(2*time.Second - time.Microsecond); got != "no answer within 2 s" {
		t.Errorf("got %q", got)
	}
}

func TestJSONOfAnotherFormIsToldFromNoJSON(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"code":"Ok"}`: "",
		`{"code":7}`:    "the routing server answered JSON of another form",
		`[]`:            "the routing server answered JSON of another form",
		`"Ok"`:          "the routing server answered JSON of another form",
		`{"code":`:      "the routing server answered no JSON",
		`<html>`:        "the routing server answered no JSON",
		``:              "the routing server answered no JSON",
	} {
		got := ""
		if err := Decode([]byte(text), &struct{ Code string }{}); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}
