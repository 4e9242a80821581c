package api

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

// cursorSealer makes the cursors of one search, of one account and one kind of key: whoever holds a cursor can neither make nor
// change one, nor read of it which site a page ended with, which a publishable key must not tell.
type cursorSealer struct {
	secret func(ctx context.Context, account string) ([]byte, error) // nil: there are no cursors
	call   call
	search body.SearchLocations
}

// seal is a cursor as strangers may hold it. There is none after the last page.
func (s cursorSealer) seal(ctx context.Context, next string) (string, error) {
	if next == "" || s.secret == nil {
		return "", nil
	}
	aead, bound, err := s.newCipher(ctx)
	if err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(aead.Seal(nil, nil, []byte(next), bound)), nil
}

// open is the cursor that was sealed.
func (s cursorSealer) open(ctx context.Context, cursor string) (string, error) {
	if cursor == "" {
		return "", nil
	}
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil || s.secret == nil {
		return "", invalidCursor(cursor)
	}
	aead, bound, err := s.newCipher(ctx)
	if err != nil {
		return "", err
	}
	next, err := aead.Open(nil, nil, sealed, bound)
	if err != nil {
		return "", invalidCursor(cursor)
	}
	return string(next), nil
}

// newCipher seals for this search: bound is all it asks but which page of it, and how long that is.
func (s cursorSealer) newCipher(ctx context.Context) (aead cipher.AEAD, bound []byte, err error) {
	secret, err := s.secret(ctx, s.call.account())
	if err != nil {
		return nil, nil, err
	}
	s.search.Limit, s.search.Cursor = 0, ""
	if bound, err = json.Marshal([]any{s.call.account(), s.call.grant.Kind, s.search}); err != nil {
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
