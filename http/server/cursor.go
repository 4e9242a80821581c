package server

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"

	"lieudit/schemas/body"
)

// seal makes the cursors of one search, of one account and one kind of key: whoever holds a cursor can neither make nor
// change one, nor read of it which site a page ended with, which a publishable key must not tell.
type seal struct {
	key  func(ctx context.Context, account string) ([]byte, error) // nil: there are no cursors
	call call
	in   body.SearchLocations
}

// close is a cursor as strangers may hold it. There is none after the last page.
func (s seal) close(ctx context.Context, next string) (string, error) {
	if next == "" || s.key == nil {
		return "", nil
	}
	aead, bound, err := s.cipher(ctx)
	if err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(aead.Seal(nil, nil, []byte(next), bound)), nil
}

// open is the cursor that was sealed.
func (s seal) open(ctx context.Context, cursor string) (string, error) {
	if cursor == "" {
		return "", nil
	}
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil || s.key == nil {
		return "", noCursor(cursor)
	}
	aead, bound, err := s.cipher(ctx)
	if err != nil {
		return "", err
	}
	next, err := aead.Open(nil, nil, sealed, bound)
	if err != nil {
		return "", noCursor(cursor)
	}
	return string(next), nil
}

// cipher seals for this search: bound is all it asks but which page of it, and how long that is.
func (s seal) cipher(ctx context.Context) (aead cipher.AEAD, bound []byte, err error) {
	secret, err := s.key(ctx, s.call.account())
	if err != nil {
		return nil, nil, err
	}
	s.in.Limit, s.in.Cursor = 0, ""
	if bound, err = json.Marshal([]any{s.call.account(), s.call.grant.Kind, s.in}); err != nil {
		return nil, nil, err
	}
	key := hmac.New(sha256.New, secret)
	key.Write([]byte("cursor of a search of sites"))
	block, err := aes.NewCipher(key.Sum(nil))
	if err != nil {
		return nil, nil, err
	}
	aead, err = cipher.NewGCMWithRandomNonce(block)
	return aead, bound, err
}
