// Package keys answers what accounts, keys and customer-area tokens there are, from the register. Answers are as old as
// the register is; whoever must see a write waits for its position first.
package keys

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"lieudit/schemas/grant"
	"lieudit/schemas/table"
	"lieudit/schemas/token"
)

// Keys is the asking side of the register. It is safe for concurrent use.
type Keys struct {
	shelf *table.Shelf
	now   func() time.Time
}

// New asks the copies on a shelf. What is scheduled has begun when now says so.
func New(shelf *table.Shelf, now func() time.Time) *Keys { return &Keys{shelf, now} }

var (
	// ErrUnknown: the register does not hold it.
	ErrUnknown = errors.New("not in the register")
	// ErrCursor: a cursor is not one that was given.
	ErrCursor = errors.New("not a cursor")
)

// Page is a part of a list. A cursor of "" is the beginning, and as an answer it says that there is no more.
type Page struct {
	Cursor string
	Limit  int // at least 1
}

// Key is an API key.
type Key struct {
	ID, Account string
	Kind        token.Kind
	Label, Hint string
	Origins     []string // of a publishable key
	Token       string   // of a publishable key
	Created     time.Time
	CreatedBy   string
	Revoked     time.Time // zero while it is valid
	RevokedBy   string
	Reason      string // why it was revoked
}

// Token is a customer-area token.
type Token struct {
	ID          string
	Role        grant.Role
	Account     string
	Label, Hint string
	Created     time.Time
	CreatedBy   string
	Revoked     time.Time // zero while it is valid
	RevokedBy   string
	Reason      string
}

// Keys are the keys of an account, revoked ones too, the oldest first.
func (k *Keys) Keys(ctx context.Context, account string, p Page) (found []Key, next string, err error) {
	created, id, err := place(p.Cursor)
	if err != nil {
		return nil, "", err
	}
	rows, next, err := pageOf(ctx, k, account, table.Keys, p, keyPlace,
		"where account = ? and (created, id) > (?, ?) order by account, created, id", account, created, id)
	for _, row := range rows {
		key, keyErr := keyOf(row)
		found, err = append(found, key), errors.Join(err, keyErr)
	}
	return found, next, err
}

// Tokens are the customer-area tokens, revoked ones too, the oldest first.
func (k *Keys) Tokens(ctx context.Context, p Page) (found []Token, next string, err error) {
	created, id, err := place(p.Cursor)
	if err != nil {
		return nil, "", err
	}
	rows, next, err := pageOf(ctx, k, "", table.Tokens, p, tokenPlace, "where (created, id) > (?, ?) and "+table.Running("'/token-' || id")+" order by created, id", created, id)
	for _, r := range rows {
		found = append(found, Token{r.ID, grant.Role(r.Role), r.Account, r.Label, r.Hint,
			r.Created.Time(), r.CreatedBy, r.Revoked.Time(), r.RevokedBy, r.Reason})
	}
	return found, next, err
}

func keyOf(r table.Key) (Key, error) {
	k := Key{r.ID, r.Account, token.Kind(r.Kind), r.Label, r.Hint, nil, r.Token,
		r.Created.Time(), r.CreatedBy, r.Revoked.Time(), r.RevokedBy, r.Reason}
	if err := json.Unmarshal([]byte(r.Origins), &k.Origins); err != nil {
		return k, fmt.Errorf("origins of %s: %w", r.ID, err)
	}
	return k, nil
}

// pageOf reads one row more than the page holds, to know whether there is a next one. account is whose rows they are, ""
// for those of many: then those of stopped accounts are to be left out.
func pageOf[R any](ctx context.Context, k *Keys, account string, t table.Table[R], p Page, place func(R) string, rest string, args ...any) (rows []R, next string, err error) {
	err = k.shelf.ReadAccount(ctx, table.Register, account, func(db *table.DB) error {
		rows, err = table.Select(ctx, db, t, rest+" limit ?", append(args, p.Limit+1)...)
		return err
	})
	if err == nil && len(rows) > p.Limit {
		rows = rows[:p.Limit]
		next = place(rows[p.Limit-1])
	}
	return rows, next, err
}

func keyPlace(k table.Key) string     { return cursor(k.Created, k.ID) }
func tokenPlace(t table.Token) string { return cursor(t.Created, t.ID) }

func cursor(created table.Instant, id string) string { return fmt.Sprintf("%d.%s", created, id) }

func place(cursor string) (created int64, id string, err error) {
	if cursor == "" {
		return -1, "", nil
	}
	at, id, _ := strings.Cut(cursor, ".")
	if created, err = strconv.ParseInt(at, 10, 64); err != nil {
		return 0, "", ErrCursor
	}
	return created, id, nil
}
