package server

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"

	"lieudit/schemas/body"
)

// seal makes the cursors of one search, of one account and one kind of key: whoever holds a cursor can neither make nor
// change one, nor read of it which site a page ended with, which a publishable key must not tell.
type seal struct {
	aead  cipher.AEAD
	bound []byte // what the cursor is for
}

var errCursor = errors.New("not a cursor of this search")

// sealOf is the seal of a search: of all it asks but which page of it and how long that is.
func (a *api) sealOf(ctx context.Context, c call, in body.SearchLocations) (seal, error) {
	if a.Cursors == nil {
		return seal{}, nil
	}
	key, err := a.Cursors(ctx, c.account())
	if err != nil {
		return seal{}, err
	}
	in.Limit, in.Cursor = 0, ""
	bound, err := json.Marshal([]any{c.account(), c.grant.Kind, in})
	if err != nil {
		return seal{}, err
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte("cursor of a search of sites"))
	block, err := aes.NewCipher(mac.Sum(nil))
	if err != nil {
		return seal{}, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	return seal{aead, bound}, err
}

// close is a cursor as strangers may hold it. There is none after the last page.
func (s seal) close(next string) string {
	if next == "" || s.aead == nil {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(s.aead.Seal(nil, nil, []byte(next), s.bound))
}

// open is the cursor that was sealed.
func (s seal) open(cursor string) (string, error) {
	if cursor == "" {
		return "", nil
	}
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil || s.aead == nil {
		return "", errCursor
	}
	next, err := s.aead.Open(nil, nil, sealed, s.bound)
	if err != nil {
		return "", errCursor
	}
	return string(next), nil
}
