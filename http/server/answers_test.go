package server_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"lieudit/commands/usage"
	"lieudit/http/problem"
	"lieudit/http/server"
	"lieudit/schemas/grant"
	"lieudit/schemas/plan"
	"lieudit/schemas/token"
)

func TestAnswersAreJSONOfAKnownLengthThatNobodyKeeps(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for target, status := range map[string]int{"/me": 200, "/locations/search": 200, "/nowhere": 404, "/route/compute": 403, "/me?x=<b>": 422} {
		w := b.ask("GET", "/services/v1"+target, "GROWTH secret")
		text := sent(t, w)
		for name, want := range map[string]string{
			"Content-Type": "application/json", "Content-Length": fmt.Sprint(len(text)), "Cache-Control": "no-store",
			"Retry-After": "", "X-Request-Id": "", "Set-Cookie": "",
		} {
			if got := w.Header().Get(name); got != want {
				t.Errorf("GET %s: %s is %q, want %q", target, name, got, want)
			}
		}
		if w.Code != status || !strings.HasSuffix(text, "}\n") || strings.Contains(text, `\u003c`) {
			t.Errorf("GET %s: %d %s", target, w.Code, text)
		}
	}
}

func TestAWrongMethodIsToldTheRightOnes(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, c := range []struct{ method, target, allow string }{
		{"POST", "/me", "GET, OPTIONS"}, {"HEAD", "/me", "GET, OPTIONS"}, {"TRACE", "/me", "GET, OPTIONS"}, {"POST", "/version", "GET, OPTIONS"},
		{"DELETE", "/route/matrix", "GET, OPTIONS, POST"}, {"PATCH", "/locations/search", "GET, OPTIONS"},
	} {
		w := b.ask(c.method, "/services/v1"+c.target, "BUSINESS secret")
		if got := w.Header().Get("Allow"); w.Code != 405 || got != c.allow {
			t.Errorf("%s %s: %d, Allow %q; want 405, %q", c.method, c.target, w.Code, got, c.allow)
		}
	}
}

func TestASubClientSeesItsAgency(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	hash := token.HashOf(b.keys["STARTER secret"])
	g := b.ring.keys[hash]
	g.Agency, g.Quota = "agency-1", 1234
	b.ring.keys[hash] = g
	w := b.ask("GET", "/services/v1/me", "STARTER secret")
	expect(t, "agency", w, 200, `"agence":"agency-1"`)
	expect(t, "its own volume", b.ask("GET", "/services/v1/me", "STARTER secret"), 200, `"limite":1234`)
}

// ledger is a meter that notes what it is told, and refuses when told to.
type ledger struct {
	mu              sync.Mutex
	lines           []string
	refuse, disturb error
}

func (l *ledger) note(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line)
}

func (l *ledger) Refused(_ context.Context, _ grant.Grant, endpoint string) error {
	l.note("refused " + endpoint)
	return nil
}

func (l *ledger) Known(context.Context, grant.Grant, string) error {
	l.note("known")
	return l.refuse
}

func (l *ledger) Admit(_ context.Context, g grant.Grant, endpoint string, _ bool) (server.Settle, error) {
	l.note("admit " + g.Account + " " + endpoint)
	if l.refuse != nil {
		return nil, l.refuse
	}
	return func(_ context.Context, status int) (usage.Spending, error) {
		l.note(fmt.Sprint("settle ", status))
		return usage.Spending{Used: 9, Limit: g.Quota}, l.disturb
	}, nil
}

func TestTheMeterStandsBetweenSyntaxAndWork(t *testing.T) {
	t.Parallel()
	spent := problem.QuotaSpent(plan.Growth, 1)
	for _, c := range []struct {
		method, target string
		meter          *ledger
		status         int
		want           []string
	}{
		{"GET", "/me", &ledger{}, 200, []string{"admit acme GET /me", "settle 200"}},
		{"GET", "/me?x=1", &ledger{}, 422, []string{"admit acme GET /me", "settle 422"}},
		{"GET", "/route/matrix", &ledger{}, 500, []string{"admit acme GET /route/matrix", "settle 500"}},
		{"GET", "/me?x=1", &ledger{refuse: spent}, 429, []string{"admit acme GET /me"}},
		{"GET", "/me?x=%zz", &ledger{refuse: spent}, 400, nil},
		{"GET", "/nowhere", &ledger{refuse: spent}, 404, []string{"refused GET *"}},
		{"POST", "/me", &ledger{refuse: spent}, 405, []string{"refused POST *"}},
		{"GET", "/route/compute", &ledger{refuse: spent}, 403, []string{"refused GET /route/compute"}},
		{"GET", "/version", &ledger{refuse: spent}, 200, nil},
		{"GET", "/me", &ledger{disturb: problem.AuthUnavailable()}, 503, []string{"admit acme GET /me", "settle 200"}},
		{"GET", "/me", &ledger{refuse: errors.New("disk")}, 500, []string{"admit acme GET /me"}},
	} {
		b := newBench(t)
		b.Handler = server.New(server.Parts{
			Ring: b.ring, Tokens: token.Default, Now: func() time.Time { return noon }, Meter: c.meter,
			Log: slog.New(slog.DiscardHandler),
		})
		w := b.ask(c.method, "/services/v1"+c.target, "GROWTH secret")
		if w.Code != c.status || !slices.Equal(c.meter.lines, c.want) {
			t.Errorf("%s %s: %d %q, want %d %q", c.method, c.target, w.Code, c.meter.lines, c.status, c.want)
		}
	}
}

// broken is a ring that fails in the way of a programming error.
type broken struct{}

func (broken) Find(h token.Hash, _ time.Time) (grant.Grant, bool) {
	var nobody *grant.Grant
	return *nobody, true
}
func (broken) Fresh(time.Time) bool { return true }

func TestAPanicIsA500AndTheServerGoesOn(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	h := server.New(server.Parts{
		Ring: broken{}, Tokens: token.Default, Now: time.Now, Log: slog.New(slog.NewTextHandler(&log, nil)),
	})
	text := token.Default.New(token.Secret)
	for range 2 {
		r := httptest.NewRequest("GET", search, nil)
		r.Header.Set("Authorization", "Bearer "+text)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		expect(t, "panic", w, 500, `{"detail":"Internal error"}`)
		if w.Header().Get("Access-Control-Allow-Origin") != "*" {
			t.Error("a page cannot read the 500 of its search")
		}
	}
	if got := log.String(); strings.Count(got, "\n") != 2 || strings.Contains(got, text[6:38]) {
		t.Errorf("logged %q, want one line a panic", got)
	}
}

func TestWorkThatPanicsIsSettledAsA500(t *testing.T) {
	t.Parallel()
	b, meter, calls := newBench(t), &ledger{}, 0
	b.Handler = server.New(server.Parts{
		Ring: b.ring, Tokens: token.Default, Meter: meter, Log: slog.New(slog.DiscardHandler),
		Now: func() time.Time {
			if calls++; calls > 1 { // the gate asks first, then the work
				panic("no time")
			}
			return noon
		},
	})
	expect(t, "panic", b.ask("GET", "/services/v1/me", "GROWTH secret"), 500, `{"detail":"Internal error"}`)
	if want := []string{"admit acme GET /me", "settle 500"}; !slices.Equal(meter.lines, want) {
		t.Errorf("the meter was told %q, want %q", meter.lines, want)
	}
}

func BenchmarkRequest(b *testing.B) {
	t := newBench(b)
	for name, target := range map[string]string{"me": "/me", "search": "/locations/search?q=paris&limit=20"} {
		b.Run(name, func(b *testing.B) {
			r := httptest.NewRequest("GET", server.Base+target, nil)
			r.Header.Set("Authorization", "Bearer "+t.keys["GROWTH secret"])
			b.ReportAllocs()
			for b.Loop() {
				w := httptest.NewRecorder()
				if t.ServeHTTP(w, r); w.Code != 200 {
					b.Fatal(w.Code)
				}
			}
		})
	}
}
