package vault

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"errors"
	"fmt"
)

const keyLen = 32

// ParseMaster reads a master key as configuration holds it: 32 bytes in standard base64, "" for none.
func ParseMaster(text string) ([]byte, error) {
	if text == "" {
		return nil, nil
	}
	master, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(master) != keyLen {
		return nil, errors.New("the vault's master key is not 32 bytes in base64")
	}
	return master, nil
}

// wrapper encrypts keys with a master key, or does nothing without one. A wrapped key tells itself by its length.
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

// wrappedError says that a data key is there and does not open.
type wrappedError struct{ subject, why string }

func (e *wrappedError) Error() string { return "the data key of " + e.subject + " " + e.why }

// proven is what a proof is sealed for. No subject has such a name.
const proven = "\x00master key"

// proof is something that only this master key opens; empty without one.
func (w wrapper) proof() []byte {
	if w.aead == nil {
		return []byte{}
	}
	return w.seal(proven, make([]byte, keyLen))
}

// proves says whether a proof was made with this master key. One that is empty is anybody's.
func (w wrapper) proves(proof []byte) bool {
	if len(proof) == 0 {
		return true
	}
	_, err := w.open(proven, proof)
	return err == nil
}
