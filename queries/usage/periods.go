package usage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"lieudit/eventstore/sqldb"
	"lieudit/schemas/plan"
	"lieudit/schemas/table"
	"lieudit/schemas/usagefold"
)

// Period is a contract's period. A contract is named after the account that pays: the account itself, or its agency.
type Period struct {
	Contract string
	plan.Period
}

// UnclosedPeriods returns up to limit periods that ended by a day (their Next is that day or earlier) and were not closed, the
// oldest first. Those in which nothing counts any more but which lack their closing are among them. It leaves out stopped ones.
func (c *Reader) UnclosedPeriods(ctx context.Context, endedBy plan.Date, limit int) (periods []Period, err error) {
	err = c.registry.Read(ctx, table.UsageModel, func(db *sqldb.DB) error {
		rows, err := sqldb.Select(ctx, db, table.UsagePeriods, "where closed = 0 and next <= ? and "+excludeStopped()+" order by next, stream limit ?", endedBy.String(), limit)
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

// periodFromRow fails if a day of the row is not a date.
func periodFromRow(r table.UsagePeriod) (p Period, err error) {
	p.Contract = r.Contract
	if p.First, err = plan.ParseDate(r.First); err == nil {
		p.Next, err = plan.ParseDate(r.Next)
	}
	return p, err
}

// PeriodID names a period of a contract. First is its first day, 2026-11-21.
type PeriodID struct{ Contract, First string }

// Stream returns the name of the period's stream in the log.
func (p PeriodID) Stream() string { return "usage-" + p.Contract + "-" + p.First }

// PeriodIDs returns the periods in the read model whose first day begins with prefix, such as 2026-11.
func (c *Reader) PeriodIDs(ctx context.Context, prefix string) (found []PeriodID, err error) {
	err = c.registry.Read(ctx, table.UsageModel, func(db *sqldb.DB) error {
		found = nil
		rows, err := db.Query(ctx, `select contract, first from {usage_period} where first >= ? and first < ? union
			select distinct contract, first from {usage_line} where first >= ? and first < ? order by 1, 2`, prefix, prefix+"~", prefix, prefix+"~")
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

// StoredPeriod is everything that the read model holds of a period, as of one revision of its streams.
type StoredPeriod struct {
	Row   *table.UsagePeriod // without PeriodState; nil if there is no row
	Lines usagefold.Lines
}

// ReadPeriods reads some periods that begin on the same day; periods are in the order of PeriodIDs. The result has an entry for
// each of them. Rows and lines come from one statement, so they are consistent while a projection writes. It fails with a
// *table.StoppedError while the stream of one of them is stopped.
//
// Lines are not indexed by contract, so a call reads the lines of all periods that begin on the day: a few calls with many
// periods are fast, many calls with one period are not.
func (c *Reader) ReadPeriods(ctx context.Context, periods []PeriodID) (map[PeriodID]StoredPeriod, error) {
	found := make(map[PeriodID]StoredPeriod, len(periods))
	if len(periods) == 0 {
		return found, nil
	}
	first, contract, lastContract := periods[0].First, periods[0].Contract, periods[len(periods)-1].Contract
	err := c.registry.Read(ctx, table.UsageModel, func(db *sqldb.DB) error {
		clear(found)
		for _, p := range periods {
			found[p] = StoredPeriod{Lines: usagefold.Lines{}}
		}
		if err := checkStreams(ctx, db, first, found); err != nil {
			return err
		}
		rows, err := db.Query(ctx, `select contract, day, account, api_key, endpoint, requests, 0, 0, 0, 0, 0, '', '', 0, 0 from {usage_line}
				where first = ? and contract >= ? and contract <= ? and requests <> 0
			union all select contract, '', '', '', '', revision, cap, used, closed, total, lines, digest, shared, ended, own_revision from {usage_period}
				where first = ? and contract >= ? and contract <= ?`, first, contract, lastContract, first, contract, lastContract)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			if err := addStoredRow(found, first, rows.Scan); err != nil {
				return err
			}
		}
		return rows.Err()
	})
	if err != nil {
		return nil, fmt.Errorf("usage of periods from %s: %w", first, err)
	}
	return found, nil
}

// addStoredRow adds a line to its period, or the period's row if the day is empty. It skips rows of periods that are not in
// found: other contracts may lie between them.
func addStoredRow(found map[PeriodID]StoredPeriod, first string, scan func(...any) error) error {
	var contract, day string
	var line usagefold.LineKey
	var row table.UsagePeriod
	err := scan(&contract, &day, &line.Account, &line.Key, &line.Endpoint,
		&row.Revision, &row.Cap, &row.Used, &row.Closed, &row.Total, &row.Lines, &row.Digest, &row.Shared, &row.Ended, &row.OwnRevision)
	if err != nil {
		return err
	}
	p, isRead := found[PeriodID{contract, first}]
	switch {
	case !isRead:
	case day == "":
		p.Row = &row
		found[PeriodID{contract, first}] = p
	default:
		line.Day, err = plan.ParseDate(day)
		p.Lines[line] = row.Revision // the column holds a line's requests
	}
	return err
}

// BilledPeriod is a period of a contract as billing lists it.
type BilledPeriod struct {
	Period
	Limit    int64     // requests that the contract may use
	Requests int64     // that count, later corrections included
	Closed   time.Time // zero while it is open
}

// ListPeriods returns up to limit periods whose first day begins with prefix, such as 2026-11, after one: the last to begin come first,
// and those of one day by their contracts. The zero PeriodID is before all. It leaves out stopped periods. Lines are not indexed by
// contract, so a call reads the lines of all periods that begin on the days it shows.
func (c *Reader) ListPeriods(ctx context.Context, prefix string, after PeriodID, limit int) (periods []BilledPeriod, more bool, err error) {
	last := cmp.Or(after.First, "~")
	err = c.registry.Read(ctx, table.UsageModel, func(db *sqldb.DB) error {
		rows, err := sqldb.Select(ctx, db, table.UsagePeriods, "where first >= ? and first < ? and (first < ? or first = ? and contract > ?) and "+
			excludeStopped()+" order by first desc, contract limit ?", prefix, prefix+"~", last, last, after.Contract, limit+1)
		if err != nil || len(rows) == 0 {
			return err
		}
		more = len(rows) > limit
		rows = rows[:min(len(rows), limit)]
		sums, err := sumPeriods(ctx, db, rows[len(rows)-1].First, rows[0].First)
		periods = make([]BilledPeriod, len(rows))
		for i, r := range rows {
			p, rowErr := periodFromRow(r)
			err = errors.Join(err, rowErr)
			periods[i] = BilledPeriod{p, r.Cap, sums[PeriodID{r.Contract, r.First}], r.Closed.Time()}
		}
		return err
	})
	return periods, more, err
}

// sumPeriods returns how many requests count in each period that begins from one day to another.
func sumPeriods(ctx context.Context, db *sqldb.DB, from, to string) (map[PeriodID]int64, error) {
	rows, err := db.Query(ctx, `select contract, first, cast(coalesce(sum(requests), 0) as bigint) from {usage_line}
		where first >= ? and first <= ? group by first, contract`, from, to)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	sums := map[PeriodID]int64{}
	for rows.Next() {
		var p PeriodID
		var sum int64
		if err := rows.Scan(&p.Contract, &p.First, &sum); err != nil {
			return nil, err
		}
		sums[p] = sum
	}
	return sums, rows.Err()
}

// InvoiceLine is a line of an invoice: how many requests count for an account, a key, an endpoint and a day of a contract's
// period. Dates have the form 2026-11-21.
type InvoiceLine struct {
	Account, Contract, Period, Day, Key, Endpoint string
	Requests                                      int64
	Next                                          string // first day of the period after it; "" if nothing is known of the period itself
	IsClosed                                      bool   // only corrections change it
}

// pageSize is how many lines of an export are read at once.
const pageSize = 2000

// ExportLines yields the lines of the periods whose first day begins with period: 2026-11-21, or 2026-11 for a month, or "" for
// all. Lines are grouped by period, and within it by account. It holds one page in memory; each line is as of the time when its
// page was read. An error is the last element. A period that cannot be read in full is an error, because nobody should be
// billed for a part of it.
func (c *Reader) ExportLines(ctx context.Context, period string) iter.Seq2[InvoiceLine, error] {
	return func(yield func(InvoiceLine, error) bool) {
		for after := (table.UsageLine{First: period}); ; {
			rows, err := c.readPage(ctx, period, after)
			if err != nil {
				yield(InvoiceLine{}, err)
				return
			}
			for _, r := range rows {
				if !yield(r, nil) {
					return
				}
			}
			if len(rows) < pageSize {
				return
			}
			last := rows[len(rows)-1]
			after = table.UsageLine{First: last.Period, Account: last.Account, Contract: last.Contract, Day: last.Day, Key: last.Key, Endpoint: last.Endpoint}
		}
	}
}

// readPage reads the lines after one, in the order of their keys. "~" sorts after the digits of all periods that begin
// with period. It fails with a *table.StoppedError if a stopped stream may hold lines of these periods.
func (c *Reader) readPage(ctx context.Context, period string, after table.UsageLine) (lines []InvoiceLine, err error) {
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
		rows, err := db.Query(ctx, `select l.first, l.account, l.contract, l.day, l.api_key, l.endpoint, l.requests, coalesce(p.next, ''), coalesce(p.closed, 0)
			from {usage_line} l left join {usage_period} p on p.contract = l.contract and p.first = l.first
			where (l.first, l.account, l.contract, l.day, l.api_key, l.endpoint) > (?, ?, ?, ?, ?, ?)
			and l.first < ? and l.requests <> 0 order by l.first, l.account, l.contract, l.day, l.api_key, l.endpoint limit ?`,
			after.First, after.Account, after.Contract, after.Day, after.Key, after.Endpoint, period+"~", pageSize)
		if err != nil {
			return err
		}
		defer rows.Close()
		lines = lines[:0]
		for rows.Next() {
			var l InvoiceLine
			var closed table.Instant
			if err := rows.Scan(&l.Period, &l.Account, &l.Contract, &l.Day, &l.Key, &l.Endpoint, &l.Requests, &l.Next, &closed); err != nil {
				return err
			}
			l.IsClosed = closed != 0
			lines = append(lines, l)
		}
		return rows.Err()
	})
	return lines, err
}
