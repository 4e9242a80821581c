package tryit_test

import (
	"html"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"lieudit/http/pages/docs/reference"
	"lieudit/http/pages/page/pagetest"
	"lieudit/http/pages/tryit"
	"lieudit/schemas/grant"
)

const secret = "ld_sk_9fQ2xK7mT4bW8cZ1nR5vY3hL6pD0sJ2gA9eU4q"

// fakeAPI keeps the request that came, and answers it.
type fakeAPI struct {
	got    *http.Request
	body   string
	answer func(http.ResponseWriter)
}

func (f *fakeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(r.Body)
	if err != nil {
		panic(err)
	}
	f.got, f.body = r, string(text)
	if f.answer != nil {
		f.answer(w)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	io.WriteString(w, `{"status":"OK","label":"`+"<b>Mende</b>"+`"}`)
}

func send(t *testing.T, f *fakeAPI, form url.Values, status int) string {
	t.Helper()
	return pagetest.New(grant.RoleCustomer).Post(t, tryit.Section(f), "/api/essai", "fr", form, status)
}

func TestEachOperationHasAForm(t *testing.T) {
	t.Parallel()
	a, s := pagetest.New(grant.RoleCustomer), tryit.Section(&fakeAPI{})
	for _, op := range reference.API().All() {
		for _, m := range op.Methods {
			target := "/api/essai?operation=" + op.Slug + "&methode=" + m.Method
			a.ExpectSafe(t, s, target, "")
			text, isFile := a.Get(t, s, target, "fr", 200), m.Form != nil
			if has := strings.Contains(text, `name="operation" value="`+op.Slug+`"`); has == isFile {
				t.Errorf("%s: a form %v, a file %v", target, has, isFile)
			}
		}
	}
	for _, target := range []string{"/api/essai?operation=rien&methode=BREW", "/api/essai?operation=get_accounts"} {
		a.ExpectSafe(t, s, target, "")
	}
}

func TestARequestReachesTheAPIAsItWasFilledIn(t *testing.T) {
	t.Parallel()
	f := &fakeAPI{}
	send(t, f, url.Values{
		"operation": {"get_locations_search"}, "methode": {"GET"}, "cle": {" " + secret + " "}, "origine": {"https://www.mende.fr"},
		"query.q": {"pain & bio"}, "query.tags": {"bio\r\n\r\nvin"}, "query.limit": {""}, "query.inconnu": {"x"},
	}, 200)
	if want := "/services/v1/locations/search?q=pain+%26+bio&tags=bio&tags=vin"; f.got.URL.String() != want {
		t.Errorf("asked for %s, want %s", f.got.URL, want)
	}
	for name, want := range map[string]string{"Authorization": "Bearer " + secret, "Origin": "https://www.mende.fr", "Cookie": "", "Content-Type": ""} {
		if got := f.got.Header.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	send(t, f, url.Values{
		"operation": {"post_locations_referentiels_code_sites_sync"}, "methode": {"POST"}, "cle": {secret}, "chemin.code": {"mes/lieux:sync"},
		"entete.Idempotency-Key": {"k1\r\nX-Other: 1"}, "corps": {`{"sites": []}`},
	}, 200)
	if got := f.got.URL.EscapedPath(); got != "/services/v1/locations/referentiels/mes%2Flieux%3Async/sites:sync" || f.got.Method != "POST" {
		t.Errorf("asked for %s %s", f.got.Method, got)
	}
	if f.body != `{"sites": []}` || f.got.Header.Get("Content-Type") != "application/json" || f.got.Header.Get("Idempotency-Key") != "k1X-Other: 1" || f.got.Header.Get("X-Other") != "" {
		t.Errorf("sent %q with %v", f.body, f.got.Header)
	}
}

func TestTheKeyIsNotSentBack(t *testing.T) {
	t.Parallel()
	for _, form := range []url.Values{
		{"operation": {"get_me"}}, {"operation": {"get_address_view_id"}, "chemin.id": {""}}, {"operation": {"get_address_verify"}, "query.q": {"mende"}},
	} {
		form.Set("cle", secret)
		status := 200
		if form.Has("chemin.id") {
			status = 422
		}
		if text := send(t, &fakeAPI{}, form, status); strings.Contains(text, secret) {
			t.Errorf("%v: the page has the key", form)
		}
	}
}

func TestTheAnswerIsShownAsText(t *testing.T) {
	t.Parallel()
	text := send(t, &fakeAPI{}, url.Values{"operation": {"get_me"}, "cle": {secret}}, 200)
	if !strings.Contains(text, "200 OK") || !strings.Contains(text, "&lt;b&gt;Mende&lt;/b&gt;") || strings.Contains(text, "<b>Mende") {
		t.Errorf("the page is %s", text)
	}
	for _, hostile := range pagetest.HostileTexts {
		text = send(t, &fakeAPI{}, url.Values{"operation": {"post_address_verify"}, "methode": {"POST"}, "cle": {secret}, "corps": {hostile}, "query.q": {hostile}, "origine": {hostile}}, 200)
		if strings.ContainsAny(hostile, `<>"`) && html.EscapeString(hostile) != hostile && strings.Contains(text, hostile) {
			t.Errorf("the page has %q as markup", hostile)
		}
	}
}

func TestALongAnswerIsCut(t *testing.T) {
	t.Parallel()
	f := &fakeAPI{answer: func(w http.ResponseWriter) {
		for range 100 {
			io.WriteString(w, strings.Repeat("x", 10_000))
		}
	}}
	text := send(t, f, url.Values{"operation": {"get_me"}, "cle": {secret}}, 200)
	if len(text) > 100_000 || !strings.Contains(text, "en voici le début") {
		t.Errorf("the page has %d bytes", len(text))
	}
}

func TestErrorsOfTheAPIAreShownWithTheirStatus(t *testing.T) {
	t.Parallel()
	for _, status := range []int{401, 403, 422, 429, 500, 503} {
		text := send(t, &fakeAPI{answer: func(w http.ResponseWriter) { w.WriteHeader(status) }}, url.Values{"operation": {"get_me"}, "cle": {secret}}, 200)
		isCounted := !strings.Contains(text, "pas comptée")
		if !strings.Contains(text, http.StatusText(status)) || isCounted != (status == 422) {
			t.Errorf("%d: counted %v\n%s", status, isCounted, text)
		}
	}
}

func TestAFormThatLacksSomethingIsNotSent(t *testing.T) {
	t.Parallel()
	for _, form := range []url.Values{{"operation": {"get_me"}}, {"operation": {"get_me"}, "cle": {"ld sk"}}, {"operation": {"get_address_view_id"}, "cle": {secret}}} {
		f := &fakeAPI{}
		if text := send(t, f, form, 422); f.got != nil || !strings.Contains(text, `class="field invalid"`) {
			t.Errorf("%v: sent %v", form, f.got)
		}
	}
	f := &fakeAPI{}
	if send(t, f, url.Values{"operation": {"get_version"}}, 200); f.got == nil || f.got.Header.Get("Authorization") != "" {
		t.Errorf("without a key the version was not asked for: %v", f.got)
	}
}

func TestASessionIsPaced(t *testing.T) {
	t.Parallel()
	a, s := pagetest.New(grant.RoleCustomer), tryit.Section(&fakeAPI{})
	form := url.Values{"operation": {"get_version"}, "query.x": {"1"}}
	refused := 0
	for range 30 {
		w := a.Ask(t, s, "/api/essai", "fr", form)
		if w.Code == http.StatusTooManyRequests {
			refused++
		}
	}
	if refused < 15 {
		t.Errorf("%d of 30 requests at once were refused, want about 20", refused)
	}
}
