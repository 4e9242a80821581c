// Package keys has the pages about the keys of an account: the list, a new key and its secret, a single key with its last request, its
// origins with a tester, its revocation, and its rotation.
//
//	list.go      /cles                          which keys there are, and which need care
//	issue.go     /cles/nouvelle                 a form, then the secret, once
//	key.go       /cles/{key}, …/revocation      a key as it is now, live, and its end
//	origins.go   /cles/{key}/origines           verdicts while origins are typed, and whether a page is admitted
//	rotation.go  /cles/{key}/rotation           new key, deployed?, is the old one still used?, revoke
//
// A form that is sent twice does its work once. The form of a new key carries a name that the service knows it by
// (Request.DoOnce), so that a double click, the back button and a lost answer all lead to the same key and the same secret.
// A revocation that is repeated changes nothing.
//
// Nothing about a rotation is kept here or in an address: the log says which key takes the place of which (the members remplace and
// remplacee_par), so that whoever opens either of them, in any browser, is where the rotation stands. That stands in an event of its own and
// not in the label, which people change their minds about, nor in the address, which another browser does not have.
package keys

import (
	"embed"
	"net/http"

	"lieudit/http/pages/i18n"
	"lieudit/http/pages/page"
	"lieudit/schemas/body"
)

//go:embed *.html
var templates embed.FS

// Section is the pages.
func Section() page.Section {
	const list, key = "/comptes/{account}/cles", "/comptes/{account}/cles/{key:[a-z0-9-]+}"
	return page.Section{
		Templates: templates,
		Rows: []page.Row{
			{Method: http.MethodGet, Path: list, Serve: listKeys},
			{Method: http.MethodGet, Path: list + "/nouvelle", Serve: showForm},
			{Method: http.MethodPost, Path: list + "/nouvelle", Serve: issue},
			{Method: http.MethodGet, Path: list + "/verdict", Serve: judgeTyped},
			{Method: http.MethodGet, Path: key, Serve: showKey},
			{Method: http.MethodGet, Path: key + "/direct", Serve: followKey},
			{Method: http.MethodGet, Path: key + "/revocation", Serve: showRevocation},
			{Method: http.MethodPost, Path: key + "/revocation", Serve: revoke},
			{Method: http.MethodGet, Path: key + "/origines", Serve: showOrigins},
			{Method: http.MethodPost, Path: key + "/origines", Serve: changeOrigins},
			{Method: http.MethodGet, Path: key + "/origines/essai", Serve: testTyped},
			{Method: http.MethodGet, Path: key + "/rotation", Serve: showRotation},
			{Method: http.MethodPost, Path: key + "/rotation", Serve: startRotation},
			{Method: http.MethodGet, Path: key + "/rotation/direct", Serve: followRotation},
		},
		Flashes: map[string]i18n.Text{
			"cle-revoquee":      {FR: "La clé est révoquée : elle n’ouvre plus rien.", EN: "The key is revoked: it no longer opens anything."},
			"origines-changees": {FR: "Les origines sont changées. La clé reste la même.", EN: "The origins are changed. The key stays the same."},
			"rotation-en-cours": {FR: "Ce remplacement est déjà en cours : le voici.", EN: "This rotation is under way already: here it is."},
		},
	}
}

// listPath is the page with all keys of the account.
func listPath(q *page.Request) string { return page.Path("/comptes/%s/cles", q.Vars["account"]) }

// keyPath is a page of a key: "" is the first one.
func keyPath(q *page.Request, key, rest string) string {
	return page.Path("/comptes/%s/cles/%s", q.Vars["account"], key) + rest
}

// operation is the path of an operation on the account's keys.
func operation(q *page.Request, rest string) string {
	return page.Path("/accounts/%s/keys", q.Vars["account"]) + rest
}

// keyOperation is the path of an operation on one key of the account.
func keyOperation(q *page.Request, key, pattern string) string {
	return page.Path(pattern, q.Vars["account"], key)
}

// loadAccount is the account of the path. Some roles may see its keys but not the account itself: they get its id.
func loadAccount(q *page.Request) (body.Account, error) {
	if id := q.Vars["account"]; !q.May(http.MethodGet, page.Path("/accounts/%s", id)) {
		return body.Account{ID: id}, nil
	}
	return q.Account()
}

// mayChange reports whether the reader may issue and revoke keys of the account.
func mayChange(q *page.Request) bool { return q.May(http.MethodPost, operation(q, "")) }
