// Package page is what the web pages are made of: rows of a table, the request of a row, the views that rows answer with, the layout
// around them, and the checks before them. It knows no page by itself. A page asks for operations of the customer area
// alone (Request.Do), as whoever is in the session, so that it can do nothing that the JSON cannot.
//
//	request ─> Site.ServeHTTP ─> headers, host ─> router.Match ─> Area.Authenticate ─> Row.Serve ─> View
//	                                                 row           cookie               │            │
//	                                                                                    v            v
//	                                                               Area.Do (operations of the JSON)  layout, template, 303, stream
//
// Sections of pages are packages of their own (pages/keys, pages/usage, …), each a Section: rows, templates and a test. Every row works
// without JavaScript: links and forms, answered by a page or a 303. Scripts add to it: see package assets.
//
// A row that fails returns the error, which becomes a page with what to do. What a form was refused for is shown in the form: Form keeps
// what was typed, and has the violations of each field.
package page

import (
	"context"
	"errors"
	"html/template"
	"io/fs"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"

	"lieudit/http/customerarea"
	"lieudit/http/pages/assets"
	"lieudit/http/pages/i18n"
	"lieudit/http/router"
	"lieudit/schemas/body"
	"lieudit/schemas/refusal"
)

// Area has the operations of the customer area, and the sessions. It is a customerarea.Area.
type Area interface {
	Do(ctx context.Context, p customerarea.Principal, method, target string, in, out any) error
	Send(w http.ResponseWriter, r *http.Request, p customerarea.Principal, target string) error
	May(ctx context.Context, p customerarea.Principal, method, target string) bool
	Authenticate(*http.Request) (customerarea.Principal, error)
	Enter(w http.ResponseWriter, r *http.Request, proof string) (body.Session, error)
	Leave(http.ResponseWriter)
}

// Env is what the pages run in. Every part is required.
type Env struct {
	URL        func() *url.URL // where people reach the pages
	API        func() *url.URL // where customers reach the API, as examples show it
	APIHandler http.Handler    // the API itself, for requests that are tried in the documentation
	Now        func() time.Time
	Log        *slog.Logger
	Version    string
	IsInvented func() bool // the addresses that are served are invented, and every page says so
	IsStopping func() bool // the service is to end: streams of events end then
}

// Row is a row of the table of pages. Path is a pattern of gorilla/mux.
type Row struct {
	Method, Path string
	IsPublic     bool // needs no session; a request with one has its principal nevertheless
	Serve        func(*Request) (View, error)
}

// Section is a group of pages. The names of its templates are those of their files, and of what they define.
type Section struct {
	Rows      []Row
	Templates fs.FS // *.html
	// Flashes are what forms did, by the value of the parameter fait with which they lead on to a page.
	Flashes map[string]i18n.Text
}

// View is what a row answers with: a template with its data, a redirection, or a stream. The zero Status is 200.
type View struct {
	Status   int
	Template string   // the name of the file
	Title    string   // of the document, in the language of the reader
	Current  string   // path of the entry in the navigation that the page belongs to
	Data     any      // .Data in the template
	IsWide   bool     // the page uses the whole width
	Scripts  []string // modules besides app.js, by their names in package assets
	Redirect string   // path to go on to, with 303
	// IsFragment sends the template alone, for a part of a page that the script replaces.
	IsFragment bool
	// Stream, if not nil, writes the whole answer: a file or events. Its error means that nothing was sent.
	Stream func(http.ResponseWriter, *http.Request) error
}

// Redirect is the view that sends the browser on, after a form that succeeded. Path builds the path.
func Redirect(path string) (View, error) { return View{Redirect: path}, nil }

// Site serves the pages of all sections. It is safe for concurrent use.
type Site struct {
	Env
	area    Area
	assets  assets.Set
	table   *router.Table[tableRow]
	paths   map[string]bool // that GET has, as patterns
	flashes map[string]i18n.Text
	streams streamCounts
	errors  map[i18n.Lang]*template.Template // of pages without a row
}

// tableRow is a row with the templates of its section, by language.
type tableRow struct {
	Row
	templates map[i18n.Lang]*template.Template
}

// New is the handler of the pages. It panics if a template does not parse: templates are part of the program.
func New(area Area, env Env, sections ...Section) *Site {
	s := &Site{Env: env, area: area, assets: assets.Load(), paths: map[string]bool{}, flashes: map[string]i18n.Text{}}
	s.errors = s.parseTemplates(nil)
	var rows []tableRow
	for _, section := range append(sections, s.ownSection()) {
		templates := s.parseTemplates(section.Templates)
		maps.Copy(s.flashes, section.Flashes)
		for _, r := range section.Rows {
			rows = append(rows, tableRow{r, templates})
			s.paths[r.Path] = true
		}
	}
	s.table = router.New("", rows, func(r tableRow) router.Pattern { return router.Pattern{Method: r.Method, Path: r.Path} })
	return s
}

// ServeHTTP answers a request. Caches keep no page; they keep the assets.
func (s *Site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.setHeaders(w.Header())
	if strings.HasPrefix(r.URL.Path, assets.Prefix) {
		s.assets.Serve(w, r)
		return
	}
	q := s.newRequest(w, r)
	v, err := s.serve(q)
	if err == nil {
		err = s.write(q, v)
	}
	if err != nil {
		s.writeError(q, err)
	}
}

// maxFormBytes is the most that a form may have.
const maxFormBytes = 64 << 10

// serve finds the row, checks the session and asks the row for its view.
func (s *Site) serve(q *Request) (View, error) {
	if !strings.EqualFold(q.Host, s.URL().Host) {
		return View{}, refusal.Misdirected
	}
	if q.Method == http.MethodHead { // net/http sends no body of an answer to HEAD
		q.Method = http.MethodGet
	}
	row, vars, err := s.table.Match(q.Request, false)
	if err != nil {
		return View{}, err
	}
	q.Vars, q.templates = vars, row.templates[q.Print.Lang]
	if q.Method == http.MethodPost {
		q.Body = http.MaxBytesReader(q.writer, q.Body, maxFormBytes)
		if err := q.ParseForm(); err != nil {
			return View{}, err
		}
	}
	if q.Principal, err = s.area.Authenticate(q.Request); err != nil && (!row.IsPublic || errors.Is(err, refusal.ForeignPage)) {
		return View{}, err
	}
	return row.Serve(q)
}

// setHeaders sets what every answer has. Styles and scripts are files of this origin; nothing is loaded from elsewhere, and no other page
// may show one of these in a frame.
func (s *Site) setHeaders(h http.Header) {
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "+
		"form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types lieudit")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin") // without any referrer, a form has the origin null and is refused as foreign
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=(), payment=()")
	if s.URL().Scheme == "https" {
		h.Set("Strict-Transport-Security", "max-age=31536000")
	}
}
