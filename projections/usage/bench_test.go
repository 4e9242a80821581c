package usage_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"lieudit/eventstore"
	"lieudit/projections/projector/projectortest"
	"lieudit/projections/usage"
	"lieudit/schemas/event"
	"lieudit/schemas/plan"
	"lieudit/schemas/table"
	"lieudit/schemas/usagefold"
)

const (
	benchTicks = 200_000
	perAppend  = 20

	sharedTicks    = 25_000
	linesPerTick   = 40
	sharedAccounts = 1000
)

// BenchmarkProjection fills usage from an existing journal of ticks: of one account, and of a thousand, each in a stream of its own; and of a
// thousand accounts that share a stream. A tick counts requests with two keys, and in the shared stream a request of each of 40 accounts.
func BenchmarkProjection(b *testing.B) {
	for _, streams := range []int{1, 1000} {
		log := projectortest.OpenJournal(b)
		end := appendTicks(b, log, streams)
		b.Run(fmt.Sprintf("%d streams", streams), func(b *testing.B) {
			projectortest.RunOnDatabases(b, func(b *testing.B, newDatabase func(*testing.B) string) {
				projectortest.BenchmarkFill(b, newDatabase, log, end, benchTicks, "ticks", usage.Model)
			})
		})
	}
	log := projectortest.OpenJournal(b)
	end := appendSharedTicks(b, log)
	b.Run("shared stream", func(b *testing.B) {
		projectortest.RunOnDatabases(b, func(b *testing.B, newDatabase func(*testing.B) string) {
			projectortest.BenchmarkFill(b, newDatabase, log, end, sharedTicks*linesPerTick, "requests", usage.Model)
		})
	})
	b.Run("rows alone", func(b *testing.B) {
		projectortest.RunOnDatabases(b, func(b *testing.B, newDatabase func(*testing.B) string) { // one line per tick
			projectortest.BenchmarkInserts(b, newDatabase, table.UsageLines, projectortest.InsertBatches(benchTicks, usage.Model.BatchSize, benchLine))
		})
	})
}

// appendTicks appends the ticks of many streams, interleaved as instances would.
func appendTicks(b *testing.B, log eventstore.Store, streams int) eventstore.Position {
	codec := eventstore.NewCodec(&projectortest.Vault{})
	first := plan.Date{Year: 2025, Month: 11, Day: 21}
	var last atomic.Uint64
	write := func(n int, events ...event.Event) {
		at := uint64(projectortest.Append(b, log, codec, usagefold.StreamName(fmt.Sprintf("a%04d", n), first), events...))
		for was := last.Load(); was < at && !last.CompareAndSwap(was, at); was = last.Load() {
		}
	}
	for n := range streams {
		write(n, event.UsageOpened{Contract: fmt.Sprintf("a%04d", n), First: first, Next: plan.Date{Year: 2025, Month: 12, Day: 21}, Cap: 1 << 40})
	}
	rounds := benchTicks / streams / perAppend
	var writers sync.WaitGroup
	for w := range min(streams, 64) {
		writers.Go(func() {
			for round := range rounds {
				for n := w; n < streams; n += 64 {
					write(n, tickEvents(n, round, first)...)
				}
			}
		})
	}
	writers.Wait()
	return eventstore.Position(last.Load())
}

func tickEvents(account, round int, day plan.Date) []event.Event {
	id := fmt.Sprintf("a%04d", account)
	events := make([]event.Event, perAppend)
	for i := range events {
		sequence := int64(round*perAppend + i + 1)
		events[i] = event.UsageTicked{InstanceID: "0d9e7c1a", Sequence: sequence, Day: day, AsOfRevision: sequence, Used: 7 * (sequence - 1), Cap: 1 << 40,
			Counts: []event.UsageCount{{Account: id, Key: id + "-k1", Endpoint: "GET /address/autocomplete", Requests: 5}, {Account: id, Key: id + "-k2", Endpoint: "GET /me", Requests: 2}}}
	}
	return events
}

func benchLine(n int) table.UsageLine {
	id := fmt.Sprintf("a%06d", n)
	return table.UsageLine{Account: id, First: "2026-11-21", Contract: id, Day: "2026-11-21", Key: id + "-k1", Endpoint: "GET /address/autocomplete", Requests: 5}
}

// appendSharedTicks appends ticks of a shared stream.
func appendSharedTicks(b *testing.B, log eventstore.Store) eventstore.Position {
	codec := eventstore.NewCodec(&projectortest.Vault{})
	first := plan.Date{Year: 2025, Month: 11, Day: 21}
	stream, state := usagefold.SharedStreamName("2025-11", 0), &usagefold.SharedState{}
	var opened []event.Event
	for n := range sharedAccounts {
		id := fmt.Sprintf("a%04d", n)
		projectortest.Append(b, log, codec, usagefold.StreamName(id, first), event.UsageCountedIn{PeriodRef: event.PeriodRef{Contract: id, First: first}, Stream: stream})
		opened = append(opened, event.UsageOpened{Contract: id, First: first, Next: plan.Date{Year: 2025, Month: 12, Day: 21}, Cap: 1 << 40})
	}
	last := projectortest.Append(b, log, codec, stream, opened...)
	random := rand.New(rand.NewPCG(1, 2))
	for tick := range sharedTicks / perAppend {
		var events []event.Event
		for i := range perAppend {
			var lines []usagefold.SharedLine
			for _, n := range random.Perm(sharedAccounts)[:linesPerTick] {
				id := fmt.Sprintf("a%04d", n)
				lines = append(lines, usagefold.SharedLine{
					UsedKey: event.UsedKey{PeriodRef: event.PeriodRef{Contract: id, First: first}, Account: id, Key: id + "-k"}, Endpoint: fmt.Sprint("GET /address/", random.IntN(3)), Requests: 1,
				})
			}
			e := state.BuildTick(event.SharedUsageTicked{InstanceID: "0d9e7c1a", Sequence: int64(tick*perAppend + i + 1), Day: first}, lines)
			state.Apply(e, first.Start())
			events = append(events, e)
		}
		last = projectortest.Append(b, log, codec, stream, events...)
	}
	return last
}
