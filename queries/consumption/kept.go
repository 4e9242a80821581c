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
	Row   *table.UsagePeriod // without its book; nil when there is none
	Lines ledger.Lines
}

// Kept reads a period: row and lines in one statement, so that they are of the same moment while it is written to.
func (c *Consumption) Kept(ctx context.Context, p Named) (k Kept, err error) {
	err = c.shelf.Read(ctx, table.Usage, func(db *table.DB) error {
		k = Kept{Lines: ledger.Lines{}}
		if err := table.CheckAccount(ctx, db, table.OwnerOf(p.Stream())); err != nil {
			return err
		}
		rows, err := db.Query(ctx, `select day, account, api_key, endpoint, requests, 0, 0, 0, 0, 0, '' from usage_line where first = ? and contract = ? and requests <> 0
			union all select '', '', '', '', revision, cap, used, closed, total, lines, digest from usage_period where stream = ?`, p.First, p.Contract, p.Stream())
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			if err := k.scan(rows.Scan); err != nil {
				return err
			}
		}
		return rows.Err()
	})
	if err != nil {
		return Kept{}, fmt.Errorf("usage of %s from %s: %w", p.Contract, p.First, err)
	}
	return k, nil
}

// scan reads a line, or the row where there is no day.
func (k *Kept) scan(into func(...any) error) error {
	var day string
	var at ledger.Line
	var row table.UsagePeriod
	err := into(&day, &at.Account, &at.Key, &at.Endpoint, &row.Revision, &row.Cap, &row.Used, &row.Closed, &row.Total, &row.Lines, &row.Digest)
	switch {
	case err != nil:
	case day == "":
		k.Row = &row
	default:
		at.Day, err = plan.ParseDate(day)
		k.Lines[at] = row.Revision // the requests, which stand there
	}
	return err
}
