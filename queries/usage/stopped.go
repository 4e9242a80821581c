package usage

import (
	"context"
	"strings"

	"lieudit/eventstore/sqldb"
	"lieudit/schemas/table"
	"lieudit/schemas/usagefold"
)

// A period is stopped if its own stream is, or the shared stream in which it is counted: what the rows have of it may then be a part.

// excludeStopped is an SQL condition that leaves out the rows of stopped periods.
func excludeStopped() string {
	return sqldb.ExcludeStoppedAccounts("'/' || stream") + " and " + sqldb.ExcludeStoppedAccounts("'/' || shared")
}

// checkPeriod fails with a *table.StoppedError if the period of a row is stopped. Without a row it is a period that was never opened.
func checkPeriod(ctx context.Context, db *sqldb.DB, stream string, rows []table.UsagePeriod) error {
	err := sqldb.CheckAccount(ctx, db, table.StreamOwner(stream))
	if err == nil && len(rows) > 0 && rows[0].Shared != "" {
		err = sqldb.CheckAccount(ctx, db, table.StreamOwner(rows[0].Shared))
	}
	return err
}

// checkStreams returns the *table.StoppedError of one of the periods, which begin on the same day, or nil if none of them is stopped.
func checkStreams(ctx context.Context, db *sqldb.DB, first string, periods map[PeriodID]StoredPeriod) error {
	stopped, err := sqldb.Select(ctx, db, table.AccountStatuses, "where kind <> ''")
	if err != nil {
		return err
	}
	for _, s := range stopped {
		stream := strings.TrimPrefix(s.Account, "/")
		contract, day, isOwn := usagefold.ParseStreamName(stream)
		if _, isRead := periods[PeriodID{contract, day.String()}]; isOwn && isRead {
			return &table.StoppedError{AccountStatus: s}
		}
		if _, _, isShared := usagefold.ParseSharedStreamName(stream); !isShared {
			continue
		}
		counted, err := sqldb.Select(ctx, db, table.UsagePeriods, "where shared = ? and first = ?", stream, first)
		if err != nil {
			return err
		}
		for _, row := range counted {
			if _, isRead := periods[PeriodID{row.Contract, first}]; isRead {
				return &table.StoppedError{AccountStatus: s}
			}
		}
	}
	return nil
}

// affectsPeriod reports whether a stopped stream may hold what counts in periods whose first day begins with period.
// Streams of other kinds, such as those of instances, hold nothing that is billed.
func affectsPeriod(s table.AccountStatus, period string) bool {
	stream := strings.TrimPrefix(s.Account, "/")
	category, _, _ := strings.Cut(stream, "-")
	_, first, isOwn := usagefold.ParseStreamName(stream)
	month, _, isShared := usagefold.ParseSharedStreamName(stream)
	switch {
	case category != "usage":
		return false
	case isOwn:
		return strings.HasPrefix(first.String(), period)
	case isShared:
		return mayBeginIn(month, period)
	}
	return true
}

// mayBeginIn reports whether a period that begins in a month can have a first day that begins with period.
func mayBeginIn(month, period string) bool {
	return strings.HasPrefix(month, period) || strings.HasPrefix(period, month)
}
