// Package areatoken handles the commands on customer-area tokens: it issues and revokes them. Each token has its own stream. If
// many instances start at the same time, exactly one makes the first operator's token: it is claimed under a fixed id, and the
// expected revision of the append decides between the instances.
//
//	Tokens.Issue (a new id) ──> Tokens.Claim (the caller's id) ──> Handler.Handle ──> event.TokenIssued
//	Tokens.Revoke ──> Handler.Handle ──> event.TokenRevoked
//
// The read side (projections/keyring) gets only hashes from these events: the log never holds a token in clear.
package areatoken

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"lieudit/commands"
	"lieudit/eventstore"
	"lieudit/schemas/event"
	"lieudit/schemas/grant"
	"lieudit/schemas/refusal"
	"lieudit/schemas/token"
)

// ErrUnknownToken means that there is no such token. It is refusal.NotFound for the client.
var ErrUnknownToken = fmt.Errorf("unknown token: %w", refusal.NotFound)

// ErrAlreadyIssued means that a token with the same id was issued before.
var ErrAlreadyIssued = errors.New("token issued before")

// FirstTokenID is the id of the token that the first start of a new service claims.
const FirstTokenID = "operator"

// State is the fold of a token's stream. Issued.Token is empty for a token that was never issued.
type State struct {
	Issued    event.TokenIssued
	IssuedAt  time.Time
	IssuedBy  string
	RevokedAt time.Time
	RevokedBy string
	Reason    event.Personal // of the revocation; sealed in decisions, in clear in what Revoke returns

	OmitsLabel, OmitsReason bool // Revoke left it out, because the vault gave no data key at once

	links    map[string]link    // by id
	sessions map[string]Session // by id
}

// Aggregate describes how token streams are folded.
var Aggregate = commands.Aggregate[State]{Category: "token", Evolve: Evolve}

// Evolve changes the state by one record.
func Evolve(s *State, rec commands.Record) {
	switch e := rec.Event.(type) {
	case event.TokenIssued:
		*s = State{Issued: e, IssuedAt: rec.At, IssuedBy: rec.Actor}
	case event.TokenRevoked:
		s.RevokedAt, s.RevokedBy, s.Reason = rec.At, rec.Actor, rec.Reason
	default:
		s.evolveSessions(rec)
	}
}

// Tokens handles the commands on customer-area tokens. It is safe for concurrent use.
type Tokens struct {
	handler  *commands.Handler[State]
	codec    *eventstore.Codec
	prefixes token.Prefixes
	now      func() time.Time
}

// New returns the handler for the tokens of a log. It makes tokens with the given prefixes; now is the wall clock.
func New(store eventstore.Store, codec *eventstore.Codec, prefixes token.Prefixes, now func() time.Time) *Tokens {
	return &Tokens{commands.NewHandler(Aggregate, store, codec), codec, prefixes, now}
}

// TokenRequest describes the token to make. Account is set for the roles that act for one account, and empty otherwise.
type TokenRequest struct {
	Role    grant.Role
	Account string
	Label   string
}

// IssuedToken is a new token. Plaintext is shown only this once: the log keeps its hash and its hint. Position is the log
// position that a read model must reach before it knows the token.
type IssuedToken struct {
	event.TokenIssued
	Plaintext string
	Position  eventstore.Position
}

// Issue makes a token under a new id.
func (t *Tokens) Issue(ctx context.Context, meta commands.Metadata, req TokenRequest) (IssuedToken, error) {
	return t.Claim(ctx, meta, uuid.Must(uuid.NewV7()).String(), t.prefixes.New(token.Area), req)
}

// Claim records a token that the caller made, under an id that only one caller can claim: the others get ErrAlreadyIssued.
// Claiming the same token again is not an error and records nothing.
func (t *Tokens) Claim(ctx context.Context, meta commands.Metadata, id, plaintext string, req TokenRequest) (IssuedToken, error) {
	issued := t.newToken(id, plaintext, req)
	position, err := t.handler.Handle(ctx, id, meta, func(s *State) commands.Result {
		switch {
		case s.Issued.Token == "":
			return commands.Append(issued)
		case bytes.Equal(s.Issued.Hash, issued.Hash):
			return commands.Result{}
		}
		return commands.Refuse(ErrAlreadyIssued)
	})
	return IssuedToken{issued, plaintext, position}, err
}

// newToken is the event that issues a token under an id.
func (t *Tokens) newToken(id, plaintext string, req TokenRequest) event.TokenIssued {
	hash := token.HashOf(plaintext)
	return event.TokenIssued{
		Token: id, Role: string(req.Role), Account: req.Account, Label: event.Personal(req.Label), Hash: hash[:], Hint: t.prefixes.Hint(plaintext),
	}
}

// Revoke revokes a token permanently and returns its new state. It is idempotent: a second revocation records nothing. For an
// unknown id it fails with ErrUnknownToken. It does not wait for the vault: without the vault, the token is revoked without the
// reason, and returned without its sealed texts.
func (t *Tokens) Revoke(ctx context.Context, meta commands.Metadata, id string) (State, eventstore.Position, error) {
	var issued event.TokenIssued
	if err := t.handler.View(ctx, id, func(s *State) { issued = s.Issued }); err != nil {
		return State{}, 0, err
	}
	e := event.TokenRevoked{Token: issued.Token, Role: issued.Role, Account: issued.Account, Hash: issued.Hash, Hint: issued.Hint}
	reason := event.Personal(meta.Reason)
	meta, isOmitted, err := t.handler.SealReason(ctx, id, meta, e)
	if err != nil {
		return State{}, 0, err
	}
	var revoked State
	isRevokedNow := false
	position, err := t.handler.Handle(ctx, id, meta, func(s *State) commands.Result {
		if s.Issued.Token == "" {
			return commands.Refuse(ErrUnknownToken)
		}
		revoked = *s
		if isRevokedNow = s.RevokedAt.IsZero(); !isRevokedNow {
			return commands.Result{}
		}
		revoked.RevokedAt, revoked.RevokedBy = t.now().UTC().Truncate(time.Microsecond), meta.Actor
		return commands.Append(e)
	})
	t.openState(ctx, id, &revoked)
	if isRevokedNow && isOmitted {
		revoked.OmitsReason = true
	} else if isRevokedNow {
		revoked.Reason = reason
	}
	return revoked, position, err
}

// openState opens the label and the reason of a token that a command returns, or marks them as omitted.
func (t *Tokens) openState(ctx context.Context, id string, s *State) {
	var ok bool
	if s.Issued.Label, ok = t.handler.OpenAtOnce(ctx, id, s.Issued, s.Issued.Label); !ok {
		s.OmitsLabel = true
	}
	if s.Reason, ok = t.handler.OpenAtOnce(ctx, id, s.Issued, s.Reason); !ok {
		s.OmitsReason = true
	}
}
