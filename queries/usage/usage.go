// Package usage answers which requests were counted, from the read model that projections/usage fills
// (table.UsageModel): for an account (SummarizeAccount, AccountPeriods), for invoices (ExportLines), for whoever closes and
// checks periods (UnclosedPeriods, ReadPeriods), and when a key was used last. A CountReader answers from the log what the lines of an
// account are made of. Answers of the Reader are as old as the read model is: a caller that must see a request that was just counted
// waits for it first.
package usage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"lieudit/eventstore/sqldb"
	"lieudit/schemas/event"
	"lieudit/schemas/plan"
	"lieudit/schemas/table"
	"lieudit/schemas/usagefold"
)

// Reader answers from the read model. It is safe for concurrent use.
type Reader struct {
	registry *sqldb.Registry
	cache    sumCache
}

// New makes a Reader of a registry's read model.
func New(registry *sqldb.Registry) *Reader { return &Reader{registry: registry} }

// Dimension is what the lines of a Summary can be grouped by.
type Dimension string

const (
	ByKey      Dimension = "key"
	ByEndpoint Dimension = "endpoint"
	ByDay      Dimension = "day"
)

// dimensionColumns are the columns that lines can be grouped by, in the order in which lines are sorted.
var dimensionColumns = []struct {
	by     Dimension
	column string
}{{ByDay, "day"}, {ByKey, "api_key"}, {ByEndpoint, "endpoint"}}

// Query is about one account in one period. Contract, which pays for the account, and Quota are used if nothing was counted yet;
// otherwise those of the period are. For the running period, Quota is always used, because the period learns of a change only with
// the next request.
type Query struct {
	Account, Contract string
	Quota             int64 // the account's now
	IsRunning         bool  // the period is the one that the account is in now
	First             plan.Date
	GroupBy           []Dimension

	// Only the lines of a day, a key or an endpoint, unless they are zero. The total stays that of all lines.
	Day           plan.Date
	Key, Endpoint string
}

// isFiltered reports whether only some lines are asked for.
func (q Query) isFiltered() bool { return q.Day != (plan.Date{}) || q.Key != "" || q.Endpoint != "" }

// filter is the condition on lines that the query asks for, with its arguments.
func (q Query) filter() (condition string, args []any) {
	condition, args = "first = ? and account = ?", []any{q.First.String(), q.Account}
	if q.Day != (plan.Date{}) {
		condition, args = condition+" and day = ?", append(args, q.Day.String())
	}
	if q.Key != "" {
		condition, args = condition+" and api_key = ?", append(args, q.Key)
	}
	if q.Endpoint != "" {
		condition, args = condition+" and endpoint = ?", append(args, q.Endpoint)
	}
	return condition, args
}

// Summary is what counts for an account in a period.
type Summary struct {
	Contract  string    // who pays for it: the account, or its agency
	Next      plan.Date // first day of the next period; zero if the period was not opened
	Limit     int64     // requests that the account may use in the period
	Total     int64     // requests that count, later corrections included
	Remaining int64     // requests that may still be counted: for a sub-client no more than its agency has left
	Closed    time.Time // when the period was closed; zero if it is open
	Lines     []Line
	Entries   int64 // on the streams of the period, up to which the read model shows it
}

// Line is a number of requests that count. Dimensions that were not asked for are zero.
type Line struct {
	Day           plan.Date
	Key, Endpoint string
	Requests      int64
}

// SummarizeAccount answers a query about one account. An unknown period has no lines. It fails with a *table.StoppedError while
// a stream of the period is stopped.
func (c *Reader) SummarizeAccount(ctx context.Context, q Query) (Summary, error) {
	var u Summary
	err := c.registry.ReadGeneration(ctx, table.UsageModel, func(g sqldb.Generation, db *sqldb.DB) error {
		u = Summary{Contract: q.Contract, Limit: q.Quota, Remaining: q.Quota}
		err := u.loadQuota(ctx, db, q)
		if err == nil {
			err = c.loadSums(ctx, db, &u, q, generationID{g.Name, g.Created})
		}
		return err
	})
	if err != nil {
		return Summary{}, fmt.Errorf("usage of %s from %s: %w", q.Account, q.First, err)
	}
	return u, nil
}

// loadQuota reads how far the account is from its cap, from the state of the period in which it was counted. For the running
// period the query names the contract; for an earlier one the lines do, because an account that has left its agency since was
// counted in the agency's period. Without lines, or without the period, u keeps the values of the query.
func (u *Summary) loadQuota(ctx context.Context, db *sqldb.DB, q Query) error {
	if !q.IsRunning {
		err := db.QueryRow(ctx, "select coalesce(max(contract), ?) from {usage_line} where first = ? and account = ?",
			q.Contract, q.First.String(), q.Account).Scan(&u.Contract)
		if err != nil {
			return err
		}
	}
	stream := usagefold.StreamName(u.Contract, q.First)
	rows, err := sqldb.LoadByKeys(ctx, db, table.UsagePeriods, []string{stream})
	if err == nil {
		err = checkPeriod(ctx, db, stream, rows)
	}
	if err != nil || len(rows) == 0 {
		return err
	}
	var snapshot event.UsageSnapshotTaken
	if err := json.Unmarshal([]byte(rows[0].PeriodState), &snapshot); err != nil {
		return err
	}
	state := usagefold.RestorePeriod(snapshot)
	if limit, _, known := state.Cap(q.Account); known && !q.IsRunning {
		u.Limit = limit
	}
	u.Next, u.Closed, u.Entries = snapshot.Next, rows[0].Closed.Time(), rows[0].Entries()
	contractLimit := rows[0].Cap
	if u.Contract == q.Account {
		contractLimit = u.Limit
	}
	u.Remaining = max(min(u.Limit-state.Used(q.Account), contractLimit-rows[0].Used), 0)
	return nil
}

// sumLines sums the lines, grouped as asked, and adds up their total. Lines are sorted by the groups, in the order of
// dimensionColumns.
func (u *Summary) sumLines(ctx context.Context, db *sqldb.DB, q Query) error {
	var groupColumns []string
	for _, c := range dimensionColumns {
		if slices.Contains(q.GroupBy, c.by) {
			groupColumns = append(groupColumns, c.column)
		}
	}
	grouping := ""
	if len(groupColumns) > 0 {
		grouping = " group by " + strings.Join(groupColumns, ", ") + " order by " + strings.Join(groupColumns, ", ")
	}
	condition, args := q.filter()
	rows, err := db.Query(ctx, "select "+strings.Join(append(groupColumns, "cast(coalesce(sum(requests), 0) as bigint)"), ", ")+
		" from {usage_line} where "+condition+grouping, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		l, err := scanLine(rows.Scan, groupColumns)
		if err != nil {
			return err
		}
		if l.Requests != 0 { // without a group there is one line even if nothing counts
			u.Total += l.Requests
			u.Lines = append(u.Lines, l)
		}
	}
	if err := rows.Err(); err != nil || !q.isFiltered() {
		return err
	}
	return db.QueryRow(ctx, "select cast(coalesce(sum(requests), 0) as bigint) from {usage_line} where first = ? and account = ?",
		q.First.String(), q.Account).Scan(&u.Total)
}

// scanLine reads a line whose columns are the groups and then the sum. Without the day among the groups the line's Day is
// zero.
func scanLine(scanRow func(...any) error, groupColumns []string) (l Line, err error) {
	var day string
	fields := map[string]any{"day": &day, "api_key": &l.Key, "endpoint": &l.Endpoint}
	targets := make([]any, 0, len(groupColumns)+1)
	for _, column := range groupColumns {
		targets = append(targets, fields[column])
	}
	if err = scanRow(append(targets, &l.Requests)...); err == nil && day != "" {
		l.Day, err = plan.ParseDate(day)
	}
	return l, err
}

// CountLines returns about how many lines a summary of an account can have at most: requests that are counted meanwhile may add some.
func (c *Reader) CountLines(ctx context.Context, q Query) (lines int, err error) {
	if lines, ok := c.cache.size(q.cacheKey(q.Contract)); ok {
		return lines, nil
	}
	err = c.registry.Read(ctx, table.UsageModel, func(db *sqldb.DB) error {
		return db.QueryRow(ctx, "select count(*) from {usage_line} where first = ? and account = ?", q.First.String(), q.Account).Scan(&lines)
	})
	if err != nil {
		return 0, fmt.Errorf("usage of %s from %s: %w", q.Account, q.First, err)
	}
	return lines, nil
}

// LastUsed returns the time at which the last counted request of each key was recorded. It leaves out keys that were never used,
// and all keys while the read model is being built for the first time.
func (c *Reader) LastUsed(ctx context.Context, keys []string) (map[string]time.Time, error) {
	used := map[string]time.Time{}
	err := c.registry.Read(ctx, table.UsageModel, func(db *sqldb.DB) error {
		rows, err := sqldb.LoadByKeys(ctx, db, table.KeyUses, keys)
		for _, r := range rows {
			used[r.Key] = r.LastUsed.Time()
		}
		return err
	})
	if errors.Is(err, sqldb.ErrNotReady) {
		return used, nil
	}
	return used, err
}
