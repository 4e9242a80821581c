package page_test

import (
	"bufio"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"lieudit/http/pages/page"
	"lieudit/schemas/grant"
	"lieudit/schemas/refusal"
)

// liveSite is a server with one stream, whose fragment shows text. err is what the operation fails with.
type liveSite struct {
	*httptest.Server
	area       *fakeArea
	text       atomic.Value // string
	err        atomic.Value // failure
	isStopping atomic.Bool
}

type failure struct{ error }

func startLiveSite(t *testing.T) *liveSite {
	t.Helper()
	s := &liveSite{area: &fakeArea{role: grant.RoleCustomer}}
	s.text.Store("one")
	s.err.Store(failure{})
	env := newEnv()
	env.IsStopping = s.isStopping.Load
	site := page.New(s.area, env, page.Section{
		Templates: fstest.MapFS{"part.html": {Data: []byte(`<b>{{.Data}}</b>`)}},
		Rows: []page.Row{{Method: "GET", Path: "/direct", Serve: func(q *page.Request) (page.View, error) {
			return q.Live(func() ([]page.Fragment, error) {
				return []page.Fragment{{ID: "part", Template: "part.html", Data: s.text.Load()}}, s.err.Load().(failure).error
			}), nil
		}}},
	})
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Host = "localhost:8081"
		site.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Server.Close)
	return s
}

// open opens a stream, which the test ends.
func (s *liveSite) open(t *testing.T) (status int, events *bufio.Scanner) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, "GET", s.URL+"/direct", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Cookie", "session=valid")
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return resp.StatusCode, bufio.NewScanner(resp.Body)
}

// next returns the next event: its name and its data.
func next(t *testing.T, events *bufio.Scanner) string {
	t.Helper()
	var lines []string
	for events.Scan() {
		if events.Text() == "" {
			return strings.Join(lines, " ")
		}
		lines = append(lines, events.Text())
	}
	return "closed"
}

func expect(t *testing.T, events *bufio.Scanner, want string) {
	t.Helper()
	if got := next(t, events); !strings.Contains(got, want) {
		t.Fatalf("%s, want %s", got, want)
	}
}

func TestAStreamSendsWhatHasChangedAlone(t *testing.T) {
	t.Parallel()
	s := startLiveSite(t)
	_, events := s.open(t)
	expect(t, events, `\u003cb\u003eone`)
	s.text.Store("two")
	expect(t, events, `\u003cb\u003etwo`)
	s.err.Store(failure{refusal.AuthUnavailable})
	expect(t, events, "event: stale")
	s.err.Store(failure{})
	expect(t, events, "event: fresh") // and not the fragment again
	s.text.Store("three")
	expect(t, events, "three")
}

func TestAStreamEndsWithItsSessionAndWithTheService(t *testing.T) {
	t.Parallel()
	s := startLiveSite(t)
	_, events := s.open(t)
	expect(t, events, "one")
	s.area.fail(refusal.KeyInvalid)
	expect(t, events, "event: end")
	expect(t, events, "closed")
	s.area.fail(nil)
	_, events = s.open(t)
	expect(t, events, "one")
	s.isStopping.Store(true)
	expect(t, events, "closed")
}

// A session that opens streams without end must not take the service with it.
func TestASessionHasSoManyStreamsAndNoMore(t *testing.T) {
	t.Parallel()
	s := startLiveSite(t)
	for i := range 12 {
		if status, events := s.open(t); status != http.StatusOK {
			t.Fatalf("stream %d: %d", i, status)
		} else {
			expect(t, events, "one")
		}
	}
	if status, _ := s.open(t); status != http.StatusNoContent {
		t.Errorf("one more: %d, want 204, after which a browser does not try again", status)
	}
}
