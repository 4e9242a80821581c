package journal_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/google/uuid"

	"lieudit/eventstore"
	"lieudit/eventstore/journal"
)

// Package measure compares these with the bare disk.
func BenchmarkAppend(b *testing.B) {
	for _, writers := range []int{1, 32, 512} {
		b.Run(fmt.Sprint(writers), func(b *testing.B) {
			j, err := journal.Open(b.TempDir(), journal.Options{})
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { _ = j.Close() })
			var all sync.WaitGroup
			b.ReportAllocs()
			b.ResetTimer()
			for w := range writers {
				all.Go(func() {
					stream, e := fmt.Sprintf("bench-%d", w), []eventstore.ProposedEvent{{Type: "key.issued.secret", Data: make([]byte, 200), Metadata: make([]byte, 50)}}
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
