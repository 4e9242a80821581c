package account

import (
	"cmp"
	"context"
	"slices"
	"time"

	"lieudit/commands"
	"lieudit/eventstore"
	"lieudit/schemas/event"
	"lieudit/schemas/origin"
	"lieudit/schemas/plan"
	"lieudit/schemas/refusal"
	"lieudit/schemas/token"
)

// planAt returns the plan that limits the account: its agency's plan, for a sub-client.
func (s *State) planAt(now time.Time, agency agencyState) plan.Plan {
	name := s.Terms.At(now).Plan
	if agency.exists {
		name = agency.plan
	}
	p, _ := plan.Lookup(name)
	return p
}

// RevokeKey ends a key permanently and returns it as revoked. It is idempotent, and also works on a closed account. An unknown
// key is refused with ErrUnknownKey. RevokeKey does not wait for the vault: without it the key is revoked without its reason,
// and returned without the texts that the vault would open. The reason is also left out if the account is erased: SealReason
// may have sealed it with a data key in memory, but nobody can open it.
func (a *Accounts) RevokeKey(ctx context.Context, id string, meta commands.Metadata, key string) (Key, eventstore.Position, error) {
	var revoked Key
	reason := event.Personal(meta.Reason)
	meta, isOmitted, err := a.handler.SealReason(ctx, id, meta, event.KeyRevoked{})
	if err != nil {
		return Key{}, 0, err
	}
	isRevokedNow := false
	position, err := a.handleAlone(ctx, id, meta, func(s *State) commands.Result {
		result := revokeKey(s, key)
		if result.Err() == nil {
			revoked = *s.Keys[key]
			isOmitted = isOmitted || s.Erased
		}
		if isRevokedNow = len(result.Events()) > 0; isRevokedNow {
			revoked.RevokedAt, revoked.RevokedBy = a.logTime(), meta.Actor
		}
		return result
	})
	a.openKey(ctx, id, &revoked)
	if isRevokedNow && isOmitted {
		revoked.OmitsReason = true
	} else if isRevokedNow {
		revoked.Reason = reason
	}
	return revoked, position, err
}

// FindKey returns a key as its stream has it, with its texts in clear; without the vault it marks them as omitted. replacedBy is the
// id of the valid key that takes its place, or "". FindKey fails with ErrUnknownAccount or ErrUnknownKey.
func (a *Accounts) FindKey(ctx context.Context, id, key string) (found Key, replacedBy string, err error) {
	found, err = a.viewKey(ctx, id, key, func(s *State) { replacedBy = s.replacementOf(key) })
	if err != nil {
		return Key{}, "", err
	}
	a.openKey(ctx, id, &found)
	return found, replacedBy, nil
}

// replacementOf is the id of the valid key that takes the place of another one, or "".
func (s *State) replacementOf(key string) string {
	for _, k := range s.Keys {
		if k.Replaces == key && k.Active() {
			return k.ID
		}
	}
	return ""
}

// viewKey returns a key with its texts sealed, and calls read with the state that has it.
func (a *Accounts) viewKey(ctx context.Context, id, key string, read func(*State)) (found Key, err error) {
	viewErr := a.handler.View(ctx, id, func(s *State) {
		k, ok := s.Keys[key]
		switch {
		case !s.Exists():
			err = ErrUnknownAccount
		case !ok:
			err = ErrUnknownKey
		default:
			found = *k
			read(s)
		}
	})
	return found, cmp.Or(viewErr, err)
}

// OriginsOf returns the origins of a publishable key that can be used. It fails as ChangeOrigins does.
func (a *Accounts) OriginsOf(ctx context.Context, id, key string) ([]string, error) {
	var isClosed bool
	k, err := a.viewKey(ctx, id, key, func(s *State) { isClosed = s.Closed() })
	if err == nil {
		err = checkHasOrigins(isClosed, &k)
	}
	return k.Origins, err
}

// openKey opens the label and the reason of a key that a command returns, or marks them as omitted.
func (a *Accounts) openKey(ctx context.Context, id string, k *Key) {
	var ok bool
	if k.Label, ok = a.handler.OpenAtOnce(ctx, id, event.SecretKeyIssued{}, k.Label); !ok {
		k.OmitsLabel = true
	}
	if k.Reason, ok = a.handler.OpenAtOnce(ctx, id, event.KeyRevoked{}, k.Reason); !ok {
		k.OmitsReason = true
	}
}

// revokeKey does not check whether the account is closed: a leaked key must be revocable at any time.
func revokeKey(s *State, key string) commands.Result {
	k, ok := s.Keys[key]
	if !ok {
		return commands.Refuse(ErrUnknownKey)
	}
	if !k.Active() {
		return commands.Result{}
	}
	return commands.Append(event.KeyRevoked{Key: k.ID, Hint: k.Hint, Hash: k.Hash})
}

// ChangeOrigins replaces the origins of a publishable key and returns the changed key; its token stays the same. Without the
// vault the key is returned without its label. Origins that the key already has change nothing. It is refused with
// ErrUnknownKey, refusal.AccountClosed, refusal.OriginsOnSecretKey, refusal.KeyRevoked or an error of package origin.
func (a *Accounts) ChangeOrigins(ctx context.Context, id string, meta commands.Metadata, key string, rawOrigins []string) (Key, eventstore.Position, error) {
	var changed Key
	position, err := a.handleAlone(ctx, id, meta, func(s *State) commands.Result {
		var result commands.Result
		result, changed = changeOrigins(s, key, rawOrigins)
		return result
	})
	a.openKey(ctx, id, &changed)
	return changed, position, err
}

// changeOrigins returns the key after the change. An unknown key is refused without a record, unlike other refusals.
func changeOrigins(s *State, key string, rawOrigins []string) (commands.Result, Key) {
	const action = "change-origins"
	k, ok := s.Keys[key]
	if !ok {
		return commands.Refuse(ErrUnknownKey), Key{}
	}
	origins, err := resolveOrigins(s, k, rawOrigins)
	if err != nil {
		return refuseAndRecord(action, err), Key{}
	}
	changed := *k
	changed.Origins = origins
	if slices.Equal(k.Origins, origins) {
		return commands.Result{}, changed
	}
	return commands.Append(event.KeyOriginsChanged{Key: k.ID, Hash: k.Hash, Before: k.Origins, Origins: origins}), changed
}

// resolveOrigins parses the new origins of a key, or returns why the key cannot have any.
func resolveOrigins(s *State, k *Key, rawOrigins []string) ([]string, error) {
	if err := checkHasOrigins(s.Closed(), k); err != nil {
		return nil, err
	}
	return origin.ParseList(rawOrigins)
}

// checkHasOrigins refuses a key whose origins admit nobody.
func checkHasOrigins(isClosed bool, k *Key) error {
	switch {
	case isClosed:
		return refusal.AccountClosed
	case k.Kind != token.Publishable:
		return refusal.OriginsOnSecretKey
	case !k.Active():
		return refusal.KeyRevoked
	}
	return nil
}
