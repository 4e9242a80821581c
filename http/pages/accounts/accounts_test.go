package accounts_test

import (
	"net/url"
	"strings"
	"testing"

	"lieudit/http/pages/accounts"
	"lieudit/http/pages/page/pagetest"
	"lieudit/http/problem"
	"lieudit/schemas/body"
	"lieudit/schemas/grant"
	"lieudit/schemas/plan"
	"lieudit/schemas/refusal"
)

// newArea is the area of one account, whose texts are a label.
func newArea(role grant.Role, label string) *pagetest.Area {
	a := pagetest.New(role)
	anchor := plan.Date{Year: 2026, Month: 11, Day: 21}
	one := body.Account{ID: "mende", Anchor: anchor, Name: label, Plan: plan.Starter, Quota: 100_000, Created: pagetest.Now, Agency: label,
		NextTerms: &body.NextTerms{Plan: plan.Discovery, Quota: 5, Effective: pagetest.Now}}
	a.Answer("GET /accounts", body.Accounts{Results: []body.Account{one, {ID: label, Anchor: anchor, IsAgency: true, Closed: pagetest.Now}}, Cursor: label})
	a.Answer("GET /accounts/mende", one)
	return a
}

func TestEachPageShowsHostileTextAsText(t *testing.T) {
	t.Parallel()
	for _, label := range pagetest.HostileTexts {
		a := newArea(grant.RoleOperator, label)
		for _, target := range []string{
			"/comptes", "/comptes?" + url.Values{"q": {label}, "etat": {label}}.Encode(), "/ouverture", "/comptes/mende/offre", "/comptes/mende/fermeture",
		} {
			a.ExpectSafe(t, accounts.Section(), target, label)
		}
	}
}

func TestTheListAsksForWhatItsFormSays(t *testing.T) {
	t.Parallel()
	for form, want := range map[string]string{
		"":                              "etat=ouvert&limit=100",
		"?q=+mairie+d%27Alès&etat=tous": "etat=tous&limit=100&q=mairie+d%27Al%C3%A8s",
		"?etat=ferme&curseur=a%26b":     "curseur=a%26b&etat=ferme&limit=100",
	} {
		a := newArea(grant.RoleOperator, "x")
		text := a.Get(t, accounts.Section(), "/comptes"+form, "fr", 200)
		if got := a.LastQuery("GET /accounts").Encode(); got != want {
			t.Errorf("%s: got %s, want %s", form, got, want)
		}
		if !strings.Contains(text, `href="/comptes/mende"`) || !strings.Contains(text, "curseur=x") {
			t.Errorf("%s: the list lacks its links\n%s", form, text)
		}
	}
	if text := newArea(grant.RoleBilling, "x").Get(t, accounts.Section(), "/comptes", "fr", 200); !strings.Contains(text, `href="/comptes/mende/usage"`) {
		t.Error("billing is led to a page that it may not read")
	}
}

func TestAnEmptyListSaysWhatToDoNext(t *testing.T) {
	t.Parallel()
	for form, want := range map[string]string{"": "Open the first account", "?q=x": "No account matches", "?etat=ferme": "No account matches"} {
		a := pagetest.New(grant.RoleOperator)
		a.Answer("GET /accounts", body.Accounts{})
		if text := a.Get(t, accounts.Section(), "/comptes"+form, "en", 200); !strings.Contains(text, want) {
			t.Errorf("%q lacks %q", form, want)
		}
	}
}

func TestAnAccountIsOpenedWithWhatWasTyped(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		role grant.Role
		form url.Values
		want string
	}{
		"all": {grant.RoleOperator, url.Values{"nom": {" Mairie "}, "id": {"mende"}, "plan": {"GROWTH"}, "quota": {"1 200\u202f000"}, "debut_periode": {"2026-11-21"}, "agence_de": {"lozere"}, "proposition": {"p"}},
			`{"id":"mende","nom":"Mairie","plan":"GROWTH","quota":1200000,"debut_periode":"2026-11-21","agence_de":"lozere"}`},
		"the least": {grant.RoleOperator, url.Values{"nom": {"Mairie"}, "plan": {"STARTER"}, "proposition": {"abc"}}, `{"id":"abc","nom":"Mairie","plan":"STARTER"}`},
		"an agency chooses no id": {grant.RoleAgency, url.Values{"nom": {"Mairie"}, "plan": {"STARTER"}, "id": {"x"}, "proposition": {"abc"}, "agence_de": {"other"}},
			`{"nom":"Mairie","plan":"STARTER"}`},
	} {
		a := newArea(c.role, "x")
		a.Answer("POST /accounts", body.Account{ID: "opened", Anchor: plan.Date{Year: 2026, Month: 11, Day: 21}})
		if got := a.Redirect(t, accounts.Section(), "/ouverture", c.form); got != "/comptes/opened?fait=compte-ouvert" {
			t.Errorf("%s: led to %s", name, got)
		}
		if got := a.LastBody("POST /accounts"); got != c.want {
			t.Errorf("%s: sent %s, want %s", name, got, c.want)
		}
	}
}

// A form that is sent twice finds the account that the first one opened. An id that somebody chose and that is taken is refused.
func TestAFormThatIsSentTwiceOpensOneAccount(t *testing.T) {
	t.Parallel()
	a := newArea(grant.RoleOperator, "x")
	a.Fail("POST /accounts", refusal.AccountExists)
	form := url.Values{"nom": {"Mairie"}, "plan": {"STARTER"}, "proposition": {"abc"}}
	if got := a.Redirect(t, accounts.Section(), "/ouverture", form); got != "/comptes/abc?fait=compte-ouvert" {
		t.Errorf("led to %s", got)
	}
	form.Set("id", "mende")
	if text := a.Post(t, accounts.Section(), "/ouverture", "en", form, 409); !strings.Contains(text, `id="e-id"`) || !strings.Contains(text, `value="Mairie"`) {
		t.Errorf("got %s", text)
	}
}

func TestErrorsStandBesideTheirFields(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		form  url.Values
		err   error
		field string
	}{
		"no number":       {url.Values{"quota": {"many"}}, nil, "quota"},
		"no day":          {url.Values{"debut_periode": {"soon"}}, nil, "debut_periode"},
		"a broken rule":   {nil, problem.BrokenRule("body", "nom", "missing", "Field required"), "nom"},
		"unknown agency":  {nil, refusal.AgencyUnknown, "agence_de"},
		"too high":        {url.Values{"quota": {"9"}}, problem.BrokenRule("body", "quota", "less_than_equal", "Input should be less than or equal to 5"), "quota"},
		"a plan there is": {url.Values{"plan": {"X"}}, problem.BrokenRule("body", "plan", "literal_error", "x"), "plan"},
	} {
		a := newArea(grant.RoleOperator, "x")
		a.Fail("POST /accounts", c.err)
		form := url.Values{"nom": {"kept"}}
		for k, v := range c.form {
			form[k] = v
		}
		status := 422
		if c.err == refusal.AgencyUnknown {
			status = 409
		}
		text := a.Post(t, accounts.Section(), "/ouverture", "fr", form, status)
		if !strings.Contains(text, `id="e-`+c.field+`"`) || !strings.Contains(text, `value="kept"`) {
			t.Errorf("%s: the page does not mark %s, or loses what was typed\n%s", name, c.field, text)
		}
	}
}

func TestAPlanIsChangedAndAnAccountClosed(t *testing.T) {
	t.Parallel()
	a := newArea(grant.RoleOperator, "x")
	a.Answer("POST /accounts/mende:plan", nil)
	a.Answer("POST /accounts/mende:close", nil)
	if got := a.Redirect(t, accounts.Section(), "/comptes/mende/offre", url.Values{"plan": {"BUSINESS"}, "quota": {"7"}}); got != "/comptes/mende?fait=offre-changee" {
		t.Errorf("led to %s", got)
	}
	if got := a.LastBody("POST /accounts/mende:plan"); got != `{"plan":"BUSINESS","quota":7}` {
		t.Errorf("sent %s", got)
	}
	if text := a.Post(t, accounts.Section(), "/comptes/mende/fermeture", "en", url.Values{"id": {"other"}, "reason": {"gone"}}, 422); !strings.Contains(text, "Enter mende") || !strings.Contains(text, `value="gone"`) {
		t.Errorf("got %s", text)
	}
	if a.Calls("POST /accounts/mende:close") != 0 {
		t.Error("the account was closed without its id")
	}
	if got := a.Redirect(t, accounts.Section(), "/comptes/mende/fermeture", url.Values{"id": {" mende "}, "reason": {"gone"}}); got != "/comptes?etat=tous&fait=compte-ferme" {
		t.Errorf("led to %s", got)
	}
	if got := a.LastBody("POST /accounts/mende:close"); got != `{"id":"mende","reason":"gone"}` {
		t.Errorf("sent %s", got)
	}
}

func TestWhoMayNotDoItSeesNoForm(t *testing.T) {
	t.Parallel()
	a := newArea(grant.RoleCustomer, "x")
	for target, refused := range map[string]string{"/ouverture": "/accounts", "/comptes/mende/offre": "/accounts/mende:plan", "/comptes/mende/fermeture": "/accounts/mende:close"} {
		a.Refused = refused
		a.Get(t, accounts.Section(), target, "fr", 403)
	}
}
