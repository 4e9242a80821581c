package usage

import (
	"context"
	"fmt"

	"lieudit/eventstore/sqldb"
	"lieudit/schemas/plan"
	"lieudit/schemas/table"
)

// Period is a contract's period.
type Period struct {
	Contract string
	plan.Period
}

// UnclosedPeriods are up to limit periods that ended on a day or before and were not closed, the oldest first.
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

func periodFromRow(r table.UsagePeriod) (p Period, err error) {
	p.Contract = r.Contract
	if p.First, err = plan.ParseDate(r.First); err == nil {
		p.Next, err = plan.ParseDate(r.Next)
	}
	return p, err
}
