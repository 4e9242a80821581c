// Package auth authenticates requests: the bearer token, the key ring, and the narrow scope of publishable keys, which anybody
// can read in web pages. A revoked key is refused everywhere within a second: an Authentication rests on a ring that held
// everything that was on the log a second before.
//
//	Authorization ─> BearerToken ─> Prefixes.KindOf ─> lookUpKey ─> checkPublishable ─> Authentication
//	                                form of the token   KeyRing,     method, path, Origin      │ older than a second
//	                                                    FreshnessSource <── Revalidate <───────┘ when the answer is sent
//
// All this happens before the request is routed, and allocates nothing that grows with the number of keys.
package auth

import (
	"net/http"
	"strings"
	"time"

	"lieudit/eventstore/waitlimit"
	"lieudit/schemas/grant"
	"lieudit/schemas/origin"
	"lieudit/schemas/refusal"
	"lieudit/schemas/token"
)

// KeyRing holds the valid keys in memory. It is safe for concurrent use. It is stale while it may lack events that were on the
// log a second ago, and fresh otherwise.
type KeyRing interface {
	// FindKey is what the key with a hash grants at an instant. It returns false if the key is not valid. Hashes are compared
	// in constant time.
	FindKey(hash token.Hash, now time.Time) (grant.Grant, bool)
	// IsFresh reports whether the ring holds everything that was on the log a second ago.
	IsFresh(now time.Time) bool
}

// Authenticator authenticates the requests of the API. It is safe for concurrent use.
type Authenticator struct {
	keys            KeyRing
	freshness       FreshnessSource // the ring, if it follows a log; otherwise nil
	limiter         *waitlimit.Limiter
	tokens          token.Prefixes
	publishablePath string           // the only one that publishable keys may use
	now             func() time.Time // wall clock, for what a key gives at an instant
}

// NewAuthenticator authenticates by a ring. Publishable keys may only be used for GET of one path. If the ring is a
// FreshnessSource and stale, requests wait for it, as many as the limiter admits.
func NewAuthenticator(ring KeyRing, limiter *waitlimit.Limiter, tokens token.Prefixes, publishablePath string, now func() time.Time) *Authenticator {
	freshness, _ := ring.(FreshnessSource)
	return &Authenticator{ring, freshness, limiter, tokens, publishablePath, now}
}

// Authenticate returns what the request's key grants, or the refusal to answer with. A malformed token is refused whatever the
// ring's state. A refusal that a web page must be able to read gets its CORS header in h.
func (g *Authenticator) Authenticate(h http.Header, r *http.Request) (Authentication, error) {
	text, ok := BearerToken(r.Header)
	if !ok {
		return Authentication{}, refusal.KeyRequired
	}
	if kind, ok := g.tokens.KindOf(text); !ok || kind == token.Area {
		return Authentication{}, refusal.KeyInvalid
	}
	found, err := g.lookUpKey(r.Context(), token.HashOf(text), nil)
	if err != nil || found.Kind != token.Publishable {
		return found, err
	}
	if err := g.checkPublishable(r, found.Origins); err != nil {
		AllowAnyOrigin(h)
		return Authentication{}, err
	}
	return found, nil
}

// checkPublishable checks the use of a publishable key: the exact method and path as sent, then the page's origin.
func (g *Authenticator) checkPublishable(r *http.Request, declared []string) error {
	if r.Method != http.MethodGet || r.URL.EscapedPath() != g.publishablePath {
		return refusal.KeyOutOfScope
	}
	_, err := origin.Admit(r.Header["Origin"], declared)
	return err
}

// BearerToken is the token of a request's one Authorization header of the form "Bearer <token>". The scheme may be in any
// case (RFC 9110, 11.1) and is followed by spaces; the token is one word.
func BearerToken(h http.Header) (string, bool) {
	const scheme = "Bearer "
	sent := h["Authorization"]
	if len(sent) != 1 || len(sent[0]) <= len(scheme) || !strings.EqualFold(sent[0][:len(scheme)], scheme) {
		return "", false
	}
	text := strings.Trim(sent[0][len(scheme):], " ")
	if text == "" || strings.ContainsAny(text, " \t,") {
		return "", false
	}
	return text, true
}

// AllowAnyOrigin lets scripts of any web page read an answer. The API has no cookies, so a page gets nothing that its author
// could not get directly.
func AllowAnyOrigin(h http.Header) { h.Set("Access-Control-Allow-Origin", "*") }

// WritePreflight answers a browser's preflight request. It carries no key, so there is none to check.
func WritePreflight(w http.ResponseWriter) {
	h := w.Header()
	AllowAnyOrigin(h)
	h.Set("Access-Control-Allow-Methods", "GET, POST, PUT, PATCH, DELETE")
	h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type")
	h.Set("Access-Control-Max-Age", "7200") // seconds, the most that Chromium accepts
	w.WriteHeader(http.StatusNoContent)
}
