package usage_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"lieudit/commands/usage"
	"lieudit/eventstore"
	"lieudit/eventstore/clock/clocktest"
	"lieudit/schemas/event"
	"lieudit/schemas/plan"
	"lieudit/schemas/refusal"
	"lieudit/schemas/usagefold"
)

// slowStore is a log whose appends take a while, so that requests wait for each other, and each event that is read. It counts appends and the
// events that are read.
type slowStore struct {
	eventstore.Store
	lag, readLag  time.Duration
	appends, read atomic.Int64
	failStream    atomic.Pointer[string] // reads of it fail
	failAppends   atomic.Int64           // that many appends from now on fail
}

func (s *slowStore) Append(ctx context.Context, stream string, expected eventstore.Revision, events []eventstore.ProposedEvent) (eventstore.AppendResult, error) {
	if s.failAppends.Add(-1) >= 0 {
		return eventstore.AppendResult{}, errors.New("no append today")
	}
	s.appends.Add(1)
	time.Sleep(s.lag)
	return s.Store.Append(ctx, stream, expected, events)
}

func (s *slowStore) ReadStream(ctx context.Context, stream string, from eventstore.Revision, d eventstore.Direction) iter.Seq2[eventstore.RecordedEvent, error] {
	return func(yield func(eventstore.RecordedEvent, error) bool) {
		if fails := s.failStream.Load(); fails != nil && *fails == stream {
			yield(eventstore.RecordedEvent{}, errors.New("the stream was dropped"))
			return
		}
		for r, err := range s.Store.ReadStream(ctx, stream, from, d) {
			s.read.Add(1)
			time.Sleep(s.readLag)
			if !yield(r, err) {
				return
			}
		}
	}
}

func contractName(i int) string { return fmt.Sprintf("commune-%d", i) }

// capsOf gives contracts 0 to n-1 the same quota.
func capsOf(n int, quota int64) *fakeQuotas {
	q := &fakeQuotas{caps: map[string]int64{}}
	for i := range n {
		q.caps[contractName(i)] = quota
	}
	return q
}

func TestRequestsOfDifferentContractsShareTicks(t *testing.T) {
	t.Parallel()
	const contracts, each = 40, 20
	log := &slowStore{Store: openLog(t), lag: 2 * time.Millisecond}
	m := startMeter(t, log, openLog(t), capsOf(contracts, each), time.Now)
	var clients sync.WaitGroup
	for i := range contracts {
		mustCount(t, m, contractName(i), each)
	}
	before := log.appends.Load()
	for i := range contracts {
		clients.Go(func() {
			for range each - 1 {
				mustCount(t, m, contractName(i), each)
			}
			var exceeded *usage.QuotaExceededError
			if _, err := countRequest(t.Context(), m, newWait(contractName(i)), grantOf(contractName(i), each), "GET /me"); !errors.As(err, &exceeded) {
				t.Errorf("one more than the quota: %v", err)
			}
		})
	}
	clients.Wait()
	if n := log.appends.Load() - before; n > contracts*each/4 {
		t.Errorf("%d appends for %d requests of %d contracts", n, contracts*(each-1), contracts)
	}
	for i := range contracts {
		checkTotal(t, log, usagefold.StreamName(contractName(i), plan.PeriodAt(anchor, time.Now()).First), each)
	}
}

// Instances of different programs count in the same periods while the format of the log is raised. Each period is counted in one place,
// the quota of each contract is exact, and whoever opened the period first decides.
func TestPeriodsStayWhereTheyWereOpenedWhenTheFormatIsRaised(t *testing.T) {
	t.Parallel()
	const contracts, quota = 12, 30
	const opened = 2 * contracts / 3 // before the clients come: the other periods are opened by whoever is first
	log, core, quotas := openLog(t), openLog(t), capsOf(contracts, quota)
	var format atomic.Int64
	format.Store(event.SharedUsageFormat - 1)
	upgraded := eventstore.NewCodec(oneKeyVault{}).WithFormat(func(_ context.Context, f int) (bool, error) { return int64(f) <= format.Load(), nil })
	var meters []*usage.Meter
	for _, codec := range []*eventstore.Codec{upgraded, upgraded, newCodecFor(event.SharedUsageFormat - 1)} {
		meters = append(meters, runMeter(t, usage.New(log, codec, quotas, keptTerms, newLimiter(), clocktest.Follow(time.Now), slog.New(slog.DiscardHandler)), core))
	}
	for i := range contracts / 3 { // these are open before
		mustCount(t, meters[i%3], contractName(i), quota)
	}
	format.Store(event.SharedUsageFormat)
	for i := contracts / 3; i < opened; i++ { // and these after
		mustCount(t, meters[i%2], contractName(i), quota)
	}
	var served [contracts]atomic.Int64
	var clients sync.WaitGroup
	for n := range 9 {
		clients.Go(func() {
			for k := range contracts * quota {
				i := (k + n) % contracts
				if _, err := countRequest(t.Context(), meters[n%3], newWait(contractName(i)), grantOf(contractName(i), quota), "GET /me"); err == nil {
					served[i].Add(1)
				}
			}
		})
	}
	clients.Wait()
	shared := 0
	for i := range contracts {
		stream := usagefold.StreamName(contractName(i), plan.PeriodAt(anchor, time.Now()).First)
		checkTotal(t, log, stream, quota)
		if n := served[i].Load(); i >= opened && n != quota || i < opened && n != quota-1 {
			t.Errorf("%s: %d requests served", contractName(i), n)
		}
		own := &usagefold.OwnState{State: &usagefold.PeriodState{}}
		readDecoded(t, log, stream, func(e event.Event, r eventstore.RecordedEvent) { own.Apply(e, r.Time) })
		if own.CountedIn != "" {
			shared++
		}
		if own.CountedIn != "" && (own.State.IsOpen() || i < contracts/3) {
			t.Errorf("%s is counted in two streams, or was moved", contractName(i))
		}
		if own.CountedIn == "" && i >= contracts/3 && i < opened {
			t.Errorf("%s is counted in a stream of its own, although the format was raised before", contractName(i))
		}
	}
	t.Logf("%d of %d periods are in shared streams", shared, contracts)
}

// olderStore is a log as a program of before shared streams reads it: it cannot decode the types of events that came later.
type olderStore struct{ eventstore.Store }

func (s olderStore) ReadStream(ctx context.Context, stream string, from eventstore.Revision, d eventstore.Direction) iter.Seq2[eventstore.RecordedEvent, error] {
	return func(yield func(eventstore.RecordedEvent, error) bool) {
		for r, err := range s.Store.ReadStream(ctx, stream, from, d) {
			if e, ok := event.Lookup(r.Type); ok && e.MinFormat() >= event.SharedUsageFormat {
				r.Type = "usage.of-a-later-program.v1"
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

// An instance of a program that does not know shared streams runs on after the format was raised. It refuses the contracts that the others
// count there and writes nothing to their streams. The periods that it opened are counted by all, exactly, and where both come first at
// once, one of them decides.
func TestAnOlderProgramCountsNothingThatItCannotRead(t *testing.T) {
	t.Parallel()
	const contracts, third, quota = 12, 4, 30
	log, core, quotas := openLog(t), openLog(t), capsOf(contracts, quota)
	older := runMeter(t, usage.New(olderStore{log}, newCodecFor(event.SharedUsageFormat-1), quotas, keptTerms, newLimiter(), clocktest.Follow(time.Now), slog.New(slog.DiscardHandler)), core)
	meters := []*usage.Meter{older, startMeter(t, log, core, quotas, time.Now), startMeter(t, log, core, quotas, time.Now)}
	var served, servedByOlder [contracts]atomic.Int64
	count := func(n, i int) {
		switch _, err := countRequest(t.Context(), meters[n], newWait(contractName(i)), grantOf(contractName(i), quota), "GET /me"); {
		case err == nil:
			served[i].Add(1)
			if n == 0 {
				servedByOlder[i].Add(1)
			}
		case errors.Is(err, usage.ErrUnavailable) && (n != 0 || i < third):
			t.Errorf("meter %d: %s: %v", n, contractName(i), err)
		}
	}
	for i := range third {
		count(0, i)
		count(1, third+i)
	}
	var clients sync.WaitGroup
	for n := range 9 {
		clients.Go(func() {
			for k := range contracts * quota {
				count(n%3, (k+n/3)%contracts)
			}
		})
	}
	clients.Wait()
	for i := range contracts {
		stream := usagefold.StreamName(contractName(i), plan.PeriodAt(anchor, time.Now()).First)
		checkTotal(t, log, stream, quota)
		events, own := 0, &usagefold.OwnState{State: &usagefold.PeriodState{}}
		readDecoded(t, log, stream, func(e event.Event, r eventstore.RecordedEvent) {
			own.Apply(e, r.Time)
			events++
		})
		isShared, byOlder := own.CountedIn != "", servedByOlder[i].Load()
		if served[i].Load() != quota || isShared && (byOlder > 0 || events != 1) || isShared && i < third || !isShared && i >= third && i < 2*third {
			t.Errorf("%s: %d requests served, %d by the older program, shared: %t, with %d events in the stream of its own", contractName(i), served[i].Load(), byOlder, isShared, events)
		}
	}
}

// appendRaw appends an event that no program of today writes.
func appendRaw(t *testing.T, store eventstore.Store, stream, eventType, data string) {
	t.Helper()
	if _, err := store.Append(t.Context(), stream, eventstore.Any, []eventstore.ProposedEvent{{ID: uuid.New(), Type: eventType, Data: []byte(data), Metadata: []byte(`{}`)}}); err != nil {
		t.Fatal(err)
	}
}

func TestAnEventThatCannotBeDecodedStopsItsContractAlone(t *testing.T) {
	t.Parallel()
	log := openLog(t)
	m := startMeter(t, log, openLog(t), capsOf(3, 10), time.Now)
	for i := range 3 {
		mustCount(t, m, contractName(i), 10)
	}
	first := plan.PeriodAt(anchor, time.Now()).First
	stream := usagefold.SharedStreamName(usagefold.MonthOf(first), 0)
	ref, _ := json.Marshal(event.PeriodRef{Contract: contractName(1), First: first})
	appendRaw(t, log, stream, "usage.of-a-later-program.v1", string(ref))
	other := startMeter(t, log, openLog(t), capsOf(3, 10), time.Now)
	for _, m := range []*usage.Meter{m, other} {
		mustCount(t, m, contractName(0), 10)
		if err := m.CheckQuota(t.Context(), newWait("commune-0"), grantOf(contractName(0), 10), "GET /me"); err != nil {
			t.Error(err)
		}
		mustCountAgainst(t, m, log, stream)
		if _, err := countRequest(t.Context(), m, newWait(contractName(1)), grantOf(contractName(1), 10), "GET /me"); !errors.Is(err, usage.ErrUnavailable) {
			t.Errorf("a contract with an event that cannot be decoded: %v", err)
		}
		mustCount(t, m, contractName(2), 10)
	}
	appendRaw(t, log, stream, "usage.of-a-later-program.v1", `{"contract":"","first":"2026-11-21"}`)
	if _, err := countRequest(t.Context(), startMeter(t, log, openLog(t), capsOf(3, 10), time.Now), newWait(contractName(0)), grantOf(contractName(0), 10), "GET /me"); !errors.Is(err, usage.ErrUnavailable) {
		t.Errorf("a stream with an event that names no contract: %v", err)
	}
}

// mustCountAgainst makes the meter read what others have appended: it counts after an event that it has not seen.
func mustCountAgainst(t *testing.T, m *usage.Meter, log eventstore.Store, stream string) {
	t.Helper()
	appendEvent(t, log, stream, event.SharedUsageTicked{InstanceID: "another", Sequence: time.Now().UnixNano(), Day: plan.DateOf(time.Now())})
	mustCount(t, m, contractName(0), 10)
}

func TestAReaderBeginsAtTheSnapshotOfASharedStream(t *testing.T) {
	t.Parallel()
	const contracts, each = 30, 60
	log := &slowStore{Store: openLog(t)}
	quotas := capsOf(contracts, each)
	m := startMeter(t, log, openLog(t), quotas, time.Now)
	for range each - 1 {
		for i := range contracts {
			mustCount(t, m, contractName(i), each)
		}
	}
	before := log.read.Load()
	other := startMeter(t, log, openLog(t), quotas, time.Now)
	for i := range contracts {
		mustCount(t, other, contractName(i), each)
		if _, err := countRequest(t.Context(), other, newWait(contractName(i)), grantOf(contractName(i), each), "GET /me"); err == nil {
			t.Errorf("%s: counted beyond its quota", contractName(i))
		}
	}
	if n := log.read.Load() - before; n > 3000 {
		t.Errorf("%d events were read to begin after %d requests", n, contracts*each)
	}
}

func TestTheFirstInstanceDecidesHowManyShardsAMonthHas(t *testing.T) {
	t.Parallel()
	const contracts = 40
	log, core, quotas := openLog(t), openLog(t), capsOf(contracts, 10)
	for i, shards := range []int64{8, 1} {
		m := usage.New(log, newCodec(), quotas, keptTerms, newLimiter(), clocktest.Follow(time.Now), slog.New(slog.DiscardHandler))
		m.Shards = shards
		runMeter(t, m, core)
		for c := i * contracts / 2; c < (i+1)*contracts/2; c++ {
			mustCount(t, m, contractName(c), 10)
		}
	}
	streams := map[string]bool{}
	for i := range contracts {
		own := &usagefold.OwnState{State: &usagefold.PeriodState{}}
		readDecoded(t, log, usagefold.StreamName(contractName(i), plan.PeriodAt(anchor, time.Now()).First), func(e event.Event, r eventstore.RecordedEvent) { own.Apply(e, r.Time) })
		streams[own.CountedIn] = true
	}
	if len(streams) < 6 {
		t.Errorf("40 contracts are in %d streams: %v", len(streams), streams)
	}
}

// closingSetting is a period in a shared stream that has ended, with many lines.
type closingSetting struct {
	log    *slowStore
	period plan.Period
	stream string // the period's own
	now    *fakeClock
	lines  usagefold.Lines
}

func newClosingSetting(t *testing.T, keys int) *closingSetting {
	t.Helper()
	s := &closingSetting{period: plan.PeriodAt(anchor, parseTime(t, "2026-02-25T12:00:00+01:00")), now: newFakeClock(parseTime(t, "2026-02-25T12:00:00+01:00"))}
	s.log = &slowStore{Store: openLogWithClock(t, s.now)}
	s.stream = usagefold.StreamName("a", s.period.First)
	m := startMeter(t, s.log, openLog(t), &fakeQuotas{caps: map[string]int64{"a": 1 << 40, "b": 1 << 40}}, s.now.now)
	mustCount(t, m, "b", 1<<40)
	for i := range keys {
		g := grantOf("a", 1<<40)
		g.KeyID = fmt.Sprint("key-", i)
		if _, err := countRequest(t.Context(), m, newWait("a"), g, "GET /me"); err != nil {
			t.Fatal(err)
		}
	}
	f, _ := foldStream(t, s.log, s.stream)
	s.lines = f.Lines
	s.now.set(s.period.End().Add(2 * time.Hour))
	return s
}

func (s *closingSetting) newMeter() *usage.Meter {
	return usage.New(s.log, newCodec(), nil, nil, nil, clocktest.Follow(s.now.now), slog.New(slog.DiscardHandler))
}

// checkClosed demands that the period's own stream alone holds the period.
func (s *closingSetting) checkClosed(t *testing.T) {
	t.Helper()
	alone := usagefold.NewPeriodUsage()
	closings := 0
	readDecoded(t, s.log, s.stream, func(e event.Event, r eventstore.RecordedEvent) {
		alone.Apply(e, r.Time)
		if closing, ok := e.(event.UsageClosed); ok {
			closings++
			if want := s.lines.ClosingEvent(); closing.Total != want.Total || closing.LineCount != want.LineCount || string(closing.Digest) != string(want.Digest) {
				t.Errorf("closed with %+v, want %+v", closing, want)
			}
		}
	})
	if closings != 1 || !alone.IsClosed() || string(alone.Lines.Digest()) != string(s.lines.Digest()) || alone.Used("a") != s.lines.Total() {
		t.Errorf("%d closings, closed %t, %d requests of %d", closings, alone.IsClosed(), alone.Lines.Total(), s.lines.Total())
	}
}

// Instances that close a period at the same time, and are cut in the middle of it, close it once.
func TestAPeriodInASharedStreamIsClosedOnceWithAllItsLines(t *testing.T) {
	t.Parallel()
	for cut := range int64(5) {
		t.Run(fmt.Sprint("after append ", cut), func(t *testing.T) {
			t.Parallel()
			s := newClosingSetting(t, 1100)
			counted := startMeter(t, s.log, openLog(t), &fakeQuotas{caps: map[string]int64{"a": 1 << 40, "b": 1 << 40}}, s.now.now)
			var closers sync.WaitGroup
			for range 3 {
				closers.Go(func() {
					m := s.newMeter()
					for tries := 0; tries < 20; tries++ {
						if err := m.ClosePeriods(t.Context(), usage.ContractPeriod{Contract: "a", Period: s.period}); err == nil {
							return
						}
					}
					t.Error("not closed")
				})
			}
			time.Sleep(time.Duration(cut) * time.Millisecond)
			s.log.failAppends.Store(2)
			closers.Wait()
			s.log.failAppends.Store(0)
			s.checkClosed(t)
			mustCount(t, counted, "b", 1<<40) // another contract continues
		})
	}
}

// An event that this program cannot decode keeps the period that it names open, and no other one of its stream.
func TestAnEventThatCannotBeDecodedKeepsNoOtherPeriodOpen(t *testing.T) {
	t.Parallel()
	s := newClosingSetting(t, 3)
	shared := usagefold.SharedStreamName(usagefold.MonthOf(s.period.First), 0)
	other, _ := json.Marshal(event.PeriodRef{Contract: "b", First: s.period.First})
	appendRaw(t, s.log, shared, "usage.of-a-later-program.v1", string(other))
	if err := s.newMeter().ClosePeriods(t.Context(), usage.ContractPeriod{Contract: "b", Period: s.period}); err == nil {
		t.Error("the period was closed that has the event")
	}
	if err := s.newMeter().ClosePeriods(t.Context(), usage.ContractPeriod{Contract: "a", Period: s.period}); err != nil {
		t.Error(err)
	}
	s.checkClosed(t)
}

// A closed period is corrected from its own stream alone: the shared one may have been dropped.
func TestAClosedPeriodNeedsItsSharedStreamNoMore(t *testing.T) {
	t.Parallel()
	s := newClosingSetting(t, 3)
	if err := s.newMeter().ClosePeriods(t.Context(), usage.ContractPeriod{Contract: "a", Period: s.period}); err != nil {
		t.Fatal(err)
	}
	s.checkClosed(t)
	shared := usagefold.SharedStreamName(usagefold.MonthOf(s.period.First), 0)
	s.log.failStream.Store(&shared)
	adjustment := usage.Adjustment{Contract: "a", First: s.period.First, Line: usagefold.LineKey{Day: s.period.First, Account: "a", Key: "key-1", Endpoint: "GET /me"}, Requests: -1}
	for line := range s.lines {
		adjustment.Line.Day = line.Day
	}
	if got, err := s.newMeter().AdjustPeriod(t.Context(), billerMeta, adjustment); err != nil || got.Requests != 0 {
		t.Errorf("%d are left, %v", got.Requests, err)
	}
	if _, err := s.newMeter().AdjustPeriod(t.Context(), billerMeta, adjustment); !errors.Is(err, refusal.AdjustmentBelowZero) {
		t.Errorf("a second time: %v", err)
	}
	if err := s.newMeter().ClosePeriods(t.Context(), usage.ContractPeriod{Contract: "a", Period: s.period}); err != nil {
		t.Errorf("closed again: %v", err)
	}
	s.now.set(s.period.End().Add(-time.Hour)) // a clock that is slow
	late := startMeter(t, s.log, openLog(t), &fakeQuotas{caps: map[string]int64{"a": 10}}, s.now.now)
	if _, err := countRequest(t.Context(), late, newWait("a"), grantOf("a", 10), "GET /me"); err != nil && !errors.Is(err, usage.ErrUnavailable) {
		t.Error(err)
	}
	s.log.failStream.Store(nil)
	f, _ := foldStream(t, s.log, s.stream)
	if f.Lines.Total() != 2 || !f.IsClosed() {
		t.Errorf("%d requests are left, closed %t", f.Lines.Total(), f.IsClosed())
	}
	if strings.Contains(s.stream, ".") {
		t.Error("the stream is a shared one")
	}
}
