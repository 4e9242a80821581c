package vault

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"errors"
	"fmt"
)

const keyLen = 32

// ParseMasterKey reads a master key as configuration holds it: 32 bytes in standard base64, "" for none.
func ParseMasterKey(text string) ([]byte, error) {
	if text == "" {
		return nil, nil
	}
	key, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(key) != keyLen {
		return nil, errors.New("the vault's master key is not 32 bytes in base64")
	}
	return key, nil
}

// wrapper encrypts keys with the master key. Without one it returns them unchanged. A stored key of keyLen bytes is in
// clear; a wrapped one is longer.
type wrapper struct{ aead cipher.AEAD }

func newWrapper(master []byte) (wrapper, error) {
	if master == nil {
		return wrapper{}, nil
	}
	if len(master) != keyLen {
		return wrapper{}, fmt.Errorf("the vault's master key has %d bytes, not %d", len(master), keyLen)
	}
	block, err := aes.NewCipher(master)
	if err != nil {
		return wrapper{}, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	return wrapper{aead}, err
}

func (w wrapper) seal(subject string, key []byte) []byte {
	if w.aead == nil {
		return key
	}
	return w.aead.Seal(nil, nil, key, []byte(subject))
}

func (w wrapper) open(subject string, stored []byte) ([]byte, error) {
	if len(stored) == keyLen {
		return stored, nil
	}
	if w.aead == nil {
		return nil, &wrappedError{subject, "needs the master key it was stored with"}
	}
	key, err := w.aead.Open(nil, nil, stored, []byte(subject))
	if err != nil || len(key) != keyLen {
		return nil, &wrappedError{subject, "does not open with this master key"}
	}
	return key, nil
}

// wrappedError says that a data key is stored, but cannot be decrypted with this master key.
type wrappedError struct{ subject, why string }

func (e *wrappedError) Error() string { return "the data key of " + e.subject + " " + e.why }

// proofSubject is the subject that a proof is encrypted for. No account can have this name.
const proofSubject = "\x00master key"

// proof returns a known text encrypted with the master key, which tells later whether a master key is the same one. It is
// empty without a master key.
func (w wrapper) proof() []byte {
	if w.aead == nil {
		return []byte{}
	}
	return w.seal(proofSubject, make([]byte, keyLen))
}

// opensProof reports whether a proof was made with this master key. An empty proof fits every master key.
func (w wrapper) opensProof(proof []byte) bool {
	if len(proof) == 0 {
		return true
	}
	_, err := w.open(proofSubject, proof)
	return err == nil
}
