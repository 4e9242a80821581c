package api_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"lieudit/http/api"
	"lieudit/http/bodylimit"
	"lieudit/http/connlimit"
	"lieudit/schemas/access"
	"lieudit/schemas/plan"
	"lieudit/schemas/refusal"
)

const (
	invalidJSON = `{"sites":[`
	overloaded  = `{"detail":"Service overloaded"}`
	syncPath    = "/locations/referentiels/shops/sites:sync"
)

// padTo is a text of some bytes.
func padTo(text string, bytes int) string { return text + strings.Repeat(" ", bytes-len(text)) }

// TestALargeBodyIsReadOnceAllThatPrecedesSyntaxIsPassed sends bodies that are no JSON: whether one was read shows in the
// answer, and in what is left of it.
func TestALargeBodyIsReadOnceAllThatPrecedesSyntaxIsPassed(t *testing.T) {
	t.Parallel()
	const small, large = bodylimit.Small, bodylimit.Small + 1
	spent := refusal.QuotaSpent.With(refusal.Details{Plan: plan.Growth})
	for _, c := range []struct {
		what              string
		method, path, key string
		stale             bool
		room              int64
		refuse            error
		bytes             int
		status            int
		body              string
		told              []string
		unread            bool
	}{
		{"no key", "POST", syncPath, "", false, 1 << 20, nil, large, 401, keyRequired, nil, true},
		{"a stale ring", "POST", syncPath, "GROWTH secret", true, 1 << 20, nil, large, 503, unavailable, nil, true},
		{"out of scope", "POST", syncPath, "GROWTH publishable", false, 1 << 20, nil, large, 403, outOfScope, nil, true},
		{"unknown route", "POST", "/nowhere", "GROWTH secret", false, 1 << 20, nil, large, 404, notFound, []string{"refused POST *"}, true},
		{"wrong method", "POST", "/me", "GROWTH secret", false, 1 << 20, nil, large, 405, wrongMethod, []string{"refused POST *"}, true},
		{"plan", "POST", syncPath, "DISCOVERY secret", false, 1 << 20, nil, large, 403, planInsufficient("DISCOVERY"), []string{"refused POST " + syncRoute}, true},
		{"at the cap, large", "POST", syncPath, "GROWTH secret", false, 1 << 20, spent, large, 429, "exceeded the rate limit", []string{"known"}, true},
		{"at the cap, small", "POST", syncPath, "GROWTH secret", false, 1 << 20, spent, small, 400, badRequest, nil, false},
		{"no room", "POST", syncPath, "GROWTH secret", false, small, nil, large, 500, overloaded, []string{"known"}, true},
		{"no room needed", "POST", syncPath, "GROWTH secret", false, 1, nil, small, 400, badRequest, nil, false},
		{"syntax", "POST", syncPath, "GROWTH secret", false, 1 << 20, nil, large, 400, badRequest, []string{"known"}, false},
		{"over the limit", "POST", "/address/verify", "GROWTH secret", false, 1 << 21, nil, 1<<20 + 1, 413, "Request body too large",
			[]string{"admit acme POST /address/verify", "settle 413"}, true},
	} {
		b, meter := newTestAPI(t), &fakeMeter{admitErr: c.refuse}
		b.keyRing.isStale = c.stale
		b.replaceHandler(func(p *fakeParts) { p.meter, p.env.Bodies = meter, bodylimit.NewBudget(c.room, c.room) })
		text := strings.NewReader(padTo(invalidJSON, c.bytes))
		w := b.sendBody(c.method, c.path, c.key, text)
		expectResponse(t, c.what, w, c.status, c.body)
		if !slices.Equal(meter.calls, c.told) {
			t.Errorf("%s: the meter was told %q, want %q", c.what, meter.calls, c.told)
		}
		if unread := text.Len() == c.bytes; unread != c.unread {
			t.Errorf("%s: %d of %d bytes were read", c.what, c.bytes-text.Len(), c.bytes)
		}
	}
}

const syncRoute = "/locations/referentiels/{code}/sites:sync"

// sendBody is ask with a body.
func (b *testAPI) sendBody(method, path, key string, text io.Reader) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, api.Base+path, text)
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+b.keys[key])
	}
	w := httptest.NewRecorder()
	b.ServeHTTP(w, r)
	return w
}

// TestABodyIsAskedForOnlyOnceItMayBeRead has clients that send their bodies when they are told to.
func TestABodyIsAskedForOnlyOnceItMayBeRead(t *testing.T) {
	t.Parallel()
	b, spent := newTestAPI(t), refusal.QuotaSpent.With(refusal.Details{Plan: plan.Growth})
	for _, c := range []struct {
		key    string
		refuse error
		room   int64
		want   string
	}{
		{"GROWTH publishable", nil, 1 << 20, "HTTP/1.1 403 "},
		{"DISCOVERY secret", nil, 1 << 20, "HTTP/1.1 403 "},
		{"GROWTH secret", spent, 1 << 20, "HTTP/1.1 429 "},
		{"GROWTH secret", nil, 1, "HTTP/1.1 500 "},
		{"GROWTH secret", nil, 1 << 20, "HTTP/1.1 100 "},
	} {
		inner, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		b.replaceHandler(func(p *fakeParts) {
			p.meter, p.env.Bodies = &fakeMeter{admitErr: c.refuse}, bodylimit.NewBudget(c.room, c.room)
		})
		s := &http.Server{Handler: b.Handler}
		go connlimit.NewListener(inner, 10, slog.New(slog.DiscardHandler)).Serve(s)
		conn, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		conn.SetDeadline(time.Now().Add(time.Minute))
		fmt.Fprintf(conn, "POST %s%s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nExpect: 100-continue\r\nContent-Length: 100000\r\n\r\n",
			api.Base, syncPath, b.keys[c.key])
		got := make([]byte, len(c.want))
		if _, err := io.ReadFull(conn, got); err != nil || string(got) != c.want {
			t.Errorf("%s: %q, %v; want %q", c.key, got, err, c.want)
		}
		conn.Close()
		s.Close()
	}
}

// budgetRecordingMeter is a meter that sees what is in use of a budget while a request is at work.
type budgetRecordingMeter struct {
	fakeMeter
	*bodylimit.Budget
	used int64
}

func (h *budgetRecordingMeter) Admit(ctx context.Context, g access.Grant, endpoint string, writes bool) (api.SettleFunc, error) {
	h.used = h.Status().Used
	return h.fakeMeter.Admit(ctx, g, endpoint, writes)
}

func TestTheShareOfABodyIsHeldWhileTheRequestIsAtWork(t *testing.T) {
	t.Parallel()
	b, meter := newTestAPI(t), &budgetRecordingMeter{Budget: bodylimit.NewBudget(1<<20, 1<<20)}
	b.replaceHandler(func(p *fakeParts) { p.meter, p.env.Bodies = meter, meter.Budget })
	w := b.sendBody("POST", "/address/verify", "GROWTH secret", strings.NewReader(padTo(`{"q":"x","limit":0}`, 100_000)))
	expectResponse(t, "a rule", w, 422, "greater_than_equal")
	if meter.used != 100_000 || meter.Status().Used != 0 {
		t.Errorf("%d bytes are held at work and %d after it, want 100000 and 0", meter.used, meter.Status().Used)
	}
}
