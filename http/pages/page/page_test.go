package page_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"lieudit/http/customerarea"
	"lieudit/http/pages/page"
	"lieudit/http/problem"
	"lieudit/schemas/body"
	"lieudit/schemas/grant"
	"lieudit/schemas/refusal"
)

// fakeArea is a customer area with one session, whose cookie is session=valid. do answers the operations.
type fakeArea struct {
	role grant.Role
	err  atomic.Value // failure: of the cookie
	do   func(method, target string, in any) (any, error)
}

func (a *fakeArea) Do(_ context.Context, _ customerarea.Principal, method, target string, in, out any) error {
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

func (a *fakeArea) Send(http.ResponseWriter, *http.Request, customerarea.Principal, string) error {
	return refusal.NotFound
}

func (a *fakeArea) May(_ context.Context, p customerarea.Principal, _, target string) bool {
	return p.Role == grant.RoleOperator || !strings.HasPrefix(target, "/tokens")
}

func (a *fakeArea) Authenticate(r *http.Request) (customerarea.Principal, error) {
	if err := a.failure(); err != nil {
		return customerarea.Principal{}, err
	}
	if c, err := r.Cookie("session"); err != nil || c.Value != "valid" {
		return customerarea.Principal{}, refusal.KeyRequired
	}
	return customerarea.Principal{TokenID: "t1", Session: "s1", Role: a.role}, nil
}

// fail makes every cookie fail with an error, or with none again.
func (a *fakeArea) fail(err error) { a.err.Store(failure{err}) }

func (a *fakeArea) failure() error {
	f, _ := a.err.Load().(failure)
	return f.error
}

func (a *fakeArea) Enter(http.ResponseWriter, *http.Request, string) (body.Session, error) {
	return body.Session{}, refusal.LinkInvalid
}
func (a *fakeArea) Leave(http.ResponseWriter) {}

// section has one page that shows an answer, one form, and one public page.
func section() page.Section {
	return page.Section{
		Templates: fstest.MapFS{
			"note.html": {Data: []byte(`<h1>{{t "Note" "Remark"}}</h1><p>{{.Data}}</p>`)},
			"form.html": {Data: []byte(`{{template "form-errors" (dict "Form" .Data)}}<form method="post">{{template "field" (dict "Form" .Data "Name" "label" "Label" (t "Nom" "Name"))}}</form>`)},
		},
		Rows: []page.Row{
			{Method: "GET", Path: "/note", Serve: func(q *page.Request) (page.View, error) {
				text, err := page.Read[string](q, "/note")
				return page.View{Template: "note.html", Title: "Note", Data: text}, err
			}},
			{Method: "GET", Path: "/ouvert", IsPublic: true, Serve: func(q *page.Request) (page.View, error) {
				return page.View{Template: "note.html", Title: "Note", Data: "public"}, nil
			}},
			{Method: "POST", Path: "/note", Serve: func(q *page.Request) (page.View, error) {
				form := q.Form()
				if err := q.Do("POST", "/note", map[string]string{"label": form.Value("label")}, nil); err != nil {
					status, ok := form.Refuse(q, err, nil)
					if !ok {
						return page.View{}, err
					}
					return page.View{Status: status, Template: "form.html", Title: "Note", Data: form}, nil
				}
				return page.Redirect("/note?fait=garde")
			}},
		},
	}
}

func newSite(area *fakeArea) http.Handler { return page.New(area, newEnv(), section()) }

func newEnv() page.Env {
	address := func(text string) func() *url.URL {
		u, _ := url.Parse(text)
		return func() *url.URL { return u }
	}
	return page.Env{
		URL: address("http://localhost:8081"), API: address("http://127.0.0.1:8080"), Now: time.Now, Log: slog.New(slog.DiscardHandler), Version: "test",
		IsStopping: func() bool { return false }, IsInvented: func() bool { return false },
	}
}

// ask sends a request to the site; a form makes it a POST. change may change the request.
func ask(t *testing.T, area *fakeArea, target string, form url.Values, change func(*http.Request)) *httptest.ResponseRecorder {
	t.Helper()
	method, content := "GET", ""
	if form != nil {
		method, content = "POST", form.Encode()
	}
	r := httptest.NewRequest(method, "http://localhost:8081"+target, strings.NewReader(content))
	r.AddCookie(&http.Cookie{Name: "session", Value: "valid"})
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if change != nil {
		change(r)
	}
	w := httptest.NewRecorder()
	newSite(area).ServeHTTP(w, r)
	return w
}

func answering(answer any, err error) *fakeArea {
	return &fakeArea{role: grant.RoleCustomer, do: func(string, string, any) (any, error) { return answer, err }}
}

func withoutCookie(r *http.Request) { r.Header.Del("Cookie") }

func english(r *http.Request) { r.Header.Set("Accept-Language", "en") }

func TestAPageNeedsASessionUnlessItIsPublic(t *testing.T) {
	t.Parallel()
	w := ask(t, answering("x", nil), "/note?a=b", nil, withoutCookie)
	if w.Code != 303 || w.Header().Get("Location") != "/connexion?retour=%2Fnote%3Fa%3Db" {
		t.Errorf("without a session: %d %q", w.Code, w.Header().Get("Location"))
	}
	if w := ask(t, answering("x", nil), "/ouvert", nil, withoutCookie); w.Code != 200 || !strings.Contains(w.Body.String(), "public") {
		t.Errorf("public page: %d", w.Code)
	}
}

// A session that ended, or a log that does not answer, must not lose what was typed; a secret is not sent back.
func TestWhatWasTypedSurvivesAnErrorThatPasses(t *testing.T) {
	t.Parallel()
	for name, err := range map[string]error{"log away": refusal.AuthUnavailable, "session ended": refusal.KeyInvalid} {
		area := answering(nil, nil)
		area.fail(err)
		w := ask(t, area, "/note", url.Values{"label": {"ma clé <b>"}}, nil)
		if w.Code != problem.StatusOf(err) || !strings.Contains(w.Body.String(), "ma clé &lt;b&gt;</textarea>") {
			t.Errorf("%s: %d\n%s", name, w.Code, w.Body)
		}
		w = ask(t, area, "/note", url.Values{"preuve": {"ld_ct_secret"}}, nil)
		if strings.Contains(w.Body.String(), "ld_ct_secret") {
			t.Errorf("%s: the page holds a secret", name)
		}
	}
}

func TestARefusalOfAFormStandsBesideItsField(t *testing.T) {
	t.Parallel()
	rule := problem.BrokenRule("body", "label", "string_too_long", "String should have at most 200 characters")
	w := ask(t, answering(nil, rule), "/note", url.Values{"label": {`x" onfocus="alert(1)`}}, english)
	text := w.Body.String()
	for _, want := range []string{"At most 200 characters.", `id="e-label"`, `aria-invalid="true"`, `value="x&#34; onfocus=&#34;alert(1)"`} {
		if !strings.Contains(text, want) {
			t.Errorf("%d: the page lacks %s\n%s", w.Code, want, text)
		}
	}
	if w.Code != 422 {
		t.Errorf("status %d", w.Code)
	}
}

func TestAnUnknownErrorIsAPageWithoutItsText(t *testing.T) {
	t.Parallel()
	w := ask(t, answering(nil, errors.New("secret detail")), "/note", nil, nil)
	if w.Code != 500 || strings.Contains(w.Body.String(), "secret detail") || !strings.Contains(w.Body.String(), "<h1>") {
		t.Errorf("%d\n%s", w.Code, w.Body)
	}
}

// Who may reach the pages by another name could be a page that had its own name resolve here.
func TestAnotherHostIsMisdirected(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]int{"localhost:8081": 200, "LOCALHOST:8081": 200, "localhost": 421, "127.0.0.1:8081": 421, "evil.example": 421} {
		if w := ask(t, answering("x", nil), "/note", nil, func(r *http.Request) { r.Host = host }); w.Code != want {
			t.Errorf("%s: %d, want %d", host, w.Code, want)
		}
	}
}

func TestEveryAnswerHasTheHeadersThatProtectIt(t *testing.T) {
	t.Parallel()
	for _, target := range []string{"/note", "/nowhere", "/ouvert"} {
		h := ask(t, answering("x", nil), target, nil, nil).Header()
		policy := h.Get("Content-Security-Policy")
		if !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") || h.Get("Cache-Control") != "no-store" ||
			h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Referrer-Policy") != "same-origin" {
			t.Errorf("%s: %v", target, h)
		}
	}
}

func TestTheReaderChoosesLanguageAndTheme(t *testing.T) {
	t.Parallel()
	if w := ask(t, answering("x", nil), "/note", nil, english); !strings.Contains(w.Body.String(), `<html lang="en">`) || !strings.Contains(w.Body.String(), "Remark") {
		t.Error("the language of the browser is not the page's")
	}
	chosen := func(r *http.Request) {
		english(r)
		r.AddCookie(&http.Cookie{Name: "lieudit-lang", Value: "fr"})
		r.AddCookie(&http.Cookie{Name: "lieudit-theme", Value: "dark"})
	}
	if w := ask(t, answering("x", nil), "/note", nil, chosen); !strings.Contains(w.Body.String(), `<html lang="fr" data-theme="dark">`) {
		t.Errorf("the choice of the reader is not the page's: %s", w.Body)
	}
	hostile := func(r *http.Request) { r.AddCookie(&http.Cookie{Name: "lieudit-theme", Value: `x"onload=`}) }
	if w := ask(t, answering("x", nil), "/note", nil, hostile); strings.Contains(w.Body.String(), "onload") {
		t.Error("a theme that is none is shown")
	}
}

// What a request names to go on to must be a page of this site.
func TestAPageGoesOnToThisSiteAlone(t *testing.T) {
	t.Parallel()
	for target, want := range map[string]string{
		"/comptes/demo?a=b": "/comptes/demo?a=b", "": "/", "https://evil.example/": "/", "//evil.example": "/", `/\evil.example`: "/",
		"javascript:alert(1)": "/", "comptes": "/", "/%2F/evil": "/%2F/evil", "/\tx": "/", "https:evil": "/",
	} {
		if got := page.LocalPath(target); got != want {
			t.Errorf("%q: %q, want %q", target, got, want)
		}
	}
}

func TestAMethodThatAPageLacksIsToldWithTheOthers(t *testing.T) {
	t.Parallel()
	w := ask(t, answering("x", nil), "/note", nil, func(r *http.Request) { r.Method = "DELETE" })
	if w.Code != 405 || w.Header().Get("Allow") != "GET, POST" {
		t.Errorf("%d %q", w.Code, w.Header().Get("Allow"))
	}
	w = ask(t, answering("x", nil), "/note", nil, func(r *http.Request) { r.Method = "HEAD" })
	if w.Code != 200 {
		t.Errorf("HEAD: %d", w.Code)
	}
}
