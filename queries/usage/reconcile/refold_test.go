package reconcile_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"lieudit/eventstore"
	"lieudit/eventstore/journal"
	"lieudit/queries/usage/reconcile"
	"lieudit/schemas/event"
	"lieudit/schemas/plan"
	"lieudit/schemas/usagefold"
)

var (
	firstDay = plan.Date{Year: 2025, Month: 11, Day: 21}
	lastDay  = plan.Date{Year: 2025, Month: 12, Day: 21}
)

type noVault struct{}

func (noVault) Key(context.Context, string, bool) ([]byte, error) { return nil, eventstore.ErrNoKey }
func (noVault) DestroyKey(context.Context, string) error          { return nil }
func (noVault) ForgetKeys()                                       {}

func openLog(t *testing.T) *journal.Journal {
	t.Helper()
	j, err := journal.Open(t.TempDir(), journal.Options{SegmentSize: 4 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	return j
}

// appendEvents appends events to a stream, one after the other.
func appendEvents(t *testing.T, store eventstore.Store, stream string, events ...event.Event) {
	t.Helper()
	for _, e := range events {
		batch, err := eventstore.NewCodec(noVault{}).Encode(t.Context(), stream, uuid.New(), eventstore.Metadata{}, []event.Event{e})
		if err == nil {
			_, err = store.Append(t.Context(), stream, eventstore.Any, batch)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// sampleEvents is a stream of account a: four requests that count, in two ticks.
func sampleEvents() []event.Event {
	tick := func(sequence, requests int64) event.Event {
		return event.UsageTicked{InstanceID: "i", Sequence: sequence, Day: firstDay, Counts: []event.UsageCount{{Account: "a", Key: "k", Endpoint: "GET /me", Requests: requests}}}
	}
	return []event.Event{event.UsageOpened{Contract: "a", First: firstDay, Next: lastDay, Cap: 4}, tick(1, 3), tick(2, 2), tick(3, 1)}
}

func snapshotOf(asOf int64, events []event.Event) event.UsageSnapshotTaken {
	b := &usagefold.PeriodState{}
	for _, e := range events {
		b.Apply(e, time.Now())
	}
	return b.Snapshot(asOf)
}

func linesOf(events []event.Event) usagefold.Lines {
	f := usagefold.NewPeriodUsage()
	for _, e := range events {
		f.Apply(e, time.Now())
	}
	return f.Lines
}

func refoldLog(t *testing.T, store eventstore.Store, period string) *reconcile.Refold {
	t.Helper()
	found, err := reconcile.FoldLog(t.Context(), store, period)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestRefoldAddsUpTheLog(t *testing.T) {
	t.Parallel()
	log, stream := openLog(t), usagefold.StreamName("a", firstDay)
	appendEvents(t, log, stream, sampleEvents()...)
	appendEvents(t, log, usagefold.StreamName("b", plan.Date{Year: 2025, Month: 10, Day: 1}), sampleEvents()...)
	f := refoldLog(t, log, "2025-11")
	if got := slices.Collect(maps.Keys(f.Streams)); len(got) != 1 || got[0] != stream {
		t.Fatalf("folded %v", got)
	}
	s := f.Streams[stream]
	if diff := cmp.Diff(linesOf(sampleEvents()), s.Lines); diff != "" || s.Revision != 3 || s.Misstatements != nil || s.Used("a") != 4 {
		t.Errorf("at %d, wrong %v: %s", s.Revision, s.Misstatements, diff)
	}
	appendEvents(t, log, stream, linesOf(sampleEvents()).ClosingEvent(), event.UsageAdjusted{Day: firstDay, Account: "a", Key: "k", Endpoint: "GET /me", Requests: -1}, sampleEvents()[1])
	if err := f.CatchUp(t.Context(), stream, 5); err != nil || s.Revision != 5 || s.Lines.Total() != 3 || !s.IsClosed() || s.Closing.Total != 4 || s.Misstatements != nil {
		t.Errorf("then at %d with %d, closed by %v, wrong %v, %v", s.Revision, s.Lines.Total(), s.Closing, s.Misstatements, err)
	}
}

func TestCatchUpFoldsAStreamThatBeganAfterFoldLog(t *testing.T) {
	t.Parallel()
	log, stream := openLog(t), usagefold.StreamName("a", firstDay)
	f := refoldLog(t, log, "")
	if err := f.CatchUp(t.Context(), stream, 9); err != nil || f.Streams[stream] != nil {
		t.Errorf("a stream without events is there: %v, %v", f.Streams[stream], err)
	}
	appendEvents(t, log, stream, sampleEvents()...)
	if err := f.CatchUp(t.Context(), stream, 1); err != nil || f.Streams[stream].Lines.Total() != 3 {
		t.Errorf("got %+v, %v", f.Streams[stream], err)
	}
}

func TestWrongSnapshotsAndClosingsAreReported(t *testing.T) {
	t.Parallel()
	events := sampleEvents()
	right := linesOf(events).ClosingEvent()
	digest, total := right, right
	digest.Digest = make([]byte, 32)
	total.Total++
	used := snapshotOf(3, events)
	used.Used++
	for rule, c := range map[string]struct {
		says  event.Event
		wrong bool
	}{
		"a balance as of the event before":         {snapshotOf(3, events), false},
		"a balance as of an earlier event":         {snapshotOf(1, events[:2]), false},
		"a balance that knows less than it says":   {snapshotOf(3, events[:2]), true},
		"a balance that knows what comes after it": {snapshotOf(1, events), false},
		"a balance with another sum":               {used, true},
		"a balance as of what is to come":          {snapshotOf(4, events), true},
		"a closing":                                {right, false},
		"a closing with another sum":               {total, true},
		"a closing with the digest of other lines": {digest, true},
	} {
		log, stream := openLog(t), usagefold.StreamName("a", firstDay)
		appendEvents(t, log, stream, append(events, c.says)...)
		var want []reconcile.Misstatement
		if c.wrong {
			want = []reconcile.Misstatement{{Revision: 4, Type: c.says.EventType()}}
		}
		if diff := cmp.Diff(want, refoldLog(t, log, "").Streams[stream].Misstatements); diff != "" {
			t.Errorf("%s: %s", rule, diff)
		}
	}
}

func TestUnansweredAreTheLastTicksOfInstancesThatDidNotEnd(t *testing.T) {
	t.Parallel()
	log, stream := openLog(t), usagefold.StreamName("a", firstDay)
	for _, id := range []string{"crashed", "ended", "refused", "idle"} {
		appendEvents(t, log, "incarnation-"+id, event.InstanceStarted{InstanceID: id})
	}
	tick := func(incarnation string, sequence, requests int64) event.Event {
		return event.UsageTicked{InstanceID: incarnation, Sequence: sequence, Day: firstDay, Counts: []event.UsageCount{{Account: "a", Key: "k", Endpoint: "GET /me", Requests: requests}}}
	}
	appendEvents(t, log, stream, event.UsageOpened{Contract: "a", First: firstDay, Next: lastDay, Cap: 100},
		tick("crashed", 1, 5), tick("crashed", 2, 7), tick("ended", 1, 3), tick("refused", 1, 2), tick("refused", 2, 900), tick("crashed", 2, 7))
	appendEvents(t, log, "incarnation-ended", event.InstanceEnded{InstanceID: "ended"})
	got := map[string]int64{}
	for id, i := range refoldLog(t, log, "").Instances {
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

func TestAnEventThatCannotBeDecodedIsNamed(t *testing.T) {
	t.Parallel()
	log := openLog(t)
	appendEvents(t, log, "usage-a-2025-11-21", sampleEvents()...)
	_, err := log.Append(t.Context(), "usage-a-2025-11-21", eventstore.Any, []eventstore.ProposedEvent{
		{ID: uuid.New(), Type: event.UsageTicked{}.EventType(), Data: []byte(`{"counts": 7}`)}, {ID: uuid.New(), Type: event.UsageTicked{}.EventType(), Data: []byte(`{}`)},
	})
	if err != nil {
		t.Fatal(err)
	}
	if f, err := reconcile.FoldLog(t.Context(), log, ""); f != nil || err == nil || !strings.Contains(err.Error(), "usage-a-2025-11-21@4") {
		t.Errorf("got %v, %v; want an error that names revision 4", f, err)
	}
}
