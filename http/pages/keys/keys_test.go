package keys

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"lieudit/http/customerarea"
	"lieudit/http/pages/page"
	"lieudit/schemas/body"
	"lieudit/schemas/grant"
	"lieudit/schemas/plan"
	"lieudit/schemas/refusal"
	"lieudit/schemas/token"
)

var now = time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)

const day = 24 * time.Hour

// fakeArea is a customer area that answers what the test says.
type fakeArea struct {
	role    grant.Role
	account body.Account
	keys    []body.Key
	usage   map[string]body.Usage // by the parameter period
	asked   []string
	sent    any          // in the last request that changes something
	site    http.Handler // of the area, once a page is asked for
}

func (a *fakeArea) Do(_ context.Context, _ customerarea.Principal, method, target string, in, out any) error {
	a.asked = append(a.asked, method+" "+target)
	u, err := url.Parse(target)
	if err != nil {
		return err
	}
	answer, err := a.answer(method, u, in)
	if err != nil || out == nil {
		return err
	}
	text, err := json.Marshal(answer)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, out)
}

func (a *fakeArea) answer(method string, u *url.URL, in any) (any, error) {
	_, id, isKey := strings.Cut(u.Path, "/keys/")
	switch {
	case method == http.MethodPost && strings.HasSuffix(u.Path, "/origins:check"):
		results := []body.OriginVerdict{}
		for _, o := range in.(body.CheckOrigins).Origins {
			results = append(results, body.OriginVerdict{Typed: o, Fault: "schema", Message: "L'origine « " + o + " » est refusée."})
		}
		return body.OriginVerdicts{Results: results}, nil
	case method == http.MethodPost && strings.HasSuffix(u.Path, "/origins:test"):
		return body.OriginTest{Origin: in.(body.TestOrigin).Origin, Refusal: &body.OriginRefusal{Code: string(refusal.OriginNotAllowed), Message: "Non."}}, nil
	case method != http.MethodGet:
		a.sent = in
		return body.Key{ID: "new", Kind: token.Secret, Label: a.keys[0].Label, Hint: "ld_sk_…new1", Token: "ld_sk_new"}, nil
	case isKey:
		for _, k := range a.keys {
			if k.ID == id {
				return k, nil
			}
		}
		return nil, refusal.NotFound
	case strings.HasSuffix(u.Path, "/keys"):
		return body.Keys{Results: a.keys}, nil
	case strings.HasSuffix(u.Path, "/usage"):
		return a.usage[u.Query().Get("period")], nil
	}
	return a.account, nil
}

func (a *fakeArea) Send(http.ResponseWriter, *http.Request, customerarea.Principal, string) error {
	return refusal.NotFound
}

func (a *fakeArea) May(_ context.Context, p customerarea.Principal, method, target string) bool {
	return p.Role == grant.RoleCustomer || method == http.MethodGet && strings.Contains(target, "/keys")
}

func (a *fakeArea) Authenticate(*http.Request) (customerarea.Principal, error) {
	return customerarea.Principal{TokenID: "t", Session: "s", Role: a.role, Account: a.account.ID}, nil
}

func (a *fakeArea) Enter(http.ResponseWriter, *http.Request, string) (body.Session, error) {
	return body.Session{}, refusal.LinkInvalid
}

func (a *fakeArea) Leave(http.ResponseWriter) {}

// ask opens a page, or sends its form.
func (a *fakeArea) ask(t *testing.T, lang, target string, form url.Values) *httptest.ResponseRecorder {
	t.Helper()
	if a.site == nil {
		a.site = newSite(a)
	}
	method := http.MethodGet
	if form != nil {
		method = http.MethodPost
	}
	r := httptest.NewRequest(method, "http://localhost:8081"+target, strings.NewReader(form.Encode()))
	r.Header.Set("Accept-Language", lang)
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	w := httptest.NewRecorder()
	a.site.ServeHTTP(w, r)
	return w
}

func newSite(a *fakeArea) http.Handler {
	address := func() *url.URL { return &url.URL{Scheme: "http", Host: "localhost:8081"} }
	return page.New(a, page.Env{
		URL: address, API: address, Now: func() time.Time { return now }, Log: slog.New(slog.DiscardHandler), Version: "test",
		IsStopping: func() bool { return false }, IsInvented: func() bool { return false },
	}, Section())
}

// hostileTexts are what people may type by mistake or on purpose.
var hostileTexts = []string{
	`"><script>alert(1)</script>`, `'); alert(1) //`, "{{.}} ${x} `y`", "\u202eevil\u202c", strings.Repeat("x", 200), "<b>é</b> & ' \"", "\x00\ufffd",
}

// newHostileArea has keys in every state with one text wherever a text may be typed.
func newHostileArea(text string) *fakeArea {
	publishable := body.Key{ID: "page", Kind: token.Publishable, Label: text, Hint: "ld_pk_…abcd", Token: "ld_pk_abcd", Origins: []string{"https://*.gouv.fr"},
		Created: now.Add(-90 * day), LastUsed: now.Add(-60 * day), Warnings: []string{text}}
	first := plan.Date{Year: 2026, Month: 10, Day: 15}
	return &fakeArea{
		usage: map[string]body.Usage{"": {Period: first, Interval: body.Interval{Start: first.Start()}}},
		role:  grant.RoleCustomer, account: body.Account{ID: "mende", Name: text, Plan: plan.Growth, Anchor: plan.Date{Year: 2026, Month: 1, Day: 15}},
		keys: []body.Key{
			{ID: "old", Kind: token.Secret, Label: text, Hint: "ld_sk_…aaaa", Created: now.Add(-90 * day), LastUsed: now.Add(-time.Minute), ReplacedBy: "next"},
			{ID: "next", Kind: token.Secret, Label: text, Hint: "ld_sk_…bbbb", Created: now, Replaces: "old"},
			{ID: "idle", Kind: token.Secret, Label: text, Hint: "ld_sk_…cccc", Created: now.Add(-90 * day)},
			{ID: "ended", Kind: token.Secret, Label: text, Hint: "ld_sk_…dddd", Created: now.Add(-90 * day), Revoked: now, Reason: text},
			publishable,
			{ID: "new", Kind: token.Secret, Label: text, Hint: "ld_sk_…new1", Created: now},
		},
	}
}

func TestNoTextLeavesItsPlace(t *testing.T) {
	t.Parallel()
	for _, text := range hostileTexts {
		area := newHostileArea(text)
		for _, lang := range []string{"fr", "en"} {
			for target, form := range map[string]url.Values{
				"/comptes/mende/cles":                                                   nil,
				"/comptes/mende/cles?etat=" + url.QueryEscape(text):                     nil,
				"/comptes/mende/cles/nouvelle?genre=" + url.QueryEscape(text):           nil,
				"/comptes/mende/cles/nouvelle":                                          {"kind": {"secret"}, "label": {text}, "origins": {text}},
				"/comptes/mende/cles/old":                                               nil,
				"/comptes/mende/cles/page":                                              nil,
				"/comptes/mende/cles/ended":                                             nil,
				"/comptes/mende/cles/old/revocation":                                    nil,
				"/comptes/mende/cles/idle/revocation":                                   {"id": {text}, "reason": {text}},
				"/comptes/mende/cles/old/rotation":                                      nil,
				"/comptes/mende/cles/idle/rotation":                                     nil,
				"/comptes/mende/cles/page/rotation":                                     nil,
				"/comptes/mende/cles/page/origines?page=" + url.QueryEscape(text):       nil,
				"/comptes/mende/cles/page/origines/essai?page=" + url.QueryEscape(text): nil,
				"/comptes/mende/cles/verdict?origins=" + url.QueryEscape(text):          nil,
			} {
				w := area.ask(t, lang, target, form)
				got := w.Body.String()
				if w.Code >= 500 || w.Code == 404 {
					t.Errorf("%s in %s: %d", target, lang, w.Code)
				}
				for _, bad := range []string{"<script>alert", "<b>é</b>", "\x00"} {
					if strings.Contains(got, bad) {
						t.Errorf("%s in %s: the page holds %q", target, lang, bad)
					}
				}
			}
		}
	}
}

// A role that may only read gets no form and no button, and sees no usage that is closed to it.
func TestReadersGetNoButtons(t *testing.T) {
	t.Parallel()
	a := newHostileArea("x")
	a.role = grant.RoleAuditor
	for _, target := range []string{"/comptes/mende/cles", "/comptes/mende/cles/old", "/comptes/mende/cles/page"} {
		w := a.ask(t, "en", target, nil)
		for _, bad := range []string{"/nouvelle", "/revocation", `/rotation" class="button`, "<form method=\"post\" action=\"/comptes", `class="spark"`} {
			if w.Code != 200 || strings.Contains(w.Body.String(), bad) {
				t.Errorf("%s: %d, the page holds %q", target, w.Code, bad)
			}
		}
	}
	for _, target := range []string{"/comptes/mende/cles/nouvelle", "/comptes/mende/cles/old/revocation"} {
		if w := a.ask(t, "en", target, nil); w.Code != 404 {
			t.Errorf("%s: %d, want 404", target, w.Code)
		}
	}
}

func TestASecretKeyIsSentWithoutTheOriginsOfTheField(t *testing.T) {
	t.Parallel()
	a := newHostileArea("x")
	a.ask(t, "en", "/comptes/mende/cles/nouvelle", url.Values{"kind": {"secret"}, "label": {"x"}, "origins": {"https://a.fr"}})
	if in, ok := a.sent.(body.IssueKey); !ok || in.Origins != nil || in.Kind != token.Secret {
		t.Errorf("sent %+v", a.sent)
	}
	a.ask(t, "en", "/comptes/mende/cles/nouvelle", url.Values{"kind": {"publishable"}, "label": {"x"}, "origins": {" https://a.fr \r\n\r\nhttps://b.fr"}})
	if in, ok := a.sent.(body.IssueKey); !ok || len(in.Origins) != 2 || in.Origins[1] != "https://b.fr" {
		t.Errorf("sent %+v", a.sent)
	}
}

func TestTheListIsFilteredCountedAndPaged(t *testing.T) {
	t.Parallel()
	a := newHostileArea("x")
	for i := range 60 {
		a.keys = append(a.keys, body.Key{ID: fmt.Sprint("k", i), Kind: token.Secret, Label: fmt.Sprint("label ", i), Created: now.Add(-time.Duration(i) * time.Minute), LastUsed: now})
	}
	for target, want := range map[string]struct {
		rows          int
		before, after bool
	}{
		"":                        {25, false, true},
		"?debut=25":               {25, true, true},
		"?debut=50":               {16, true, false},
		"?debut=-5":               {25, false, true},
		"?debut=1000":             {0, true, false},
		"?etat=revoquees":         {1, false, false},
		"?etat=inactives":         {2, false, false},
		"?etat=actives&debut=50":  {15, true, false},
		"?etat=autre&debut=texte": {25, false, true},
	} {
		text := a.ask(t, "en", "/comptes/mende/cles"+target, nil).Body.String()
		rows := strings.Count(text, `data-label="Created"`)
		if rows != want.rows || strings.Contains(text, "Previous page") != want.before || strings.Contains(text, "Next page") != want.after {
			t.Errorf("%q: %d rows, want %+v", target, rows, want)
		}
		for _, tab := range []string{`All <span class="num">66`, `Valid <span class="num">65`, `Idle <span class="num">2`, `Revoked <span class="num">1`} {
			if !strings.Contains(text, tab) {
				t.Errorf("%q: the page lacks %s", target, tab)
			}
		}
	}
}

func TestALineTakesBothPeriods(t *testing.T) {
	t.Parallel()
	date := func(month time.Month, day int) plan.Date { return plan.Date{Year: 2026, Month: month, Day: day} }
	line := func(d plan.Date, n int64) body.UsageLine { return body.UsageLine{Key: "old", Day: d, Requests: n} }
	a := newHostileArea("x")
	a.usage = map[string]body.Usage{
		"":        {Period: date(11, 15), Interval: body.Interval{Start: date(11, 15).Start()}, Lines: []body.UsageLine{line(date(11, 27), 5), line(date(11, 15), 7)}},
		"2026-10": {Period: date(10, 15), Lines: []body.UsageLine{line(date(11, 14), 11), line(date(10, 29), 13), line(date(10, 28), 1000)}},
	}
	if text := a.ask(t, "en", "/comptes/mende/cles/old", nil).Body.String(); !strings.Contains(text, "36 requests in 30 days.") {
		t.Errorf("the page does not count 36 requests: %v", a.asked)
	}
	// A period that has run for longer than the line needs no other.
	a.usage[""] = body.Usage{Period: date(10, 28), Interval: body.Interval{Start: date(10, 28).Start()}, Lines: []body.UsageLine{line(date(11, 27), 5)}}
	a.asked = nil
	if text := a.ask(t, "en", "/comptes/mende/cles/old", nil).Body.String(); !strings.Contains(text, "5 requests in 30 days.") || strings.Contains(strings.Join(a.asked, " "), "period=") {
		t.Errorf("asked %v", a.asked)
	}
}

func TestDaysAndMonthsAreThoseOfTheCalendar(t *testing.T) {
	t.Parallel()
	days := lastDays(time.Date(2026, 11, 1, 0, 30, 0, 0, plan.Paris)) // an hour is gone since the first of them
	if len(days) != lineDays || days[0] != (plan.Date{Year: 2026, Month: 10, Day: 3}) || days[29] != (plan.Date{Year: 2026, Month: 11, Day: 1}) {
		t.Errorf("got %v", days)
	}
	for i := 1; i < len(days); i++ {
		if !days[i].Start().After(days[i-1].Start()) {
			t.Errorf("%v follows on %v", days[i], days[i-1])
		}
	}
	for first, want := range map[plan.Date]string{{Year: 2026, Month: 11, Day: 27}: "2026-10", {Year: 2026, Month: 1, Day: 31}: "2025-12", {Year: 2026, Month: 3, Day: 31}: "2026-02"} {
		if got := previousMonth(first); got != want {
			t.Errorf("before %v: %s, want %s", first, got, want)
		}
	}
}

func TestAKeyThatNobodyUsesIsIdle(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		key             body.Key
		neverUsed, idle bool
	}{
		"new":       {body.Key{Created: now.Add(-30 * day)}, false, false},
		"never":     {body.Key{Created: now.Add(-30*day - time.Second)}, true, false},
		"in use":    {body.Key{Created: now.Add(-90 * day), LastUsed: now.Add(-30 * day)}, false, false},
		"idle":      {body.Key{Created: now.Add(-90 * day), LastUsed: now.Add(-30*day - time.Second)}, false, true},
		"revoked":   {body.Key{Created: now.Add(-90 * day), Revoked: now}, false, false},
		"a clock":   {body.Key{Created: now.Add(time.Hour), LastUsed: now.Add(time.Hour)}, false, false},
		"ended old": {body.Key{Created: now.Add(-90 * day), LastUsed: now.Add(-60 * day), Revoked: now}, false, false},
	} {
		if got := newShownKey(c.key, now); got.NeverUsed != c.neverUsed || got.Idle != c.idle {
			t.Errorf("%s: never used %v, idle %v", name, got.NeverUsed, got.Idle)
		}
	}
}

func TestARotationTellsWhetherTheOldKeyIsSilent(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		last        time.Time
		quiet, busy bool
	}{
		"never used":         {time.Time{}, true, false},
		"a moment ago":       {now, false, true},
		"by a clock ahead":   {now.Add(time.Minute), false, true},
		"an hour ago":        {now.Add(-time.Hour), false, false},
		"yesterday at lunch": {now.Add(-day), true, false},
	} {
		r := rotationPage{Old: newShownKey(body.Key{LastUsed: c.last}, now), Now: now}
		if r.IsQuiet() != c.quiet || r.IsBusy() != c.busy {
			t.Errorf("%s: quiet %v, busy %v", name, r.IsQuiet(), r.IsBusy())
		}
	}
}

func TestOpenRotationsAreTheValidPairs(t *testing.T) {
	t.Parallel()
	revoked := now
	shown := func(id, replaces string, ended time.Time) shownKey {
		return newShownKey(body.Key{ID: id, Replaces: replaces, Revoked: ended}, now)
	}
	got := findRotations([]shownKey{
		shown("a", "", time.Time{}), shown("b", "a", time.Time{}), // under way
		shown("c", "", revoked), shown("d", "c", time.Time{}), // done
		shown("e", "", time.Time{}), shown("f", "e", revoked), // given up
		shown("g", "gone", time.Time{}),
	})
	if len(got) != 1 || got[0].Old.ID != "a" || got[0].New.ID != "b" {
		t.Errorf("got %+v", got)
	}
}

// The budget of a page is that of issue 44: 100 kB of HTML.
func TestAFullPageOfTheListFitsItsBudget(t *testing.T) {
	t.Parallel()
	a := newHostileArea("x")
	a.keys = nil
	var lines []body.UsageLine
	for i := range 2 * rowsPerPage {
		k := body.Key{ID: fmt.Sprintf("0198a3f2-7c1e-7b60-8a55-2f6f3f1f9a%02d", i), Kind: token.Secret, Label: strings.Repeat("é", 200), Hint: "ld_sk_…abcd", Created: now, LastUsed: now}
		if i < 20 { // as many as any plan has
			k.Kind, k.Token = token.Publishable, strings.Repeat("x", 44)
			for range 10 {
				k.Origins = append(k.Origins, "https://www.une-commune-de-la-montagne-noire.fr")
			}
		}
		a.keys = append(a.keys, k)
		for n, d := range lastDays(now) {
			lines = append(lines, body.UsageLine{Key: k.ID, Day: d, Requests: int64(n + 1)})
		}
	}
	a.usage[""] = body.Usage{Period: plan.DateOf(now.Add(-40 * day)), Interval: body.Interval{Start: now.Add(-40 * day)}, Lines: lines}
	if n := a.ask(t, "fr", "/comptes/mende/cles", nil).Body.Len(); n > 100<<10 {
		t.Errorf("%d bytes", n)
	}
}
