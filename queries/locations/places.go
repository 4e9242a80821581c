// Package locations answers which referentials and sites an account has, from the tables of places. Answers are as old as the
// tables are; whoever must see a write waits for its position first. Of an account that is stopped nothing is answered: each
// question is a *table.StoppedError.
package locations

import (
	"context"
	"errors"
	"fmt"
	"time"

	"lieudit/eventstore/sqldb"
	"lieudit/schemas/locations"
	"lieudit/schemas/table"
)

// Reader is the asking side of the tables of places. It is safe for concurrent use.
type Reader struct{ registry *sqldb.Registry }

// New asks the copies on a shelf.
func New(registry *sqldb.Registry) *Reader { return &Reader{registry} }

var (
	// ErrNotFound: the account has no such referential, or the referential no such site.
	ErrNotFound = errors.New("not among the places")
	// ErrInvalidCursor: a cursor is not one that was given.
	ErrInvalidCursor = errors.New("not a cursor")
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
	ReferentialActive   = "active"
	ReferentialArchived = "archived"
)

// ListReferentials are those of an account, by code: of a status, or all of them where it is "".
func (p *Reader) ListReferentials(ctx context.Context, account, status string) ([]Referential, error) {
	where := map[string]string{ReferentialActive: "and archived = 0 ", ReferentialArchived: "and archived <> 0 "}[status]
	rows, err := selectRows(ctx, p, account, table.Referentials, "where account = ? "+where+"order by account, code", account)
	found := make([]Referential, len(rows))
	for i, r := range rows {
		found[i] = referentialFromRow(r)
	}
	return found, err
}

// FindReferential is one of an account's, or ErrUnknown.
func (p *Reader) FindReferential(ctx context.Context, account, code string) (Referential, error) {
	r, err := selectOne(ctx, p, account, table.Referentials, table.ReferentialID(account, code))
	return referentialFromRow(r), err
}

func referentialFromRow(r table.Referential) Referential {
	return Referential{r.Code, r.Name, r.Created.Time(), r.Archived.Time(), int(r.ActiveSites)}
}

// FindSite is one of a referential's, active or not, or ErrUnknown.
func (p *Reader) FindSite(ctx context.Context, account, code, externalID string) (locations.Site, error) {
	row, err := selectOne(ctx, p, account, table.Sites, table.SiteID(account, code, externalID))
	if err != nil {
		return locations.Site{}, err
	}
	return locations.SiteFromRow(row)
}

// selectOne is the row of a key.
func selectOne[R any](ctx context.Context, p *Reader, account string, t table.Table[R], key string) (row R, err error) {
	rows, err := selectRows(ctx, p, account, t, "where id = ?", key)
	if err == nil && len(rows) == 0 {
		err = fmt.Errorf("%s: %w", key, ErrNotFound)
	}
	if err != nil {
		return row, err
	}
	return rows[0], nil
}

func selectRows[R any](ctx context.Context, p *Reader, account string, t table.Table[R], clause string, args ...any) (rows []R, err error) {
	err = p.registry.ReadAccount(ctx, table.LocationsModel, account, func(db *sqldb.DB) error {
		rows, err = sqldb.Select(ctx, db, t, clause, args...)
		return err
	})
	return rows, err
}
