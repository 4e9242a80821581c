package keys

import (
	"cmp"
	"net/http"
	"net/url"

	"lieudit/http/pages/page"
	"lieudit/schemas/body"
	"lieudit/schemas/plan"
	"lieudit/schemas/refusal"
	"lieudit/schemas/token"
)

// formKeyField is the hidden field with the name that the service knows a form by. It has no other meaning.
const formKeyField = "demande"

// newForm is the data of new.html.
type newForm struct {
	Account  body.Account
	Path     string // of the form
	List     string
	Verdict  string // path of the verdicts
	Form     *page.Form
	FormKey  string
	Slots    slots
	Verdicts *verdicts // of what was typed
}

// slots are the publishable keys that the account's plan has, and how many of them are taken.
type slots struct {
	Plan       plan.Name
	Most, Used int
}

// None reports whether the plan includes no publishable key, and Full whether all are taken.
func (s slots) None() bool { return s.Most == 0 }
func (s slots) Full() bool { return s.Used >= s.Most }

// countSlots reckons the publishable keys of an account.
func countSlots(a body.Account, all []shownKey) slots {
	p, _ := plan.Lookup(a.Plan)
	s := slots{Plan: a.Plan, Most: p.MaxPublishableKeys}
	for _, k := range all {
		if k.IsPublishable() && k.IsValid() {
			s.Used++
		}
	}
	return s
}

func showForm(q *page.Request) (page.View, error) {
	form := &page.Form{Values: url.Values{"kind": {cmp.Or(q.URL.Query().Get("genre"), string(token.Secret))}}}
	return viewForm(q, form, page.NewFormKey(), http.StatusOK)
}

// viewForm shows the form, with verdicts on the origins that were typed.
func viewForm(q *page.Request, form *page.Form, formKey string, status int) (page.View, error) {
	if !mayChange(q) {
		return page.View{}, refusal.NotFound
	}
	account, err := loadAccount(q)
	if err != nil {
		return page.View{}, err
	}
	all, _, err := loadKeys(q)
	if err != nil {
		return page.View{}, err
	}
	data := newForm{
		Account: account, Path: listPath(q) + "/nouvelle", List: listPath(q), Verdict: listPath(q) + "/verdict", Form: form, FormKey: formKey,
		Slots: countSlots(account, all),
	}
	if typed := form.Lines("origins"); len(typed) > 0 {
		if data.Verdicts, err = judge(q, typed); err != nil {
			return page.View{}, err
		}
	}
	return page.View{Status: status, Template: "new.html", Title: q.T("Nouvelle clé", "New key"), Current: data.List, Data: data}, nil
}

// issue issues the key of the form and shows it. The same form again shows the same key.
func issue(q *page.Request) (page.View, error) {
	form := q.Form()
	in := body.IssueKey{Kind: token.Kind(form.Value("kind")), Label: form.Value("label")}
	if in.Kind == token.Publishable {
		in.Origins = form.Lines("origins")
	}
	var made body.Key
	if err := q.DoOnce(cmp.Or(form.Value(formKeyField), page.NewFormKey()), http.MethodPost, operation(q, ""), in, &made); err != nil {
		status, formKey, ok := refuseForm(q, form, err)
		if !ok {
			return page.View{}, err
		}
		return viewForm(q, form, formKey, status)
	}
	return viewIssued(q, made)
}

// refuseForm adds the refusal of a form for a new key to the form. A form that has made a key already, and was changed, or whose key is
// revoked, becomes another one: sending it again makes another key.
func refuseForm(q *page.Request, form *page.Form, err error) (status int, formKey string, ok bool) {
	if r, isRefusal := refusal.FromError(err); isRefusal && (r.Code == refusal.IdempotencyMismatch || r.Code == refusal.KeyRevoked) {
		form.AddError("", q.T("Ce formulaire a déjà créé une clé. Envoyez-le encore une fois pour en créer une autre.", "This form has made a key already. Send it once more to make another one."))
		return r.Code.Row().Status, page.NewFormKey(), true
	}
	status, ok = form.Refuse(q, err, map[refusal.Code]string{
		refusal.OriginInvalid: "origins", refusal.TooManyOrigins: "origins", refusal.KeysOverCapacity: "kind",
	})
	return status, cmp.Or(form.Value(formKeyField), page.NewFormKey()), ok
}

// issued is the data of issued.html.
type issued struct {
	Account  body.Account
	List     string
	Path     string // of the key
	Key      shownKey
	Examples examples
}

// viewIssued shows a new key with its token. It may have been used by now: the form may have been sent before.
func viewIssued(q *page.Request, made body.Key) (page.View, error) {
	account, err := loadAccount(q)
	if err != nil {
		return page.View{}, err
	}
	current, err := page.Read[body.Key](q, keyOperation(q, made.ID, "/accounts/%s/keys/%s"))
	if err != nil {
		return page.View{}, err
	}
	made.LastUsed = current.LastUsed
	return page.View{
		Status: http.StatusCreated, Template: "issued.html", Title: q.T("Clé créée", "Key created"), Current: listPath(q),
		Data: issued{account, listPath(q), keyPath(q, made.ID, ""), newShownKey(made, q.Site.Now()), newExamples(q, made)},
	}, nil
}
