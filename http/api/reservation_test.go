package api_test

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
	"lieudit/eventstore"
	"lieudit/eventstore/clock/clocktest"
	"lieudit/eventstore/journal"
	"lieudit/eventstore/waitlimit"
	"lieudit/http/api"
	"lieudit/schemas/event"
	"lieudit/schemas/grant"
	"lieudit/schemas/plan"
	"lieudit/schemas/token"
	"lieudit/schemas/usagefold"
)

// fixedQuota is the quota of every account.
type fixedQuota int64

func (v fixedQuota) QuotaAt(context.Context, string, time.Time) (int64, eventstore.Position, error) {
	return int64(v), 1, nil
}

// keptTerms knows no account, so that what a grant says holds at all times.
func keptTerms(string, time.Time) (grant.Terms, bool) { return grant.Terms{}, false }

// noVault is a vault that nothing needs.
type noVault struct{}

func (noVault) Key(context.Context, string, bool) ([]byte, error) { return nil, eventstore.ErrNoKey }
func (noVault) DestroyKey(context.Context, string) error          { return nil }

func (noVault) ForgetKeys() {}

// newMeteredAPI is an API with a log of its own. counted returns how many requests of the account are counted on it.
func newMeteredAPI(t *testing.T, c api.CountingPolicy) (b *testAPI, counted func() int64) {
	t.Helper()
	return newMeteredAPIOn(t, c, func(s eventstore.Store) eventstore.Store { return s })
}

// newMeteredAPIOn is newMeteredAPI whose meter has the log as change returns it.
func newMeteredAPIOn(t *testing.T, c api.CountingPolicy, change func(eventstore.Store) eventstore.Store) (b *testAPI, counted func() int64) {
	t.Helper()
	j, err := journal.Open(t.TempDir(), journal.Options{SegmentSize: 1 << 20, Clock: func() time.Time { return noon }})
	if err != nil {
		t.Fatal(err)
	}
	log, now := slog.New(slog.DiscardHandler), func() time.Time { return noon }
	m := usage.New(change(j), eventstore.NewCodec(noVault{}), fixedQuota(6), keptTerms, waitlimit.New(waitlimit.MaxRequests), clocktest.Follow(now), log)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { m.Run(ctx, j, eventstore.Checkpoint{}) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
		j.Close()
	})
	b = newTestAPI(t)
	for h, g := range b.keyRing.keys {
		g.Quota = 6
		b.keyRing.keys[h] = g
	}
	b.replaceHandler(func(p *fakeParts) { p.meter, p.env.Counting = m, c })
	g := b.keyRing.keys[token.HashOf(b.keys["GROWTH secret"])]
	return b, func() int64 {
		return readCounted(t, j, event.PeriodRef{Contract: g.Account, First: plan.PeriodAt(g.Anchor, noon).First})
	}
}

// readCounted returns how many requests count in a period, whichever stream they are counted in.
func readCounted(t *testing.T, log eventstore.Store, period event.PeriodRef) int64 {
	t.Helper()
	var state usagefold.StreamsState
	lines := usagefold.Lines{}
	for s, err := range log.ReadAll(t.Context(), eventstore.Checkpoint{}, eventstore.Filter{"usage"}) {
		if err != nil {
			t.Fatal(err)
		}
		if s.Kind != eventstore.EventAppeared {
			continue
		}
		e, err := event.Decode(s.Event.Type, s.Event.Data)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range state.Apply(s.Event.Stream, int64(s.Event.Revision), e, s.Event.Time) {
			if part.PeriodRef == period {
				lines.Apply(part.Event, part.Verdict)
			}
		}
	}
	return lines.Total()
}

func TestRequestsCountByThePolicy(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		method, target, key string
		status              int
		byDefault, byAll    int64
	}{
		{"GET", "/me", "GROWTH secret", 200, 1, 1},
		{"GET", "/me?x=1", "GROWTH secret", 422, 1, 1},
		{"GET", "/version", "GROWTH secret", 200, 0, 0},
		{"GET", "/me?x=%zz", "GROWTH secret", 400, 0, 0},
		{"GET", "/nowhere", "GROWTH secret", 404, 0, 1},
		{"POST", "/me", "GROWTH secret", 405, 0, 1},
		{"GET", "/route/compute", "GROWTH secret", 403, 0, 1},
		{"GET", "/route/nearest?origin=3,44&destinations=3,45", "GROWTH secret", 500, 0, 1},
		{"GET", "/route/matrix?origins=3,44&destinations=3,45", "GROWTH secret", 500, 0, 1},
		{"GET", "/me", "GROWTH publishable", 403, 0, 0},
	} {
		for counting, want := range map[api.CountingPolicy]int64{{}: c.byDefault, api.CountAll: c.byAll} {
			b, counted := newMeteredAPI(t, counting)
			if w := b.send(c.method, api.Base+c.target, c.key); w.Code != c.status {
				t.Errorf("%s %s: %d, want %d", c.method, c.target, w.Code, c.status)
			}
			if got := counted(); got != want {
				t.Errorf("%s %s with %+v: %d counted, want %d", c.method, c.target, counting, got, want)
			}
		}
	}
}

func TestOnlyRequestsOverTheQuotaAreRefused(t *testing.T) {
	t.Parallel()
	b, _ := newMeteredAPI(t, api.CountingPolicy{})
	for plan, want := range map[string]string{
		"DISCOVERY": `{"detail":"Rate limit exceeded. Max allowed usage for plan DISCOVERY is 6 requests."}`,
		"GROWTH":    `{"detail":"Your plan (GROWTH) has exceeded the rate limit for this service. Please upgrade your plan."}`,
	} {
		h := token.HashOf(b.keys[plan+" secret"])
		b.keyRing.keys[h] = withAccount(b.keyRing.keys[h], plan)
		for range 6 {
			expectResponse(t, plan, b.send("GET", api.Base+"/me", plan+" secret"), 200, `"limite":6`)
			expectResponse(t, plan, b.send("GET", api.Base+"/me?x=%zz", plan+" secret"), 400, badRequest)
		}
		w := b.send("GET", api.Base+"/me", plan+" secret")
		expectResponse(t, plan, w, 429, want)
		if w.Header().Get("Retry-After") != "" {
			t.Errorf("%s: Retry-After is sent", plan)
		}
	}
}

func withAccount(g grant.Grant, account string) grant.Grant {
	g.Account = account
	return g
}

func TestAnswersAreUncachedJSONWithTheirLength(t *testing.T) {
	t.Parallel()
	b := newTestAPI(t)
	for target, status := range map[string]int{"/me": 200, "/locations/search": 200, "/nowhere": 404, "/route/compute": 403, "/me?x=<b>": 422} {
		w := b.send("GET", "/services/v1"+target, "GROWTH secret")
		text := readBody(t, w)
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

func TestAWrongMethodIsAnsweredWithTheAllowedOnes(t *testing.T) {
	t.Parallel()
	b := newTestAPI(t)
	for _, c := range []struct{ method, target, allow string }{
		{"POST", "/me", "GET, OPTIONS"}, {"HEAD", "/me", "GET, OPTIONS"}, {"TRACE", "/me", "GET, OPTIONS"}, {"POST", "/version", "GET, OPTIONS"},
		{"DELETE", "/route/matrix", "GET, OPTIONS, POST"}, {"PATCH", "/locations/search", "GET, OPTIONS"},
	} {
		w := b.send(c.method, "/services/v1"+c.target, "BUSINESS secret")
		if got := w.Header().Get("Allow"); w.Code != 405 || got != c.allow {
			t.Errorf("%s %s: %d, Allow %q; want 405, %q", c.method, c.target, w.Code, got, c.allow)
		}
	}
}

func TestASubClientSeesItsAgency(t *testing.T) {
	t.Parallel()
	b := newTestAPI(t)
	hash := token.HashOf(b.keys["STARTER secret"])
	g := b.keyRing.keys[hash]
	g.Agency, g.Quota = "agency-1", 1234
	b.keyRing.keys[hash] = g
	w := b.send("GET", "/services/v1/me", "STARTER secret")
	expectResponse(t, "agency", w, 200, `"agence":"agency-1"`)
	expectResponse(t, "its own quota", b.send("GET", "/services/v1/me", "STARTER secret"), 200, `"limite":1234`)
}

// fakeMeter is a meter that records its calls, and refuses where a test sets an error.
type fakeMeter struct {
	period              plan.Period
	mu                  sync.Mutex
	calls               []string
	counted             int64 // and not refunded
	checkErr, chargeErr error
}

func (m *fakeMeter) recordCall(line string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls = append(m.calls, line)
}

func (m *fakeMeter) CheckQuota(_ context.Context, _ *waitlimit.Wait, g grant.Grant, endpoint string) error {
	m.recordCall("check " + g.Account + " " + endpoint)
	return m.checkErr
}

func (m *fakeMeter) Charge(_ context.Context, _ *waitlimit.Wait, g grant.Grant, endpoint string, n int64) (usage.Charge, error) {
	m.recordCall(fmt.Sprint("charge ", n, " ", endpoint))
	if m.chargeErr == nil {
		m.counted += n
	}
	return usage.Charge{QuotaUsage: usage.QuotaUsage{Used: 9, Limit: g.Quota, Period: m.period}}, m.chargeErr
}

func (m *fakeMeter) Settle(_ context.Context, _ usage.Charge, refunded int64) error {
	m.recordCall(fmt.Sprint("refund ", refunded))
	m.counted -= refunded
	return nil
}

// The policy is CountAll, so that every end of the work shows.
func TestTheMeterAdmitsAfterSyntaxAndSettlesAfterWork(t *testing.T) {
	t.Parallel()
	spent := &usage.QuotaExceededError{Limit: 1}
	for _, c := range []struct {
		method, target string
		meter          *fakeMeter
		status         int
		want           []string
	}{
		{"GET", "/me", &fakeMeter{}, 200, []string{"check acme GET /me", "charge 1 GET /me", "refund 0"}},
		{"GET", "/me?x=1", &fakeMeter{}, 422, []string{"check acme GET /me", "charge 1 GET /me", "refund 0"}},
		{"GET", "/route/nearest?origin=3,44&destinations=3,45", &fakeMeter{}, 500,
			[]string{"check acme GET /route/nearest", "charge 1 GET /route/nearest", "refund 0"}},
		{"GET", "/me?x=1", &fakeMeter{checkErr: spent}, 429, []string{"check acme GET /me"}},
		{"GET", "/me?x=%zz", &fakeMeter{checkErr: spent}, 400, nil},
		{"GET", "/nowhere", &fakeMeter{checkErr: spent}, 404, []string{"charge 1 GET *", "refund 0"}},
		{"GET", "/nowhere", &fakeMeter{chargeErr: spent}, 404, []string{"charge 1 GET *"}},
		{"GET", "/nowhere", &fakeMeter{chargeErr: usage.ErrUnavailable}, 503, []string{"charge 1 GET *"}},
		{"POST", "/me", &fakeMeter{checkErr: spent}, 405, []string{"charge 1 POST *", "refund 0"}},
		{"GET", "/route/compute", &fakeMeter{checkErr: spent}, 403, []string{"charge 1 GET /route/compute", "refund 0"}},
		{"GET", "/version", &fakeMeter{checkErr: spent}, 200, nil},
		{"GET", "/me", &fakeMeter{chargeErr: usage.ErrUnavailable}, 503, []string{"check acme GET /me", "charge 1 GET /me"}},
		{"GET", "/me", &fakeMeter{checkErr: errors.New("disk")}, 503, []string{"check acme GET /me"}},
	} {
		b := newTestAPI(t)
		b.replaceHandler(func(p *fakeParts) { p.meter, p.env.Counting = c.meter, api.CountAll })
		w := b.send(c.method, "/services/v1"+c.target, "GROWTH secret")
		if w.Code != c.status || !slices.Equal(c.meter.calls, c.want) {
			t.Errorf("%s %s: %d %q, want %d %q", c.method, c.target, w.Code, c.meter.calls, c.status, c.want)
		}
	}
}

// An instance may count in another period than the one of its clock, if that is closed or has not begun by the log's clock.
func TestMeShowsTheDatesOfThePeriodThatItCountsIn(t *testing.T) {
	t.Parallel()
	period := plan.Period{First: plan.Date{Year: 2027, Month: 1, Day: 31}, Next: plan.Date{Year: 2027, Month: 2, Day: 28}}
	b := newTestAPI(t)
	b.replaceHandler(func(p *fakeParts) { p.meter = &fakeMeter{period: period} })
	w := b.send("GET", "/services/v1/me", "GROWTH secret")
	if got, want := w.Body.String(), `"utilise":9,"restant":499991,"debut":"2027-01-31T00:00:00+01:00","fin":"2027-02-28T00:00:00+01:00"`; !strings.Contains(got, want) {
		t.Errorf("got %s, want %s", got, want)
	}
}

// panickingKeyRing is a ring that fails in the way of a programming error.
type panickingKeyRing struct{}

func (panickingKeyRing) FindKey(h token.Hash, _ time.Time) (grant.Grant, bool) {
	var nobody *grant.Grant
	return *nobody, true
}
func (panickingKeyRing) IsFresh(time.Time) bool { return true }

func TestAPanicIsA500AndTheServerGoesOn(t *testing.T) {
	t.Parallel()
	b := newTestAPI(t)
	b.replaceHandler(func(p *fakeParts) { p.keyRing = panickingKeyRing{} })
	text := token.DefaultPrefixes.New(token.Secret)
	for range 2 {
		r := httptest.NewRequest("GET", searchURL, nil)
		r.Header.Set("Authorization", "Bearer "+text)
		w := httptest.NewRecorder()
		b.ServeHTTP(w, r)
		expectResponse(t, "panic", w, 500, `{"detail":"Internal error"}`)
		if w.Header().Get("Access-Control-Allow-Origin") != "*" {
			t.Error("a page cannot read the 500 of its search")
		}
	}
	if got := b.logs.String(); strings.Count(got, "\n") != 2 || strings.Contains(got, text[6:38]) {
		t.Errorf("logged %q, want one line a panic", got)
	}
}

func TestWorkThatPanicsIsSettledAsA500(t *testing.T) {
	t.Parallel()
	b, meter, calls := newTestAPI(t), &fakeMeter{}, 0
	b.replaceHandler(func(p *fakeParts) {
		p.meter, p.env.Counting = meter, api.CountAll
		p.env.Now = func() time.Time {
			if calls++; calls > 1 { // the authenticator asks first, then the work
				panic("no time")
			}
			return noon
		}
	})
	expectResponse(t, "panic", b.send("GET", "/services/v1/me", "GROWTH secret"), 500, `{"detail":"Internal error"}`)
	if want := []string{"check acme GET /me", "charge 1 GET /me", "refund 0"}; !slices.Equal(meter.calls, want) {
		t.Errorf("the meter was told %q, want %q", meter.calls, want)
	}
}

func BenchmarkRequest(b *testing.B) {
	t := newTestAPI(b)
	for name, target := range map[string]string{"me": "/me", "search": "/locations/search?q=paris&limit=20"} {
		b.Run(name, func(b *testing.B) {
			r := httptest.NewRequest("GET", api.Base+target, nil)
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
