package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"lieudit/cmd/lieudit/service"
)

// visitor is somebody with a session and no browser. The zero session is a stranger's.
type visitor struct {
	svc    *testService
	cookie string // NAME=SECRET
}

// pagesHost is the Host that the pages answer to.
func (svc *testService) pagesHost(t *testing.T) string {
	t.Helper()
	u, err := url.Parse(svc.area)
	if err != nil {
		t.Fatal(err)
	}
	return cmp.Or(svc.host, "localhost:"+u.Port())
}

// pagesURL is the address of a page, as a browser opens it.
func (svc *testService) pagesURL(t *testing.T, path string) string {
	t.Helper()
	return "http://" + svc.pagesHost(t) + path
}

// visit opens a session for a role by an invitation; customers and agencies are of an account.
func (svc *testService) visit(t *testing.T, role, account string) visitor {
	t.Helper()
	line := "invite --role " + role + " --label " + role
	if account != "" {
		line += " --account " + account
	}
	link := strings.TrimSpace(svc.runCommand(t, line))
	v := visitor{svc: svc}
	answer := v.post(t, "/connexion", url.Values{"preuve": {link[strings.LastIndexByte(link, '/')+1:]}})
	if answer.status != http.StatusSeeOther || answer.cookie == "" {
		t.Fatalf("%s: %d, no session: %s", line, answer.status, answer.text)
	}
	v.cookie = answer.cookie
	return v
}

// pageAnswer is the answer to a visitor.
type pageAnswer struct {
	status   int
	location string
	cookie   string // that it sets, as NAME=VALUE
	text     string
}

func (v visitor) get(t *testing.T, path string) pageAnswer {
	t.Helper()
	return v.send(t, http.MethodGet, path, nil, nil)
}

// post sends a form of a page of the customer area.
func (v visitor) post(t *testing.T, path string, form url.Values) pageAnswer {
	t.Helper()
	return v.send(t, http.MethodPost, path, form, http.Header{"Origin": {"http://" + v.svc.pagesHost(t)}, "Sec-Fetch-Site": {"same-origin"}})
}

// send sends what a browser would. A cookie that is Secure goes along, as it does on localhost.
func (v visitor) send(t *testing.T, method, path string, form url.Values, headers http.Header) pageAnswer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, strings.TrimSuffix(v.svc.area, "/customer-area/v1")+path, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	r.Host = v.svc.pagesHost(t)
	if v.cookie != "" {
		r.Header.Set("Cookie", v.cookie)
	}
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	maps.Copy(r.Header, headers)
	resp, err := v.svc.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer := pageAnswer{status: resp.StatusCode, location: resp.Header.Get("Location")}
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	answer.text = string(text)
	for _, c := range resp.Cookies() {
		if c.MaxAge >= 0 {
			answer.cookie = c.Name + "=" + c.Value
		}
	}
	return answer
}

// roleNames are the columns of pageRoles: who opens a page.
var roleNames = []string{"operator", "customer", "agency", "billing", "auditor", "stranger"}

// pageRoles is what each role gets of each page. The customer's account is ${own}; ${other} is one that the agency has.
const pageRoles = `
/                          303 303 303 303 303 303
/connexion                 303 303 303 303 303 200
/entree/ld_ln_x            200 200 200 200 200 200
/sessions                  200 200 200 200 200 303
/invitation                200 404 200 404 404 303
/comptes                   200 403 200 200 403 303
/comptes/${own}            200 200 404 403 403 303
/comptes/${other}          200 404 200 403 403 303
/comptes/nobody            404 404 404 403 403 303
/comptes/${own}/historique 200 200 404 403 200 303
/comptes/${other}/etat     200 404 200 403 200 303
/comptes/${own}/historique/1 404 404 404 403 404 303
/comptes/${own}/usage      200 200 404 200 403 303
/comptes/${other}/usage    200 404 200 200 403 303
/comptes/${own}/usage.csv  200 200 404 200 403 303
/comptes/${own}/usage/lignes 200 200 404 200 200 303
/audit                     200 403 403 403 200 303
/ouverture                 200 403 200 403 403 303
/comptes/${own}/offre      200 403 404 403 403 303
/comptes/${other}/offre    200 404 200 403 403 303
/comptes/${own}/fermeture  200 403 404 403 403 303
/comptes/${other}/fermeture 200 404 200 403 403 303
/service                   200 403 403 403 403 303
/service/reconstruction/usage 200 403 403 403 403 303
/acces                     200 403 403 403 403 303
/acces/operator/revocation 200 403 403 403 403 303
/facturation               200 403 403 200 403 303
/facturation/rapprochement 200 403 403 200 403 303
/facturation/export?format=csv 200 403 403 200 403 303
/facturation/export?format=x 404 404 404 404 404 303
/api                       200 200 200 200 200 200
/api/verdicts              200 200 200 200 200 200
/api/erreurs               200 200 200 200 200 200
/api/espace-client         200 200 200 200 200 200
/api/get_me                200 200 200 200 200 200
/api/post_address_verify   303 303 303 303 303 303
/api/openapi.json          200 200 200 200 200 200
/api/essai                 200 200 200 200 200 303
/guide                     200 200 200 200 200 200
/guide/start               200 200 200 200 200 200
/comptes/${own}/cles       200 200 404 200 200 303
/comptes/${other}/cles     200 404 200 200 200 303
/comptes/nobody/cles       404 404 404 404 404 303
/comptes/${own}/cles/nouvelle 200 200 404 404 404 303
/comptes/${own}/cles/x     404 404 404 404 404 303
/comptes/${own}/cles/x/revocation 404 404 404 404 404 303
/comptes/${own}/cles/x/origines 404 404 404 404 404 303
/comptes/${own}/cles/x/rotation 404 404 404 404 404 303
/nowhere                   404 404 404 404 404 404
`

// TestEachRoleSeesItsOwnPagesAndNoMore opens every page as every role. What a role may not see is answered as what does not exist, or
// with the roles that may.
func TestEachRoleSeesItsOwnPagesAndNoMore(t *testing.T) {
	t.Parallel()
	svc := startService(t, func(*service.Config) {})
	svc.runCommand(t, `account open "Mairie de Mende" --plan STARTER --id mende`)
	svc.runCommand(t, `account open "Agence du Sud" --plan GROWTH --id sud`)
	svc.runCommand(t, `account agency sud`)
	svc.runCommand(t, `account open "Boutique" --plan GROWTH --id boutique --agency-of sud`)
	visitors := map[string]visitor{
		"operator": svc.visit(t, "operator", ""), "customer": svc.visit(t, "customer", "mende"), "agency": svc.visit(t, "agency", "sud"),
		"billing": svc.visit(t, "billing", ""), "auditor": svc.visit(t, "auditor", ""), "stranger": {svc: svc},
	}
	for line := range strings.Lines(pageRoles) {
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		path := strings.NewReplacer("${own}", "mende", "${other}", "boutique").Replace(fields[0])
		for i, name := range roleNames {
			want, err := strconv.Atoi(fields[i+1])
			if err != nil {
				t.Fatal(err)
			}
			if got := visitors[name].get(t, path); got.status != want {
				t.Errorf("%s as %s: %d, want %d %s", path, name, got.status, want, got.location)
			}
		}
	}
}

// TestTheFirstLinkLeadsToTheDemoAccount is the first minute of whoever starts a service.
func TestTheFirstLinkLeadsToTheDemoAccount(t *testing.T) {
	t.Parallel()
	svc := startService(t, func(c *service.Config) { c.Demo = true })
	var link string
	waitUntil(t, "the link of the first start", func() bool {
		text, err := os.ReadFile(filepath.Join(svc.data, "login-link"))
		link = strings.TrimSpace(string(text))
		return err == nil && link != ""
	})
	secret := link[strings.LastIndexByte(link, '/')+1:]
	v := visitor{svc: svc}
	for range 3 { // a mail scanner
		if got := v.get(t, "/entree/"+secret); got.status != http.StatusOK || got.cookie != "" {
			t.Fatalf("opening the link: %d, cookie %q", got.status, got.cookie)
		}
	}
	entered := v.post(t, "/connexion", url.Values{"preuve": {secret}})
	if entered.cookie == "" {
		t.Fatalf("the link opens no session: %d %s", entered.status, entered.text)
	}
	v.cookie = entered.cookie
	waitUntil(t, "the demo account is listed", func() bool { return v.get(t, "/").location == "/comptes/demo" })
	if got := v.get(t, "/comptes/demo"); got.status != http.StatusOK || !strings.Contains(got.text, "Démonstration") {
		t.Errorf("the demo account: %d %s", got.status, got.text)
	}
	again := visitor{svc: svc}.post(t, "/connexion", url.Values{"preuve": {secret}})
	if again.status != http.StatusUnauthorized || again.cookie != "" {
		t.Errorf("the link a second time: %d, cookie %q", again.status, again.cookie)
	}
}

// TestALinkOpensOneSession uses one link from many browsers at the same time.
func TestALinkOpensOneSession(t *testing.T) {
	t.Parallel()
	svc := startService(t, func(*service.Config) {})
	link := strings.TrimSpace(svc.runCommand(t, "login"))
	secret := link[strings.LastIndexByte(link, '/')+1:]
	answers := make(chan pageAnswer)
	for range 8 {
		go func() { answers <- visitor{svc: svc}.post(t, "/connexion", url.Values{"preuve": {secret}}) }()
	}
	opened, statuses := 0, ""
	for range 8 {
		answer := <-answers
		if answer.cookie != "" {
			opened++
		}
		statuses += fmt.Sprint(answer.status, " ")
	}
	if opened != 1 {
		t.Errorf("%d sessions of one link: %s", opened, statuses)
	}
}

// TestASessionEndsEverywhere ends a session in every way there is: each acts on the next request.
func TestASessionEndsEverywhere(t *testing.T) {
	t.Parallel()
	svc := startService(t, func(*service.Config) {})
	svc.runCommand(t, `account open "Mairie de Mende" --plan STARTER --id mende`)
	isOut := func(v visitor) bool { return v.get(t, "/sessions").location == "/connexion?retour=%2Fsessions" }
	leaver := svc.visit(t, "customer", "mende")
	if got := leaver.post(t, "/sortie", url.Values{}); got.status != http.StatusSeeOther || !isOut(leaver) {
		t.Errorf("after leaving: %d", got.status)
	}
	// A second device comes in with a link of the first, which ends the second's session.
	first := svc.visit(t, "customer", "mende")
	page := first.post(t, "/sessions/lien", url.Values{}).text
	_, rest, _ := strings.Cut(page, "/entree/")
	secret, _, _ := strings.Cut(rest, "<")
	second := visitor{svc: svc}
	second.cookie = second.post(t, "/connexion", url.Values{"preuve": {secret}}).cookie
	if second.cookie == "" || isOut(second) {
		t.Fatalf("no session for the second device: %s", page)
	}
	_, rest, _ = strings.Cut(first.get(t, "/sessions").text, `action="/sessions/`)
	for range 2 {
		id, after, _ := strings.Cut(rest, "/fin")
		if !strings.Contains(after[:strings.Index(after, "</form>")], "Se déconnecter") {
			first.post(t, "/sessions/"+id+"/fin", url.Values{})
		}
		_, rest, _ = strings.Cut(after, `action="/sessions/`)
	}
	if !isOut(second) || isOut(first) {
		t.Errorf("the second device is out: %v, the first: %v; want true, false", isOut(second), isOut(first))
	}
}

// TestAnotherSiteCannotUseASession sends forms as another site's page would have a browser send them.
func TestAnotherSiteCannotUseASession(t *testing.T) {
	t.Parallel()
	svc := startService(t, func(*service.Config) {})
	v := svc.visit(t, "operator", "")
	for name, headers := range map[string]http.Header{
		"another site":   {"Sec-Fetch-Site": {"cross-site"}, "Origin": {"https://evil.example"}},
		"another port":   {"Sec-Fetch-Site": {"same-site"}, "Origin": {"http://localhost:1"}},
		"an old browser": {"Origin": {"https://evil.example"}},
		"no origin":      {"Origin": {"null"}},
	} {
		if got := v.send(t, http.MethodPost, "/sortie", nil, headers); got.status != http.StatusForbidden {
			t.Errorf("%s: %d, want 403", name, got.status)
		}
	}
	if got := v.get(t, "/sessions"); got.status != http.StatusOK {
		t.Errorf("the session afterwards: %d", got.status)
	}
}
