package event

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"time"

	"lieudit/schemas/plan"
)

// AccountOpened begins an account. Its own monthly periods are always counted from Anchor.
type AccountOpened struct {
	Account string    `json:"account"`
	Name    Personal  `json:"name"`
	Plan    plan.Name `json:"plan"`
	Quota   int64     `json:"quota"`            // requests a month
	Anchor  plan.Date `json:"anchor"`           // first day of the first period, Europe/Paris
	Agency  string    `json:"agency,omitempty"` // the account it is a sub-client of
}

// PlanChanged gives an account other terms from Effective on, or at once if Effective is not after the event's time: an
// upgrade names the beginning of the current period, a downgrade that of the next. Later terms replace earlier ones that have
// not begun.
type PlanChanged struct {
	From      plan.Name `json:"from"`
	To        plan.Name `json:"to"`
	Quota     int64     `json:"quota"`
	Effective time.Time `json:"effective"`
}

// AgencyActivated lets an account have sub-clients.
type AgencyActivated struct{}

// AgencyJoined makes an account a sub-client: from Effective on it has the agency's plan and anchor.
type AgencyJoined struct {
	Agency    string    `json:"agency"`
	Effective time.Time `json:"effective"`
}

// AgencyLeft gives a sub-client back its own plan and anchor.
type AgencyLeft struct {
	Agency    string    `json:"agency"`
	Effective time.Time `json:"effective"`
}

// AccountClosed ends an account: its keys and those of its sub-clients stop working.
type AccountClosed struct{}

// AccountErased records that the personal data of a closed account was made unreadable.
type AccountErased struct{}

// SecretKeyIssued makes a secret key valid. Only the SHA-256 of the token is kept.
type SecretKeyIssued struct {
	Key   string   `json:"key"`
	Label Personal `json:"label"`
	Hash  []byte   `json:"hash"`
	Hint  string   `json:"hint"` // prefix…last four characters
}

// PublishableKeyIssued makes a publishable key valid for requests from its origins.
type PublishableKeyIssued struct {
	Key     string   `json:"key"`
	Label   Personal `json:"label"`
	Hash    []byte   `json:"hash"`
	Hint    string   `json:"hint"`
	Token   string   `json:"token"` // in clear: it is in web pages, where anybody can read it
	Origins []string `json:"origins"`
}

// KeyRotationStarted makes a key take the place of another one of the account. Both are valid until the other one is revoked,
// which ends the rotation.
type KeyRotationStarted struct {
	Key      string `json:"key"`
	Replaces string `json:"replaces"` // the id of the other key
}

// KeyRevoked ends a key of either kind permanently.
type KeyRevoked struct {
	Key  string `json:"key"`
	Hint string `json:"hint"`
	Hash []byte `json:"hash"`
}

// KeyOriginsChanged replaces the origins of a publishable key; the key itself stays.
type KeyOriginsChanged struct {
	Key     string   `json:"key"`
	Hash    []byte   `json:"hash"`
	Before  []string `json:"before"`
	Origins []string `json:"origins"`
}

// AccountActionRefused records that somebody tried an action that the rules forbid.
type AccountActionRefused struct {
	Action string `json:"action"` // the command's name
	Code   string `json:"code"`   // the refusal's code only: the customer's input may hold a secret
}

// MapPersonal maps the account's name.
func (e AccountOpened) MapPersonal(f func(Personal) (Personal, error)) (Event, error) {
	name, err := e.Name.mapText(f)
	if err != nil {
		return nil, err
	}
	e.Name = name
	return e, nil
}

// MapPersonal maps the key's label.
func (e SecretKeyIssued) MapPersonal(f func(Personal) (Personal, error)) (Event, error) {
	label, err := e.Label.mapText(f)
	if err != nil {
		return nil, err
	}
	e.Label = label
	return e, nil
}

// MapPersonal maps the key's label.
func (e PublishableKeyIssued) MapPersonal(f func(Personal) (Personal, error)) (Event, error) {
	label, err := e.Label.mapText(f)
	if err != nil {
		return nil, err
	}
	e.Label = label
	return e, nil
}

// EventType is the wire name.
func (AccountOpened) EventType() string        { return "account.opened.v1" }
func (PlanChanged) EventType() string          { return "account.plan-changed.v1" }
func (AgencyActivated) EventType() string      { return "account.agency-activated.v1" }
func (AgencyJoined) EventType() string         { return "account.agency-joined.v1" }
func (AgencyLeft) EventType() string           { return "account.agency-left.v1" }
func (AccountClosed) EventType() string        { return "account.closed.v1" }
func (AccountErased) EventType() string        { return "account.erased.v1" }
func (SecretKeyIssued) EventType() string      { return "account.secret-key-issued.v2" }
func (PublishableKeyIssued) EventType() string { return "account.publishable-key-issued.v2" }
func (KeyRotationStarted) EventType() string   { return "account.key-rotation-started.v1" }
func (KeyRevoked) EventType() string           { return "account.key-revoked.v1" }
func (KeyOriginsChanged) EventType() string    { return "account.key-origins-changed.v1" }
func (AccountActionRefused) EventType() string { return "account.action-refused.v1" }

// TokenIssued makes a customer-area token valid. Only its SHA-256 is kept. The label of a token without an account cannot be
// sealed: its event is always written in the first version.
type TokenIssued struct {
	Token   string   `json:"token"` // the token's id, never the token
	Role    string   `json:"role"`
	Account string   `json:"account,omitempty"` // for the roles that act for one account
	Label   Personal `json:"label"`
	Hash    []byte   `json:"hash"`
	Hint    string   `json:"hint"`
}

// TokenRevoked ends a customer-area token permanently.
type TokenRevoked struct {
	Token   string `json:"token"`
	Role    string `json:"role"`
	Account string `json:"account,omitempty"`
	Hash    []byte `json:"hash"`
	Hint    string `json:"hint"`
}

// AuditSubject is the key.
func (e SecretKeyIssued) AuditSubject() Subject      { return Subject{IsKey: true, ID: e.Key} }
func (e PublishableKeyIssued) AuditSubject() Subject { return Subject{IsKey: true, ID: e.Key} }
func (e KeyRotationStarted) AuditSubject() Subject   { return Subject{IsKey: true, ID: e.Key} }
func (e KeyRevoked) AuditSubject() Subject           { return Subject{IsKey: true, ID: e.Key} }
func (e KeyOriginsChanged) AuditSubject() Subject    { return Subject{IsKey: true, ID: e.Key} }

// AuditSubject is the account's keys if the name of the action mentions keys or origins, and otherwise the account.
func (e AccountActionRefused) AuditSubject() Subject {
	return Subject{IsKey: strings.Contains(e.Action, "key") || strings.Contains(e.Action, "origins")}
}

// AuditSubject is the token. It is shown in the audit trail of the account the token acts for.
func (e TokenIssued) AuditSubject() Subject  { return Subject{ID: e.Token, Account: e.Account} }
func (e TokenRevoked) AuditSubject() Subject { return Subject{ID: e.Token, Account: e.Account} }

// MapPersonal maps the token's label.
func (e TokenIssued) MapPersonal(f func(Personal) (Personal, error)) (Event, error) {
	label, err := e.Label.mapText(f)
	if err != nil {
		return nil, err
	}
	e.Label = label
	return e, nil
}

// SealedFor is the account that the token acts for.
func (e TokenIssued) SealedFor() string  { return e.Account }
func (e TokenRevoked) SealedFor() string { return e.Account }

// EventType is the wire name.
func (TokenIssued) EventType() string  { return "token.issued.v2" }
func (TokenRevoked) EventType() string { return "token.revoked.v1" }

// Decode refuses these events without a complete SHA-256, because folds find keys and tokens by it.
func (e SecretKeyIssued) validateFields() error      { return checkHash(e.Hash) }
func (e PublishableKeyIssued) validateFields() error { return checkHash(e.Hash) }
func (e KeyOriginsChanged) validateFields() error    { return checkHash(e.Hash) }
func (e KeyRevoked) validateFields() error           { return checkHash(e.Hash) }
func (e TokenIssued) validateFields() error          { return checkHash(e.Hash) }
func (e TokenRevoked) validateFields() error         { return checkHash(e.Hash) }

func checkHash(hash []byte) error {
	if len(hash) != sha256.Size {
		return fmt.Errorf("hash of %d bytes, not of %d", len(hash), sha256.Size)
	}
	return nil
}
