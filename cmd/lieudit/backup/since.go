package backup

import (
	"context"
	"errors"
	"fmt"

	"lieudit/commands"
	"lieudit/commands/account"
	"lieudit/commands/areatoken"
	"lieudit/eventstore"
	"lieudit/eventstore/vault"
	"lieudit/schemas/event"
	"lieudit/schemas/refusal"
)

// Since names what was erased and revoked after a copy was taken, which a restore would otherwise bring back.
type Since struct {
	Log    string   // folder of the newer log or its remains, or a data folder; "" if there is none
	Erased []string // accounts
	Keys   []KeyName
	Tokens []string // customer-area tokens, by their ids
}

// KeyName names an API key.
type KeyName struct{ Account, Key string }

func (k KeyName) String() string { return k.Account + "/" + k.Key }

// Applied counts what a restore has repeated on the restored log.
type Applied struct {
	Closed  int `json:"fermes"`
	Erased  int `json:"effaces"`
	Keys    int `json:"cles_revoquees"`
	Tokens  int `json:"jetons_revoques"`
	Unknown int `json:"inconnus"` // on the newer log alone: opened or issued after the copy, so there is nothing to repeat
}

// UnknownError means that an account, key or token that an operator named is not on the restored log.
type UnknownError struct{ Noun, Name string }

func (e *UnknownError) Error() string {
	return fmt.Sprintf("the backup holds no %s %s: what was made after the copy is not in it, and needs no mention", e.Noun, e.Name)
}

// restoreMetadata is the author of what a restore repeats, for the audit.
var restoreMetadata = commands.Metadata{Actor: eventstore.SystemActor, Reason: "restored backup"}

// repeated is one command that a restore repeats.
type repeated struct {
	kind    string // the type of the event
	account string // "" for a token
	id      string // of the key or the token
	isNamed bool   // an operator named it, so it must be on the log
}

// list returns the commands that an operator asked for. An erased account is closed first: only a closed one can be erased.
func (s Since) list() (all []repeated) {
	for _, id := range s.Erased {
		all = append(all, repeated{event.AccountErased{}.EventType(), id, "", true})
	}
	for _, k := range s.Keys {
		all = append(all, repeated{event.KeyRevoked{}.EventType(), k.Account, k.Key, true})
	}
	for _, id := range s.Tokens {
		all = append(all, repeated{event.TokenRevoked{}.EventType(), "", id, true})
	}
	return all
}

// listDestroyed lists the accounts whose keys are destroyed in the copied vault although the copied log holds no erasure: they were
// erased while the backup was being made.
func listDestroyed(ctx context.Context, log eventstore.Store, vaultPath string) (all []repeated, err error) {
	subjects, err := vault.DestroyedSubjects(ctx, vaultPath)
	if err != nil {
		return nil, err
	}
	for _, id := range subjects {
		isErased, err := holdsErasure(ctx, log, id)
		if err != nil {
			return nil, err
		}
		if !isErased {
			all = append(all, repeated{kind: event.AccountErased{}.EventType(), account: id})
		}
	}
	return all, nil
}

func holdsErasure(ctx context.Context, log eventstore.Store, id string) (bool, error) {
	for e, err := range log.ReadStream(ctx, account.Aggregate.Category+"-"+id, 0, eventstore.Forward) {
		if err != nil || e.Type == (event.AccountErased{}).EventType() {
			return err == nil, err
		}
	}
	return false, nil
}

// repetition repeats commands on a restored log.
type repetition struct {
	accounts *account.Accounts
	tokens   *areatoken.Tokens
	applied  Applied
}

func newRepetition(log eventstore.Store, codec *eventstore.Codec, t Target) *repetition {
	return &repetition{accounts: account.New(log, codec, t.TokenPrefixes, t.Now), tokens: areatoken.New(log, codec, t.TokenPrefixes, t.Now)}
}

// repeatAll repeats commands in order. It counts those whose subject is not on the log; if an operator named it, the error is an
// *UnknownError.
func (r *repetition) repeatAll(ctx context.Context, all []repeated) error {
	for _, c := range all {
		count, err := r.repeat(ctx, c)
		switch {
		case err == nil:
			*count++
		case errors.Is(err, refusal.NotFound) && c.isNamed:
			return c.unknownError()
		case errors.Is(err, refusal.NotFound):
			r.applied.Unknown++
		default:
			return err
		}
	}
	return nil
}

// repeat repeats one command, and returns the count to increment.
func (r *repetition) repeat(ctx context.Context, c repeated) (count *int, err error) {
	switch c.kind {
	case event.AccountClosed{}.EventType():
		_, _, err = r.accounts.CloseAccount(ctx, c.account, restoreMetadata)
		return &r.applied.Closed, err
	case event.AccountErased{}.EventType():
		if _, _, err = r.accounts.CloseAccount(ctx, c.account, restoreMetadata); err == nil {
			_, err = r.accounts.EraseAccount(ctx, c.account, restoreMetadata)
		}
		return &r.applied.Erased, err
	case event.KeyRevoked{}.EventType():
		_, _, err = r.accounts.RevokeKey(ctx, c.account, restoreMetadata, c.id)
		return &r.applied.Keys, err
	}
	_, _, err = r.tokens.Revoke(ctx, restoreMetadata, c.id)
	return &r.applied.Tokens, err
}

func (c repeated) unknownError() error {
	switch {
	case c.account == "":
		return &UnknownError{"token", c.id}
	case c.id == "":
		return &UnknownError{"account", c.account}
	}
	return &UnknownError{"key", KeyName{c.account, c.id}.String()}
}
