package customerarea

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"lieudit/commands"
	"lieudit/commands/areatoken"
	"lieudit/eventstore"
	"lieudit/eventstore/memory"
	"lieudit/eventstore/waitlimit"
	"lieudit/http/budget"
	"lieudit/http/clientip"
	"lieudit/http/throttle"
	"lieudit/schemas/body"
	"lieudit/schemas/event"
	"lieudit/schemas/grant"
	"lieudit/schemas/refusal"
	"lieudit/schemas/token"
)

// sessionArea is a customer area over a log in memory, with the operations of tokens and sessions alone.
type sessionArea struct {
	*Area
	tokens *areatoken.Tokens
	logged *lockedBuffer
	clock  atomic.Int64 // seconds since the start that were skipped
}

// lockedBuffer is a buffer that several goroutines write.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// loggedTokens is a ring that reads the log anew for each question.
type loggedTokens struct {
	t   *testing.T
	log *memory.Log
}

func (loggedTokens) IsFresh(time.Time) bool { return true }

func (r loggedTokens) logID() uuid.UUID {
	id, err := r.log.Identity(context.Background())
	if err != nil {
		r.t.Error(err)
	}
	return id
}

// tokenEvents yields the events of all tokens.
func (r loggedTokens) tokenEvents(yield func(event.Event) bool) {
	for s, err := range r.log.ReadAll(context.Background(), eventstore.Checkpoint{}, eventstore.Filter{areatoken.Aggregate.Category}) {
		if err != nil {
			r.t.Error(err)
			return
		}
		if s.Kind != eventstore.EventAppeared {
			continue
		}
		e, err := eventstore.DecodeSealed(s.Event)
		if err != nil {
			r.t.Error(err)
			return
		}
		if !yield(e) {
			return
		}
	}
}

func (r loggedTokens) FindToken(hash token.Hash) (found grant.TokenGrant, ok bool) {
	for e := range r.tokenEvents {
		switch e := e.(type) {
		case event.TokenIssued:
			if token.Hash(e.Hash) == hash {
				found, ok = grant.TokenGrant{TokenID: e.Token, Role: grant.Role(e.Role), Account: e.Account}, true
			}
		case event.TokenRevoked:
			ok = ok && e.Token != found.TokenID
		}
	}
	return found, ok
}

func (r loggedTokens) FindSession(hash token.Hash, now time.Time) (found grant.TokenGrant, ok bool) {
	id := ""
	for e := range r.tokenEvents {
		switch e := e.(type) {
		case event.SessionOpened:
			if token.Hash(e.Hash) == hash && now.Before(e.Expires) {
				found, ok = r.FindToken(token.Hash(e.TokenHash))
				id = e.Session
			}
		case event.SessionClosed:
			ok = ok && token.Hash(e.Hash) != hash
		}
	}
	found.Session = id
	return found, ok
}

func (r loggedTokens) FindLink(hash token.Hash, now time.Time) (found grant.TokenGrant, ok bool) {
	for e := range r.tokenEvents {
		if e, isLink := e.(event.SessionLinkIssued); isLink && token.Hash(e.Hash) == hash && now.Before(e.Expires) {
			found, ok = r.FindToken(token.Hash(e.TokenHash))
		}
	}
	return found, ok
}

// newSessionArea returns an area at a URL, whose proxies in 10.0.0.0/8 are trusted.
func newSessionArea(t *testing.T, address string) *sessionArea {
	t.Helper()
	u, err := ParseAddress(address)
	if err != nil {
		t.Fatal(err)
	}
	a := &sessionArea{logged: &lockedBuffer{}}
	now := func() time.Time { return time.Now().Add(time.Duration(a.clock.Load()) * time.Second) }
	log := memory.New(now)
	logger := slog.New(slog.NewTextHandler(a.logged, nil))
	ring := loggedTokens{t, log}
	a.tokens = areatoken.New(log, eventstore.NewCodec(nil), token.DefaultPrefixes, now)
	a.Area = New(ring, Accounts{Tokens: a.tokens, WaitTokens: func(context.Context, eventstore.Position) {}}, Usage{}, Maintenance{}, Env{
		Limiter: waitlimit.New(waitlimit.MaxRequests), Bodies: budget.New(1<<20, 1<<20), Answers: budget.New(1<<20, 1<<20), Lists: budget.New(2, 1),
		Prefixes: token.DefaultPrefixes, Now: now, Log: logger,
		Clients: clientip.NewFinder([]netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, logger), Logins: throttle.New(time.Hour, 10),
		Address: Address{URL: func() *url.URL { return u }, Log: ring.logID},
	})
	return a
}

var testMetadata = commands.Metadata{Actor: "system"}

// issue makes a token of a role.
func (a *sessionArea) issue(t *testing.T, role grant.Role) areatoken.IssuedToken {
	t.Helper()
	made, err := a.tokens.Issue(t.Context(), testMetadata, areatoken.TokenRequest{Role: role, Label: "a holder"})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func (a *sessionArea) issueLink(t *testing.T, tokenID string) string {
	t.Helper()
	made, err := a.tokens.IssueLink(t.Context(), testMetadata, tokenID, areatoken.LinkLifetime)
	if err != nil {
		t.Fatal(err)
	}
	return made.Secret
}

// send sends a request with a body and headers, as a browser at the area's own host does.
func (a *sessionArea) send(t *testing.T, target, text string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	method, path, _ := strings.Cut(target, " ")
	r := httptest.NewRequestWithContext(t.Context(), method, Base+path, strings.NewReader(text))
	r.Host, r.RemoteAddr = a.rows.Address.URL().Host, "192.0.2.7:4000"
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ": ")
		switch name {
		case "Host":
			r.Host = value
		case "Remote":
			r.RemoteAddr = value
		default:
			r.Header.Set(name, value)
		}
	}
	w := httptest.NewRecorder()
	a.ServeHTTP(w, r)
	return w
}

// enter opens a session, which must succeed, and returns its cookie as a browser sends it.
func (a *sessionArea) enter(t *testing.T, proof string, headers ...string) (cookie string) {
	t.Helper()
	w := a.send(t, "POST /sessions", `{"preuve":"`+proof+`"}`, headers...)
	all := w.Result().Cookies()
	if w.Code != http.StatusCreated || len(all) != 1 {
		t.Fatalf("a session: %d %s with %d cookies, want 201 with one", w.Code, w.Body, len(all))
	}
	return "Cookie: " + all[0].Name + "=" + all[0].Value
}

const local = "http://localhost:8081"

func TestALinkOpensOneSessionHoweverManyUseItAtOnce(t *testing.T) {
	t.Parallel()
	a := newSessionArea(t, local)
	proof := a.issueLink(t, a.issue(t, grant.RoleOperator).Token)
	var opened atomic.Int32
	var using sync.WaitGroup
	for range 8 { // the throttle allows ten failures
		using.Go(func() {
			switch w := a.send(t, "POST /sessions", `{"preuve":"`+proof+`"}`); w.Code {
			case http.StatusCreated:
				opened.Add(1)
			case http.StatusUnauthorized:
			default:
				t.Errorf("%d %s", w.Code, w.Body)
			}
		})
	}
	using.Wait()
	if got := opened.Load(); got != 1 {
		t.Errorf("%d sessions were opened, want 1", got)
	}
}

// Whoever has a link that is not valid learns nothing of why.
func TestEveryInvalidLinkHasOneAnswer(t *testing.T) {
	t.Parallel()
	for name, makeProof := range map[string]func(t *testing.T, a *sessionArea, of areatoken.IssuedToken) string{
		"used": func(t *testing.T, a *sessionArea, of areatoken.IssuedToken) string {
			link := a.issueLink(t, of.Token)
			a.enter(t, link)
			return link
		},
		"expired": func(t *testing.T, a *sessionArea, of areatoken.IssuedToken) string {
			link := a.issueLink(t, of.Token)
			a.clock.Add(int64(areatoken.LinkLifetime / time.Second))
			return link
		},
		"of a revoked token": func(t *testing.T, a *sessionArea, of areatoken.IssuedToken) string {
			link := a.issueLink(t, of.Token)
			a.revoke(t, of.Token)
			return link
		},
		"ended": func(t *testing.T, a *sessionArea, of areatoken.IssuedToken) string {
			link := a.issueLink(t, of.Token)
			a.send(t, "DELETE /sessions", "", "Authorization: Bearer "+of.Plaintext)
			return link
		},
		"unknown": func(*testing.T, *sessionArea, areatoken.IssuedToken) string {
			return token.DefaultPrefixes.New(token.Link)
		},
		"unknown token": func(*testing.T, *sessionArea, areatoken.IssuedToken) string {
			return token.DefaultPrefixes.New(token.Area)
		},
		"a session": func(t *testing.T, a *sessionArea, of areatoken.IssuedToken) string {
			return secretOf(a.enter(t, of.Plaintext))
		},
		"a key": func(*testing.T, *sessionArea, areatoken.IssuedToken) string {
			return token.DefaultPrefixes.New(token.Secret)
		},
		"not well formed": func(*testing.T, *sessionArea, areatoken.IssuedToken) string { return "ld_ln_x" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newSessionArea(t, local)
			proof := makeProof(t, a, a.issue(t, grant.RoleAuditor))
			w := a.send(t, "POST /sessions", `{"preuve":"`+proof+`"}`)
			if w.Code != http.StatusUnauthorized || !strings.Contains(w.Body.String(), `"lien_invalide"`) || w.Header().Get("Set-Cookie") != "" {
				t.Errorf("got %d %s %s, want lien_invalide and no cookie", w.Code, w.Body, w.Header())
			}
		})
	}
}

func secretOf(cookie string) string { return cookie[strings.LastIndexByte(cookie, '=')+1:] }

func (a *sessionArea) revoke(t *testing.T, tokenID string) {
	t.Helper()
	ended, _, err := a.tokens.Revoke(t.Context(), testMetadata, tokenID)
	if err != nil || ended.RevokedAt.IsZero() {
		t.Fatalf("%+v, %v", ended, err)
	}
}

// A session ends in each of these ways, and then the answer is that of a token that is not valid.
func TestASessionEnds(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(t *testing.T, a *sessionArea, of areatoken.IssuedToken, cookie string){
		"it is ended": func(t *testing.T, a *sessionArea, _ areatoken.IssuedToken, cookie string) {
			shown := a.send(t, "GET /sessions", "", cookie).Body.String()
			id := strings.Split(shown[strings.Index(shown, `"id":"`)+6:], `"`)[0]
			if w := a.send(t, "DELETE /sessions/"+id, "", cookie); w.Code != http.StatusOK {
				t.Errorf("%d %s", w.Code, w.Body)
			}
		},
		"all are ended, from another browser": func(t *testing.T, a *sessionArea, of areatoken.IssuedToken, _ string) {
			a.send(t, "DELETE /sessions", "", a.enter(t, of.Plaintext))
		},
		"its token is revoked": func(t *testing.T, a *sessionArea, of areatoken.IssuedToken, _ string) { a.revoke(t, of.Token) },
		"its time is over": func(_ *testing.T, a *sessionArea, _ areatoken.IssuedToken, _ string) {
			a.clock.Add(int64(areatoken.SessionLifetime(grant.RoleAuditor) / time.Second))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newSessionArea(t, local)
			of := a.issue(t, grant.RoleAuditor)
			cookie := a.enter(t, of.Plaintext)
			if w := a.send(t, "GET /sessions", "", cookie); w.Code != http.StatusOK {
				t.Fatalf("before: %d %s", w.Code, w.Body)
			}
			end(t, a, of, cookie)
			if w := a.send(t, "GET /sessions", "", cookie); w.Code != http.StatusUnauthorized {
				t.Errorf("after: %d %s, want 401", w.Code, w.Body)
			}
		})
	}
}

// No browser keeps the cookie at an address that is neither encrypted nor of its own machine, so nobody is led to believe that it does.
func TestSessionsAreOpenedWhereBrowsersKeepThem(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		address, host string
		want          int // of a session
		wantLink      int
	}{
		{"https://espace.example.fr", "espace.example.fr", 201, 201},
		{"https://espace.example.fr", "10.0.0.1:8081", 201, 201}, // a proxy that does not pass the host on
		{local, "localhost:8081", 201, 201},
		{local, "127.0.0.1:8081", 201, 201},
		{local, "[::1]:8081", 201, 201},
		{local, "[::1]", 201, 201},
		{local, "localhost", 201, 201},
		{local, "10.0.0.7:8081", 403, 201}, // the machine's own browser may use the link
		{local, "espace.example.fr", 403, 201},
		{"http://127.0.0.1:8081", "127.0.0.1:8081", 201, 201},
		{"http://lieudit.localhost:8081", "lieudit.localhost:8081", 201, 201},
		{"http://10.0.0.7:8081", "10.0.0.7:8081", 403, 403},
		{"http://espace.example.fr", "espace.example.fr", 403, 403},
		{"http://espace.example.fr", "localhost:8081", 403, 403},
	} {
		t.Run(c.address+" "+c.host, func(t *testing.T) {
			t.Parallel()
			a := newSessionArea(t, c.address)
			of := a.issue(t, grant.RoleOperator)
			for target, want := range map[string]int{"POST /sessions": c.want, "POST /sessions:link": c.wantLink, "POST /invitations": c.wantLink} {
				text := map[string]string{
					"POST /sessions": `{"preuve":"` + of.Plaintext + `"}`, "POST /sessions:link": `{}`, "POST /invitations": `{"role":"auditor","label":"x"}`,
				}[target]
				w := a.send(t, target, text, "Host: "+c.host, "Authorization: Bearer "+of.Plaintext)
				if w.Code != want || want == 403 && !strings.Contains(w.Body.String(), "connexion_non_chiffree") {
					t.Errorf("%s: %d %s, want %d", target, w.Code, w.Body, want)
				}
				if hasCookie := w.Header().Get("Set-Cookie") != ""; hasCookie != (target == "POST /sessions" && want == 201) {
					t.Errorf("%s: %s", target, w.Header())
				}
				if want == 201 && target != "POST /sessions" && !strings.Contains(w.Body.String(), `"lien":"`+c.address+`/entree/ld_ln_`) {
					t.Errorf("%s: %s, want a link at %s", target, w.Body, c.address)
				}
			}
		})
	}
}

func TestAnAddressIsAServersWithoutAPath(t *testing.T) {
	t.Parallel()
	for text, isGood := range map[string]bool{
		"https://espace.example.fr": true, "https://espace.example.fr/": true, "http://localhost:8081": true, "http://[::1]:8081": true,
		"": false, "espace.example.fr": false, "ftp://espace.example.fr": false, "https://": false, "https://u:p@espace.example.fr": false,
		"https://espace.example.fr/area": false, "https://espace.example.fr?x": false, "https://espace.example.fr#x": false, "http://%": false,
	} {
		if u, err := ParseAddress(text); (err == nil) != isGood {
			t.Errorf("%q: %v, %v", text, u, err)
		}
	}
}

// A cookie that was in the browser before is replaced, so nobody comes in with a secret that another one chose.
func TestEachSessionHasItsOwnCookie(t *testing.T) {
	t.Parallel()
	a := newSessionArea(t, local)
	of, other := a.issue(t, grant.RoleAuditor), newSessionArea(t, local)
	theirs := other.enter(t, other.issue(t, grant.RoleOperator).Plaintext)
	mine := a.enter(t, of.Plaintext)
	for name, before := range map[string]string{"none": "X: y", "of another session": mine, "made up": mine[:len(mine)-3] + "xyz", "of another service": theirs} {
		w := a.send(t, "POST /sessions", `{"preuve":"`+of.Plaintext+`"}`, before)
		made := w.Result().Cookies()[0]
		if now := "Cookie: " + made.Name + "=" + made.Value; now == before || a.send(t, "GET /sessions", "", now).Code != http.StatusOK {
			t.Errorf("%s: the cookie is %s", name, now)
		}
		made.Value, made.Expires, made.Raw, made.RawExpires = "", time.Time{}, "", ""
		want := &http.Cookie{Name: "__Host-lieudit-" + a.rows.Address.Log().String()[:8], Path: "/", HttpOnly: true, Secure: true, SameSite: http.SameSiteLaxMode}
		if diff := cmp.Diff(want, made); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if w := a.send(t, "GET /sessions", "", theirs); w.Code != http.StatusUnauthorized {
		t.Errorf("a session of another service: %d", w.Code)
	}
	w := httptest.NewRecorder()
	a.Leave(w)
	if c := w.Result().Cookies()[0]; c.Name != strings.TrimPrefix(mine[:strings.IndexByte(mine, '=')], "Cookie: ") || c.MaxAge >= 0 || c.Value != "" {
		t.Errorf("leaving sets %s", c)
	}
}

// A browser says where a request that changes something comes from. Without a word of it no browser has sent it.
func TestOnlyPagesOfTheAreaChangeAnythingInASession(t *testing.T) {
	t.Parallel()
	a := newSessionArea(t, local)
	of := a.issue(t, grant.RoleOperator)
	cookie := a.enter(t, of.Plaintext)
	for headers, isOwn := range map[string]bool{
		"":                             true,
		"Sec-Fetch-Site: same-origin":  true,
		"Sec-Fetch-Site: none":         true,
		"Origin: " + local:             true,
		"Sec-Fetch-Site: same-site":    false,
		"Sec-Fetch-Site: cross-site":   false,
		"Origin: http://localhost:300": false,
		"Origin: https://evil.example": false,
		"Origin: null":                 false,
	} {
		for target, text := range map[string]string{
			"POST /sessions": `{"preuve":"` + of.Plaintext + `"}`, "POST /sessions:link": "{}", "DELETE /sessions/none": "", "GET /sessions": "",
		} {
			w := a.send(t, target, text, append([]string{cookie}, strings.Split(headers, "\n")...)...)
			isRefused := strings.Contains(w.Body.String(), "page_etrangere")
			if want := !isOwn && target != "GET /sessions"; isRefused != want {
				t.Errorf("%s with %q: %d %s", target, headers, w.Code, w.Body)
			}
		}
		if w := a.send(t, "POST /sessions:link", "{}", "Authorization: Bearer "+of.Plaintext, headers); w.Code != http.StatusCreated {
			t.Errorf("a bearer with %q: %d %s, want 201: no page can send one unasked", headers, w.Code, w.Body)
		}
	}
}

func TestFailedAttemptsOfOneAddressArePaced(t *testing.T) {
	t.Parallel()
	a := newSessionArea(t, "https://espace.example.fr")
	of := a.issue(t, grant.RoleOperator)
	attempt := func(proof string, headers ...string) int {
		return a.send(t, "POST /sessions", `{"preuve":"`+proof+`"}`, headers...).Code
	}
	const proxy = "Remote: 10.0.0.1:99"
	for range 30 { // a whole office may come in
		if got := attempt(of.Plaintext, proxy, "X-Forwarded-For: 203.0.113.9"); got != http.StatusCreated {
			t.Fatalf("a valid token: %d", got)
		}
		if got := attempt(of.Plaintext, "Sec-Fetch-Site: cross-site"); got != http.StatusForbidden {
			t.Fatalf("a foreign page: %d", got)
		}
	}
	var got []int
	for range 12 {
		got = append(got, attempt("x", proxy, "X-Forwarded-For: 203.0.113.9"))
	}
	if want := append(slices.Repeat([]int{401}, 10), 429, 429); !slices.Equal(got, want) {
		t.Errorf("got %d, want %d", got, want)
	}
	if got := attempt(of.Plaintext, proxy, "X-Forwarded-For: 203.0.113.9"); got != 429 {
		t.Errorf("a valid token from there: %d, want 429", got)
	}
	for _, remote := range [][]string{{proxy, "X-Forwarded-For: 203.0.113.10"}, {"Remote: 198.51.100.1:5"}} {
		if got := attempt(of.Plaintext, remote...); got != http.StatusCreated {
			t.Errorf("from %q: %d, want 201", remote, got)
		}
	}
}

// Nobody is told that a session or a link is invalid while the log is silent, since it may have been made a moment ago.
func TestSessionsWaitForAFreshRing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		held TokenRing
		want error
	}{
		"fresh, known":   {heldTokens{grant.TokenGrant{TokenID: "1", Session: "s"}, true}, nil},
		"fresh, unknown": {heldTokens{}, refusal.KeyInvalid},
		"stopped":        {heldTokens{grant.TokenGrant{Stopped: true}, true}, refusal.Internal},
		"stale, known":   {staleTokens{heldTokens{grant.TokenGrant{TokenID: "1"}, true}}, refusal.AuthUnavailable},
		"stale, unknown": {staleTokens{heldTokens{}}, refusal.AuthUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := &url.URL{Scheme: "https", Host: "espace.example.fr"}
			h := &handler{tokens: c.held, crossOrigin: http.NewCrossOriginProtection(), Env: Env{
				Prefixes: token.DefaultPrefixes, Now: time.Now, Clients: clientip.NewFinder(nil, slog.New(slog.DiscardHandler)), Logins: throttle.New(time.Hour, 1),
				Address: Address{URL: func() *url.URL { return u }, Log: uuid.New},
			}}
			log := uuid.New()
			h.Address.Log = func() uuid.UUID { return log }
			r := httptest.NewRequest("GET", "/sessions", nil)
			r.AddCookie(h.Address.cookie(h.Prefixes.New(token.Session), time.Now().Add(time.Hour)))
			if _, err := h.authenticate(r); !errors.Is(err, c.want) {
				t.Errorf("a session: %v, want %v", err, c.want)
			}
			if errors.Is(c.want, refusal.AuthUnavailable) {
				for range 2 { // the throttle has room for one
					if _, err := h.enter(httptest.NewRecorder(), r, h.Prefixes.New(token.Link)); !errors.Is(err, refusal.AuthUnavailable) {
						t.Errorf("a link: %v, want %v", err, refusal.AuthUnavailable)
					}
				}
			}
		})
	}
}

// staleTokens is a ring that does not follow its log.
type staleTokens struct{ heldTokens }

func (staleTokens) IsFresh(time.Time) bool { return false }

// The log of a program is read by many. Whatever happens, it holds nothing that opens the customer area.
func TestNoLogLineHoldsASecret(t *testing.T) {
	t.Parallel()
	a := newSessionArea(t, local)
	of := a.issue(t, grant.RoleOperator)
	link := a.issueLink(t, of.Token)
	cookie := a.enter(t, a.issueLink(t, of.Token))
	secrets := []string{of.Plaintext, link, secretOf(cookie)}
	for _, target := range []string{"POST /sessions", "GET /accounts", "GET /tokens", "POST /tokens", "GET /" + link, "POST /sessions/" + link, "DELETE /sessions/" + link} {
		for _, secret := range secrets { // GET /accounts panics: there are no read models
			a.send(t, target, `{"preuve":"`+secret+`","label":"`+secret+`","role":"`+secret+`"}`, cookie, "Referer: "+local+"/entree/"+link)
			a.send(t, target, secret, "Authorization: Bearer "+secret)
		}
	}
	for _, secret := range secrets {
		a.rows.Log.Error("it failed at /entree/"+secret, "path", "/entree/"+secret, "reason", errors.New(secret))
	}
	text := a.logged.String()
	if !strings.Contains(text, "it failed") || !strings.Contains(text, "panic") {
		t.Fatalf("nothing was logged: %s", text)
	}
	for _, secret := range secrets {
		if strings.Contains(text, secret) {
			t.Errorf("the log holds %s", secret)
		}
	}
}

// Pages ask with Do for what clients ask with a token: the same answers, the same refusals.
func TestDoAnswersAsARequestWithATokenDoes(t *testing.T) {
	t.Parallel()
	a := newSessionArea(t, local)
	of := a.issue(t, grant.RoleOperator)
	w := a.send(t, "POST /sessions", `{"preuve":"`+of.Plaintext+`"}`)
	r := httptest.NewRequest("GET", "/", nil)
	r.AddCookie(w.Result().Cookies()[0])
	p, err := a.Authenticate(r)
	if err != nil || p.TokenID != of.Token || p.Session == "" {
		t.Fatalf("%+v, %v", p, err)
	}
	var shown body.Sessions
	if err := a.Do(t.Context(), p, "GET", "/sessions", nil, &shown); err != nil || len(shown.Results) != 1 || !shown.Results[0].IsCurrent {
		t.Errorf("%+v, %v; want the session itself", shown, err)
	}
	var link body.SessionLink
	if err := a.Do(t.Context(), p, "POST", "/invitations", body.Invite{Role: grant.RoleAuditor, Label: "audit"}, &link); err != nil || link.Role != grant.RoleAuditor {
		t.Errorf("%+v, %v", link, err)
	}
	for target, want := range map[string]refusal.Code{"GET /none": refusal.NotFound, "DELETE /sessions/none": refusal.NotFound} {
		method, path, _ := strings.Cut(target, " ")
		if err := a.Do(t.Context(), p, method, path, nil, nil); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", target, err, want)
		}
	}
	if err := a.Do(t.Context(), p, "POST", "/invitations", body.Invite{Role: "guest", Label: "x"}, nil); err == nil {
		t.Error("an invitation with no such role is made")
	}
}

// May says for each operation and role what a request finds.
func TestMayIsWhatARequestFinds(t *testing.T) {
	t.Parallel()
	a := newSessionArea(t, local)
	for _, role := range allRoles {
		p := Principal{TokenID: "t", Role: role}
		for _, rt := range a.rows.routes() {
			path := rt.path
			for _, name := range []string{"{id:[a-z0-9-]+}", "{key:[a-z0-9-]+}", "{token:[a-z0-9-]+}", "{session:[a-z0-9-]+}", "{name:[a-z0-9-]+}"} {
				path = strings.ReplaceAll(path, name, "x")
			}
			if got, want := a.May(t.Context(), p, rt.method, path), slices.Contains(rt.roles, role); got != want {
				t.Errorf("%s %s as %s: %t, want %t", rt.method, path, role, got, want)
			}
		}
	}
	customer := Principal{TokenID: "t", Role: grant.RoleCustomer, Account: "mende"}
	for path, want := range map[string]bool{"/accounts/mende": true, "/accounts/mende/keys": true, "/accounts/other": false, "/accounts/other/keys": false, "/none": false, "": false} {
		if got := a.May(t.Context(), customer, "GET", path); got != want {
			t.Errorf("a customer, GET %s: %t, want %t", path, got, want)
		}
	}
}
