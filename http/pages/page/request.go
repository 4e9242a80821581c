package page

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"html/template"
	"net/http"
	"net/url"

	"lieudit/http/customerarea"
	"lieudit/http/pages/i18n"
	"lieudit/schemas/body"
)

// Request is a request of a page.
type Request struct {
	*http.Request
	Vars      map[string]string // of the path, unescaped
	Principal customerarea.Principal
	Print     i18n.Printer
	Theme     string // "light", "dark", or "" for what the system has
	Site      *Site

	templates   *template.Template
	writer      http.ResponseWriter // for cookies
	account     *body.Account       // of the path, once it is loaded
	accountName string              // of the path, once it is known
}

// Names of the cookies that hold the reader's choices.
const (
	langCookie  = "lieudit-lang"
	themeCookie = "lieudit-theme"
)

func (s *Site) newRequest(w http.ResponseWriter, r *http.Request) *Request {
	q := &Request{Request: r, Site: s, writer: w, Print: i18n.Printer{Lang: i18n.Negotiate(r.Header.Get("Accept-Language")), Now: s.Now}}
	if c, err := r.Cookie(langCookie); err == nil {
		if chosen, ok := i18n.Parse(c.Value); ok {
			q.Print.Lang = chosen
		}
	}
	if c, err := r.Cookie(themeCookie); err == nil && isTheme(c.Value) {
		q.Theme = c.Value
	}
	q.templates = s.errors[q.Print.Lang]
	return q
}

func isTheme(text string) bool { return text == "light" || text == "dark" }

// T is a phrase in the language of the reader.
func (q *Request) T(fr, en string, args ...any) string { return q.Print.T(fr, en, args...) }

// IsSignedIn reports whether the request has a session.
func (q *Request) IsSignedIn() bool { return q.Principal.TokenID != "" }

// Do carries out an operation of the customer area. target is its path below the base, with its query; Path builds it.
func (q *Request) Do(method, target string, in, out any) error {
	return q.Site.area.Do(q.Context(), q.Principal, method, target, in, out)
}

// DoOnce is Do for a form that may be sent twice: by a double click, by the back button, or after an answer that was lost. key names what
// was filled in; NewFormKey makes one for each form that is shown. The operation must know the header Idempotency-Key.
func (q *Request) DoOnce(key, method, target string, in, out any) error {
	return q.Site.area.Do(customerarea.WithIdempotencyKey(q.Context(), key), q.Principal, method, target, in, out)
}

// NewFormKey makes the key of a form, for DoOnce. It stands in a hidden field.
func NewFormKey() string { return rand.Text() }

// Read asks an operation for a T.
func Read[T any](q *Request, target string) (T, error) {
	var out T
	err := q.Do(http.MethodGet, target, nil, &out)
	return out, err
}

// May reports whether the operation would be allowed. Links and buttons to what is not allowed are not shown.
func (q *Request) May(method, target string) bool {
	return q.IsSignedIn() && q.Site.area.May(q.Context(), q.Principal, method, target)
}

// Send is the view of a file that an operation streams.
func (q *Request) Send(target, filename string) View {
	return View{Stream: func(w http.ResponseWriter, r *http.Request) error {
		w.Header().Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", filename))
		err := q.Site.area.Send(w, r, q.Principal, target)
		if err != nil {
			w.Header().Del("Content-Disposition")
		}
		return err
	}}
}

// Enter opens a session with a link or a token, and sets its cookie on the answer.
func (q *Request) Enter(proof string) (body.Session, error) {
	return q.Site.area.Enter(q.writer, q.Request, proof)
}

// Leave deletes the cookie of the session, and what the browser keeps of the pages.
func (q *Request) Leave() {
	q.Site.area.Leave(q.writer)
	q.writer.Header().Set("Clear-Site-Data", `"cache", "storage"`)
}

// HideAddress keeps the path of this page out of the requests that follow from it: it holds a secret, and proxies log where requests came
// from. The origin stays, since a form without one is refused as foreign.
func (q *Request) HideAddress() { q.writer.Header().Set("Referrer-Policy", "strict-origin") }

// Account returns the account of the path, {account}. It is loaded once.
func (q *Request) Account() (body.Account, error) {
	if q.account == nil {
		a, err := Read[body.Account](q, Path("/accounts/%s", q.Vars["account"]))
		if err != nil {
			return body.Account{}, err
		}
		q.account = &a
		q.NameAccount(cmp.Or(a.Name, a.ID))
	}
	return *q.account, nil
}

// NameAccount gives the layout the name of the account of the path, for pages that do not load the account.
func (q *Request) NameAccount(name string) { q.accountName = name }

// Path builds a path from a pattern. Each %s is a part, which is escaped.
func Path(pattern string, parts ...string) string {
	escaped := make([]any, len(parts))
	for i, p := range parts {
		escaped[i] = url.PathEscape(p)
	}
	return fmt.Sprintf(pattern, escaped...)
}

// LocalPath returns a path of these pages to go on to, which a request named. Anything else, such as another site, is the home page.
func LocalPath(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.IsAbs() || u.Host != "" || len(text) < 1 || text[0] != '/' || len(text) > 1 && (text[1] == '/' || text[1] == '\\') {
		return "/"
	}
	return u.RequestURI()
}
