// Package auth authenticates requests: the bearer token, the key ring, and the narrow scope of publishable keys, which web pages
// show to everybody. Its constraint is revocation: an Authentication rests on a ring that held all that the log held a second
// before, so that a revoked key is refused everywhere within that time.
//
//	Authorization ─> BearerToken ─> Prefixes.KindOf ─> lookUpKey ─> checkPublishable ─> Authentication
//	                                form of the token   KeyRing,     method, path, Origin      │ older than a second
//	                                                    FreshnessSource <── Revalidate <───────┘ when the answer is sent
//
// All that happens before any route is looked at, and allocates nothing that grows with the number of keys.
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

// KeyRing holds the keys that are valid. It is in memory, and safe for concurrent use. It is stale while it may lack what the log
// held a second ago, and fresh otherwise.
type KeyRing interface {
	// FindKey is what the key with a hash gives at an instant; false: the key is not valid. Hashes are compared in
	// constant time.
	FindKey(hash token.Hash, now time.Time) (grant.Grant, bool)
	// IsFresh reports whether the ring holds all that the log held a second ago.
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

// NewAuthenticator authenticates by a ring. Publishable keys may be used for GET of one path only. Where the ring is a
// FreshnessSource that is stale, requests wait for it, as many as the limiter admits.
func NewAuthenticator(ring KeyRing, limiter *waitlimit.Limiter, tokens token.Prefixes, publishablePath string, now func() time.Time) *Authenticator {
	freshness, _ := ring.(FreshnessSource)
	return &Authenticator{ring, freshness, limiter, tokens, publishablePath, now}
}

// Authenticate is what the request's key gives, or the refusal to answer with. A token of the wrong form is refused as such
// whatever the ring's state. A refusal that a web page must be able to read gets its CORS header in h.
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
	sent := r.Header["Origin"]
	switch {
	case len(sent) == 0, len(sent) == 1 && sent[0] == "":
		return refusal.OriginMissing
	case len(sent) > 1 || !origin.Match(sent[0], declared):
		return refusal.OriginNotAllowed
	}
	return nil
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

// AllowAnyOrigin lets scripts of any web page read an answer. The API has no cookies, so a page gets nothing that it could not
// get by itself.
func AllowAnyOrigin(h http.Header) { h.Set("Access-Control-Allow-Origin", "*") }

// WritePreflight answers the request that a browser sends before the request itself. It carries no key, so none is checked.
func WritePreflight(w http.ResponseWriter) {
	h := w.Header()
	AllowAnyOrigin(h)
	h.Set("Access-Control-Allow-Methods", "GET, POST, PUT, PATCH, DELETE")
	h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type")
	h.Set("Access-Control-Max-Age", "7200") // seconds, the most that Chromium remembers it
	w.WriteHeader(http.StatusNoContent)
}
