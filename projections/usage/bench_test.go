package usage_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"lieudit/eventstore"
	"lieudit/projections/projector"
	"lieudit/projections/projector/projectortest"
	"lieudit/projections/usage"
	"lieudit/schemas/event"
	"lieudit/schemas/ledger"
	"lieudit/schemas/plan"
	"lieudit/schemas/table"
	"lieudit/schemas/table/tabletest"
)

const (
	benchTicks = 200_000
	perAppend  = 20
)

// BenchmarkProjection fills usage from a journal of ticks that is there already: of one account, and of a thousand. A
// tick counts requests with two keys.
func BenchmarkProjection(b *testing.B) {
	slog.SetDefault(slog.New(slog.NewTextHandler(io.Discard, nil)))
	databases := map[string]func(*testing.B) string{
		"sqlite":   func(b *testing.B) string { return b.TempDir() },
		"postgres": func(b *testing.B) string { return tabletest.NewPostgresDatabase(b) },
	}
	for _, streams := range []int{1, 1000} {
		log := projectortest.OpenJournal(b)
		end := appendTicks(b, log, streams)
		for name, newDatabase := range databases {
			b.Run(fmt.Sprintf("%s/%d streams", name, streams), func(b *testing.B) { benchmarkFill(b, log, end, newDatabase) })
		}
	}
	for name, newDatabase := range databases {
		b.Run(name+"/rows alone", func(b *testing.B) { benchmarkInserts(b, newDatabase) })
	}
}

// appendTicks appends the ticks of many streams, mixed as instances would.
func appendTicks(b *testing.B, log eventstore.Store, streams int) eventstore.Position {
	codec := eventstore.NewCodec(&projectortest.Vault{})
	first := plan.Date{Year: 2025, Month: 11, Day: 21}
	var last atomic.Uint64
	write := func(n int, events ...event.Event) {
		at := uint64(projectortest.Append(b, log, codec, ledger.StreamName(fmt.Sprintf("a%04d", n), first), events...))
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

func benchmarkFill(b *testing.B, log eventstore.Store, end eventstore.Position, newDatabase func(*testing.B) string) {
	for b.Loop() {
		b.StopTimer()
		registry, err := table.OpenRegistry(newDatabase(b))
		if err != nil {
			b.Fatal(err)
		}
		p := projector.New(log, eventstore.NewCodec(&projectortest.Vault{}), registry, usage.Model)
		ctx, stop := context.WithCancel(b.Context())
		ended := make(chan error)
		b.StartTimer()
		go func() { ended <- p.Run(ctx) }()
		for p.AwaitPosition(ctx, end) != nil {
			time.Sleep(time.Millisecond)
		}
		b.StopTimer()
		stop()
		if err := <-ended; err != nil {
			b.Fatal(err)
		}
		registry.Close()
		b.StartTimer()
	}
	b.ReportMetric(float64(benchTicks)*float64(b.N)/b.Elapsed().Seconds(), "ticks/s")
}

// benchmarkInserts is the raw limit: lines as wide as these, by statements of many rows, one line a tick and nothing
// else.
func benchmarkInserts(b *testing.B, newDatabase func(*testing.B) string) {
	for b.Loop() {
		b.StopTimer()
		db, err := table.Open(b.Context(), tabletest.DatabaseAddress(newDatabase(b)), table.Options{})
		if err != nil {
			b.Fatal(err)
		}
		if err := db.Create(b.Context(), table.UsageLines.Def); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		for from := 0; from < benchTicks; from += usage.Model.BatchSize {
			if err := db.RunInTx(b.Context(), func(tx *table.Tx) error { return table.Upsert(b.Context(), tx, table.UsageLines, benchLines(from)) }); err != nil {
				b.Fatal(err)
			}
		}
		b.StopTimer()
		db.Close()
		b.StartTimer()
	}
	b.ReportMetric(float64(benchTicks)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}

func benchLines(from int) []table.UsageLine {
	rows := make([]table.UsageLine, usage.Model.BatchSize)
	for i := range rows {
		id := fmt.Sprintf("a%06d", from+i)
		rows[i] = table.UsageLine{Account: id, First: "2026-11-21", Contract: id, Day: "2026-11-21", Key: id + "-k1", Endpoint: "GET /address/autocomplete", Requests: 5}
	}
	return rows
}
