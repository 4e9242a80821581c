package usage

import (
	"context"
	"iter"
	"strings"

	"lieudit/eventstore/sqldb"
	"lieudit/schemas/ledger"
	"lieudit/schemas/table"
)

// InvoiceLine is a line of an invoice: how many requests of an account with a key to an endpoint count on a day, for a
// contract's period. Dates are as in 2026-11-21.
type InvoiceLine struct {
	Account, Contract, Period, Day, Key, Endpoint string
	Requests                                      int64
}

// pageSize is how many lines of an export are read at once.
const pageSize = 2000

// ExportLines yields what counts in the periods that are called so, all of an account together: 2026-11-21, or 2026-11 for all
// that begin in that month, or "" for all there are. It holds a page of lines at a time; each line is as it stands when it is
// read. An error is the last element; one is that a period of those cannot be read in full, for nobody bills a part.
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

// readPage are the lines after one, in the order of their keys. Periods that begin so end before the digits do.
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

// affectsPeriod says whether a stopped stream may hold what counts in periods that begin so. One of another kind than those of
// usage, of an incarnation say, holds nothing that is billed.
func affectsPeriod(s table.AccountStatus, period string) bool {
	category, _, _ := strings.Cut(s.Stream, "-")
	_, first, ok := ledger.ParseStreamName(s.Stream)
	return category == "usage" && (!ok || strings.HasPrefix(first.String(), period))
}
