package api_test

import (
	"context"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"lieudit/commands"
	"lieudit/commands/locations"
	"lieudit/eventstore"
	"lieudit/eventstore/waitlimit"
	"lieudit/http/api"
	"lieudit/http/auth"
	"lieudit/http/budget"
	"lieudit/http/clientip"
	"lieudit/http/routing"
	"lieudit/http/throttle"
	"lieudit/queries/address/live"
	locationsqueries "lieudit/queries/locations"
	"lieudit/queries/locations/search"
	"lieudit/queries/route"
	"lieudit/schemas/grant"
	sites "lieudit/schemas/locations"
	"lieudit/schemas/plan"
	"lieudit/schemas/refusal"
	"lieudit/schemas/token"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, plan.Paris)

// fakeKeyRing is a key ring that holds what it was given.
type fakeKeyRing struct {
	keys    map[token.Hash]grant.Grant
	isStale bool
}

func (r *fakeKeyRing) FindKey(h token.Hash, _ time.Time) (grant.Grant, bool) {
	g, ok := r.keys[h]
	return g, ok
}
func (r *fakeKeyRing) IsFresh(time.Time) bool { return !r.isStale }

// testAPI is an API with one key of every plan and kind.
type testAPI struct {
	http.Handler
	keyRing *fakeKeyRing
	parts   fakeParts
	logs    *strings.Builder
	keys    map[string]string // "GROWTH secret" -> token
}

func newTestAPI(t testing.TB) *testAPI {
	t.Helper()
	b := &testAPI{keyRing: &fakeKeyRing{keys: map[token.Hash]grant.Grant{}}, logs: &strings.Builder{}, keys: map[string]string{}}
	for _, p := range plan.All() {
		for _, k := range []token.Kind{token.Secret, token.Publishable} {
			text := token.DefaultPrefixes.New(k)
			b.keys[string(p.Name)+" "+string(k)] = text
			b.keyRing.keys[token.HashOf(text)] = grant.Grant{
				KeyID: "k-" + string(k), Kind: k, Hint: token.DefaultPrefixes.Hint(text), Account: "acme",
				Origins: []string{"https://a.fr", "https://*.b.fr"},
				Terms:   grant.Terms{Plan: p.Name, Quota: p.DefaultQuota, Anchor: plan.Date{Year: 2026, Month: 1, Day: 31}},
			}
		}
	}
	b.replaceHandler(func(*fakeParts) {})
	return b
}

// fakeParts are the parts of an API that has no addresses and no locations, counts nothing, and whose clock stands at noon.
type fakeParts struct {
	keyRing   auth.KeyRing
	meter     api.Meter
	locations api.Locations
	addresses *live.Vintage
	router    route.Router
	env       api.Env
}

// replaceHandler makes an API of the fake parts, some of them changed.
func (b *testAPI) replaceHandler(change func(*fakeParts)) {
	p := fakeParts{
		keyRing: b.keyRing, meter: api.Unmetered{}, addresses: live.New(nil), router: routing.NoRouter{},
		locations: api.Locations{
			Commands: noLocations{}, Queries: noLocations{}, Search: noLocations{},
			CursorSecret: func(_ context.Context, account string) ([]byte, error) { return []byte("secret of " + account), nil },
			LastChange:   func(string) eventstore.Position { return 0 },
			Wait:         func(context.Context, eventstore.Position) {},
			AwaitOwn:     func(context.Context, string) error { return nil },
		},
		env: api.Env{
			Limiter: waitlimit.New(waitlimit.MaxRequests), Throttle: &throttle.Throttle{}, Clients: clientip.NewFinder(nil, slog.New(slog.DiscardHandler)),
			Bodies:   budget.New(api.MaxBodyBytes, api.MaxBodyBytes),
			Answers:  budget.New(64<<20, 64<<20),
			Lists:    budget.New(4, 2),
			Workers:  api.NewWorkers(),
			Searches: api.NewSearches(),
			Uploads:  api.Uploads{Folder: os.TempDir(), Budget: budget.New(1, 1)},
			Prefixes: token.DefaultPrefixes, Now: func() time.Time { return noon }, Version: "1.2.3", Log: slog.New(slog.NewTextHandler(b.logs, nil)),
		},
	}
	b.parts = p
	b.changeHandler(change)
}

// changeHandler makes the API anew with some of its parts changed.
func (b *testAPI) changeHandler(change func(*fakeParts)) {
	change(&b.parts)
	p := b.parts
	b.Handler = api.New(p.keyRing, p.meter, p.addresses, p.router, p.locations, p.env)
}

// noLocations refuses every command and query on locations, counts none and finds none.
type noLocations struct{}

func (noLocations) OpenReferential(context.Context, string, commands.Metadata, string, string) (locations.Referential, eventstore.Position, error) {
	return locations.Referential{}, 0, refusal.Internal
}
func (noLocations) RenameReferential(context.Context, string, commands.Metadata, string, string) (locations.Referential, eventstore.Position, error) {
	return locations.Referential{}, 0, refusal.Internal
}
func (noLocations) ArchiveReferential(context.Context, string, commands.Metadata, string) (locations.Referential, eventstore.Position, error) {
	return locations.Referential{}, 0, refusal.Internal
}
func (noLocations) WriteBatch(context.Context, string, commands.Metadata, string, locations.Batch) (locations.Outcome, eventstore.Position, error) {
	return locations.Outcome{}, 0, refusal.Internal
}
func (noLocations) PutSite(context.Context, string, commands.Metadata, string, locations.Row) (sites.Site, bool, eventstore.Position, error) {
	return sites.Site{}, false, 0, refusal.Internal
}
func (noLocations) PatchSite(context.Context, string, commands.Metadata, string, string, func(sites.Content) (sites.Content, error)) (sites.Site, eventstore.Position, error) {
	return sites.Site{}, 0, refusal.Internal
}
func (noLocations) DeactivateSite(context.Context, string, commands.Metadata, string, string) (sites.Site, eventstore.Position, error) {
	return sites.Site{}, 0, refusal.Internal
}
func (noLocations) ReactivateSite(context.Context, string, commands.Metadata, string, string) (sites.Site, eventstore.Position, error) {
	return sites.Site{}, 0, refusal.Internal
}
func (noLocations) CountLocations(context.Context, string) (locations.Counts, error) {
	return locations.Counts{}, nil
}
func (noLocations) ListReferentials(context.Context, string, string, locationsqueries.Page) ([]locationsqueries.Referential, string, error) {
	return nil, "", refusal.Internal
}
func (noLocations) FindReferential(context.Context, string, string) (locationsqueries.Referential, error) {
	return locationsqueries.Referential{}, refusal.Internal
}
func (noLocations) ListSites(context.Context, string, string, search.Status, locationsqueries.Page) ([]sites.Site, string, error) {
	return nil, "", refusal.Internal
}
func (noLocations) FindSite(context.Context, string, string, string) (sites.Site, error) {
	return sites.Site{}, refusal.Internal
}
func (noLocations) ActiveSites(context.Context, string, string, locationsqueries.TakeTurn) iter.Seq2[sites.Site, error] {
	return func(func(sites.Site, error) bool) {}
}
func (noLocations) ListChanges(context.Context, string, locationsqueries.ChangesPage) (locationsqueries.Changes, error) {
	return locationsqueries.Changes{}, nil
}
func (noLocations) Count(context.Context, search.Query, []search.Facet) (search.Counts, error) {
	return search.Counts{}, nil
}
func (noLocations) Search(context.Context, search.Query) (search.Result, error) {
	return search.Result{}, nil
}

// send sends a request with a key ("" for none), and headers as name, value, name, value…
func (b *testAPI) send(method, target, key string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, nil)
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+b.keys[key])
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	b.ServeHTTP(w, r)
	return w
}

func readBody(t *testing.T, w *httptest.ResponseRecorder) string {
	t.Helper()
	text, err := io.ReadAll(w.Result().Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestVersionNeedsNoKey(t *testing.T) {
	t.Parallel()
	w := newTestAPI(t).send("GET", "/services/v1/version", "", "Authorization", "Basic x")
	if got, want := readBody(t, w), "{\"version\":\"1.2.3\"}\n"; w.Code != 200 || got != want {
		t.Errorf("got %d %s, want 200 %s", w.Code, got, want)
	}
}

func TestMeShowsWhatTheKeyGives(t *testing.T) {
	t.Parallel()
	b := newTestAPI(t)
	got := readBody(t, b.send("GET", "/services/v1/me", "GROWTH secret"))
	want := `{"client":"acme","plan":"GROWTH","cle":{"id":"k-secret","hint":"` + token.DefaultPrefixes.Hint(b.keys["GROWTH secret"]) + `","type":"secret"},` +
		`"quota":{"limite":500000,"utilise":0,"restant":500000,"debut":"2026-10-31T00:00:00+01:00","fin":"2026-11-30T00:00:00+01:00"},` +
		`"sites":{"actifs":0,"capacite":2000,"plafond":2200},"referentiels":{"actifs":0,"maximum":25}}` + "\n"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
