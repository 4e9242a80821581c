// Package places answers which referentials and sites an account has, from the tables of places. Answers are as old as the
// tables are; whoever must see a write waits for its position first. Of an account that is stopped nothing is answered: each
// question is a *table.StoppedError.
package places

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"lieudit/schemas/site"
	"lieudit/schemas/table"
)

// Places is the asking side of the tables of places. It is safe for concurrent use.
type Places struct{ shelf *table.Shelf }

// New asks the copies on a shelf.
func New(shelf *table.Shelf) *Places { return &Places{shelf} }

var (
	// ErrUnknown: the account has no such referential, or the referential no such site.
	ErrUnknown = errors.New("not among the places")
	// ErrCursor: a cursor is not one that was given.
	ErrCursor = errors.New("not a cursor")
)

// Referential is a group of an account's sites.
type Referential struct {
	Code, Name string
	Created    time.Time
	Archived   time.Time // zero while it is active
	Active     int       // active sites
}

// Which referentials there are: those of a status, or all.
const (
	StatusActive   = "active"
	StatusArchived = "archived"
)

// Referentials are those of an account, by code: of a status, or all of them where it is "".
func (p *Places) Referentials(ctx context.Context, account, status string) ([]Referential, error) {
	where := map[string]string{StatusActive: "and archived = 0 ", StatusArchived: "and archived <> 0 "}[status]
	rows, err := selected(ctx, p, account, table.Referentials, "where account = ? "+where+"order by account, code", account)
	found := make([]Referential, len(rows))
	for i, r := range rows {
		found[i] = referentialOf(r)
	}
	return found, err
}

// Referential is one of an account's, or ErrUnknown.
func (p *Places) Referential(ctx context.Context, account, code string) (Referential, error) {
	r, err := one(ctx, p, account, table.Referentials, table.RefID(account, code))
	return referentialOf(r), err
}

func referentialOf(r table.Referential) Referential {
	return Referential{r.Code, r.Name, r.Created.Time(), r.Archived.Time(), int(r.Active)}
}

// Site is one of a referential's, active or not, or ErrUnknown.
func (p *Places) Site(ctx context.Context, account, code, externalID string) (site.Site, error) {
	row, err := one(ctx, p, account, table.Sites, table.SiteID(account, code, externalID))
	if err != nil {
		return site.Site{}, err
	}
	return SiteOf(row)
}

// SiteOf is the site in a row.
func SiteOf(row table.Site) (site.Site, error) {
	var stored site.Stored
	if row.Content != "" { // else its key was destroyed
		if err := json.Unmarshal([]byte(row.Content), &stored); err != nil {
			return site.Site{}, fmt.Errorf("content of %s: %w", row.ID, err)
		}
	}
	s := site.Site{
		ID: row.Site, Referential: row.Referential, ExternalID: row.ExternalID, Active: row.Active, Version: row.Version,
		Created: row.Created.Time(), Modified: row.Modified.Time(), Deactivated: row.Deactivated.Time(),
	}
	s.Content, s.Source, s.Score = stored.Show()
	return s, nil
}

// one is the row of a key.
func one[R any](ctx context.Context, p *Places, account string, t table.Table[R], key string) (row R, err error) {
	rows, err := selected(ctx, p, account, t, "where id = ?", key)
	if err == nil && len(rows) == 0 {
		err = fmt.Errorf("%s: %w", key, ErrUnknown)
	}
	if err != nil {
		return row, err
	}
	return rows[0], nil
}

func selected[R any](ctx context.Context, p *Places, account string, t table.Table[R], rest string, args ...any) (rows []R, err error) {
	err = p.shelf.ReadAccount(ctx, table.Places, account, func(db *table.DB) error {
		rows, err = table.Select(ctx, db, t, rest, args...)
		return err
	})
	return rows, err
}
