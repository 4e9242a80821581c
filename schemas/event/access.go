package event

import (
	"crypto/sha256"
	"fmt"
)

// TokenIssued makes a customer-area token valid. Only its SHA-256 is kept.
type TokenIssued struct {
	Token   string `json:"token"` // the token's id, never the token
	Role    string `json:"role"`
	Account string `json:"account,omitempty"` // for the roles that act for one account
	Label   string `json:"label"`
	Hash    []byte `json:"hash"`
	Hint    string `json:"hint"`
}

// TokenRevoked ends a customer-area token for good.
type TokenRevoked struct {
	Token   string `json:"token"`
	Role    string `json:"role"`
	Account string `json:"account,omitempty"`
	Hash    []byte `json:"hash"`
	Hint    string `json:"hint"`
}

// AuditSubject is the token, shown in the audit trail of the account it acts for.
func (e TokenIssued) AuditSubject() Subject  { return Subject{ID: e.Token, Account: e.Account} }
func (e TokenRevoked) AuditSubject() Subject { return Subject{ID: e.Token, Account: e.Account} }

// EventType is the wire name.
func (TokenIssued) EventType() string  { return "token.issued.v1" }
func (TokenRevoked) EventType() string { return "token.revoked.v1" }

// Whoever looks a credential up by its hash can only fold events that hold a whole one.
func (e SecretKeyIssued) validate() error      { return checkHash(e.Hash) }
func (e PublishableKeyIssued) validate() error { return checkHash(e.Hash) }
func (e KeyOriginsChanged) validate() error    { return checkHash(e.Hash) }
func (e KeyRevoked) validate() error           { return checkHash(e.Hash) }
func (e TokenIssued) validate() error          { return checkHash(e.Hash) }
func (e TokenRevoked) validate() error         { return checkHash(e.Hash) }

func checkHash(hash []byte) error {
	if len(hash) != sha256.Size {
		return fmt.Errorf("hash of %d bytes, not of %d", len(hash), sha256.Size)
	}
	return nil
}
