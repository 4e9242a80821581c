package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"lieudit/http/budget"
	locationsqueries "lieudit/queries/locations"
	"lieudit/queries/locations/search"
	sites "lieudit/schemas/locations"
	"lieudit/schemas/refusal"
)

// largeSites are locations of which each list has n sites of some 16 KB, or of few bytes.
type largeSites struct {
	noLocations
	n     int
	bytes int
}

func (l largeSites) site(i int) sites.Site {
	return sites.Site{ExternalID: fmt.Sprintf("%04d", i), Content: sites.Content{Properties: json.RawMessage(`{"note":"` + strings.Repeat("x", l.bytes) + `"}`)}}
}

func (l largeSites) FindReferential(context.Context, string, string) (locationsqueries.Referential, error) {
	return locationsqueries.Referential{Code: "shops"}, nil
}

// ListSites lists four sites at once.
func (l largeSites) ListSites(_ context.Context, _, _ string, _ search.Status, page locationsqueries.Page) (found []sites.Site, next string, err error) {
	first := 0
	fmt.Sscan(page.Cursor, &first)
	for i := first; i < min(first+4, first+page.Limit, l.n); i++ {
		found = append(found, l.site(i))
	}
	if end := first + len(found); end < l.n {
		next = fmt.Sprint(end)
	}
	return found, next, nil
}

func (l largeSites) ActiveSites(context.Context, string, string, locationsqueries.TakeTurn) iter.Seq2[sites.Site, error] {
	return func(yield func(sites.Site, error) bool) {
		for i := range l.n {
			if !yield(l.site(i), nil) {
				return
			}
		}
	}
}

func (l largeSites) ListChanges(_ context.Context, _ string, page locationsqueries.ChangesPage) (listed locationsqueries.Changes, err error) {
	listed.Until = locationsqueries.ChangesCursor{Log: "log", Position: 1_000_000}
	for i := range min(4, page.Limit, l.n-int(page.After.Position)) {
		s := l.site(int(page.After.Position) + i)
		listed.Found = append(listed.Found, locationsqueries.Change{Site: &s})
	}
	listed.Next = locationsqueries.ChangesCursor{Log: "log", Position: page.After.Position + int64(len(listed.Found))}
	listed.More = int(listed.Next.Position) < l.n
	return listed, nil
}

func (l largeSites) Search(_ context.Context, q search.Query) (r search.Result, err error) {
	for i := range min(l.n, q.Limit) {
		r.Hits = append(r.Hits, search.Hit{Site: l.site(i)})
	}
	return r, nil
}

// newSitesAPI is an API with such locations, and a budget of answers.
func newSitesAPI(t *testing.T, l largeSites, answers *budget.Budget) (*testAPI, *fakeMeter) {
	t.Helper()
	b, meter := newTestAPI(t), &fakeMeter{}
	b.replaceHandler(func(p *fakeParts) {
		p.meter, p.env.Answers, p.locations.Queries, p.locations.Search = meter, answers, l, l
	})
	return b, meter
}

const largeSitesPath = "/services/v1/locations/referentiels/shops/sites"

// budgetWatcher is an answer that notes what is in use of a budget while it is sent.
type budgetWatcher struct {
	*httptest.ResponseRecorder
	budget *budget.Budget
	used   []int64
}

func (w *budgetWatcher) Write(p []byte) (int, error) {
	w.used = append(w.used, w.budget.Status().Used)
	return w.ResponseRecorder.Write(p)
}

func TestALargeAnswerHoldsItsShareUntilItIsSent(t *testing.T) {
	t.Parallel()
	const stream = budget.StreamedAnswer
	for _, c := range []struct {
		what, target string
		sites, bytes int
		want         int64 // of the budget while the answer is sent; -1: as many as it has
	}{
		{"a long list", largeSitesPath + "?limit=1000", 100, 16_000, stream},
		{"a short list", largeSitesPath, 3, 100, 0},
		{"an export", largeSitesPath + ":export?format=ndjson", 100, 16_000, stream},
		{"long changes", "/services/v1/locations/changes?limit=1000", 100, 16_000, stream},
		{"short changes", "/services/v1/locations/changes", 3, 100, 0},
		{"a large search", "/services/v1/locations/search?limit=100", 100, 16_000, -1},
		{"a large search as GeoJSON", "/services/v1/locations/search?limit=100&format=geojson", 100, 16_000, -1},
		{"a small search", "/services/v1/locations/search?limit=100", 3, 100, 0},
	} {
		answers := budget.New(64<<20, 32<<20)
		b, _ := newSitesAPI(t, largeSites{n: c.sites, bytes: c.bytes}, answers)
		w := &budgetWatcher{ResponseRecorder: httptest.NewRecorder(), budget: answers}
		r := httptest.NewRequest("GET", c.target, nil)
		r.Header.Set("Authorization", "Bearer "+b.keys["GROWTH secret"])
		b.ServeHTTP(w, r)
		if c.want < 0 {
			c.want = int64(w.Body.Len())
		}
		if w.Code != http.StatusOK || len(w.used) == 0 || slices.ContainsFunc(w.used, func(used int64) bool { return used != c.want }) {
			t.Errorf("%s: %d, holds %d, want %d", c.what, w.Code, w.used, c.want)
		}
		if n := strings.Count(w.Body.String(), `"note"`); n != c.sites {
			t.Errorf("%s: %d sites", c.what, n)
		}
		if used := answers.Status().Used; used != 0 {
			t.Errorf("%s: %d bytes are not given back", c.what, used)
		}
	}
}

// TestAnAnswerThatWaitsTooLongForItsShareIsNotCounted: the meter refunds a request, or does not count it, by its status.
func TestAnAnswerThatWaitsTooLongForItsShareIsNotCounted(t *testing.T) {
	t.Parallel()
	for _, target := range []string{
		largeSitesPath, largeSitesPath + ":export", "/services/v1/locations/changes", "/services/v1/locations/search?limit=100", "/services/v1/locations/referentiels",
		"/services/v1/locations/search?facettes=tags", "/services/v1/route/compute?origin=2.35,48.85&destination=5.37,43.29", "/services/v1/route/isochrone?origin=3.5,44.5&cost_type=duration&cost_values=600",
		"/services/v1/search?q=Mende&limit=100", "/services/v1/address/proximity?lat=44.5&lon=3.5&limit=100",
	} {
		synctest.Test(t, func(t *testing.T) {
			answers := budget.New(2<<20, 1<<20)
			b, meter := newSitesAPI(t, largeSites{n: 100, bytes: 16_000}, answers)
			held := answers.ClaimShare("acme", 1<<20)
			began := time.Now()
			w := b.send("GET", target, "BUSINESS secret")
			if waited := time.Since(began); w.Code != 500 || readBody(t, w) != overloaded+"\n" || waited != budget.MaxWait {
				t.Errorf("%s: %d after %v", target, w.Code, waited)
			}
			if len(meter.calls) == 0 || meter.counted != 0 {
				t.Errorf("%s: %d counted, %q", target, meter.counted, meter.calls)
			}
			held.Release()
			if got := answers.Status(); got.Used != 0 || got.Waiting != 0 {
				t.Errorf("%s: %+v", target, got)
			}
		})
	}
}

// TestAnAnswerWhoseWorkFailsHoldsNothing: an operation that fails after it has reserved memory gives it back.
func TestAnAnswerWhoseWorkFailsHoldsNothing(t *testing.T) {
	t.Parallel()
	answers := budget.New(64<<20, 32<<20)
	b := newTestAPI(t)
	b.replaceHandler(func(p *fakeParts) { p.env.Answers = answers })
	for _, target := range []string{"/services/v1/locations/referentiels", "/services/v1/locations/search?limit=100&bbox=9,9,1,1"} {
		if w := b.send("GET", target, "GROWTH secret"); w.Code < 400 || answers.Status().Used != 0 {
			t.Errorf("%s: %d, holds %d", target, w.Code, answers.Status().Used)
		}
	}
}

// TestACommonSearchNeedsNoShare: others that do not read their answers must not keep web pages from searching.
func TestACommonSearchNeedsNoShare(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		answers := budget.New(2<<20, 1<<20)
		b, _ := newSitesAPI(t, largeSites{n: 100, bytes: 1_000}, answers)
		for _, other := range []string{"stranger", "another"} {
			defer answers.ClaimShare(other, 1<<20).Release()
		}
		began := time.Now()
		for _, target := range []string{"/services/v1/locations/search", "/services/v1/locations/search?format=geojson&total=true"} {
			if w := b.send("GET", target, "GROWTH secret"); w.Code != http.StatusOK {
				t.Errorf("%s: %d", target, w.Code)
			}
		}
		if waited := time.Since(began); waited != 0 {
			t.Errorf("waited %v", waited)
		}
	})
}

// slowReads are locations that are read slowly. It counts how many reads there are at once.
type slowReads struct {
	largeSites
	now, most atomic.Int64
}

// read is one read of a database.
func (s *slowReads) read() {
	for n := s.now.Add(1); ; {
		if most := s.most.Load(); n <= most || s.most.CompareAndSwap(most, n) {
			break
		}
	}
	time.Sleep(time.Second)
	s.now.Add(-1)
}

func (s *slowReads) ListSites(ctx context.Context, account, code string, status search.Status, page locationsqueries.Page) ([]sites.Site, string, error) {
	s.read()
	return s.largeSites.ListSites(ctx, account, code, status, page)
}

func (s *slowReads) ListChanges(ctx context.Context, account string, page locationsqueries.ChangesPage) (locationsqueries.Changes, error) {
	s.read()
	return s.largeSites.ListChanges(ctx, account, page)
}

func (s *slowReads) ListReferentials(context.Context, string, string, locationsqueries.Page) ([]locationsqueries.Referential, string, error) {
	s.read()
	return []locationsqueries.Referential{{Code: "shops"}}, "", nil
}

func (s *slowReads) ActiveSites(ctx context.Context, _, _ string, takeTurn locationsqueries.TakeTurn) iter.Seq2[sites.Site, error] {
	return func(yield func(sites.Site, error) bool) {
		release, err := takeTurn(ctx)
		if err == nil {
			s.read()
			release()
		}
		yield(s.site(0), err)
	}
}

// TestTheListsOfAnAccountAreReadInTurns: so many reads at once would fill the pool of the database's connections, and everybody else
// would wait behind them.
func TestTheListsOfAnAccountAreReadInTurns(t *testing.T) {
	t.Parallel()
	for _, target := range []string{
		largeSitesPath + "?limit=1000", largeSitesPath + ":export", "/services/v1/locations/changes", "/services/v1/locations/referentiels",
	} {
		synctest.Test(t, func(t *testing.T) {
			slow, b := &slowReads{largeSites: largeSites{n: 8, bytes: 16_000}}, newTestAPI(t)
			b.replaceHandler(func(p *fakeParts) { p.locations.Queries, p.env.Lists = slow, budget.New(4, 2) })
			var all sync.WaitGroup
			for range 8 {
				all.Go(func() {
					if w := b.send("GET", target, "GROWTH secret"); w.Code != http.StatusOK {
						t.Errorf("%s: %d", target, w.Code)
					}
				})
			}
			all.Wait()
			if most := slow.most.Load(); most != 2 {
				t.Errorf("%s: %d reads at once, want 2", target, most)
			}
			if used := slow.now.Load(); used != 0 {
				t.Errorf("%s: %d reads go on", target, used)
			}
		})
	}
}

// TestAnExportThatWouldMissWhatWasWrittenIsRefused: a file without the last import would be taken for the whole.
func TestAnExportThatWouldMissWhatWasWrittenIsRefused(t *testing.T) {
	t.Parallel()
	b, meter := newSitesAPI(t, largeSites{n: 3, bytes: 100}, budget.New(1<<20, 1<<20))
	var behind error
	var asked []string
	b.changeHandler(func(p *fakeParts) {
		p.locations.AwaitOwn = func(_ context.Context, account string) error {
			asked = append(asked, account)
			return behind
		}
	})
	expectResponse(t, "an export", b.send("GET", largeSitesPath+":export?format=ndjson", "STARTER secret"), 200, `"external_id"`)
	behind = refusal.ReadModelBehind
	w := b.send("GET", largeSitesPath+":export?format=ndjson", "STARTER secret")
	expectResponse(t, "an export behind", w, 500, `{"detail":"Read model behind"}`)
	if len(asked) != 2 || asked[0] == "" || asked[0] != asked[1] {
		t.Errorf("waited for %q", asked)
	}
	if meter.counted != 1 {
		t.Errorf("%d exports are counted, want the one that was answered", meter.counted)
	}
}
