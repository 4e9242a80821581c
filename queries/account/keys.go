// Package account answers what accounts, keys and customer-area tokens there are, from the register. Answers are as old as
// the register is; whoever must see a write waits for its position first.
package account

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"lieudit/eventstore/sqldb"
	"lieudit/schemas/access"
	"lieudit/schemas/table"
	"lieudit/schemas/token"
)

// Reader is the asking side of the register. It is safe for concurrent use.
type Reader struct {
	registry *sqldb.Registry
	now      func() time.Time
}

// New asks the copies on a shelf. What is scheduled has begun when now says so.
func New(registry *sqldb.Registry, now func() time.Time) *Reader { return &Reader{registry, now} }

var (
	// ErrNotFound: the register does not hold it.
	ErrNotFound = errors.New("not in the register")
	// ErrInvalidCursor: a cursor is not one that was given.
	ErrInvalidCursor = errors.New("not a cursor")
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
	Role        access.Role
	Account     string
	Label, Hint string
	Created     time.Time
	CreatedBy   string
	Revoked     time.Time // zero while it is valid
	RevokedBy   string
	Reason      string
}

// ListKeys are the keys of an account, revoked ones too, the oldest first.
func (k *Reader) ListKeys(ctx context.Context, account string, p Page) (found []Key, next string, err error) {
	created, id, err := parseCursor(p.Cursor)
	if err != nil {
		return nil, "", err
	}
	rows, next, err := readPage(ctx, k, account, table.Keys, p, keyCursor,
		"where account = ? and (created, id) > (?, ?) order by account, created, id", account, created, id)
	for _, row := range rows {
		key, keyErr := keyFromRow(row)
		found, err = append(found, key), errors.Join(err, keyErr)
	}
	return found, next, err
}

// ListTokens are the customer-area tokens, revoked ones too, the oldest first.
func (k *Reader) ListTokens(ctx context.Context, p Page) (found []Token, next string, err error) {
	created, id, err := parseCursor(p.Cursor)
	if err != nil {
		return nil, "", err
	}
	rows, next, err := readPage(ctx, k, "", table.Tokens, p, tokenCursor, "where (created, id) > (?, ?) and "+sqldb.ExcludeStoppedAccounts("'/token-' || id")+" order by created, id", created, id)
	for _, r := range rows {
		found = append(found, Token{r.ID, access.Role(r.Role), r.Account, r.Label, r.Hint,
			r.Created.Time(), r.CreatedBy, r.Revoked.Time(), r.RevokedBy, r.Reason})
	}
	return found, next, err
}

func keyFromRow(r table.Key) (Key, error) {
	k := Key{r.ID, r.Account, token.Kind(r.Kind), r.Label, r.Hint, nil, r.Token,
		r.Created.Time(), r.CreatedBy, r.Revoked.Time(), r.RevokedBy, r.Reason}
	if err := json.Unmarshal([]byte(r.Origins), &k.Origins); err != nil {
		return k, fmt.Errorf("origins of %s: %w", r.ID, err)
	}
	return k, nil
}

// readPage reads one row more than the page holds, to know whether there is a next one. account is whose rows they are, ""
// for those of many: then those of stopped accounts are to be left out.
func readPage[R any](ctx context.Context, k *Reader, account string, t table.Table[R], p Page, cursorOf func(R) string, clause string, args ...any) (rows []R, next string, err error) {
	err = k.registry.ReadAccount(ctx, table.AccountModel, account, func(db *sqldb.DB) error {
		rows, err = sqldb.Select(ctx, db, t, clause+" limit ?", append(args, p.Limit+1)...)
		return err
	})
	if err == nil && len(rows) > p.Limit {
		rows = rows[:p.Limit]
		next = cursorOf(rows[p.Limit-1])
	}
	return rows, next, err
}

func keyCursor(k table.Key) string     { return formatCursor(k.Created, k.ID) }
func tokenCursor(t table.Token) string { return formatCursor(t.Created, t.ID) }

func formatCursor(created table.Instant, id string) string { return fmt.Sprintf("%d.%s", created, id) }

func parseCursor(cursor string) (created int64, id string, err error) {
	if cursor == "" {
		return -1, "", nil
	}
	micros, id, _ := strings.Cut(cursor, ".")
	if created, err = strconv.ParseInt(micros, 10, 64); err != nil {
		return 0, "", ErrInvalidCursor
	}
	return created, id, nil
}
