// Package auth decides who a request is from and whether its key may be used that way: the bearer token, the
// key ring, and the narrow scope of publishable keys. It decides before any route is looked at, and allocates
// nothing that grows with the number of keys.
package auth

import (
	"net/http"
	"strings"
	"time"

	"lieudit/eventstore/waitlimit"
	"lieudit/http/problem"
	"lieudit/schemas/access"
	"lieudit/schemas/origin"
	"lieudit/schemas/token"
)

// KeyRing is all the keys that are valid.
type KeyRing interface {
	// FindKey is what the key with a hash gives at an instant, or false when it gives nothing. Hashes are
	// compared in constant time.
	FindKey(hash token.Hash, now time.Time) (access.Grant, bool)
	// IsFresh says whether the ring knows all that the log held a second ago.
	IsFresh(now time.Time) bool
}

// Authenticator lets requests in.
type Authenticator struct {
	keys            KeyRing
	freshness       FreshnessSource // the ring, when it follows a log
	limiter         *waitlimit.Limiter
	tokens          token.Prefixes
	publishablePath string // the one path publishable keys open
	now             func() time.Time
}

// NewAuthenticator is a gate where publishable keys open GET of one path. Where the ring is a Follower that is stale, requests
// wait for it.
func NewAuthenticator(ring KeyRing, tokens token.Prefixes, publishablePath string, now func() time.Time) *Authenticator {
	freshness, _ := ring.(FreshnessSource)
	return &Authenticator{ring, freshness, waitlimit.New(waitlimit.MaxRequests), tokens, publishablePath, now}
}

// SetLimiter has requests wait in a room that others use too, instead of one of the gate's own.
func (g *Authenticator) SetLimiter(limiter *waitlimit.Limiter) { g.limiter = limiter }

// Authenticate is what the request's key gives, or the problem to answer with: what the token's form already tells is told
// whatever the ring's state. A refusal that a web page must be able to read gets its CORS header in h.
func (g *Authenticator) Authenticate(h http.Header, r *http.Request) (Authentication, error) {
	text, ok := BearerToken(r.Header)
	if !ok {
		return Authentication{}, problem.KeyRequired()
	}
	if kind, ok := g.tokens.KindOf(text); !ok || kind == token.Area {
		return Authentication{}, problem.KeyInvalid()
	}
	found, err := g.lookUpKey(r.Context(), token.HashOf(text), waitlimit.MaxWait)
	if err != nil || found.Kind != token.Publishable {
		return found, err
	}
	if err := g.checkPublishable(r, found.Origins); err != nil {
		AllowAnyOrigin(h)
		return Authentication{}, err
	}
	return found, nil
}

// checkPublishable checks a publishable key's use: the exact method and path as sent, then the page's origin.
func (g *Authenticator) checkPublishable(r *http.Request, declared []string) error {
	if r.Method != http.MethodGet || r.URL.EscapedPath() != g.publishablePath {
		return problem.PublishableKeyOutOfScope()
	}
	sent := r.Header["Origin"]
	switch {
	case len(sent) == 0, len(sent) == 1 && sent[0] == "":
		return problem.OriginMissing()
	case len(sent) > 1 || !origin.Match(sent[0], declared):
		return problem.OriginNotAllowed()
	}
	return nil
}

// BearerToken is the token of a request's one Authorization header of the form "BearerToken <token>". The scheme may be in any
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

// AllowAnyOrigin lets scripts of any web page read an answer. There are no cookies, so nothing is given away.
func AllowAnyOrigin(h http.Header) { h.Set("Access-Control-Allow-Origin", "*") }

// WritePreflight answers a browser's question before the request itself. It carries no key, so none is asked for.
func WritePreflight(w http.ResponseWriter) {
	h := w.Header()
	AllowAnyOrigin(h)
	h.Set("Access-Control-Allow-Methods", "GET, POST, PUT, PATCH, DELETE")
	h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type")
	h.Set("Access-Control-Max-Age", "7200") // what Chromium keeps at most
	w.WriteHeader(http.StatusNoContent)
}
