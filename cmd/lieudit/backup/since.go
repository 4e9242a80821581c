package backup

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

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
	Ended   int `json:"sessions_terminees"` // unused links among them
	Unknown int `json:"inconnus"`           // on the newer log alone: opened or issued after the copy, so there is nothing to repeat
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

// isNothing reports whether nothing was erased and revoked.
func (s Since) isNothing() bool {
	return s.Log == "" && len(s.Erased)+len(s.Keys)+len(s.Tokens) == 0
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

// endSessions ends all sessions and links of a restored log, unless nothing happened since the copy: which of them were ended or used
// since is known only of a newer log that can be read whole, and people can come in again.
func (r *repetition) endSessions(ctx context.Context, log eventstore.Store) error {
	holders, err := listSessionHolders(ctx, log)
	if err != nil {
		return fmt.Errorf("listing the sessions: %w", err)
	}
	for _, id := range slices.Sorted(maps.Keys(holders)) {
		ended, _, err := r.tokens.CloseAllSessions(ctx, restoreMetadata, id)
		if err != nil {
			return fmt.Errorf("ending the sessions of token %s: %w", id, err)
		}
		r.applied.Ended += ended
	}
	return nil
}

// listSessionHolders reads from the log the ids of the tokens that have had a session or a link and are not revoked.
func listSessionHolders(ctx context.Context, log eventstore.Store) (map[string]bool, error) {
	holders := map[string]bool{}
	for s, err := range log.ReadAll(ctx, eventstore.Checkpoint{}, eventstore.Filter{areatoken.Aggregate.Category}) {
		if err != nil {
			return nil, err
		}
		if s.Kind != eventstore.EventAppeared {
			continue
		}
		id := eventstore.EntityID(s.Event.Stream)
		switch s.Event.Type {
		case event.SessionLinkIssued{}.EventType(), event.SessionOpened{}.EventType():
			holders[id] = true
		case event.TokenRevoked{}.EventType():
			delete(holders, id)
		}
	}
	return holders, nil
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
