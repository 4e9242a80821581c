package usage

import (
	"context"
	"fmt"

	"lieudit/eventstore/sqldb"
	"lieudit/schemas/plan"
	"lieudit/schemas/table"
)

// PeriodsAhead returns up to limit periods that begin after today but already hold requests, because a clock was ahead when they were
// opened, or because today is a past day. The first to begin comes first. It leaves out stopped periods, those in which nothing counts any
// more, and those of a contract whose current period has come to that, because its requests are counted in the next one.
func (c *Reader) PeriodsAhead(ctx context.Context, today plan.Date, limit int) (periods []Period, err error) {
	err = c.registry.Read(ctx, table.UsageModel, func(db *sqldb.DB) error {
		rows, err := sqldb.Select(ctx, db, table.UsagePeriods, "where first > ? and closed = 0 and ended = 0 and used <> 0 and "+
			excludeStopped()+" and contract not in (select contract from {usage_period} where (closed <> 0 or ended <> 0) and next > ?) order by first, stream limit ?",
			today.String(), today.String(), limit)
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
		return nil, fmt.Errorf("periods ahead of %s: %w", today, err)
	}
	return periods, nil
}
