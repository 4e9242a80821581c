package page

import (
	"net/http"
	"net/url"

	"lieudit/http/kit"
	"lieudit/http/pages/i18n"
	"lieudit/http/pages/refusals"
	"lieudit/http/problem"
	"lieudit/schemas/refusal"
)

// errorPage is the data of error.html.
type errorPage struct {
	What, Do string
	Retry    bool       // the request can be sent again
	Kept     url.Values // what was typed, if the request was a form
	Home     string     // where to go
	HomeText string
}

// secretFields are the fields that are never sent back in a page.
var secretFields = []string{"preuve", "cle"}

// keep keeps what was typed in a form, so that it can be sent again. A secret is not sent back: whoever typed one goes back to the form.
func (e *errorPage) keep(q *Request) {
	for _, name := range secretFields {
		if q.PostForm.Has(name) {
			e.Retry = false
			if from, err := url.Parse(q.Referer()); err == nil && from.Path != "" && from.Host == q.Site.URL().Host {
				e.Home, e.HomeText = from.RequestURI(), q.T("Revenir au formulaire", "Back to the form")
			}
			return
		}
	}
	e.Kept = q.PostForm
}

// writeError answers with a page about an error. Whoever needs a session is sent to the page that opens one, and comes back.
func (s *Site) writeError(q *Request, err error) {
	p, isKnown := problem.FromError(err)
	code := p.Code
	needsSession := code == refusal.KeyRequired || code == refusal.KeyInvalid
	if needsSession && q.Method == http.MethodGet {
		s.write(q, View{Redirect: "/connexion?retour=" + url.QueryEscape(q.URL.RequestURI())})
		return
	}
	if !isKnown {
		s.Log.Error("page failed", "path", q.URL.Path, "error", err)
	}
	shown := errorPage{Home: "/", HomeText: q.T("Retour à l’accueil", "Back to the home page"), Retry: p.Status >= 500}
	if needsSession {
		code, shown.Retry = refusal.KeyInvalid, true
		shown.Home, shown.HomeText = "/connexion", q.T("Se connecter dans un autre onglet", "Sign in in another tab")
	}
	known, ok := refusals.For(code)
	if !ok { // broken rules have no code
		known.Cause = i18n.Text{FR: "La demande est refusée", EN: "The request was refused"}
	}
	shown.What, shown.Do = q.Print.Text(known.What()), q.Print.Text(known.Do())
	if code == refusal.Misdirected {
		shown.Home, shown.HomeText = s.URL().String(), s.URL().String()
	}
	if q.Method == http.MethodPost && shown.Retry {
		shown.keep(q)
	}
	if p.Allow != "" {
		q.writer.Header().Set("Allow", p.Allow)
	}
	q.templates = s.errors[q.Print.Lang]
	if err := s.writePage(q, View{Status: p.Status, Template: "error.html", Title: shown.What, Data: shown}); err != nil {
		kit.WriteError(q.writer, s.Log, err)
	}
}
