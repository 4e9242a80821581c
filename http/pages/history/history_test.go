package history_test

import (
	"encoding/json"
	"html"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"lieudit/http/pages/history"
	"lieudit/http/pages/page/pagetest"
	"lieudit/http/problem"
	"lieudit/schemas/body"
	"lieudit/schemas/grant"
	"lieudit/schemas/plan"
	"lieudit/schemas/refusal"
	"lieudit/schemas/token"
)

const keyID = "01a21c76-0213-7056-8ad0-d704830c47c3"

var opened = time.Date(2026, 11, 21, 11, 25, 7, 123456000, time.UTC)

// newArea is the area of an account that was opened, whose plan was changed an hour later and that had one key at first and has another
// now. label is what its texts are.
func newArea(role grant.Role, label string) *pagetest.Area {
	a := pagetest.New(role)
	key := body.Key{ID: keyID, Kind: token.Publishable, Label: label, Hint: "ld_pk_…1cXG", Origins: []string{"https://a.fr"}, Created: opened}
	now := body.State{Account: "mende", Name: label, AsOf: pagetest.Now, Position: 420, Plan: plan.Growth, Quota: 500_000, Anchor: plan.Date{Year: 2026, Month: 11, Day: 21}, Created: opened, Keys: []body.Key{key}}
	then := now
	then.Plan, then.Quota, then.Keys = plan.Starter, 100_000, []body.Key{{ID: "other", Kind: token.Secret, Label: "old", Hint: "h"}}
	a.Handle("GET /accounts/mende/state", func(q url.Values, _ []byte) (any, error) {
		at, _ := time.Parse(time.RFC3339Nano, q.Get("as_of"))
		switch {
		case q.Get("as_of") == "":
			return now, nil
		case at.Before(opened):
			return nil, refusal.NotFound
		}
		return then, nil
	})
	a.Answer("GET /accounts/mende", body.Account{ID: "mende", Name: label, Anchor: now.Anchor})
	a.Handle("GET /accounts/mende/keys", func(url.Values, []byte) (any, error) { return body.Keys{Results: []body.Key{key}}, nil })
	a.Handle("GET /accounts/mende/history", func(q url.Values, _ []byte) (any, error) {
		if q.Get("curseur") == "x" {
			return nil, problem.InvalidCursor()
		}
		data, err := json.Marshal(map[string]string{"label": label})
		e := body.Incident{Position: 400, Time: opened, Type: "account.publishable-key-issued.v2", Subject: keyID, Author: "token:t1", AuthorName: label,
			AuthorRole: grant.RoleOperator, OnBehalfOf: label, Reason: label, Sentence: "issued publishable key " + keyID + " (" + label + ")", Data: data}
		other := e
		other.Author, other.AuthorName, other.AuthorRole, other.Sentence = "system", "", "", "closed session 01a21c76-0213-7056-8ad0-d704830c47ff at 2026-12-11T11:26:10.163275+01:00, effective 2026-12-21T00:00:00+01:00"
		return body.History{Results: []body.Incident{e, other}, Cursor: "400.0"}, err
	})
	return a
}

func TestEachPageShowsHostileTextAsText(t *testing.T) {
	t.Parallel()
	for _, label := range pagetest.HostileTexts {
		a := newArea(grant.RoleAuditor, label)
		for _, target := range []string{
			"/audit", "/comptes/mende/historique", "/comptes/mende/historique/400?le=2026-11-21T11:25:07.123456Z", "/comptes/mende/etat", "/comptes/mende/etat?le=2026-11-21T13:00",
			"/comptes/mende/historique?" + url.Values{"sujet": {label}, "curseur": {"400.0"}}.Encode(), "/audit?" + url.Values{"compte": {label}}.Encode(),
			"/comptes/mende/etat?" + url.Values{"le": {label}}.Encode(), "/comptes/mende/historique?" + url.Values{"du": {label}, "kind": {label}}.Encode(),
		} {
			a.ExpectSafe(t, history.Section(), target, label)
		}
	}
}

func TestAHistoryTellsWhoDidWhat(t *testing.T) {
	t.Parallel()
	text := newArea(grant.RoleCustomer, "site de la mairie").Get(t, history.Section(), "/comptes/mende/historique?kind=keys&du=2026-11-20&au=2026-11-21&sujet=s", "fr", 200)
	for _, want := range []string{
		"Issued publishable key « site de la mairie »", "Le service", "Opérateur", "pour site de la mairie", "Motif :", "21 novembre 2026",
		"Closed session …0c47ff at 11 décembre 2026, 11\u00a0h\u00a026, effective 21 décembre 2026", "/comptes/mende/historique/400?le=2026-11-21T11%3A25%3A07.123456Z&amp;sujet=" + keyID, "curseur=400.0&amp;du=2026-11-20&amp;kind=keys&amp;sujet=s", "numéro 420 au journal",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q\n%s", want, text)
		}
	}
	if strings.Contains(text, "account.publishable-key-issued.v2") || strings.Contains(text, "/audit") {
		t.Error("a customer sees what is for auditors")
	}
}

// TestANameLeavesTheRestOfItsSentenceAlone: no label turns the direction of what follows it.
func TestANameLeavesTheRestOfItsSentenceAlone(t *testing.T) {
	t.Parallel()
	for label, want := range map[string]string{
		"serveur":                      "serveur",
		"été à Nîmes":                  "été à Nîmes",
		"a\u202eb":                     "ab",
		"\u2069\u202ea\u200f\u061cb":   "ab",
		"\u2066a\u2067b\u202ac\u202bd": "abcd",
		"עירייה":                       "\u2068עירייה\u2069",
		"بلدية\u202e":                  "\u2068بلدية\u2069",
	} {
		text := html.UnescapeString(newArea(grant.RoleAuditor, label).Get(t, history.Section(), "/comptes/mende/historique", "fr", 200))
		for _, part := range []string{"key «\u00a0" + want + "\u00a0»", `<span class="any">` + want + "</span>"} {
			if !strings.Contains(text, part) {
				t.Errorf("%q: the page lacks %q", label, part)
			}
		}
	}
}

func TestAnEventIsShownWhole(t *testing.T) {
	t.Parallel()
	const path = "/comptes/mende/historique/400?le=2026-11-21T11%3A25%3A07.123456Z&sujet=" + keyID
	a := newArea(grant.RoleAuditor, "site")
	text := html.UnescapeString(a.Get(t, history.Section(), path, "en", 200))
	for _, want := range []string{"Event 400", "account.publishable-key-issued.v2", "token:t1", "2026-11-21T11:25:07.123456Z", `"label": "site"`, "/etat?le="} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q\n%s", want, text)
		}
	}
	if got := a.LastQuery("GET /accounts/mende/history"); got.Get("from") != "2026-11-21T11:25:07.123456Z" || got.Get("to") != "2026-11-21T11:25:07.123457Z" || got.Get("sujet") != keyID {
		t.Errorf("asked for %v", got)
	}
	if text := newArea(grant.RoleCustomer, "site").Get(t, history.Section(), path, "en", 200); strings.Contains(text, "token:t1") || strings.Contains(text, "publishable-key-issued") {
		t.Error("a customer sees technical names")
	}
	for _, other := range []string{"/comptes/mende/historique/401?le=2026-11-21T11:25:07Z", "/comptes/mende/historique/400", "/comptes/mende/historique/400?le=x", "/comptes/mende/historique/x"} {
		a.Get(t, history.Section(), other, "en", 404)
	}
}

// What a page asks for is what its form says: days are those of Paris, and the last one is included.
func TestTheFiltersOfTheFormAreThoseOfTheOperation(t *testing.T) {
	t.Parallel()
	for form, want := range map[string]url.Values{
		"":                                 {"resume": {"true"}},
		"kind=keys&sites=1":                {"kind": {"keys"}},
		"sujet=magasins/paris":             {"sujet": {"magasins/paris"}},
		"du=2026-11-21&au=2026-11-21":      {"resume": {"true"}, "from": {"2026-11-21T00:00:00+01:00"}, "to": {"2026-11-22T00:00:00+01:00"}},
		"au=2026-10-24&kind=&du=&sujet=++": {"resume": {"true"}, "to": {"2026-10-25T00:00:00+02:00"}},
		"curseur=1.2":                      {"resume": {"true"}, "curseur": {"1.2"}},
	} {
		a := newArea(grant.RoleAuditor, "x")
		a.Get(t, history.Section(), "/comptes/mende/historique?"+form, "en", 200)
		got := a.LastQuery("GET /accounts/mende/history")
		want["ordre"], want["langue"], want["limit"] = []string{"recent"}, []string{"en"}, []string{"30"}
		if got.Encode() != want.Encode() {
			t.Errorf("%s: got %s, want %s", form, got.Encode(), want.Encode())
		}
	}
	for form, field := range map[string]string{"du=x": "du", "au=2026-13-01": "au", "du=2026-11-22&au=2026-11-21": "au", "curseur=x": "curseur"} {
		text := newArea(grant.RoleAuditor, "x").Get(t, history.Section(), "/comptes/mende/historique?"+form, "fr", 422)
		if !strings.Contains(text, "#f-"+field) {
			t.Errorf("%s: the page does not say what is wrong with %s", form, field)
		}
	}
}

func TestAnAccountIsComparedWithWhatItWas(t *testing.T) {
	t.Parallel()
	a := newArea(grant.RoleAuditor, "site")
	text := html.UnescapeString(a.Get(t, history.Section(), "/comptes/mende/etat?le=2026-11-21T12:25:08", "fr", 200))
	for _, want := range []string{"STARTER", "GROWTH", "100 000 requêtes", "4 différences", "Événement précédent", "Dernier événement compris", "pas valable", `value="2026-11-21T12:25:08"`} {
		if !strings.Contains(text, strings.ReplaceAll(want, "100 000", "100\u202f000")) {
			t.Errorf("the page lacks %q\n%s", want, text)
		}
	}
	if got := a.LastQuery("GET /accounts/mende/state").Get("as_of"); got != "2026-11-21T12:25:08+01:00" {
		t.Errorf("asked as of %s", got)
	}
	if text := a.Get(t, history.Section(), "/comptes/mende/etat", "en", 200); strings.Contains(text, "different") || !strings.Contains(text, "GROWTH") {
		t.Errorf("without an instant something differs\n%s", text)
	}
	for instant, want := range map[string]string{
		"2020-01-01": "was not open yet", "2099-01-01T00:00": "still to come", "yesterday": "such as 2026-11-21 12:25", "2026-13-40": "such as 2026-11-21 12:25",
	} {
		if text := a.Get(t, history.Section(), "/comptes/mende/etat?le="+instant, "en", 422); !strings.Contains(text, want) {
			t.Errorf("%s: the page lacks %q", instant, want)
		}
	}
	// The link of an event names the instant exactly.
	a.Get(t, history.Section(), "/comptes/mende/etat?le=2026-11-21T11:25:07.123456Z", "en", 200)
	if got := a.LastQuery("GET /accounts/mende/state").Get("as_of"); got != "2026-11-21T11:25:07.123456Z" {
		t.Errorf("asked as of %s", got)
	}
}

func TestAnAuditorChoosesAnAccountByItsID(t *testing.T) {
	t.Parallel()
	a := newArea(grant.RoleAuditor, "x")
	if got := a.Redirect(t, history.Section(), "/audit?compte=+Mende+", nil); got != "/comptes/mende/historique" {
		t.Errorf("led to %q", got)
	}
	if text := a.Get(t, history.Section(), "/audit?compte=nobody", "en", 404); !strings.Contains(text, "No account has this id.") || !strings.Contains(text, `value="nobody"`) {
		t.Errorf("got %s", text)
	}
	a.Refused = "/accounts/x/history"
	a.Get(t, history.Section(), "/audit", "en", 403)
}

// A page with as many events as it shows, each with the longest texts and ten origins, stays within the budget of a page.
func TestTheLongestHistoryFitsItsBudget(t *testing.T) {
	t.Parallel()
	label := strings.Repeat("é\"", 100)
	origins := make([]string, 10)
	for i := range origins {
		origins[i] = "https://" + strings.Repeat("a", 60) + "." + strings.Repeat("b", 60) + ".fr"
	}
	data, err := json.Marshal(map[string]any{"key": keyID, "hint": "ld_pk_…1cXG", "before": origins, "origins": origins})
	if err != nil {
		t.Fatal(err)
	}
	a := newArea(grant.RoleAuditor, label)
	e := body.Incident{
		Position: 1 << 40, Time: opened, Type: "account.publishable-key-issued.v2", Subject: keyID, Author: "token:" + keyID, AuthorName: label, AuthorRole: grant.RoleOperator,
		OnBehalfOf: "mende", Reason: label, Sentence: "changed the origins of key " + keyID + " from " + strings.Join(origins, ", ") + " to " + strings.Join(origins, ", "), Data: data,
	}
	found := body.History{Cursor: "400.0"}
	a.Handle("GET /accounts/mende/history", func(q url.Values, _ []byte) (any, error) {
		limit, err := strconv.Atoi(q.Get("limit"))
		found.Results = slices.Repeat([]body.Incident{e}, limit)
		return found, err
	})
	a.ExpectSafe(t, history.Section(), "/comptes/mende/historique", label)
}
