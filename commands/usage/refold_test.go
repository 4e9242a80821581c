package usage_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"lieudit/commands/usage"
	"lieudit/eventstore"
	"lieudit/schemas/event"
	"lieudit/schemas/ledger"
	"lieudit/schemas/plan"
)

var (
	firstDay = plan.Date{Year: 2025, Month: 11, Day: 21}
	lastDay  = plan.Date{Year: 2025, Month: 12, Day: 21}
)

// writeAll appends events to a stream, one after the other.
func writeAll(t *testing.T, store eventstore.Store, stream string, events ...event.Event) {
	t.Helper()
	for _, e := range events {
		write(t, store, stream, e)
	}
}

// told is a stream of account a: four requests that count, in two ticks.
func told() []event.Event {
	tick := func(sequence, requests int64) event.Event {
		return event.UsageTicked{Incarnation: "i", Sequence: sequence, Day: firstDay, Counts: []event.UsageCount{{Account: "a", Key: "k", Endpoint: "GET /me", Requests: requests}}}
	}
	return []event.Event{event.UsageOpened{Contract: "a", First: firstDay, Next: lastDay, Cap: 4}, tick(1, 3), tick(2, 2), tick(3, 1)}
}

func balanceOf(asOf int64, events []event.Event) event.UsageBalanced {
	b := &ledger.Book{}
	for _, e := range events {
		b.Apply(e, time.Now())
	}
	return b.Balance(asOf)
}

func linesOf(events []event.Event) ledger.Lines {
	f := ledger.NewFolding()
	for _, e := range events {
		f.Apply(e, time.Now())
	}
	return f.Lines
}

func look(t *testing.T, store eventstore.Store, period string) *usage.Refold {
	t.Helper()
	found, err := usage.New(store, nil, nil, time.Now, nil).Refold(t.Context(), period)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestRefoldSaysWhatTheLogComesTo(t *testing.T) {
	t.Parallel()
	log, stream := openLog(t), ledger.Stream("a", firstDay)
	writeAll(t, log, stream, told()...)
	writeAll(t, log, ledger.Stream("b", plan.Date{Year: 2025, Month: 10, Day: 1}), told()...)
	f := look(t, log, "2025-11")
	if got := slices.Collect(maps.Keys(f.Streams)); len(got) != 1 || got[0] != stream {
		t.Fatalf("folded %v", got)
	}
	s := f.Streams[stream]
	if diff := cmp.Diff(linesOf(told()), s.Lines); diff != "" || s.Revision != 3 || s.Wrong != nil || s.Used("a") != 4 {
		t.Errorf("at %d, wrong %v: %s", s.Revision, s.Wrong, diff)
	}
	writeAll(t, log, stream, linesOf(told()).Closing(), event.UsageAdjusted{Day: firstDay, Account: "a", Key: "k", Endpoint: "GET /me", Requests: -1}, told()[1])
	if err := f.Forward(t.Context(), stream, 5); err != nil || s.Revision != 5 || s.Lines.Total() != 3 || !s.Closed() || s.Closing.Total != 4 || s.Wrong != nil {
		t.Errorf("then at %d with %d, closed by %v, wrong %v, %v", s.Revision, s.Lines.Total(), s.Closing, s.Wrong, err)
	}
}

func TestAStreamThatBeginsMeanwhileIsFoldedToo(t *testing.T) {
	t.Parallel()
	log, stream := openLog(t), ledger.Stream("a", firstDay)
	f := look(t, log, "")
	if err := f.Forward(t.Context(), stream, 9); err != nil || f.Streams[stream] != nil {
		t.Errorf("a stream without events is there: %v, %v", f.Streams[stream], err)
	}
	writeAll(t, log, stream, told()...)
	if err := f.Forward(t.Context(), stream, 1); err != nil || f.Streams[stream].Lines.Total() != 3 {
		t.Errorf("got %+v, %v", f.Streams[stream], err)
	}
}

func TestBalancesAndClosingsThatAreNotSoAreNamed(t *testing.T) {
	t.Parallel()
	events := told()
	right := linesOf(events).Closing()
	digest, total := right, right
	digest.Digest = make([]byte, 32)
	total.Total++
	used := balanceOf(3, events)
	used.Used++
	for rule, c := range map[string]struct {
		says  event.Event
		wrong bool
	}{
		"a balance as of the event before":         {balanceOf(3, events), false},
		"a balance as of an earlier event":         {balanceOf(1, events[:2]), false},
		"a balance that knows less than it says":   {balanceOf(3, events[:2]), true},
		"a balance that knows what comes after it": {balanceOf(1, events), false},
		"a balance with another sum":               {used, true},
		"a balance as of what is to come":          {balanceOf(4, events), true},
		"a closing":                                {right, false},
		"a closing with another sum":               {total, true},
		"a closing with the digest of other lines": {digest, true},
	} {
		log, stream := openLog(t), ledger.Stream("a", firstDay)
		writeAll(t, log, stream, append(events, c.says)...)
		var want []usage.Misstatement
		if c.wrong {
			want = []usage.Misstatement{{Revision: 4, Type: c.says.EventType()}}
		}
		if diff := cmp.Diff(want, look(t, log, "").Streams[stream].Wrong); diff != "" {
			t.Errorf("%s: %s", rule, diff)
		}
	}
}

func TestWhatMayBeUnansweredIsTheLastTickOfAnInstanceThatDidNotEnd(t *testing.T) {
	t.Parallel()
	log, stream := openLog(t), ledger.Stream("a", firstDay)
	for _, id := range []string{"crashed", "ended", "refused", "idle"} {
		writeAll(t, log, "incarnation-"+id, event.IncarnationStarted{Incarnation: id})
	}
	tick := func(incarnation string, sequence, requests int64) event.Event {
		return event.UsageTicked{Incarnation: incarnation, Sequence: sequence, Day: firstDay, Counts: []event.UsageCount{{Account: "a", Key: "k", Endpoint: "GET /me", Requests: requests}}}
	}
	writeAll(t, log, stream, event.UsageOpened{Contract: "a", First: firstDay, Next: lastDay, Cap: 100},
		tick("crashed", 1, 5), tick("crashed", 2, 7), tick("ended", 1, 3), tick("refused", 1, 2), tick("refused", 2, 900), tick("crashed", 2, 7))
	writeAll(t, log, "incarnation-ended", event.IncarnationEnded{Incarnation: "ended"})
	got := map[string]int64{}
	for id, i := range look(t, log, "").Incarnations {
		got[id] = 0
		for _, last := range i.Last {
			got[id] += last.Tick.Counts[0].Requests
		}
		if i.Started.IsZero() {
			t.Errorf("%s has no start", id)
		}
	}
	if diff := cmp.Diff(map[string]int64{"crashed": 7, "refused": 0, "idle": 0}, got); diff != "" {
		t.Error(diff)
	}
}
