package keys

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"time"

	"lieudit/http/pages/page"
	"lieudit/schemas/body"
	"lieudit/schemas/refusal"
)

// A key that was silent for quietAfter is taken for one that nobody uses any more: most programs that run at all run once a day. One
// that was used within busyWithin is in use.
const (
	quietAfter = 24 * time.Hour
	busyWithin = time.Hour
)

// rotationPage is the data of rotation.html. Old is the key that is replaced.
type rotationPage struct {
	Account  body.Account
	List     string
	Path     string
	Old, New shownKey // New has no id before the first step
	OldPath  string
	NewPath  string
	Form     *page.Form // of the first step
	FormKey  string
	Revoke   *page.Form // of the last step
	Slots    slots
	Examples *examples // of the new key, in the answer that made it
	Now      time.Time
	MayAct   bool
}

// HasNew reports whether the new key is issued, IsDeployed whether it was used, and IsDone whether the old one is revoked.
func (r rotationPage) HasNew() bool     { return r.New.ID != "" }
func (r rotationPage) IsDeployed() bool { return !r.New.LastUsed.IsZero() }
func (r rotationPage) IsDone() bool     { return !r.Old.IsValid() }

// IsQuiet reports whether nobody seems to use the old key any more, and IsBusy whether somebody surely does.
func (r rotationPage) IsQuiet() bool {
	return r.Old.LastUsed.IsZero() || r.Now.Sub(r.Old.LastUsed) >= quietAfter
}
func (r rotationPage) IsBusy() bool {
	return !r.Old.LastUsed.IsZero() && r.Now.Sub(r.Old.LastUsed) < busyWithin
}

func showRotation(q *page.Request) (page.View, error) {
	return viewRotation(q, rotationPage{}, http.StatusOK)
}

// viewRotation shows where the rotation of a key stands. The page of a new key leads to that of the old one.
func viewRotation(q *page.Request, data rotationPage, status int) (page.View, error) {
	old, err := loadRotation(q, &data)
	if err != nil {
		return page.View{}, err
	}
	if old.Replaces != "" && !data.HasNew() && old.Revoked.IsZero() {
		before, err := page.Read[body.Key](q, keyOperation(q, old.Replaces, "/accounts/%s/keys/%s"))
		if err != nil {
			return page.View{}, err
		}
		if before.Revoked.IsZero() {
			return page.Redirect(keyPath(q, before.ID, "/rotation"))
		}
	}
	if !mayChange(q) || data.IsDone() && !data.HasNew() {
		return page.Redirect(data.OldPath)
	}
	all, _, err := loadKeys(q)
	if err != nil {
		return page.View{}, err
	}
	data.Slots = countSlots(data.Account, all)
	if data.Form == nil {
		data.Form = &page.Form{Values: url.Values{"label": {data.Old.Label}}}
	}
	data.FormKey = cmp.Or(data.FormKey, page.NewFormKey())
	if data.Revoke == nil {
		data.Revoke = typedReason(q.T("rotation : remplacée par %s", "rotation: replaced by %s", data.New.Hint))
	}
	return page.View{Status: status, Template: "rotation.html", Title: q.T("Remplacer une clé", "Rotate a key"), Current: data.List, Data: data}, nil
}

// loadRotation loads both keys of a rotation.
func loadRotation(q *page.Request, data *rotationPage) (old body.Key, err error) {
	if data.Account, err = loadAccount(q); err != nil {
		return old, err
	}
	if old, err = page.Read[body.Key](q, keyOperation(q, q.Vars["key"], "/accounts/%s/keys/%s")); err != nil {
		return old, err
	}
	data.Now, data.List, data.OldPath, data.Path = q.Site.Now(), listPath(q), keyPath(q, old.ID, ""), keyPath(q, old.ID, "/rotation")
	data.Old = newShownKey(old, data.Now)
	data.MayAct = data.Account.Closed.IsZero()
	newID := old.ReplacedBy
	if newID == "" && !data.Old.IsValid() {
		return old, loadLastReplacement(q, data)
	}
	if newID == "" {
		return old, nil
	}
	made, err := page.Read[body.Key](q, keyOperation(q, newID, "/accounts/%s/keys/%s"))
	data.setNew(q, made)
	return old, err
}

func (r *rotationPage) setNew(q *page.Request, k body.Key) {
	if k.ID != "" {
		r.New, r.NewPath = newShownKey(k, r.Now), keyPath(q, k.ID, "")
	}
}

// loadLastReplacement finds the key that took the place of one that is revoked, and may be revoked itself by now.
func loadLastReplacement(q *page.Request, data *rotationPage) error {
	all, _, err := loadKeys(q)
	for _, k := range slices.Backward(all) {
		if k.Replaces == data.Old.ID {
			data.setNew(q, k.Key)
			break
		}
	}
	return err
}

// startRotation issues the new key, of the same kind and with the same origins. What another tab has begun is shown.
func startRotation(q *page.Request) (page.View, error) {
	old, err := page.Read[body.Key](q, keyOperation(q, q.Vars["key"], "/accounts/%s/keys/%s"))
	if err != nil {
		return page.View{}, err
	}
	form := q.Form()
	in := body.IssueKey{Kind: old.Kind, Label: form.Value("label"), Origins: old.Origins, Replaces: old.ID}
	var made body.Key
	err = q.DoOnce(cmp.Or(form.Value(formKeyField), page.NewFormKey()), http.MethodPost, operation(q, ""), in, &made)
	if r, ok := refusal.FromError(err); ok && r.Code == refusal.KeyReplaced {
		return page.Redirect(keyPath(q, old.ID, "/rotation") + "?fait=rotation-en-cours")
	}
	if err != nil {
		status, formKey, ok := refuseForm(q, form, err)
		if !ok {
			return page.View{}, err
		}
		return viewRotation(q, rotationPage{Form: form, FormKey: formKey}, status)
	}
	lines := newExamples(q, made)
	return viewRotation(q, rotationPage{Examples: &lines, New: shownKey{Key: made}}, http.StatusCreated)
}

// followRotation sends the steps as the two keys are used.
func followRotation(q *page.Request) (page.View, error) {
	return q.Live(func() ([]page.Fragment, error) {
		var data rotationPage
		_, err := loadRotation(q, &data)
		return []page.Fragment{{ID: "deployed", Template: "deployed", Data: data}, {ID: "silent", Template: "silent", Data: data}}, err
	}), nil
}
