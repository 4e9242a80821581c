// Package locations answers which referentials and sites an account has, from the tables of places. Answers are as old as the
// tables are; whoever must see a write waits for its position first. Of an account that is stopped nothing is answered: each
// question is a *table.StoppedError.
package locations

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"iter"
	"regexp"
	"time"

	"lieudit/eventstore/sqldb"
	"lieudit/queries/locations/search"
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

// Page is a part of a list. A cursor of "" is the beginning, and as an answer it says that there is no more.
type Page struct {
	Cursor string
	Limit  int // at least 1
}

// ListSites are those of a referential, by external id. A page begins after the last site of the one before, whatever became of
// that since.
func (p *Reader) ListSites(ctx context.Context, account, code string, status search.Status, page Page) (found []locations.Site, next string, err error) {
	after, err := parseCursor(page.Cursor)
	if err != nil {
		return nil, "", err
	}
	rows, err := p.selectSites(ctx, account, code, after, status, page.Limit+1)
	if err != nil {
		return nil, "", err
	}
	if len(rows) > page.Limit {
		rows = rows[:page.Limit]
		next = formatCursor(rows[page.Limit-1].ExternalID)
	}
	found = make([]locations.Site, len(rows))
	for i, row := range rows {
		if found[i], err = locations.SiteFromRow(row); err != nil {
			return nil, "", err
		}
	}
	return found, next, nil
}

// iterationPageSize is how many sites are held in memory while all are read.
const iterationPageSize = 500

// ActiveSites are the active sites of a referential, by external id. An error ends them. A site that changes meanwhile is told of
// as it was before or as it is after.
func (p *Reader) ActiveSites(ctx context.Context, account, code string) iter.Seq2[locations.Site, error] {
	return func(yield func(locations.Site, error) bool) {
		for page := (Page{Limit: iterationPageSize}); ; {
			found, next, err := p.ListSites(ctx, account, code, search.Active, page)
			if err != nil {
				yield(locations.Site{}, err)
				return
			}
			for _, s := range found {
				if !yield(s, nil) {
					return
				}
			}
			if next == "" {
				return
			}
			page.Cursor = next
		}
	}
}

// selectSites are those of a referential after an external id. Their keys begin with the referential's and a slash; "0" is what comes
// after a slash.
func (p *Reader) selectSites(ctx context.Context, account, code, after string, status search.Status, limit int) ([]table.Site, error) {
	referential := table.ReferentialID(account, code)
	where, args := "where id > ? and id < ? ", []any{referential + "/" + after, referential + "0"}
	if status == search.Active || status == search.Inactive {
		where, args = where+"and active = ? ", append(args, status == search.Active)
	}
	return selectRows(ctx, p, account, table.Sites, where+"order by id limit ?", append(args, limit)...)
}

// An external id as a formatCursor: opaque, so that nobody builds one.
func formatCursor(externalID string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(externalID))
}

var externalIDPattern = regexp.MustCompile(`^[A-Za-z0-9._~-]{1,128}$`)

func parseCursor(cursor string) (after string, err error) {
	if cursor == "" {
		return "", nil
	}
	text, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil || !externalIDPattern.Match(text) {
		return "", ErrInvalidCursor
	}
	return string(text), nil
}
