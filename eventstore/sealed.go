package eventstore

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"

	"lieudit/schemas/event"
)

// Vault keeps the data keys of personal texts, outside the log. It is safe for concurrent use.
type Vault interface {
	// Key returns the subject's 32-byte data key. With create, for sealing, it durably makes one if the subject never had
	// one; without create that is ErrNoKey. A subject whose key was destroyed is ErrDestroyed. A vault that is bound to a log
	// returns an *UnreadableError if the key is missing or does not open what the log holds, and the log does not record an
	// erasure of the subject.
	Key(ctx context.Context, subject string, create bool) ([]byte, error)
	// DestroyKey makes everything sealed for the subject permanently unreadable. A second call changes nothing.
	DestroyKey(ctx context.Context, subject string) error
	// ForgetKeys makes the vault ask its database again for every key that it serves from memory, so that it learns at once
	// what other instances have destroyed.
	ForgetKeys()
}

var (
	// ErrNoKey: the vault has no data key of the subject and no record that it was destroyed.
	ErrNoKey = errors.New("no data key")
	// ErrDestroyed: the subject was erased together with its data key.
	ErrDestroyed = errors.New("data key was destroyed")
	// ErrUnreadable matches every *UnreadableError.
	ErrUnreadable = errors.New("personal field is unreadable")
)

// errNotSealed: a personal text on the log does not have the form of a sealed one.
var errNotSealed = errors.New("personal field")

const (
	// sealedPrefix begins every sealed text. Base64 of the nonce and of the AES-256-GCM ciphertext follows. The stream's name
	// is the additional data, so a text copied to another stream does not open there.
	sealedPrefix = "sealed.v1:"
	nonceSize    = 12
)

// sealField encrypts a personal text for a stream.
func sealField(key []byte, stream string, p event.Personal) (event.Personal, error) {
	aead, err := newAEAD(key)
	if err != nil {
		return "", err
	}
	nonce := make([]byte, aead.NonceSize())
	rand.Read(nonce) // never fails: the runtime ends the program first
	box := aead.Seal(nonce, nonce, []byte(p), []byte(stream))
	return event.Personal(sealedPrefix + base64.RawStdEncoding.EncodeToString(box)), nil
}

// subjectOf is the subject whose data key seals the personal texts of an event in a stream, and the reason in its envelope:
// the account whose stream it is, or the one that the event names. "" means that nothing in it can be sealed.
func subjectOf(stream string, e event.Event) string {
	if bound, ok := e.(event.AccountBound); ok {
		return bound.SealedFor()
	}
	switch category, id, _ := strings.Cut(stream, "-"); category {
	case "account", "locations", "sync":
		return id
	}
	return ""
}

// seal encrypts a personal text of a stream for a subject.
func (c *Codec) seal(ctx context.Context, stream, subject string, p event.Personal) (event.Personal, error) {
	if subject == "" {
		return "", fmt.Errorf("%w: %s is about no account", errNotSealed, stream)
	}
	key, err := c.vault.Key(ctx, subject, true)
	if err != nil {
		return "", fmt.Errorf("data key of %s: %w", subject, err)
	}
	return sealField(key, stream, p)
}

// sealReason seals the reason of an envelope for a subject, or returns it unchanged without a subject. If the subject is
// erased the reason is left out.
func (c *Codec) sealReason(ctx context.Context, stream, subject string, meta Metadata) (Metadata, error) {
	if subject == "" || meta.Reason == "" || meta.Actor == SystemActor {
		return meta, nil
	}
	sealed, err := c.seal(ctx, stream, subject, event.Personal(meta.Reason))
	if err != nil && !errors.Is(err, ErrDestroyed) {
		return meta, err
	}
	meta.Reason, meta.SealedReason = "", sealed
	return meta, nil
}

// SealReasonWithin is for commands that must not wait for the vault. It returns the envelope with its reason as Encode writes
// it for an event e of a stream, or without a reason if the vault does not give the key in time; ok is false if the reason is
// left out. An error means that the log could not be read.
func (c *Codec) SealReasonWithin(ctx context.Context, wait time.Duration, stream string, e event.Event, meta Metadata) (sealed Metadata, ok bool, err error) {
	sealsTexts, err := c.sealsTexts(ctx)
	if err != nil || !sealsTexts || meta.Reason == "" {
		return meta, true, err
	}
	waiting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	sealed, err = c.sealReason(waiting, stream, subjectOf(stream, e), meta)
	if err != nil {
		sealed.Reason = ""
	}
	return sealed, sealed.StoredReason() != "", nil
}

// Open decrypts a personal text of an event e in a stream, or the reason in its envelope, for folds that keep events as
// DecodeSealed returns them. An empty text stays empty, and one whose key was destroyed is "". Like Decode, it fails with an
// *UnreadableError.
func (c *Codec) Open(ctx context.Context, stream string, e event.Event, p event.Personal) (event.Personal, error) {
	if p == "" {
		return "", nil
	}
	return c.open(ctx, stream, subjectOf(stream, e), p)
}

// Unseal is Open for a stream whose events name no account other than the stream's own.
func (c *Codec) Unseal(ctx context.Context, stream string, p event.Personal) (event.Personal, error) {
	return c.Open(ctx, stream, nil, p)
}

// DeriveSecret derives 32 secret bytes for one use, which info names, from the data key of a stream's entity. They are the
// same on every instance, and gone with the key. It fails like sealing, with ErrDestroyed for an entity that was erased.
func (c *Codec) DeriveSecret(ctx context.Context, stream, info string) ([]byte, error) {
	key, err := c.vault.Key(ctx, EntityID(stream), true)
	if err != nil {
		return nil, fmt.Errorf("data key of %s: %w", EntityID(stream), err)
	}
	return hkdf.Key(sha256.New, key, nil, info, sha256.Size)
}

// DestroyKey makes the personal texts of a stream's entity permanently unreadable, in all its streams. If the key is already
// destroyed it costs one read.
func (c *Codec) DestroyKey(ctx context.Context, stream string) error {
	if _, err := c.vault.Key(ctx, EntityID(stream), false); errors.Is(err, ErrDestroyed) {
		return nil
	}
	return c.vault.DestroyKey(ctx, EntityID(stream))
}

// ForgetKeys makes the vault look up every key again, so that a key destroyed by another instance is not used from memory.
func (c *Codec) ForgetKeys() { c.vault.ForgetKeys() }

// open returns a personal text of a stream in clear, "" if the subject's key was destroyed. That includes a text that is on
// the log in clear: no reader may show it any more.
func (c *Codec) open(ctx context.Context, stream, subject string, p event.Personal) (event.Personal, error) {
	if text, ok := p.ClearText(); ok {
		return c.openClear(ctx, subject, text)
	}
	box, err := parseSealedField(p)
	if err != nil {
		return "", err
	}
	key, err := c.vault.Key(ctx, subject, false)
	switch {
	case errors.Is(err, ErrDestroyed):
		return "", nil
	case errors.Is(err, ErrUnreadable):
		return "", err
	case errors.Is(err, ErrNoKey):
		return "", &UnreadableError{subject, err}
	case err != nil:
		return "", fmt.Errorf("data key of %s: %w", subject, err)
	}
	plain, err := decryptBox(key, stream, box)
	if err != nil {
		err = &UnreadableError{subject, err}
	}
	return plain, err
}

// openClear returns a text that is on the log in clear, "" if the subject's key was destroyed. A key that is missing for
// another reason does not matter.
func (c *Codec) openClear(ctx context.Context, subject, text string) (event.Personal, error) {
	if subject == "" {
		return event.Personal(text), nil
	}
	_, err := c.vault.Key(ctx, subject, false)
	switch {
	case errors.Is(err, ErrDestroyed):
		return "", nil
	case err != nil && !errors.Is(err, ErrNoKey) && !errors.Is(err, ErrUnreadable):
		return "", fmt.Errorf("data key of %s: %w", subject, err)
	}
	return event.Personal(text), nil
}

// CanUnseal reports whether a sealed text of a stream opens with a key.
func CanUnseal(key []byte, stream string, p event.Personal) bool {
	box, err := parseSealedField(p)
	if err == nil {
		_, err = decryptBox(key, stream, box)
	}
	return err == nil
}

// parseSealedField returns the nonce and the ciphertext of a sealed text.
func parseSealedField(p event.Personal) ([]byte, error) {
	text, ok := strings.CutPrefix(string(p), sealedPrefix)
	if !ok {
		return nil, fmt.Errorf("%w: it is not encrypted", errNotSealed)
	}
	box, err := base64.RawStdEncoding.Strict().DecodeString(text)
	if err != nil || len(box) < nonceSize {
		return nil, fmt.Errorf("%w: it is cut", errNotSealed)
	}
	return box, nil
}

func decryptBox(key []byte, stream string, box []byte) (event.Personal, error) {
	aead, err := newAEAD(key)
	if err != nil {
		return "", err
	}
	plain, err := aead.Open(nil, box[:nonceSize], box[nonceSize:], []byte(stream))
	if err != nil {
		return "", errors.New("the key does not open the field")
	}
	return event.Personal(plain), nil
}

func newAEAD(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}
