package eventstore

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"lieudit/schemas/event"
)

// Vault keeps the data keys that personal fields are encrypted with, outside the log. It is safe for
// concurrent use.
type Vault interface {
	// Key is the subject's 32-byte data key. With create, which says that something will be sealed with it, it is
	// made, durably, when the subject never had one; otherwise a subject without a key is ErrNoKey. A subject whose
	// key was destroyed is ErrDestroyed. A vault that knows the log says *UnreadableError where a key cannot
	// be had, or does not open what the log holds, and the log does not say that the subject was erased.
	Key(ctx context.Context, subject string, create bool) ([]byte, error)
	// DestroyKey makes everything encrypted for the subject unreadable for good. Twice is once.
	DestroyKey(ctx context.Context, subject string) error
}

var (
	// ErrNoKey: there is no data key of the subject, and nothing says why.
	ErrNoKey = errors.New("no data key")
	// ErrDestroyed: the subject was erased, and its data key with it.
	ErrDestroyed = errors.New("data key was destroyed")
	// ErrUnreadable is what every *UnreadableError is.
	ErrUnreadable = errors.New("personal field is unreadable")
)

// errNotSealed: a personal field does not have the form of an encrypted one.
var errNotSealed = errors.New("personal field")

// sealedPrefix begins every encrypted value: base64 of nonce and AES-256-GCM follow, bound to the stream's name.
const sealedPrefix = "sealed.v1:"

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

// Unseal opens a personal value as it stands in the events of a stream, for who folded them sealed. The empty
// value is itself; one whose key was destroyed is "". It fails with an *UnreadableError as Decode does.
func (c *Codec) Unseal(ctx context.Context, stream string, p event.Personal) (event.Personal, error) {
	if p == "" {
		return "", nil
	}
	return c.unsealField(ctx, stream, p)
}

// DestroyKey makes the personal fields of a stream's events unreadable for good.
func (c *Codec) DestroyKey(ctx context.Context, stream string) error {
	return c.vault.DestroyKey(ctx, EntityID(stream))
}

func (c *Codec) unsealField(ctx context.Context, stream string, p event.Personal) (event.Personal, error) {
	box, err := parseSealedField(p)
	if err != nil {
		return "", err
	}
	subject := EntityID(stream)
	key, err := c.vault.Key(ctx, subject, false)
	switch {
	case errors.Is(err, ErrDestroyed):
		return "", nil
	case errors.Is(err, ErrUnreadable):
		return "", err
	case errors.Is(err, ErrNoKey):
		return "", &UnreadableError{subject, err}
	case err != nil:
		return "", fmt.Errorf("data key of %s: %w", stream, err)
	}
	plain, err := decryptBox(key, stream, box)
	if err != nil {
		err = &UnreadableError{subject, err}
	}
	return plain, err
}

// CanUnseal says whether a sealed field of a stream opens with a key.
func CanUnseal(key []byte, stream string, p event.Personal) bool {
	box, err := parseSealedField(p)
	if err == nil {
		_, err = decryptBox(key, stream, box)
	}
	return err == nil
}

// nonceSize is how many bytes of a box are its nonce.
const nonceSize = 12

// parseSealedField is what a personal field holds as it stands on the log: the nonce and what is sealed.
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
