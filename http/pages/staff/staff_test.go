package staff_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"lieudit/http/pages/page/pagetest"
	"lieudit/http/pages/staff"
	"lieudit/http/problem"
	"lieudit/schemas/body"
	"lieudit/schemas/grant"
	"lieudit/schemas/plan"
)

var november = plan.Date{Year: 2026, Month: 11, Day: 21}

// newArea is the area of a service with two instances in which everything has a text that is label, and something is wrong everywhere.
func newArea(role grant.Role, label string) *pagetest.Area {
	a := pagetest.New(role)
	lag := 17
	a.Answer("GET /readiness", body.Readiness{Results: []body.ReadinessPart{
		{Name: label, About: label, Reason: label, Advice: label}, {Name: "log", About: label, IsRequired: true, Reason: label, Advice: label}, {Name: "vault", About: label, IsFine: true},
	}})
	a.Answer("GET /projections", body.Projections{Results: []body.Projection{
		{Name: "usage", Version: 4, Generation: "usage-v4-g1", State: "serving", Position: 4200, Lag: &lag, Reason: label,
			Stopped: []body.StoppedAccount{{Account: label, Kind: "unusable", Reason: label, Position: 5}, {Account: label, Kind: "refold", Reason: label}}},
		{Name: "usage", Version: 1, Generation: "usage-v1-g1", State: "serving"}, {Name: label, Version: 1, Generation: label, State: label},
		{Name: "usage", Version: 4, Generation: "gone", State: "dropped"},
	}})
	served := []body.ServingInstance{{URL: label, Host: label, Program: label, Date: label, IsThis: true, IsCurrent: true}, {Host: label, Problem: label}}
	a.Answer("GET /vintages", body.ServedVintages{Problem: label, Instances: served, Results: []body.ServedVintage{{Millesime: label, Addresses: 5, IsSynthetic: true}}})
	a.Answer("GET /networks", body.ServedNetworks{Problem: label, Instances: served, Results: []body.ServedNetwork{{Engine: label, Date: label, Modes: []string{"car", label}, Attribution: label}}})
	a.Answer("GET /upgrade", body.Upgrade{Format: 4, KnownFormat: 5, Instances: []body.RunningInstance{{ID: label, Program: label, IsBlocking: true}}})
	a.Answer("GET /tokens", body.AreaTokens{Results: []body.AreaToken{
		{ID: "t0", Role: grant.RoleOperator, Label: label, Hint: label, CreatedBy: "system"},
		{ID: "t1", Role: grant.RoleCustomer, Account: label, Label: label, Hint: label, CreatedBy: "token:t0"},
		{ID: "t2", Role: grant.RoleAuditor, Label: label, Hint: label, CreatedBy: "token:t0", Invited: pagetest.Now.Add(time.Hour)},
		{ID: "t3", Role: grant.RoleAuditor, Label: label, Hint: label, CreatedBy: "token:" + label, Revoked: pagetest.Now, RevokedBy: "token:t0", Reason: label},
	}})
	period := body.Period{Contract: label, Period: november, Interval: body.Interval{Start: november.Start(), End: november.Start().AddDate(0, 1, 0)}, Limit: 100, Requests: 12_345, State: body.PeriodEnded}
	closed := period
	closed.Contract, closed.State, closed.Closed = "mende", body.PeriodClosed, pagetest.Now
	a.Answer("GET /usage/periods", body.Periods{Results: []body.Period{period, closed}, Cursor: label})
	a.Answer("GET /accounts", body.Accounts{Results: []body.Account{{ID: "mende", Name: label, Anchor: november}}})
	a.Answer("POST /usage:reconcile", body.Reconciliation{Periods: 2, Lines: 3, Requests: 4,
		Differences: []body.UsageDifference{{Contract: label, Period: label, Kind: "ligne", Account: label, Key: label, Endpoint: label, Day: november, InLog: label, Shown: label}, {Kind: label}},
		Unanswered:  []body.Unanswered{{InstanceID: label, Requests: 1, Running: true}},
	})
	return a
}

func TestEachPageShowsHostileTextAsText(t *testing.T) {
	t.Parallel()
	for _, label := range pagetest.HostileTexts {
		a := newArea(grant.RoleOperator, label)
		for _, target := range []string{
			"/service", "/service/reconstruction/usage", "/acces", "/acces/t1/revocation", "/acces/t3/revocation", "/facturation", "/facturation/rapprochement",
			"/facturation?" + url.Values{"mois": {label}, "curseur": {label}}.Encode(), "/facturation/rapprochement?" + url.Values{"mois": {label}}.Encode(), "/acces?" + url.Values{"curseur": {label}}.Encode(),
		} {
			a.ExpectSafe(t, staff.Section(), target, label)
		}
		for _, language := range []string{"fr", "en"} {
			text := a.Post(t, staff.Section(), "/facturation/rapprochement", language, url.Values{"period": {label}}, 200)
			if strings.Count(text, "<script") != 1 || strings.Contains(text, "ZgotmplZ") {
				t.Errorf("%s: the result has %q as markup\n%s", language, label, text)
			}
		}
	}
}

func expect(t *testing.T, text string, wanted ...string) {
	t.Helper()
	for _, want := range wanted {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q\n%s", want, text)
		}
	}
}

func TestTheServicePageSaysWhatIsWrongAndWhatToDo(t *testing.T) {
	t.Parallel()
	text := newArea(grant.RoleOperator, "x").Get(t, staff.Section(), "/service", "en", 200)
	expect(t, text, "This instance is not ready.", "1 part in order", "17 events behind", "earlier version", "number 4200", "lieudit upgrade finish", "invented streets", "not up to date", "lag unknown",
		"lieudit projections repair x", "This repairs itself")
	if strings.Index(text, "required") > strings.Index(text, "to look at") {
		t.Error("what is required does not come first")
	}
	if got := strings.Count(text, "/service/reconstruction/usage"); got != 1 {
		t.Errorf("%d buttons rebuild usage, want that of the copy that this program reads", got)
	}
	if strings.Contains(text, "gone") {
		t.Error("a copy that is gone is shown")
	}
}

func TestARebuildIsConfirmed(t *testing.T) {
	t.Parallel()
	a := newArea(grant.RoleOperator, "x")
	a.Answer("POST /projections/usage:rebuild", body.Projections{})
	expect(t, a.Get(t, staff.Section(), "/service/reconstruction/usage", "fr", 200), "Une copie neuve")
	if a.Calls("POST /projections/usage:rebuild") != 0 {
		t.Error("a rebuild began without a confirmation")
	}
	if got := a.Redirect(t, staff.Section(), "/service/reconstruction/usage", url.Values{}); got != "/service?fait=reconstruction" {
		t.Errorf("led to %s", got)
	}
	a.Get(t, staff.Section(), "/service/reconstruction/nothing", "fr", 404)
	a.Refused = "/projections"
	a.Get(t, staff.Section(), "/service/reconstruction/usage", "fr", 403)
}

func TestAccessIsListedAndRevoked(t *testing.T) {
	t.Parallel()
	a := newArea(grant.RoleOperator, "label")
	text := a.Get(t, staff.Section(), "/acces", "en", 200)
	expect(t, text, "Open invitations", "/acces/t2/revocation", "yours", "by the service", "by label", "Revoked access (1)")
	if strings.Contains(text, "/acces/t3/revocation") {
		t.Error("what is revoked can be revoked again")
	}
	expect(t, a.Get(t, staff.Section(), "/acces/t1/revocation", "en", 200), "you will be signed out")
	expect(t, a.Get(t, staff.Section(), "/acces/t3/revocation", "en", 200), "has been revoked since")
	a.Get(t, staff.Section(), "/acces/nobody/revocation", "en", 404)

	a.Answer("POST /tokens/t2:revoke", body.AreaToken{})
	a.Answer("POST /tokens/t1:revoke", body.AreaToken{})
	if got := a.Redirect(t, staff.Section(), "/acces/t2/revocation", url.Values{"reason": {"gone"}}); got != "/acces?fait=acces-revoque" {
		t.Errorf("led to %s", got)
	}
	if got := a.LastBody("POST /tokens/t2:revoke"); got != `{"reason":"gone"}` {
		t.Errorf("sent %s", got)
	}
	if got := a.Redirect(t, staff.Section(), "/acces/t1/revocation", url.Values{}); got != "/connexion" {
		t.Errorf("after one's own access it led to %s", got)
	}
	a.Fail("POST /tokens/t2:revoke", problem.BrokenRule("body", "reason", "string_too_long", "String should have at most 500 characters"))
	expect(t, a.Post(t, staff.Section(), "/acces/t2/revocation", "en", url.Values{"reason": {"kept"}}, 422), "At most 500 characters.", `value="kept"`)
}

func TestBillingListsPeriodsAndExportsThem(t *testing.T) {
	t.Parallel()
	a := newArea(grant.RoleBilling, "Mairie")
	text := a.Get(t, staff.Section(), "/facturation?mois=2026-11", "fr", 200)
	expect(t, text, "12\u202f345", "à clore", "21 novembre 2026", "/comptes/mende/usage?periode=2026-11-21", "Mairie", "curseur=Mairie&amp;mois=2026-11", `name="mois" value="2026-11"`)
	if got := a.LastQuery("GET /usage/periods").Encode(); got != "limit=100&period=2026-11" {
		t.Errorf("asked for %s", got)
	}
	a.Get(t, staff.Section(), "/facturation?mois=november", "fr", 422)
	a.Answer("GET /usage", "lines")
	for format, want := range map[string]string{
		"excel": "format=csv&period=2026-11&tableur=excel", "csv": "format=csv&period=2026-11&tableur=standard", "ndjson": "format=ndjson&period=2026-11", "json": "format=json&period=2026-11",
	} {
		if got := a.Get(t, staff.Section(), "/facturation/export?mois=2026-11&format="+format, "fr", 200); got != "lines" {
			t.Errorf("%s: got %s", format, got)
		}
		if got := a.LastQuery("GET /usage").Encode(); got != want {
			t.Errorf("%s: asked for %s, want %s", format, got, want)
		}
	}
	a.Get(t, staff.Section(), "/facturation/export?format=pdf", "fr", 404)
}

func TestAComparisonShowsItsDifferences(t *testing.T) {
	t.Parallel()
	a := newArea(grant.RoleBilling, "x")
	text := a.Post(t, staff.Section(), "/facturation/rapprochement", "en", url.Values{"period": {"2026-11"}}, 200)
	expect(t, text, "2 differences.", "a line", "Do not bill", "Perhaps counted without an answer", `value="2026-11"`)
	if got := a.LastBody("POST /usage:reconcile"); got != `{"period":"2026-11"}` {
		t.Errorf("sent %s", got)
	}
	a.Answer("POST /usage:reconcile", body.Reconciliation{Periods: 2})
	expect(t, a.Post(t, staff.Section(), "/facturation/rapprochement", "en", url.Values{}, 200), "All agrees.", "2 periods compared")
	a.Fail("POST /usage:reconcile", problem.BrokenRule("body", "period", "string_pattern_mismatch", "x"))
	expect(t, a.Post(t, staff.Section(), "/facturation/rapprochement", "en", url.Values{"period": {"soon"}}, 422), `id="e-period"`, `value="soon"`)
	a.Refused = "/usage"
	a.Get(t, staff.Section(), "/facturation/rapprochement", "en", 403)
}
