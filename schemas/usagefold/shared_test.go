package usagefold_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"lieudit/schemas/event"
	"lieudit/schemas/plan"
	"lieudit/schemas/usagefold"
)

// sharedContracts are the contracts of the generated histories with the accounts that count for each: the first one is the contract's
// own, and a is an agency with three sub-clients.
var sharedContracts = map[string][]string{"a": {"a", "b", "c", "d"}, "e": {"e"}, "f": {"f"}, "g": {"g"}}

func refOf(contract string) event.PeriodRef { return event.PeriodRef{Contract: contract, First: first} }

// sharedHistory writes a shared stream as several instances do, and the stream that each period would have alone.
type sharedHistory struct {
	rand     *rand.Rand
	shared   *usagefold.SharedState
	alone    map[event.PeriodRef]*usagefold.PeriodUsage
	sequence map[string]int64 // by instance
	written  []event.Event
	stale    *usagefold.SharedState // what an instance knew when it built its tick
}

func newSharedHistory(r *rand.Rand) *sharedHistory {
	return &sharedHistory{rand: r, shared: &usagefold.SharedState{}, stale: &usagefold.SharedState{}, alone: map[event.PeriodRef]*usagefold.PeriodUsage{}, sequence: map[string]int64{}}
}

// next is the next event of the history.
func (h *sharedHistory) next() event.Event {
	contracts := []string{"a", "e", "f", "g"}
	contract := contracts[h.rand.IntN(len(contracts))]
	accounts := sharedContracts[contract]
	account := accounts[h.rand.IntN(len(accounts))]
	instance := fmt.Sprint("i", h.rand.IntN(3))
	switch n := h.rand.IntN(60); {
	case n == 0 && len(h.written) > 0:
		return h.written[h.rand.IntN(len(h.written))] // the log may hold an append twice
	case n == 1:
		return event.SharedUsageKeyRevoked{PeriodRef: refOf(contract), UsageKeyRevoked: event.UsageKeyRevoked{Account: account, Key: fmt.Sprint("key-", account, h.rand.IntN(2))}}
	case n == 2 && h.rand.IntN(5) == 0:
		return event.SharedUsageAccountClosed{PeriodRef: refOf(contract), UsageAccountClosed: event.UsageAccountClosed{Account: account}}
	case n == 3 && h.rand.IntN(5) == 0:
		return event.SharedUsageEnded{PeriodRef: refOf(contract)}
	case n < 10:
		return event.UsageOpened{Contract: contract, First: first, Next: next, Cap: int64(h.rand.IntN(80))}
	case n < 20:
		return event.SharedUsageCapSet{PeriodRef: refOf(contract), UsageCapSet: event.UsageCapSet{Account: account, Cap: int64(h.rand.IntN(60)), AsOfPosition: int64(h.rand.IntN(30))}}
	case n < 25:
		h.sequence[instance]++
		return event.SharedUsageRefunded{PeriodRef: refOf(contract), UsageRefunded: event.UsageRefunded{InstanceID: instance, Sequence: h.sequence[instance], Day: first, Counts: []event.UsageCount{newCount(account, 1+int64(h.rand.IntN(3)))}}}
	}
	h.sequence[instance]++
	var lines []usagefold.SharedLine
	for range 1 + h.rand.IntN(6) {
		contract := contracts[h.rand.IntN(len(contracts))]
		account := sharedContracts[contract][h.rand.IntN(len(sharedContracts[contract]))]
		lines = append(lines, usagefold.SharedLine{
			UsedKey:  event.UsedKey{PeriodRef: refOf(contract), Account: account, Key: fmt.Sprint("key-", account, h.rand.IntN(2))},
			Endpoint: fmt.Sprint("GET /", h.rand.IntN(3)), Requests: int64(h.rand.IntN(5)),
		})
	}
	return h.stale.BuildTick(event.SharedUsageTicked{InstanceID: instance, Sequence: h.sequence[instance], Day: first}, lines)
}

// remember keeps an event that may be repeated. Nobody counts in a period that is not open; if it were done, and repeated once the
// period is open, the repetition would count in a stream of its own and be void in a shared one.
func (h *sharedHistory) remember(e event.Event, parts []usagefold.PeriodEvent) {
	if !slices.ContainsFunc(parts, func(p usagefold.PeriodEvent) bool { return p.Verdict == usagefold.PeriodNotOpen }) {
		h.written = append(h.written, e)
	}
}

// applyAlone applies what an event is to each period to the streams that the periods would have alone.
func (h *sharedHistory) applyAlone(e event.Event, parts []usagefold.PeriodEvent) map[event.PeriodRef]usagefold.Verdict {
	verdicts := map[event.PeriodRef]usagefold.Verdict{}
	for _, p := range parts {
		if h.alone[p.PeriodRef] == nil {
			h.alone[p.PeriodRef] = usagefold.NewPeriodUsage()
		}
		own := p.Event
		if _, ends := own.(event.SharedUsageEnded); ends {
			own = event.UsageClosed{}
		}
		verdicts[p.PeriodRef] = h.alone[p.PeriodRef].Apply(own, noon)
	}
	return verdicts
}

// Each period of a shared stream gets the verdicts, the totals and the lines that it would have in a stream of its own.
func TestSharedStreamGivesEachPeriodTheVerdictsOfAStreamOfItsOwn(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	seen := map[usagefold.Verdict]int{}
	for round := range uint64(300) {
		h := newSharedHistory(rand.New(rand.NewPCG(seed, round)))
		lines := map[event.PeriodRef]usagefold.Lines{}
		for n := range 300 {
			if h.rand.IntN(3) == 0 {
				h.stale = usagefold.RestoreShared(h.shared.Snapshot("i", int64(n)))
			}
			e := h.next()
			parts := h.shared.Apply(e, noon)
			h.remember(e, parts)
			want := h.applyAlone(e, parts)
			for _, p := range parts {
				if p.Verdict != want[p.PeriodRef] {
					t.Fatalf("seed %d, round %d: event %d %+v: %s has verdict %d, %d alone", seed, round, n, e, p.Contract, p.Verdict, want[p.PeriodRef])
				}
				seen[p.Verdict]++
				if lines[p.PeriodRef] == nil {
					lines[p.PeriodRef] = usagefold.Lines{}
				}
				lines[p.PeriodRef].Apply(p.Event, p.Verdict)
			}
		}
		h.compare(t, seed, lines)
	}
	for v := usagefold.Counted; v <= usagefold.CapReached; v++ {
		if seen[v] == 0 {
			t.Errorf("no line of %d histories has verdict %d", 300, v)
		}
	}
}

// compare demands that the periods have the totals and lines that they have alone.
func (h *sharedHistory) compare(t *testing.T, seed uint64, lines map[event.PeriodRef]usagefold.Lines) {
	t.Helper()
	for ref, alone := range h.alone {
		p := h.shared.Period(ref)
		if p == nil {
			p = &usagefold.PeriodState{}
		}
		if diff := cmp.Diff(alone.Lines, lines[ref]); diff != "" {
			t.Fatalf("seed %d: lines of %s (-alone +shared): %s", seed, ref.Contract, diff)
		}
		for _, account := range sharedContracts[ref.Contract] {
			limit, asOf, known := p.Cap(account)
			wantLimit, wantAsOf, wantKnown := alone.Cap(account)
			if p.Used(account) != alone.Used(account) || limit != wantLimit || asOf != wantAsOf || known != wantKnown || p.IsOpen() != alone.IsOpen() {
				t.Fatalf("seed %d: %s of %s used %d of %d, alone %d of %d", seed, account, ref.Contract, p.Used(account), limit, alone.Used(account), wantLimit)
			}
		}
	}
}

// A reader that begins at any snapshot of a shared stream finds the same verdicts as one that folds the whole stream.
func TestSnapshotOfASharedStreamGivesTheSameVerdicts(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	for round := range uint64(100) {
		h := newSharedHistory(rand.New(rand.NewPCG(seed, round)))
		var readers []*usagefold.SharedState
		for n := range int64(200) {
			if h.rand.IntN(40) == 0 {
				readers = append(readers, usagefold.RestoreShared(h.shared.Snapshot("i", n)))
			}
			e := h.next()
			parts := h.shared.Apply(e, noon)
			h.remember(e, parts)
			want := verdictsOf(parts)
			for i, reader := range readers {
				if diff := cmp.Diff(want, verdictsOf(reader.Apply(e, noon))); diff != "" {
					t.Fatalf("seed %d, round %d: event %d %+v by reader %d: %s", seed, round, n, e, i, diff)
				}
			}
			h.stale = h.shared
		}
		want := h.shared.Snapshot("i", 0)
		for _, reader := range readers {
			if diff := cmp.Diff(want, reader.Snapshot("i", 0)); diff != "" {
				t.Fatalf("seed %d, round %d: %s", seed, round, diff)
			}
		}
	}
}

// verdictsOf are the verdicts of an event by period, with the event that each is about.
func verdictsOf(parts []usagefold.PeriodEvent) (all []string) {
	for _, p := range parts {
		all = append(all, fmt.Sprintf("%s %d %+v", p.Contract, p.Verdict, p.Event))
	}
	return all
}

func openShared(t *testing.T, caps map[string]int64) *usagefold.SharedState {
	t.Helper()
	s := &usagefold.SharedState{}
	for contract, limit := range caps {
		s.Apply(event.UsageOpened{Contract: contract, First: first, Next: next, Cap: limit}, noon)
	}
	return s
}

func sharedLine(contract string, n int64) usagefold.SharedLine {
	return usagefold.SharedLine{UsedKey: event.UsedKey{PeriodRef: refOf(contract), Account: contract, Key: "key-" + contract}, Endpoint: "GET /me", Requests: n}
}

func TestAContractAtItsCapVoidsItsOwnLinesAlone(t *testing.T) {
	t.Parallel()
	s := openShared(t, map[string]int64{"a": 10, "e": 3, "f": 10})
	tick := s.BuildTick(event.SharedUsageTicked{InstanceID: "i", Sequence: 1, Day: first}, []usagefold.SharedLine{
		sharedLine("a", 4), sharedLine("e", 4), sharedLine("f", 4), sharedLine("never-opened", 1),
	})
	got := map[string]usagefold.Verdict{}
	for _, p := range s.Apply(tick, noon) {
		got[p.Contract] = p.Verdict
	}
	want := map[string]usagefold.Verdict{"a": usagefold.Counted, "e": usagefold.CapReached, "f": usagefold.Counted, "never-opened": usagefold.PeriodNotOpen}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestALineWithoutANumberIsVoidAlone(t *testing.T) {
	t.Parallel()
	s := openShared(t, map[string]int64{"a": 10})
	tick := s.BuildTick(event.SharedUsageTicked{InstanceID: "i", Sequence: 1, Day: first}, []usagefold.SharedLine{sharedLine("a", 4)})
	tick.Lines = append(tick.Lines, 7, 0, 1, -1, 9, 1, -3, -1, 1, -1<<63, 0, 1, 1<<62, 0, 1)
	var got []string
	for _, p := range s.Apply(tick, noon) {
		got = append(got, fmt.Sprintf("%q %d", p.Contract, p.Verdict))
	}
	if want := []string{fmt.Sprintf("%q %d", "a", usagefold.Counted), fmt.Sprintf("%q %d", "", usagefold.Unnumbered)}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if used := s.Period(refOf("a")).Used("a"); used != 4 {
		t.Errorf("used %d, want 4", used)
	}
}

// Two instances name keys that neither has seen of the other: each line still counts for its own key.
func TestInstancesThatNameKeysAtTheSameTimeAgreeOnTheirNumbers(t *testing.T) {
	t.Parallel()
	s := openShared(t, map[string]int64{"a": 100, "e": 100, "f": 100})
	build := func(known *usagefold.SharedState, instance string, sequence int64, lines ...usagefold.SharedLine) event.SharedUsageTicked {
		return known.BuildTick(event.SharedUsageTicked{InstanceID: instance, Sequence: sequence, Day: first}, lines)
	}
	one := build(&usagefold.SharedState{}, "i1", 1, sharedLine("f", 1), sharedLine("a", 2))
	two := build(&usagefold.SharedState{}, "i2", 1, sharedLine("e", 4), sharedLine("a", 8), sharedLine("f", 16))
	s.Apply(one, noon)
	s.Apply(two, noon)
	three := build(s, "i1", 2, sharedLine("a", 32), sharedLine("e", 64-32), sharedLine("f", 32))
	s.Apply(three, noon)
	if len(three.Keys)+len(three.Endpoints) != 0 {
		t.Errorf("a tick names again what has numbers: %+v", three)
	}
	for contract, want := range map[string]int64{"a": 42, "e": 36, "f": 49} {
		if got := s.Period(refOf(contract)).Used(contract); got != want {
			t.Errorf("%s used %d, want %d", contract, got, want)
		}
	}
}

// A snapshot has parts of limited size, and is complete however its parts lie between those of another one.
func TestASnapshotIsReadFromItsPartsInAnyOrder(t *testing.T) {
	t.Parallel()
	s := openShared(t, map[string]int64{"a": 1 << 40})
	for n := range int64(3000) {
		account := fmt.Sprint("client-", n)
		s.Apply(event.SharedUsageCapSet{PeriodRef: refOf("a"), UsageCapSet: event.UsageCapSet{Account: account, Cap: n, AsOfPosition: n}}, noon)
		s.Apply(event.SharedUsageKeyRevoked{PeriodRef: refOf("a"), UsageKeyRevoked: event.UsageKeyRevoked{Account: account, Key: fmt.Sprint("old-", n)}}, noon)
		s.Apply(s.BuildTick(event.SharedUsageTicked{InstanceID: "i", Sequence: n + 1, Day: first}, []usagefold.SharedLine{{
			UsedKey: event.UsedKey{PeriodRef: refOf("a"), Account: account, Key: fmt.Sprint("key-", n)}, Endpoint: "GET /me", Requests: 1,
		}}), noon)
	}
	parts, other := s.Snapshot("i", 7), s.Snapshot("j", 7)
	if len(parts) < 4 {
		t.Fatalf("%d parts for 3,000 keys, accounts and revoked keys", len(parts))
	}
	for _, p := range parts {
		if items := len(p.Keys) + len(p.Endpoints) + len(p.Sequences) + len(p.Periods); items > 2000 {
			t.Errorf("part %d has %d items", p.Part, items)
		}
	}
	var collected usagefold.SnapshotParts
	for _, i := range rand.Perm(len(parts) - 1) {
		for _, part := range []event.SharedUsageSnapshotTaken{parts[i], parts[i], other[i]} {
			if _, isComplete := collected.Add(part); isComplete {
				t.Fatal("complete without its last part")
			}
		}
	}
	found, isComplete := collected.Add(parts[len(parts)-1])
	if !isComplete {
		t.Fatal("not complete with all parts")
	}
	if diff := cmp.Diff(s.Snapshot("i", 7), usagefold.RestoreShared(found).Snapshot("i", 7)); diff != "" {
		t.Error(diff)
	}
}

func TestNamesOfSharedStreams(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		stream string
		month  string
		shard  int64
		ok     bool
	}{
		{"usage-2026-11.0", "2026-11", 0, true},
		{"usage-2026-11.31", "2026-11", 31, true},
		{"usage-2026-11", "", 0, false},
		{"usage-2026-13.1", "", 0, false},
		{"usage-2026-11.01", "", 0, false},
		{"usage-2026-11.-1", "", 0, false},
		{"usage-mende-2026-11-21", "", 0, false},
		{"incarnation-2026-11.1", "", 0, false},
	} {
		month, shard, ok := usagefold.ParseSharedStreamName(c.stream)
		if ok != c.ok || ok && (month != c.month || shard != c.shard) {
			t.Errorf("%s: %s %d %t", c.stream, month, shard, ok)
		}
		if _, _, isOwn := usagefold.ParseStreamName(c.stream); isOwn && ok {
			t.Errorf("%s is also the stream of one period", c.stream)
		}
	}
	if month, ok := usagefold.ParseMonthStreamName(usagefold.MonthStreamName(usagefold.MonthOf(plan.Date{Year: 2026, Month: 11, Day: 21}))); !ok || month != "2026-11" {
		t.Errorf("the month of 21 November is %q, %t", month, ok)
	}
	if _, ok := usagefold.ParseMonthStreamName("usage-2026-11.3"); ok {
		t.Error("a shared stream is taken for that of its month")
	}
}

// Contracts are spread evenly, and always alike: logs depend on it.
func TestContractsAreSpreadOverShards(t *testing.T) {
	t.Parallel()
	count := map[int64]int{}
	for i := range 8000 {
		count[usagefold.ShardOf(fmt.Sprint("commune-", i), 8)]++
	}
	for shard, n := range count {
		if n < 800 || n > 1200 {
			t.Errorf("shard %d has %d of 8,000 contracts", shard, n)
		}
	}
	if got := [3]int64{usagefold.ShardOf("mende", 8), usagefold.ShardOf("mende", 1), usagefold.ShardOf("", 8)}; got != [3]int64{0, 0, 5} {
		t.Errorf("shards %v: contracts moved", got)
	}
}

func BenchmarkSharedTick(b *testing.B) {
	s := &usagefold.SharedState{}
	var lines []usagefold.SharedLine
	for i := range 40 {
		contract := fmt.Sprint("commune-", i)
		s.Apply(event.UsageOpened{Contract: contract, First: first, Next: next, Cap: 1 << 60}, noon)
		lines = append(lines, sharedLine(contract, 1))
	}
	for n := int64(1); b.Loop(); n++ {
		tick := s.BuildTick(event.SharedUsageTicked{InstanceID: "i", Sequence: n, Day: first}, lines)
		if len(s.Apply(tick, noon)) != len(lines) {
			b.Fatal("lines are missing")
		}
	}
}
