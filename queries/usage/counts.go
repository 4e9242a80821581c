package usage

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"time"

	"lieudit/eventstore"
	"lieudit/eventstore/sqldb"
	"lieudit/schemas/event"
	"lieudit/schemas/plan"
	"lieudit/schemas/table"
	"lieudit/schemas/usagefold"
)

// CountReader answers what the lines of an account are made of, from the log itself. Every part is required. It is safe for concurrent
// use.
type CountReader struct {
	Log   eventstore.Store // of usage
	Codec *eventstore.Codec
	Read  *Reader
}

// CountKind is what an event does to a line.
type CountKind uint8

const (
	CountTicked   CountKind = iota // requests were counted
	CountRefunded                  // they were taken back, because they were not answered properly
	CountAdjusted                  // a closed period was corrected
)

// Count is a part of a line: the requests of one event.
type Count struct {
	Line     // Requests are negative if they are taken away
	Recorded time.Time
	Kind     CountKind
	Reason   string              // of an adjustment; "" if it cannot be read
	Position eventstore.Position // counts of other accounts may be at the same one
}

// CountQuery is about the lines of an account in a period. A zero Day, Key or Endpoint stands for all of them.
type CountQuery struct {
	Account, Contract string // Contract pays for the account now
	First             plan.Date
	Day               plan.Date
	Key, Endpoint     string
}

// selects reports whether the query is about a line.
func (q CountQuery) selects(account string, l Line) bool {
	return account == q.Account && l.Requests != 0 && (q.Day == (plan.Date{}) || l.Day == q.Day) && (q.Key == "" || l.Key == q.Key) && (q.Endpoint == "" || l.Endpoint == q.Endpoint)
}

// Counts yields the parts of an account's lines, for each contract that paid in turn, in the order of the log: later calls yield the same
// parts and perhaps more after those of a contract. Their requests add up to the lines of SummarizeAccount. It folds the stream in which
// the period is counted, because only that decides whether a tick counts: the period's own from the first event, a shared one, which has
// the ticks of all other customers too, from the last snapshot before the lines to their last event. An error is the last element.
func (r *CountReader) Counts(ctx context.Context, q CountQuery) iter.Seq2[Count, error] {
	return func(yield func(Count, error) bool) {
		contracts, err := r.Read.contractsOf(ctx, q)
		if err != nil {
			yield(Count{}, err)
			return
		}
		for _, contract := range contracts {
			if !r.yieldPeriod(ctx, contract, q, yield) {
				return
			}
		}
	}
}

// contractsOf returns the contracts for which an account was counted in a period: nearly always one.
func (c *Reader) contractsOf(ctx context.Context, q CountQuery) (found []string, err error) {
	err = c.registry.Read(ctx, table.UsageModel, func(db *sqldb.DB) error {
		found = []string{q.Contract}
		rows, err := db.Query(ctx, "select distinct contract from {usage_line} where first = ? and account = ? order by contract", q.First.String(), q.Account)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var contract string
			if err := rows.Scan(&contract); err != nil {
				return err
			}
			if contract != q.Contract {
				found = append(found, contract)
			}
		}
		return rows.Err()
	})
	if err != nil {
		return nil, fmt.Errorf("contracts of %s from %s: %w", q.Account, q.First, err)
	}
	return found, nil
}

// countFold yields the parts of an account's lines in one period while it folds the period's streams.
type countFold struct {
	*CountReader
	query   CountQuery
	period  event.PeriodRef
	streams usagefold.StreamsState
	yield   func(Count, error) bool
}

// yieldPeriod yields the parts on the streams of a contract's period, and returns false if the caller must stop. The own stream of a period
// that is counted in a shared one begins with the name of that; what follows there was appended after its counting had ended.
//
//	usage-mende-2026-11-21:  UsageCountedIn ──► yieldShared(usage-2026-11.3) ──► UsageLinesStated, UsageClosed, …
func (r *CountReader) yieldPeriod(ctx context.Context, contract string, q CountQuery, yield func(Count, error) bool) bool {
	f := &countFold{CountReader: r, query: q, period: event.PeriodRef{Contract: contract, First: q.First}, yield: yield}
	return f.yieldEvents(ctx, usagefold.StreamName(contract, q.First), sharedRange{last: math.MaxInt64})
}

// yieldEvents yields the parts on a range of one stream, and before them those of the shared stream that its first event names.
func (f *countFold) yieldEvents(ctx context.Context, stream string, in sharedRange) bool {
	for recorded, err := range f.Log.ReadStream(ctx, stream, eventstore.Revision(in.first), eventstore.Forward) {
		if err == nil && int64(recorded.Revision) > in.last {
			break
		}
		var e event.Event
		if err == nil {
			e, err = event.Decode(recorded.Type, recorded.Data)
		}
		if err != nil && f.isAboutOther(recorded) {
			continue
		}
		if err != nil {
			f.yield(Count{}, fmt.Errorf("%s@%d: %w", stream, recorded.Revision, err))
			return false
		}
		for _, part := range f.streams.Apply(stream, int64(recorded.Revision), e, recorded.Time) {
			if part.PeriodRef == f.period && part.Verdict == usagefold.Counted && !f.yieldEvent(ctx, recorded, part.Event) {
				return false
			}
		}
		if shared, ok := f.streams.CountedIn(f.period); ok && recorded.Revision == 0 && shared != stream && !f.yieldShared(ctx, shared) {
			return false
		}
	}
	return true
}

// sharedRange is the part of a shared stream with all events of some lines of a period. A last revision of 0 means that there are none.
type sharedRange struct {
	first, last int64
	ended       time.Time // when the counting of the period ended; zero if it has not
}

// yieldShared yields the parts on the shared stream in which the period is counted.
func (f *countFold) yieldShared(ctx context.Context, stream string) bool {
	in, err := f.Read.findSharedRange(ctx, f.period, f.query)
	if err == nil && in.last != 0 {
		in.first, err = f.restoreShared(ctx, stream, in.first)
	}
	if err != nil {
		f.yield(Count{}, err)
		return false
	}
	if in.last == 0 {
		return true
	}
	if !f.yieldEvents(ctx, stream, in) {
		return false
	}
	if !in.ended.IsZero() { // beyond the range, but what follows on the own stream depends on it
		f.streams.Apply(stream, in.last, event.SharedUsageEnded{PeriodRef: f.period}, in.ended)
	}
	return true
}

// findSharedRange returns where the events of a period's lines are that a query selects.
func (c *Reader) findSharedRange(ctx context.Context, period event.PeriodRef, q CountQuery) (in sharedRange, err error) {
	condition, args := "contract = ? and first = ? and account = ?", []any{period.Contract, period.First.String(), q.Account}
	for _, part := range []struct{ column, value string }{{"day", dayText(q.Day)}, {"api_key", q.Key}, {"endpoint", q.Endpoint}} {
		if part.value != "" {
			condition, args = condition+" and "+part.column+" = ?", append(args, part.value)
		}
	}
	var ended table.Instant
	err = c.registry.Read(ctx, table.UsageModel, func(db *sqldb.DB) error {
		err := db.QueryRow(ctx, "select coalesce(min(shared_from), 0), coalesce(max(shared_to), 0) from {usage_line} where shared_to > 0 and "+condition, args...).Scan(&in.first, &in.last)
		if err != nil {
			return err
		}
		return db.QueryRow(ctx, "select coalesce(max(ended), 0) from {usage_period} where contract = ? and first = ?", period.Contract, period.First.String()).Scan(&ended)
	})
	if err != nil {
		return in, fmt.Errorf("the events of %s from %s: %w", q.Account, period.First, err)
	}
	in.ended = ended.Time()
	return in, nil
}

// dayText returns a day, or "" for the zero day.
func dayText(d plan.Date) string {
	if d == (plan.Date{}) {
		return ""
	}
	return d.String()
}

// restoreShared begins the fold of a shared stream with the last snapshot before a revision, and returns the revision after that; without
// a snapshot it begins with the first event.
func (f *countFold) restoreShared(ctx context.Context, stream string, before int64) (next int64, err error) {
	if before == 0 {
		return 0, nil
	}
	var parts usagefold.SnapshotParts
	for recorded, err := range f.Log.ReadStream(ctx, stream, eventstore.Revision(before-1), eventstore.Backward) {
		if err != nil {
			return 0, fmt.Errorf("snapshot of %s before %d: %w", stream, before, err)
		}
		if recorded.Type != (event.SharedUsageSnapshotTaken{}).EventType() {
			continue
		}
		e, err := event.Decode(recorded.Type, recorded.Data)
		part, ok := e.(event.SharedUsageSnapshotTaken)
		if err != nil || !ok {
			continue // an earlier one does as well
		}
		if all, isComplete := parts.Add(part); isComplete {
			f.streams.RestoreShared(stream, usagefold.RestoreShared(all))
			return part.AsOfRevision + 1, nil
		}
	}
	return 0, nil
}

// isAboutOther reports whether an event of a shared stream that cannot be decoded is about another period.
func (f *countFold) isAboutOther(r eventstore.RecordedEvent) bool {
	_, _, isShared := usagefold.ParseSharedStreamName(r.Stream)
	ref, ok := event.DecodePeriodRef(r.Data)
	return isShared && ok && ref != f.period
}

// yieldEvent yields the parts of an event that counts.
func (f *countFold) yieldEvent(ctx context.Context, recorded eventstore.RecordedEvent, e event.Event) bool {
	for _, part := range partsOf(e) {
		if !f.query.selects(part.account, part.Line) {
			continue
		}
		var err error
		part.Recorded, part.Position = recorded.Time, recorded.Position
		if part.Kind == CountAdjusted {
			part.Reason, err = f.openReason(ctx, recorded, e)
		}
		if !f.yield(part.Count, err) || err != nil {
			return false
		}
	}
	return true
}

// accountCount is a Count with its account.
type accountCount struct {
	Count
	account string
}

// partsOf returns what an event that counts adds to lines.
func partsOf(e event.Event) []accountCount {
	parts := func(kind CountKind, day plan.Date, sign int64, counts ...event.UsageCount) []accountCount {
		all := make([]accountCount, len(counts))
		for i, c := range counts {
			all[i] = accountCount{Count{Line: Line{day, c.Key, c.Endpoint, sign * c.Requests}, Kind: kind}, c.Account}
		}
		return all
	}
	switch e := e.(type) {
	case event.UsageTicked:
		return parts(CountTicked, e.Day, 1, e.Counts...)
	case event.UsageLinesStated: // in place of a shared stream that is gone
		var all []accountCount
		for _, l := range e.Lines {
			all = append(all, parts(CountTicked, l.Day, 1, l.UsageCount)...)
		}
		return all
	case event.UsageRefunded:
		return parts(CountRefunded, e.Day, -1, e.Counts...)
	case event.UsageAdjusted:
		return parts(CountAdjusted, e.Day, 1, event.UsageCount{Account: e.Account, Key: e.Key, Endpoint: e.Endpoint, Requests: e.Requests})
	}
	return nil
}

// openReason returns why a period was corrected, or "" if that cannot be read: the correction counts nevertheless.
func (r *CountReader) openReason(ctx context.Context, recorded eventstore.RecordedEvent, e event.Event) (string, error) {
	meta, err := r.Codec.DecodeMetadata(ctx, recorded, e)
	if errors.Is(err, eventstore.ErrUnreadable) {
		return "", nil
	}
	return meta.Reason, err
}

// AccountPeriod is a period in which something was counted for an account.
type AccountPeriod struct {
	Contract    string
	First, Next plan.Date // Next is zero if nothing is known of the period itself
	Closed      time.Time // zero if it is open
}

// daysAtOnce is how many days one statement of AccountPeriods looks at: few enough for the statement to be one that connections keep.
const daysAtOnce = 62

// AccountPeriods returns the periods that begin from one day to another in which something was counted for an account, the latest
// first. A period may begin on any of the days, since an account that joined or left an agency has changed its own.
func (c *Reader) AccountPeriods(ctx context.Context, account string, from, to plan.Date) (found []AccountPeriod, err error) {
	err = c.registry.Read(ctx, table.UsageModel, func(db *sqldb.DB) error {
		found = nil
		for days := daysBetween(from, to); len(days) > 0; {
			n := min(daysAtOnce, len(days))
			periods, err := readAccountPeriods(ctx, db, account, days[:n])
			if err != nil {
				return err
			}
			found, days = append(found, periods...), days[n:]
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("periods of %s: %w", account, err)
	}
	slices.Reverse(found)
	return found, nil
}

// daysBetween lists the days from one to another.
func daysBetween(from, to plan.Date) (days []string) {
	for d := time.Date(from.Year, from.Month, from.Day, 0, 0, 0, 0, time.UTC); ; d = d.AddDate(0, 0, 1) {
		text := d.Format(time.DateOnly)
		if text > to.String() {
			return days
		}
		days = append(days, text)
	}
}

// readAccountPeriods reads the periods that begin on some days. Lines are sorted by the first day, the account and the contract, so each
// day costs a look in an index. The list is filled up, so that there is one statement to prepare.
func readAccountPeriods(ctx context.Context, db *sqldb.DB, account string, days []string) (found []AccountPeriod, err error) {
	var args []any
	for i := range daysAtOnce {
		args = append(args, days[min(i, len(days)-1)])
	}
	rows, err := db.Query(ctx, `with day(first) as (values (?)`+strings.Repeat(", (?)", daysAtOnce-1)+`),
		found as (select distinct day.first, (select contract from {usage_line} l where l.first = day.first and l.account = ? order by contract desc limit 1) as contract from day)
		select found.first, found.contract, coalesce(p.next, ''), coalesce(p.closed, 0)
		from found left join {usage_period} p on p.contract = found.contract and p.first = found.first where found.contract is not null order by found.first`, append(args, account)...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		p, err := scanAccountPeriod(rows.Scan)
		if err != nil {
			return nil, err
		}
		found = append(found, p)
	}
	return found, rows.Err()
}

func scanAccountPeriod(scan func(...any) error) (p AccountPeriod, err error) {
	var first, next string
	var closed table.Instant
	if err = scan(&first, &p.Contract, &next, &closed); err != nil {
		return p, err
	}
	p.Closed = closed.Time()
	if p.First, err = plan.ParseDate(first); err == nil && next != "" {
		p.Next, err = plan.ParseDate(next)
	}
	return p, err
}
