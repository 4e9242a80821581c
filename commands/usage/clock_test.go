package usage_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"lieudit/commands/usage"
	"lieudit/eventstore"
	"lieudit/eventstore/clock"
	"lieudit/eventstore/clock/clocktest"
	"lieudit/eventstore/memory"
	"lieudit/schemas/event"
	"lieudit/schemas/plan"
	"lieudit/schemas/usagefold"
)

// skewedClock runs with the time of the bubble, which is what is right, and is set apart from it by hand.
type skewedClock struct {
	mu   sync.Mutex
	skew time.Duration
}

func (c *skewedClock) set(skew time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.skew = skew
}

func (c *skewedClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.skew).UTC()
}

// startComparedMeter starts a meter whose clock is compared with that of a log.
func startComparedMeter(t *testing.T, log eventstore.Store, wall *skewedClock) *usage.Meter {
	t.Helper()
	c := clock.New(clock.Options{Sources: clock.Sources{Wall: wall.now}, IsCompared: true, Log: slog.New(slog.DiscardHandler)})
	m := usage.New(log, newCodec(), &fakeQuotas{caps: map[string]int64{"a": 300}}, keptTerms, newLimiter(), c, slog.New(slog.DiscardHandler))
	return runMeter(t, m, log)
}

// checkCounting checks whether a meter counts, or fails because of its clock.
func checkCounting(t *testing.T, m *usage.Meter, isCounted bool) {
	t.Helper()
	_, err := countRequest(t.Context(), m, newWait("a"), grantOf("a", 300), "GET /me")
	if doubt := new(clock.DoubtError); isCounted && err != nil || !isCounted && (!errors.Is(err, usage.ErrUnavailable) || !errors.As(err, &doubt)) {
		t.Errorf("counted: %v, want that it counts: %v", err, isCounted)
	}
	if err := m.CheckQuota(t.Context(), newWait("a"), grantOf("a", 300), "GET /me"); (err == nil) != isCounted {
		t.Errorf("checked: %v, want that it counts: %v", err, isCounted)
	}
}

const day = 24 * time.Hour

func TestNothingIsCountedByAClockThatDiffersFromTheLogs(t *testing.T) {
	t.Parallel()
	for _, wrong := range []time.Duration{6 * time.Minute, 40 * day, -6 * time.Minute, -40 * day} {
		synctest.Test(t, func(t *testing.T) {
			var right, mine skewedClock
			log := memory.New(right.now)
			mine.set(wrong) // from the start: the first request waits for the comparison
			m := startComparedMeter(t, log, &mine)
			checkCounting(t, m, false)
			time.Sleep(time.Hour)
			checkCounting(t, m, false)
			mine.set(0) // it comes back by itself, at once
			checkCounting(t, m, true)
			mine.set(wrong)
			checkCounting(t, m, false)
			right.set(wrong) // both are set: the log's times say so after a while
			time.Sleep(time.Minute)
			checkCounting(t, m, true)
			right.set(0)
			time.Sleep(time.Hour)
			checkCounting(t, m, false)
			want := int64(1) // in the present period, and one in that of the time to which both clocks were set
			if wrong.Abs() < day {
				want = 2
			}
			checkTotal(t, log, usagefold.StreamName("a", plan.PeriodAt(anchor, time.Now()).First), want)
		})
	}
}

// While both agree, an instance appends an event now and then to see that they do, and not with every request.
func TestAClockThatAgreesIsComparedNowAndThen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var right, mine skewedClock
		log := memory.New(right.now)
		mine.set(4 * time.Minute)
		m := startComparedMeter(t, log, &mine)
		for range 100 {
			checkCounting(t, m, true)
		}
		time.Sleep(time.Hour + time.Minute)
		events := 0
		for s, err := range log.ReadAll(t.Context(), eventstore.Checkpoint{}, eventstore.Filter{"incarnation"}) {
			if err != nil {
				t.Fatal(err)
			}
			if s.Kind == eventstore.EventAppeared {
				events++
			}
		}
		if events < 7 || events > 9 { // the start, a comparison then and every ten minutes, perhaps one for the first request
			t.Errorf("%d events in an hour", events)
		}
	})
}

func TestNoPeriodIsClosedByAClockInDoubt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mine skewedClock
		log := memory.New(mine.now)
		m := startComparedMeter(t, log, &mine)
		checkCounting(t, m, true)
		mine.set(80 * day)
		err := m.ClosePeriods(t.Context(), usage.ContractPeriod{Contract: "a", Period: plan.PeriodAt(anchor, time.Now())})
		if doubt := new(clock.DoubtError); !errors.Is(err, usage.ErrNotClosable) || !errors.As(err, &doubt) {
			t.Errorf("got %v", err)
		}
	})
}

// appendAhead appends a period of the contract a that is ahead, with requests of a number of keys on two days.
func appendAhead(t *testing.T, log eventstore.Store, period plan.Period, keys int) {
	t.Helper()
	stream := usagefold.StreamName("a", period.First)
	ticks := []event.Event{event.UsageOpened{Contract: "a", First: period.First, Next: period.Next, Cap: 1 << 40, AsOfPosition: 1}}
	for i, d := range []plan.Date{period.First, plan.DateOf(period.End().Add(-time.Hour))} {
		tick := event.UsageTicked{InstanceID: "earlier", Sequence: int64(i + 1), Day: d}
		for k := range keys {
			tick.Counts = append(tick.Counts, event.UsageCount{Account: "a", Key: fmt.Sprintf("k%04d%s", k, strings.Repeat("x", 60)), Endpoint: "GET /locations/search", Requests: 3})
		}
		ticks = append(ticks, tick)
	}
	appendEvents(t, log, stream, ticks...)
}

// interruptedStore lets something happen before the first append.
type interruptedStore struct {
	eventstore.Store
	once   sync.Once
	before func()
}

func (s *interruptedStore) Append(ctx context.Context, stream string, expected eventstore.Revision, events []eventstore.ProposedEvent) (eventstore.AppendResult, error) {
	s.once.Do(s.before)
	return s.Store.Append(ctx, stream, expected, events)
}

func TestWhatWasCountedAheadIsTakenBack(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before time.Duration // the period's beginning, by the clock
		want   int64         // requests that are taken back
	}{
		"long before":        {10 * day, 7200},
		"just before":        {day + time.Second, 7200},
		"may be the current": {day, 0},
		"has begun":          {-time.Hour, 0},
		"has ended":          {-80 * day, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			period := plan.PeriodAt(anchor, parseTime(t, "2026-04-02T12:00:00+02:00"))
			ahead, now := newFakeClock(period.Start().Add(day)), newFakeClock(period.Start().Add(-c.before))
			log := memory.New(ahead.now)
			appendAhead(t, log, period, 1200)
			newMeter := func(log eventstore.Store) *usage.Meter {
				return usage.New(log, newCodec(), nil, nil, nil, clocktest.Follow(now.now), nil)
			}
			taken := int64(0)
			takeBack := func(m *usage.Meter) {
				n, err := m.VoidPeriodAhead(t.Context(), "a", period)
				if taken += n; err != nil {
					t.Error(err)
				}
			}
			other := newMeter(log) // does it while the first is about to append
			takeBack(newMeter(&interruptedStore{Store: log, before: func() { takeBack(other) }}))
			f, _ := foldStream(t, log, usagefold.StreamName("a", period.First))
			if taken != c.want || f.Used("a") != 7200-c.want || f.Lines.Total() != 7200-c.want {
				t.Errorf("%d taken back, %d left, %d on lines; want %d taken", taken, f.Used("a"), f.Lines.Total(), c.want)
			}
		})
	}
}

// The clocks of the log and of the instance were ahead together, and are right again: the instance leaves the later period at once, so
// that nothing is counted in a period that is taken back.
func TestAnInstanceLeavesAPeriodAhead(t *testing.T) {
	t.Parallel()
	c := newFakeClock(parseTime(t, "2026-04-02T12:00:00+02:00"))
	log := memory.New(c.now)
	m := startMeter(t, log, log, &fakeQuotas{caps: map[string]int64{"a": 10}}, c.now)
	mustCount(t, m, "a", 10)
	c.set(parseTime(t, "2026-03-10T12:00:00+01:00"))
	mustCount(t, m, "a", 10)
	checkTotal(t, log, streamOf("a", "2026-02-21"), 1)
	if n, err := m.VoidPeriodAhead(t.Context(), "a", plan.PeriodAt(anchor, parseTime(t, "2026-04-02T12:00:00+02:00"))); n != 1 || err != nil {
		t.Errorf("%d taken back, %v", n, err)
	}
	if err := m.ClosePeriods(t.Context(), usage.ContractPeriod{Contract: "a", Period: plan.PeriodAt(anchor, c.now())}); !errors.Is(err, usage.ErrNotClosable) {
		t.Errorf("closed: %v", err)
	}
	mustCount(t, m, "a", 10)
	checkTotal(t, log, streamOf("a", "2026-02-21"), 2)
	c.set(parseTime(t, "2026-03-21T00:00:00+01:00"))
	mustCount(t, m, "a", 10)
	checkTotal(t, log, streamOf("a", "2026-03-21"), 1)
}

// A closed period was billed, and a period that was never opened holds no requests.
func TestAClosedPeriodAheadStaysAsItIs(t *testing.T) {
	t.Parallel()
	period := plan.PeriodAt(anchor, parseTime(t, "2026-04-02T12:00:00+02:00"))
	ahead, now := newFakeClock(period.Start()), newFakeClock(period.Start().Add(-10*day))
	log := memory.New(ahead.now)
	m := usage.New(log, newCodec(), nil, nil, nil, clocktest.Follow(now.now), nil)
	if n, err := m.VoidPeriodAhead(t.Context(), "a", period); n != 0 || err != nil || log.LastPosition() != 0 {
		t.Errorf("without the period: %d, %v", n, err)
	}
	appendAhead(t, log, period, 1)
	f, _ := foldStream(t, log, usagefold.StreamName("a", period.First))
	appendEvents(t, log, usagefold.StreamName("a", period.First), f.Lines.ClosingEvent())
	if n, err := m.VoidPeriodAhead(t.Context(), "a", period); n != 0 || err != nil {
		t.Errorf("%d of a closed period are taken back, %v", n, err)
	}
}
