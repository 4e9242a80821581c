// Package pagetest tests sections of pages without a service: an Area answers the operations that a test gives it, and its methods ask
// for pages as a browser does.
package pagetest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"html"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"lieudit/http/customerarea"
	"lieudit/http/kit"
	"lieudit/http/pages/page"
	"lieudit/schemas/body"
	"lieudit/schemas/grant"
	"lieudit/schemas/refusal"
)

// Now is the wall clock of the pages.
var Now = time.Date(2026, 11, 27, 11, 3, 45, 0, time.UTC)

// HostileTexts are what people type or paste into labels, names and reasons.
var HostileTexts = []string{
	`"><script>alert(1)</script>`, `' onmouseover='alert(1)`, `</pre></td></table><h1>x`, `{{.}} ${x} %s %d %!`, `javascript:alert(1)`,
	strings.Repeat("sansespace", 20), "שלום \u202e مرحبا", "a\nb\tc", `&lt;b&gt; &amp;`,
}

// Operation answers an operation: an answer, or an error such as a refusal.
type Operation func(query url.Values, in []byte) (any, error)

// Area is a customer area with one session. It answers operations that it has no Operation for like what does not exist. It is a page.Area.
type Area struct {
	Principal customerarea.Principal
	Refused   string // prefix of the paths that the session may not ask for; "" for none

	mu         sync.Mutex
	operations map[string]Operation
	queries    map[string]url.Values
	bodies     map[string][]byte
	calls      map[string]int
}

// New makes an area whose session has a role, of the account mende if it is one that acts for an account.
func New(role grant.Role) *Area {
	a := &Area{
		Principal:  customerarea.Principal{TokenID: "t1", Session: "s1", Role: role},
		operations: map[string]Operation{}, queries: map[string]url.Values{}, bodies: map[string][]byte{}, calls: map[string]int{},
	}
	if role == grant.RoleCustomer || role == grant.RoleAgency {
		a.Principal.Account = "mende"
	}
	return a
}

// Handle answers an operation, such as GET /accounts/mende.
func (a *Area) Handle(operation string, do Operation) { a.operations[operation] = do }

// Answer answers an operation always alike.
func (a *Area) Answer(operation string, answer any) {
	a.Handle(operation, func(url.Values, []byte) (any, error) { return answer, nil })
}

// Fail fails an operation always alike.
func (a *Area) Fail(operation string, err error) {
	a.Handle(operation, func(url.Values, []byte) (any, error) { return nil, err })
}

// LastQuery is the query with which an operation was last asked for, LastBody its body and Calls how often it was.
func (a *Area) LastQuery(operation string) url.Values { return a.queries[operation] }
func (a *Area) LastBody(operation string) string      { return string(a.bodies[operation]) }
func (a *Area) Calls(operation string) int            { return a.calls[operation] }

func (a *Area) do(method, target string, in any) (any, error) {
	u, err := url.Parse(target)
	if err != nil {
		return nil, err
	}
	text, err := kit.MarshalJSON(in)
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	operation := method + " " + u.Path
	a.queries[operation], a.bodies[operation] = u.Query(), bytes.TrimSpace(text)
	a.calls[operation]++
	answer, ok := a.operations[operation]
	if !ok {
		return nil, refusal.NotFound
	}
	return answer(u.Query(), text)
}

// Do implements page.Area.
func (a *Area) Do(_ context.Context, _ customerarea.Principal, method, target string, in, out any) error {
	answer, err := a.do(method, target, in)
	if err != nil || out == nil {
		return err
	}
	text, err := json.Marshal(answer)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, out)
}

// Send implements page.Area.
func (a *Area) Send(w http.ResponseWriter, _ *http.Request, _ customerarea.Principal, target string) error {
	answer, err := a.do(http.MethodGet, target, nil)
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(w, answer)
	return err
}

// May implements page.Area.
func (a *Area) May(_ context.Context, _ customerarea.Principal, _, target string) bool {
	return a.Refused == "" || !strings.HasPrefix(target, a.Refused)
}

// Authenticate implements page.Area.
func (a *Area) Authenticate(*http.Request) (customerarea.Principal, error) { return a.Principal, nil }

// Enter implements page.Area.
func (a *Area) Enter(http.ResponseWriter, *http.Request, string) (body.Session, error) {
	return body.Session{}, refusal.LinkInvalid
}

// Leave implements page.Area.
func (a *Area) Leave(http.ResponseWriter) {}

// Ask sends a request of a browser in a language. A form makes it a POST.
func (a *Area) Ask(t testing.TB, s page.Section, target, language string, form url.Values) *httptest.ResponseRecorder {
	t.Helper()
	method := http.MethodGet
	if form != nil {
		method = http.MethodPost
	}
	address := func() *url.URL { return &url.URL{Scheme: "http", Host: "localhost:8081"} }
	site := page.New(a, page.Env{
		URL: address, API: address, Now: func() time.Time { return Now }, Log: slog.New(slog.NewTextHandler(t.Output(), nil)), Version: "test", IsStopping: func() bool { return true }, IsInvented: func() bool { return false },
	}, s)
	r := httptest.NewRequest(method, "http://localhost:8081"+target, strings.NewReader(form.Encode()))
	r.Header.Set("Accept-Language", language)
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	w := httptest.NewRecorder()
	site.ServeHTTP(w, r)
	return w
}

// Get asks for a page and returns its text. The test fails if it has another status.
func (a *Area) Get(t testing.TB, s page.Section, target, language string, status int) string {
	t.Helper()
	w := a.Ask(t, s, target, language, nil)
	if w.Code != status {
		t.Errorf("%s: status %d, want %d\n%s", target, w.Code, status, w.Body)
	}
	return w.Body.String()
}

// Post sends a form and returns the text of the page that answers. The test fails if it has another status.
func (a *Area) Post(t testing.TB, s page.Section, target, language string, form url.Values, status int) string {
	t.Helper()
	w := a.Ask(t, s, target, language, form)
	if w.Code != status {
		t.Errorf("%s: status %d, want %d\n%s", target, w.Code, status, w.Body)
	}
	return w.Body.String()
}

// Redirect asks for a page, or sends a form, and returns where that leads on to.
func (a *Area) Redirect(t testing.TB, s page.Section, target string, form url.Values) string {
	t.Helper()
	w := a.Ask(t, s, target, "fr", form)
	if w.Code != http.StatusSeeOther {
		t.Errorf("%s: status %d, want 303\n%s", target, w.Code, w.Body)
	}
	return w.Header().Get("Location")
}

// maxPageBytes is the budget of a page.
const maxPageBytes = 100_000

// ExpectSafe asks for a page in both languages and fails the test unless the page is whole and shows a hostile text as text, if at all.
func (a *Area) ExpectSafe(t testing.TB, s page.Section, target, hostile string) {
	t.Helper()
	for _, language := range []string{"fr", "en"} {
		w := a.Ask(t, s, target, language, nil)
		text := w.Body.String()
		switch {
		case w.Code >= 500, !strings.Contains(text, "</html>"), !strings.Contains(text, "<h1"):
			t.Errorf("%s (%s): status %d, and not a whole page\n%s", target, language, w.Code, text)
		case html.EscapeString(hostile) != hostile && strings.ContainsAny(hostile, `<>"`) && strings.Contains(text, hostile):
			t.Errorf("%s (%s): the page has %q as markup", target, language, hostile)
		case strings.Contains(text, "ZgotmplZ") || strings.Contains(text, "%!") && !strings.Contains(hostile, "%!"):
			t.Errorf("%s (%s): a text of the page is broken\n%s", target, language, text)
		case strings.Count(text, "<script") != 1:
			t.Errorf("%s (%s): the page has %d scripts", target, language, strings.Count(text, "<script"))
		case len(text) > maxPageBytes:
			t.Errorf("%s (%s): %d bytes, want at most %d", target, language, len(text), maxPageBytes)
		}
	}
}
