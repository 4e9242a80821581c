// Package consumption answers what was counted, from the read model of usage: for an account, for an invoice, and when a
// key was used last. Answers are as old as the read model is; whoever must see a request that was just counted
// waits for it first.
package consumption

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"lieudit/schemas/event"
	"lieudit/schemas/ledger"
	"lieudit/schemas/plan"
	"lieudit/schemas/table"
)

// Consumption is the asking side of usage. It is safe for concurrent use.
type Consumption struct{ shelf *table.Shelf }

// New asks the copies on a shelf.
func New(shelf *table.Shelf) *Consumption { return &Consumption{shelf} }

// Dimension is what requests can be kept apart by.
type Dimension string

const (
	ByKey      Dimension = "key"
	ByEndpoint Dimension = "endpoint"
	ByDay      Dimension = "day"
)

// columns are the columns of lines that are kept apart, in the order in which lines are told.
var columns = []struct {
	by     Dimension
	column string
}{{ByDay, "day"}, {ByKey, "api_key"}, {ByEndpoint, "endpoint"}}

// Question is about one account in one period. Contract is who pays for it and Quota what it may use as things stand,
// should nothing have been counted yet.
type Question struct {
	Account, Contract string
	Quota             int64
	First             plan.Date
	By                []Dimension
}

// Usage is what counts for an account in a period.
type Usage struct {
	Contract  string    // who pays for it: the account, or its agency
	Next      plan.Date // first day of the period after it; zero where the period was not opened
	Limit     int64     // of the account
	Total     int64     // what counts, with later corrections
	Remaining int64     // what may still be counted: for a sub-client no more than its agency has left
	Closed    time.Time // when the period was closed, zero before
	Lines     []Line
}

// Line is how many requests count. What was not asked to be kept apart is zero.
type Line struct {
	Day           plan.Date
	Key, Endpoint string
	Requests      int64
}

// Account answers a question about one account.
func (c *Consumption) Account(ctx context.Context, q Question) (Usage, error) {
	var u Usage
	err := c.shelf.Read(ctx, table.Usage, func(db *table.DB) (err error) {
		u = Usage{Contract: q.Contract, Limit: q.Quota, Remaining: q.Quota}
		if err = u.standing(ctx, db, q); err == nil {
			err = u.count(ctx, db, q)
		}
		return err
	})
	if err != nil {
		return Usage{}, fmt.Errorf("usage of %s from %s: %w", q.Account, q.First, err)
	}
	return u, nil
}

// standing is how far the account is from its cap, by the book of the contract that it was counted for.
func (u *Usage) standing(ctx context.Context, db *table.DB, q Question) error {
	err := db.QueryRow(ctx, "select coalesce(max(contract), ?) from usage_line where first = ? and account = ?",
		q.Contract, q.First.String(), q.Account).Scan(&u.Contract)
	if err != nil {
		return err
	}
	stream := ledger.Stream(u.Contract, q.First)
	if err := table.CheckAccount(ctx, db, table.OwnerOf(stream)); err != nil {
		return err
	}
	rows, err := table.Load(ctx, db, table.UsagePeriods, []string{stream})
	if err != nil || len(rows) == 0 {
		return err
	}
	var balance event.UsageBalanced
	if err := json.Unmarshal([]byte(rows[0].Book), &balance); err != nil {
		return err
	}
	book := ledger.Resume(balance)
	if limit, _, known := book.Cap(q.Account); known {
		u.Limit = limit
	}
	u.Next, u.Closed = balance.Next, rows[0].Closed.Time()
	u.Remaining = max(min(u.Limit-book.Used(q.Account), rows[0].Cap-rows[0].Used), 0)
	return nil
}

// count sums the lines up, by what was asked for.
func (u *Usage) count(ctx context.Context, db *table.DB, q Question) error {
	var kept []string
	for _, c := range columns {
		if slices.Contains(q.By, c.by) {
			kept = append(kept, c.column)
		}
	}
	apart := ""
	if len(kept) > 0 {
		apart = " group by " + strings.Join(kept, ", ") + " order by " + strings.Join(kept, ", ")
	}
	rows, err := db.Query(ctx, "select "+strings.Join(append(kept, "cast(coalesce(sum(requests), 0) as bigint)"), ", ")+
		" from usage_line where first = ? and account = ?"+apart, q.First.String(), q.Account)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		l, err := scan(rows.Scan, kept)
		if err != nil {
			return err
		}
		if l.Requests != 0 { // the sum of nothing is one of them
			u.Total += l.Requests
			u.Lines = append(u.Lines, l)
		}
	}
	return rows.Err()
}

// scan reads a line of the columns that are kept apart.
func scan(into func(...any) error, kept []string) (l Line, err error) {
	var day string
	fields := map[string]any{"day": &day, "api_key": &l.Key, "endpoint": &l.Endpoint}
	targets := make([]any, 0, len(kept)+1)
	for _, column := range kept {
		targets = append(targets, fields[column])
	}
	if err = into(append(targets, &l.Requests)...); err == nil && day != "" {
		l.Day, err = plan.ParseDate(day)
	}
	return l, err
}

// LastUsed is when the last request with each key that counts was recorded. Keys that were never used are left out,
// and so are all while usage is being read for the first time.
func (c *Consumption) LastUsed(ctx context.Context, keys []string) (map[string]time.Time, error) {
	used := map[string]time.Time{}
	err := c.shelf.Read(ctx, table.Usage, func(db *table.DB) error {
		rows, err := table.Load(ctx, db, table.KeyUses, keys)
		for _, r := range rows {
			used[r.Key] = r.Last.Time()
		}
		return err
	})
	if errors.Is(err, table.ErrNone) {
		return used, nil
	}
	return used, err
}
