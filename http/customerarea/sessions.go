package customerarea

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"

	"lieudit/commands"
	"lieudit/commands/areatoken"
	"lieudit/http/kit"
	"lieudit/http/problem"
	"lieudit/schemas/body"
	"lieudit/schemas/grant"
	"lieudit/schemas/refusal"
	"lieudit/schemas/token"
)

// A session lets a browser use the customer area without a token. It is opened with POST /sessions, which needs no token: the body
// holds a link, or a token that was pasted. Its secret is the value of a cookie, and a request with the cookie may do what one with
// the token may. A request that changes something must come from a page of the area itself (http.CrossOriginProtection).

// Address is where people reach the customer area. It alone decides links, the name of the cookie and whether the cookie is Secure:
// the Host header of a request and what a proxy adds to it are chosen by others.
type Address struct {
	URL func() *url.URL  // without a path
	Log func() uuid.UUID // names the cookie, so that two services on one host do not overwrite each other's
}

// ParseAddress reads the URL of the customer area as it is configured.
func ParseAddress(text string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimRight(text, "/"))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.Path != "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return nil, fmt.Errorf("%q is not of the form https://HOST or http://HOST:PORT", text)
	}
	return u, nil
}

// KeepsCookies reports whether browsers keep a Secure cookie of this address: with https, and of their own machine.
func (a Address) KeepsCookies() bool {
	u := a.URL()
	return u.Scheme == "https" || isLoopback(u.Hostname())
}

// keepsCookiesOf reports whether a browser keeps a cookie of an answer to a request with this Host header. A page of this machine may
// be asked for by another machine, at an IP address, and then it does not.
func (a Address) keepsCookiesOf(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = strings.Trim(host, "[]")
	}
	return a.KeepsCookies() && (a.URL().Scheme == "https" || isLoopback(name))
}

// isLoopback reports whether a host is the machine of whoever names it.
func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || err == nil && ip.IsLoopback()
}

// cookieName names the cookie of a session. Browsers take a __Host- cookie only if it is Secure and of this very host.
func (a Address) cookieName() string { return "__Host-lieudit-" + a.Log().String()[:8] }

// cookie is the cookie of a session; an empty secret deletes it.
func (a Address) cookie(secret string, expires time.Time) *http.Cookie {
	c := &http.Cookie{Name: a.cookieName(), Value: secret, Path: "/", Expires: expires, HttpOnly: true, Secure: true, SameSite: http.SameSiteLaxMode}
	if secret == "" {
		c.MaxAge = -1
	}
	return c
}

// LinkURL is the page on which a link is used.
func (a Address) LinkURL(secret string) string { return a.URL().JoinPath("entree", secret).String() }

// authenticateSession returns what the cookie of a request gives. A request that changes something, and comes from another site's
// page, is refused.
func (h *handler) authenticateSession(r *http.Request) (grant.TokenGrant, error) {
	c, err := r.Cookie(h.Address.cookieName())
	if err != nil {
		return grant.TokenGrant{}, refusal.KeyRequired
	}
	if kind, ok := h.Prefixes.KindOf(c.Value); !ok || kind != token.Session {
		return grant.TokenGrant{}, refusal.KeyInvalid
	}
	if err := h.crossOrigin.Check(r); err != nil {
		return grant.TokenGrant{}, refusal.ForeignPage
	}
	return h.authenticateHash(r.Context(), token.HashOf(c.Value), func(hash token.Hash) (grant.TokenGrant, bool) {
		return h.tokens.FindSession(hash, h.Now())
	})
}

// sessionsPath is the one that needs no token, for POST.
const sessionsPath = Base + "/sessions"

var openSessionDecoder = kit.NewDecoder[body.OpenSession]()

// refuseSession stands in the table for openSession, which ServeHTTP calls.
func (h *handler) refuseSession(context.Context, call, body.OpenSession) (kit.Response, error) {
	return kit.Response{}, refusal.NotFound
}

// openSession answers POST /sessions. The body is read as it is: a token in it is a proof and not a slip of the pen. The attempts of one
// address are paced, and a failed one writes nothing.
func (h *handler) openSession(w http.ResponseWriter, r *http.Request) (kit.Response, error) {
	r.Body = http.MaxBytesReader(w, r.Body, maxProofBytes)
	in, err := openSessionDecoder.DecodeBody(r)
	if err != nil {
		return kit.Response{}, err
	}
	made, err := h.enter(w, r, in.Proof)
	if err != nil {
		return kit.Response{}, err
	}
	return kit.Created(h.toSession(made))
}

// maxProofBytes is the most that the body of a request to open a session may have.
const maxProofBytes = 4 << 10

// enter opens a session and sets its cookie, which replaces one that the browser has. The failed attempts of one address are paced.
func (h *handler) enter(w http.ResponseWriter, r *http.Request, proof string) (areatoken.OpenedSession, error) {
	if err := h.crossOrigin.Check(r); err != nil {
		return areatoken.OpenedSession{}, refusal.ForeignPage
	}
	if !h.Address.keepsCookiesOf(r.Host) {
		return areatoken.OpenedSession{}, refusal.LoginUnencrypted
	}
	client := h.Clients.FindClient(r)
	if !h.Logins.Allow(client, "", time.Now()) {
		return areatoken.OpenedSession{}, refusal.TooManyLogins
	}
	made, err := h.createSession(r.Context(), proof)
	if !errors.Is(err, refusal.LinkInvalid) { // many people may come in from one address, and an outage is not their fault
		h.Logins.GiveBack(client, "")
	}
	if err == nil {
		http.SetCookie(w, h.Address.cookie(made.Secret, made.Expires))
	}
	return made, err
}

// createSession opens a session with a link or a token, and returns once the key ring knows it.
func (h *handler) createSession(ctx context.Context, proof string) (areatoken.OpenedSession, error) {
	find := h.tokens.FindToken
	proof = strings.TrimSpace(proof[strings.LastIndexByte(proof, '/')+1:]) // people paste the whole link
	switch kind, ok := h.Prefixes.KindOf(proof); {
	case ok && kind == token.Link:
		find = func(hash token.Hash) (grant.TokenGrant, bool) { return h.tokens.FindLink(hash, h.Now()) }
	case !ok || kind != token.Area:
		return areatoken.OpenedSession{}, refusal.LinkInvalid
	}
	found, err := h.authenticateHash(ctx, token.HashOf(proof), find)
	if errors.Is(err, refusal.KeyInvalid) {
		err = refusal.LinkInvalid
	}
	if err != nil {
		return areatoken.OpenedSession{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	made, err := h.accounts.Tokens.OpenSession(ctx, commands.Metadata{Actor: "token:" + found.TokenID}, found.TokenID, proof)
	return made, kit.Await(ctx, h.accounts.WaitTokens, made.Position, err)
}

// listSessions lists the sessions of one's own token.
func (h *handler) listSessions(ctx context.Context, c call, _ body.Empty) (kit.Response, error) {
	all, err := h.accounts.Tokens.Sessions(ctx, c.Principal.TokenID)
	shown := body.Sessions{Envelope: body.OKEnvelope, Results: make([]body.Session, len(all))}
	for i, o := range all {
		shown.Results[i] = body.Session{
			ID: o.ID, Role: c.Principal.Role, Account: c.Principal.Account, Opened: o.Opened, Expires: o.Expires, IsCurrent: o.ID == c.Principal.Session,
		}
	}
	return kit.Response{Body: shown}, err
}

// closeSession ends a session of one's own token.
func (h *handler) closeSession(ctx context.Context, c call, _ body.Empty) (kit.Response, error) {
	at, err := h.accounts.Tokens.CloseSession(ctx, metadata(c, ""), c.Principal.TokenID, c.Vars["session"])
	if err := kit.Await(ctx, h.accounts.WaitTokens, at, err); err != nil {
		return kit.Response{}, err
	}
	return kit.OK(body.OKEnvelope)
}

// closeSessions ends all sessions of one's own token, the one of the request among them, and its unused links.
func (h *handler) closeSessions(ctx context.Context, c call, _ body.Empty) (kit.Response, error) {
	_, at, err := h.accounts.Tokens.CloseAllSessions(ctx, metadata(c, ""), c.Principal.TokenID)
	if err := kit.Await(ctx, h.accounts.WaitTokens, at, err); err != nil {
		return kit.Response{}, err
	}
	return kit.OK(body.OKEnvelope)
}

// issueLink makes a link with which the holder comes in from another browser.
func (h *handler) issueLink(ctx context.Context, c call, _ body.Empty) (kit.Response, error) {
	if !h.Address.KeepsCookies() {
		return kit.Response{}, refusal.LoginUnencrypted
	}
	made, err := h.accounts.Tokens.IssueLink(ctx, metadata(c, ""), c.Principal.TokenID, areatoken.LinkLifetime)
	if err := kit.Await(ctx, h.accounts.WaitTokens, made.Position, err); err != nil {
		return kit.Response{}, err
	}
	return kit.Created(h.toLink(made))
}

// invite makes a token for somebody, and the link with which they come in. An agency invites customers of its sub-clients.
func (h *handler) invite(ctx context.Context, c call, in body.Invite) (kit.Response, error) {
	if !h.Address.KeepsCookies() {
		return kit.Response{}, refusal.LoginUnencrypted
	}
	if err := h.checkInvitation(ctx, c.Principal, in); err != nil {
		return kit.Response{}, err
	}
	made, err := h.accounts.Tokens.Invite(ctx, metadata(c, ""), areatoken.TokenRequest{Role: in.Role, Account: in.Account, Label: in.Label})
	if err := kit.Await(ctx, h.accounts.WaitTokens, made.Position, err); err != nil {
		return kit.Response{}, err
	}
	return kit.Created(h.toLink(made))
}

// checkInvitation refuses an invitation that its author may not make. What an agency may not reach is answered as unknown.
func (h *handler) checkInvitation(ctx context.Context, p principal, in body.Invite) error {
	if p.Role == grant.RoleAgency {
		if in.Role != grant.RoleCustomer {
			return problem.BrokenRule("body", "role", "literal_error", "Input should be 'customer'")
		}
		if in.Account != "" && in.Account != p.Account {
			parent, err := h.accounts.Commands.AgencyOf(ctx, in.Account)
			if err != nil {
				return err
			}
			if parent != p.Account {
				return refusal.NotFound
			}
		}
	}
	return h.checkTokenAccount(ctx, body.IssueToken(in))
}

func (h *handler) toLink(made areatoken.IssuedLink) body.SessionLink {
	return body.SessionLink{Token: made.Token, Role: grant.Role(made.Role), Account: made.Account, URL: h.Address.LinkURL(made.Secret), Expires: made.Expires}
}

func (h *handler) toSession(made areatoken.OpenedSession) body.Session {
	return body.Session{
		ID: made.Session, Role: grant.Role(made.Role), Account: made.Account,
		Opened: h.Now().UTC().Truncate(time.Microsecond), Expires: made.Expires, IsCurrent: true,
	}
}
