package main

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"lieudit/cmd/lieudit/browsertest"
	"lieudit/cmd/lieudit/service"
	"lieudit/eventstore/deadlinetest"
	"lieudit/eventstore/leveltest"
)

// person is somebody at a browser. The texts of the pages are those of its language.
type person struct {
	*browsertest.Page
	context *browsertest.Context
	t       *testing.T
	svc     *testService
	options browsertest.Options
}

// newPerson opens a browser of its own.
func (svc *testService) newPerson(t *testing.T, o browsertest.Options) person {
	t.Helper()
	c := chromium.Start(t).NewContext(t)
	return person{c.NewPage(o), c, t, svc, o}
}

// newTab opens another tab of the same browser.
func (p person) newTab() person {
	p.Page = p.context.NewPage(p.options)
	return p
}

// say is a text in the language of the person.
func (p person) say(fr, en string) string {
	if p.options.Language == "fr" {
		return fr
	}
	return en
}

// signIn opens a link and presses its button.
func (p person) signIn(link string) {
	p.t.Helper()
	p.Open(link)
	p.check()
	p.Click("button", p.say("Se connecter", "Sign in"))
}

// check demands of the page what holds for every page.
func (p person) check() {
	p.t.Helper()
	browsertest.CheckPage(p.t, p.Page)
}

// elementText is the text of the element with an id.
func (p person) elementText(id string) string {
	p.t.Helper()
	text, _ := p.Eval(fmt.Sprintf("document.getElementById(%q).textContent", id)).(string)
	return strings.TrimSpace(text)
}

// watch waits until the page shows a text by itself. Without a script a person loads the page again and again.
func (p person) watch(text string) {
	p.t.Helper()
	if !p.options.NoScript {
		p.WaitFor(text)
		return
	}
	deadlinetest.WaitUntil(p.t, deadlinetest.DefaultLimit, text, func() bool {
		if strings.Contains(p.pageText(), text) {
			return true
		}
		p.Reload()
		return false
	})
}

// pageText is the text of the page, with one space for any white space.
func (p person) pageText() string { return strings.Join(strings.Fields(p.Text()), " ") }

// see fails the test if the page lacks a text.
func (p person) see(text string) {
	p.t.Helper()
	if !strings.Contains(p.pageText(), text) {
		p.t.Fatalf("%s lacks %q:\n%s", p.URL(), text, p.Text())
	}
}

// unfold opens a fold that is closed, such as a menu.
func (p person) unfold(summary string) {
	p.t.Helper()
	p.Click("DisclosureTriangle", summary)
}

// openMenu opens the menu with the preferences and the session.
func (p person) openMenu(role string) {
	p.t.Helper()
	p.unfold(role + p.say(" langue, apparence, session", " language, appearance, session"))
}

// pick chooses a value of some radio buttons, by their label.
func (p person) pick(name, value string) {
	p.t.Helper()
	label, _ := p.Eval(fmt.Sprintf("document.querySelector('[name=%s][value=%s]').closest('label').innerText", name, value)).(string)
	p.Click("radio", label)
}

// runLine runs a line in a shell, as a person who has copied it, and returns what it prints.
func (p person) runLine(line string) string {
	p.t.Helper()
	out, err := exec.CommandContext(p.t.Context(), "sh", "-c", line).Output()
	if err != nil {
		p.t.Fatalf("%s: %v", line, err)
	}
	return string(out)
}

// bothWays runs a test in one language with JavaScript and in the other without.
func bothWays(t *testing.T, withScript, without string, test func(t *testing.T, o browsertest.Options)) {
	t.Helper()
	t.Parallel()
	for name, o := range map[string]browsertest.Options{
		"script": {Language: withScript}, "no script": {Language: without, NoScript: true},
	} {
		t.Run(name, func(t *testing.T) { t.Parallel(); test(t, o) })
	}
}

// TestACustomersFirstHour goes from the link of the first start to a key that works, to one for a web page, and out again.
func TestACustomersFirstHour(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		leveltest.Need(t, leveltest.Usual, leveltest.Missing("curl: apt-get install curl", err))
	}
	bothWays(t, "fr", "en", func(t *testing.T, o browsertest.Options) {
		svc := startService(t, func(c *service.Config) { c.Demo = true })
		waitUntil(t, "the demo account is listed", func() bool { return strings.Contains(svc.runCommand(t, "account list"), "demo") })
		link, err := os.ReadFile(filepath.Join(svc.data, "login-link"))
		if err != nil {
			t.Fatal(err)
		}
		p := svc.newPerson(t, o)
		p.signIn(strings.TrimSpace(string(link)))
		p.see(p.say("requêtes restantes", "requests left"))
		p.check()
		p.makeAKeyThatWorks()
		p.makeAKeyForAPage()
		p.readTheDocumentation()
		p.openMenu(p.say("Opérateur", "Operator"))
		p.Click("button", p.say("Se déconnecter", "Sign out"))
		p.check()
		p.Open(svc.pagesURL(t, "/comptes/demo"))
		p.see(p.say("Jeton d’accès", "Access token"))
	})
}

// makeAKeyThatWorks makes a secret key, runs the line beside it, and sees it arrive.
func (p person) makeAKeyThatWorks() {
	p.t.Helper()
	p.Click("link", p.say("Gérer les clés", "Manage keys"))
	p.check()
	p.Click("link", p.say("Créer une clé", "Create a key"))
	p.check()
	p.Fill(p.say("Nom", "Name"), p.say("site de la mairie", "town hall website"))
	p.Click("button", p.say("Créer la clé", "Create the key"))
	p.see(p.say("En attente de la première requête", "Waiting for the first request"))
	p.check()
	usage := p.newTab()
	usage.Open(p.svc.pagesURL(p.t, "/comptes/demo/usage"))
	usage.watch(p.say("Utilisées 0", "Used 0"))
	usage.check()
	line := p.elementText("first-line")
	if answer := p.runLine(line); !strings.HasPrefix(answer, "{") {
		p.t.Fatalf("%s: %s", line, answer)
	}
	answered := time.Now()
	usage.watch(p.say("Utilisées 1", "Used 1"))
	shown := time.Since(answered)
	usage.check()
	p.watch(p.say("La clé fonctionne", "The key works"))
	p.t.Logf("the usage page shows the request %v after its answer", shown)
	for n := 2; shown > deadlinetest.Scale(time.Second); n++ { // a busy machine is slower now and then
		if n > 6 {
			p.t.Fatalf("the best of %d requests shows after %v, want at most a second", n-1, shown)
		}
		p.runLine(line)
		answered = time.Now()
		usage.watch(fmt.Sprint(p.say("Utilisées ", "Used "), n))
		shown = min(shown, time.Since(answered))
	}
	p.check()
}

// makeAKeyForAPage makes a publishable key, mends its first origin, and tries pages.
func (p person) makeAKeyForAPage() {
	p.t.Helper()
	p.Click("link", p.say("Toutes les clés", "All keys"))
	p.Click("link", p.say("Créer une clé", "Create a key"))
	p.Fill(p.say("Nom", "Name"), p.say("carte des boutiques", "map of shops"))
	p.pick("kind", "publishable")
	p.Fill(p.say("Origines", "Origins"), "http://www.mende.fr")
	refusal := p.say("elle doit commencer par https://.", "It must begin with https://.")
	if p.options.NoScript {
		p.Click("button", p.say("Créer la clé", "Create the key"))
		p.see(p.say("Rien n’a été enregistré", "Nothing was saved"))
	}
	p.WaitFor(refusal)
	p.Complaints() // of the answer 422
	p.check()
	p.Fill(p.say("Origines", "Origins"), "https://*.mende.fr")
	if !p.options.NoScript {
		p.WaitFor(p.say("convient", "fine"))
	}
	p.Click("button", p.say("Créer la clé", "Create the key"))
	p.see(p.say("La clé publiable", "The publishable key"))
	p.check()
	p.Click("link", p.say("Voir la clé", "See the key"))
	p.Click("link", p.say("Origines et essai", "Origins and test"))
	for page, want := range map[string]string{
		"https://cartes.mende.fr/plan?zoom=3": p.say("est admise par https://*.mende.fr", "is admitted by https://*.mende.fr"),
		"https://mende.fr":                    "403 origine_non_autorisee",
	} {
		p.Fill(p.say("Adresse de la page", "Address of the page"), page)
		if p.options.NoScript {
			p.Click("button", p.say("Essayer", "Test"))
		}
		p.WaitFor(want)
		p.check()
	}
}

// readTheDocumentation finds what a request is from any page.
func (p person) readTheDocumentation() {
	p.t.Helper()
	p.Click("link", "Documentation")
	p.check()
	p.Open(p.svc.pagesURL(p.t, "/api/get_address_verify"))
	p.see("/address/verify")
	p.check()
}

// TestARotation replaces a key that is in use, with a pause in the middle and another browser after it.
func TestARotation(t *testing.T) {
	bothWays(t, "en", "fr", func(t *testing.T, o browsertest.Options) {
		var slept atomic.Int64
		svc := startService(t, func(c *service.Config) {
			begun := time.Now()
			c.Now = func() time.Time { return time.Now().Add(time.Duration(slept.Load())) }
			c.Elapsed = func() time.Duration { return time.Since(begun) + time.Duration(slept.Load()) }
		})
		svc.runCommand(t, `account open "Mairie de Mende" --plan GROWTH --id mende`)
		old := strings.TrimSpace(svc.runCommand(t, "key issue mende --label serveur"))
		svc.runCommand(t, "key issue mende --label autre")
		oldID := svc.keyIDs(t, "mende")[0]
		waitUntil(t, "the old key is used", func() bool { return svc.statusOfMe(t, old) == http.StatusOK })
		invite := "invite --role customer --account mende --label equipe"
		p := svc.newPerson(t, o)
		p.signIn(strings.TrimSpace(svc.runCommand(t, invite)))
		made := p.beginRotation()
		if n := strings.Count(svc.mustSendToArea(t, "GET /accounts/mende/history", ""), "account.secret-key-issued."); n != 3 {
			t.Errorf("%d keys were issued, want 3", n)
		}
		q := svc.newPerson(t, o)
		q.signIn(strings.TrimSpace(svc.runCommand(t, invite)))
		q.findRotationAgain()
		if status := svc.statusOfMe(t, made); status != http.StatusOK {
			t.Fatalf("GET /me with the new key: %d", status)
		}
		q.watch(q.say("La nouvelle clé sert.", "The new key is in use."))
		q.check()
		slept.Store(int64(25 * time.Hour))
		q.watch(q.say("Silencieuse depuis un jour au moins.", "Silent for a day at least."))
		q.check()
		revoked := q.revokeOldKey(oldID)
		waitUntil(t, "the old key is refused", func() bool { return svc.statusOfMe(t, old) == http.StatusUnauthorized })
		if took := time.Since(revoked); took > deadlinetest.Scale(time.Second) {
			t.Errorf("the old key is refused %v after the page says so, want at most a second", took)
		}
		if status := svc.statusOfMe(t, made); status != http.StatusOK {
			t.Errorf("GET /me with the new key: %d", status)
		}
	})
}

// beginRotation goes from the list to the assistant and makes the new key by a double click. It sends the form again by the button that
// loads a page again, and by the one that goes back. It returns the new key, and leaves.
func (p person) beginRotation() (token string) {
	p.t.Helper()
	p.Click("link", p.say("Clés", "Keys"))
	p.check()
	p.Click("link", "serveur")
	p.check()
	p.Click("link", p.say("Remplacer", "Rotate"))
	p.see(p.say("rien n’est interrompu", "nothing is interrupted"))
	p.check()
	button := p.say("Créer la nouvelle clé", "Create the new key")
	p.DoubleClick("button", button)
	p.see(p.say("elle n’est montrée qu’une fois", "it is shown once only"))
	p.check()
	token = p.elementText("token")
	p.Reload() // sends the form again
	if again := p.elementText("token"); again != token {
		p.t.Errorf("the form sent again shows another key")
	}
	p.Back()
	if p.Has("button", button) {
		p.Click("button", button)
	}
	p.see(p.say("En attente de sa première requête", "Waiting for its first request"))
	p.check()
	p.Open("about:blank")
	return token
}

// findRotationAgain finds in the list what was begun in another browser.
func (p person) findRotationAgain() {
	p.t.Helper()
	p.Click("link", p.say("Clés", "Keys"))
	p.see(p.say("Remplacement en cours", "Rotation under way"))
	p.check()
	p.Click("link", p.say("Reprendre où vous en étiez", "Go on from where you were"))
	p.see(p.say("L’ancienne clé a servi il y a moins d’une heure", "The old key was used less than an hour ago"))
	p.watch(p.say("En attente de sa première requête", "Waiting for its first request"))
	p.check()
}

// revokeOldKey does the last step, with another id first, and returns when its page has come.
func (p person) revokeOldKey(id string) time.Time {
	p.t.Helper()
	const fold = "main details"
	if p.Eval("document.querySelector('"+fold+"').open") != true { // the page was opened before the key was silent
		summary, _ := p.Eval("document.querySelector('" + fold + " summary').innerText").(string)
		p.unfold(summary)
	}
	field, button := p.say("L’identifiant de la clé, pour confirmer", "The id of the key, to confirm"), p.say("Révoquer l’ancienne clé", "Revoke the old key")
	p.Fill(field, "mende")
	if p.options.NoScript {
		p.Click("button", button)
		p.see(p.say("Ce n’est pas l’identifiant de cette clé.", "This is not the id of this key."))
		p.Complaints() // of the answer 422
	} else if p.Eval("document.querySelector('"+fold+" button.danger').disabled") != true {
		p.t.Error("the key can be revoked although its id was not typed again")
	}
	p.check()
	p.Fill(field, id)
	p.Click("button", button)
	revoked := time.Now()
	p.see(p.say("C’est fait : seule la nouvelle clé est valable.", "Done: only the new key is valid."))
	p.check()
	return revoked
}

// TestAnOperatorsMorning looks at the service, invites the customer of an account, exports what is billed, reads a history, and ends an
// access.
func TestAnOperatorsMorning(t *testing.T) {
	bothWays(t, "en", "fr", func(t *testing.T, o browsertest.Options) {
		svc := startService(t, func(*service.Config) {})
		svc.runCommand(t, `account open "Mairie de Mende" --plan GROWTH --id mende`)
		svc.runCommand(t, `account open "Mairie de Florac" --plan STARTER --id florac`)
		key := strings.TrimSpace(svc.runCommand(t, "key issue mende --label serveur"))
		waitUntil(t, "the key is used", func() bool { return svc.statusOfMe(t, key) == http.StatusOK })
		p := svc.newPerson(t, o)
		p.signIn(strings.TrimSpace(svc.runCommand(t, "login")))
		p.readTheService()
		customer := p.inviteCustomer()
		p.exportBilling()
		p.readHistory()
		p.endAccess()
		customer.Open(svc.pagesURL(t, "/comptes/mende"))
		customer.see(p.say("Jeton d’accès", "Access token"))
	})
}

// readTheService looks whether each part of the service is well, and how far the lists are behind.
func (p person) readTheService() {
	p.t.Helper()
	p.Click("link", "Service")
	p.see(p.say("Elle vérifie les clés et compte les requêtes.", "It checks keys and counts requests."))
	if !p.options.NoScript {
		p.WaitFor(p.say("en direct", "live"))
	}
	summary, _ := p.Eval("document.querySelector('#readiness summary').innerText").(string)
	p.unfold(summary)
	p.see(p.say("parties en ordre", "parts in order"))
	if lags, _ := p.Eval(`[...document.querySelectorAll("#tables td:nth-child(3)")].map(e => e.textContent.trim())`).([]any); len(lags) == 0 || fmt.Sprint(lags[0]) == "" {
		p.t.Errorf("the tables are behind by %v", lags)
	}
	p.check()
}

// inviteCustomer finds an account and invites its customer, who comes in.
func (p person) inviteCustomer() (customer person) {
	p.t.Helper()
	p.Click("link", p.say("Comptes", "Accounts"))
	p.Fill(p.say("Nom ou identifiant", "Name or id"), "mend")
	p.Click("button", p.say("Chercher", "Search"))
	if p.Has("link", "Mairie de Florac") {
		p.t.Errorf("the search for an account finds another: %s", p.Text())
	}
	p.check()
	p.Click("link", "Mairie de Mende")
	p.see(p.say("requêtes restantes", "requests left"))
	p.check()
	p.Click("link", p.say("Tous les comptes", "All accounts"))
	p.Click("link", p.say("Inviter quelqu’un", "Invite somebody"))
	p.check()
	p.pick("role", "customer")
	p.Fill(p.say("Compte", "Account"), "mende")
	p.Fill(p.say("À quoi sert cet accès", "What this access is for"), p.say("service des eaux", "water department"))
	p.Click("button", p.say("Créer l’invitation", "Make the invitation"))
	p.see(p.say("L’invitation est prête :", "The invitation is ready:"))
	p.check()
	customer = p.svc.newPerson(p.t, p.options)
	customer.signIn(p.elementText("invitation-link"))
	customer.see("Mairie de Mende")
	customer.check()
	return customer
}

// exportBilling saves what is billed, and follows a contract to its usage.
func (p person) exportBilling() {
	p.t.Helper()
	p.Click("link", p.say("Facturation", "Billing"))
	p.see("Mairie de Mende")
	p.check()
	if file, content := p.Download("button", p.say("Télécharger", "Download")); !strings.HasSuffix(file, ".csv") || !strings.Contains(string(content), "mende") {
		p.t.Errorf("the export is %s:\n%s", file, content)
	}
	p.Click("link", "Mairie de Mende")
	p.see(p.say("Utilisées 1", "Used 1"))
	if !strings.Contains(p.URL(), "periode=") {
		p.t.Errorf("the link of a period leads to %s", p.URL())
	}
	p.check()
	if file, content := p.Download("link", p.say("CSV standard", "Standard CSV")); !strings.HasSuffix(file, ".csv") || !strings.Contains(string(content), "GET /me") {
		p.t.Errorf("the usage is saved as %s:\n%s", file, content)
	}
}

// readHistory reads what happened to the account whose page is open.
func (p person) readHistory() {
	p.t.Helper()
	p.Click("link", p.say("Historique", "History"))
	p.see(p.say("A créé la clé secrète « serveur »", "Issued secret key “serveur”"))
	p.check()
	p.Choose(p.say("Concerne", "About"), p.say("Les accès et sessions", "Access and sessions"))
	p.Click("button", p.say("Filtrer", "Filter"))
	p.see(p.say("service des eaux", "water department"))
	p.check()
}

// endAccess revokes the token of the customer who was invited.
func (p person) endAccess() {
	p.t.Helper()
	p.Click("link", p.say("Tous les comptes", "All accounts"))
	p.Click("link", p.say("Accès", "Access"))
	p.check()
	p.Click("link", p.say("Révoquer service des eaux", "Revoke water department"))
	p.check()
	p.Fill(p.say("Motif, facultatif", "Reason, optional"), p.say("départ", "left"))
	p.Click("button", p.say("Révoquer cet accès", "Revoke this access"))
	p.see(p.say("L’accès est révoqué, et ses sessions sont fermées.", "The access is revoked, and its sessions are closed."))
	p.check()
}
