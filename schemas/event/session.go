package event

import (
	"cmp"
	"time"
)

// The events of this file are on the stream of a customer-area token: what comes into the customer area with a session holds
// what the token holds, and ends with it.

// SessionLinkIssued makes a link valid, with which one session of the token can be opened. Only the SHA-256 of the link's
// secret is kept.
type SessionLinkIssued struct {
	Token     string    `json:"token"`
	Role      string    `json:"role"`
	Account   string    `json:"account,omitempty"`
	Link      string    `json:"link"` // its id
	Hash      []byte    `json:"hash"`
	Expires   time.Time `json:"expires"`
	TokenHash []byte    `json:"tokenHash"` // by which the key ring finds the token
}

// SessionOpened makes a session valid. Only the SHA-256 of its secret, the value of the cookie, is kept.
type SessionOpened struct {
	Token     string    `json:"token"`
	Role      string    `json:"role"`
	Account   string    `json:"account,omitempty"`
	Session   string    `json:"session"`        // its id
	Link      string    `json:"link,omitempty"` // the link that was used up; empty if the token itself was shown
	Hash      []byte    `json:"hash"`
	Expires   time.Time `json:"expires"`
	TokenHash []byte    `json:"tokenHash"` // by which the key ring finds the token
}

// SessionClosed ends a session before it expires.
type SessionClosed struct {
	Token   string `json:"token"`
	Role    string `json:"role"`
	Account string `json:"account,omitempty"`
	Session string `json:"session"`
	Hash    []byte `json:"hash"`
}

// SessionLinkEnded ends a link that was not used before it expires.
type SessionLinkEnded struct {
	Token   string `json:"token"`
	Role    string `json:"role"`
	Account string `json:"account,omitempty"`
	Link    string `json:"link"`
	Hash    []byte `json:"hash"`
}

// AuditSubject is the token. It is shown in the audit trail of the account the token acts for.
func (e SessionLinkIssued) AuditSubject() Subject { return Subject{ID: e.Token, Account: e.Account} }
func (e SessionOpened) AuditSubject() Subject     { return Subject{ID: e.Token, Account: e.Account} }
func (e SessionClosed) AuditSubject() Subject     { return Subject{ID: e.Token, Account: e.Account} }
func (e SessionLinkEnded) AuditSubject() Subject  { return Subject{ID: e.Token, Account: e.Account} }

// SealedFor is the account that the token acts for.
func (e SessionLinkIssued) SealedFor() string { return e.Account }
func (e SessionOpened) SealedFor() string     { return e.Account }
func (e SessionClosed) SealedFor() string     { return e.Account }
func (e SessionLinkEnded) SealedFor() string  { return e.Account }

// EventType is the wire name.
func (SessionLinkIssued) EventType() string { return "token.session-link-issued.v1" }
func (SessionOpened) EventType() string     { return "token.session-opened.v1" }
func (SessionClosed) EventType() string     { return "token.session-closed.v1" }
func (SessionLinkEnded) EventType() string  { return "token.session-link-ended.v1" }

// The key ring finds links and sessions by their hash.
func (e SessionLinkIssued) validateFields() error {
	return cmp.Or(checkHash(e.Hash), checkHash(e.TokenHash))
}
func (e SessionOpened) validateFields() error {
	return cmp.Or(checkHash(e.Hash), checkHash(e.TokenHash))
}
func (e SessionClosed) validateFields() error    { return checkHash(e.Hash) }
func (e SessionLinkEnded) validateFields() error { return checkHash(e.Hash) }
