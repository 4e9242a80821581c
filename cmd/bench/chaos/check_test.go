package chaos

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"lieudit/cmd/bench/harness"
	"lieudit/schemas/body"
	"lieudit/schemas/locations"
)

// fakeService answers as a service does that kept every acknowledged write of one referential. overrides replace single
// answers: by a part of the method and path, and after " as " the end of the key, the status or the body that is sent
// instead. The key "rebuilt" makes a rebuild lose the history.
type fakeService struct {
	mu          sync.Mutex
	referential *referential
	bill        *bill // what it answered
	generations int   // rebuilds
	overrides   map[string]string
}

func (s *fakeService) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	path, bearer := r.Method+" "+r.URL.Path, r.Header.Get("Authorization")
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
	w.WriteHeader(status)
	w.Write(text)
}

func (s *fakeService) answer(path, bearer string, sent []byte) (int, any) {
	now := s.referential.possible[0]
	if strings.HasSuffix(bearer, "revoked") {
		return http.StatusUnauthorized, nil
	}
	const area = "/customer-area/v1"
	switch _, after, _ := strings.Cut(path, "/services/v1"); after {
	case "/me":
		return 200, body.Me{Sites: body.MySites{Active: &now.active}}
	case "/locations/referentiels/ref-1/sites", "/locations/search":
		return 200, body.Sites{Results: s.sites(now)}
	case "/locations/referentiels/ref-1/sites:sync":
		return 200, body.Synced{Unchanged: now.active, ActiveBefore: now.active, ActiveAfter: now.active}
	}
	switch {
	case strings.HasPrefix(path, "PUT "):
		return s.put(path, sent)
	case path == "GET /readyz":
		return 200, map[string]any{"parts": map[string]string{"log": "ok"}}
	case path == "GET "+area+"/projections":
		none := 0
		return 200, body.Projections{Results: []body.Projection{{Name: "places", Generation: fmt.Sprint("places-", s.generations), State: "serving", Lag: &none}}}
	case strings.HasSuffix(path, ":rebuild"):
		s.generations++
		return 202, nil
	case path == "POST "+area+"/usage:reconcile":
		return 200, body.Reconciliation{}
	case path == "GET "+area+"/accounts":
		return 200, body.Sites{}
	case path == "GET "+area+"/accounts/a/usage":
		return 200, s.usage()
	case path == "GET "+area+"/accounts/a/keys":
		return 200, body.Keys{Results: []body.Key{{ID: "live"}, {ID: "gone", Revoked: time.Unix(1, 0)}}}
	case path == "GET "+area+"/accounts/a/history":
		return 200, body.History{Results: s.history(now)}
	}
	return http.StatusNotFound, nil
}

func (s *fakeService) usage() any {
	s.bill.mu.Lock()
	defer s.bill.mu.Unlock()
	lines, total := []map[string]any{}, int64(0)
	for l, c := range s.bill.lines {
		lines = append(lines, map[string]any{"endpoint": l.endpoint, "requetes": c.answered})
		total += c.answered
	}
	return map[string]any{"total": total, "lignes": lines}
}

func (s *fakeService) put(path string, sent []byte) (int, any) {
	shown := locations.Site{ExternalID: path[strings.LastIndex(path, "/")+1:], Active: true}
	json.Unmarshal(sent, &shown.Content)
	id, edition, _ := editionOf(shown)
	next, o := write{action: put, rows: []row{{id, edition}}}.apply(s.referential.possible[0], s.referential.account.limits)
	shown.Version, s.referential.possible = o.Version, []state{next}
	return o.Status, shown
}

func (s *fakeService) sites(now state) (all []locations.Site) {
	for _, id := range slices.Sorted(maps.Keys(now.sites)) {
		r := now.sites[id]
		all = append(all, locations.Site{ExternalID: externalID(id), Content: contentOf(row{id, r.edition}), Version: r.version, Active: r.active})
	}
	return all
}

func (s *fakeService) history(now state) (all []body.Incident) {
	if _, isForgotten := s.overrides["rebuilt"]; isForgotten && s.generations > 0 {
		return nil
	}
	for _, id := range slices.Sorted(maps.Keys(now.sites)) {
		for v := range now.sites[id].version {
			all = append(all, body.Incident{Subject: "ref-1/" + externalID(id), Data: json.RawMessage(fmt.Sprintf(`{"version":%d}`, v+1))})
		}
	}
	return all
}

// findViolations returns the violations that the checks of a run report about a fakeService with these overrides.
func findViolations(t *testing.T, overrides map[string]string) []string {
	t.Helper()
	f := newActiveReferential(t, 4)
	r := newRun(Options{}, Embedded, 0)
	service := &fakeService{referential: newActiveReferential(t, 4), bill: r.bill, overrides: overrides}
	server := httptest.NewServer(service)
	t.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "http://")
	i := &instance{name: "i"}
	i.current.Store(&serverProcess{name: "life", process: &harness.Instance{Process: new(harness.Process), API: host, Area: host, Ops: host}})
	r.instances, r.accounts = []*instance{i}, []*account{f.account}
	r.healthTimeout, r.searchTimeout = 0, 0
	f.account.key = "main"
	f.account.extraKeys = []*issuedKey{{id: "live", token: "live"}, {id: "gone", token: "revoked", revoked: time.Now(), revokeSent: true}}
	r.checkSystem(t.Context())
	if r.hasNoViolations() {
		for _, err := range []error{r.checkHistory(t.Context(), i.current.Load(), f.account), r.checkRebuild(t.Context(), i.current.Load())} {
			if err != nil {
				r.reportViolation("%v", err)
			}
		}
	}
	return r.violations
}

// A service that keeps what it acknowledged passes. One that answers wrongly about one thing
// is reported for it.
func TestChecksReportEachBrokenPromise(t *testing.T) {
	t.Parallel()
	one := `{"results":[{"external_id":"site-00000","nom":"Comptoir 0 édition 1","telephone":"04 66 000001","version":1,"actif":true}]}`
	const list = "GET /services/v1/locations/referentiels/ref-1/sites"
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
		"sites are lost":                             {list, one, "holds none of the 1 states"},
		"sites cannot be listed":                     {list, "500", "500"},
		"a site is a mixture":                        {list, strings.Replace(one, "000001", "000002", 1), "no one write said both"},
		"the write side holds another":               {"sites:sync", `{"crees":1,"inchanges":3,"actifs_avant":3,"actifs_apres":4}`, "a dry run of what a/ref-1 lists"},
		"it takes no write":                          {"PUT", "500", "takes no write"},
		"a write is not found":                       {"/search", `{"results":[]}`, "is not found"},
		"it has other figures":                       {"/me as main", `{"sites":{"actifs":9}}`, "/me tells 9"},
		"a revoked key is served":                    {"/me as revoked", "200", "was revoked"},
		"a key is not served":                        {"/me as live", "401", "key live: GET /me"},
		"a key is lost":                              {"/keys", `{"results":[{"id":"gone","revoque_le":"2026-11-22T10:00:00Z"}]}`, "key live was issued and is not listed"},
		"a revocation is lost":                       {"/keys", `{"results":[{"id":"gone"},{"id":"live"}]}`, "key gone was revoked and is listed without that"},
		"nobody revoked it":                          {"/keys", `{"results":[{"id":"gone","revoque_le":"2026-11-22T10:00:00Z"},{"id":"live","revoque_le":"2026-11-22T10:00:00Z"}]}`, "nobody revoked it"},
		"the books differ":                           {":reconcile", `{"differences":[{"contrat":"a","objet":"ligne"}]}`, "reconcile: {Contract:a"},
		"too little is billed":                       {"a/usage", `{"total":0,"lignes":[]}`, "were answered and only 0 are billed"},
		"too much is billed":                         {"a/usage", `{"total":9000,"lignes":[{"endpoint":"GET /me","requetes":9000}]}`, "9000 requests of GET /me are billed"},
		"a quota is passed":                          {"a/usage", `{"total":2000000000,"lignes":[{"endpoint":"x","requetes":2000000000}]}`, "its quota is 1000000000"},
		"lines and total differ":                     {"a/usage", `{"total":3,"lignes":[]}`, "add up to 0"},
		"a version is not told":                      {"/history", `{"results":[{"sujet":"ref-1/site-00000","donnees":{"version":2}}]}`, "version 2 of ref-1/site-00000 follows version 0"},
		"the last version is not told":               {"/history", `{"results":[]}`, "the last that is told is 0"},
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
