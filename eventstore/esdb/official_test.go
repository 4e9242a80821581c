package esdb_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	client "github.com/EventStore/EventStore-Client-Go/v4/esdb"
)

// BenchmarkOfficialClient makes the same appends as BenchmarkAppend with the official client, over TCP.
func BenchmarkOfficialClient(b *testing.B) {
	for _, writers := range []int{1, 32, 128, 512} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) {
			config, err := client.ParseConnectionString(serve(b, b.TempDir(), "127.0.0.1:0").address)
			if err != nil {
				b.Fatal(err)
			}
			config.Logger = nil
			c, err := client.NewClient(config)
			if err != nil {
				b.Fatal(err)
			}
			var left atomic.Int64
			left.Store(int64(b.N))
			var work sync.WaitGroup
			b.ResetTimer()
			for w := range writers {
				work.Go(func() {
					stream := fmt.Sprintf("b-%d", w)
					for left.Add(-1) >= 0 {
						p := proposals(1)[0]
						e := client.EventData{EventID: p.ID, EventType: p.Type, ContentType: client.ContentTypeJson, Data: p.Data, Metadata: p.Metadata}
						if _, err := c.AppendToStream(b.Context(), stream, client.AppendToStreamOptions{}, e); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			work.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "appends/s")
			if err := c.Close(); err != nil {
				b.Error(err)
			}
		})
	}
}
