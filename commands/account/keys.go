package account

import (
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

// KeyRequest describes the key to issue. A publishable key must have origins; a secret key has none.
type KeyRequest struct {
	Kind    token.Kind
	Label   string
	Origins []string // as the customer typed them
}

// IssuedKey is a new key with its token in clear. The token of a secret key cannot be read again later.
type IssuedKey struct {
	Key
	Plaintext string
	Position  eventstore.Position
}

// IssueKey issues a key. A publishable key is refused with an error of package origin if its origins break a rule, and with
// refusal.KeysOverCapacity if the plan's keys are all in use. A closed account is refused with refusal.AccountClosed, and a
// sub-client of a closed agency with refusal.AgencyClosed: its keys would not work. Refusals are recorded.
func (a *Accounts) IssueKey(ctx context.Context, id string, meta commands.Metadata, req KeyRequest) (IssuedKey, error) {
	generated := a.generateKey(meta, req)
	var err error
	generated.Position, err = a.handleExisting(ctx, id, meta, func(s *State, agency agencyState) commands.Result {
		var result commands.Result
		result, generated.Origins = issueKey(s, generated.Key, req.Origins, agency, a.logTime())
		return result
	})
	return generated, err
}

// planAt returns the plan that limits the account: its agency's plan, for a sub-client.
func (s *State) planAt(now time.Time, agency agencyState) plan.Plan {
	name := s.Terms.At(now).Plan
	if agency.exists {
		name = agency.plan
	}
	p, _ := plan.Lookup(name)
	return p
}

// generateKey makes a key and its token. Nothing is recorded yet.
func (a *Accounts) generateKey(meta commands.Metadata, req KeyRequest) IssuedKey {
	plaintext := a.tokens.New(req.Kind)
	hash := token.HashOf(plaintext)
	k := Key{ID: newID(), Label: event.Personal(req.Label), Hint: a.tokens.Hint(plaintext), Kind: req.Kind, Hash: hash[:],
		IssuedAt: a.logTime(), IssuedBy: meta.Actor}
	if k.Kind == token.Publishable {
		k.Token = plaintext
	}
	return IssuedKey{Key: k, Plaintext: plaintext}
}

// issueKey decides on a key that was generated before, since decisions are pure and may be repeated. It returns the event and,
// for a publishable key, the origins in their canonical form. agency is the agency that the account is a sub-client of now.
func issueKey(s *State, k Key, rawOrigins []string, agency agencyState, now time.Time) (commands.Result, []string) {
	action := "issue-" + string(k.Kind) + "-key"
	switch {
	case s.Closed():
		return refuseAndRecord(action, refusal.AccountClosed), nil
	case !agency.closed.IsZero():
		return refuseAndRecord(action, refusal.AgencyClosed), nil
	}
	if k.Kind == token.Secret {
		return commands.Append(event.SecretKeyIssued{Key: k.ID, Label: k.Label, Hash: k.Hash, Hint: k.Hint}), nil
	}
	origins, err := origin.ParseList(rawOrigins)
	limit := s.planAt(now, agency)
	if err == nil && s.countActivePublishableKeys() >= limit.MaxPublishableKeys {
		err = refusal.KeysOverCapacity.With(refusal.Details{Ceiling: limit.MaxPublishableKeys, Active: s.countActivePublishableKeys()})
	}
	if err != nil {
		return refuseAndRecord(action, err), nil
	}
	return commands.Append(event.PublishableKeyIssued{
		Key: k.ID, Label: k.Label, Hash: k.Hash, Hint: k.Hint, Token: k.Token, Origins: origins,
	}), origins
}

// RevokeKey ends a key permanently and returns it as revoked. It is idempotent, and also works on a closed account. An unknown
// key is refused with ErrUnknownKey. RevokeKey does not wait for the vault: without it the key is revoked without its reason,
// and returned without the texts that the vault would open.
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
	switch {
	case s.Closed():
		return nil, refusal.AccountClosed
	case k.Kind != token.Publishable:
		return nil, refusal.OriginsOnSecretKey
	case !k.Active():
		return nil, refusal.KeyRevoked
	}
	return origin.ParseList(rawOrigins)
}
