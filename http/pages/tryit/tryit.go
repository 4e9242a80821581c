// Package tryit has the page on which a request to the API can be tried with one's own key. It is part of the documentation, for whoever
// has a session. A browser gets nothing from the API with a secret key, so the request goes through the API's own handler in this
// process: with the same checks, counted like any other, under the address of whoever asks.
//
// The key is in the form that was sent and in the request that is made of it, and nowhere else. It is not kept, not logged,
// and not sent back.
//
//	form ─> newCall (path, query, body) ─> Page.send ─> the API ─> recorder ─> result: status, answer, the request as curl
package tryit

import (
	"context"
	"embed"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"lieudit/http/pages/docs/reference"
	"lieudit/http/pages/i18n"
	"lieudit/http/pages/page"
	"lieudit/http/throttle"
)

//go:embed *.html
var templates embed.FS

// A session may try one request a second, and ten at once.
const (
	interval = time.Second
	burst    = 10
)

// timeout is how long an answer may take.
const timeout = time.Minute

// Page is the page, with the API that it asks.
type Page struct {
	api   http.Handler
	tries *throttle.Throttle // by session
}

// Section is the page over the handler of the API.
func Section(api http.Handler) page.Section {
	p := &Page{api: api, tries: throttle.New(interval, burst)}
	return page.Section{
		Templates: templates,
		Rows: []page.Row{
			{Method: http.MethodGet, Path: "/api/essai", Serve: p.show},
			{Method: http.MethodPost, Path: "/api/essai", Serve: p.try},
		},
	}
}

// Names of fields of the form. Parameters have a prefix, so that none has the name of another field.
const (
	keyField, originField, bodyField = "cle", "origine", "corps"
	pathPrefix, queryPrefix          = "chemin.", "query."
	headerPrefix                     = "entete."
)

// trial is the data of tryit.html.
type trial struct {
	Tags      []reference.Tag
	Operation *reference.Operation
	Method    *reference.Method
	Form      *page.Form
	Parts     []part
	Result    *result
}

// part is a part of the request in the form.
type part struct {
	Name   i18n.Text
	Prefix string
	Fields []reference.Field
}

// Others are the fields of a part that need not be filled in and are not: they are folded away.
func (t trial) Others(p part) (all []reference.Field) {
	for _, f := range p.Fields {
		name := p.Prefix + f.Name
		if !f.IsRequired && t.Form.Value(name) == "" && t.Form.ErrorsOf(name) == nil {
			all = append(all, f)
		}
	}
	return all
}

// result is the answer to a request.
type result struct {
	Status     int
	StatusText string
	MediaType  string
	Answer     string
	IsCut      bool // the answer is longer than what is shown
	Elapsed    time.Duration
	Request    string // its first line and its headers
	Curl       string
	IsCounted  bool
}

// IsGood reports whether the request succeeded.
func (r result) IsGood() bool { return r.Status < 400 }

// Milliseconds is how long the answer took.
func (r result) Milliseconds() int64 { return r.Elapsed.Milliseconds() }

// newTrial is the form for the operation and the method that the request names, or the first ones.
func newTrial(chosen url.Values) trial {
	t := trial{Tags: triableTags(), Form: &page.Form{Values: url.Values{}}}
	t.Operation = reference.Find(reference.FirstExample.Operation)
	if op := reference.Find(chosen.Get("operation")); op != nil && isTriable(op) {
		t.Operation = op
	}
	t.Method = &t.Operation.Methods[0]
	for i, m := range t.Operation.Methods {
		if m.Method == chosen.Get("methode") {
			t.Method = &t.Operation.Methods[i]
		}
	}
	for _, p := range []part{
		{i18n.Text{FR: "Dans le chemin", EN: "In the path"}, pathPrefix, t.Method.Variables},
		{i18n.Text{FR: "Paramètres", EN: "Parameters"}, queryPrefix, t.Method.Query},
		{i18n.Text{FR: "En-têtes", EN: "Headers"}, headerPrefix, t.Method.Headers},
	} {
		if len(p.Fields) > 0 {
			t.Parts = append(t.Parts, p)
		}
	}
	return t
}

// isTriable reports whether an operation of the API can be tried: files are not sent through the page.
func isTriable(op *reference.Operation) bool { return !op.IsArea && op.Methods[0].Form == nil }

func triableTags() (all []reference.Tag) {
	for _, t := range reference.API().Tags {
		t.Operations = slices.DeleteFunc(slices.Clone(t.Operations), func(op *reference.Operation) bool { return !isTriable(op) })
		if len(t.Operations) > 0 {
			all = append(all, t)
		}
	}
	return all
}

func (p *Page) show(q *page.Request) (page.View, error) {
	t := newTrial(q.URL.Query())
	e := reference.FirstExample
	if t.Method.Slug != e.Operation {
		i := slices.IndexFunc(t.Operation.Examples, func(e reference.Example) bool { return e.Operation == t.Method.Slug })
		if i < 0 {
			return t.view(q, http.StatusOK), nil
		}
		e = t.Operation.Examples[i]
	}
	t.fillWith(e.Request)
	return t.view(q, http.StatusOK), nil
}

func (t trial) view(q *page.Request, status int) page.View {
	return page.View{Status: status, Template: "tryit.html", Title: q.T("Essayer une requête", "Try a request"), Data: t}
}

// fillWith fills the form with a request.
func (t trial) fillWith(e reference.ExampleRequest) {
	values, err := url.ParseQuery(e.Query())
	if err != nil {
		return
	}
	for name, all := range values {
		t.Form.Values.Set(queryPrefix+name, strings.Join(all, "\n"))
	}
	typed, pattern := strings.Split(e.Path(), "/"), strings.Split(t.Method.Path, "/")
	for i, segment := range pattern {
		for _, v := range t.Method.Variables {
			if rest, ok := strings.CutPrefix(segment, "{"+v.Name+"}"); ok && i < len(typed) {
				if text, err := url.PathUnescape(strings.TrimSuffix(typed[i], rest)); err == nil {
					t.Form.Values.Set(pathPrefix+v.Name, text)
				}
			}
		}
	}
	t.Form.Values.Set(bodyField, reference.IndentJSON(e.Body))
}

// try sends the request of the form. The page that answers has what was typed, without the key.
func (p *Page) try(q *page.Request) (page.View, error) {
	t := newTrial(q.PostForm)
	t.Form = q.Form()
	key := t.Form.Value(keyField)
	t.Form.Values.Del(keyField)
	if key == "" && !t.Operation.IsPublic {
		t.Form.AddError(keyField, q.T("Collez une clé de votre compte.", "Paste a key of your account."))
	}
	for _, v := range t.Method.Variables {
		if t.Form.Value(pathPrefix+v.Name) == "" {
			t.Form.AddError(pathPrefix+v.Name, q.T("Ce champ est à remplir.", "Please fill in this field."))
		}
	}
	if strings.ContainsFunc(key, func(r rune) bool { return r < '!' || r > '~' }) {
		t.Form.AddError(keyField, q.T("Une clé n’a ni espace ni accent.", "A key has no spaces and no accents."))
	}
	if t.Form.HasErrors() {
		return t.view(q, http.StatusUnprocessableEntity), nil
	}
	if !p.tries.Allow(netip.Addr{}, q.Principal.Session, time.Now()) {
		t.Form.AddError("", q.T("Trop d’essais à la suite : attendez quelques secondes. Rien n’a été envoyé.", "Too many tries in a row: wait a few seconds. Nothing was sent."))
		return t.view(q, http.StatusTooManyRequests), nil
	}
	ctx, cancel := context.WithTimeout(q.Context(), timeout)
	defer cancel()
	sent := newCall(t)
	answer, elapsed := p.send(ctx, q.Request, sent, key)
	t.Result = newResult(t.Operation, sent, answer, elapsed, q.Site.API().String())
	return t.view(q, http.StatusOK), nil
}
