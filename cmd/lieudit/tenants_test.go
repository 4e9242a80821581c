package main

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"lieudit/cmd/lieudit/service"
	"lieudit/schemas/deadlinetest"
	"lieudit/schemas/table/tabletest"
)

// tenant is an account that works on its places with its own keys.
type tenant struct{ account, secretKey, publishableKey string }

// tenantRequest is one request of a tenant's day. Every tenant uses the same codes, external ids, names and tags.
type tenantRequest struct {
	method, path, body string
	isFromPage         bool // with the publishable key, from its page
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

// randomRequests is so many deeds, by chance.
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
		requests = append(requests, d[random.IntN(len(d)-random.IntN(2))]) // the last, which ends a referential, half as often
	}
	return requests
}

// TestTenantsNeverSeeOneAnother: whatever others do at the same time with the same codes, ids and words, a tenant gets the
// very answers it gets where there is nobody else.
func TestTenantsNeverSeeOneAnother(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(t *testing.T) func(*service.Config){
		"embedded": func(*testing.T) func(*service.Config) { return func(*service.Config) {} },
		"servers": func(t *testing.T) func(*service.Config) {
			return withServers(startNode(t), tabletest.NewPostgresDatabase(t))
		},
		"search": withMeilisearchSites,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			svc := startService(t, change(t))
			const deeds = 150
			mine := randomRequests(1, deeds)
			alone := svc.runRequests(t, svc.openTenant(t, "alone"), mine)
			var together []string
			others := make(chan struct{})
			var neighbours sync.WaitGroup
			for n := range 3 {
				x := svc.openTenant(t, fmt.Sprint("neighbour-", n))
				neighbours.Go(func() {
					for seed := uint64(2 + n); ; seed += 3 {
						for _, d := range randomRequests(seed, deeds) {
							select {
							case <-others:
								return
							default:
								svc.sendUntilServed(t, x, d)
							}
						}
					}
				})
			}
			together = svc.runRequests(t, svc.openTenant(t, "crowded"), mine)
			close(others)
			neighbours.Wait()
			for i, d := range mine {
				if diff := cmp.Diff(alone[i], together[i]); diff != "" {
					t.Fatalf("deed %d, %s %s %s:\n%s", i, d.method, d.path, d.body, diff)
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

// runRequests lets a tenant do its deeds and returns what it was answered, but for what is never the same.
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

// variableText are ids, times, cursors, hints and the number of requests of a key.
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
