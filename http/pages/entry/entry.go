// Package entry has the pages with which people come in, go, and let others in: a link or a token opens a session, a session makes a link
// for the next device, and an operator or an agency invites somebody. A secret is shown once, in the answer to the
// form that made it, and opening a link changes nothing, because mail scanners open links too: only the button does.
package entry

import (
	"embed"
	"net/http"
	"net/url"
	"strings"

	"lieudit/http/pages/i18n"
	"lieudit/http/pages/page"
	"lieudit/schemas/body"
	"lieudit/schemas/grant"
	"lieudit/schemas/refusal"
	"lieudit/schemas/token"
)

//go:embed *.html
var templates embed.FS

// Section is the pages.
func Section() page.Section {
	return page.Section{
		Templates: templates,
		Rows: []page.Row{
			{Method: http.MethodGet, Path: "/connexion", IsPublic: true, Serve: showLogin},
			{Method: http.MethodPost, Path: "/connexion", IsPublic: true, Serve: enter},
			{Method: http.MethodGet, Path: "/entree/{secret}", IsPublic: true, Serve: showLink},
			{Method: http.MethodPost, Path: "/sortie", Serve: leave},
			{Method: http.MethodGet, Path: "/sessions", Serve: showSessions},
			{Method: http.MethodPost, Path: "/sessions/lien", Serve: makeLink},
			{Method: http.MethodPost, Path: "/sessions/{session}/fin", Serve: endSession},
			{Method: http.MethodGet, Path: "/invitation", Serve: showInvitation},
			{Method: http.MethodPost, Path: "/invitation", Serve: invite},
		},
		Flashes: map[string]i18n.Text{
			"session-fermee": {FR: "La session est fermée.", EN: "The session is closed."},
		},
	}
}

// login is the data of login.html and of link.html.
type login struct {
	Form   *page.Form
	Proof  string // of a link, which the button sends
	Return string // where to go on to
}

func showLogin(q *page.Request) (page.View, error) {
	if q.IsSignedIn() {
		return page.Redirect("/")
	}
	return viewLogin(q, login{Form: &page.Form{}, Return: q.URL.Query().Get("retour")}, http.StatusOK)
}

func viewLogin(q *page.Request, data login, status int) (page.View, error) {
	return page.View{Status: status, Template: "login.html", Title: q.T("Connexion", "Sign in"), Data: data}, nil
}

// showLink shows the button that uses a link. It asks nothing of the service, so that opening the link leaves it unused.
func showLink(q *page.Request) (page.View, error) {
	q.HideAddress()
	return page.View{Template: "link.html", Title: q.T("Bienvenue", "Welcome"), Data: login{Form: &page.Form{}, Proof: q.Vars["secret"]}}, nil
}

// enter opens a session with a link or a token.
func enter(q *page.Request) (page.View, error) {
	form := q.Form()
	_, err := q.Enter(form.Value("preuve"))
	if err != nil {
		status, ok := form.Refuse(q, err, map[refusal.Code]string{refusal.LinkInvalid: "preuve"})
		if !ok {
			return page.View{}, err
		}
		if r, isRefusal := refusal.FromError(err); isRefusal && r.Code == refusal.LinkInvalid {
			form = &page.Form{General: []string{explainProof(q, form.Value("preuve"))}}
		}
		form.Values = url.Values{} // a secret is not sent back
		return viewLogin(q, login{Form: form, Return: q.PostForm.Get("retour")}, status)
	}
	return page.Redirect(page.LocalPath(q.PostForm.Get("retour")))
}

// explainProof says why what was shown opens no session.
func explainProof(q *page.Request, proof string) string {
	switch kind, _ := token.DefaultPrefixes.KindOf(proof[strings.LastIndexByte(proof, '/')+1:]); kind {
	case token.Link:
		return q.T("Ce lien a déjà servi, a expiré ou a été retiré. Demandez-en un autre à qui vous l’a donné.", "This link was used already, has expired or was withdrawn. Ask whoever gave it to you for another one.")
	case token.Secret, token.Publishable:
		return q.T("C’est une clé de l’API. Elle ouvre l’API, et non ces pages : il faut un lien ou un jeton d’accès.", "This is a key of the API. It opens the API and not these pages: use a link or an access token.")
	}
	return q.T("Ce jeton n’est pas valable, ou il a été révoqué.", "This token is not valid, or it was revoked.")
}

// leave ends the session and deletes its cookie.
func leave(q *page.Request) (page.View, error) {
	if err := q.Do(http.MethodDelete, page.Path("/sessions/%s", q.Principal.Session), nil, nil); err != nil {
		return page.View{}, err
	}
	q.Leave()
	return page.Redirect("/connexion")
}

// sessions is the data of sessions.html.
type sessions struct {
	Sessions []body.Session
	Link     *body.SessionLink // just made
}

func showSessions(q *page.Request) (page.View, error) { return viewSessions(q, nil) }

func viewSessions(q *page.Request, link *body.SessionLink) (page.View, error) {
	found, err := page.Read[body.Sessions](q, "/sessions")
	return page.View{
		Template: "sessions.html", Title: q.T("Sessions et appareils", "Sessions and devices"), Data: sessions{found.Results, link},
	}, err
}

// makeLink makes a link for another device, and shows it once.
func makeLink(q *page.Request) (page.View, error) {
	var link body.SessionLink
	if err := q.Do(http.MethodPost, "/sessions:link", struct{}{}, &link); err != nil {
		return page.View{}, err
	}
	return viewSessions(q, &link)
}

// endSession ends a session of the reader; its own one is a way to leave.
func endSession(q *page.Request) (page.View, error) {
	if q.Vars["session"] == q.Principal.Session {
		return leave(q)
	}
	if err := q.Do(http.MethodDelete, page.Path("/sessions/%s", q.Vars["session"]), nil, nil); err != nil {
		return page.View{}, err
	}
	return page.Redirect("/sessions?fait=session-fermee")
}

// invitation is the data of invitation.html.
type invitation struct {
	Form  *page.Form
	Roles []roleChoice
	Link  *body.SessionLink // just made
}

// roleChoice is a role that the reader may invite for.
type roleChoice struct {
	Role         grant.Role
	Name, About  string
	NeedsAccount bool
}

func showInvitation(q *page.Request) (page.View, error) {
	form := &page.Form{Values: url.Values{"account": {q.URL.Query().Get("compte")}, "role": {string(grant.RoleCustomer)}}}
	return viewInvitation(q, invitation{Form: form}, http.StatusOK)
}

func viewInvitation(q *page.Request, data invitation, status int) (page.View, error) {
	if !q.May(http.MethodPost, "/invitations") {
		return page.View{}, refusal.NotFound
	}
	data.Roles = rolesToInvite(q)
	return page.View{Status: status, Template: "invitation.html", Title: q.T("Inviter quelqu’un", "Invite somebody"), Data: data}, nil
}

// rolesToInvite are the roles that the reader may let in: an agency lets in customers alone.
func rolesToInvite(q *page.Request) []roleChoice {
	about := []struct {
		role grant.Role
		text i18n.Text
	}{
		{grant.RoleCustomer, i18n.Text{FR: "gère un compte : ses clés, son usage", EN: "looks after one account: its keys, its usage"}},
		{grant.RoleAgency, i18n.Text{FR: "gère les comptes de ses propres clients", EN: "looks after the accounts of its own customers"}},
		{grant.RoleBilling, i18n.Text{FR: "lit l’usage de tous les comptes et le corrige", EN: "reads the usage of all accounts and corrects it"}},
		{grant.RoleAuditor, i18n.Text{FR: "lit l’historique de tous les comptes, sans rien changer", EN: "reads the history of all accounts and changes nothing"}},
		{grant.RoleOperator, i18n.Text{FR: "peut tout faire dans ce service", EN: "may do everything in this service"}},
	}
	if q.Principal.Role == grant.RoleAgency {
		about = about[:1]
	}
	var all []roleChoice
	for _, r := range about {
		all = append(all, roleChoice{r.role, page.RoleText(r.role).In(q.Print.Lang), r.text.In(q.Print.Lang), r.role == grant.RoleCustomer || r.role == grant.RoleAgency})
	}
	return all
}

// invite makes a link for somebody, and shows it once.
func invite(q *page.Request) (page.View, error) {
	form := q.Form()
	in := body.Invite{Role: grant.Role(form.Value("role")), Account: form.Value("account"), Label: form.Value("label")}
	if in.Role != grant.RoleCustomer && in.Role != grant.RoleAgency {
		in.Account = "" // the field was filled in for another role
	} else if in.Account == "" {
		form.AddError("account", q.T("Ce rôle agit pour un compte : écrivez son identifiant.", "This role acts for an account: type its id."))
		return viewInvitation(q, invitation{Form: form}, http.StatusUnprocessableEntity)
	}
	var link body.SessionLink
	if err := q.Do(http.MethodPost, "/invitations", in, &link); err != nil {
		if problemIsUnknownAccount(err) {
			form.AddError("account", q.T("Ce compte n’existe pas.", "There is no such account."))
			return viewInvitation(q, invitation{Form: form}, http.StatusUnprocessableEntity)
		}
		status, ok := form.Refuse(q, err, map[refusal.Code]string{refusal.AccountClosed: "account"})
		if !ok {
			return page.View{}, err
		}
		return viewInvitation(q, invitation{Form: form}, status)
	}
	return viewInvitation(q, invitation{Form: &page.Form{}, Link: &link}, http.StatusOK)
}

func problemIsUnknownAccount(err error) bool {
	r, ok := refusal.FromError(err)
	return ok && r.Code == refusal.NotFound
}
