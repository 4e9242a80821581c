package account

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"time"

	"github.com/google/uuid"

	"lieudit/commands"
	"lieudit/eventstore"
	"lieudit/schemas/event"
	"lieudit/schemas/origin"
	"lieudit/schemas/refusal"
	"lieudit/schemas/token"
)

// This file issues keys. The token of a secret key is kept nowhere, yet a request that is sent again must get it again: the
// client may have lost the first answer. So the id of the key of such a request, and its token, are derived and not random:
//
//	data key of the account ── HKDF ──> secret ── HMAC(actor, idempotency key, n) ──> id of the key
//	                                       └───── HMAC(the same, the request) ──────> token
//
// A decision that finds the id on the stream compares the hash of the token: the same hash is the same request, and another
// one is another request with the same idempotency key. Once a key is older than repeatLifetime its id is no longer looked at
// and n counts on. So there is one event for many requests, on any number of instances, and no secret on the log.

// KeyRequest describes the key to issue. A publishable key must have origins; a secret key has none.
type KeyRequest struct {
	Kind     token.Kind
	Label    string
	Origins  []string // as the customer typed them
	Replaces string   // the id of the key whose place it takes, or ""

	// IdempotencyKey is the client's name for the request. The same request by the same actor with the same name gets the same
	// key for repeatLifetime. Without a name each request gets a key of its own.
	IdempotencyKey string
}

// repeatLifetime is how long a request can be sent again.
const repeatLifetime = 24 * time.Hour

// IssuedKey is a new key with its token in clear. The token of a secret key cannot be read again later.
type IssuedKey struct {
	Key
	Plaintext string
	Position  eventstore.Position
}

var (
	// ErrReplacesUnknownKey: the key that is to be replaced is not one of the account's.
	ErrReplacesUnknownKey = errors.New("no such key to replace")
	// ErrReplacesOtherKind: a key takes the place of one of its own kind only.
	ErrReplacesOtherKind = errors.New("key to replace is of the other kind")
)

// IssueKey issues a key. A publishable key is refused with an error of package origin if its origins break a rule, and with
// refusal.KeysOverCapacity if the plan's keys are all in use. A closed account is refused with refusal.AccountClosed, and a
// sub-client of a closed agency with refusal.AgencyClosed: its keys would not work. Refusals are recorded.
//
// A request that is sent again returns the key as it is by then. It is refused with refusal.IdempotencyMismatch if it is another
// request with the same idempotency key, and with refusal.KeyRevoked once the key is revoked.
//
// A rotation is refused with refusal.KeyRevoked or refusal.KeyReplaced for an old key that is revoked, or that a valid key
// replaces already, and with refusal.UpgradeUnfinished while the log's format is below event.SessionsFormat.
func (a *Accounts) IssueKey(ctx context.Context, id string, meta commands.Metadata, req KeyRequest) (IssuedKey, error) {
	if err := a.requireRotations(ctx, req); err != nil {
		return IssuedKey{}, err
	}
	generate, err := a.newKeyGenerator(ctx, id, meta, req)
	if err != nil {
		return IssuedKey{}, err
	}
	var issued IssuedKey
	position, err := a.handleExisting(ctx, id, meta, func(s *State, agency agencyState) commands.Result {
		issued = generate(s)
		var result commands.Result
		result, issued.Origins = issueKey(s, issued.Key, req.Origins, agency, a.logTime())
		return result
	})
	issued.Position = position
	if err == nil && req.IdempotencyKey != "" { // the answer to a repeated request has the log's time, and so must the first
		err = a.handler.View(ctx, id, func(s *State) {
			if k, ok := s.Keys[issued.ID]; ok {
				issued.IssuedAt, issued.IssuedBy, issued.Origins = k.IssuedAt, k.IssuedBy, k.Origins
			}
		})
	}
	return issued, err
}

// requireRotations fails with refusal.UpgradeUnfinished for a rotation while programs that know none may run on the log.
func (a *Accounts) requireRotations(ctx context.Context, req KeyRequest) error {
	if req.Replaces == "" {
		return nil
	}
	hasFormat, err := a.codec.HasFormat(ctx, event.SessionsFormat)
	if err == nil && !hasFormat {
		err = refusal.UpgradeUnfinished
	}
	return err
}

// keyGenerator makes the key of a request. It is pure: on the same state it makes the same one.
type keyGenerator func(*State) IssuedKey

// newKeyGenerator returns a generator of a random key, or of the one that follows from the idempotency key. It fails without the
// data key of the account, which sealing the label needs anyway. An erased account has none: what its generator makes is refused.
func (a *Accounts) newKeyGenerator(ctx context.Context, id string, meta commands.Metadata, req KeyRequest) (keyGenerator, error) {
	random := a.newKey(meta, req, newID(), a.tokens.New(req.Kind))
	generateRandom := func(*State) IssuedKey { return random }
	if req.IdempotencyKey == "" {
		return generateRandom, nil
	}
	if err := a.CheckExists(ctx, id); err != nil { // the vault makes no key for an account that is not there
		return nil, err
	}
	secret, err := a.codec.DeriveSecret(ctx, Aggregate.Category+"-"+id, "lieudit: tokens of repeated requests")
	if errors.Is(err, eventstore.ErrDestroyed) {
		return generateRandom, nil
	}
	if err != nil {
		return nil, err
	}
	now := a.logTime()
	return func(s *State) IssuedKey {
		for n := 0; ; n++ {
			keyID := req.deriveID(secret, meta.Actor, n)
			if k, ok := s.Keys[keyID]; !ok || now.Sub(k.IssuedAt) < repeatLifetime {
				return a.newKey(meta, req, keyID, a.tokens.Derive(req.Kind, req.deriveTokenSecret(secret, meta.Actor, n)))
			}
		}
	}, nil
}

// deriveID is the id of the n-th key that is issued under an idempotency key. It is of UUID version 8, whose bits are the
// program's own.
func (r KeyRequest) deriveID(secret []byte, actor string, n int) string {
	var id uuid.UUID
	copy(id[:], authenticate(secret, "id", actor, r.IdempotencyKey, n))
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80
	return id.String()
}

// deriveTokenSecret is what the token of the n-th key follows from. Another request has another one.
func (r KeyRequest) deriveTokenSecret(secret []byte, actor string, n int) []byte {
	return authenticate(secret, "token", actor, r.IdempotencyKey, n, r.Kind, r.Label, r.Origins, r.Replaces)
}

// authenticate is the HMAC-SHA-256 of values. JSON keeps them apart.
func authenticate(secret []byte, values ...any) []byte {
	text, _ := json.Marshal(values) // strings and numbers
	mac := hmac.New(sha256.New, secret)
	mac.Write(text)
	return mac.Sum(nil)
}

// newKey makes a key of its id and token. Nothing is recorded yet.
func (a *Accounts) newKey(meta commands.Metadata, req KeyRequest, id, plaintext string) IssuedKey {
	hash := token.HashOf(plaintext)
	k := Key{ID: id, Label: event.Personal(req.Label), Hint: a.tokens.Hint(plaintext), Kind: req.Kind, Hash: hash[:],
		IssuedAt: a.logTime(), IssuedBy: meta.Actor, Replaces: req.Replaces}
	if k.Kind == token.Publishable {
		k.Token = plaintext
	}
	return IssuedKey{Key: k, Plaintext: plaintext}
}

// issueKey decides on a key that was generated before, since decisions are pure and may be repeated. It returns the events and,
// for a publishable key, the origins in their canonical form. agency is the agency that the account is a sub-client of now.
func issueKey(s *State, k Key, rawOrigins []string, agency agencyState, now time.Time) (commands.Result, []string) {
	action := "issue-" + string(k.Kind) + "-key"
	switch {
	case s.Closed():
		return refuseAndRecord(action, refusal.AccountClosed), nil
	case !agency.closed.IsZero():
		return refuseAndRecord(action, refusal.AgencyClosed), nil
	}
	if known, ok := s.Keys[k.ID]; ok {
		return repeatIssue(known, k), known.Origins
	}
	rotation, err := startRotation(s, k)
	if err != nil {
		return refuseRotation(action, err), nil
	}
	if k.Kind == token.Secret {
		return commands.Append(append([]event.Event{event.SecretKeyIssued{Key: k.ID, Label: k.Label, Hash: k.Hash, Hint: k.Hint}}, rotation...)...), nil
	}
	origins, err := origin.ParseList(rawOrigins)
	limit := s.planAt(now, agency)
	if err == nil && s.countActivePublishableKeys() >= limit.MaxPublishableKeys {
		err = refusal.KeysOverCapacity.With(refusal.Details{Ceiling: limit.MaxPublishableKeys, Active: s.countActivePublishableKeys()})
	}
	if err != nil {
		return refuseAndRecord(action, err), nil
	}
	return commands.Append(append([]event.Event{event.PublishableKeyIssued{
		Key: k.ID, Label: k.Label, Hash: k.Hash, Hint: k.Hint, Token: k.Token, Origins: origins,
	}}, rotation...)...), origins
}

// repeatIssue decides on a request whose key is known. It changes nothing.
func repeatIssue(known *Key, k Key) commands.Result {
	switch {
	case !bytes.Equal(known.Hash, k.Hash):
		return commands.Refuse(refusal.IdempotencyMismatch)
	case !known.Active():
		return commands.Refuse(refusal.KeyRevoked)
	}
	return commands.Result{}
}

// startRotation is the event of a key that takes the place of another one, or the reason why it must not. A key replaces no more
// than one, and one key is replaced by no more than one valid key.
func startRotation(s *State, k Key) ([]event.Event, error) {
	if k.Replaces == "" {
		return nil, nil
	}
	old, ok := s.Keys[k.Replaces]
	switch {
	case !ok:
		return nil, ErrReplacesUnknownKey
	case old.Kind != k.Kind:
		return nil, ErrReplacesOtherKind
	case !old.Active():
		return nil, refusal.KeyRevoked
	}
	if other := s.replacementOf(old.ID); other != "" {
		return nil, refusal.KeyReplaced.With(refusal.Details{Typed: other})
	}
	return []event.Event{event.KeyRotationStarted{Key: k.ID, Replaces: old.ID}}, nil
}

// refuseRotation records a refusal of the rules, but not a request that is wrong in itself.
func refuseRotation(action string, err error) commands.Result {
	if errors.Is(err, ErrReplacesUnknownKey) || errors.Is(err, ErrReplacesOtherKind) {
		return commands.Refuse(err)
	}
	return refuseAndRecord(action, err)
}
