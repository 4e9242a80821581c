package main

import (
	"fmt"
	"io"
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
type tenant struct{ account, secret, page string }

// deed is one request of a tenant's day. Every tenant uses the same codes, external ids, names and tags.
type deed struct {
	method, path, body string
	page               bool // with the publishable key, from its page
}

var (
	codes    = []string{"shops", "depots", "agences"}
	outlets  = []string{"s1", "s2", "s3", "s4", "s5"}
	towns    = []string{"Mende", "Bondy", "Florac", "Langogne"}
	searches = []string{
		"q=mende", "q=flor", "q=mandé", "q=s1", "q=shop", "", "sort=nom&limit=2", "lat=44.5&lon=3.5&radius=50000", "lat=44.5&lon=3.5&sort=distance",
		"bbox=3,44,4,45", "tags=ouvert", "tags=ouvert,bio", "referentiel=shops", "referentiel=depots&q=m", "statut=tous", "statut=inactif", "format=geojson",
	}
)

// day is so many deeds, by chance.
func day(seed uint64, n int) []deed {
	dice := rand.New(rand.NewPCG(seed, 7))
	pick := func(words []string) string { return words[dice.IntN(len(words))] }
	content := func() string {
		return fmt.Sprintf(`"nom":"Boutique %s %d","lat":%d.5,"lon":3.%d,"tags":["ouvert"%s],"email":"a%d@exemple.fr"`,
			pick(towns), dice.IntN(9), 43+dice.IntN(3), dice.IntN(9), pick([]string{"", `,"bio"`}), dice.IntN(9))
	}
	rows := func() string {
		var all []string
		for _, id := range outlets {
			if dice.IntN(3) > 0 {
				all = append(all, fmt.Sprintf(`{"external_id":%q,%s}`, id, content()))
			}
		}
		return strings.Join(all, ",")
	}
	deeds := []deed{{method: "POST", path: "/locations/referentiels", body: `{"code":"shops"}`}}
	for range n {
		code := "/locations/referentiels/" + pick(codes)
		one := code + "/sites/" + pick(outlets)
		d := []deed{
			{method: "POST", path: "/locations/referentiels", body: fmt.Sprintf(`{"code":%q,"nom":%q}`, pick(codes), pick(towns))},
			{method: "PATCH", path: code, body: fmt.Sprintf(`{"nom":%q}`, pick(towns))},
			{method: "POST", path: code + "/sites:sync", body: fmt.Sprintf(`{"sites":[%s],"confirmer_reduction":%v,"dry_run":%v}`, rows(), dice.IntN(2) == 0, dice.IntN(4) == 0)},
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
			{method: "GET", path: "/locations/search?" + pick(searches)},
			{method: "GET", path: "/locations/search?" + pick(searches), page: true},
			{method: "GET", path: "/me"},
			{method: "DELETE", path: code},
		}
		deeds = append(deeds, d[dice.IntN(len(d)-dice.IntN(2))]) // the last, which ends a referential, half as often
	}
	return deeds
}

// TestTenantsNeverSeeOneAnother: whatever others do at the same time with the same codes, ids and words, a tenant gets the
// very answers it gets where there is nobody else.
func TestTenantsNeverSeeOneAnother(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(t *testing.T) func(*service.Config){
		"embedded": func(*testing.T) func(*service.Config) { return func(*service.Config) {} },
		"servers":  func(t *testing.T) func(*service.Config) { return onServers(startNode(t), tabletest.Postgres(t)) },
		"search":   inMeilisearch,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			st := raise(t, change(t))
			const deeds = 150
			mine := day(1, deeds)
			alone := st.live(t, st.tenant(t, "alone"), mine)
			var together []string
			others := make(chan struct{})
			var neighbours sync.WaitGroup
			for n := range 3 {
				x := st.tenant(t, fmt.Sprint("neighbour-", n))
				neighbours.Go(func() {
					for seed := uint64(2 + n); ; seed += 3 {
						for _, d := range day(seed, deeds) {
							select {
							case <-others:
								return
							default:
								st.does(t, x, d)
							}
						}
					}
				})
			}
			together = st.live(t, st.tenant(t, "crowded"), mine)
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

// tenant opens an account with both kinds of key.
func (st *stage) tenant(t *testing.T, name string) tenant {
	t.Helper()
	st.run(t, "account open Locataire --plan STARTER --id "+name)
	return tenant{name, strings.TrimSpace(st.run(t, "key issue "+name+" --label server")),
		strings.TrimSpace(st.run(t, "key issue "+name+" --kind publishable --label page --origin https://www.exemple.fr"))}
}

// live lets a tenant do its deeds and returns what it was answered, but for what is never the same.
func (st *stage) live(t *testing.T, x tenant, deeds []deed) []string {
	t.Helper()
	answers := make([]string, len(deeds))
	for i, d := range deeds {
		answers[i] = own.ReplaceAllString(strings.ReplaceAll(st.does(t, x, d), x.account, "ACCOUNT"), "…")
	}
	tally := map[string]int{}
	for _, a := range answers {
		tally[a[:3]]++
	}
	t.Log(x.account, tally)
	return answers
}

// own are ids, times, cursors, hints and the number of requests of a key.
var own = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|\d{4}-\d\d-\d\dT[0-9:.]+(Z|[+-]\d\d:\d\d)|"curseur":"[^"]+"|ld_sk_…\w+`)

func (st *stage) does(t *testing.T, x tenant, d deed) string {
	t.Helper()
	for late := time.Now().Add(deadlinetest.Limit(deadlinetest.Hang)); ; time.Sleep(50 * time.Millisecond) {
		status, text := st.tries(t, x, d)
		if status != http.StatusServiceUnavailable || time.Now().After(late) {
			return fmt.Sprintf("%d %s", status, text)
		}
	}
}

func (st *stage) tries(t *testing.T, x tenant, d deed) (int, string) {
	t.Helper()
	req, err := http.NewRequest(d.method, st.api+d.path, strings.NewReader(d.body))
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	req.Header.Set("Authorization", "Bearer "+x.secret)
	if d.page {
		req.Header.Set("Authorization", "Bearer "+x.page)
		req.Header.Set("Origin", "https://www.exemple.fr")
	}
	resp, err := st.client.Do(req)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Error(err)
	}
	return resp.StatusCode, string(text)
}
