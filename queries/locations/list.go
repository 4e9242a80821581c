package locations

import (
	"context"
	"encoding/base64"
	"iter"
	"regexp"

	"lieudit/schemas/locations"
	"lieudit/schemas/table"
)

// SiteStatus is which sites are wanted.
type SiteStatus string

// What sites can be asked for by. "" is All.
const (
	SiteActive   SiteStatus = "actif"
	SiteInactive SiteStatus = "inactif"
	SiteAny      SiteStatus = "tous"
)

// Page is a part of a list. A cursor of "" is the beginning, and as an answer it says that there is no more.
type Page struct {
	Cursor string
	Limit  int // at least 1
}

// ListSites are those of a referential, by external id. A page begins after the last site of the one before, whatever became of
// that since.
func (p *Reader) ListSites(ctx context.Context, account, code string, status SiteStatus, page Page) (found []locations.Site, next string, err error) {
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
			found, next, err := p.ListSites(ctx, account, code, SiteActive, page)
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
func (p *Reader) selectSites(ctx context.Context, account, code, after string, status SiteStatus, limit int) ([]table.Site, error) {
	referential := table.ReferentialID(account, code)
	where, args := "where id > ? and id < ? ", []any{referential + "/" + after, referential + "0"}
	if status == SiteActive || status == SiteInactive {
		where, args = where+"and active = ? ", append(args, status == SiteActive)
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
