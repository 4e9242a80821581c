package account

import (
	"context"
	"slices"

	"lieudit/commands"
	"lieudit/eventstore"
	"lieudit/schemas/event"
	"lieudit/schemas/origin"
	"lieudit/schemas/plan"
	"lieudit/schemas/token"
)

// Issue is the wish for a key. Origins are for a publishable key only, which must have some.
type Issue struct {
	Kind    token.Kind
	Label   string
	Origins []string // as typed
}

// Issued is a new key with its token in clear, which nobody can ask for again if it is secret.
type Issued struct {
	Key
	Clear    string
	Position eventstore.Position
}

// IssueKey makes a key. A publishable one needs a free slot of the plan and origins that obey the rules.
func (a *Accounts) IssueKey(ctx context.Context, id string, in commands.Intent, i Issue) (Issued, error) {
	limit, err := a.PlanOf(ctx, id)
	if err != nil {
		return Issued{}, err
	}
	made := a.mint(in, i)
	made.Position, err = a.do(ctx, id, in, func(s *State) commands.Result {
		var result commands.Result
		result, made.Origins = issue(s, made.Key, i.Origins, limit)
		return result
	})
	return made, err
}

// mint makes a key that nobody has been given yet.
func (a *Accounts) mint(in commands.Intent, i Issue) Issued {
	text := a.tokens.New(i.Kind)
	hash := token.HashOf(text)
	k := Key{ID: newID(), Label: i.Label, Hint: a.tokens.Hint(text), Kind: i.Kind, Hash: hash[:],
		IssuedAt: a.stamp(), IssuedBy: in.Actor}
	if k.Kind == token.Publishable {
		k.Token = text
	}
	return Issued{Key: k, Clear: text}
}

func issue(s *State, k Key, typed []string, limit plan.Plan) (commands.Result, []string) {
	action := "issue-" + string(k.Kind) + "-key"
	if s.Closed() {
		return refuse(action, ErrClosed), nil
	}
	if k.Kind == token.Secret {
		return commands.Append(event.SecretKeyIssued{Key: k.ID, Label: k.Label, Hash: k.Hash, Hint: k.Hint}), nil
	}
	origins, err := origin.Normalize(typed)
	if err == nil && s.activePublishable() >= limit.PublishableKeys {
		err = &KeyCapError{Cap: limit.PublishableKeys, Active: s.activePublishable()}
	}
	if err != nil {
		return refuse(action, err), nil
	}
	return commands.Append(event.PublishableKeyIssued{
		Key: k.ID, Label: k.Label, Hash: k.Hash, Hint: k.Hint, Token: k.Token, Origins: origins,
	}), origins
}

// RevokeKey ends a key for good. Twice is once.
func (a *Accounts) RevokeKey(ctx context.Context, id string, in commands.Intent, key string) (Key, eventstore.Position, error) {
	var ended Key
	at, err := a.do(ctx, id, in, func(s *State) commands.Result {
		result := revoke(s, key)
		if result.Err() == nil {
			ended = *s.Keys[key]
		}
		if len(result.Events()) > 0 {
			ended.RevokedAt, ended.RevokedBy, ended.Reason = a.stamp(), in.Actor, in.Reason
		}
		return result
	})
	return ended, at, err
}

func revoke(s *State, key string) commands.Result {
	k, ok := s.Keys[key]
	if !ok {
		return commands.Refuse(ErrUnknownKey)
	}
	if !k.Active() {
		return commands.Result{}
	}
	return commands.Append(event.KeyRevoked{Key: k.ID, Hint: k.Hint, Hash: k.Hash})
}

// ChangeOrigins replaces the origins of a publishable key; the key stays the same. The same origins again
// change nothing.
func (a *Accounts) ChangeOrigins(ctx context.Context, id string, in commands.Intent, key string, typed []string) (Key, eventstore.Position, error) {
	var changed Key
	at, err := a.do(ctx, id, in, func(s *State) commands.Result {
		var result commands.Result
		result, changed = changeOrigins(s, key, typed)
		return result
	})
	return changed, at, err
}

func changeOrigins(s *State, key string, typed []string) (commands.Result, Key) {
	const action = "change-origins"
	k, ok := s.Keys[key]
	if !ok {
		return commands.Refuse(ErrUnknownKey), Key{}
	}
	origins, err := allowed(s, k, typed)
	if err != nil {
		return refuse(action, err), Key{}
	}
	changed := *k
	changed.Origins = origins
	if slices.Equal(k.Origins, origins) {
		return commands.Result{}, changed
	}
	return commands.Append(event.KeyOriginsChanged{Key: k.ID, Hash: k.Hash, Before: k.Origins, Origins: origins}), changed
}

func allowed(s *State, k *Key, typed []string) ([]string, error) {
	switch {
	case s.Closed():
		return nil, ErrClosed
	case k.Kind != token.Publishable:
		return nil, ErrSecretNoOrigins
	case !k.Active():
		return nil, ErrKeyRevoked
	}
	return origin.Normalize(typed)
}
