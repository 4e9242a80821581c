package staff

import (
	"net/http"
	"net/url"
	"strings"

	"lieudit/http/pages/page"
	"lieudit/schemas/body"
	"lieudit/schemas/refusal"
)

// access is the data of access.html.
type access struct {
	Invitations []accessToken // nobody has come in with them yet
	Valid       []accessToken
	Revoked     []accessToken
	Next        string // path of the page after
}

// accessToken is a token in words.
type accessToken struct {
	body.AreaToken
	RoleName  string
	CreatedBy string
	RevokedBy string
	IsOwn     bool // the session is one of it
}

const tokensPerPage = "1000" // they are few: one for each person

// showAccess lists the tokens, the newest first.
func showAccess(q *page.Request) (page.View, error) {
	target := "/tokens?limit=" + tokensPerPage
	if cursor := q.URL.Query().Get("curseur"); cursor != "" {
		target += "&curseur=" + url.QueryEscape(cursor)
	}
	found, err := page.Read[body.AreaTokens](q, target)
	if err != nil {
		return page.View{}, err
	}
	data, labels := access{}, labelsOf(found.Results)
	for i := len(found.Results) - 1; i >= 0; i-- {
		shown := newAccessToken(q, found.Results[i], labels)
		switch {
		case !shown.Revoked.IsZero():
			data.Revoked = append(data.Revoked, shown)
		case !shown.Invited.IsZero():
			data.Invitations = append(data.Invitations, shown)
		default:
			data.Valid = append(data.Valid, shown)
		}
	}
	if found.Cursor != "" {
		data.Next = "/acces?curseur=" + url.QueryEscape(found.Cursor)
	}
	return page.View{Template: "access.html", Title: q.T("Accès", "Access"), Current: "/acces", Data: data}, nil
}

// labelsOf are the labels of tokens by who they are in the fields cree_par and revoque_par.
func labelsOf(tokens []body.AreaToken) map[string]string {
	labels := map[string]string{}
	for _, t := range tokens {
		labels["token:"+t.ID] = t.Label
	}
	return labels
}

func newAccessToken(q *page.Request, t body.AreaToken, labels map[string]string) accessToken {
	name := func(actor string) string {
		switch label := labels[actor]; {
		case label != "":
			return label
		case actor == "system":
			return q.T("le service", "the service")
		}
		return strings.TrimPrefix(actor, "token:")
	}
	return accessToken{
		AreaToken: t, RoleName: page.RoleText(t.Role).In(q.Print.Lang), CreatedBy: name(t.CreatedBy), RevokedBy: name(t.RevokedBy), IsOwn: t.ID == q.Principal.TokenID,
	}
}

// revocation is the data of revocation.html.
type revocation struct {
	Form  *page.Form
	Token accessToken
}

func showRevocation(q *page.Request) (page.View, error) {
	return viewRevocation(q, &page.Form{}, http.StatusOK)
}

func viewRevocation(q *page.Request, form *page.Form, status int) (page.View, error) {
	t, err := findToken(q)
	if err != nil {
		return page.View{}, err
	}
	return page.View{Status: status, Template: "revocation.html", Title: q.T("Révoquer un accès", "Revoke access"), Current: "/acces", Data: revocation{form, t}}, nil
}

// findToken finds the token of the path in the list: tokens cannot be read one by one.
func findToken(q *page.Request) (accessToken, error) {
	target := "/tokens?limit=" + tokensPerPage
	for cursor := ""; ; {
		found, err := page.Read[body.AreaTokens](q, target+cursor)
		if err != nil {
			return accessToken{}, err
		}
		for _, t := range found.Results {
			if t.ID == q.Vars["token"] {
				return newAccessToken(q, t, labelsOf(found.Results)), nil
			}
		}
		if found.Cursor == "" {
			return accessToken{}, refusal.NotFound
		}
		cursor = "&curseur=" + url.QueryEscape(found.Cursor)
	}
}

// revoke ends an access. Whoever ends their own is sent to the page where they can come in again.
func revoke(q *page.Request) (page.View, error) {
	form := q.Form()
	in := body.RevokeToken{Reason: form.Value("reason")}
	if err := q.Do(http.MethodPost, page.Path("/tokens/%s:revoke", q.Vars["token"]), in, nil); err != nil {
		status, ok := form.Refuse(q, err, nil)
		if !ok {
			return page.View{}, err
		}
		return viewRevocation(q, form, status)
	}
	if q.Vars["token"] == q.Principal.TokenID {
		q.Leave()
		return page.Redirect("/connexion")
	}
	return page.Redirect("/acces?fait=acces-revoque")
}
