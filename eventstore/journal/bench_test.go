package journal_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/google/uuid"

	"lieudit/eventstore"
	"lieudit/eventstore/journal"
)

func openForBenchmark(b *testing.B) *journal.Journal {
	b.Helper()
	j, err := journal.Open(b.TempDir(), journal.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = j.Close() })
	return j
}

// newBenchEvents makes n events of 267 bytes, the size that cmd/bench measures with.
func newBenchEvents(n int) []eventstore.ProposedEvent {
	events := make([]eventstore.ProposedEvent, n)
	for i := range events {
		events[i] = eventstore.ProposedEvent{ID: uuid.New(), Type: "key.issued.secret", Data: make([]byte, 200), Metadata: make([]byte, 50)}
	}
	return events
}

// BenchmarkAppend is the cost of a durable append. cmd/bench compares it with the bare disk.
func BenchmarkAppend(b *testing.B) {
	for _, writers := range []int{1, 32, 512} {
		b.Run(fmt.Sprint(writers), func(b *testing.B) {
			j := openForBenchmark(b)
			var all sync.WaitGroup
			b.ReportAllocs()
			b.ResetTimer()
			for w := range writers {
				all.Go(func() {
					stream, e := fmt.Sprintf("bench-%d", w), newBenchEvents(1)
					for n := w; n < b.N; n += writers {
						e[0].ID = uuid.New()
						if _, err := j.Append(b.Context(), stream, eventstore.Any, e); err != nil {
							b.Error(err)
						}
					}
				})
			}
			all.Wait()
		})
	}
}

// BenchmarkCatchUp reads a whole log of which all events are wanted, or none.
func BenchmarkCatchUp(b *testing.B) {
	const events, perAppend = 500_000, 1000
	j := openForBenchmark(b)
	for n := range events / perAppend {
		if _, err := j.Append(b.Context(), fmt.Sprintf("bench-%d", n%50), eventstore.Any, newBenchEvents(perAppend)); err != nil {
			b.Fatal(err)
		}
	}
	for name, filter := range map[string]eventstore.Filter{"wanted": {"bench"}, "unwanted": {"other"}} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for range b.N {
				for _, err := range j.ReadAll(b.Context(), eventstore.Checkpoint{}, filter) {
					if err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(events)*float64(b.N)/b.Elapsed().Seconds(), "events/s")
		})
	}
}
