package usage_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"lieudit/commands/usage"
	"lieudit/eventstore"
	"lieudit/eventstore/clock/clocktest"
	"lieudit/eventstore/esdb"
	"lieudit/eventstore/journal"
	"lieudit/eventstore/node"
	"lieudit/eventstore/waitlimit"
	"lieudit/schemas/event"
	"lieudit/schemas/grant"
	"lieudit/schemas/plan"
	"lieudit/schemas/token"
	"lieudit/schemas/usagefold"
)

// oneKeyVault has the same key for every account: of usage, only reasons of adjustments are sealed.
type oneKeyVault struct{}

func (oneKeyVault) Key(context.Context, string, bool) ([]byte, error) { return make([]byte, 32), nil }
func (oneKeyVault) DestroyKey(context.Context, string) error          { return nil }

func (oneKeyVault) ForgetKeys() {}

// logFormat is the format of the logs of all tests. It is set between two runs of the tests.
var logFormat = event.SharedUsageFormat

// ofSharedStreams are the tests of shared_test.go, which are about shared streams alone.
const ofSharedStreams = "^(TestRequestsOfDifferentContractsShareTicks|TestPeriodsStayWhereTheyWereOpenedWhenTheFormatIsRaised|TestAnOlderProgramCountsNothingThatItCannotRead|TestAnEventThatCannotBeDecodedStopsItsContractAlone|TestAReaderBeginsAtTheSnapshotOfASharedStream|TestTheFirstInstanceDecidesHowManyShardsAMonthHas|TestAPeriodInASharedStreamIsClosedOnceWithAllItsLines|TestAClosedPeriodNeedsItsSharedStreamNoMore|TestAnEventThatCannotBeDecodedKeepsNoOtherPeriodOpen)$"

// TestMain runs all tests twice: over logs whose contracts share streams, and then, but for those of shared_test.go, over logs in which each
// period has a stream of its own.
func TestMain(m *testing.M) {
	flag.Parse()
	for _, logFormat = range []int{event.SharedUsageFormat, event.SharedUsageFormat - 1} {
		if skip := flag.Lookup("test.skip"); logFormat < event.SharedUsageFormat {
			if err := flag.Set("test.skip", strings.Trim(skip.Value.String()+"|"+ofSharedStreams, "|")); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
		}
		if code := m.Run(); code != 0 {
			fmt.Fprintf(os.Stderr, "with log format %d\n", logFormat)
			os.Exit(code)
		}
	}
}

// newCodec returns a codec for logs of the format.
func newCodec() *eventstore.Codec { return newCodecFor(logFormat) }

func newCodecFor(highest int) *eventstore.Codec {
	return eventstore.NewCodec(oneKeyVault{}).WithFormat(func(_ context.Context, format int) (bool, error) { return format <= highest, nil })
}

// writtenAs returns an event about a contract's period in the form that logs of the format have for it.
func writtenAs(e event.Event) event.Event {
	if logFormat < event.SharedUsageFormat {
		return e
	}
	if _, ok := e.(event.UsageTicked); ok {
		return event.SharedUsageTicked{}
	}
	return (&usagefold.SharedState{}).Event(event.PeriodRef{}, e)
}

// fakeQuotas has the quotas of accounts.
type fakeQuotas struct {
	mu   sync.Mutex
	caps map[string]int64
	asOf eventstore.Position
}

func (v *fakeQuotas) QuotaAt(_ context.Context, account string, _ time.Time) (int64, eventstore.Position, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.caps[account], v.asOf, nil
}

func (v *fakeQuotas) set(account string, requests int64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.caps[account] = requests
	v.asOf++
}

// keptTerms knows no account, so that what a grant says holds at all times.
func keptTerms(string, time.Time) (grant.Terms, bool) { return grant.Terms{}, false }

var anchor = plan.Date{Year: 2026, Month: 1, Day: 21}

func grantOf(account string, quota int64) grant.Grant {
	return grant.Grant{
		KeyID: "key-" + account, Kind: token.Secret, Account: account,
		Terms: grant.Terms{Plan: plan.Starter, Quota: quota, Anchor: anchor},
	}
}

func openLog(t testing.TB) *journal.Journal {
	t.Helper()
	j, err := journal.Open(t.TempDir(), journal.Options{SegmentSize: 4 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	return j
}

// startMeter starts a meter that runs until the test ends.
func startMeter(t testing.TB, store, core eventstore.Store, quotas usage.Quotas, clock func() time.Time) *usage.Meter {
	t.Helper()
	return startLimitedMeter(t, store, core, quotas, newLimiter(), clock)
}

// startMeterOf starts a meter that knows the terms of accounts at other times than now.
func startMeterOf(t testing.TB, log eventstore.Store, quotas usage.Quotas, terms usage.Terms, clock func() time.Time) *usage.Meter {
	t.Helper()
	return runMeter(t, usage.New(log, newCodec(), quotas, terms, newLimiter(), clocktest.Follow(clock), slog.New(slog.DiscardHandler)), log)
}

// newLimiter returns the wait limiter of an instance.
func newLimiter() *waitlimit.Limiter { return waitlimit.New(waitlimit.MaxRequests) }

// newWait returns the wait of a request of an account that has a limiter for itself.
func newWait(account string) *waitlimit.Wait { return newLimiter().NewWait(account) }

// startLimitedMeter starts a meter with a wait limiter.
func startLimitedMeter(t testing.TB, store, core eventstore.Store, quotas usage.Quotas, limiter *waitlimit.Limiter, clock func() time.Time) *usage.Meter {
	t.Helper()
	return runMeter(t, usage.New(store, newCodec(), quotas, keptTerms, limiter, clocktest.Follow(clock), slog.New(slog.DiscardHandler)), core)
}

// runMeter runs a meter until the test ends.
func runMeter(t testing.TB, m *usage.Meter, core eventstore.Store) *usage.Meter {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		m.Run(ctx, core, eventstore.Checkpoint{})
	})
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	return m
}

// foldStream folds a period from its first event, in the stream of its own that is given or in the shared stream that this one names. It
// returns how many events are about it there.
func foldStream(t testing.TB, store eventstore.Store, stream string) (*usagefold.PeriodUsage, int) {
	t.Helper()
	f, own := usagefold.NewPeriodUsage(), &usagefold.OwnState{State: &usagefold.PeriodState{}}
	events := 0
	readDecoded(t, store, stream, func(e event.Event, r eventstore.RecordedEvent) {
		own.Apply(e, r.Time)
		f.Apply(e, r.Time)
		events++
	})
	if own.CountedIn == "" {
		return f, events
	}
	contract, first, _ := usagefold.ParseStreamName(stream)
	ref := event.PeriodRef{Contract: contract, First: first}
	f, events = usagefold.NewPeriodUsage(), 0
	var shared usagefold.SharedState
	readDecoded(t, store, own.CountedIn, func(e event.Event, r eventstore.RecordedEvent) {
		for _, part := range shared.Apply(e, r.Time) {
			if part.PeriodRef == ref {
				f.Lines.Apply(part.Event, part.Verdict)
				events++
			}
		}
	})
	if state := shared.Period(ref); state != nil {
		f.PeriodState = *state
	}
	readDecoded(t, store, stream, func(e event.Event, r eventstore.RecordedEvent) { f.Apply(e, r.Time) })
	return f, events
}

// readDecoded calls do with the events of a stream.
func readDecoded(t testing.TB, store eventstore.Store, stream string, do func(event.Event, eventstore.RecordedEvent)) {
	t.Helper()
	for r, err := range store.ReadStream(context.Background(), stream, 0, eventstore.Forward) {
		if err != nil {
			t.Fatal(err)
		}
		e, err := event.Decode(r.Type, r.Data)
		if err != nil {
			t.Fatal(err)
		}
		do(e, r)
	}
}

// lossyStore loses some replies of appends, before or after they are made.
type lossyStore struct {
	eventstore.Store
	percent int
}

func (s lossyStore) Append(ctx context.Context, stream string, expected eventstore.Revision, events []eventstore.ProposedEvent) (eventstore.AppendResult, error) {
	if rand.IntN(100) < s.percent {
		return eventstore.AppendResult{}, eventstore.ErrUnknown
	}
	done, err := s.Store.Append(ctx, stream, expected, events)
	if rand.IntN(100) < s.percent {
		return eventstore.AppendResult{}, eventstore.ErrUnknown
	}
	return done, err
}

func TestACapIsExactOnSeveralInstances(t *testing.T) {
	t.Parallel()
	for _, percent := range []int{0, 5} {
		t.Run(fmt.Sprintf("%d%% of replies lost", percent), func(t *testing.T) {
			t.Parallel()
			log := openLog(t)
			quotas := &fakeQuotas{caps: map[string]int64{"a": 2000}}
			var served, spent, other atomic.Int64
			var clients sync.WaitGroup
			for range 3 {
				m := startMeter(t, lossyStore{log, percent}, log, quotas, time.Now)
				for range 16 {
					clients.Go(func() {
						for range 100 {
							_, err := countRequest(t.Context(), m, newWait("a"), grantOf("a", 2000), "GET /me")
							capped := new(usage.QuotaExceededError)
							switch {
							case err == nil:
								served.Add(1)
							case errors.As(err, &capped):
								spent.Add(1)
							default:
								other.Add(1)
							}
						}
					})
				}
			}
			clients.Wait()
			f, events := foldStream(t, log, usagefold.StreamName("a", plan.PeriodAt(anchor, time.Now()).First))
			t.Logf("served %d, spent %d, other %d, %d events", served.Load(), spent.Load(), other.Load(), events)
			if served.Load() != 2000 || other.Load() != 0 {
				t.Errorf("%d served, want 2000", served.Load())
			}
			if n := f.Lines.Total(); n < served.Load() || n > 2000 {
				t.Errorf("%d counted for %d served, cap 2000", n, served.Load())
			}
		})
	}
}

// testNode is a node that can be stopped and started again on the same journal.
type testNode struct {
	folder, socket string
	stop           func()
}

func startTestNode(t *testing.T) *testNode {
	t.Helper()
	s := &testNode{folder: t.TempDir(), socket: filepath.Join(t.TempDir(), "s")}
	s.start(t)
	t.Cleanup(func() { s.stop() })
	return s
}

func (s *testNode) start(t *testing.T) {
	t.Helper()
	j, err := journal.Open(s.folder, journal.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	var lc net.ListenConfig
	ln, err := lc.Listen(t.Context(), "unix", s.socket)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	n := node.New(j, node.Options{StopTimeout: time.Millisecond, Logger: slog.New(slog.DiscardHandler)})
	go func() { ended <- n.Serve(ctx, ln) }()
	s.stop = func() {
		cancel()
		if err := errors.Join(<-ended, j.Close()); err != nil {
			t.Error(err)
		}
	}
}

func (s *testNode) connect(t *testing.T) eventstore.Store {
	t.Helper()
	store, err := esdb.Open(t.Context(), "esdb+unix://"+s.socket, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	return store
}

// clientCounts counts the answers that clients got.
type clientCounts struct{ served, spent, refused atomic.Int64 }

func (c *clientCounts) record(err error) {
	switch capped := new(usage.QuotaExceededError); {
	case err == nil:
		c.served.Add(1)
	case errors.As(err, &capped):
		c.spent.Add(1)
	default:
		c.refused.Add(1)
		time.Sleep(time.Millisecond) // a client pauses before it tries again
	}
}

// TestACapIsExactOnInstancesThatShareANode: the node serves all the time, or is restarted in the middle.
func TestACapIsExactOnInstancesThatShareANode(t *testing.T) {
	t.Parallel()
	for name, restarts := range map[string]int{"a node that stays": 0, "a node that is restarted": 3} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const limit = 600
			s := startTestNode(t)
			quotas := &fakeQuotas{caps: map[string]int64{"a": limit}}
			var clientsCounted clientCounts
			var clients sync.WaitGroup
			for range 3 {
				store := s.connect(t)
				m := startMeter(t, store, store, quotas, time.Now)
				for range 16 {
					clients.Go(func() {
						for answered := 0; answered < 18; {
							_, err := countRequest(t.Context(), m, newWait("a"), grantOf("a", limit), "GET /me")
							if clientsCounted.record(err); !errors.Is(err, usage.ErrUnavailable) {
								answered++
							}
						}
					})
				}
			}
			for range restarts {
				time.Sleep(20 * time.Millisecond) // no synchronisation: any moment will do
				s.stop()
				s.start(t)
			}
			clients.Wait()
			store := s.connect(t)
			stream := usagefold.StreamName("a", plan.PeriodAt(anchor, time.Now()).First)
			settled := func() bool {
				f, _ := foldStream(t, store, stream)
				return f.Lines.Total() == clientsCounted.served.Load()
			}
			waitUntil(t, settled) // requests that were refused before their outcome was known are refunded later
			_, events := foldStream(t, store, stream)
			t.Logf("served %d, spent %d, refused %d, %d events", clientsCounted.served.Load(), clientsCounted.spent.Load(), clientsCounted.refused.Load(), events)
			if clientsCounted.served.Load() > limit || restarts == 0 && clientsCounted.served.Load() != limit {
				t.Errorf("%d served, want %d", clientsCounted.served.Load(), limit)
			}
		})
	}
}

// TestACapIsExactForRequestsThatAreReservedTogether: files of rows and single requests use up one quota on several instances,
// while replies of the log are lost. Some rows are refunded.
func TestACapIsExactForRequestsThatAreReservedTogether(t *testing.T) {
	t.Parallel()
	const limit = 5000
	log := openLog(t)
	quotas := &fakeQuotas{caps: map[string]int64{"a": limit}}
	var served atomic.Int64
	var clients sync.WaitGroup
	for range 3 {
		m := startMeter(t, lossyStore{log, 5}, log, quotas, time.Now)
		for client := range 8 {
			clients.Go(func() {
				for n := range 60 {
					requests := int64(1 + client*n%97)
					r, err := m.Charge(t.Context(), newWait("a"), grantOf("a", limit), "POST /search/csv", requests)
					if capped := new(usage.QuotaExceededError); errors.As(err, &capped) {
						continue
					} else if err != nil {
						t.Error(err)
						return
					}
					refunded := requests * int64(n%2) / 3
					if err := m.Settle(t.Context(), r, refunded); err != nil {
						t.Error(err)
						return
					}
					served.Add(requests - refunded)
				}
			})
		}
	}
	clients.Wait()
	f, events := foldStream(t, log, usagefold.StreamName("a", plan.PeriodAt(anchor, time.Now()).First))
	t.Logf("served %d, %d events", served.Load(), events)
	if n := f.Lines.Total(); n != served.Load() || n > limit || n < limit*9/10 {
		t.Errorf("%d counted for %d served, cap %d", n, served.Load(), limit)
	}
}
