package customers

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"lieudit/cmd/bench/model"
)

// fakeService has one account with a key, a referential and a site. It answers correctly except for what is broken.
type fakeService struct {
	isClosed bool
	broken   func(instance int, path, body string) (int, string) // nil: nothing is
	mu       sync.Mutex
	counted  map[string]int64 // by endpoint
	name     string           // of the site
	version  int              // of the site; 0: there is none
	reported []string
	rules    []Rule
}

func (f *fakeService) Instances() int                { return 3 }
func (f *fakeService) Wall(int) time.Time            { return time.Date(2026, 1, 15, 9, 0, 0, 0, time.UTC) }
func (f *fakeService) Deaths(int) int                { return 0 }
func (f *fakeService) OperatorToken() (string, bool) { return "operator", true }
func (f *fakeService) IsDisturbed() bool             { return false }
func (f *fakeService) Report(rule Rule, format string, args ...any) {
	f.rules = append(f.rules, rule)
	f.reported = append(f.reported, string(rule)+": "+fmt.Sprintf(format, args...))
}

// site returns the site as last written.
func (f *fakeService) site() string {
	return fmt.Sprintf(`{"id":"S","referentiel":"lieux-0","external_id":"s0","nom":"%s","actif":true,"version":%d,"proprietes":{"nom":"%[1]s"}}`, f.name, f.version)
}

// putSite writes the site.
func (f *fakeService) putSite(body []byte) {
	var site struct{ Nom string }
	_ = json.Unmarshal(body, &site)
	f.name, f.version = site.Nom, f.version+1
}

// fakeAnswers are the answers of the API by method and path, with the endpoint to count.
var fakeAnswers = map[string][3]string{
	"GET /me": {"GET /me", "200", `{"client":"compte-03"}`},
	"POST /locations/referentiels": {"POST /locations/referentiels", "201",
		`{"code":"lieux-0","nom":"compte-03 n.0","status":"active"}`},
	"GET /locations/referentiels": {"GET /locations/referentiels", "200",
		`{"results":[{"code":"lieux-0","nom":"compte-03 n.0","status":"active","sites_actifs":1}]}`},
	"PUT /locations/referentiels/lieux-0/sites/s0": {"PUT " + siteEndpoint, "201", `SITE`},
	"GET /locations/referentiels/lieux-0/sites":    {"GET " + referentialEndpoint + "/sites", "200", `{"results":[SITE]}`},
	"GET /locations/search":                        {"GET /locations/search", "200", `{"results":[SITE]}`},
}

// Call implements World.
func (f *fakeService) Call(_ context.Context, instance int, s Surface, r Request) Answer {
	f.mu.Lock()
	defer f.mu.Unlock()
	path, query, _ := strings.Cut(r.Path, "?")
	status, body := 200, ""
	if s == API {
		path = strings.TrimPrefix(path, "/services/v1")
		if r.Method == http.MethodPut {
			f.putSite(r.Body)
		}
		status, body = f.answerKey(r.Method+" "+path, query)
	} else {
		path = strings.TrimPrefix(path, "/customer-area/v1")
		status, body = f.answerArea(r.Method, path, query)
	}
	if f.broken != nil {
		if brokenStatus, brokenBody := f.broken(instance, r.Method+" "+path, body); brokenStatus != 0 {
			status, body = brokenStatus, brokenBody
		}
	}
	return Answer{Status: status, Body: []byte(body), IsSent: true}
}

func (f *fakeService) answerKey(request, query string) (int, string) {
	if request == "GET /locations/changes" {
		f.counted[request]++
		if strings.HasSuffix(query, fmt.Sprint("curseur=", f.version)) {
			return 200, fmt.Sprintf(`{"results":[],"curseur":"%d"}`, f.version)
		}
		return 200, fmt.Sprintf(`{"results":[{"type":"site","site":%s}],"curseur":"%d"}`, f.site(), f.version)
	}
	a := fakeAnswers[request]
	f.counted[a[0]]++
	body := strings.Replace(a[2], "SITE", f.site(), 1)
	if a[1] == "201" && f.version <= 1 {
		return 201, body
	}
	return 200, body
}

func (f *fakeService) answerArea(method, path, query string) (int, string) {
	key, closed := `{"id":"K","kind":"secret","label":"k000001","token":"t"}`, ""
	name := "Mairie de compte-03"
	if f.isClosed { // and erased
		closed, name = `,"ferme_le":"2026-01-15T09:00:00Z"`, ""
		key = `{"id":"K","kind":"secret"}`
	}
	account := `{"id":"compte-03","nom":"` + name + `","plan":"STARTER","quota":100000,"debut_periode":"2026-01-13","agence":false` + closed + `}`
	switch method + " " + strings.TrimPrefix(path, "/accounts/compte-03") {
	case "POST /accounts":
		return 201, account
	case "POST /keys":
		return 201, key
	case "POST :close":
		f.isClosed = true
		return 200, strings.TrimSuffix(strings.Replace(account, closed, "", 1), "}") + `,"ferme_le":"2026-01-15T09:00:00Z"}`
	case "GET ", "POST :erase":
		return 200, account
	case "GET /keys":
		return 200, `{"results":[` + key + `]}`
	case "GET /usage", "GET /accounts/compte-03/usage":
		return f.showUsage(path, query)
	case "POST /usage:reconcile":
		return 200, `{"differences":[]}`
	case "GET /projections":
		return 200, `{"results":[{"name":"usage","etat":"serving","retard":0}]}`
	case "GET /accounts":
		return 200, `{"results":[` + account + `]}`
	case "GET /tokens":
		return 200, `{"results":[]}`
	case "GET /history":
		return 200, `{"results":[{"type":"key-issued","sujet":"K"},{"type":"referential-opened","sujet":"lieux-0"},` +
			strings.TrimSuffix(strings.Repeat(`{"type":"sites-changed","sujet":"lieux-0/s0"},`, f.version), ",") + `]}`
	}
	return 404, `{"detail":"Not found"}`
}

func (f *fakeService) showUsage(path, query string) (int, string) {
	total, lines, byEndpoint, table := int64(0), []string{}, []string{}, []string{}
	for endpoint, n := range f.counted {
		total += n
		table = append(table, fmt.Sprintf("compte-03,compte-03,2026-01-13,2026-01-15,K,%s,%d,en_cours\n", endpoint, n))
		byEndpoint = append(byEndpoint, fmt.Sprintf(`{"endpoint":"%s","requetes":%d}`, endpoint, n))
		lines = append(lines, fmt.Sprintf(`{"compte":"compte-03","contrat":"compte-03","periode":"2026-01-13","jour":"2026-01-15","cle":"K","endpoint":"%s","requetes":%d}`, endpoint, n))
	}
	slices.Sort(lines)
	slices.Sort(table)
	slices.Sort(byEndpoint)
	by := fmt.Sprintf(`{"jour":"2026-01-15","requetes":%d}`, total)
	switch {
	case strings.Contains(query, "format=csv"):
		return 200, "compte,contrat,periode,jour,cle,endpoint,requetes,etat\n" + strings.Join(table, "")
	case strings.Contains(query, "format=ndjson"):
		return 200, strings.Join(lines, "\n")
	case strings.Contains(query, "by=endpoint"):
		by = strings.Join(byEndpoint, ",")
	case strings.Contains(query, "by=key"):
		by = fmt.Sprintf(`{"cle":"K","requetes":%d}`, total)
	}
	if path == "/usage" {
		return 200, `{"results":[` + strings.Join(lines, ",") + `]}`
	}
	return 200, fmt.Sprintf(`{"periode":"2026-01-13","limite":100000,"total":%d,"lignes":[%s]}`, total, by)
}

// checkFake lets customers use a fake service and check it when all is quiet.
func checkFake(t *testing.T, f *fakeService, closes bool) {
	f.counted = map[string]int64{}
	c := New(f, 3, nil)
	d := actDetails{Account: "compte-03", Label: "n", Pick: 42 * 9} // lieux-0 and s0
	if !c.openFirst(t.Context(), 2, d) {
		t.Fatal("the account is not open")
	}
	c.openReferential(t.Context(), d)
	c.putSite(t.Context(), d)
	if closes {
		d.Size, d.Pick = 1, 42*9+42
		c.closeAccount(t.Context(), d)
	}
	for range spreadInterval { // one account in spreadInterval is written to
		c.CheckQuiet(t.Context(), f.Wall(0))
	}
}

func TestQuietCheckAllowsWhatIsRight(t *testing.T) {
	t.Parallel()
	for _, closes := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			f := &fakeService{}
			if checkFake(t, f, closes); len(f.reported) > 0 {
				t.Errorf("closed %v: reported %q", closes, f.reported)
			}
		})
	}
}

func TestQuietCheckFindsWhatIsWrong(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule   Rule
		path   string
		on     int // instance
		status int
		body   string
		closes bool
	}{
		{model.EveryAccountAnswers, "GET /me", 1, 404, `{}`, false},
		{model.EveryAccountAnswers, "GET /accounts/compte-03", 2, 500, `{}`, false},
		{model.NoFailureAlone, "GET /locations/search", 0, 503, `{}`, false},
		{model.InstancesAgree, "GET /accounts/compte-03", 2, 200, `{"id":"compte-03"}`, false},
		{model.SearchFinds, "GET /locations/search", 0, 200, `{"results":[]}`, false},
		{model.ChangesTellAll, "GET /locations/changes", 1, 200, `{"results":[],"curseur":"1"}`, false},
		{model.EverybodySeesIt, "GET /locations/referentiels/lieux-0/sites", 2, 200, `{"results":[]}`, false},
		{model.ListsShowIt, "GET /accounts", 0, 200, `{"results":[]}`, false},
		{model.ListsShowIt, "GET /accounts", 0, 200, `{"results":[{"id":"compte-03","plan":"GROWTH"}]}`, false},
		{model.ExportsAgree, "GET /usage", 0, 200, `{"results":[]}`, false},
		{model.UsageAgrees, "GET /accounts/compte-03/usage", 0, 200, `{"periode":"2026-01-13","total":0}`, false},
		{model.Reconciles, "POST /usage:reconcile", 0, 200, `{"differences":[{}]}`, false},
		{model.ProjectionsMove, "GET /projections", 0, 200, `{"results":[{"name":"usage","etat":"serving","retard":3}]}`, false},
		{model.ProjectionsMove, "GET /projections", 0, 200, `{"results":[{"name":"usage","etat":"filling","retard":0}]}`, false},
		{model.ProjectionsMove, "GET /projections", 0, 200, `{"results":[{"name":"usage","etat":"serving","retard":0,"comptes_arretes":[{"compte":"compte-03"}]}]}`, false},
		{model.ErasedUnreadable, "GET /accounts/compte-03/history", 0, 200, `{"results":[{"phrase":"Mairie de compte-03"}]}`, true},
		{model.AcknowledgedIsThere, "GET /accounts/compte-03/keys", 0, 200, `{"results":[{"id":"K","kind":"secret","label":"k000001"}]}`, true},
	} {
		t.Run(fmt.Sprint(c.rule, " ", c.path, " ", c.body), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := &fakeService{broken: func(instance int, path, _ string) (int, string) {
					if path != c.path || instance != c.on && (c.rule == model.InstancesAgree || c.rule == model.EveryAccountAnswers) {
						return 0, ""
					}
					return c.status, c.body
				}}
				if checkFake(t, f, c.closes); !slices.Contains(f.rules, c.rule) {
					t.Errorf("got %q, want %q among them", f.reported, c.rule)
				}
			})
		})
	}
}
