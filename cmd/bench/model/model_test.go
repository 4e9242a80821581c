package model

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// exchange is a request and its answer.
type exchange struct {
	name   string
	op     Operation
	status int
	body   string
	wait   time.Duration // before it
	act    func(*Model)  // after it
}

// wall is the wall clock of the story.
var wall = time.Date(2026, 1, 15, 9, 0, 0, 0, time.UTC)

const (
	shownOne    = `{"id":"compte-01","nom":"Un","plan":"STARTER","quota":8,"debut_periode":"2026-01-01","agence":false}`
	shownKey1   = `{"id":"K1","kind":"secret","label":"k","token":"t"}`
	revokedKey1 = `{"id":"K1","kind":"secret","label":"k","revoque_le":"2026-01-15T09:00:00Z"}`
	shownSite1  = `{"id":"S1","referentiel":"r","external_id":"s","nom":"a","actif":true,"version":1,"proprietes":{"nom":"a"}}`
	shownSync   = `{"crees":1,"modifies":0,"inchanges":0,"reactives":0,"desactives":1,"actifs_avant":1,"actifs_apres":1,"sites_actifs":1}`
	shownMe     = `{"client":"compte-01"}`
)

func withKey(label, endpoint string, s Service, command PlacesCommand) Operation {
	return Operation{Account: "compte-01", Key: label, Endpoint: endpoint, Service: s, Weight: 1, OnPlaces: command, Text: endpoint}
}

func inArea(account, endpoint string, command AccountCommand) Operation {
	return Operation{Account: account, Token: Operator, Endpoint: endpoint, OnAccount: command, Text: endpoint}
}

// story is what a right service answers: eight requests count, and eight are the cap.
func story() []exchange {
	sync := SyncSites{Code: "r", Rows: []Row{{"b", "b"}}, ConfirmsReduction: true, IdempotencyKey: "i"}
	me := withKey("k", "GET /me", Addresses, nil)
	search := withKey("p", "GET /locations/search", Locations, nil)
	stranger := inArea("compte-01", "GET /accounts/{id}", nil)
	stranger.Token = "of compte-02"
	return []exchange{
		{"open", inArea("compte-01", "POST /accounts", OpenAccount{ID: "compte-01", Name: "Un", Plan: "STARTER", Quota: 8,
			Anchor: "2026-01-01"}), 201, shownOne, 0, nil},
		{"open again", inArea("compte-01", "POST /accounts", OpenAccount{ID: "compte-01", Name: "Un", Plan: "STARTER",
			Anchor: "2026-01-01"}), 409,
			`{"detail":{"code":"compte_deja_ouvert"}}`, 0, func(m *Model) { m.IssuedToken("of compte-02", "customer", "compte-02", "x") }},
		{"issue", inArea("compte-01", "POST /accounts/{id}/keys", IssueKey{Kind: "secret", Label: "k"}), 201, shownKey1, 0, nil},
		{"issue for a page", inArea("compte-01", "POST /accounts/{id}/keys", IssueKey{Kind: "publishable", Label: "p",
			Origins: []string{"https://p.fr"}}), 201,
			`{"id":"P1","kind":"publishable","label":"p","token":"u","origins":["https://p.fr"]}`, 0, nil},
		{"issue too many", inArea("compte-01", "POST /accounts/{id}/keys", IssueKey{Kind: "publishable", Label: "q",
			Origins: []string{"https://q.fr"}}), 409,
			`{"detail":{"code":"capacite_cles_publiables_depassee","plafond":1,"actives":1}}`, 0, nil},
		{"me", me, 200, shownMe, 2 * time.Second, nil},
		{"open referential", withKey("k", "POST /locations/referentiels", Locations, OpenReferential{"r", "R"}), 201,
			`{"code":"r","nom":"R","status":"active"}`, 0, nil},
		{"put", withKey("k", "PUT site", Locations, PutSite{"r", "s", "a"}), 201, shownSite1, 0, nil},
		{"put again", withKey("k", "PUT site", Locations, PutSite{"r", "s", "a"}), 200, shownSite1, 0, nil},
		{"sync", withKey("k", "sync", Locations, sync), 200, shownSync, 0, nil},
		{"sync again", withKey("k", "sync", Locations, sync), 200, shownSync, 0, nil},
		{"failing", me, 500, `{"detail":"Internal error"}`, 0, nil},
		{"lost", withKey("k", "PUT site", Locations, PutSite{"r", "s", "c"}), 0, "", 0, nil},
		{"last", me, 200, shownMe, 0, nil},
		{"above the cap", me, 429, `{"detail":"Your plan (STARTER) has exceeded the rate limit for this service."}`, 0, nil},
		{"route", withKey("k", "GET /route/compute", Route, nil), 403,
			`{"detail":"Your plan (STARTER) does not have access to this service."}`, 0, nil},
		{"from nowhere", search, 403, `{"detail":{"code":"origine_absente"}}`, 0, nil},
		{"a stranger's", stranger, 404, `{"detail":"Not found"}`, 0, nil},
		{"revoke", inArea("compte-01", "POST /accounts/{id}/keys/{key}:revoke", RevokeKey{"k"}), 200, revokedKey1, 0, nil},
		{"move", inArea("compte-01", "PUT /accounts/{id}/keys/{key}/origins", ChangeOrigins{"p", []string{"https://p.fr"}}), 200,
			`{"id":"P1","kind":"publishable","label":"","champs_omis":["label"],"origins":["https://p.fr"]}`, 0, nil},
		{"after that", me, 401, `{"detail":"Invalid API key"}`, 2 * time.Second, nil},
	}
}

// quiet is what is shown in the end.
type quiet struct {
	account, keys, referentials, sites, usage string
	billed                                    []BilledLine
	history                                   []Incident
}

func newQuiet() quiet {
	line := func(endpoint string, n int64) BilledLine {
		return BilledLine{"compte-01", "compte-01", "2026-01-01", "2026-01-15", "K1", endpoint, n}
	}
	history := []Incident{{"key-issued", "K1"}, {"key-issued", "P1"}, {"key-revoked", "K1"}, {"referential-opened", "r"}}
	for _, site := range []string{"r/s", "r/s", "r/s", "r/b"} {
		history = append(history, Incident{"sites-changed", site})
	}
	return quiet{
		account:      shownOne,
		keys:         `{"results":[` + revokedKey1 + `,{"id":"P1","kind":"publishable","label":"p","origins":["https://p.fr"]}]}`,
		referentials: `{"results":[{"code":"r","nom":"R","status":"active","sites_actifs":1}]}`,
		sites: `{"results":[{"id":"S1","referentiel":"r","external_id":"s","nom":"c","actif":false,"desactive_le":"2026-01-15T09:00:00Z","version":3,"proprietes":{"nom":"c"}},
			{"id":"S2","referentiel":"r","external_id":"b","nom":"b","actif":true,"version":1,"proprietes":{"nom":"b"}}]}`,
		usage:   `{"periode":"2026-01-01","limite":8,"total":8,"lignes":[{"requetes":8}]}`,
		billed:  []BilledLine{line("GET /me", 2), line("POST /locations/referentiels", 1), line("PUT site", 3), line("sync", 2)},
		history: history,
	}
}

// tellStory has a model judge a story and its end, and returns the rules that were broken.
func tellStory(t *testing.T, story []exchange, q quiet) (broken []Rule, texts []string) {
	m := New(func(rule Rule, format string, args ...any) {
		broken, texts = append(broken, rule), append(texts, fmt.Sprintf("%s: %s", rule, fmt.Sprintf(format, args...)))
	})
	for _, e := range story {
		time.Sleep(e.wait)
		call := m.Begin(e.op, wall)
		m.End(call, Answer{Status: e.status, Body: []byte(e.body), IsSent: true}, wall)
		if e.act != nil {
			e.act(m)
		}
	}
	ok := func(body string) Answer { return Answer{Status: 200, Body: []byte(body), IsSent: true} }
	account := ok(q.account)
	if q.account == "" {
		account.Status = 404
	}
	m.SettleAccount("compte-01", account, ok(q.keys), wall)
	m.SettleUsage(q.billed)
	m.CheckUsage("compte-01", ok(q.usage), wall)
	m.SettlePlaces("compte-01", ok(q.referentials), map[string]Answer{"r": ok(q.sites)})
	m.CheckAudit("compte-01", q.history)
	return broken, texts
}

func TestModelAllowsWhatIsRight(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		if broken, texts := tellStory(t, story(), newQuiet()); len(broken) > 0 {
			t.Errorf("broken: %q", texts)
		}
	})
}

// Each rule is broken by one answer that is wrong.
func TestModelFindsWrongAnswers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule   Rule
		name   string
		status int
		body   string
	}{
		{KnownStatus, "me", 418, `{}`},
		{KnownStatus, "open again", 402, `{}`},
		{RevokedIsRefused, "after that", 200, shownMe},
		{ActiveIsAccepted, "me", 401, `{"detail":"Invalid API key"}`},
		{PlanIsHeld, "route", 200, `{}`},
		{PlanIsHeld, "me", 403, `{"detail":"Your plan (STARTER) does not have access to this service."}`},
		{ScopeIsHeld, "from nowhere", 200, `{}`},
		{ScopeIsHeld, "from nowhere", 403, `{"detail":{"code":"origine_non_autorisee"}}`},
		{RoleIsHeld, "a stranger's", 200, `{}`},
		{NoForeignData, "me", 200, `{"client":"compte-02"}`},
		{NoEarlyRefusal, "me", 429, `{"detail":"x"}`},
		{OneOrder, "put", 200, shownSite1},
		{OneOrder, "put", 404, `{"detail":"Not found"}`},
		{OneOrder, "put again", 200, `{"id":"S1","referentiel":"r","external_id":"s","nom":"b","actif":true,"version":1,"proprietes":{"nom":"b"}}`},
		{OneOrder, "open", 201, `{"id":"compte-01","nom":"Un","plan":"GROWTH","quota":8,"debut_periode":"2026-01-01"}`},
		{OneOrder, "issue too many", 201, `{"id":"Q1","kind":"publishable","label":"q","origins":["https://q.fr"]}`},
		{OneOrder, "move", 200, `{"id":"P1","kind":"publishable","label":"","origins":["https://p.fr"]}`},
		{OneOrder, "revoke", 200, `{"id":"K1","kind":"secret","label":"","revoque_le":"2026-01-15T09:00:00Z"}`},
		{OneOrder, "open referential", 409, `{"detail":"code_deja_utilise"}`},
		{SameKeySameAnswer, "sync again", 200, `{"crees":0,"inchanges":1,"actifs_avant":1,"actifs_apres":1,"sites_actifs":1}`},
		{StableIDs, "put again", 200, `{"id":"S9","referentiel":"r","external_id":"s","nom":"a","actif":true,"version":1,"proprietes":{"nom":"a"}}`},
		{WholeContents, "put", 201, `{"id":"S1","referentiel":"r","external_id":"s","nom":"a","actif":true,"version":1,"proprietes":{"nom":"z"}}`},
		{WholeContents, "put", 201, `{"id":"S1","referentiel":"r","external_id":"s","nom":"a","actif":true,"desactive_le":"2026-01-15T09:00:00Z","version":1,"proprietes":{"nom":"a"}}`},
	} {
		t.Run(fmt.Sprint(c.rule, " ", c.name, " ", c.status), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				told := story()
				i := slices.IndexFunc(told, func(e exchange) bool { return e.name == c.name })
				told[i].status, told[i].body = c.status, c.body
				if broken, texts := tellStory(t, told, newQuiet()); !slices.Contains(broken, c.rule) {
					t.Errorf("got %q, want %q among them", texts, c.rule)
				}
			})
		})
	}
}

func TestModelFindsWhatIsServedAboveACap(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		told := story()
		for i, e := range told {
			switch e.name {
			case "lost":
				told[i].status = 200
				told[i].body = `{"id":"S1","referentiel":"r","external_id":"s","nom":"c","actif":false,"desactive_le":"2026-01-15T09:00:00Z","version":3,"proprietes":{"nom":"c"}}`
			case "above the cap":
				told[i].status, told[i].body = 200, shownMe
			}
		}
		if broken, texts := tellStory(t, told, newQuiet()); !slices.Contains(broken, NeverAboveCap) {
			t.Errorf("got %q, want %q among them", texts, NeverAboveCap)
		}
	})
}

// Of so many keys that nobody learns the fate of, the model cannot tell what there is, until a quiet moment shows it: a departure that
// has not begun as well.
func TestAQuietMomentShowsWhatIsToComeWhereTooMuchWasUnknown(t *testing.T) {
	t.Parallel()
	for shownLater, isRight := range map[string]bool{
		`"plan":"STARTER","quota":8,"debut_periode":"2026-01-01"`:                         true,
		`"plan":"GROWTH","quota":8,"debut_periode":"2026-01-16","agence_de":"compte-02"`:  false,
		`"plan":"STARTER","quota":9,"debut_periode":"2026-01-01"`:                         false,
		`"plan":"BUSINESS","quota":8,"debut_periode":"2026-01-01"`:                        false,
		`"plan":"STARTER","quota":8,"debut_periode":"2026-01-01","agence_de":"compte-03"`: false,
	} {
		synctest.Test(t, func(t *testing.T) {
			var broken []Rule
			m := New(func(rule Rule, _ string, _ ...any) { broken = append(broken, rule) })
			const own, ofAgency = `"plan":"STARTER","quota":8,"debut_periode":"2026-01-01"`, `"plan":"GROWTH","quota":8,"debut_periode":"2026-01-16","agence_de":"compte-02"`
			shown := func(terms string) []byte { return []byte(`{"id":"compte-01","nom":"Un","agence":false,` + terms + `}`) }
			tell := func(endpoint string, command AccountCommand, at time.Time, status int, terms string) {
				m.End(m.Begin(inArea("compte-01", endpoint, command), at), Answer{Status: status, Body: shown(terms), IsSent: true}, at)
			}
			quiet := func(terms string, at time.Time) {
				m.SettleAccount("compte-01", Answer{Status: 200, Body: shown(terms)}, Answer{Status: 200, Body: []byte(`{"results":[]}`)}, at)
			}
			member := wall.AddDate(0, 0, 20)
			tell("POST /accounts", OpenAccount{ID: "compte-01", Name: "Un", Plan: "STARTER", Quota: 8, Anchor: "2026-01-01"}, wall, 201, own)
			tell("POST /accounts/{id}:agency", JoinAgency{"compte-02", "GROWTH", "2026-01-16"}, wall, 200,
				own+`,"prochaine_agence":{"agence_de":"compte-02","effet":"2026-02-01T00:00:00+01:00"}`)
			quiet(ofAgency, member)
			for i := range 12 {
				tell("POST /accounts/{id}/keys", IssueKey{Kind: "secret", Label: fmt.Sprint("k", i)}, member, 500, own)
			}
			next := `,"prochain":{"plan":"STARTER","quota":100000,"effet":"2026-02-16T00:00:00+01:00"}`
			leaves := `,"prochaine_agence":{"effet":"2026-02-16T00:00:00+01:00"}`
			tell("POST /accounts/{id}:agency", LeaveAgency{}, member, 200, ofAgency+next+leaves)
			quiet(ofAgency+leaves, member)
			if len(broken) > 0 {
				t.Fatalf("broken before the departure: %q", broken)
			}
			quiet(shownLater, member.AddDate(0, 0, 20))
			if isRight != (len(broken) == 0) {
				t.Errorf("%s: broken %q, want none: %v", shownLater, broken, isRight)
			}
		})
	}
}

// The instance that raises the quota is minutes ahead. The one that is asked shows the raised quota as still to come.
func TestAQuotaThatBeganByOneClockMayBeInForceForAll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var broken []Rule
		m := New(func(rule Rule, _ string, _ ...any) { broken = append(broken, rule) })
		ahead := wall.Add(8 * time.Minute)
		shown := func(quota int, next string) string {
			return fmt.Sprintf(`{"id":"compte-01","nom":"Un","plan":"STARTER","quota":%d,"debut_periode":"2026-01-01","agence":false%s}`, quota, next)
		}
		tell := func(op Operation, at time.Time, status int, body string) {
			m.End(m.Begin(op, at), Answer{Status: status, Body: []byte(body), IsSent: true}, at)
		}
		me := withKey("k", "GET /me", Addresses, nil)
		tell(inArea("compte-01", "POST /accounts", OpenAccount{ID: "compte-01", Name: "Un", Plan: "STARTER", Quota: 2, Anchor: "2026-01-01"}),
			wall, 201, shown(2, ""))
		tell(inArea("compte-01", "POST /accounts/{id}/keys", IssueKey{Kind: "secret", Label: "k"}), wall, 201, shownKey1)
		time.Sleep(2 * time.Second)
		raise := inArea("compte-01", "POST /accounts/{id}:plan", ChangePlan{Plan: "STARTER", Quota: 3})
		raise.Instance = 1
		tell(raise, ahead, 200, shown(3, ""))
		next := `,"prochain":{"plan":"STARTER","quota":3,"effet":"` + ahead.Format(time.RFC3339) + `"}`
		m.SettleAccount("compte-01", Answer{Status: 200, Body: []byte(shown(2, next))},
			Answer{Status: 200, Body: []byte(`{"results":[` + shownKey1 + `]}`)}, wall)
		time.Sleep(2 * time.Second)
		for range 3 {
			tell(me, wall, 200, shownMe)
		}
		if len(broken) > 0 {
			t.Errorf("up to the raised quota: broken %q, want none", broken)
		}
		tell(me, wall, 200, shownMe)
		if want := []Rule{NeverAboveCap}; !slices.Equal(slices.Compact(broken), want) { // the account's cap, and the contract's
			t.Errorf("above the raised quota: broken %q, want %q", broken, want)
		}
	})
}

// An instance whose clock is set back continues counting in the period that it has come to: the one before is at its cap, and that cap
// was lowered twice since.
func TestARequestByAClockSetBackMayBeOfThePeriodThatBegan(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var broken []Rule
		m := New(func(rule Rule, _ string, _ ...any) { broken = append(broken, rule) })
		tell := func(op Operation, at time.Time, status int, body string) {
			m.End(m.Begin(op, at), Answer{Status: status, Body: []byte(body), IsSent: true}, at)
		}
		shown := func(quota, next int, from string) string {
			return fmt.Sprintf(`{"id":"compte-01","nom":"Un","plan":"STARTER","quota":%d,"debut_periode":"2026-01-01","agence":false,
				"prochain":{"plan":"STARTER","quota":%d,"effet":"%s"}}`, quota, next, from)
		}
		lower := func(quota int) Operation {
			return inArea("compte-01", "POST /accounts/{id}:plan", ChangePlan{Plan: "STARTER", Quota: int64(quota)})
		}
		me := withKey("k", "GET /me", Addresses, nil)
		for _, e := range story()[:3:3] {
			if e.status == 201 {
				tell(e.op, wall, e.status, e.body)
			}
		}
		time.Sleep(2 * time.Second)
		for range 8 {
			tell(me, wall, 200, shownMe)
		}
		tell(lower(5), wall, 200, shown(8, 5, "2026-02-01T00:00:00+01:00"))
		february := time.Date(2026, 2, 1, 0, 0, 5, 0, paris)
		tell(lower(3), february, 200, shown(5, 3, "2026-03-01T00:00:00+01:00"))
		time.Sleep(2 * time.Second)
		for range 5 {
			tell(me, february.Add(-10*time.Second), 200, shownMe)
		}
		if len(broken) > 0 {
			t.Errorf("up to the cap of the period that began: broken %q, want none", broken)
		}
		for range 6 {
			tell(me, february.Add(time.Minute), 200, shownMe)
		}
		if want := []Rule{NeverAboveCap}; !slices.Equal(slices.Compact(broken), want) {
			t.Errorf("above it: broken %q, want %q", broken, want)
		}
	})
}

// A clock that was far ahead for a moment, and came to the next period later, is set back: requests are of that period. So are they if another
// instance came to it and may have closed the one before.
func TestAClockThatWasFarAheadDoesNotHideThePeriodsItCameTo(t *testing.T) {
	t.Parallel()
	const nobody = -1
	last := time.Date(2026, 1, 31, 23, 59, 50, 0, paris)
	for _, c := range []struct {
		day     string
		ahead   int // the instance whose clock was 40 days ahead
		reached int // the instance whose clock came to the next period then
		grace   time.Duration
		want    []Rule
	}{
		{"2026-01-31", 0, 0, 6 * time.Hour, nil},
		{"2026-02-01", 0, 0, 6 * time.Hour, nil},
		{"2026-02-01", nobody, 0, 6 * time.Hour, nil},
		{"2026-02-01", 0, nobody, 6 * time.Hour, []Rule{UsageIsServed}},
		{"2026-02-01", nobody, nobody, 6 * time.Hour, []Rule{UsageIsServed, UsageIsServed}},
		{"2026-02-02", 0, 0, 6 * time.Hour, []Rule{UsageIsServed}},
		{"2026-02-01", 1, 1, 4 * time.Second, nil},
		{"2026-02-01", 1, nobody, 4 * time.Second, []Rule{UsageIsServed}},
		{"2026-02-01", 1, 1, 6 * time.Hour, []Rule{UsageIsServed}},
	} {
		synctest.Test(t, func(t *testing.T) {
			var broken []Rule
			m := New(func(rule Rule, _ string, _ ...any) { broken = append(broken, rule) })
			m.PeriodGrace = c.grace
			for _, e := range story()[:3:3] {
				if e.status == 201 {
					m.End(m.Begin(e.op, last), Answer{Status: e.status, Body: []byte(e.body), IsSent: true}, last)
				}
			}
			time.Sleep(2 * time.Second)
			if c.ahead != nobody {
				m.ClockJumps(c.ahead, last.AddDate(0, 0, 40))
			}
			if c.reached != nobody {
				m.ClockJumps(c.reached, last.Add(20*time.Second))
			}
			m.End(m.Begin(withKey("k", "GET /me", Addresses, nil), last), Answer{Status: 200, Body: []byte(shownMe), IsSent: true}, last)
			m.SettleUsage([]BilledLine{{Account: "compte-01", Contract: "compte-01", Period: c.day[:8] + "01", Day: c.day, Key: "K1", Endpoint: "GET /me", Requests: 1}})
			if !slices.Equal(broken, c.want) {
				t.Errorf("billed on %s, a grace of %v, instance %d was far ahead, instance %d came to the period: broken %q, want %q",
					c.day, c.grace, c.ahead, c.reached, broken, c.want)
			}
		})
	}
}

// A clock that is set past midnight and back while a request waits shows neither at its begin nor at its end.
func TestARequestMayBeOfADayThatItsClockSaidMeanwhile(t *testing.T) {
	t.Parallel()
	evening := time.Date(2026, 1, 15, 23, 59, 0, 0, paris)
	for _, c := range []struct {
		day   string
		jumps bool
		want  []Rule
	}{
		{"2026-01-15", false, nil},
		{"2026-01-16", false, []Rule{UsageIsServed, UsageIsServed}},
		{"2026-01-15", true, nil},
		{"2026-01-16", true, nil},
		{"2026-01-17", true, []Rule{UsageIsServed}},
	} {
		synctest.Test(t, func(t *testing.T) {
			var broken []Rule
			m := New(func(rule Rule, _ string, _ ...any) { broken = append(broken, rule) })
			for _, e := range story()[:3:3] {
				if e.status == 201 {
					m.End(m.Begin(e.op, evening), Answer{Status: e.status, Body: []byte(e.body), IsSent: true}, evening)
				}
			}
			time.Sleep(2 * time.Second)
			call := m.Begin(withKey("k", "GET /me", Addresses, nil), evening)
			if c.jumps {
				m.ClockJumps(0, evening.Add(2*time.Minute))
				m.ClockJumps(1, evening.Add(26*time.Hour)) // that of another instance
			}
			m.End(call, Answer{Status: 200, Body: []byte(shownMe), IsSent: true}, evening)
			m.SettleUsage([]BilledLine{{Account: "compte-01", Contract: "compte-01", Period: "2026-01-01", Day: c.day, Key: "K1", Endpoint: "GET /me", Requests: 1}})
			if !slices.Equal(broken, c.want) {
				t.Errorf("billed on %s, the clock jumped %v: broken %q, want %q", c.day, c.jumps, broken, c.want)
			}
		})
	}
}

// A request that fails is refunded, unless its period was closed before.
func TestAFailedRequestMayStayOnTheBillOfAPeriodThatCloses(t *testing.T) {
	t.Parallel()
	last := time.Date(2026, 1, 31, 23, 59, 50, 0, paris)
	for _, c := range []struct {
		grace time.Duration
		at    time.Time
		want  []Rule
	}{
		{4 * time.Second, last, nil},
		{4 * time.Second, last.Add(-time.Hour), []Rule{UsageIsServed}},
		{6 * time.Hour, last, []Rule{UsageIsServed}},
	} {
		synctest.Test(t, func(t *testing.T) {
			var broken []Rule
			m := New(func(rule Rule, _ string, _ ...any) { broken = append(broken, rule) })
			m.PeriodGrace = c.grace
			for _, e := range story()[:3:3] {
				if e.status == 201 {
					m.End(m.Begin(e.op, c.at), Answer{Status: e.status, Body: []byte(e.body), IsSent: true}, c.at)
				}
			}
			time.Sleep(2 * time.Second)
			m.End(m.Begin(withKey("k", "GET /me", Addresses, nil), c.at), Answer{Status: 503, IsSent: true}, c.at)
			m.SettleUsage([]BilledLine{{Account: "compte-01", Contract: "compte-01", Period: "2026-01-01", Day: "2026-01-31", Key: "K1", Endpoint: "GET /me", Requests: 1}})
			if !slices.Equal(broken, c.want) {
				t.Errorf("a grace of %v, at %v: broken %q, want %q", c.grace, c.at, broken, c.want)
			}
		})
	}
}

// A site is shown where its customer said, or at its address; an address that was found once is always found.
func TestASiteIsShownWhereItIs(t *testing.T) {
	t.Parallel()
	own := `{"external_id":"s","nom":"a","actif":true,"lat":%s,"lon":3.5,"proprietes":{"nom":"a","lieu":"44.500000 3.500000"}}`
	byAddress := `{"external_id":"s","nom":"a","actif":true,%s"adresse":{"ligne_1":"3 Rue","code_postal":"48000","commune":"Mende"},
		"proprietes":{"nom":"a","lieu":"44.500000 3.500000"}}`
	at := func(lat string) string { return fmt.Sprintf(byAddress, `"lat":`+lat+`,"lon":3.5,`) }
	notFound := fmt.Sprintf(byAddress, "")
	for name, c := range map[string]struct {
		shown    []string
		isBroken bool
	}{
		"its own position":     {[]string{fmt.Sprintf(own, "44.5")}, false},
		"elsewhere":            {[]string{fmt.Sprintf(own, "44.6")}, true},
		"without its position": {[]string{fmt.Sprintf(own, "null")}, true},
		"at its address":       {[]string{at("44.50001"), at("44.5")}, false},
		"at another address":   {[]string{at("44.5"), at("44.6")}, true},
		"an address not found": {[]string{notFound, notFound}, false},
		"found, then not":      {[]string{at("44.5"), notFound}, true},
		"not found, then":      {[]string{notFound, at("44.5")}, true},
	} {
		var broken []Rule
		m := New(func(rule Rule, _ string, _ ...any) { broken = append(broken, rule) })
		for _, text := range c.shown {
			var s shownSite
			if err := json.Unmarshal([]byte(text), &s); err != nil {
				t.Fatal(err)
			}
			m.checkPlace("", name, s)
		}
		if got := slices.Equal(broken, []Rule{PlacedAtAddress}); got != c.isBroken || len(broken) > 1 {
			t.Errorf("%s: broken %q, want broken: %v", name, broken, c.isBroken)
		}
	}
}

// What was acknowledged and is not shown, or is shown and was not, is found at a quiet moment.
func TestModelFindsWhatIsMissing(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule   Rule
		name   string
		change func(*quiet)
	}{
		{AcknowledgedIsThere, "no account", func(q *quiet) { q.account = "" }},
		{AcknowledgedIsThere, "another quota", func(q *quiet) { q.account = `{"id":"compte-01","nom":"Un","plan":"STARTER","quota":9}` }},
		{AcknowledgedIsThere, "a key that is not revoked", func(q *quiet) { q.keys = `{"results":[` + shownKey1 + `]}` }},
		{AcknowledgedIsThere, "no referential", func(q *quiet) { q.referentials = `{"results":[]}` }},
		{AcknowledgedIsThere, "no site", func(q *quiet) { q.sites = `{"results":[]}` }},
		{AcknowledgedIsThere, "half of an unknown write", func(q *quiet) {
			q.sites = `{"results":[{"id":"S1","referentiel":"r","external_id":"s","nom":"c","actif":false,"desactive_le":"2026-01-15T09:00:00Z","version":2,"proprietes":{"nom":"c"}},
				{"id":"S2","referentiel":"r","external_id":"b","nom":"b","actif":true,"version":1,"proprietes":{"nom":"b"}}]}`
		}},
		{EveryAccountAnswers, "no JSON", func(q *quiet) { q.referentials = "…" }},
		{UsageIsServed, "one more than served", func(q *quiet) { q.billed[0].Requests++ }},
		{UsageIsServed, "one less than served", func(q *quiet) { q.billed[3].Requests-- }},
		{UsageIsServed, "the failed one", func(q *quiet) { q.billed[0].Requests = 3 }},
		{UsageIsServed, "a line of nobody", func(q *quiet) { q.billed[0].Key = "K9" }},
		{BilledByContract, "another contract", func(q *quiet) { q.billed[3].Contract = "compte-02" }},
		{BilledByContract, "another period", func(q *quiet) { q.billed[3].Period = "2025-12-01" }},
		{UsageAgrees, "another total", func(q *quiet) { q.usage = `{"periode":"2026-01-01","limite":8,"total":9,"lignes":[{"requetes":9}]}` }},
		{UsageAgrees, "another limit", func(q *quiet) { q.usage = `{"periode":"2026-01-01","limite":9,"total":8,"lignes":[{"requetes":8}]}` }},
		{AuditTellsOnce, "a revocation twice", func(q *quiet) { q.history = append(q.history, Incident{"key-revoked", "K1"}) }},
		{AuditTellsOnce, "no change of a site", func(q *quiet) { q.history = q.history[:len(q.history)-1] }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				q := newQuiet()
				c.change(&q)
				if broken, texts := tellStory(t, story(), q); !slices.Contains(broken, c.rule) {
					t.Errorf("got %q, want %q among them", texts, c.rule)
				}
			})
		})
	}
}

func TestUnknownWriteMayBeThereOrNot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newQuiet() // without the lost PUT, which did not count then either
		q.sites = `{"results":[{"id":"S1","referentiel":"r","external_id":"s","nom":"a","actif":false,"desactive_le":"2026-01-15T09:00:00Z","version":2,"proprietes":{"nom":"a"}},
			{"id":"S2","referentiel":"r","external_id":"b","nom":"b","actif":true,"version":1,"proprietes":{"nom":"b"}}]}`
		q.history = append(q.history[:4:4], Incident{"sites-changed", "r/s"}, Incident{"sites-changed", "r/s"}, Incident{"sites-changed", "r/b"})
		if broken, texts := tellStory(t, story(), q); len(broken) > 0 {
			t.Errorf("broken: %q", texts)
		}
	})
}

// Commands at once may have taken effect in either order, and in no other way.
func TestCommandsAtOnceAreOrdered(t *testing.T) {
	t.Parallel()
	site := func(name string, version int) string {
		text, _ := json.Marshal(shownSite{ID: "S1", Referential: "r", ExternalID: "s", Name: name, IsActive: true,
			Version: version, Properties: map[string]string{"nom": name}})
		return string(text)
	}
	for _, c := range []struct {
		name       string
		status     [2]int
		versions   [2]int
		isPossible bool
	}{
		{"a, then b", [2]int{201, 200}, [2]int{1, 2}, true},
		{"b, then a", [2]int{200, 201}, [2]int{2, 1}, true},
		{"both first", [2]int{201, 201}, [2]int{1, 1}, false},
		{"both second", [2]int{200, 200}, [2]int{2, 2}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				broken := 0
				m := New(func(rule Rule, format string, args ...any) { broken++ })
				for _, e := range story()[:7] {
					time.Sleep(e.wait)
					m.End(m.Begin(e.op, wall), Answer{Status: e.status, Body: []byte(e.body), IsSent: true}, wall)
				}
				a := m.Begin(withKey("k", "PUT site", Locations, PutSite{"r", "s", "a"}), wall)
				b := m.Begin(withKey("k", "PUT site", Locations, PutSite{"r", "s", "b"}), wall)
				m.End(a, Answer{Status: c.status[0], Body: []byte(site("a", c.versions[0])), IsSent: true}, wall)
				m.End(b, Answer{Status: c.status[1], Body: []byte(site("b", c.versions[1])), IsSent: true}, wall)
				if (broken == 0) != c.isPossible {
					t.Errorf("%d violations, want some: %v", broken, !c.isPossible)
				}
			})
		})
	}
}

// While a put waits for the log, the account may be closed and erased: its answer then has a name that can still be read, or none.
func TestAPutMayBeAnsweredWithoutTheNameThatWasErasedMeanwhile(t *testing.T) {
	t.Parallel()
	const closed = `{"id":"compte-01","nom":"Un","plan":"STARTER","quota":8,"debut_periode":"2026-01-01","ferme_le":"2026-01-05T00:00:00Z"}`
	erased := strings.Replace(closed, "Un", "", 1)
	for _, c := range []struct {
		name       string
		erases     bool
		isAnswered bool // before the put is
		shown      string
		isPossible bool
	}{
		{"erased", true, true, "", true},
		{"erased, and still readable", true, true, "a", true},
		{"being erased", true, false, "", true},
		{"erased, and another name", true, true, "b", false},
		{"not erased", false, false, "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var broken []string
				m := New(func(rule Rule, format string, args ...any) {
					if rule == OneOrder {
						broken = append(broken, fmt.Sprintf(format, args...))
					}
				})
				for _, e := range story()[:7] {
					time.Sleep(e.wait)
					m.End(m.Begin(e.op, wall), Answer{Status: e.status, Body: []byte(e.body), IsSent: true}, wall)
				}
				put := m.Begin(withKey("k", "PUT site", Locations, PutSite{"r", "s", "a"}), wall)
				m.End(m.Begin(inArea("compte-01", "POST :close", CloseAccount{}), wall), Answer{Status: 200, Body: []byte(closed), IsSent: true}, wall)
				if c.erases {
					erase := m.Begin(inArea("compte-01", "POST :erase", EraseAccount{}), wall)
					if c.isAnswered {
						m.End(erase, Answer{Status: 200, Body: []byte(erased), IsSent: true}, wall)
					}
				}
				shown := strings.ReplaceAll(shownSite1, `"nom":"a"`, fmt.Sprintf(`"nom":%q`, c.shown))
				m.End(put, Answer{Status: 201, Body: []byte(shown), IsSent: true}, wall)
				if (len(broken) == 0) != c.isPossible {
					t.Errorf("possible: %v; %q", c.isPossible, broken)
				}
			})
		})
	}
}

func TestRestoreMakesTheTruthOfThenTheTruth(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var texts []string
		m := New(func(rule Rule, format string, args ...any) { texts = append(texts, fmt.Sprintf(format, args...)) })
		tell := func(all []exchange) {
			for _, e := range all {
				time.Sleep(e.wait)
				m.End(m.Begin(e.op, wall), Answer{Status: e.status, Body: []byte(e.body), IsSent: true}, wall)
			}
		}
		tell(story()[:1])
		s := m.Snapshot()
		tell(story()[2:6])
		m.Restore(s)
		again := story()[5:6] // with a key that is not a key any more
		again[0].status, again[0].body = 401, `{"detail":"Invalid API key"}`
		tell(again)
		tell(story()[2:6])
		if len(texts) > 0 {
			t.Errorf("broken: %q", texts)
		}
	})
}

func TestPeriodsBeginOnTheDayOfTheAnchor(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ anchor, at, begin, end string }{
		{"2026-01-31", "2026-01-31", "2026-01-31", "2026-02-28"},
		{"2026-01-31", "2026-02-27", "2026-01-31", "2026-02-28"},
		{"2026-01-31", "2026-02-28", "2026-02-28", "2026-03-31"},
		{"2026-01-31", "2026-05-01", "2026-04-30", "2026-05-31"},
		{"2025-12-15", "2026-01-14", "2025-12-15", "2026-01-15"},
		{"2026-03-01", "2026-10-25", "2026-10-01", "2026-11-01"},
	} {
		at, err := time.ParseInLocation(time.DateOnly, c.at, paris)
		if err != nil {
			t.Fatal(err)
		}
		begin, end := periodAt(c.anchor, at)
		if Day(begin) != c.begin || Day(end) != c.end {
			t.Errorf("%s of %s: %s to %s, want %s to %s", c.at, c.anchor, Day(begin), Day(end), c.begin, c.end)
		}
	}
}

func TestModelFindsTwoAnswersToOneQuestion(t *testing.T) {
	t.Parallel()
	var broken []Rule
	m := New(func(rule Rule, _ string, _ ...any) { broken = append(broken, rule) })
	ask := func(question, body string) {
		m.checkQuestion(&Call{Operation: Operation{Question: question}}, Answer{Status: 200, Body: []byte(body)})
	}
	ask("a", "1")
	ask("b", "2")
	ask("a", "1")
	if len(broken) > 0 {
		t.Errorf("the same answer twice breaks %q", broken)
	}
	if ask("a", "2"); !slices.Equal(broken, []Rule{OneAnswer}) {
		t.Errorf("another answer breaks %q, want %q", broken, OneAnswer)
	}
}

// What the clock of one instance has ended continues by the clock of another that is behind: a refusal changes nothing, and after another
// answer the requests of the day before are still the agency's.
func TestAMembershipThatOneClockEndedCountsByAnother(t *testing.T) {
	t.Parallel()
	midnight := time.Date(2026, 1, 16, 0, 0, 0, 0, paris)
	before, after := midnight.Add(-time.Second), midnight.Add(time.Second)
	leaving := account{wasOpened: true, anchor: "2026-01-01", terms: Terms{"GROWTH", 100}, agency: "compte-02", agencys: contract{"GROWTH", "2026-01-16"},
		nextAgencyAt: midnight, next: Terms{"GROWTH", 500000}, nextAt: midnight}
	for _, o := range (LeaveAgency{}).apply(leaving, after) {
		if now := o.state.at(before); now.agency != "compte-02" || now.terms.Quota != 100 {
			t.Errorf("%s: of agency %q with %d requests for a clock that is behind", o.answer, now.agency, now.terms.Quota)
		}
	}
	for _, changed := range (ChangePlan{Plan: "GROWTH", Quota: 600000}).apply(leaving, after) {
		m := New(func(Rule, string, ...any) {})
		m.customer("compte-01").account.seen[0].states = []account{changed.state}
		call := m.Begin(withKey("k", "GET /me", Addresses, nil), before)
		agencys := Line{"compte-01", "compte-02", "k", "GET /me", Day(before)}
		if lines := m.linesOf(call); !slices.Contains(lines, agencys) {
			t.Errorf("%s: a request may be counted on %v, want also on %v", changed.answer, lines, agencys)
		}
		if lines := m.linesOf(m.Begin(withKey("k", "GET /me", Addresses, nil), after)); slices.ContainsFunc(lines, func(l Line) bool { return l.Contract == "compte-02" }) {
			t.Errorf("%s: a request of the next day may be counted on %v", changed.answer, lines)
		}
	}
}
