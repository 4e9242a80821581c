package places

import (
	"context"
	"encoding/base64"
	"iter"
	"regexp"

	"lieudit/schemas/site"
	"lieudit/schemas/table"
)

// Status is which sites are wanted.
type Status string

// What sites can be asked for by. "" is All.
const (
	Active   Status = "actif"
	Inactive Status = "inactif"
	All      Status = "tous"
)

// Page is a part of a list. A cursor of "" is the beginning, and as an answer it says that there is no more.
type Page struct {
	Cursor string
	Limit  int // at least 1
}

// Sites are those of a referential, by external id. A page begins after the last site of the one before, whatever became of
// that since.
func (p *Places) Sites(ctx context.Context, account, code string, status Status, page Page) (found []site.Site, next string, err error) {
	after, err := read(page.Cursor)
	if err != nil {
		return nil, "", err
	}
	rows, err := p.rows(ctx, account, code, after, status, page.Limit+1)
	if err != nil {
		return nil, "", err
	}
	if len(rows) > page.Limit {
		rows = rows[:page.Limit]
		next = cursor(rows[page.Limit-1].ExternalID)
	}
	found = make([]site.Site, len(rows))
	for i, row := range rows {
		if found[i], err = SiteOf(row); err != nil {
			return nil, "", err
		}
	}
	return found, next, nil
}

// atOnce is how many sites are held in memory while all are read.
const atOnce = 500

// Active are the active sites of a referential, by external id. An error ends them. A site that changes meanwhile is told of
// as it was before or as it is after.
func (p *Places) Active(ctx context.Context, account, code string) iter.Seq2[site.Site, error] {
	return func(yield func(site.Site, error) bool) {
		for page := (Page{Limit: atOnce}); ; {
			found, next, err := p.Sites(ctx, account, code, Active, page)
			if err != nil {
				yield(site.Site{}, err)
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

// rows are those of a referential after an external id. Their keys begin with the referential's and a slash; "0" is what comes
// after a slash.
func (p *Places) rows(ctx context.Context, account, code, after string, s Status, limit int) ([]table.Site, error) {
	referential := table.RefID(account, code)
	where, args := "where id > ? and id < ? ", []any{referential + "/" + after, referential + "0"}
	if s == Active || s == Inactive {
		where, args = where+"and active = ? ", append(args, s == Active)
	}
	return selected(ctx, p, account, table.Sites, where+"order by id limit ?", append(args, limit)...)
}

// An external id as a cursor: opaque, so that nobody builds one.
func cursor(externalID string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(externalID))
}

var externalID = regexp.MustCompile(`^[A-Za-z0-9._~-]{1,128}$`)

func read(cursor string) (after string, err error) {
	if cursor == "" {
		return "", nil
	}
	text, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil || !externalID.Match(text) {
		return "", ErrCursor
	}
	return string(text), nil
}
