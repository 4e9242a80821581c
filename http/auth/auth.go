// Package auth decides who a request is from and whether its key may be used that way: the bearer token, the
// key ring, and the narrow scope of publishable keys. It decides before any route is looked at, and allocates
// nothing that grows with the number of keys.
package auth

import (
	"net/http"
	"strings"
	"time"

	"lieudit/eventstore/waiting"
	"lieudit/http/problem"
	"lieudit/schemas/grant"
	"lieudit/schemas/origin"
	"lieudit/schemas/token"
)

// Ring is all the keys that are valid.
type Ring interface {
	// Find is what the key with a hash gives at an instant, or false when it gives nothing. Hashes are
	// compared in constant time.
	Find(hash token.Hash, now time.Time) (grant.Grant, bool)
	// Fresh says whether the ring knows all that the log held a second ago.
	Fresh(now time.Time) bool
}

// Gate lets requests in.
type Gate struct {
	ring     Ring
	follower Follower // the ring, when it follows a log
	room     *waiting.Room
	tokens   token.Prefixes
	open     string // the one path publishable keys open
	now      func() time.Time
}

// NewGate is a gate where publishable keys open GET of one path. Where the ring is a Follower that is stale, requests
// wait for it.
func NewGate(ring Ring, tokens token.Prefixes, open string, now func() time.Time) *Gate {
	follower, _ := ring.(Follower)
	return &Gate{ring, follower, waiting.NewRoom(waiting.Places), tokens, open, now}
}

// WaitIn has requests wait in a room that others use too, instead of one of the gate's own.
func (g *Gate) WaitIn(room *waiting.Room) { g.room = room }

// Admit is what the request's key gives, or the problem to answer with: what the token's form already tells is told
// whatever the ring's state. A refusal that a web page must be able to read gets its CORS header in h.
func (g *Gate) Admit(h http.Header, r *http.Request) (Admission, error) {
	text, ok := Bearer(r.Header)
	if !ok {
		return Admission{}, problem.KeyRequired()
	}
	if kind, ok := g.tokens.Kind(text); !ok || kind == token.Area {
		return Admission{}, problem.KeyInvalid()
	}
	found, err := g.find(r.Context(), token.HashOf(text), waiting.Longest)
	if err != nil || found.Kind != token.Publishable {
		return found, err
	}
	if err := g.page(r, found.Origins); err != nil {
		AllowPages(h)
		return Admission{}, err
	}
	return found, nil
}

// page checks a publishable key's use: the exact method and path as sent, then the page's origin.
func (g *Gate) page(r *http.Request, declared []string) error {
	if r.Method != http.MethodGet || r.URL.EscapedPath() != g.open {
		return problem.OutOfScope()
	}
	sent := r.Header["Origin"]
	switch {
	case len(sent) == 0, len(sent) == 1 && sent[0] == "":
		return problem.OriginAbsent()
	case len(sent) > 1 || !origin.Match(sent[0], declared):
		return problem.OriginRefused()
	}
	return nil
}

// Bearer is the token of a request's one Authorization header of the form "Bearer <token>". The scheme may be in any
// case (RFC 9110, 11.1) and is followed by spaces; the token is one word.
func Bearer(h http.Header) (string, bool) {
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
