// Package access decides who may use the customer area: its tokens are issued and revoked here, and the first
// operator's token is made once, however many instances start at the same time.
package access

import (
	"fmt"
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"lieudit/commands"
	"lieudit/eventstore"
	"lieudit/schemas/access"
	"lieudit/schemas/event"
	"lieudit/schemas/refusal"
	"lieudit/schemas/token"
)

// ErrUnknownToken: there is no such token. It is refusal.NotFound for the client.
var ErrUnknownToken = fmt.Errorf("unknown token: %w", refusal.NotFound)

// ErrAlreadyIssued: a token of that id was issued before.
var ErrAlreadyIssued = errors.New("token issued before")

// FirstTokenID is the id of the token that the first start makes.
const FirstTokenID = "operator"

// State is a token as its stream tells it.
type State struct {
	Issued    event.TokenIssued
	IssuedAt  time.Time
	IssuedBy  string
	RevokedAt time.Time
	RevokedBy string
	Reason    string // of the revocation
}

// Aggregate is how token streams are folded.
var Aggregate = commands.Aggregate[State]{Category: "token", Evolve: Evolve}

// Evolve changes the state by one fact.
func Evolve(s *State, rec commands.Record) {
	switch e := rec.Event.(type) {
	case event.TokenIssued:
		*s = State{Issued: e, IssuedAt: rec.At, IssuedBy: rec.Actor}
	case event.TokenRevoked:
		s.RevokedAt, s.RevokedBy, s.Reason = rec.At, rec.Actor, rec.Reason
	}
}

// Tokens takes the commands on customer-area tokens.
type Tokens struct {
	handler  *commands.Handler[State]
	prefixes token.Prefixes
	now      func() time.Time
}

// New takes commands on the tokens of a log.
func New(store eventstore.Store, codec *eventstore.Codec, prefixes token.Prefixes, now func() time.Time) *Tokens {
	return &Tokens{commands.NewHandler(Aggregate, store, codec), prefixes, now}
}

// TokenRequest is the wish for a token. Account says whose it is, for the roles that act for one.
type TokenRequest struct {
	Role    access.Role
	Account string
	Label   string
}

// IssuedToken is a new token, shown this once.
type IssuedToken struct {
	event.TokenIssued
	Plaintext string
	Position  eventstore.Position
}

// Issue makes a token.
func (t *Tokens) Issue(ctx context.Context, meta commands.Metadata, req TokenRequest) (IssuedToken, error) {
	return t.Claim(ctx, meta, uuid.Must(uuid.NewV7()).String(), t.prefixes.New(token.Area), req)
}

// Claim records a token made beforehand under an id that only one caller can have: the others get ErrTaken. The
// same token again is no error.
func (t *Tokens) Claim(ctx context.Context, meta commands.Metadata, id, plaintext string, req TokenRequest) (IssuedToken, error) {
	hash := token.HashOf(plaintext)
	issued := event.TokenIssued{
		Token: id, Role: string(req.Role), Account: req.Account, Label: req.Label, Hash: hash[:], Hint: t.prefixes.Hint(plaintext),
	}
	position, err := t.handler.Handle(ctx, id, meta, func(s *State) commands.Result {
		switch {
		case s.Issued.Token == "":
			return commands.Append(issued)
		case bytes.Equal(s.Issued.Hash, hash[:]):
			return commands.Result{}
		}
		return commands.Refuse(ErrAlreadyIssued)
	})
	return IssuedToken{issued, plaintext, position}, err
}

// Revoke ends a token for good. Twice is once.
func (t *Tokens) Revoke(ctx context.Context, meta commands.Metadata, id string) (State, eventstore.Position, error) {
	var revoked State
	position, err := t.handler.Handle(ctx, id, meta, func(s *State) commands.Result {
		if s.Issued.Token == "" {
			return commands.Refuse(ErrUnknownToken)
		}
		if revoked = *s; !s.RevokedAt.IsZero() {
			return commands.Result{}
		}
		revoked.RevokedAt, revoked.RevokedBy, revoked.Reason = t.now().UTC().Truncate(time.Microsecond), meta.Actor, meta.Reason
		e := s.Issued
		return commands.Append(event.TokenRevoked{Token: e.Token, Role: e.Role, Account: e.Account, Hash: e.Hash, Hint: e.Hint})
	})
	return revoked, position, err
}
