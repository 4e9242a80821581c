// Package access decides who may use the customer area: its tokens are issued and revoked here, and the first
// operator's token is made once, however many instances start at the same time.
package access

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"lieudit/commands"
	"lieudit/eventstore"
	"lieudit/schemas/event"
	"lieudit/schemas/grant"
	"lieudit/schemas/token"
)

// ErrUnknown: there is no such token.
var ErrUnknown = errors.New("unknown token")

// ErrTaken: a token of that id was issued before.
var ErrTaken = errors.New("token issued before")

// First is the id of the token that the first start makes.
const First = "operator"

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
func Evolve(s *State, f commands.Fact) {
	switch e := f.Event.(type) {
	case event.TokenIssued:
		*s = State{Issued: e, IssuedAt: f.At, IssuedBy: f.Actor}
	case event.TokenRevoked:
		s.RevokedAt, s.RevokedBy, s.Reason = f.At, f.Actor, f.Reason
	}
}

// Tokens takes the commands on customer-area tokens.
type Tokens struct {
	desk     *commands.Desk[State]
	prefixes token.Prefixes
	now      func() time.Time
}

// New takes commands on the tokens of a log.
func New(store eventstore.Store, codec *eventstore.Codec, prefixes token.Prefixes, now func() time.Time) *Tokens {
	return &Tokens{commands.NewDesk(Aggregate, store, codec), prefixes, now}
}

// Issue is the wish for a token. Account says whose it is, for the roles that act for one.
type Issue struct {
	Role    grant.Role
	Account string
	Label   string
}

// Issued is a new token, shown this once.
type Issued struct {
	event.TokenIssued
	Clear    string
	Position eventstore.Position
}

// Issue makes a token.
func (t *Tokens) Issue(ctx context.Context, in commands.Intent, i Issue) (Issued, error) {
	return t.Claim(ctx, in, uuid.Must(uuid.NewV7()).String(), t.prefixes.New(token.Area), i)
}

// Claim records a token made beforehand under an id that only one caller can have: the others get ErrTaken. The
// same token again is no error.
func (t *Tokens) Claim(ctx context.Context, in commands.Intent, id, clear string, i Issue) (Issued, error) {
	hash := token.HashOf(clear)
	made := event.TokenIssued{
		Token: id, Role: string(i.Role), Account: i.Account, Label: i.Label, Hash: hash[:], Hint: t.prefixes.Hint(clear),
	}
	at, err := t.desk.Do(ctx, id, in, func(s *State) commands.Result {
		switch {
		case s.Issued.Token == "":
			return commands.Append(made)
		case bytes.Equal(s.Issued.Hash, hash[:]):
			return commands.Result{}
		}
		return commands.Refuse(ErrTaken)
	})
	return Issued{made, clear, at}, err
}

// Revoke ends a token for good. Twice is once.
func (t *Tokens) Revoke(ctx context.Context, in commands.Intent, id string) (State, eventstore.Position, error) {
	var ended State
	at, err := t.desk.Do(ctx, id, in, func(s *State) commands.Result {
		if s.Issued.Token == "" {
			return commands.Refuse(ErrUnknown)
		}
		if ended = *s; !s.RevokedAt.IsZero() {
			return commands.Result{}
		}
		ended.RevokedAt, ended.RevokedBy, ended.Reason = t.now().UTC().Truncate(time.Microsecond), in.Actor, in.Reason
		e := s.Issued
		return commands.Append(event.TokenRevoked{Token: e.Token, Role: e.Role, Account: e.Account, Hash: e.Hash, Hint: e.Hint})
	})
	return ended, at, err
}
