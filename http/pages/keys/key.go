package keys

import (
	"net/http"
	"net/url"

	"lieudit/http/pages/page"
	"lieudit/schemas/body"
	"lieudit/schemas/refusal"
)

// keyPage is the data of key.html, and of the parts of it that change while it is open.
type keyPage struct {
	Account    body.Account
	List       string
	Path       string
	Key        shownKey
	Examples   examples
	Replaces   string // path of the rotation in which the key is the new one, or the old one
	ReplacedBy string
	MayChange  bool
}

func loadKeyPage(q *page.Request) (keyPage, error) {
	account, err := loadAccount(q)
	if err != nil {
		return keyPage{}, err
	}
	k, err := page.Read[body.Key](q, keyOperation(q, q.Vars["key"], "/accounts/%s/keys/%s"))
	if err != nil {
		return keyPage{}, err
	}
	data := keyPage{
		Account: account, List: listPath(q), Path: keyPath(q, k.ID, ""), Key: newShownKey(k, q.Site.Now()), Examples: newExamples(q, k),
		MayChange: mayChange(q) && account.Closed.IsZero() && k.Revoked.IsZero(),
	}
	if k.Replaces != "" {
		data.Replaces = keyPath(q, k.Replaces, "/rotation")
	}
	if k.ReplacedBy != "" {
		data.ReplacedBy = keyPath(q, k.ID, "/rotation")
	}
	return data, nil
}

func showKey(q *page.Request) (page.View, error) {
	data, err := loadKeyPage(q)
	if err != nil {
		return page.View{}, err
	}
	lines, err := loadLines(q)
	if err != nil {
		return page.View{}, err
	}
	data.Key.setLine(q, lines)
	return page.View{Template: "key.html", Title: data.Key.Name(), Current: data.List, Data: data}, nil
}

// followKey sends when the key was used last, as it is used.
func followKey(q *page.Request) (page.View, error) {
	return q.Live(func() ([]page.Fragment, error) {
		data, err := loadKeyPage(q)
		return []page.Fragment{{ID: "use", Template: "use", Data: data}, {ID: "use-time", Template: "use-time", Data: data}}, err
	}), nil
}

// revocation is the data of revoke.html.
type revocation struct {
	keyPage
	Form *page.Form
}

func showRevocation(q *page.Request) (page.View, error) {
	data, err := loadKeyPage(q)
	if err != nil {
		return page.View{}, err
	}
	if !data.Key.IsValid() {
		return page.Redirect(data.Path)
	}
	return viewRevocation(q, revocation{data, &page.Form{}}, http.StatusOK)
}

func viewRevocation(q *page.Request, data revocation, status int) (page.View, error) {
	if !mayChange(q) {
		return page.View{}, refusal.NotFound
	}
	return page.View{Status: status, Template: "revoke.html", Title: q.T("Révoquer la clé", "Revoke the key"), Current: data.List, Data: data}, nil
}

// revoke ends the key, if its id was typed again. A second time changes nothing. The form of a rotation leads back to it.
func revoke(q *page.Request) (page.View, error) {
	form := q.Form()
	if form.Value("id") != q.Vars["key"] {
		form.AddError("id", q.T("Ce n’est pas l’identifiant de cette clé.", "This is not the id of this key."))
		return refuseRevocation(q, form, http.StatusUnprocessableEntity)
	}
	if err := q.Do(http.MethodPost, keyOperation(q, q.Vars["key"], "/accounts/%s/keys/%s:revoke"), body.RevokeKey{Reason: form.Value("reason")}, nil); err != nil {
		status, ok := form.Refuse(q, err, nil)
		if !ok {
			return page.View{}, err
		}
		return refuseRevocation(q, form, status)
	}
	rest := ""
	if form.Value("suite") == "rotation" {
		rest = "/rotation"
	}
	return page.Redirect(keyPath(q, q.Vars["key"], rest) + "?fait=cle-revoquee")
}

// refuseRevocation shows the form again, on the page that it was sent from.
func refuseRevocation(q *page.Request, form *page.Form, status int) (page.View, error) {
	if form.Value("suite") == "rotation" {
		return viewRotation(q, rotationPage{Revoke: form}, status)
	}
	data, err := loadKeyPage(q)
	if err != nil {
		return page.View{}, err
	}
	return viewRevocation(q, revocation{data, form}, status)
}

// typedReason is the form of a revocation with a reason filled in.
func typedReason(reason string) *page.Form {
	return &page.Form{Values: url.Values{"reason": {reason}}}
}
