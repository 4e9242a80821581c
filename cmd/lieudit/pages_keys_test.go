package main

import (
	"bufio"
	"html"
	"net/http"
	"net/url"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"

	"lieudit/cmd/lieudit/service"
	"lieudit/eventstore/leveltest"
)

// elementText is the text of the first element with an id.
func (a pageAnswer) elementText(id string) string {
	found := regexp.MustCompile(`(?s) id="` + id + `"[^>]*>(.*?)</(?:pre|code|div)>`).FindStringSubmatch(a.text)
	if found == nil {
		return ""
	}
	return strings.TrimSpace(html.UnescapeString(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(found[1], "")))
}

// hidden is the value of a hidden field.
func (a pageAnswer) hidden(name string) string {
	found := regexp.MustCompile(`<input type="hidden" name="` + name + `" value="([^"]*)"`).FindStringSubmatch(a.text)
	if found == nil {
		return ""
	}
	return html.UnescapeString(found[1])
}

// newKeyForm is the form of a new key as a page shows it, filled in.
func (v visitor) newKeyForm(t *testing.T, label string) url.Values {
	t.Helper()
	page := v.get(t, "/comptes/mende/cles/nouvelle")
	if page.status != http.StatusOK || page.hidden("demande") == "" {
		t.Fatalf("the form: %d %s", page.status, page.text)
	}
	return url.Values{"demande": {page.hidden("demande")}, "kind": {"secret"}, "label": {label}}
}

// keyIDs are the ids of an account's keys.
func (svc *testService) keyIDs(t *testing.T, account string) (ids []string) {
	t.Helper()
	answer := svc.mustSendToArea(t, "GET /accounts/"+account+"/keys?limit=1000", "")
	for _, found := range regexp.MustCompile(`"id":"([^"]+)"`).FindAllStringSubmatch(answer, -1) {
		ids = append(ids, found[1])
	}
	return ids
}

// startKeyPages starts a service with one account, and a customer's session.
func startKeyPages(t *testing.T) (*testService, visitor) {
	t.Helper()
	svc := startService(t, func(*service.Config) {})
	svc.runCommand(t, `account open "Mairie de Mende" --plan GROWTH --id mende`)
	return svc, svc.visit(t, "customer", "mende")
}

// TestAKeyWorksWithTheLineBesideIt does what a newcomer does without a script: a key, its line in a terminal, a reload.
func TestAKeyWorksWithTheLineBesideIt(t *testing.T) {
	t.Parallel()
	curl, err := exec.LookPath("curl")
	if err != nil {
		leveltest.Need(t, leveltest.Usual, "no curl: apt-get install curl")
	}
	_, v := startKeyPages(t)
	for kind, form := range map[string]url.Values{
		"secret": {"kind": {"secret"}, "label": {"serveur"}}, "publishable": {"kind": {"publishable"}, "label": {"page"}, "origins": {"https://*.mende.fr\r\nhttps://mende.fr"}},
	} {
		issued := v.post(t, "/comptes/mende/cles/nouvelle", form)
		token, line := issued.elementText("token"), issued.elementText("first-line")
		if issued.status != http.StatusCreated || token == "" || !strings.Contains(line, token) || !strings.HasPrefix(line, "curl ") {
			t.Fatalf("%s: %d, token %q, line %q", kind, issued.status, token, line)
		}
		if got := issued.elementText("use"); !strings.Contains(got, "En attente") {
			t.Errorf("%s: before any request: %q", kind, got)
		}
		waitUntil(t, "the line passes", func() bool {
			out, err := exec.CommandContext(t.Context(), "sh", "-c", strings.Replace(line, "curl ", curl+" --fail --silent --max-time 60 ", 1)).Output()
			return err == nil && strings.HasPrefix(string(out), "{")
		})
		id := regexp.MustCompile(`/cles/([a-z0-9-]+)/direct`).FindStringSubmatch(issued.text)[1]
		waitUntil(t, "the page of the key is green", func() bool {
			return strings.Contains(v.get(t, "/comptes/mende/cles/"+id).elementText("use"), "La clé fonctionne")
		})
		if page := v.get(t, "/comptes/mende/cles/"+id); kind == "secret" && strings.Contains(page.text, token) {
			t.Error("the page of the key shows its secret again")
		}
	}
	if list := v.get(t, "/comptes/mende/cles"); strings.Count(list.text, "1 requête en 30 jours") < 2 {
		t.Errorf("the list does not count the requests: %s", list.text)
	}
}

// TestAFormThatIsSentTwiceMakesOneKey sends the form of a new key by a double click, again by the back button, and changed.
func TestAFormThatIsSentTwiceMakesOneKey(t *testing.T) {
	t.Parallel()
	svc, v := startKeyPages(t)
	form := v.newKeyForm(t, "serveur")
	var wg sync.WaitGroup
	var tokens [4]string
	for i := range tokens {
		wg.Go(func() { tokens[i] = v.post(t, "/comptes/mende/cles/nouvelle", form).elementText("token") })
	}
	wg.Wait()
	back := v.post(t, "/comptes/mende/cles/nouvelle", form).elementText("token")
	for _, token := range tokens {
		if token == "" || token != back {
			t.Errorf("the tokens are %v, then %q", tokens, back)
		}
	}
	if ids := svc.keyIDs(t, "mende"); len(ids) != 1 {
		t.Errorf("%d keys of one form", len(ids))
	}
	form.Set("label", "autre serveur")
	changed := v.post(t, "/comptes/mende/cles/nouvelle", form)
	if changed.status != http.StatusUnprocessableEntity || !strings.Contains(changed.text, "déjà créé une clé") || !strings.Contains(changed.text, "autre serveur") {
		t.Fatalf("a changed form: %d %s", changed.status, changed.text)
	}
	form.Set("demande", changed.hidden("demande"))
	if got := v.post(t, "/comptes/mende/cles/nouvelle", form); got.status != http.StatusCreated || got.elementText("token") == back {
		t.Errorf("sent once more: %d, the same key: %v", got.status, got.elementText("token") == back)
	}
	if ids := svc.keyIDs(t, "mende"); len(ids) != 2 {
		t.Errorf("%d keys, want 2", len(ids))
	}
}

// TestAKeyIsRevokedOnce types the id again, wrongly, rightly, and twice.
func TestAKeyIsRevokedOnce(t *testing.T) {
	t.Parallel()
	svc, v := startKeyPages(t)
	svc.runCommand(t, "key issue mende --label serveur")
	id := svc.keyIDs(t, "mende")[0]
	path := "/comptes/mende/cles/" + id + "/revocation"
	if got := v.post(t, path, url.Values{"id": {"demo"}, "reason": {"fuite"}}); got.status != http.StatusUnprocessableEntity || !strings.Contains(got.text, `value="fuite"`) {
		t.Errorf("another id: %d %s", got.status, got.text)
	}
	if got := v.post(t, path, url.Values{"id": {id}}); got.status != http.StatusUnprocessableEntity || !strings.Contains(got.text, "à remplir") {
		t.Errorf("without a reason: %d %s", got.status, got.text)
	}
	for range 2 {
		if got := v.post(t, path, url.Values{"id": {id}, "reason": {"fuite"}}); got.status != http.StatusSeeOther {
			t.Errorf("revoked: %d %s", got.status, got.text)
		}
	}
	if n := strings.Count(svc.mustSendToArea(t, "GET /accounts/mende/history", ""), "account.key-revoked.v1"); n != 1 {
		t.Errorf("%d events", n)
	}
	if got := v.get(t, path); got.location != "/comptes/mende/cles/"+id {
		t.Errorf("the form of a revoked key: %d %q", got.status, got.location)
	}
	waitUntil(t, "the list shows the key as revoked", func() bool {
		return strings.Contains(v.get(t, "/comptes/mende/cles?etat=revoquees").text, "serveur")
	})
}

// TestARotationIsFoundAgain goes through a rotation in two tabs and a second browser.
func TestARotationIsFoundAgain(t *testing.T) {
	t.Parallel()
	svc, v := startKeyPages(t)
	svc.runCommand(t, "key issue mende --label serveur")
	old := svc.keyIDs(t, "mende")[0]
	path := "/comptes/mende/cles/" + old + "/rotation"
	first, second := v.get(t, path), v.get(t, path) // two tabs
	form := func(p pageAnswer) url.Values {
		return url.Values{"demande": {p.hidden("demande")}, "label": {"serveur"}}
	}
	begun := v.post(t, path, form(first))
	token := begun.elementText("token")
	if begun.status != http.StatusCreated || token == "" || v.post(t, path, form(first)).elementText("token") != token {
		t.Fatalf("begun twice: %d %s", begun.status, begun.text)
	}
	if got := v.post(t, path, form(second)); got.location != path+"?fait=rotation-en-cours" {
		t.Errorf("from the other tab: %d %q", got.status, got.location)
	}
	ids := svc.keyIDs(t, "mende")
	if len(ids) != 2 {
		t.Fatalf("the keys are %v", ids)
	}
	other := svc.visit(t, "customer", "mende")
	waitUntil(t, "the list leads to the rotation", func() bool { return strings.Contains(other.get(t, "/comptes/mende/cles").text, path) })
	again := other.get(t, path)
	if strings.Contains(again.text, token) || !strings.Contains(again.text, "En attente de sa première requête") {
		t.Errorf("in another browser: %s", again.text)
	}
	if got := other.get(t, "/comptes/mende/cles/"+ids[1]+"/rotation"); got.location != path {
		t.Errorf("the page of the new key leads to %d %q", got.status, got.location)
	}
	waitUntil(t, "the new key is used", func() bool { return svc.statusOfMe(t, token) == http.StatusOK })
	waitUntil(t, "the page has seen it", func() bool { return strings.Contains(other.get(t, path).text, "La nouvelle clé sert") })
	revoked := other.post(t, "/comptes/mende/cles/"+old+"/revocation", url.Values{"id": {old}, "reason": {"rotation"}, "suite": {"rotation"}})
	if revoked.location != path+"?fait=cle-revoquee" {
		t.Errorf("the last step: %d %q", revoked.status, revoked.location)
	}
	if got := other.get(t, revoked.location); !strings.Contains(got.text, "seule la nouvelle clé est valable") {
		t.Errorf("the end: %d %s", got.status, got.text)
	}
}

// TestOriginsAreJudgedAndTested edits the origins of a key without a script, and tests pages.
func TestOriginsAreJudgedAndTested(t *testing.T) {
	t.Parallel()
	svc, v := startKeyPages(t)
	svc.runCommand(t, "key issue mende --kind publishable --label page --origin https://www.mende.fr")
	path := "/comptes/mende/cles/" + svc.keyIDs(t, "mende")[0] + "/origines"
	got := v.post(t, path, url.Values{"origins": {"https://www.mende.fr\r\n\r\nhttp://mende.fr\r\nhttps://*.gouv.fr"}})
	for _, want := range []string{"elle doit commencer par https://.", "http://mende.fr\r\n", "appartiennent à des tiers différents"} {
		if got.status != http.StatusUnprocessableEntity || !strings.Contains(html.UnescapeString(got.text), want) {
			t.Errorf("%d, the page lacks %q: %s", got.status, want, got.text)
		}
	}
	if got := v.post(t, path, url.Values{"origins": {"https://*.mende.fr"}}); got.status != http.StatusSeeOther {
		t.Errorf("saved: %d %s", got.status, got.text)
	}
	for page, want := range map[string]string{
		"https://cartes.mende.fr/x?y": "est admise par <code>https://*.mende.fr</code>", "https://mende.fr": "403 origine_non_autorisee", "http://localhost:3000": "Elle ne peut pas être déclarée",
		`"><script>alert(1)</script>`: "403 origine_non_autorisee",
	} {
		got := v.get(t, path+"?page="+url.QueryEscape(page))
		part := v.get(t, path+"/essai?page="+url.QueryEscape(page))
		for _, text := range []string{got.text, part.text} {
			if !strings.Contains(text, want) || strings.Contains(text, "<script>alert") {
				t.Errorf("%s: the page lacks %q: %s", page, want, text)
			}
		}
		if strings.Contains(part.text, "<html") {
			t.Errorf("%s: the answer to the script is a whole page", page)
		}
	}
}

// TestACapIsSaidBeforeTheForm opens the form of an account whose plan has no slot left.
func TestACapIsSaidBeforeTheForm(t *testing.T) {
	t.Parallel()
	svc := startService(t, func(*service.Config) {})
	svc.runCommand(t, "account open A --plan DISCOVERY --id aucune")
	svc.runCommand(t, "account open B --plan STARTER --id pleine")
	svc.runCommand(t, "key issue pleine --kind publishable --label page --origin https://a.fr")
	v := svc.visit(t, "operator", "")
	for account, want := range map[string]string{"aucune": "n’inclut pas de clé publiable", "pleine": "Toutes sont prises"} {
		waitUntil(t, "the form of "+account, func() bool { return strings.Contains(v.get(t, "/comptes/"+account+"/cles/nouvelle").text, want) })
		got := v.post(t, "/comptes/"+account+"/cles/nouvelle", url.Values{"kind": {"publishable"}, "label": {"x"}, "origins": {"https://b.fr"}})
		if got.status != http.StatusConflict || !strings.Contains(got.text, `id="f-kind"`) {
			t.Errorf("%s: %d %s", account, got.status, got.text)
		}
	}
	full := svc.keyIDs(t, "pleine")[0]
	if got := v.get(t, "/comptes/pleine/cles/"+full+"/rotation"); !strings.Contains(got.text, "il en faut une de plus") {
		t.Errorf("the rotation of the only slot: %d %s", got.status, got.text)
	}
}

// TestThePageOfAKeyTurnsGreenByItself reads the stream of a page while the key is used for the first time.
func TestThePageOfAKeyTurnsGreenByItself(t *testing.T) {
	t.Parallel()
	svc, v := startKeyPages(t)
	issued := v.post(t, "/comptes/mende/cles/nouvelle", v.newKeyForm(t, "serveur"))
	token, path := issued.elementText("token"), regexp.MustCompile(`data-live="([^"]+)"`).FindStringSubmatch(issued.text)[1]
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, strings.TrimSuffix(svc.area, "/customer-area/v1")+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = svc.pagesHost(t)
	r.Header.Set("Cookie", v.cookie)
	stream, err := svc.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	lines := bufio.NewScanner(stream.Body)
	awaitLine := func(want string) {
		t.Helper()
		for lines.Scan() {
			if strings.Contains(lines.Text(), want) {
				return
			}
		}
		t.Fatalf("the stream ended before %q: %v", want, lines.Err())
	}
	awaitLine("En attente de la première requête")
	waitUntil(t, "the key is used", func() bool { return svc.statusOfMe(t, token) == http.StatusOK })
	awaitLine("La clé fonctionne")
}

// TestAFormThatGotNoAnswerIsSentAgain keeps the log silent while a key is asked for: the error page keeps the form, and sending it again
// makes one key, whether or not the first one reached the log.
func TestAFormThatGotNoAnswerIsSentAgain(t *testing.T) {
	t.Parallel()
	n := startNode(t)
	svc := startService(t, withNode(n))
	svc.runCommand(t, `account open "Mairie de Mende" --plan GROWTH --id mende`)
	v := svc.visit(t, "customer", "mende")
	form := v.newKeyForm(t, "serveur <de> nuit")
	n.silence.Begin()
	waitUntil(t, "the pages cannot answer", func() bool { return v.get(t, "/sessions").status == http.StatusServiceUnavailable })
	got := v.post(t, "/comptes/mende/cles/nouvelle", form)
	n.silence.End()
	if kept := form.Get("demande") + "</textarea>"; got.status != http.StatusServiceUnavailable || !strings.Contains(got.text, kept) || !strings.Contains(got.text, "serveur &lt;de&gt; nuit") {
		t.Errorf("the form: %d %s", got.status, got.text)
	}
	waitUntil(t, "the pages answer again", func() bool { return v.get(t, "/sessions").status == http.StatusOK })
	first := v.post(t, "/comptes/mende/cles/nouvelle", form).elementText("token")
	if again := v.post(t, "/comptes/mende/cles/nouvelle", form).elementText("token"); first == "" || again != first {
		t.Errorf("the tokens are %q, then %q", first, again)
	}
	if ids := svc.keyIDs(t, "mende"); len(ids) != 1 {
		t.Errorf("%d keys", len(ids))
	}
}
