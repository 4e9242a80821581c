package locations

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"lieudit/eventstore/sqldb"
	"lieudit/schemas/locations"
	"lieudit/schemas/refusal"
	"lieudit/schemas/table"
)

// ChangesCursor is a place in the changes of an account: after the change of one row. Its zero value is before all of them. Log is the
// UUID of the log, whose positions mean nothing in another one.
type ChangesCursor struct {
	Log      string `json:"l"`
	Position int64  `json:"p"`
	Row      string `json:"r"`
}

// afterPosition as the row of a ChangesCursor is after all rows that changed at its position. Rows begin with their account, whose id
// has no such sign.
const afterPosition = "~"

// Change is a site or a referential, of which one is nil, as it is now, and when it became so.
type Change struct {
	Site        *locations.Site
	Referential *Referential
	At          time.Time
	cursor      ChangesCursor
}

// ListChanges are the sites and referentials of an account that changed after a cursor, by the place of their last change on the log.
// Each comes once, however often it changed: as it is now. What changes while a list is read page by page comes again, later. next is
// never behind: from there on come the changes that were not listed. A cursor of another log is refusal.CursorExpired.
//
// The list ends at the read model's position, which is read first. A row that is written later is not taken for one before that.
func (p *Reader) ListChanges(ctx context.Context, account string, after ChangesCursor, limit int) (found []Change, next ChangesCursor, err error) {
	err = p.registry.ReadAccount(ctx, table.LocationsModel, account, func(db *sqldb.DB) error {
		end := ChangesCursor{Row: afterPosition}
		if err := db.QueryRow(ctx, "select log, position from {checkpoint}").Scan(&end.Log, &end.Position); err != nil {
			return err
		}
		if after.Position > 0 && after.Log != end.Log {
			return refusal.CursorExpired
		}
		found, err = selectChanges(ctx, db, account, after, end.Position, limit+1)
		switch {
		case err != nil:
			return err
		case len(found) > limit:
			found = found[:limit]
			next = found[limit-1].cursor
			next.Log = end.Log
		case after.Position > end.Position: // another instance gave it, whose read model is ahead
			next = after
		default:
			next = end
		}
		return nil
	})
	return found, next, err
}

// changedAfter is the condition of rows that changed after a cursor and not after a position.
func changedAfter(column string) string {
	return "where account = ? and " + column + " >= ? and (" + column + " > ? or id > ?) and " + column + " <= ? order by " + column + ", id limit ?"
}

func selectChanges(ctx context.Context, db *sqldb.DB, account string, after ChangesCursor, end int64, limit int) ([]Change, error) {
	args := []any{account, after.Position, after.Position, after.Row, end, limit}
	sites, err := sqldb.Select(ctx, db, table.Sites, changedAfter("position"), args...)
	referentials, referentialsErr := sqldb.Select(ctx, db, table.Referentials, changedAfter("changed"), args...)
	if err := errors.Join(err, referentialsErr); err != nil {
		return nil, err
	}
	var all []Change
	for _, row := range sites {
		s, err := locations.SiteFromRow(row)
		if err != nil {
			return nil, err
		}
		all = append(all, Change{Site: &s, At: s.Modified, cursor: ChangesCursor{Position: row.Position, Row: row.ID}})
	}
	for _, row := range referentials {
		r := referentialFromRow(row)
		all = append(all, Change{Referential: &r, At: row.Modified.Time(), cursor: ChangesCursor{Position: row.Changed, Row: row.ID}})
	}
	slices.SortFunc(all, func(a, b Change) int {
		return cmp.Or(cmp.Compare(a.cursor.Position, b.cursor.Position), cmp.Compare(a.cursor.Row, b.cursor.Row))
	})
	return all[:min(len(all), limit)], nil
}
