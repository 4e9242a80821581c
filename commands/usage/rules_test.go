package usage_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"lieudit/commands/usage"
	"lieudit/eventstore"
	"lieudit/eventstore/journal"
	"lieudit/schemas/ledger"
	"lieudit/schemas/plan"
)

// clock is a clock that is set by hand.
type clock struct{ at atomic.Int64 }

func newClock(t time.Time) *clock {
	c := &clock{}
	c.set(t)
	return c
}

func (c *clock) set(t time.Time) { c.at.Store(t.UnixNano()) }
func (c *clock) now() time.Time  { return time.Unix(0, c.at.Load()) }

// logOf is a log with a clock of its own.
func logOf(t testing.TB, c *clock) *journal.Journal {
	t.Helper()
	j, err := journal.Open(t.TempDir(), journal.Options{SegmentSize: 1 << 20, Clock: c.now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	return j
}

func at(t testing.TB, text string) time.Time {
	t.Helper()
	moment, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		t.Fatal(err)
	}
	return moment
}

func stream(account, first string) string {
	d, _ := plan.ParseDate(first)
	return ledger.Stream(account, d)
}

func counts(t *testing.T, l *usage.Ledger, account string, quota int64) {
	t.Helper()
	if _, err := l.Count(t.Context(), holder(account, quota), "GET /me"); err != nil {
		t.Errorf("not counted: %v", err)
	}
}

func total(t *testing.T, store eventstore.Store, stream string, want int64) {
	t.Helper()
	if f, _ := refold(t, store, stream); f.Lines.Total() != want {
		t.Errorf("%s: %d counted, want %d", stream, f.Lines.Total(), want)
	}
}

func TestTheLastRequestOfAPeriodAndTheFirstOfTheNextCountApart(t *testing.T) {
	t.Parallel()
	c := newClock(at(t, "2026-03-20T23:59:59.999+01:00"))
	log := logOf(t, c)
	l := instance(t, log, log, &volumes{caps: map[string]int64{"a": 10}}, c.now)
	counts(t, l, "a", 10)
	c.set(at(t, "2026-03-21T00:00:00+01:00"))
	counts(t, l, "a", 10)
	counts(t, l, "a", 10)
	total(t, log, stream("a", "2026-02-21"), 1)
	total(t, log, stream("a", "2026-03-21"), 2)
}

func TestAFastClockOpensNoPeriodEarly(t *testing.T) {
	t.Parallel()
	logs, mine := newClock(at(t, "2026-03-20T23:00:00+01:00")), newClock(at(t, "2026-03-21T00:30:00+01:00"))
	log := logOf(t, logs)
	l := instance(t, log, log, &volumes{caps: map[string]int64{"a": 10}}, mine.now)
	counts(t, l, "a", 10)
	counts(t, l, "a", 10)
	total(t, log, stream("a", "2026-02-21"), 2)
	total(t, log, stream("a", "2026-03-21"), 0)
	f, _ := refold(t, log, stream("a", "2026-02-21"))
	for line := range f.Lines {
		if line.Day.String() != "2026-03-20" {
			t.Errorf("counted on %s, want the period's last day", line.Day)
		}
	}
	logs.set(at(t, "2026-03-20T23:59:30+01:00")) // less than a minute early is early enough
	mine.set(at(t, "2026-03-21T01:29:30+01:00"))
	counts(t, l, "a", 10)
	total(t, log, stream("a", "2026-03-21"), 1)
}

func TestAClockSetBackReopensNoPeriod(t *testing.T) {
	t.Parallel()
	c := newClock(at(t, "2026-03-21T08:00:00+01:00"))
	log := logOf(t, c)
	terms := &volumes{caps: map[string]int64{"a": 10}}
	l := instance(t, log, log, terms, c.now)
	counts(t, l, "a", 10)
	slow := newClock(at(t, "2026-03-19T08:00:00+01:00"))
	closed := instance(t, log, log, terms, slow.now)
	counts(t, closed, "a", 10) // nobody has closed the period before
	total(t, log, stream("a", "2026-02-21"), 1)
	if err := l.Close(t.Context(), "a", plan.PeriodAt(anchor, slow.now())); err != nil {
		t.Fatal(err)
	}
	counts(t, closed, "a", 10)
	counts(t, instance(t, log, log, terms, slow.now), "a", 10)
	c.set(at(t, "2026-03-20T08:00:00+01:00"))
	counts(t, l, "a", 10)
	total(t, log, stream("a", "2026-02-21"), 1)
	total(t, log, stream("a", "2026-03-21"), 4)
}

func TestTheAgencysVolumeAndTheSubClientsQuotaBothHold(t *testing.T) {
	t.Parallel()
	log := openLog(t)
	l := instance(t, log, log, &volumes{caps: map[string]int64{"agency": 10, "a": 4, "b": 100}}, time.Now)
	spent := func(account string, quota int64) (n int, limit int64) {
		g := holder(account, quota)
		if account != "agency" {
			g.Agency = "agency"
		}
		for ; ; n++ {
			_, err := l.Count(t.Context(), g, "GET /me")
			if capped := new(usage.SpentError); errors.As(err, &capped) {
				return n, capped.Limit
			} else if err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, c := range []struct {
		account     string
		quota, want int64
		limit       int64
	}{{"a", 4, 4, 4}, {"b", 100, 6, 10}, {"agency", 10, 0, 10}} {
		if n, limit := spent(c.account, c.quota); int64(n) != c.want || limit != c.limit {
			t.Errorf("%s: %d counted, then the limit of %d; want %d and %d", c.account, n, limit, c.want, c.limit)
		}
	}
}

func TestARefundMakesRoom(t *testing.T) {
	t.Parallel()
	log := openLog(t)
	l := instance(t, log, log, &volumes{caps: map[string]int64{"a": 1}}, time.Now)
	for range 3 {
		r, err := l.Hold(t.Context(), holder("a", 1), "PUT /x")
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Admit(t.Context(), holder("a", 1), "GET /me"); err == nil {
			t.Error("admitted at the cap")
		}
		if err := r.Refund(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	counts(t, l, "a", 1)
	total(t, log, ledger.Stream("a", plan.PeriodAt(anchor, time.Now()).First), 1)
}

func TestARaisedQuotaActsAtOnce(t *testing.T) {
	t.Parallel()
	log := openLog(t)
	terms := &volumes{caps: map[string]int64{"a": 1}}
	l, other := instance(t, log, log, terms, time.Now), instance(t, log, log, terms, time.Now)
	counts(t, l, "a", 1)
	if err := other.Admit(t.Context(), holder("a", 1), "GET /me"); err == nil {
		t.Error("admitted above the cap")
	}
	terms.set("a", 3)
	counts(t, l, "a", 3)
	counts(t, other, "a", 3)
	if _, err := other.Count(t.Context(), holder("a", 3), "GET /me"); err == nil {
		t.Error("counted above the raised cap")
	}
	if _, err := l.Count(t.Context(), holder("a", 1), "GET /me"); err == nil { // its key ring is behind
		t.Error("counted above the raised cap")
	}
}
