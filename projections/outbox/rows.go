package outbox

import (
	"context"
	"strings"
	"time"

	"lieudit/schemas/table"
)

// batch is what the index is told of rows: the sites as they stand now, which may be later than what the rows say.
func (d *drain) batch(ctx context.Context, rows []table.Outgoing) (Batch, error) {
	b := Batch{Fill: d.fill, Position: d.told}
	keys := make([]string, 0, len(rows))
	for _, r := range rows {
		b.Position = max(b.Position, r.Position)
		keys = append(keys, r.ID)
	}
	var err error
	if b.Sites, err = table.Load(ctx, d.own.DB, table.Sites, keys); err != nil {
		return Batch{}, err
	}
	there := make(map[string]bool, len(b.Sites))
	for _, s := range b.Sites {
		there[s.ID] = true
	}
	for _, key := range keys {
		if !there[key] {
			b.Gone = append(b.Gone, key)
		}
	}
	return b, nil
}

// crossOut deletes what was told, unless it changed since. A row that is not there any more was told by another instance
// too, perhaps before this one and of a later state: it is told once more. So are the sites of an account that was told
// to be gone, should it have some.
func (d *drain) crossOut(ctx context.Context, rows []table.Outgoing) error {
	keys := make([]string, len(rows))
	for i, r := range rows {
		keys[i] = r.ID
		delete(d.aside, r.ID)
	}
	return d.own.DB.Tx(ctx, func(tx *table.Tx) error {
		left, err := table.Load(ctx, tx, table.Outbox, keys)
		if err != nil {
			return err
		}
		stands := make(map[string]int64, len(left))
		for _, r := range left {
			stands[r.ID] = r.Position
		}
		var told, again []table.Outgoing
		for _, r := range rows {
			switch at, there := stands[r.ID]; {
			case !there:
				r.Position = max(r.Position, -r.Position)
				again = append(again, r)
			case at == r.Position:
				told = append(told, r)
			}
		}
		if err := forget(ctx, tx, told); err != nil {
			return err
		}
		return table.Upsert(ctx, tx, table.Outbox, again)
	})
}

// forget deletes rows, and has the sites told again of accounts that were gone.
func forget(ctx context.Context, tx *table.Tx, rows []table.Outgoing) error {
	for n := 0; len(rows) > 0; rows = rows[n:] {
		n = min(len(rows), 200)
		args := make([]any, 0, n)
		for _, r := range rows[:n] {
			args = append(args, r.ID)
			account, all := strings.CutSuffix(r.ID, "/")
			if !all {
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

// trial is how often something was refused, and when it is tried again.
type trial struct {
	times int
	next  time.Time
}

const (
	firstTrial = 10 * time.Second
	lastTrial  = time.Hour
)

// setAside keeps a row out of the way of the others: its position is negative until the site changes.
func (d *drain) setAside(ctx context.Context, row table.Outgoing, cause error) error {
	t := d.aside[row.ID]
	if row.Position > 0 {
		d.Log.Error("site search refuses a site; it is set aside", "site", row.ID, "reason", cause)
		if _, err := d.own.DB.Exec(ctx, "update outbox set position = -position where id = ? and position = ?", row.ID, row.Position); err != nil {
			return err
		}
	}
	t.next = time.Now().Add(min(firstTrial<<min(t.times, 20), lastTrial))
	t.times++
	d.aside[row.ID] = t
	return nil
}
