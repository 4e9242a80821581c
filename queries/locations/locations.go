// Package locations answers which referentials and sites an account has, from the read model that projections/locations
// fills (table.LocationsModel). Answers are as old as the read model is: a caller that must see its own write waits for
// its position first. While an account is stopped every answer about it is a *table.StoppedError.
//
// The packages below search sites by text or position: search is the contract, memory and meili implement it.
package locations

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"iter"
	"math"
	"regexp"
	"time"

	"lieudit/eventstore/sqldb"
	"lieudit/queries/locations/search"
	"lieudit/schemas/locations"
	"lieudit/schemas/refusal"
	"lieudit/schemas/table"
)

// Reader answers from the read model. It is safe for concurrent use.
type Reader struct{ registry *sqldb.Registry }

// New makes a Reader of a registry's read model.
func New(registry *sqldb.Registry) *Reader { return &Reader{registry} }

var (
	// ErrNotFound means that the account has no such referential, or the referential has no such site. It is refusal.NotFound for the
	// client.
	ErrNotFound = fmt.Errorf("not among the locations: %w", refusal.NotFound)
	// ErrInvalidCursor means that no list returned the cursor.
	ErrInvalidCursor = errors.New("not a cursor")
)

// Referential is a named group of an account's sites.
type Referential struct {
	Code, Name string
	Created    time.Time
	Archived   time.Time // zero while it is active
	Active     int       // how many of its sites are active
}

// Status of a referential.
const (
	ReferentialActive   = "active"
	ReferentialArchived = "archived"
)

// ListReferentials returns an account's referentials by code: those of a status, or all if status is "". The cursor of a page is the
// code of its last referential.
func (p *Reader) ListReferentials(ctx context.Context, account, status string, page Page) (found []Referential, next string, err error) {
	where := map[string]string{ReferentialActive: " and archived = 0", ReferentialArchived: " and archived <> 0"}[status]
	rows, more, err := selectWithin(ctx, p, account, table.Referentials, sqldb.Range[table.Referential]{
		Where: "account = ? and code > ?" + where, Args: []any{account, page.Cursor}, Order: "account, code, id",
		Column: "name", Text: referentialName, Rows: page.Limit, Bytes: page.maxBytes(),
	})
	if err != nil {
		return nil, "", err
	}
	found = make([]Referential, len(rows))
	for i, r := range rows {
		found[i] = referentialFromRow(r)
	}
	if more {
		next = found[len(found)-1].Code
	}
	return found, next, nil
}

// FindReferential returns one referential of an account, or ErrNotFound.
func (p *Reader) FindReferential(ctx context.Context, account, code string) (Referential, error) {
	r, err := selectOne(ctx, p, account, table.Referentials, table.ReferentialID(account, code))
	return referentialFromRow(r), err
}

func referentialFromRow(r table.Referential) Referential {
	return Referential{r.Code, r.Name, r.Created.Time(), r.Archived.Time(), int(r.ActiveSites)}
}

// FindSite returns one site of a referential, active or not, or ErrNotFound.
func (p *Reader) FindSite(ctx context.Context, account, code, externalID string) (locations.Site, error) {
	row, err := selectOne(ctx, p, account, table.Sites, table.SiteID(account, code, externalID))
	if err != nil {
		return locations.Site{}, err
	}
	return locations.SiteFromRow(row)
}

// selectOne returns the row of a key, or ErrNotFound.
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

// selectWithin reads the first rows of a range of an account.
func selectWithin[R any](ctx context.Context, p *Reader, account string, t table.Table[R], r sqldb.Range[R]) (rows []R, more bool, err error) {
	err = p.registry.ReadAccount(ctx, table.LocationsModel, account, func(db *sqldb.DB) error {
		rows, more, err = sqldb.SelectWithin(ctx, db, t, r)
		return err
	})
	return rows, more, err
}

// Page is a part of a list. The cursor "" is that of the first page; as a result it means that there is no next page.
type Page struct {
	Cursor   string
	Limit    int // at least 1
	MaxBytes int // the page ends with the row at which the content reaches this many bytes; 0 means no limit
}

func (p Page) maxBytes() int { return cmp.Or(p.MaxBytes, math.MaxInt) }

// ListSites returns the sites of a referential by external id. A status of "" lists all of them, unlike in a search. A page begins
// after the last site of the page before, whatever happened to that site since.
func (p *Reader) ListSites(ctx context.Context, account, code string, status search.Status, page Page) (found []locations.Site, next string, err error) {
	after, err := parseCursor(page.Cursor)
	if err != nil {
		return nil, "", err
	}
	rows, more, err := p.selectSites(ctx, account, code, after, status, page)
	if err != nil {
		return nil, "", err
	}
	if more {
		next = formatCursor(rows[len(rows)-1].ExternalID)
	}
	found = make([]locations.Site, len(rows))
	for i, row := range rows {
		if found[i], err = locations.SiteFromRow(row); err != nil {
			return nil, "", err
		}
	}
	return found, next, nil
}

// ActiveSites holds a page in memory.
const (
	iterationRows  = 200
	iterationBytes = 64 << 10
)

// TakeTurn waits until a page may be read. release is called after it was read.
type TakeTurn func(context.Context) (release func(), err error)

// ActiveSites yields the active sites of a referential by external id, a page in each turn. An error is the last element. A site that
// changes meanwhile is yielded as it was before or after the change.
func (p *Reader) ActiveSites(ctx context.Context, account, code string, takeTurn TakeTurn) iter.Seq2[locations.Site, error] {
	return func(yield func(locations.Site, error) bool) {
		for page := (Page{Limit: iterationRows, MaxBytes: iterationBytes}); ; {
			found, next, err := p.listInTurn(ctx, account, code, page, takeTurn)
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

// listInTurn lists a page of active sites in its turn.
func (p *Reader) listInTurn(ctx context.Context, account, code string, page Page, takeTurn TakeTurn) ([]locations.Site, string, error) {
	release, err := takeTurn(ctx)
	if err != nil {
		return nil, "", err
	}
	defer release()
	return p.ListSites(ctx, account, code, search.Active, page)
}

// selectSites reads the rows of a referential after an external id. Their keys begin with the referential's and a
// slash, and "0" is the character after the slash.
func (p *Reader) selectSites(ctx context.Context, account, code, after string, status search.Status, page Page) (rows []table.Site, more bool, err error) {
	referential := table.ReferentialID(account, code)
	where, args := "id > ? and id < ?", []any{referential + "/" + after, referential + "0"}
	if status == search.Active || status == search.Inactive {
		where, args = where+" and active = ?", append(args, status == search.Active)
	}
	return selectWithin(ctx, p, account, table.Sites, sqldb.Range[table.Site]{
		Where: where, Args: args, Order: "id", Column: "content", Text: siteContent, Rows: page.Limit, Bytes: page.maxBytes(),
	})
}

func siteContent(r *table.Site) string            { return r.Content }
func referentialName(r *table.Referential) string { return r.Name }

// formatCursor makes a cursor of an external id. It is opaque, so that nobody builds one.
func formatCursor(externalID string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(externalID))
}

var externalIDPattern = regexp.MustCompile(locations.ExternalIDPattern)

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
