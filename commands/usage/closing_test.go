package usage_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"lieudit/commands"
	"lieudit/commands/usage"
	"lieudit/eventstore"
	"lieudit/eventstore/clock"
	"lieudit/queries/usage/reconcile"
	"lieudit/schemas/event"
	"lieudit/schemas/plan"
	"lieudit/schemas/refusal"
	"lieudit/schemas/usagefold"
)

var (
	firstDay = plan.Date{Year: 2025, Month: 11, Day: 21}
	lastDay  = plan.Date{Year: 2025, Month: 12, Day: 21}
)

// appendEvents appends events to a stream, one after the other.
func appendEvents(t *testing.T, store eventstore.Store, stream string, events ...event.Event) {
	t.Helper()
	for _, e := range events {
		appendEvent(t, store, stream, e)
	}
}

// sampleEvents is a stream of account a: four requests that count, in two ticks.
func sampleEvents() []event.Event {
	tick := func(sequence, requests int64) event.Event {
		return event.UsageTicked{InstanceID: "i", Sequence: sequence, Day: firstDay, Counts: []event.UsageCount{{Account: "a", Key: "k", Endpoint: "GET /me", Requests: requests}}}
	}
	return []event.Event{event.UsageOpened{Contract: "a", First: firstDay, Next: lastDay, Cap: 4}, tick(1, 3), tick(2, 2), tick(3, 1)}
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

// newAdjustment returns an adjustment of the one line of sampleEvents, which has 4 requests.
func newAdjustment(requests int64) usage.Adjustment {
	return usage.Adjustment{Contract: "a", First: firstDay, Line: usagefold.LineKey{Day: firstDay, Account: "a", Key: "k", Endpoint: "GET /me"}, Requests: requests}
}

var billerMeta = commands.Metadata{Actor: "token:biller", Reason: "outage"}

func TestAdjustmentsLeaveTheClosingEventAsItIs(t *testing.T) {
	t.Parallel()
	log, stream := openLog(t), usagefold.StreamName("a", firstDay)
	m := usage.New(log, newCodec(), nil, nil, nil, clock.New(clock.Options{}), nil)
	appendEvents(t, log, stream, append(sampleEvents(), linesOf(sampleEvents()).ClosingEvent())...)
	if got, err := m.AdjustPeriod(t.Context(), billerMeta, newAdjustment(-3)); err != nil || got.Requests != 1 {
		t.Fatalf("%d are left, %v, want 1", got.Requests, err)
	}
	s := refoldLog(t, log, "").Streams[stream]
	if s.Lines.Total() != 1 || s.Closing.Total != 4 || s.Misstatements != nil {
		t.Errorf("%d requests, closed with %d, wrong %v", s.Lines.Total(), s.Closing.Total, s.Misstatements)
	}
	for r, err := range log.ReadStream(t.Context(), stream, eventstore.End, eventstore.Backward) {
		if err != nil {
			t.Fatal(err)
		}
		m, err := newCodec().DecodeMetadata(t.Context(), r, event.UsageAdjusted{Account: "a"})
		if err != nil || strings.Contains(string(r.Metadata), billerMeta.Reason) || m.Actor != billerMeta.Actor || m.Reason != billerMeta.Reason || !m.EndOfAppend {
			t.Errorf("the envelope is %+v, %v", m, err)
		}
		break
	}
}

// TestAdjustmentsAtOnceNeverTakeMoreThanThereIs: of ten adjustments that take one request each from four, four are accepted.
func TestAdjustmentsAtOnceNeverTakeMoreThanThereIs(t *testing.T) {
	t.Parallel()
	log, stream := openLog(t), usagefold.StreamName("a", firstDay)
	appendEvents(t, log, stream, append(sampleEvents(), linesOf(sampleEvents()).ClosingEvent())...)
	var writers sync.WaitGroup
	refused := make(chan error, 10)
	for range 10 {
		m := usage.New(log, newCodec(), nil, nil, nil, clock.New(clock.Options{}), nil)
		writers.Go(func() {
			_, err := m.AdjustPeriod(t.Context(), billerMeta, newAdjustment(-1))
			refused <- err
		})
	}
	writers.Wait()
	close(refused)
	made := 0
	for err := range refused {
		switch {
		case err == nil:
			made++
		case !errors.Is(err, refusal.AdjustmentBelowZero):
			t.Error(err)
		}
	}
	if left := refoldLog(t, log, "").Streams[stream].Lines.Total(); made != 4 || left != 0 {
		t.Errorf("%d corrections were made and %d requests are left", made, left)
	}
}

func TestAdjustmentsThatBreakARuleAreRefused(t *testing.T) {
	t.Parallel()
	for rule, c := range map[string]struct {
		open   bool
		change func(*usage.Adjustment)
		want   error
	}{
		"of an open period":            {true, func(*usage.Adjustment) {}, refusal.PeriodNotClosed},
		"of a period that never was":   {false, func(a *usage.Adjustment) { a.First.Year-- }, usage.ErrUnknownPeriod},
		"of another contract":          {false, func(a *usage.Adjustment) { a.Contract = "b" }, usage.ErrUnknownPeriod},
		"on a day before":              {false, func(a *usage.Adjustment) { a.Line.Day = plan.Date{Year: 2025, Month: 11, Day: 20} }, refusal.DayOutsidePeriod},
		"on the first day of the next": {false, func(a *usage.Adjustment) { a.Line.Day = lastDay }, refusal.DayOutsidePeriod},
		"of an account outside":        {false, func(a *usage.Adjustment) { a.Line.Account = "b" }, refusal.AccountNotInContract},
		"below zero":                   {false, func(a *usage.Adjustment) { a.Requests = -5 }, refusal.AdjustmentBelowZero},
		"of a line that is not there":  {false, func(a *usage.Adjustment) { a.Line.Key = "k2" }, refusal.AdjustmentBelowZero},
		"of nothing":                   {false, func(a *usage.Adjustment) { a.Requests = 0 }, refusal.AdjustmentZero},
	} {
		log, stream := openLog(t), usagefold.StreamName("a", firstDay)
		events := sampleEvents()
		if !c.open {
			events = append(events, event.Event(linesOf(events).ClosingEvent()))
		}
		appendEvents(t, log, stream, events...)
		a := newAdjustment(-1)
		c.change(&a)
		_, err := usage.New(log, newCodec(), nil, nil, nil, clock.New(clock.Options{}), nil).AdjustPeriod(t.Context(), billerMeta, a)
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", rule, err, c.want)
		}
		if now := refoldLog(t, log, "").Streams[stream]; int(now.Revision) != len(events)-1 {
			t.Errorf("%s: something was written", rule)
		}
	}
}
