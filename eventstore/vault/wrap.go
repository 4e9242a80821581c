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
		return nil, fmt.Errorf("the data key of %s needs the master key it was stored with", subject)
	}
	key, err := w.aead.Open(nil, nil, stored, []byte(subject))
	if err != nil || len(key) != keyLen {
		return nil, fmt.Errorf("the data key of %s does not open with this master key", subject)
	}
	return key, nil
}
