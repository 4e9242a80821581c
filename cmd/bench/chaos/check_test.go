package chaos

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"lieudit/cmd/bench/harness"
	"lieudit/cmd/bench/model"
	"lieudit/schemas/body"
	"lieudit/schemas/locations"
	"lieudit/schemas/plan"
)

// fakeService answers as a service that kept every acknowledged write of one referential. overrides replace single answers: by a part of the
// method and path, and after " as " the end of the key, the status or the body that is sent instead. The key "rebuilt" makes a rebuild lose the
// history.
type fakeService struct {
	mu          sync.Mutex
	sites       []locations.Site
	counted     map[model.BilledLine]int64
	generations int // rebuilds
	overrides   map[string]string
}

func (s *fakeService) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	path, bearer := r.Method+" "+r.URL.Path, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	sent, _ := io.ReadAll(r.Body)
	status, reply := s.answer(path, bearer, sent)
	text, _ := json.Marshal(reply)
	for pattern, override := range s.overrides {
		pathPart, keySuffix, _ := strings.Cut(pattern, " as ")
		if !strings.Contains(path, pathPart) || !strings.HasSuffix(bearer, keySuffix) {
			continue
		}
		if code, err := strconv.Atoi(override); err == nil {
			status, override = code, "{}"
		}
		text = []byte(override)
	}
	if after, ok := strings.CutPrefix(path[strings.Index(path, " ")+1:], "/services/v1"); ok && status < 300 {
		s.count(strings.Fields(path)[0], after, bearer)
	}
	w.WriteHeader(status)
	w.Write(text)
}

// count bills a request under the name of its endpoint.
func (s *fakeService) count(method, path, bearer string) {
	path = strings.Replace(path, "/ref-1/sites", "/{code}/sites", 1)
	if at := strings.LastIndex(path, "/site-"); at > 0 {
		path = path[:at] + "/{external_id}"
	}
	today := model.Day(time.Now())
	s.counted[model.BilledLine{Account: "a", Contract: "a", Period: today, Day: today, Key: bearer, Endpoint: method + " " + path}]++
}

func (s *fakeService) answer(path, bearer string, sent []byte) (int, any) {
	if bearer == "gone" {
		return http.StatusUnauthorized, map[string]string{"detail": "Invalid API key"}
	}
	const area, account = "/customer-area/v1", "/customer-area/v1/accounts/a"
	n := len(s.sites)
	switch path {
	case "GET /services/v1/me":
		return 200, body.Me{Sites: body.MySites{Active: &n}}
	case "GET /services/v1/locations/referentiels":
		return 200, json.RawMessage(fmt.Sprintf(`{"results":[{"code":"ref-1","nom":"ref-1","status":"active","sites_actifs":%d}]}`, n))
	case "POST /services/v1/locations/referentiels":
		return 201, json.RawMessage(`{"code":"ref-1","nom":"ref-1","status":"active"}`)
	case "GET /services/v1/locations/referentiels/ref-1/sites", "GET /services/v1/locations/search":
		return 200, body.Sites{Results: s.sites}
	case "POST /services/v1/locations/referentiels/ref-1/sites:sync":
		return s.sync(sent)
	case "GET /readyz":
		return 200, map[string]any{"parts": map[string]string{"log": "ok"}}
	case "GET " + area + "/projections":
		none := 0
		return 200, body.Projections{Results: []body.Projection{{Name: "places", Generation: fmt.Sprint("places-", s.generations), State: "serving", Lag: &none}}}
	case "POST " + area + "/projections/places:rebuild":
		s.generations++
		return 202, nil
	case "POST " + area + "/usage:reconcile":
		return 200, body.Reconciliation{}
	case "GET " + area + "/accounts":
		return 200, body.Sites{}
	case "POST " + area + "/accounts", "GET " + account:
		return map[bool]int{true: 201, false: 200}[strings.HasPrefix(path, "POST")], json.RawMessage(`{"id":"a","nom":"Compte a","plan":"STARTER","quota":1000000000,"debut_periode":"` + model.Day(time.Now()) + `"}`)
	case "GET " + area + "/usage", "GET " + account + "/usage":
		return 200, s.usage()
	case "POST " + account + "/keys":
		var k body.IssueKey
		json.Unmarshal(sent, &k)
		return 201, fakeKey(k.Label)
	case "POST " + account + "/keys/gone:revoke":
		k := fakeKey("key-3")
		k["revoque_le"] = "2026-11-22T10:00:00Z"
		return 200, k
	case "GET " + account + "/keys":
		return 200, map[string]any{"results": []any{fakeKey("key-1"), fakeKey("key-2"), json.RawMessage(goneKey)}}
	case "GET " + account + "/history":
		return 200, body.History{Results: s.history()}
	}
	if strings.HasPrefix(path, "PUT ") {
		return s.put(path, sent)
	}
	return http.StatusNotFound, nil
}

// goneKey is the revoked key in the list of keys.
const goneKey = `{"id":"gone","kind":"secret","label":"key-3","revoque_le":"2026-11-22T10:00:00Z"}`

// fakeKey returns a key as the customer area answers its issue. Its id is its token.
func fakeKey(label string) map[string]any {
	id := map[string]string{"key-1": "main", "key-2": "live", "key-3": "gone"}[label]
	return map[string]any{"id": id, "token": id, "kind": "secret", "label": label}
}

func (s *fakeService) usage() any {
	lines, total := []model.BilledLine{}, int64(0)
	for l, n := range s.counted {
		l.Requests = n
		lines, total = append(lines, l), total+n
	}
	return map[string]any{"results": lines, "lignes": lines, "total": total, "limite": 1_000_000_000, "periode": model.Day(time.Now())}
}

// sync answers the first sync, which makes the sites, and dry runs of the same.
func (s *fakeService) sync(sent []byte) (int, any) {
	var q body.SyncSites
	json.Unmarshal(sent, &q)
	if n := len(s.sites); q.DryRun {
		return 200, body.Synced{Unchanged: n, ActiveBefore: n, ActiveAfter: n, AccountActive: n}
	}
	for _, row := range q.Sites {
		s.sites = append(s.sites, locations.Site{Referential: "ref-1", ExternalID: row.ExternalID, Content: row.Content, Version: 1, Active: true})
	}
	return 200, body.Synced{Created: len(s.sites), ActiveAfter: len(s.sites)}
}

// put writes an existing site.
func (s *fakeService) put(path string, sent []byte) (int, any) {
	i := slices.IndexFunc(s.sites, func(site locations.Site) bool { return strings.HasSuffix(path, "/"+site.ExternalID) })
	s.sites[i].Content = locations.Content{}
	json.Unmarshal(sent, &s.sites[i].Content)
	s.sites[i].Version++
	return 200, s.sites[i]
}

func (s *fakeService) history() (all []body.Incident) {
	if _, isForgotten := s.overrides["rebuilt"]; isForgotten && s.generations > 0 {
		return nil
	}
	for subject, n := range map[string]int{"main": 1, "live": 1, "gone": 2} {
		for range n {
			all = append(all, body.Incident{Type: "key", Subject: subject})
		}
	}
	slices.SortFunc(all, func(a, b body.Incident) int { return strings.Compare(a.Subject, b.Subject) })
	all = append(all, body.Incident{Type: "referential-opened", Subject: "ref-1"})
	for _, site := range s.sites {
		for v := range site.Version {
			all = append(all, body.Incident{Subject: "ref-1/" + site.ExternalID, Data: json.RawMessage(fmt.Sprintf(`{"version":%d}`, v+1))})
		}
	}
	return all
}

// findViolations returns the violations that a run reports about a fakeService that begins to answer with these overrides once it has an
// account with three keys, one of them revoked, and four sites.
func findViolations(t *testing.T, overrides map[string]string) []string {
	t.Helper()
	r := newRun(Options{TimeLimit: time.Minute}, Embedded, 0)
	service := &fakeService{counted: map[model.BilledLine]int64{}}
	server := httptest.NewServer(service)
	t.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "http://")
	i := &instance{name: "i"}
	at := &serverProcess{name: "life", number: 1, process: &harness.Instance{Process: new(harness.Process), API: host, Area: host, Ops: host}}
	i.current.Store(at)
	r.instances = []*instance{i}
	a := newAccount("a", plan.Starter, unlimitedQuota, 4)
	if err := r.openAccount(t.Context(), a, r.rng); err != nil {
		t.Fatal(err)
	}
	r.issueKey(t.Context(), at, a)
	r.issueKey(t.Context(), at, a)
	r.sendArea(t.Context(), at, request{account: a, method: http.MethodPost, path: "/accounts/a/keys/gone:revoke", onAccount: model.RevokeKey{Label: "key-3"}}, nil)
	time.Sleep(maxRevocationDelay)
	a.referentials[0].edition = 1
	first := model.SyncSites{Code: "ref-1"}
	for id := range 4 {
		first.Rows = append(first.Rows, model.Row{ExternalID: externalID(id), Name: nameOf(id, 1)})
	}
	r.sendAPI(t.Context(), at, a.referentials[0].newRequest(first))
	service.mu.Lock()
	service.overrides = overrides
	service.mu.Unlock()
	r.healthTimeout, r.searchTimeout = 0, 0
	r.checkSystem(t.Context())
	if r.hasNoViolations() {
		for _, err := range []error{r.checkHistory(t.Context(), at, a), r.checkRebuild(t.Context(), at)} {
			if err != nil {
				r.reportViolation("%v", err)
			}
		}
	}
	return r.violations
}

// A service that keeps what it acknowledged passes. A wrong answer about one thing is reported.
func TestChecksReportEachBrokenPromise(t *testing.T) {
	t.Parallel()
	one := `{"results":[{"referentiel":"ref-1","external_id":"site-00000","nom":"Comptoir 0 édition 1","proprietes":{"nom":"Comptoir 0 édition 1"},"version":1,"actif":true}]}`
	today := model.Day(time.Now())
	const list, usage = "GET /services/v1/locations/referentiels/ref-1/sites", "GET /customer-area/v1/usage"
	keys := func(main, live, gone string) string {
		return strings.ReplaceAll(fmt.Sprintf(`{"results":[{"id":"main","kind":"secret","label":"key-1"%s}%s%s]}`, main, live, gone), "REVOKED", `"revoque_le":"2026-11-22T10:00:00Z"`)
	}
	for name, c := range map[string]struct {
		at, says string
		want     string
	}{
		"it is not ready":                            {"/readyz", "503", "is not well"},
		"a part of it is not":                        {"/readyz", `{"parts":{"read models":"places: stands still"}}`, "read models: places: stands still"},
		"an account is not answered":                 {"/me as main", "500", "does not answer a"},
		"a projection stands still":                  {"/projections", `{"results":[{"name":"places","etat":"serving","retard":0,"raison":"an event cannot be read"}]}`, "stands still: an event cannot be read"},
		"a projection is behind":                     {"/projections", `{"results":[{"name":"places","etat":"serving","retard":7}]}`, "behind: by 7 events"},
		"no projection serves":                       {"/projections", `{"results":[{"name":"places","etat":"building","retard":0}]}`, "no projection serves"},
		"an account is lost":                         {"GET /customer-area/v1/accounts/a", "404", "account a is unknown"},
		"it has other terms":                         {"GET /customer-area/v1/accounts/a", `{"id":"a","nom":"Compte a","plan":"GROWTH","quota":1000000000}`, "account a is"},
		"sites are lost":                             {list, one, "the places of a are none of those possible"},
		"a referential is lost":                      {"locations/referentiels", `{"results":[]}`, "the places of a are none of those possible"},
		"sites cannot be listed":                     {list, "500", "500"},
		"a site is listed twice":                     {list, strings.Replace(one, `}]`, `},{"external_id":"site-00000"}]`, 1), "site-00000 is listed twice"},
		"a site is a mixture":                        {list, strings.Replace(one, "édition 1", "édition 2", 1), "a site is shown as somebody wrote it, whole"},
		"a site is somewhere else":                   {list, strings.Replace(one, `proprietes":{`, `lat":1,"lon":1,"proprietes":{"lieu":"42.000000 1.000000",`, 1), "a site is where its customer said"},
		"the write side holds another":               {"sites:sync", `{"crees":1,"inchanges":3,"actifs_avant":3,"actifs_apres":4}`, "one order of the commands explains all their answers"},
		"it takes no write":                          {"PUT", "500", "takes no write"},
		"a write is answered wrongly":                {"PUT", `{"external_id":"site-00000","version":1,"actif":true}`, "one order of the commands explains all their answers"},
		"a write is not found":                       {"/search", `{"results":[]}`, "is not found"},
		"it has other figures":                       {"/me as main", `{"sites":{"actifs":9}}`, "/me tells 9"},
		"a revoked key is served":                    {"/me as gone", "200", "a revoked key is refused"},
		"a key is not served":                        {"/me as live", "401", "an active key is accepted"},
		"a key fails":                                {"/me as live", "500", "key live: GET /me"},
		"a key is lost":                              {"/keys", keys("", "", ","+goneKey), "account a is"},
		"a revocation is lost":                       {"/keys", keys("", `,{"id":"live","kind":"secret","label":"key-2"}`, `,{"id":"gone","kind":"secret","label":"key-3"}`), "account a is"},
		"nobody revoked it":                          {"/keys", keys("", `,{"id":"live","kind":"secret","label":"key-2",REVOKED}`, ","+goneKey), "account a is"},
		"the books differ":                           {":reconcile", `{"differences":[{"contrat":"a","objet":"ligne"}]}`, "reconcile: {Contract:a"},
		"too little is billed":                       {usage, `{"results":[]}`, "usage is what was served"},
		"too much is billed":                         {usage, `{"results":[{"compte":"a","contrat":"a","periode":"` + today + `","jour":"` + today + `","cle":"main","endpoint":"GET /me","requetes":9000}]}`, "9000 are billed"},
		"it is billed to another day":                {usage, `{"results":[{"compte":"a","contrat":"a","periode":"2020-01-01","jour":"` + today + `","cle":"main","endpoint":"GET /me","requetes":1}]}`, "the period of that day begins on"},
		"a quota is passed":                          {usage, `{"results":[{"compte":"a","contrat":"a","periode":"` + today + `","jour":"` + today + `","cle":"x","endpoint":"x","requetes":2000000000}]}`, "its quota is 1000000000"},
		"lines and total differ":                     {"a/usage", `{"total":3,"lignes":[]}`, "the usage that an account sees is the usage that is billed"},
		"a version is not told":                      {"/history", `{"results":[{"sujet":"ref-1/site-00000","donnees":{"version":2}}]}`, "version 2 of ref-1/site-00000 follows version 0"},
		"the last version is not told":               {"/history", `{"results":[]}`, "the audit tells every acknowledged command, once"},
		"no read model is made again":                {":rebuild", "500", "rebuild of places"},
		"a read model is made again with other rows": {"rebuilt", "", "is another once the read models are made again"},
		"nothing at all":                             {"/nowhere", "500", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := strings.Join(findViolations(t, map[string]string{c.at: c.says}), "; ")
			if c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
