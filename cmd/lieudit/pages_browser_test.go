package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lieudit/cmd/lieudit/browsertest"
	"lieudit/cmd/lieudit/service"
	"lieudit/eventstore/leveltest"
)

// chromium is the browser of all tests of this package.
var chromium browsertest.Shared

// hostileText is what nobody types by mistake: markup that leaves an attribute or an element, and a word that is longer than any page is
// wide. A label has at most 200 characters.
const hostileText = `"><script>alert(1)</script><img src=x onerror=alert(2)>' {{.}} ${7*7} ` + "\u202e" + `Donaudampfschifffahrtsgesellschaftskapitänsmützenabzeichenfabrikant`

// pageViews are the pages with who opens them. ${own} is the account of the customer, ${secret}, ${publishable} and ${revoked} are keys of
// it; the secret key is being replaced. Each page of the site is here, or under
// pageRoles if it only leads on.
var pageViews = []struct{ role, path string }{
	{"stranger", "/connexion"},
	{"stranger", "/entree/ld_ln_unknown"},
	{"stranger", "/nowhere"},
	{"operator", "/sessions"},
	{"operator", "/invitation"},
	{"operator", "/comptes"},
	{"billing", "/comptes"},
	{"customer", "/comptes/${own}"},
	{"operator", "/comptes/demo"},
	{"customer", "/comptes/${own}/historique"},
	{"auditor", "/comptes/${own}/historique?du=2026-01-01"},
	{"customer", "/comptes/${own}/usage"},
	{"operator", "/comptes/${own}/usage?par=endpoint&ordre=requetes"},
	{"auditor", "/comptes/${own}/usage/lignes"},
	{"customer", "/comptes/${own}/etat"},
	{"auditor", "/audit"},
	{"auditor", "/audit?compte=unknown"},
	{"auditor", "/comptes/${own}/etat?le=2020-01-01"},
	{"operator", "/comptes?q=nobody"},
	{"operator", "/ouverture"},
	{"operator", "/comptes/${own}/offre"},
	{"operator", "/comptes/${own}/fermeture"},
	{"operator", "/service"},
	{"operator", "/service/reconstruction/usage"},
	{"operator", "/acces"},
	{"operator", "/acces/operator/revocation"},
	{"billing", "/facturation"},
	{"billing", "/facturation/rapprochement"},
	{"stranger", "/api"},
	{"stranger", "/api/get_address_verify"},
	{"stranger", "/api/get_locations_search"},
	{"stranger", "/api/post_accounts_id_keys"},
	{"stranger", "/api/verdicts"},
	{"stranger", "/api/erreurs"},
	{"stranger", "/api/espace-client"},
	{"customer", "/api/essai"},
	{"customer", "/api/essai?operation=post_locations_referentiels_code_sites_sync"},
	{"stranger", "/guide"},
	{"stranger", "/guide/readiness"},
	{"customer", "/comptes/${own}/cles"},
	{"billing", "/comptes/${own}/cles?etat=actives"},
	{"operator", "/comptes/demo/cles?etat=inactives"},
	{"customer", "/comptes/${own}/cles/nouvelle?genre=publishable"},
	{"customer", "/comptes/${own}/cles/${secret}"},
	{"customer", "/comptes/${own}/cles/${publishable}"},
	{"auditor", "/comptes/${own}/cles/${revoked}"},
	{"customer", "/comptes/${own}/cles/${secret}/revocation"},
	{"customer", "/comptes/${own}/cles/${publishable}/origines?page=https://www.exemple.fr/x"},
	{"customer", "/comptes/${own}/cles/${publishable}/origines?page=%22%3E%3Cscript%3Ealert(1)%3C/script%3E"},
	{"customer", "/comptes/${own}/cles/${secret}/rotation"},
	{"customer", "/comptes/${own}/cles/${publishable}/rotation"},
}

// circumstances are the ways to see a page, such that each language, width and colour scheme meets each of the others.
var circumstances = []browsertest.Options{
	{Language: "fr", Width: 360},
	{Language: "en", Width: 768, Dark: true},
	{Language: "fr", Width: 1280, Dark: true},
	{Language: "en", Width: 360, Dark: true},
	{Language: "fr", Width: 768},
	{Language: "en", Width: 1280},
}

// circumstancesOf are the circumstances in which the page with an index is seen. The whole level has all of them; otherwise one page in
// two has the first half, and the other the second.
func circumstancesOf(i int) []browsertest.Options {
	if os.Getenv(leveltest.Variable) == string(leveltest.Whole) {
		return allCircumstances()
	}
	half := len(circumstances) / 2
	return circumstances[i%2*half:][:half]
}

// allCircumstances are the same with every combination, and without JavaScript.
func allCircumstances() (all []browsertest.Options) {
	for _, language := range []string{"fr", "en"} {
		for _, width := range []int{360, 768, 1280} {
			for _, dark := range []bool{false, true} {
				for _, noScript := range []bool{false, true} {
					all = append(all, browsertest.Options{Language: language, Width: width, Dark: dark, NoScript: noScript})
				}
			}
		}
	}
	return all
}

// The budget of a page: bytes of its HTML, of styles and of scripts as they are sent, and requests. A stream of events does not count.
const (
	maxHTMLBytes   = 100 << 10
	maxStyleBytes  = 12 << 10
	maxScriptBytes = 12 << 10
	maxRequests    = 6
)

// TestEveryPageIsRightInEveryCircumstance opens all pages, with hostile texts in what people may type, in both languages, at three
// widths, light and dark. None has an accessibility violation, a complaint of the browser, or horizontal scroll, and each stays
// within its budget. With LIEUDIT_SCREENSHOTS each view is kept in that folder.
func TestEveryPageIsRightInEveryCircumstance(t *testing.T) {
	t.Parallel()
	b := chromium.Start(t)
	svc := startService(t, func(c *service.Config) { c.Demo = true })
	names := svc.fillWithHostileTexts(t)
	tabs := map[string]*browsertest.Page{"stranger": b.NewPage(t, browsertest.Options{})}
	for role, account := range map[string]string{"operator": "", "billing": "", "auditor": "", "customer": "hostile"} {
		tabs[role] = svc.openTab(t, b, role, account)
	}
	for i, v := range pageViews {
		path := names.Replace(v.path)
		for _, o := range circumstancesOf(i) {
			tab := tabs[v.role]
			tab.ApplyOptions(o)
			tab.Open(svc.pagesURL(t, path))
			browsertest.CheckPage(t, tab)
			checkBudget(t, tab)
			saveScreenshot(t, tab, v.role, path, o)
		}
	}
}

// openTab opens a tab in which a role is signed in, by an invitation.
func (svc *testService) openTab(t *testing.T, b *browsertest.Browser, role, account string) *browsertest.Page {
	t.Helper()
	line := "invite --role " + role + " --label " + role
	if account != "" {
		line += " --account " + account
	}
	tab := b.NewPage(t, browsertest.Options{Language: "en"})
	tab.Open(strings.TrimSpace(svc.runCommand(t, line)))
	tab.Click("button", "Sign in")
	tab.WaitUntil(`location.pathname !== "/connexion" && !location.pathname.startsWith("/entree/")`)
	tab.Complaints() // an answer 403 to a role that has no page of its own is not under test here
	return tab
}

// fillWithHostileTexts opens the account hostile, with hostile texts wherever a text may be typed. It returns the names of pageViews.
func (svc *testService) fillWithHostileTexts(t *testing.T) *strings.Replacer {
	t.Helper()
	svc.mustSendToArea(t, "POST /accounts", fmt.Sprintf(`{"id":"hostile","nom":%q,"plan":"GROWTH"}`, hostileText))
	tokens := map[string]string{} // by the id of the key
	issue := func(format string, args ...any) string {
		var made struct{ ID, Token string }
		answer := svc.mustSendToArea(t, "POST /accounts/hostile/keys", fmt.Sprintf(format, args...))
		if err := json.Unmarshal([]byte(answer), &made); err != nil {
			t.Fatal(err)
		}
		tokens[made.ID] = made.Token
		return made.ID
	}
	secret := issue(`{"kind":"secret","label":%q}`, hostileText)
	publishable := issue(`{"kind":"publishable","label":%q,"origins":["https://www.exemple.fr","https://*.gouv.fr"]}`, hostileText)
	next := issue(`{"kind":"secret","label":%q,"remplace":%q}`, hostileText, secret)
	for _, key := range []string{secret, secret, next} { // what the figures of usage show
		waitUntil(t, "a request is counted", func() bool { return svc.statusOfMe(t, tokens[key]) == http.StatusOK })
	}
	revoked := issue(`{"kind":"secret","label":%q}`, hostileText)
	svc.mustSendToArea(t, "POST /accounts/hostile/keys/"+revoked+":revoke", fmt.Sprintf(`{"reason":%q}`, hostileText))
	return strings.NewReplacer("${own}", "hostile", "${secret}", secret, "${publishable}", publishable, "${revoked}", revoked)
}

// checkBudget demands that a page stays within its budget.
func checkBudget(t *testing.T, tab *browsertest.Page) {
	t.Helper()
	traffic := tab.Traffic()
	requests := traffic[""].Requests - traffic["EventSource"].Requests
	if requests > maxRequests || traffic["Document"].Bytes > maxHTMLBytes || traffic["Stylesheet"].Bytes > maxStyleBytes || traffic["Script"].Bytes > maxScriptBytes {
		t.Errorf("%s: %d requests, %v bytes: over the budget", tab.URL(), requests, traffic)
	}
}

// saveScreenshot keeps a picture of a page for people to look at, if there is a folder for them.
func saveScreenshot(t *testing.T, tab *browsertest.Page, role, path string, o browsertest.Options) {
	t.Helper()
	folder := os.Getenv("LIEUDIT_SCREENSHOTS")
	if folder == "" || o.NoScript {
		return
	}
	colours := "light"
	if o.Dark {
		colours = "dark"
	}
	name := fmt.Sprintf("%s-%s-%s-%d-%s.png", role, strings.ReplaceAll(strings.Trim(path, "/"), "/", "_"), o.Language, o.Width, colours)
	tab.Screenshot(filepath.Join(folder, name))
}
