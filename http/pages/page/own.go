package page

import (
	"net/http"
	"time"

	"lieudit/schemas/body"
	"lieudit/schemas/grant"
)

// ownSection has the rows that belong to no section: the home page and the choices of the reader.
func (s *Site) ownSection() Section {
	return Section{Rows: []Row{
		{http.MethodGet, "/", true, openHome},
		{http.MethodPost, "/preferences", true, setPreferences},
	}}
}

// openHome sends the reader on to where they begin: their account, or the list of accounts. A service with a single account leads to it.
func openHome(q *Request) (View, error) {
	switch {
	case !q.IsSignedIn():
		return Redirect("/connexion")
	case q.Principal.Account != "":
		return Redirect(Path("/comptes/%s", q.Principal.Account))
	case q.Principal.Role == grant.RoleAuditor:
		return Redirect("/audit")
	}
	found, err := Read[body.Accounts](q, "/accounts?limit=2")
	if err != nil {
		return View{}, err
	}
	if only := found.Results; len(only) == 1 && q.May(http.MethodGet, Path("/accounts/%s", only[0].ID)) {
		return Redirect(Path("/comptes/%s", only[0].ID))
	}
	return Redirect("/comptes")
}

// preferenceLifetime is how long a browser keeps the choices of its reader.
const preferenceLifetime = 365 * 24 * time.Hour

// setPreferences keeps the language and the theme in cookies, and returns to the page where they were chosen.
func setPreferences(q *Request) (View, error) {
	for field, cookie := range map[string]string{"langue": langCookie, "theme": themeCookie} {
		if q.PostForm.Has(field) {
			http.SetCookie(q.writer, &http.Cookie{
				Name: cookie, Value: q.PostForm.Get(field), Path: "/", MaxAge: int(preferenceLifetime.Seconds()), SameSite: http.SameSiteLaxMode,
				HttpOnly: true, Secure: q.Site.URL().Scheme == "https",
			})
		}
	}
	return Redirect(LocalPath(q.PostForm.Get("retour")))
}
