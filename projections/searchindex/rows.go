package searchindex

import (
	"context"
	"strings"
	"time"

	"lieudit/eventstore/sqldb"
	"lieudit/schemas/table"
)

// buildBatch is what the index is told of rows: the sites as they stand now, which may be later than what the rows say.
func (d *session) buildBatch(ctx context.Context, rows []table.OutboxEntry) (Batch, error) {
	b := Batch{Generation: d.generation, Position: d.appliedTo}
	keys := make([]string, 0, len(rows))
	for _, r := range rows {
		b.Position = max(b.Position, r.Position)
		keys = append(keys, r.ID)
	}
	var err error
	if b.Sites, err = sqldb.LoadByKeys(ctx, d.owned.DB, table.Sites, keys); err != nil {
		return Batch{}, err
	}
	exists := make(map[string]bool, len(b.Sites))
	for _, s := range b.Sites {
		exists[s.ID] = true
	}
	for _, key := range keys {
		if !exists[key] {
			b.Deleted = append(b.Deleted, key)
		}
	}
	return b, nil
}

// deleteApplied deletes what was told, unless it changed since. A row that is not there any more was told by another instance
// too, perhaps before this one and of a later state: it is told once more. So are the sites of an account that was told
// to be gone, should it have some.
func (d *session) deleteApplied(ctx context.Context, rows []table.OutboxEntry) error {
	keys := make([]string, len(rows))
	for i, r := range rows {
		keys[i] = r.ID
		delete(d.refused, r.ID)
	}
	return d.owned.DB.RunInTx(ctx, func(tx *sqldb.Tx) error {
		current, err := sqldb.LoadByKeys(ctx, tx, table.Outbox, keys)
		if err != nil {
			return err
		}
		positions := make(map[string]int64, len(current))
		for _, r := range current {
			positions[r.ID] = r.Position
		}
		var applied, again []table.OutboxEntry
		for _, r := range rows {
			switch at, exists := positions[r.ID]; {
			case !exists:
				r.Position = max(r.Position, -r.Position)
				again = append(again, r)
			case at == r.Position:
				applied = append(applied, r)
			}
		}
		if err := deleteRows(ctx, tx, applied); err != nil {
			return err
		}
		return sqldb.Upsert(ctx, tx, table.Outbox, again)
	})
}

// deleteRows deletes rows, and has the sites told again of accounts that were gone.
func deleteRows(ctx context.Context, tx *sqldb.Tx, rows []table.OutboxEntry) error {
	for n := 0; len(rows) > 0; rows = rows[n:] {
		n = min(len(rows), 200)
		args := make([]any, 0, n)
		for _, r := range rows[:n] {
			args = append(args, r.ID)
			account, isAccount := strings.CutSuffix(r.ID, "/")
			if !isAccount {
				continue
			}
			_, err := tx.Exec(ctx, "insert into outbox (id, position) select id, position from site where account = ? on conflict (id) do nothing", account)
			if err != nil {
				return err
			}
		}
		if _, err := tx.Exec(ctx, "delete from outbox where id in (?"+strings.Repeat(", ?", n-1)+")", args...); err != nil {
			return err
		}
	}
	return nil
}

// retry is how often something was refused, and when it is tried again.
type retry struct {
	attempts int
	next     time.Time
}

const (
	minRefusedBackoff = 10 * time.Second
	maxRefusedBackoff = time.Hour
)

// setRowAside keeps a row out of the way of the others: its position is negative until the site changes.
func (d *session) setRowAside(ctx context.Context, row table.OutboxEntry, cause error) error {
	t := d.refused[row.ID]
	if row.Position > 0 {
		d.Log.Error("site search refuses a site; it is set aside", "site", row.ID, "reason", cause)
		if _, err := d.owned.DB.Exec(ctx, "update outbox set position = -position where id = ? and position = ?", row.ID, row.Position); err != nil {
			return err
		}
	}
	t.next = time.Now().Add(min(minRefusedBackoff<<min(t.attempts, 20), maxRefusedBackoff))
	t.attempts++
	d.refused[row.ID] = t
	return nil
}
