package usage

import (
	"context"
	"fmt"

	"lieudit/eventstore/sqldb"
	"lieudit/schemas/ledger"
	"lieudit/schemas/plan"
	"lieudit/schemas/table"
)

// PeriodID names a period of a contract. First is its first day, 2026-11-21.
type PeriodID struct{ Contract, First string }

// Stream is what holds the period in the log.
func (p PeriodID) Stream() string { return "usage-" + p.Contract + "-" + p.First }

// PeriodIDs are all that the read model holds anything of, of those whose first day begins so.
func (c *Reader) PeriodIDs(ctx context.Context, prefix string) (found []PeriodID, err error) {
	err = c.registry.Read(ctx, table.UsageModel, func(db *sqldb.DB) error {
		found = nil
		rows, err := db.Query(ctx, `select contract, first from usage_period where first >= ? and first < ? union
			select distinct contract, first from usage_line where first >= ? and first < ? order by 1, 2`, prefix, prefix+"~", prefix, prefix+"~")
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var p PeriodID
			if err := rows.Scan(&p.Contract, &p.First); err != nil {
				return err
			}
			found = append(found, p)
		}
		return rows.Err()
	})
	return found, err
}

// StoredPeriod is all that the read model holds of a period, as of one revision of its stream.
type StoredPeriod struct {
	Row   *table.UsagePeriod // without its book; nil when there is none
	Lines ledger.Lines
}

// ReadPeriod reads a period: row and lines in one statement, so that they are of the same moment while it is written to.
func (c *Reader) ReadPeriod(ctx context.Context, p PeriodID) (k StoredPeriod, err error) {
	err = c.registry.Read(ctx, table.UsageModel, func(db *sqldb.DB) error {
		k = StoredPeriod{Lines: ledger.Lines{}}
		if err := sqldb.CheckAccount(ctx, db, table.StreamOwner(p.Stream())); err != nil {
			return err
		}
		rows, err := db.Query(ctx, `select day, account, api_key, endpoint, requests, 0, 0, 0, 0, 0, '' from usage_line where first = ? and contract = ? and requests <> 0
			union all select '', '', '', '', revision, cap, used, closed, total, lines, digest from usage_period where stream = ?`, p.First, p.Contract, p.Stream())
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			if err := k.scanRow(rows.Scan); err != nil {
				return err
			}
		}
		return rows.Err()
	})
	if err != nil {
		return StoredPeriod{}, fmt.Errorf("usage of %s from %s: %w", p.Contract, p.First, err)
	}
	return k, nil
}

// scanRow reads a line, or the row where there is no day.
func (k *StoredPeriod) scanRow(scan func(...any) error) error {
	var day string
	var line ledger.LineKey
	var row table.UsagePeriod
	err := scan(&day, &line.Account, &line.Key, &line.Endpoint, &row.Revision, &row.Cap, &row.Used, &row.Closed, &row.Total, &row.Lines, &row.Digest)
	switch {
	case err != nil:
	case day == "":
		k.Row = &row
	default:
		line.Day, err = plan.ParseDate(day)
		k.Lines[line] = row.Revision // the requests, which stand there
	}
	return err
}
