package usagefold_test

import (
	"encoding/json"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"lieudit/schemas/event"
	"lieudit/schemas/usagefold"
)

// sharedRows keeps a shared stream as a reader does that keeps its state in rows.
type sharedRows struct {
	keys      []event.UsedKey
	endpoints []string
	sequences map[string]int64
	periods   map[event.PeriodRef][]byte // a snapshot as JSON
	ended     map[event.PeriodRef]bool
}

// restore makes the part of the stream that events need, and returns the periods in it.
func (r *sharedRows) restore(t *testing.T, events []event.Event) (*usagefold.SharedPart, usagefold.SharedNeeds) {
	t.Helper()
	var needs usagefold.SharedNeeds
	for _, e := range events {
		needs.Add(e)
	}
	part := usagefold.NewSharedPart(int64(len(r.keys)), int64(len(r.endpoints)))
	for number, key := range r.keys {
		if needs.KeyNumbers[int64(number)] || needs.NamedKeys[key] {
			part.AddKey(int64(number), key)
			needs.Periods[key.PeriodRef] = true
		}
	}
	for number, endpoint := range r.endpoints {
		if needs.EndpointNumbers[int64(number)] || needs.NamedEndpoints[endpoint] {
			part.AddEndpoint(int64(number), endpoint)
		}
	}
	for id := range needs.Instances {
		part.AddSequence(id, r.sequences[id])
	}
	for ref := range needs.Periods {
		if r.periods[ref] == nil {
			continue
		}
		var snapshot event.UsageSnapshotTaken
		if err := json.Unmarshal(r.periods[ref], &snapshot); err != nil {
			t.Fatal(err)
		}
		p := usagefold.RestorePeriod(snapshot)
		if r.ended[ref] {
			p.Apply(event.SharedUsageEnded{}, noon)
		}
		part.AddPeriod(ref, p)
	}
	return part, needs
}

// save keeps what the events have changed.
func (r *sharedRows) save(t *testing.T, part *usagefold.SharedPart, needs usagefold.SharedNeeds) {
	t.Helper()
	keys, endpoints := part.Numbered()
	for _, k := range keys {
		r.keys = append(r.keys, k.Value)
	}
	for _, e := range endpoints {
		r.endpoints = append(r.endpoints, e.Value)
	}
	if k, e := part.Counts(); k != int64(len(r.keys)) || e != int64(len(r.endpoints)) {
		t.Fatalf("%d keys and %d endpoints have numbers, %d and %d were given", k, e, len(r.keys), len(r.endpoints))
	}
	for id := range needs.Instances {
		r.sequences[id] = part.LastSequence(id)
	}
	for ref := range needs.Periods {
		p := part.Period(ref)
		if p == nil || !p.IsOpen() && !p.IsEnded() {
			continue
		}
		data, err := json.Marshal(p.Snapshot(0))
		if err != nil {
			t.Fatal(err)
		}
		r.periods[ref], r.ended[ref] = data, p.IsEnded()
	}
}

// However a shared stream is divided into batches, the part that each batch needs gives the verdicts of the whole.
func TestAPartOfASharedStreamGivesTheSameVerdicts(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	for round := range uint64(100) {
		h := newSharedHistory(rand.New(rand.NewPCG(seed, round)))
		rows := &sharedRows{sequences: map[string]int64{}, periods: map[event.PeriodRef][]byte{}, ended: map[event.PeriodRef]bool{}}
		var batch []event.Event
		var want [][]string
		for n := range int64(200) {
			if h.rand.IntN(3) == 0 {
				h.stale = usagefold.RestoreShared(h.shared.Snapshot("i", n))
			}
			e := h.next()
			parts := h.shared.Apply(e, noon)
			h.remember(e, parts)
			batch, want = append(batch, e), append(want, verdictsOf(parts))
			if h.rand.IntN(5) > 0 {
				continue
			}
			part, needs := rows.restore(t, batch)
			for i, e := range batch {
				if diff := cmp.Diff(want[i], verdictsOf(part.Apply(e, noon))); diff != "" {
					t.Fatalf("seed %d, round %d: event %+v: %s", seed, round, e, diff)
				}
			}
			rows.save(t, part, needs)
			batch, want = nil, nil
		}
	}
}

// Lines of a period make one tick, in their order, however they lie between those of others.
func TestLinesOfAPeriodCountTogetherInAnyOrder(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	for range 300 {
		s := openShared(t, map[string]int64{"a": 1000, "e": 1000, "f": 1000})
		var lines []usagefold.SharedLine
		for n := range int64(1 + random.IntN(12)) {
			lines = append(lines, sharedLine([]string{"a", "e", "f"}[random.IntN(3)], n+1))
		}
		tick := s.BuildTick(event.SharedUsageTicked{InstanceID: "i", Sequence: 1, Day: first}, lines)
		want := map[string][]int64{}
		for i, at := range random.Perm(len(lines)) { // BuildTick has sorted them
			contract := lines[at].Contract
			number := int64(0)
			for tick.Keys[number].Contract != contract {
				number++
			}
			tick.Lines[3*i], tick.Lines[3*i+2] = -1-number, lines[at].Requests
			want[contract] = append(want[contract], lines[at].Requests)
		}
		got := map[string][]int64{}
		for _, p := range s.Apply(tick, noon) {
			if got[p.Contract] != nil {
				t.Fatalf("seed %d: two ticks of %s", seed, p.Contract)
			}
			for _, c := range p.Event.(event.UsageTicked).Counts {
				got[p.Contract] = append(got[p.Contract], c.Requests)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("seed %d: %s", seed, diff)
		}
	}
}
