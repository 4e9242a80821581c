package usage_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"lieudit/eventstore"
	"lieudit/eventstore/sqldb/sqldbtest"
	"lieudit/projections/projector/projectortest"
	"lieudit/projections/usage"
	"lieudit/schemas/event"
	"lieudit/schemas/table"
	"lieudit/schemas/usagefold"
)

// sharedGenerator makes random events of the streams that contracts share, as several instances write them, and of the own streams of
// their periods.
type sharedGenerator struct {
	*rand.Rand
	states   map[string]*usagefold.SharedState // by stream
	stale    map[string]*usagefold.SharedState // what an instance knows when it builds a tick
	sequence map[string]int64                  // by instance
	written  map[string][]event.Event
}

func newSharedGenerator(r *rand.Rand) *sharedGenerator {
	g := &sharedGenerator{Rand: r, states: map[string]*usagefold.SharedState{}, stale: map[string]*usagefold.SharedState{}, sequence: map[string]int64{}, written: map[string][]event.Event{}}
	for shard := range int64(2) {
		stream := usagefold.SharedStreamName("2025-11", shard)
		g.states[stream], g.stale[stream] = &usagefold.SharedState{}, &usagefold.SharedState{}
	}
	return g
}

// sharedContracts are agencies with two sub-clients each.
var sharedContracts = []string{"s0", "s1", "s2", "s3", "s4", "s5"}

// streamOf is where a contract is counted: half of them in each of two streams.
func streamOf(contract string) string {
	return usagefold.SharedStreamName("2025-11", int64(contract[1]-'0')%2)
}

func refOf(contract string) event.PeriodRef { return event.PeriodRef{Contract: contract, First: first} }

func (g *sharedGenerator) randomContract() string {
	return sharedContracts[g.IntN(len(sharedContracts))]
}

func (g *sharedGenerator) randomAccount(contract string) string {
	return contract + []string{"", "-a", "-b"}[g.IntN(3)]
}

// next is a stream and the next event of it.
func (g *sharedGenerator) next() (stream string, e event.Event) {
	contract := g.randomContract()
	if n := g.IntN(40); n < 3 {
		return usagefold.StreamName(contract, first), g.nextOwn(contract)
	}
	stream = streamOf(contract)
	if g.IntN(20) == 0 && contract != "s5" {
		stream = usagefold.SharedStreamName("2025-11", g.Int64N(2)) // perhaps that of others
	}
	if g.IntN(3) == 0 {
		g.stale[stream] = usagefold.RestoreShared(g.states[stream].Snapshot("i", 0))
	}
	e = g.nextShared(stream, contract)
	g.states[stream].Apply(e, time.Now())
	g.written[stream] = append(g.written[stream], e)
	return stream, e
}

// nextOwn is an event of the own stream of a period.
func (g *sharedGenerator) nextOwn(contract string) event.Event {
	switch g.IntN(8) {
	case 0, 1, 2:
		return event.UsageCountedIn{PeriodRef: refOf(contract), Stream: streamOf(contract)}
	case 3:
		return event.UsageLinesStated{PeriodRef: refOf(contract), Next: next, Used: 3, Accounts: []event.UsageAccountState{{Account: contract, Cap: 9, Used: 3}},
			Lines: []event.UsageLineStated{{Day: first, UsageCount: g.randomCount(contract)}}}
	case 4:
		return event.UsageClosed{Total: g.Int64N(9), LineCount: 1, Digest: []byte{byte(g.IntN(256))}}
	case 5:
		return event.UsageTicked{InstanceID: "old", Sequence: g.Int64N(20), Day: first, Counts: []event.UsageCount{g.randomCount(contract)}}
	}
	return event.UsageAdjusted{Day: first, Account: contract, Key: contract + "-k", Endpoint: "GET /me", Requests: g.Int64N(11) - 5}
}

func (g *sharedGenerator) randomCount(contract string) event.UsageCount {
	account := g.randomAccount(contract)
	return event.UsageCount{Account: account, Key: fmt.Sprint(account, "-k", g.IntN(3)), Endpoint: fmt.Sprint("GET /", g.IntN(4)), Requests: g.Int64N(5)}
}

// nextShared is an event of a shared stream.
func (g *sharedGenerator) nextShared(stream, contract string) event.Event {
	ref, account := refOf(contract), g.randomAccount(contract)
	instance := fmt.Sprint("i", g.IntN(3))
	switch n := g.IntN(60); {
	case n == 0 && len(g.written[stream]) > 0:
		return g.written[stream][g.IntN(len(g.written[stream]))] // the log may hold an append twice
	case n == 1:
		return event.SharedUsageKeyRevoked{PeriodRef: ref, UsageKeyRevoked: event.UsageKeyRevoked{Account: account, Key: account + "-k0"}}
	case n == 2 && g.IntN(5) == 0:
		return event.SharedUsageAccountClosed{PeriodRef: ref, UsageAccountClosed: event.UsageAccountClosed{Account: account}}
	case n == 3 && g.IntN(4) == 0:
		return event.SharedUsageEnded{PeriodRef: ref}
	case n == 4:
		return g.states[stream].Snapshot("i", 0)[0]
	case n < 10:
		return event.UsageOpened{Contract: contract, First: first, Next: next, Cap: 100 + g.Int64N(400)}
	case n < 20:
		return event.SharedUsageCapSet{PeriodRef: ref, UsageCapSet: event.UsageCapSet{Account: account, Cap: g.Int64N(300), AsOfPosition: g.Int64N(60)}}
	case n < 25:
		g.sequence[instance]++
		return event.SharedUsageRefunded{PeriodRef: ref, UsageRefunded: event.UsageRefunded{InstanceID: instance, Sequence: g.sequence[instance], Day: days[g.IntN(3)], Counts: []event.UsageCount{g.randomCount(contract)}}}
	}
	g.sequence[instance]++
	var lines []usagefold.SharedLine
	for range 1 + g.IntN(6) {
		c := g.randomContract()
		n := g.randomCount(c)
		lines = append(lines, usagefold.SharedLine{UsedKey: event.UsedKey{PeriodRef: refOf(c), Account: n.Account, Key: n.Key}, Endpoint: n.Endpoint, Requests: n.Requests})
	}
	tick := g.stale[stream].BuildTick(event.SharedUsageTicked{InstanceID: instance, Sequence: g.sequence[instance], Day: days[g.IntN(3)]}, lines)
	if g.IntN(50) == 0 {
		tick.Lines = append(tick.Lines, 1<<40, 0, 1, -1, 99, 1)
	}
	return tick
}

// Whatever shared streams hold, however they are split into batches and however often the filling is interrupted, the rows are those of a
// fold event by event.
func TestRowsOfSharedStreamsAreWhatTheFoldOfTheLogGives(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		seed := uint64(time.Now().UnixNano())
		t.Logf("seed %d", seed)
		g := newSharedGenerator(rand.New(rand.NewPCG(seed, 0)))
		m := usage.Model
		m.BatchSize = 1 + g.IntN(60)
		s := projectortest.Start(t, address, m)
		for _, contract := range sharedContracts[:4] { // the others begin at any time, or are counted in their own streams
			s.Append(usagefold.StreamName(contract, first), event.UsageCountedIn{PeriodRef: refOf(contract), Stream: streamOf(contract)})
		}
		s.Append(usagefold.MonthStreamName("2025-11"), event.UsageMonthOpened{Month: "2025-11", Shards: 2})
		old := newEventGenerator(g.Rand, "c0")
		for range 600 {
			s.Append(g.next())
			if g.IntN(10) == 0 {
				s.Append(usagefold.StreamName(old.contract, first), old.nextEvent())
			}
			if g.IntN(60) == 0 {
				m.BatchSize = 1 + g.IntN(60)
				s.Restart(m)
			}
		}
		want := foldLog(t, s.Log)
		checkRows(t, s, want)
		m.BatchSize = 1 + g.IntN(200)
		s.Restart(m)
		s.Rebuild(table.UsageModel)
		checkRows(t, s, want)
		counted := 0
		for _, p := range want {
			if p.shared != "" && len(p.lines) > 0 {
				counted++
			}
		}
		if counted < 2 {
			t.Errorf("only %d periods of shared streams have lines", counted)
		}
	})
}

// appendRaw appends an event of any type with any data.
func appendRaw(t *testing.T, log eventstore.Store, stream, eventType, data string) {
	t.Helper()
	_, err := log.Append(t.Context(), stream, eventstore.Any, []eventstore.ProposedEvent{{ID: uuid.New(), Type: eventType, Data: []byte(data)}})
	if err != nil {
		t.Fatal(err)
	}
}

// beginShared has contracts counted in one shared stream, and opens their periods.
func beginShared(s *projectortest.Fixture, contracts ...string) (stream string) {
	stream = usagefold.SharedStreamName("2025-11", 0)
	for _, contract := range contracts {
		s.Append(usagefold.StreamName(contract, first), event.UsageCountedIn{PeriodRef: refOf(contract), Stream: stream})
		s.Append(stream, event.UsageOpened{Contract: contract, First: first, Next: next, Cap: 1000})
	}
	return stream
}

// sharedTick is a tick with one request of each contract.
func sharedTick(sequence int64, contracts ...string) event.SharedUsageTicked {
	var lines []usagefold.SharedLine
	for _, c := range contracts {
		lines = append(lines, usagefold.SharedLine{UsedKey: event.UsedKey{PeriodRef: refOf(c), Account: c, Key: c + "-k"}, Endpoint: "GET /me", Requests: 1})
	}
	return (&usagefold.SharedState{}).BuildTick(event.SharedUsageTicked{InstanceID: "i", Sequence: sequence, Day: first}, lines)
}

// usedBy returns how many requests the rows of each contract have.
func usedBy(s *projectortest.Fixture) map[string]int64 {
	used := map[string]int64{}
	for _, p := range projectortest.Rows(s, table.UsageModel, table.UsagePeriods) {
		used[p.Contract] = p.Used
	}
	return used
}

// stoppedOwners returns what is stopped, in one text.
func stoppedOwners(s *projectortest.Fixture) string {
	var all []string
	for _, status := range projectortest.Rows(s, table.UsageModel, table.AccountStatuses) {
		if status.IsStopped() {
			all = append(all, status.Account)
		}
	}
	return strings.Join(all, " ")
}

func TestAnEventOfASharedStreamThatCannotBeDecodedStopsItsContractAlone(t *testing.T) {
	t.Parallel()
	own := "/" + usagefold.StreamName("a", first)
	for rule, c := range map[string]struct{ eventType, data, stops string }{
		"of an unknown type":                   {"usage.shared-pause.v1", `{"contract":"a","first":"2025-11-21","for":"ever"}`, own},
		"with data that are not of its type":   {"usage.shared-cap-set.v1", `{"contract":"a","first":"2025-11-21","account":"a","cap":"much"}`, own},
		"that names no period":                 {"usage.shared-ticked.v1", `{"incarnation":"i","lines":"none"}`, "/usage-2025-11.0"},
		"with an incomplete line":              {"usage.shared-ticked.v1", `{"incarnation":"i","sequence":9,"day":"2025-11-21","lines":[1,2]}`, "/usage-2025-11.0"},
		"of an unknown type without a period":  {"usage.shared-pause.v1", `{"contract":"a"}`, "/usage-2025-11.0"},
		"of an unknown type that is no object": {"usage.shared-pause.v1", `[]`, "/usage-2025-11.0"},
	} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
				s := projectortest.Start(t, address, usage.Model)
				stream := beginShared(s, "a", "b")
				s.Append(stream, sharedTick(1, "a", "b"))
				if got := usedBy(s); got["a"] != 1 || got["b"] != 1 {
					t.Fatalf("used %v", got)
				}
				appendRaw(t, s.Log, stream, c.eventType, c.data)
				s.Append(stream, sharedTick(2, "a", "b"))
				s.Append(stream, sharedTick(3, "b"))
				beginShared(s, "c")
				s.Append(stream, sharedTick(4, "c"))
				got := usedBy(s)
				if stops := stoppedOwners(s); stops != c.stops {
					t.Errorf("stopped %q, want %q", stops, c.stops)
				}
				want := "map[a:1 b:3 c:1]"
				if c.stops != own {
					want = "map[a:1 b:1]"
				}
				if fmt.Sprint(got) != want {
					t.Errorf("used %v, want %s", got, want)
				}
			})
		})
	}
}

func TestLinesWithoutANumberAreNotedAndCountNothing(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		s := projectortest.Start(t, address, usage.Model)
		stream := beginShared(s, "a")
		tick := sharedTick(1, "a")
		tick.Lines = append(tick.Lines, 70, 0, 5)
		s.Append(stream, tick)
		if got := usedBy(s); got["a"] != 1 {
			t.Errorf("used %v", got)
		}
		if err := s.Incidents(); err == nil || !strings.Contains(err.Error(), "usage-2025-11.0@1: lines without a key") {
			t.Errorf("readiness says %v", err)
		}
		if stops := stoppedOwners(s); stops != "" {
			t.Errorf("stopped %q", stops)
		}
	})
}

// A refold of a period reads its own stream, which does not hold what is counted in a shared one.
func TestAStoppedPeriodOfASharedStreamIsWrittenAgainByANewGeneration(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		s := projectortest.Start(t, address, usage.Model)
		stream := beginShared(s, "a", "b")
		s.Append(stream, sharedTick(1, "a", "b"))
		appendRaw(t, s.Log, stream, "usage.shared-pause.v1", `{"contract":"a","first":"2025-11-21"}`)
		s.Append(stream, sharedTick(2, "b"))
		stopped := stoppedOwners(s)
		before := s.ServingGeneration(table.UsageModel)
		s.Refold(stopped)
		s.AwaitOtherGeneration(table.UsageModel, before)
		if got := usedBy(s); got["b"] != 2 {
			t.Errorf("used %v", got)
		}
		if stops := stoppedOwners(s); stops != "/"+usagefold.StreamName("a", first) {
			t.Errorf("stopped %q", stops)
		}
	})
}
