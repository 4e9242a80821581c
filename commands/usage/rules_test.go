package usage_test

import (
	"context"
	"errors"
	"maps"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"lieudit/commands/usage"
	"lieudit/eventstore"
	"lieudit/eventstore/journal"
	"lieudit/eventstore/waitlimit"
	"lieudit/schemas/event"
	"lieudit/schemas/grant"
	"lieudit/schemas/plan"
	"lieudit/schemas/usagefold"
)

// fakeClock is a clock that is set by hand.
type fakeClock struct{ at atomic.Int64 }

func newFakeClock(t time.Time) *fakeClock {
	c := &fakeClock{}
	c.set(t)
	return c
}

func (c *fakeClock) set(t time.Time) { c.at.Store(t.UnixNano()) }
func (c *fakeClock) now() time.Time  { return time.Unix(0, c.at.Load()) }

// openLogWithClock opens a log that stamps events with a clock.
func openLogWithClock(t testing.TB, c *fakeClock) *journal.Journal {
	t.Helper()
	j, err := journal.Open(t.TempDir(), journal.Options{SegmentSize: 1 << 20, Clock: c.now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	return j
}

func parseTime(t testing.TB, text string) time.Time {
	t.Helper()
	moment, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		t.Fatal(err)
	}
	return moment
}

func streamOf(account, first string) string {
	d, _ := plan.ParseDate(first)
	return usagefold.StreamName(account, d)
}

// countRequest counts one request that is answered afterwards.
func countRequest(ctx context.Context, m *usage.Meter, wait *waitlimit.Wait, g grant.Grant, endpoint string) (usage.QuotaUsage, error) {
	c, err := m.Charge(ctx, wait, g, endpoint, 1)
	if err == nil {
		err = m.Settle(ctx, c, 0)
	}
	return c.QuotaUsage, err
}

func mustCount(t *testing.T, m *usage.Meter, account string, quota int64) {
	t.Helper()
	if _, err := countRequest(t.Context(), m, newWait(account), grantOf(account, quota), "GET /me"); err != nil {
		t.Errorf("not counted: %v", err)
	}
}

func checkTotal(t *testing.T, store eventstore.Store, stream string, want int64) {
	t.Helper()
	if f, _ := foldStream(t, store, stream); f.Lines.Total() != want {
		t.Errorf("%s: %d counted, want %d", stream, f.Lines.Total(), want)
	}
}

func TestRequestsOnBothSidesOfAPeriodsEndCountInTheirOwnPeriods(t *testing.T) {
	t.Parallel()
	c := newFakeClock(parseTime(t, "2026-03-20T23:59:59.999+01:00"))
	log := openLogWithClock(t, c)
	m := startMeter(t, log, log, &fakeQuotas{caps: map[string]int64{"a": 10}}, c.now)
	mustCount(t, m, "a", 10)
	c.set(parseTime(t, "2026-03-21T00:00:00+01:00"))
	mustCount(t, m, "a", 10)
	mustCount(t, m, "a", 10)
	checkTotal(t, log, streamOf("a", "2026-02-21"), 1)
	checkTotal(t, log, streamOf("a", "2026-03-21"), 2)
}

func TestAFastClockOpensNoPeriodEarly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, testFastClock)
}

func testFastClock(t *testing.T) {
	logs, mine := newFakeClock(parseTime(t, "2026-03-20T23:00:00+01:00")), newFakeClock(parseTime(t, "2026-03-21T00:30:00+01:00"))
	log := openLogWithClock(t, logs)
	m := startMeter(t, log, log, &fakeQuotas{caps: map[string]int64{"a": 10}}, mine.now)
	mustCount(t, m, "a", 10)
	mustCount(t, m, "a", 10)
	checkTotal(t, log, streamOf("a", "2026-02-21"), 2)
	checkTotal(t, log, streamOf("a", "2026-03-21"), 0)
	f, _ := foldStream(t, log, streamOf("a", "2026-02-21"))
	for line := range f.Lines {
		if line.Day.String() != "2026-03-20" {
			t.Errorf("counted on %s, want the period's last day", line.Day)
		}
	}
	logs.set(parseTime(t, "2026-03-20T23:59:30+01:00")) // a period may be opened up to a minute early
	mine.set(parseTime(t, "2026-03-21T01:29:30+01:00"))
	time.Sleep(59*time.Minute + 30*time.Second)
	mustCount(t, m, "a", 10)
	checkTotal(t, log, streamOf("a", "2026-03-21"), 1)
}

// An instance that was early for a period counts in it from its beginning by the log's clock, although its own clock was set in the
// meantime.
func TestAPauseBeforeAPeriodDoesNotDependOnTheWallClock(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]time.Duration{
		"not set": 0, "put right": -90 * time.Minute, "less fast": -45 * time.Minute, "even faster": 10 * time.Hour,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { testPauseBeforeAPeriod(t, set) })
		})
	}
}

// testPauseBeforeAPeriod begins an hour before a period, with an instance whose clock is 90 minutes fast until it is set.
func testPauseBeforeAPeriod(t *testing.T, set time.Duration) {
	logs, mine := newFakeClock(parseTime(t, "2026-03-20T23:00:00+01:00")), newFakeClock(parseTime(t, "2026-03-21T00:30:00+01:00"))
	log := openLogWithClock(t, logs)
	m := startMeter(t, log, log, &fakeQuotas{caps: map[string]int64{"a": 10}}, mine.now)
	r, err := m.Charge(t.Context(), newWait("a"), grantOf("a", 10), "PUT /x", 1)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Settle(t.Context(), r, 0) // until then the period is not evicted, however long it is idle
	mine.set(mine.now().Add(set))
	for i, elapsed := range []time.Duration{58 * time.Minute, 2 * time.Minute} {
		time.Sleep(elapsed)
		logs.set(logs.now().Add(elapsed))
		mine.set(mine.now().Add(elapsed))
		mustCount(t, m, "a", 10)
		checkTotal(t, log, streamOf("a", "2026-02-21"), 2)
		checkTotal(t, log, streamOf("a", "2026-03-21"), int64(i))
	}
}

// askedQuotas counts how often a quota is read.
type askedQuotas struct {
	fakeQuotas
	asked atomic.Int64
}

func (v *askedQuotas) QuotaAt(ctx context.Context, account string, at time.Time) (int64, eventstore.Position, error) {
	v.asked.Add(1)
	return v.fakeQuotas.QuotaAt(ctx, account, at)
}

func TestAQuotaThatTheKeyRingDisagreesOnIsReadAgainByElapsedTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		wall := newFakeClock(parseTime(t, "2026-03-10T12:00:00+01:00"))
		log := openLogWithClock(t, wall)
		quotas := &askedQuotas{fakeQuotas: fakeQuotas{caps: map[string]int64{"a": 10}}}
		m := startMeter(t, log, log, quotas, wall.now)
		mustCount(t, m, "a", 9)
		for _, step := range []struct {
			elapsed, set time.Duration
			want         int64 // readings of the quota
		}{
			{0, 0, 0}, {0, time.Hour, 0}, {0, -2 * time.Hour, 0}, {time.Second, -time.Second, 1}, {time.Second, 0, 1}, {time.Second, time.Hour, 1},
		} {
			time.Sleep(step.elapsed)
			wall.set(wall.now().Add(step.set))
			before := quotas.asked.Load()
			mustCount(t, m, "a", 9)
			if got := quotas.asked.Load() - before; got != step.want {
				t.Errorf("after %v, with the clock set by %v: read %d times, want %d", step.elapsed, step.set, got, step.want)
			}
		}
	})
}

func TestAClockSetBackReopensNoPeriod(t *testing.T) {
	t.Parallel()
	c := newFakeClock(parseTime(t, "2026-03-21T08:00:00+01:00"))
	log := openLogWithClock(t, c)
	quotas := &fakeQuotas{caps: map[string]int64{"a": 10}}
	m := startMeter(t, log, log, quotas, c.now)
	mustCount(t, m, "a", 10)
	slow := newFakeClock(parseTime(t, "2026-03-19T08:00:00+01:00"))
	closed := startMeter(t, log, log, quotas, slow.now)
	mustCount(t, closed, "a", 10) // the period before is not closed
	checkTotal(t, log, streamOf("a", "2026-02-21"), 1)
	if err := m.ClosePeriods(t.Context(), usage.ContractPeriod{Contract: "a", Period: plan.PeriodAt(anchor, slow.now())}); err != nil {
		t.Fatal(err)
	}
	mustCount(t, closed, "a", 10)
	mustCount(t, startMeter(t, log, log, quotas, slow.now), "a", 10)
	c.set(parseTime(t, "2026-03-20T08:00:00+01:00"))
	mustCount(t, m, "a", 10)
	checkTotal(t, log, streamOf("a", "2026-02-21"), 1)
	checkTotal(t, log, streamOf("a", "2026-03-21"), 4)
}

// A sub-client leaves its agency at the end of a period. One contract pays in each period, also where the clock of an instance is
// behind the log's, or ahead of it.
func TestOneContractPaysForAPeriodWhateverTheClockSays(t *testing.T) {
	t.Parallel()
	end := parseTime(t, "2026-03-21T00:00:00+01:00")
	for name, c := range map[string]struct {
		log, before, now time.Duration // after the period's end: the log's clock, and the instance's at a first request and then
		agency, own      int64         // requests that each pays for, in the period before and in the one after
	}{
		"clock is right":     {-time.Hour, -2 * time.Hour, -time.Hour, 2, 0},
		"clock is set back":  {2 * time.Hour, time.Hour, -time.Hour, 0, 2},
		"clock is ahead":     {-time.Hour, time.Hour, time.Hour, 2, 0},
		"period has changed": {time.Hour, -time.Hour, time.Hour, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			logs, mine := newFakeClock(end.Add(c.log)), newFakeClock(end.Add(c.before))
			log := openLogWithClock(t, logs)
			grantAt := func(at time.Time) grant.Grant {
				g := grantOf("a", 10)
				if at.Before(end) {
					g.Agency, g.AgencyQuota = "agency", 100
				}
				return g
			}
			terms := func(_ string, at time.Time) (grant.Terms, bool) { return grantAt(at).Terms, true }
			m := startMeterOf(t, log, &fakeQuotas{caps: map[string]int64{"a": 10, "agency": 100}}, terms, mine.now)
			other := grantOf("agency", 100) // its period is the one that the clock has come to
			for _, at := range []time.Time{end.Add(c.before), end.Add(c.now)} {
				mine.set(at)
				for _, g := range []grant.Grant{other, grantAt(at)} {
					if _, err := countRequest(t.Context(), m, newWait(g.Account), g, "GET /me"); err != nil {
						t.Fatal(err)
					}
				}
			}
			got := map[string]int64{}
			for _, contract := range []string{"a", "agency"} {
				for _, first := range []string{"2026-02-21", "2026-03-21"} {
					f, _ := foldStream(t, log, streamOf(contract, first))
					for line, n := range f.Lines {
						if line.Account == "a" {
							got[contract+" "+first] += n
						}
					}
				}
			}
			want := map[string]int64{}
			if c.agency > 0 {
				want["agency 2026-02-21"] = c.agency
			}
			if c.own > 0 {
				want["a 2026-03-21"] = c.own
			}
			if !maps.Equal(got, want) {
				t.Errorf("paid for: %v, want %v", got, want)
			}
		})
	}
}

// A request authenticates before its body is read, and may wait for the log: a membership that has changed by the time that it is counted
// decides who pays.
func TestWhoPaysIsDecidedWhenARequestIsCounted(t *testing.T) {
	t.Parallel()
	end := parseTime(t, "2026-03-21T00:00:00+01:00")
	for name, c := range map[string]struct {
		before, after string        // the agency before the period's end, and after it
		counted       time.Duration // after the period's end
		want          string        // contract and period that pay
	}{
		"has left":                  {"agency", "", time.Second, "a 2026-03-21"},
		"has left long ago":         {"agency", "", 50 * time.Minute, "a 2026-03-21"},
		"is about to leave":         {"agency", "", -time.Second, "agency 2026-02-21"},
		"has joined":                {"", "agency", time.Second, "agency 2026-03-21"},
		"has gone to another one":   {"other", "agency", time.Second, "agency 2026-03-21"},
		"stays what it always was":  {"agency", "agency", time.Second, "agency 2026-03-21"},
		"stays without any of them": {"", "", time.Second, "a 2026-03-21"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clock := newFakeClock(end.Add(-time.Minute))
			log := openLogWithClock(t, clock)
			grantAt := func(at time.Time) grant.Grant {
				g := grantOf("a", 10)
				if g.Agency = c.after; at.Before(end) {
					g.Agency = c.before
				}
				if g.Agency != "" {
					g.AgencyQuota = 100
				}
				return g
			}
			terms := func(_ string, at time.Time) (grant.Terms, bool) { return grantAt(at).Terms, true }
			m := startMeterOf(t, log, &fakeQuotas{caps: map[string]int64{"a": 10, "agency": 100, "other": 100}}, terms, clock.now)
			authenticated := grantAt(clock.now())
			clock.set(end.Add(c.counted))
			if _, err := m.Charge(t.Context(), newWait("a"), authenticated, "POST /route/matrix", 1); err != nil {
				t.Fatal(err)
			}
			for _, contract := range []string{"a", "agency", "other"} {
				for _, first := range []string{"2026-02-21", "2026-03-21"} {
					want := int64(0)
					if contract+" "+first == c.want {
						want = 1
					}
					checkTotal(t, log, streamOf(contract, first), want)
				}
			}
		})
	}
}

func TestTheAgencysVolumeAndTheSubClientsQuotaBothHold(t *testing.T) {
	t.Parallel()
	log := openLog(t)
	m := startMeter(t, log, log, &fakeQuotas{caps: map[string]int64{"agency": 10, "a": 4, "b": 100}}, time.Now)
	spent := func(account string, quota int64) (n int, limit int64) {
		g := grantOf(account, quota)
		if account != "agency" {
			g.Agency = "agency"
		}
		for ; ; n++ {
			_, err := countRequest(t.Context(), m, newWait(account), g, "GET /me")
			if capped := new(usage.QuotaExceededError); errors.As(err, &capped) {
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

func TestARefundedRequestCanBeUsedAgain(t *testing.T) {
	t.Parallel()
	log := openLog(t)
	m := startMeter(t, log, log, &fakeQuotas{caps: map[string]int64{"a": 1}}, time.Now)
	for range 3 {
		r, err := m.Charge(t.Context(), newWait("a"), grantOf("a", 1), "PUT /x", 1)
		if err != nil {
			t.Fatal(err)
		}
		if err := m.CheckQuota(t.Context(), newWait("a"), grantOf("a", 1), "GET /me"); err == nil {
			t.Error("admitted at the cap")
		}
		if err := m.Settle(t.Context(), r, 1); err != nil {
			t.Fatal(err)
		}
	}
	mustCount(t, m, "a", 1)
	checkTotal(t, log, usagefold.StreamName("a", plan.PeriodAt(anchor, time.Now()).First), 1)
}

// endingQuotas is a quota that ends with a period.
type endingQuotas struct {
	end           time.Time
	before, after int64
	position      eventstore.Position
	asked         atomic.Int64
}

func (q *endingQuotas) QuotaAt(_ context.Context, _ string, at time.Time) (int64, eventstore.Position, error) {
	defer q.asked.Add(1)
	if at.Before(q.end) {
		return q.before, q.position, nil
	}
	return q.after, q.position, nil
}

// A quota that is lowered from the next period on leaves the one that an instance whose clock is behind still counts in as it is, also
// where an instance that is in the next period already reads it.
func TestAQuotaOfTheNextPeriodIsNoCapOfTheOneBefore(t *testing.T) {
	t.Parallel()
	end := parseTime(t, "2026-03-21T00:00:00+01:00")
	logs, ahead, behind := newFakeClock(end.Add(-time.Hour)), newFakeClock(end.Add(-time.Hour)), newFakeClock(end.Add(-time.Hour))
	log, core := openLogWithClock(t, logs), openLog(t)
	quotas := &endingQuotas{end: end, before: 10, after: 10, position: 1}
	m, other := startMeter(t, log, core, quotas, ahead.now), startMeter(t, log, core, quotas, behind.now)
	mustCount(t, m, "a", 10)
	mustCount(t, other, "a", 10)
	logs.set(end.Add(time.Minute))
	ahead.set(end.Add(time.Minute))
	quotas.after, quotas.position = 2, 2
	asked := quotas.asked.Load()
	appendEvent(t, core, "account-a", event.PlanChanged{})
	waitUntil(t, func() bool { return quotas.asked.Load() >= asked+2 })
	mustCount(t, other, "a", 10)
	mustCount(t, other, "a", 10)
	checkTotal(t, log, streamOf("a", "2026-02-21"), 4)
}

// The period that an instance opens because its clock is ahead of the log's has the quota of its own time.
func TestAPeriodOpenedByAClockAheadHasItsOwnQuota(t *testing.T) {
	t.Parallel()
	end := parseTime(t, "2026-03-21T00:00:00+01:00")
	logs, mine := newFakeClock(end.Add(-time.Hour)), newFakeClock(end.Add(time.Hour))
	log := openLogWithClock(t, logs)
	m := startMeter(t, log, log, &endingQuotas{end: end, before: 10, after: 2, position: 1}, mine.now)
	for range 3 {
		mustCount(t, m, "a", 2)
	}
	checkTotal(t, log, streamOf("a", "2026-02-21"), 3)
}

func TestARaisedQuotaIsInForceAtOnce(t *testing.T) {
	t.Parallel()
	log := openLog(t)
	quotas := &fakeQuotas{caps: map[string]int64{"a": 1}}
	m, other := startMeter(t, log, log, quotas, time.Now), startMeter(t, log, log, quotas, time.Now)
	mustCount(t, m, "a", 1)
	if err := other.CheckQuota(t.Context(), newWait("a"), grantOf("a", 1), "GET /me"); err == nil {
		t.Error("admitted above the cap")
	}
	quotas.set("a", 3)
	mustCount(t, m, "a", 3)
	mustCount(t, other, "a", 3)
	if _, err := countRequest(t.Context(), other, newWait("a"), grantOf("a", 3), "GET /me"); err == nil {
		t.Error("counted above the raised cap")
	}
	if _, err := countRequest(t.Context(), m, newWait("a"), grantOf("a", 1), "GET /me"); err == nil { // its key ring still has the old quota
		t.Error("counted above the raised cap")
	}
}

// An agency's quota may be raised while its sub-clients alone make requests, and by a clock that is ahead.
func TestAnAgencysRaisedQuotaIsInForceAtOnce(t *testing.T) {
	t.Parallel()
	log := openLog(t)
	quotas := &fakeQuotas{caps: map[string]int64{"agency": 1, "a": 100}}
	m := startMeter(t, log, log, quotas, time.Now)
	g := grantOf("a", 100)
	g.Agency, g.AgencyQuota = "agency", 1
	mustCountWith(t, m, g, 1)
	if err := m.CheckQuota(t.Context(), newWait("a"), g, "GET /me"); err == nil {
		t.Error("admitted above the agency's cap")
	}
	quotas.set("agency", 3)
	g.AgencyQuota = 3
	mustCountWith(t, m, g, 2)
	if err := m.CheckQuota(t.Context(), newWait("a"), g, "GET /me"); err == nil {
		t.Error("admitted above the agency's raised cap")
	}
}

func TestRequestsThatAreReservedTogetherCountWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	log := openLog(t)
	m := startMeter(t, log, log, &fakeQuotas{caps: map[string]int64{"agency": 1000, "a": 100}}, time.Now)
	g := grantOf("a", 100)
	g.Agency = "agency"
	mustCountWith(t, m, g, 40)
	_, err := m.Charge(t.Context(), newWait(g.Account), g, "POST /search/csv", 61)
	if exceeded := new(usage.QuotaExceededError); !errors.As(err, &exceeded) || exceeded.Limit != 100 {
		t.Errorf("61 of 60 left: %v, want the limit of the account itself", err)
	}
	mustCountWith(t, m, g, 60)
	if err := m.CheckQuota(t.Context(), newWait(g.Account), g, "GET /me"); err == nil {
		t.Error("admitted at the cap")
	}
	checkTotal(t, log, usagefold.StreamName("agency", plan.PeriodAt(anchor, time.Now()).First), 100)
	if _, counted := m.Totals(); counted != 100 {
		t.Errorf("the instance counted %d requests, want 100", counted)
	}
}

// mustCountWith counts requests together and keeps them.
func mustCountWith(t *testing.T, m *usage.Meter, g grant.Grant, requests int64) {
	t.Helper()
	r, err := m.Charge(t.Context(), newWait(g.Account), g, "POST /search/csv", requests)
	if err != nil {
		t.Fatalf("%d requests are not counted: %v", requests, err)
	}
	if err := m.Settle(t.Context(), r, 0); err != nil {
		t.Error(err)
	}
}

func TestAPartOfWhatWasReservedIsRefunded(t *testing.T) {
	t.Parallel()
	log := openLog(t)
	m := startMeter(t, log, log, &fakeQuotas{caps: map[string]int64{"a": 100}}, time.Now)
	for _, c := range []struct{ reserved, refunded, used int64 }{{100, 70, 30}, {70, 0, 100}} {
		r, err := m.Charge(t.Context(), newWait("a"), grantOf("a", 100), "POST /search/csv", c.reserved)
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Settle(t.Context(), r, c.refunded); err != nil {
			t.Fatal(err)
		}
		checkTotal(t, log, usagefold.StreamName("a", plan.PeriodAt(anchor, time.Now()).First), c.used)
	}
}
