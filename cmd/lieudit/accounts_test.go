package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"lieudit/cmd/lieudit/service"
	"lieudit/eventstore/clock/clocktest"
	"lieudit/eventstore/deadlinetest"
	"lieudit/eventstore/sqldb/sqldbtest"
	"lieudit/schemas/body"
)

// exhaustQuota sends requests with the keys in turn until all are refused, and returns how many were served.
func (svc *testService) exhaustQuota(t *testing.T, keys ...string) (served int) {
	t.Helper()
	for len(keys) > 0 {
		switch got := svc.getJSON(t, keys[0], "/me", &struct{}{}); got {
		case http.StatusOK:
			served++
			keys = append(keys[1:], keys[0])
		case http.StatusTooManyRequests:
			keys = keys[1:]
		case http.StatusServiceUnavailable: // a busy machine has no time to check keys
		default:
			t.Fatalf("/me: %d", got)
		}
	}
	return served
}

// quotaAttempt is a request to the customer area and the status that it must get.
type quotaAttempt struct {
	target, body string
	want         int
}

// quotaAttempts are requests that would give an agency of GROWTH with 12 requests a month, or its sub-client, more than that.
func quotaAttempts(id string) []quotaAttempt {
	return []quotaAttempt{
		{"POST /accounts/" + id + ":plan", `{"plan":"GROWTH","quota":13}`, 422},
		{"POST /accounts/" + id + ":plan", `{"plan":"GROWTH","quota":99999999999}`, 422},
		{"POST /accounts/" + id + ":plan", `{"plan":"GROWTH","quota":9223372036854775808}`, 422},
		{"POST /accounts/" + id + ":plan", `{"plan":"GROWTH","quota":1e30}`, 422},
		{"POST /accounts/" + id + ":plan", `{"plan":"GROWTH","quota":-1}`, 422},
		{"POST /accounts/" + id + ":plan", `{"plan":"GROWTH","quota":0}`, 422},
		{"POST /accounts/" + id + ":plan", `{"plan":"BUSINESS"}`, 409},
		{"POST /accounts/" + id + ":plan", `{"plan":"BUSINESS","quota":5}`, 409},
		{"POST /accounts/" + id + ":agency", `{"agence_de":null}`, 409},
		{"POST /accounts/" + id + ":agency", `{}`, 409},
		{"POST /accounts/" + id + ":agency", `{"agence_de":"rival"}`, 409},
		{"POST /accounts/" + id + ":agency", `{"agence_de":"theirs"}`, 409},
		{"POST /accounts/" + id + ":erase", `{"id":"` + id + `"}`, 403},
		{"POST /accounts/agency:plan", `{"plan":"BUSINESS","quota":99}`, 404},
		{"POST /accounts/agency:agency", `{"agence_de":null}`, 404},
		{"POST /accounts/agency:close", `{"id":"agency"}`, 404},
		{"POST /accounts/rival:plan", `{"plan":"BUSINESS","quota":99}`, 404},
		{"POST /accounts/theirs:plan", `{"plan":"GROWTH","quota":9}`, 404},
		{"POST /accounts/theirs:close", `{"id":"theirs"}`, 404},
		{"POST /accounts/theirs/keys", `{"kind":"secret","label":"x"}`, 404},
		{"GET /accounts/theirs/usage", "", 404},
		{"POST /accounts", `{"id":"mine","nom":"x","plan":"GROWTH"}`, 422},
		{"POST /accounts", `{"id":"theirs","nom":"x","plan":"GROWTH"}`, 422},
		{"POST /accounts", `{"nom":"x","plan":"GROWTH","quota":13}`, 422},
		{"POST /accounts", `{"nom":"x","plan":"BUSINESS"}`, 409},
		{"POST /accounts", `{"nom":"x","plan":"GROWTH","agence_de":"rival"}`, 409},
		{"POST /accounts", `{"nom":"x","plan":"GROWTH","agence_de":null}`, 422},
		{"POST /tokens", `{"role":"operator","label":"x"}`, 403},
		{"POST /usage:adjust", `{}`, 403},
	}
}

// agencyContract is the number of requests a month of the agency in TestAnAgencyCannotRaiseItsOwnVolume.
const agencyContract = 12

// TestAnAgencyCannotRaiseItsOwnVolume tries, with the agency's own token, every way to more requests than its contract has.
func TestAnAgencyCannotRaiseItsOwnVolume(t *testing.T) {
	t.Parallel()
	var clockOffset atomic.Int64
	svc := startService(t, func(c *service.Config) {
		c.Now = func() time.Time { return time.Now().Add(time.Duration(clockOffset.Load())) }
		c.Elapsed = clocktest.ElapsedOf(c.Now)
	})
	svc.runCommand(t, fmt.Sprintf("account open Gévaudan --plan GROWTH --id agency --quota %d", agencyContract))
	svc.runCommand(t, "account agency agency")
	svc.runCommand(t, "account open Rivale --plan BUSINESS --id rival")
	svc.runCommand(t, "account agency rival")
	svc.runCommand(t, "account open Mende --plan BUSINESS --id theirs --agency-of rival")
	svc.runCommand(t, "account open Florac --plan GROWTH --id sold --quota 99999999999 --agency-of agency") // as older releases let an agency do
	agent := strings.TrimSpace(svc.runCommand(t, "token issue --role agency --account agency --label agent"))

	status, text := svc.sendToArea(t, agent, "POST /accounts", `{"nom":"Langogne","plan":"GROWTH"}`)
	var opened body.Account
	if err := json.Unmarshal([]byte(text), &opened); err != nil || status != http.StatusCreated || opened.Quota != agencyContract {
		t.Fatalf("a sub-client without a quota: %d, %s, want 201 with the contract's %d", status, text, agencyContract)
	}
	for _, id := range []string{opened.ID, "sold"} {
		for _, c := range quotaAttempts(id) {
			svc.checkAreaStatus(t, agent, c)
		}
	}
	sold := strings.TrimSpace(svc.runCommand(t, "key issue sold"))
	others := []string{strings.TrimSpace(svc.runCommand(t, "key issue "+opened.ID)), strings.TrimSpace(svc.runCommand(t, "key issue agency"))}
	if got := svc.exhaustQuota(t, append(others, sold)...); got != agencyContract {
		t.Errorf("%d requests were served to an agency and its sub-clients, want %d", got, agencyContract)
	}

	svc.runCommand(t, "account agency sold --leave")
	svc.checkAreaStatus(t, agent, quotaAttempt{"POST /accounts/sold:plan", `{"plan":"GROWTH","quota":12}`, 409}) // it leaves
	svc.runCommand(t, "account plan agency GROWTH --quota 5")                                                    // from the next period on
	svc.checkAreaStatus(t, agent, quotaAttempt{"POST /accounts/" + opened.ID + ":plan", `{"plan":"GROWTH","quota":6}`, 422})
	clockOffset.Store(int64(32 * 24 * time.Hour))
	svc.checkHasLeftAgency(t, agent, sold)
	if got := svc.exhaustQuota(t, others...); got != 5 {
		t.Errorf("%d requests were served in the next period, want the 5 of the contract", got)
	}
}

// checkAreaStatus checks the status of one attempt with the agency's token.
func (svc *testService) checkAreaStatus(t *testing.T, agent string, c quotaAttempt) {
	t.Helper()
	if got, text := svc.sendToArea(t, agent, c.target, c.body); got != c.want {
		t.Errorf("%s %s: %d, want %d: %s", c.target, c.body, got, c.want, text)
	}
}

// checkHasLeftAgency checks that the agency does not see the account "sold" any more, and that the account has its plan's volume.
func (svc *testService) checkHasLeftAgency(t *testing.T, agent, soldKey string) {
	t.Helper()
	waitUntil(t, "the sub-client has left", func() bool {
		got, _ := svc.sendToArea(t, agent, "GET /accounts/sold", "")
		return got == http.StatusNotFound
	})
	if _, text := svc.sendToArea(t, agent, "GET /accounts", ""); strings.Contains(text, "sold") {
		t.Errorf("its former agency lists it still: %s", text)
	}
	var me body.Me
	waitUntil(t, "its key is served again", func() bool { return svc.getJSON(t, soldKey, "/me", &me) == http.StatusOK })
	if me.Quota.Limit != 500_000 || me.Agency != "" {
		t.Errorf("who left has %d requests a month of %q, want its plan's 500000", me.Quota.Limit, me.Agency)
	}
}

// tenant is an account that works on its locations with its own keys.
type tenant struct{ account, secretKey, publishableKey string }

// tenantRequest is one request of a tenant. All tenants use the same codes, external ids, names and tags.
type tenantRequest struct {
	method, path, body string
	isFromPage         bool // sent with the publishable key and its origin
}

var (
	referentialCodes = []string{"shops", "depots", "agences"}
	siteIDs          = []string{"s1", "s2", "s3", "s4", "s5"}
	towns            = []string{"Mende", "Bondy", "Florac", "Langogne"}
	searchQueries    = []string{
		"q=mende", "q=flor", "q=mandé", "q=s1", "q=shop", "", "sort=nom&limit=2", "lat=44.5&lon=3.5&radius=50000", "lat=44.5&lon=3.5&sort=distance",
		"bbox=3,44,4,45", "tags=ouvert", "tags=ouvert,bio", "referentiel=shops", "referentiel=depots&q=m", "statut=tous", "statut=inactif", "format=geojson",
	}
)

// randomRequests are n random requests; the same seed gives the same ones.
func randomRequests(seed uint64, n int) []tenantRequest {
	random := rand.New(rand.NewPCG(seed, 7))
	pick := func(words []string) string { return words[random.IntN(len(words))] }
	content := func() string {
		return fmt.Sprintf(`"nom":"Boutique %s %d","lat":%d.5,"lon":3.%d,"tags":["ouvert"%s],"email":"a%d@exemple.fr"`,
			pick(towns), random.IntN(9), 43+random.IntN(3), random.IntN(9), pick([]string{"", `,"bio"`}), random.IntN(9))
	}
	rows := func() string {
		var all []string
		for _, id := range siteIDs {
			if random.IntN(3) > 0 {
				all = append(all, fmt.Sprintf(`{"external_id":%q,%s}`, id, content()))
			}
		}
		return strings.Join(all, ",")
	}
	requests := []tenantRequest{{method: "POST", path: "/locations/referentiels", body: `{"code":"shops"}`}}
	for range n {
		code := "/locations/referentiels/" + pick(referentialCodes)
		one := code + "/sites/" + pick(siteIDs)
		d := []tenantRequest{
			{method: "POST", path: "/locations/referentiels", body: fmt.Sprintf(`{"code":%q,"nom":%q}`, pick(referentialCodes), pick(towns))},
			{method: "PATCH", path: code, body: fmt.Sprintf(`{"nom":%q}`, pick(towns))},
			{method: "POST", path: code + "/sites:sync", body: fmt.Sprintf(`{"sites":[%s],"confirmer_reduction":%v,"dry_run":%v}`, rows(), random.IntN(2) == 0, random.IntN(4) == 0)},
			{method: "POST", path: code + "/sites:upsert", body: `{"sites":[` + rows() + `]}`},
			{method: "PUT", path: one, body: "{" + content() + "}"},
			{method: "PATCH", path: one, body: "{" + content() + "}"},
			{method: "POST", path: one + ":deactivate"},
			{method: "POST", path: one + ":reactivate"},
			{method: "GET", path: "/locations/referentiels"},
			{method: "GET", path: code},
			{method: "GET", path: one},
			{method: "GET", path: code + "/sites?statut=" + pick([]string{"actif", "inactif", "tous"}) + "&limit=2"},
			{method: "GET", path: code + "/sites:export?format=" + pick([]string{"csv", "geojson", "ndjson"})},
			{method: "GET", path: "/locations/search?" + pick(searchQueries)},
			{method: "GET", path: "/locations/search?" + pick(searchQueries), isFromPage: true},
			{method: "GET", path: "/me"},
			{method: "DELETE", path: code},
		}
		requests = append(requests, d[random.IntN(len(d)-random.IntN(2))]) // the last, which archives a referential, half as often
	}
	return requests
}

// TestTenantsNeverSeeOneAnother sends a tenant's requests first alone, then while other tenants use the same codes, ids and
// words: the answers must be the same.
func TestTenantsNeverSeeOneAnother(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(t *testing.T) func(*service.Config){
		"embedded": func(*testing.T) func(*service.Config) { return func(*service.Config) {} },
		"servers": func(t *testing.T) func(*service.Config) {
			return withServers(startNode(t), sqldbtest.NewPostgresDatabase(t))
		},
		"search": withMeilisearchSites,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			svc := startService(t, change(t))
			const count = 150
			mine := randomRequests(1, count)
			alone := svc.runRequests(t, svc.openTenant(t, "alone"), mine)
			var together []string
			done := make(chan struct{})
			var neighbours sync.WaitGroup
			for n := range 3 {
				x := svc.openTenant(t, fmt.Sprint("neighbour-", n))
				neighbours.Go(func() {
					for seed := uint64(2 + n); ; seed += 3 {
						for _, d := range randomRequests(seed, count) {
							select {
							case <-done:
								return
							default:
								svc.sendUntilServed(t, x, d)
							}
						}
					}
				})
			}
			together = svc.runRequests(t, svc.openTenant(t, "crowded"), mine)
			close(done)
			neighbours.Wait()
			for i, d := range mine {
				if diff := cmp.Diff(alone[i], together[i]); diff != "" {
					t.Fatalf("request %d, %s %s %s:\n%s", i, d.method, d.path, d.body, diff)
				}
			}
		})
	}
}

// openTenant opens an account with both kinds of key.
func (svc *testService) openTenant(t *testing.T, name string) tenant {
	t.Helper()
	svc.runCommand(t, "account open Locataire --plan STARTER --id "+name)
	return tenant{name, strings.TrimSpace(svc.runCommand(t, "key issue "+name+" --label server")),
		strings.TrimSpace(svc.runCommand(t, "key issue "+name+" --kind publishable --label page --origin https://www.exemple.fr"))}
}

// runRequests sends the requests of a tenant and returns the answers, without what differs from run to run.
func (svc *testService) runRequests(t *testing.T, x tenant, requests []tenantRequest) []string {
	t.Helper()
	answers := make([]string, len(requests))
	for i, d := range requests {
		answers[i] = variableText.ReplaceAllString(strings.ReplaceAll(svc.sendUntilServed(t, x, d), x.account, "ACCOUNT"), "…")
	}
	countByStatus := map[string]int{}
	for _, a := range answers {
		countByStatus[a[:3]]++
	}
	t.Log(x.account, countByStatus)
	return answers
}

// variableText matches ids, times, cursors and hints of keys.
var variableText = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|\d{4}-\d\d-\d\dT[0-9:.]+(Z|[+-]\d\d:\d\d)|"curseur":"[^"]+"|ld_sk_…\w+`)

func (svc *testService) sendUntilServed(t *testing.T, x tenant, d tenantRequest) string {
	t.Helper()
	for late := time.Now().Add(deadlinetest.Scale(deadlinetest.DefaultLimit)); ; time.Sleep(50 * time.Millisecond) {
		key, origin := x.secretKey, []string(nil)
		if d.isFromPage {
			key, origin = x.publishableKey, []string{"Origin: https://www.exemple.fr"}
		}
		status, text := svc.send(t, key, d.method+" "+d.path, d.body, origin...)
		if status != http.StatusServiceUnavailable || time.Now().After(late) {
			return fmt.Sprintf("%d %s", status, text)
		}
	}
}
