package consumption

import (
	"context"
	"fmt"

	"lieudit/schemas/ledger"
	"lieudit/schemas/plan"
	"lieudit/schemas/table"
)

// Named names a period of a contract. First is its first day, 2026-11-21.
type Named struct{ Contract, First string }

// Stream is what holds the period in the log.
func (p Named) Stream() string { return "usage-" + p.Contract + "-" + p.First }

// Periods are all that the read model holds anything of, of those whose first day begins so.
func (c *Consumption) Periods(ctx context.Context, begin string) (found []Named, err error) {
	err = c.shelf.Read(ctx, table.Usage, func(db *table.DB) error {
		found = nil
		rows, err := db.Query(ctx, `select contract, first from usage_period where first >= ? and first < ? union
			select distinct contract, first from usage_line where first >= ? and first < ? order by 1, 2`, begin, begin+"~", begin, begin+"~")
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var p Named
			if err := rows.Scan(&p.Contract, &p.First); err != nil {
				return err
			}
			found = append(found, p)
		}
		return rows.Err()
	})
	return found, err
}

// Kept is all that the read model holds of a period, as of one revision of its stream.
type Kept struct {
	Row   *table.UsagePeriod // nil when there is none
	Lines ledger.Lines
}

// Kept reads a period. It is read again for as long as it is written to meanwhile.
func (c *Consumption) Kept(ctx context.Context, p Named) (k Kept, err error) {
	err = c.shelf.Read(ctx, table.Usage, func(db *table.DB) error {
		for {
			before, err := c.row(ctx, db, p)
			if err != nil {
				return err
			}
			if k.Lines, err = c.lines(ctx, db, p); err != nil {
				return err
			}
			if k.Row, err = c.row(ctx, db, p); err != nil {
				return err
			}
			if before == nil && k.Row == nil || before != nil && k.Row != nil && before.Revision == k.Row.Revision {
				return nil
			}
		}
	})
	if err != nil {
		return Kept{}, fmt.Errorf("usage of %s from %s: %w", p.Contract, p.First, err)
	}
	return k, nil
}

func (c *Consumption) row(ctx context.Context, db *table.DB, p Named) (*table.UsagePeriod, error) {
	rows, err := table.Load(ctx, db, table.UsagePeriods, []string{p.Stream()})
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return &rows[0], nil
}

func (c *Consumption) lines(ctx context.Context, db *table.DB, p Named) (ledger.Lines, error) {
	rows, err := table.Select(ctx, db, table.UsageLines, "where first = ? and contract = ? and requests <> 0", p.First, p.Contract)
	if err != nil {
		return nil, err
	}
	lines := make(ledger.Lines, len(rows))
	for _, r := range rows {
		day, err := plan.ParseDate(r.Day)
		if err != nil {
			return nil, err
		}
		lines[ledger.Line{Day: day, Account: r.Account, Key: r.Key, Endpoint: r.Endpoint}] = r.Requests
	}
	return lines, nil
}
