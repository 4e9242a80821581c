package esdb_test

import (
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	client "github.com/EventStore/EventStore-Client-Go/v4/esdb"

	"lieudit/eventstore"
)

// BenchmarkAppend makes durable appends of one event each to streams of many writers, through a node on a Unix socket.
func BenchmarkAppend(b *testing.B) {
	for _, writers := range []int{1, 32, 128, 512} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) {
			s := dial(b, serveFolder(b, b.TempDir(), "unix:"+filepath.Join(shortTempDir(b), "s")).connectionString)
			mustAppend(b, s, "a-1", proposals(1))
			var left atomic.Int64
			left.Store(int64(b.N))
			var work sync.WaitGroup
			b.ResetTimer()
			for w := range writers {
				work.Go(func() {
					stream := fmt.Sprintf("b-%d", w)
					for r := eventstore.NoStream; left.Add(-1) >= 0; r++ {
						if _, err := s.Append(b.Context(), stream, r, proposals(1)); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			work.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "appends/s")
		})
	}
}

// BenchmarkHotStream makes durable appends with Any to one stream, as many writers do at once.
func BenchmarkHotStream(b *testing.B) {
	s := dial(b, serveFolder(b, b.TempDir(), "unix:"+filepath.Join(shortTempDir(b), "s")).connectionString)
	b.SetParallelism(64)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := s.Append(b.Context(), "b-1", eventstore.Any, proposals(1)); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "appends/s")
}

// BenchmarkRead reads a log of 100,000 events from its beginning, like a reader that catches up.
func BenchmarkRead(b *testing.B) {
	const n = 100_000
	s := dial(b, serveFolder(b, b.TempDir(), "unix:"+filepath.Join(shortTempDir(b), "s")).connectionString)
	for range n / 1000 {
		mustAppend(b, s, "a-1", proposals(1000))
	}
	for name, read := range map[string]func() int{
		"log":          func() int { return readUntilCaughtUp(b, s, false) },
		"subscription": func() int { return readUntilCaughtUp(b, s, true) },
		"stream":       func() int { return countEvents(b, s, "a-1") },
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if got := read(); got != n {
					b.Fatalf("read %d events, want %d", got, n)
				}
			}
			b.ReportMetric(float64(n*b.N)/b.Elapsed().Seconds(), "events/s")
		})
	}
}

// readUntilCaughtUp counts events up to the first CaughtUp.
func readUntilCaughtUp(b *testing.B, s eventstore.Store, subscribe bool) (n int) {
	read := s.ReadAll
	if subscribe {
		read = s.Subscribe
	}
	for signal, err := range read(b.Context(), eventstore.Checkpoint{}, eventstore.Filter{"a"}) {
		if err != nil {
			b.Fatal(err)
		}
		if signal.Kind == eventstore.CaughtUp {
			return n
		}
		if signal.Kind == eventstore.EventAppeared {
			n++
		}
	}
	return n
}

// BenchmarkOfficialClient makes the same appends as BenchmarkAppend with the official client, over TCP.
func BenchmarkOfficialClient(b *testing.B) {
	for _, writers := range []int{1, 32, 128, 512} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) {
			config, err := client.ParseConnectionString(serveFolder(b, b.TempDir(), "127.0.0.1:0").connectionString)
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
