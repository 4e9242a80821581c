package usage_test

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"html"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"lieudit/http/customerarea"
	"lieudit/http/pages/page"
	"lieudit/http/pages/usage"
	"lieudit/schemas/body"
	"lieudit/schemas/grant"
	"lieudit/schemas/plan"
	"lieudit/schemas/refusal"
)

var (
	first = plan.Date{Year: 2026, Month: 11, Day: 8}
	now   = time.Date(2026, 11, 27, 10, 12, 3, 0, time.UTC)
)

// fakeArea is a customer area with one account. lines are what is counted.
type fakeArea struct {
	page.Area // what the pages do not ask for
	role      grant.Role
	account   body.Account
	keys      []body.Key
	state     body.PeriodState
	agency    string
	lines     []body.UsageLine
	counts    []body.UsageCount
	sent      string // target of the file
	asked     []string
}

func (a *fakeArea) Authenticate(*http.Request) (customerarea.Principal, error) {
	return customerarea.Principal{TokenID: "t", Role: a.role, Session: "s"}, nil
}

func (a *fakeArea) May(_ context.Context, _ customerarea.Principal, method, target string) bool {
	path, _, _ := strings.Cut(target, "?")
	switch a.role {
	case grant.RoleBilling:
		return path != "/accounts/"+a.account.ID
	case grant.RoleAuditor:
		return strings.HasSuffix(path, "/keys") || strings.HasSuffix(path, "/usage/lines")
	}
	return method == http.MethodGet
}

func (a *fakeArea) Send(w http.ResponseWriter, _ *http.Request, _ customerarea.Principal, target string) error {
	a.sent = target
	_, err := io.WriteString(w, "compte,…")
	return err
}

func (a *fakeArea) Do(_ context.Context, _ customerarea.Principal, _, target string, _, out any) error {
	a.asked = append(a.asked, target)
	u, err := url.Parse(target)
	if err != nil {
		return err
	}
	var answer any
	switch path, q := strings.TrimPrefix(u.Path, "/accounts/"+a.account.ID), u.Query(); path {
	case "":
		answer = a.account
	case "/keys":
		answer = body.Keys{Results: a.keys}
	case "/usage/periods":
		answer = body.UsagePeriods{Results: []body.UsagePeriod{{Period: first, Interval: a.usage(q).Interval, State: a.state}}}
	case "/usage":
		if q.Get("period") == "wrong" {
			return refusal.NotFound
		}
		answer = a.usage(q)
	case "/usage/lines":
		answer = body.UsageCounts{Results: a.counts, Cursor: map[bool]string{true: "apres-1"}[len(a.counts) == 1]}
	default:
		return refusal.NotFound
	}
	text, err := json.Marshal(answer)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, out)
}

// usage groups and filters the lines as the operation does.
func (a *fakeArea) usage(q url.Values) body.Usage {
	u := body.Usage{Period: first, Interval: body.Interval{Start: first.Start(), End: plan.PeriodAt(first, first.Start()).End()}, Limit: 5000, State: a.state, Agency: a.agency, Position: 77}
	if a.state == body.PeriodClosed {
		u.Closed = u.End.Add(time.Hour)
	}
	sums := map[body.UsageLine]int64{}
	for _, l := range a.lines {
		u.Total += l.Requests
		if q.Get("cle") != "" && q.Get("cle") != l.Key || q.Get("endpoint") != "" && q.Get("endpoint") != l.Endpoint || q.Get("jour") != "" && q.Get("jour") != l.Day.String() {
			continue
		}
		at, by := body.UsageLine{}, q.Get("by")
		if strings.Contains(by, "day") {
			at.Day = l.Day
		}
		if strings.Contains(by, "key") {
			at.Key = l.Key
		}
		if strings.Contains(by, "endpoint") {
			at.Endpoint = l.Endpoint
		}
		sums[at] += l.Requests
	}
	for at, n := range sums {
		at.Requests = n
		u.Lines = append(u.Lines, at)
	}
	slices.SortFunc(u.Lines, func(a, b body.UsageLine) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	u.Remaining = max(u.Limit-u.Total, 0)
	return u
}

// newFakeArea is an area with keys and lines: keys × endpoints × days of them.
func newFakeArea(keys, endpoints, days int) *fakeArea {
	random := rand.New(rand.NewPCG(1, 2))
	a := &fakeArea{role: grant.RoleCustomer, account: body.Account{ID: "mende", Name: "Mairie de Mende", Anchor: first}, state: body.PeriodRunning}
	for k := range keys {
		key := body.Key{ID: fmt.Sprintf("b7f3c1d2-0000-4000-8000-%012d", k), Label: fmt.Sprintf("site de la commune %d", k), Hint: fmt.Sprintf("ld_sk_…%04d", k)}
		if k%5 == 4 {
			key.Revoked = now
		}
		a.keys = append(a.keys, key)
		for e := range endpoints {
			for d := range days {
				a.lines = append(a.lines, body.UsageLine{Day: plan.DateOf(first.Start().Add(time.Duration(d)*24*time.Hour + 12*time.Hour)), Key: key.ID, Endpoint: fmt.Sprintf("GET /address/question-%d", e), Requests: 1 + random.Int64N(9)})
			}
		}
	}
	return a
}

func (a *fakeArea) site() *page.Site {
	return page.New(a, page.Env{
		URL: func() *url.URL { return &url.URL{Scheme: "http", Host: "localhost"} }, API: func() *url.URL { return &url.URL{Scheme: "http", Host: "127.0.0.1:8080"} },
		Now: func() time.Time { return now }, Log: slog.New(slog.DiscardHandler), Version: "test", IsStopping: func() bool { return false }, IsInvented: func() bool { return false },
	}, usage.Section())
}

func (a *fakeArea) get(t testing.TB, path, lang string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, "http://localhost"+path, nil)
	r.Header.Set("Accept-Language", lang)
	w := httptest.NewRecorder()
	a.site().ServeHTTP(w, r)
	return w
}

var cell = regexp.MustCompile(`<(?:td|dd|a)[^>]*>(?:<a[^>]*href="([^"]*)"[^>]*>)?([0-9,]+)<`)

// TestEachNumberIsTheSumOfTheLinesItLeadsTo: whatever the choice is, a number of the table with a link is the sum of the lines that the link
// names.
func TestEachNumberIsTheSumOfTheLinesItLeadsTo(t *testing.T) {
	t.Parallel()
	a := newFakeArea(12, 4, 19)
	for _, query := range []string{"", "?par=endpoint", "?par=cle&ordre=requetes", "?cle=" + a.keys[3].ID, "?par=endpoint&cle=" + a.keys[3].ID, "?endpoint=GET+%2Faddress%2Fquestion-2", "?par=nonsense&ordre=nonsense"} {
		text := a.get(t, "/comptes/mende/usage"+query, "en").Body.String()
		links := 0
		for _, m := range cell.FindAllStringSubmatch(text, -1) {
			target, err := url.Parse(html.UnescapeString(m[1]))
			if err != nil {
				t.Fatal(err)
			}
			if target.Path != "usage/lignes" {
				continue
			}
			links++
			q, want := target.Query(), int64(0)
			for _, l := range a.usage(url.Values{"by": {"key,endpoint,day"}, "cle": q["cle"], "endpoint": q["endpoint"], "jour": q["jour"]}).Lines {
				want += l.Requests
			}
			if got, err := strconv.ParseInt(strings.ReplaceAll(m[2], ",", ""), 10, 64); err != nil || got != want || q.Get("periode") != first.String() {
				t.Errorf("%s: %s leads to %s, whose lines add up to %d", query, m[2], m[1], want)
			}
		}
		if links < 40 {
			t.Errorf("%s: %d numbers lead to lines", query, links)
		}
	}
}

// hostile are texts that people type.
var hostile = []string{`"><script>alert(1)</script>`, `' onfocus=alert(1) x='`, strings.Repeat("x", 200), "שלום \u202eevil", "</title><img src=x onerror=alert(1)>", "{{.}}", "\x00\ufffe"}

// TestHostileTextsStayText executes every template with names, labels, endpoints and reasons that are markup, in both languages.
func TestHostileTextsStayText(t *testing.T) {
	t.Parallel()
	for _, text := range hostile {
		a := newFakeArea(9, 2, 3)
		a.account.Name, a.agency = text, text
		for i := range a.keys {
			a.keys[i].Label = text
		}
		a.counts = []body.UsageCount{{Recorded: now, Kind: body.CountAdjusted, Day: first, Key: a.keys[0].ID, Endpoint: text, Requests: -2, Reason: text, Position: 9}}
		for i := range a.lines {
			a.lines[i].Endpoint = text + strconv.Itoa(i%9)
		}
		for _, state := range []body.PeriodState{body.PeriodRunning, body.PeriodEnded, body.PeriodClosed} {
			a.state = state
			for _, lang := range []string{"fr", "en"} {
				for _, path := range []string{"/usage", "/usage?par=endpoint", "/usage?cle=" + url.QueryEscape(text) + "&endpoint=" + url.QueryEscape(text), "/usage/lignes?cle=" + url.QueryEscape(text) + "&nature=correction&jour=2026-11-09", "/usage/lignes"} {
					w := a.get(t, "/comptes/mende"+path, lang)
					if w.Code != http.StatusOK {
						t.Fatalf("%s with %q: %d", path, text, w.Code)
					}
					checkMarkup(t, path, w.Body.String())
				}
			}
		}
	}
}

// checkMarkup checks that the page has no element or attribute that its templates do not have, by reading it as XML would be read.
func checkMarkup(t *testing.T, path, text string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(text))
	d.Strict, d.AutoClose, d.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	for {
		token, err := d.Token()
		if err != nil {
			return
		}
		e, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		if e.Name.Local == "img" {
			t.Errorf("%s: an element of a text", path)
		}
		for _, a := range e.Attr {
			if strings.HasPrefix(a.Name.Local, "on") || a.Name.Local == "style" || e.Name.Local == "script" && a.Name.Local == "src" && !strings.HasPrefix(a.Value, "/assets/") {
				t.Errorf("%s: attribute %s of %s", path, a.Name.Local, e.Name.Local)
			}
		}
		if e.Name.Local == "script" && len(e.Attr) == 0 {
			t.Errorf("%s: a script in the page", path)
		}
	}
}

// TestEachRoleGetsWhatItMaySee: billing may not see the account itself, and an auditor sees lines without totals.
func TestEachRoleGetsWhatItMaySee(t *testing.T) {
	t.Parallel()
	a := newFakeArea(2, 1, 3)
	a.counts = []body.UsageCount{{Recorded: now, Kind: body.CountTicked, Day: first, Key: a.keys[0].ID, Endpoint: "GET /me", Requests: 4, Position: 12345}}
	a.role = grant.RoleBilling
	if w := a.get(t, "/comptes/mende/usage", "fr"); w.Code != http.StatusOK || strings.Contains(w.Body.String(), "Mairie de Mende") || !strings.Contains(w.Body.String(), a.keys[0].Label) {
		t.Errorf("billing: %d", w.Code)
	}
	a.role = grant.RoleAuditor
	w := a.get(t, "/comptes/mende/usage/lignes?periode=2026-11-08", "fr")
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "12\u202f345") || !strings.Contains(w.Body.String(), a.keys[0].Label) {
		t.Errorf("auditor: %d %s", w.Code, w.Body)
	}
	for _, target := range a.asked[len(a.asked)-2:] {
		if strings.Contains(target, "/usage?") {
			t.Errorf("an auditor's page asked for %s", target)
		}
	}
}

// TestAPageOfLinesLeadsToTheNext: filters stay, and the page says how much of the sum it holds.
func TestAPageOfLinesLeadsToTheNext(t *testing.T) {
	t.Parallel()
	a := newFakeArea(2, 1, 3)
	a.counts = []body.UsageCount{{Recorded: now, Kind: body.CountTicked, Day: first, Key: a.keys[0].ID, Endpoint: "GET /me", Requests: 4}}
	text := a.get(t, "/comptes/mende/usage/lignes?periode=2026-11-08&jour=2026-11-09&cle="+a.keys[0].ID, "en").Body.String()
	for _, want := range []string{"curseur=apres-1", "jour=2026-11-09", "27 Nov 2026, 11:12:03", ", 4 of them on this page", "/comptes/mende/usage/lignes?cle=" + a.keys[0].ID + "&amp;periode=2026-11-08\""} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in %s", want, text)
		}
	}
	if got := a.asked[len(a.asked)-1]; got != "/accounts/mende/usage/lines?cle="+a.keys[0].ID+"&jour=2026-11-09&limit=100&period=2026-11-08" {
		t.Errorf("asked for %s", got)
	}
}

// TestTheFileHasTheChoiceOfThePage: period and filters, in the dialect that was asked for.
func TestTheFileHasTheChoiceOfThePage(t *testing.T) {
	t.Parallel()
	a := newFakeArea(2, 1, 3)
	for path, want := range map[string]string{
		"?tableur=excel&periode=2026-11-08&cle=k": "/accounts/mende/usage?by=key%2Cendpoint%2Cday&cle=k&period=2026-11-08&format=csv&tableur=excel",
		"?tableur=nonsense&endpoint=GET+%2Fme":    "/accounts/mende/usage?by=key%2Cendpoint%2Cday&endpoint=GET+%2Fme&format=csv&tableur=standard",
	} {
		w := a.get(t, "/comptes/mende/usage.csv"+path, "fr")
		if a.sent != want || !strings.HasPrefix(w.Header().Get("Content-Disposition"), `attachment; filename="usage-mende`) {
			t.Errorf("%s: sent %s, want %s; %v", path, a.sent, want, w.Header())
		}
	}
}

// TestEmptyPeriodsSayWhatToDo: a running period has a line to copy, a filter leads back to all, a period that is over says so.
func TestEmptyPeriodsSayWhatToDo(t *testing.T) {
	t.Parallel()
	a := newFakeArea(1, 0, 0)
	if text := a.get(t, "/comptes/mende/usage", "fr").Body.String(); !strings.Contains(text, "curl -H") || !strings.Contains(text, "127.0.0.1:8080/services/v1") || strings.Contains(text, `class="chart"`) {
		t.Error("an empty period has no line to copy, or a figure")
	}
	a.lines = newFakeArea(1, 1, 3).lines
	if text := a.get(t, "/comptes/mende/usage?cle=other", "fr").Body.String(); !strings.Contains(text, "Voir toutes les requêtes") || strings.Contains(text, "curl -H") {
		t.Error("a filter without lines does not lead back")
	}
	if w := a.get(t, "/comptes/mende/usage?periode=wrong", "fr"); w.Code != http.StatusNotFound {
		t.Errorf("an unknown period: %d", w.Code)
	}
	a.state = body.PeriodClosed
	if text := a.get(t, "/comptes/mende/usage", "fr").Body.String(); strings.Contains(text, "data-live=") || !strings.Contains(text, "nature=correction") {
		t.Error("a closed period is live, or does not lead to its corrections")
	}
}

// maxPage is how large a page may be.
const maxPage = 100_000

// TestTheLargestPageFitsItsBudget: 31 days, 20 keys and 8 endpoints.
func TestTheLargestPageFitsItsBudget(t *testing.T) {
	t.Parallel()
	a := newFakeArea(20, 8, 31)
	for _, query := range []string{"", "?par=endpoint", "?ordre=requetes"} {
		for _, lang := range []string{"fr", "en"} {
			if n := a.get(t, "/comptes/mende/usage"+query, lang).Body.Len(); n > maxPage {
				t.Errorf("%s in %s: %d bytes, want at most %d", query, lang, n, maxPage)
			} else {
				t.Logf("%s in %s: %d bytes", query, lang, n)
			}
		}
	}
}
