package usage

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"lieudit/eventstore/sqldb"
	"lieudit/schemas/ledger"
	"lieudit/schemas/plan"
	"lieudit/schemas/table"
)

// Period is a contract's period. A contract is named after the account that pays: the account itself, or its agency.
type Period struct {
	Contract string
	plan.Period
}

// UnclosedPeriods are up to limit periods that ended by a day (their Next is that day or earlier) and were not closed, the
// oldest first. Stopped ones are left out.
func (c *Reader) UnclosedPeriods(ctx context.Context, endedBy plan.Date, limit int) (periods []Period, err error) {
	err = c.registry.Read(ctx, table.UsageModel, func(db *sqldb.DB) error {
		rows, err := sqldb.Select(ctx, db, table.UsagePeriods, "where closed = 0 and next <= ? and "+sqldb.ExcludeStoppedAccounts("'/' || stream")+" order by next, stream limit ?", endedBy.String(), limit)
		if err != nil {
			return err
		}
		periods = periods[:0]
		for _, r := range rows {
			p, err := periodFromRow(r)
			if err != nil {
				return err
			}
			periods = append(periods, p)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("periods not closed: %w", err)
	}
	return periods, nil
}

// periodFromRow fails where a day of the row is no date.
func periodFromRow(r table.UsagePeriod) (p Period, err error) {
	p.Contract = r.Contract
	if p.First, err = plan.ParseDate(r.First); err == nil {
		p.Next, err = plan.ParseDate(r.Next)
	}
	return p, err
}

// PeriodID names a period of a contract. First is its first day, 2026-11-21.
type PeriodID struct{ Contract, First string }

// Stream is the name of the period's stream in the log.
func (p PeriodID) Stream() string { return "usage-" + p.Contract + "-" + p.First }

// PeriodIDs are the periods that the read model has anything of and whose first day begins with prefix, as in 2026-11.
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

// StoredPeriod is all that the read model has of a period, as of one revision of its stream.
type StoredPeriod struct {
	Row   *table.UsagePeriod // without PeriodState; nil when there is none
	Lines ledger.Lines
}

// ReadPeriod reads a period. Row and lines come from one statement, so they are of the same moment while a projection
// writes. It fails with a *table.StoppedError while the stream of the period is stopped.
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

// scanRow reads a line, or the period's row where the day is empty.
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
		k.Lines[line] = row.Revision // the column holds a line's requests
	}
	return err
}

// InvoiceLine is a line of an invoice: how many requests of an account with a key to an endpoint count on a day, for a
// contract's period. Dates are as in 2026-11-21.
type InvoiceLine struct {
	Account, Contract, Period, Day, Key, Endpoint string
	Requests                                      int64
}

// pageSize is how many lines of an export are read at once.
const pageSize = 2000

// ExportLines yields the lines of the periods whose first day begins with period: 2026-11-21, or 2026-11 for a month,
// or "" for all. Lines of a period are next to each other, and within it those of an account. It holds one page in
// memory; each line is as it was when its page was read. An error is the last element. A period that cannot be read in
// full is an error, as nobody should be billed for a part.
func (c *Reader) ExportLines(ctx context.Context, period string) iter.Seq2[InvoiceLine, error] {
	return func(yield func(InvoiceLine, error) bool) {
		for after := (table.UsageLine{First: period}); ; {
			rows, err := c.readPage(ctx, period, after)
			if err != nil {
				yield(InvoiceLine{}, err)
				return
			}
			for _, r := range rows {
				if !yield(InvoiceLine{r.Account, r.Contract, r.First, r.Day, r.Key, r.Endpoint, r.Requests}, nil) {
					return
				}
			}
			if len(rows) < pageSize {
				return
			}
			after = rows[len(rows)-1]
		}
	}
}

// readPage reads the lines after one, in the order of their keys. "~" sorts after the digits of all periods that begin
// with period. It fails with a *table.StoppedError if a stopped stream may hold lines of these periods.
func (c *Reader) readPage(ctx context.Context, period string, after table.UsageLine) (rows []table.UsageLine, err error) {
	err = c.registry.Read(ctx, table.UsageModel, func(db *sqldb.DB) error {
		stopped, err := sqldb.Select(ctx, db, table.AccountStatuses, "where kind <> ''")
		if err != nil {
			return err
		}
		for _, s := range stopped {
			if affectsPeriod(s, period) {
				return &table.StoppedError{AccountStatus: s}
			}
		}
		rows, err = sqldb.Select(ctx, db, table.UsageLines, `where (first, account, contract, day, api_key, endpoint) > (?, ?, ?, ?, ?, ?)
			and first < ? and requests <> 0 order by first, account, contract, day, api_key, endpoint limit ?`,
			after.First, after.Account, after.Contract, after.Day, after.Key, after.Endpoint, period+"~", pageSize)
		return err
	})
	return rows, err
}

// affectsPeriod says whether a stopped stream may hold what counts in periods whose first day begins with period.
// Streams of other kinds, such as those of instances, hold nothing that is billed.
func affectsPeriod(s table.AccountStatus, period string) bool {
	category, _, _ := strings.Cut(s.Stream, "-")
	_, first, ok := ledger.ParseStreamName(s.Stream)
	return category == "usage" && (!ok || strings.HasPrefix(first.String(), period))
}
