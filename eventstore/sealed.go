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

// Vault keeps the data keys of personal texts, outside the log. It is safe for concurrent use.
type Vault interface {
	// Key returns the subject's 32-byte data key. With create, for sealing, it makes one, durably, when the subject never had
	// one; without create that is ErrNoKey. A subject whose key was destroyed is ErrDestroyed. A vault that is bound to a log
	// returns an *UnreadableError when the key is missing, or does not open what the log holds, and the log holds no erasure
	// of the subject.
	Key(ctx context.Context, subject string, create bool) ([]byte, error)
	// DestroyKey makes everything that is sealed for the subject unreadable for good. A second call changes nothing.
	DestroyKey(ctx context.Context, subject string) error
}

var (
	// ErrNoKey: the vault has no data key of the subject and no record that it was destroyed.
	ErrNoKey = errors.New("no data key")
	// ErrDestroyed: the subject was erased, and its data key with it.
	ErrDestroyed = errors.New("data key was destroyed")
	// ErrUnreadable matches every *UnreadableError.
	ErrUnreadable = errors.New("personal field is unreadable")
)

// errNotSealed: a personal text on the log does not have the form of a sealed one.
var errNotSealed = errors.New("personal field")

const (
	// sealedPrefix begins every sealed text. Base64 of the nonce and of the AES-256-GCM ciphertext follows. The stream's name
	// is the additional data, so a text that was copied to another stream does not open there.
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

// Unseal decrypts one personal text of a stream, for folds that keep events as DecodeSealed returns them. An empty text
// stays empty, and one whose key was destroyed is "". It fails with an *UnreadableError as Decode does.
func (c *Codec) Unseal(ctx context.Context, stream string, p event.Personal) (event.Personal, error) {
	if p == "" {
		return "", nil
	}
	return c.unsealField(ctx, stream, p)
}

// DestroyKey makes the personal texts of a stream's entity unreadable for good, in all its streams.
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

// CanUnseal says whether a sealed text of a stream opens with a key.
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
