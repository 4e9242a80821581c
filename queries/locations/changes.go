package locations

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"lieudit/eventstore/sqldb"
	"lieudit/schemas/locations"
	"lieudit/schemas/refusal"
	"lieudit/schemas/table"
)

// ChangesCursor marks a point in the changes of an account: after the change of one row. Its zero value is before all changes. Log is
// the UUID of the log, because its positions mean nothing in another log.
type ChangesCursor struct {
	Log      string `json:"l"`
	Position int64  `json:"p"`
	Row      string `json:"r"`
}

// afterPosition, as the row of a ChangesCursor, sorts after all rows that changed at its position. Rows begin with their account,
// whose id never contains this character.
const afterPosition = "~"

// Change is a site or a referential (the other is nil) in its current state, with the time of its last change.
type Change struct {
	Site        *locations.Site
	Referential *Referential
	At          time.Time
	cursor      ChangesCursor
}

// ChangesPage is a part of the changes of an account.
type ChangesPage struct {
	After    ChangesCursor
	Until    ChangesCursor // where the list ends; zero means the current position of the read model
	Limit    int           // at least 1
	MaxBytes int           // the page ends with the site at which the content reaches this many bytes; 0 means no limit
}

// Changes is a page of changes, with the cursor from which to continue.
type Changes struct {
	Found []Change
	Next  ChangesCursor
	Until ChangesCursor // where the list ends
	More  bool          // there are more changes before Until
}

// ListChanges returns the sites and referentials of an account that changed after a cursor, by the log position of their last change.
// Each is listed once in its current state, however often it changed. One that changes while the list is read page by page is listed
// again later. All changes that were not listed are after Next. A cursor of another log is refusal.CursorExpired.
//
// The list ends at the read model's position, which is read first, so that rows written later are left out.
func (p *Reader) ListChanges(ctx context.Context, account string, page ChangesPage) (listed Changes, err error) {
	err = p.registry.ReadAccount(ctx, table.LocationsModel, account, func(db *sqldb.DB) error {
		end := ChangesCursor{Row: afterPosition}
		if err := db.QueryRow(ctx, "select log, position from {checkpoint}").Scan(&end.Log, &end.Position); err != nil {
			return err
		}
		if page.After.Position > 0 && page.After.Log != end.Log {
			return refusal.CursorExpired
		}
		if page.Until.Position > 0 {
			end = page.Until
		}
		listed = Changes{Until: end}
		listed.Found, listed.More, err = selectChanges(ctx, db, account, page, end.Position)
		switch {
		case err != nil:
			return err
		case listed.More:
			listed.Next = listed.Found[len(listed.Found)-1].cursor
			listed.Next.Log = end.Log
		case page.After.Position > end.Position: // it comes from another instance, whose read model is ahead
			listed.Next = page.After
		default:
			listed.Next = end
		}
		return nil
	})
	return listed, err
}

// changesRange returns the range of rows that changed after a page's cursor and not after a position.
func changesRange[R any](account, column string, page ChangesPage, end int64) sqldb.Range[R] {
	return sqldb.Range[R]{
		Where: "account = ? and " + column + " >= ? and (" + column + " > ? or id > ?) and " + column + " <= ?",
		Args:  []any{account, page.After.Position, page.After.Position, page.After.Row, end},
		Order: column + ", id", Rows: page.Limit, Bytes: cmp.Or(page.MaxBytes, math.MaxInt),
	}
}

// compare orders cursors as changes are ordered.
func (c ChangesCursor) compare(other ChangesCursor) int {
	return cmp.Or(cmp.Compare(c.Position, other.Position), cmp.Compare(c.Row, other.Row))
}

// selectChanges merges the rows of both tables.
func selectChanges(ctx context.Context, db *sqldb.DB, account string, page ChangesPage, end int64) (all []Change, more bool, err error) {
	sites, moreSites, err := selectSiteChanges(ctx, db, changesRange[table.Site](account, "position", page, end))
	if err != nil {
		return nil, false, err
	}
	referentials, moreReferentials, err := selectReferentialChanges(ctx, db, changesRange[table.Referential](account, "changed", page, end))
	if err != nil {
		return nil, false, err
	}
	all = slices.SortedFunc(slices.Values(slices.Concat(sites, referentials)), func(a, b Change) int { return a.cursor.compare(b.cursor) })
	// If a table has more rows than were read, the changes after the last row read are not known.
	known := len(all)
	for _, part := range []struct {
		found []Change
		more  bool
	}{{sites, moreSites}, {referentials, moreReferentials}} {
		if part.more {
			last := part.found[len(part.found)-1].cursor
			known = min(known, 1+slices.IndexFunc(all, func(c Change) bool { return c.cursor == last }))
		}
	}
	known = min(known, page.Limit)
	return all[:known], known < len(all) || moreSites || moreReferentials, nil
}

func selectSiteChanges(ctx context.Context, db *sqldb.DB, r sqldb.Range[table.Site]) (found []Change, more bool, err error) {
	r.Column, r.Text = "content", siteContent
	rows, more, err := sqldb.SelectWithin(ctx, db, table.Sites, r)
	if err != nil {
		return nil, false, err
	}
	for _, row := range rows {
		s, err := locations.SiteFromRow(row)
		if err != nil {
			return nil, false, err
		}
		found = append(found, Change{Site: &s, At: s.Modified, cursor: ChangesCursor{Position: row.Position, Row: row.ID}})
	}
	return found, more, nil
}

func selectReferentialChanges(ctx context.Context, db *sqldb.DB, r sqldb.Range[table.Referential]) (found []Change, more bool, err error) {
	r.Column, r.Text = "name", referentialName
	rows, more, err := sqldb.SelectWithin(ctx, db, table.Referentials, r)
	for _, row := range rows {
		r := referentialFromRow(row)
		found = append(found, Change{Referential: &r, At: row.Modified.Time(), cursor: ChangesCursor{Position: row.Changed, Row: row.ID}})
	}
	return found, more, err
}
