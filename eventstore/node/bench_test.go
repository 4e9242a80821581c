package node_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	api "github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"github.com/google/uuid"

	"lieudit/eventstore"
	"lieudit/eventstore/journal"
	"lieudit/eventstore/node"
)

// startBenchmark is a node on a journal as a service would have it, over a Unix socket.
func startBenchmark(b *testing.B) (*journal.Journal, *esdb.Client) {
	b.Helper()
	log, err := journal.Open(b.TempDir(), journal.Options{Logger: quiet()})
	if err != nil {
		b.Fatal(err)
	}
	s := serveLog(b, log, socketAddress(b), node.Options{})
	b.Cleanup(s.stop)
	return log, s.client(b)
}

const benchData = `{"kind":"secret","label":"a key of an account, as long as such events are","created":"2026-11-21T11:30:00Z"}`

// runWorkers shares b.N calls among n of them.
func runWorkers(b *testing.B, n int, do func(worker, i int) error) {
	b.Helper()
	var remaining atomic.Int64
	remaining.Store(int64(b.N))
	var wg sync.WaitGroup
	b.ResetTimer()
	for w := range n {
		wg.Go(func() {
			for i := 0; remaining.Add(-1) >= 0; i++ {
				if err := do(w, i); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "appends/s")
}

// BenchmarkAppend measures durable appends of one event each, every worker to a stream of its own and expecting its
// revision: through the official client, and in process for comparison.
func BenchmarkAppend(b *testing.B) {
	for _, n := range []int{1, 8, 32, 128} {
		b.Run(fmt.Sprintf("client/workers=%d", n), func(b *testing.B) {
			_, c := startBenchmark(b)
			runWorkers(b, n, func(w, i int) error {
				o := esdb.AppendToStreamOptions{ExpectedRevision: esdb.NoStream{}}
				if i > 0 {
					o.ExpectedRevision = esdb.Revision(uint64(i - 1))
				}
				_, err := c.AppendToStream(context.Background(), fmt.Sprintf("bench-%d", w), o,
					esdb.EventData{EventID: uuid.New(), EventType: "key.issued.v1", ContentType: esdb.ContentTypeJson, Data: []byte(benchData)})
				return err
			})
		})
		b.Run(fmt.Sprintf("journal/workers=%d", n), func(b *testing.B) {
			log, _ := startBenchmark(b)
			runWorkers(b, n, func(w, i int) error {
				_, err := log.Append(context.Background(), fmt.Sprintf("bench-%d", w), eventstore.Revision(i-1),
					[]eventstore.ProposedEvent{{ID: uuid.New(), Type: "key.issued.v1", Data: []byte(benchData)}})
				return err
			})
		})
	}
}

const storedEvents = 100_000

// startFilledBenchmark is startBenchmark with a log that holds events of a hundred streams.
func startFilledBenchmark(b *testing.B) (*journal.Journal, *esdb.Client) {
	b.Helper()
	log, c := startBenchmark(b)
	for i := range storedEvents / 500 {
		batch := make([]eventstore.ProposedEvent, 500)
		for n := range batch {
			batch[n] = eventstore.ProposedEvent{ID: uuid.New(), Type: "key.issued.v1", Data: []byte(benchData)}
		}
		if _, err := log.Append(b.Context(), fmt.Sprintf("bench-%d", i%2), eventstore.Any, batch); err != nil {
			b.Fatal(err)
		}
	}
	return log, c
}

func reportPerEvent(b *testing.B, events int) {
	b.ReportMetric(float64(events)*float64(b.N)/b.Elapsed().Seconds(), "events/s")
}

// BenchmarkReadStream reads a stream of 50,000 events. One operation reads all of it.
func BenchmarkReadStream(b *testing.B) {
	_, c := startFilledBenchmark(b)
	for b.Loop() {
		all, err := readEvents(c.ReadStream(b.Context(), "bench-0", esdb.ReadStreamOptions{}, math.MaxUint64))
		if err != nil || len(all) != storedEvents/2 {
			b.Fatal(len(all), err)
		}
	}
	reportPerEvent(b, storedEvents/2)
}

// BenchmarkReadAll reads a log of 100,000 events.
func BenchmarkReadAll(b *testing.B) {
	_, c := startFilledBenchmark(b)
	for b.Loop() {
		r, err := c.ReadAll(b.Context(), esdb.ReadAllOptions{}, math.MaxUint64)
		n := 0
		for ; err == nil; n++ {
			_, err = r.Recv()
		}
		if !errors.Is(err, io.EOF) || n != storedEvents+1 {
			b.Fatal(n, err)
		}
	}
	reportPerEvent(b, storedEvents)
}

// BenchmarkCatchUp follows a log of 100,000 events from its start to CaughtUp: all of it, and one event in none.
func BenchmarkCatchUp(b *testing.B) {
	for name, prefix := range map[string]string{"every event": "bench-", "none": "other-"} {
		b.Run(name, func(b *testing.B) {
			_, c := startFilledBenchmark(b)
			o := esdb.SubscribeToAllOptions{From: esdb.Start{}, MaxSearchWindow: 1000,
				Filter: &esdb.SubscriptionFilter{Type: esdb.StreamFilterType, Prefixes: []string{prefix}}}
			for b.Loop() {
				s, err := c.SubscribeToAll(b.Context(), o)
				if err != nil {
					b.Fatal(err)
				}
				for s.Recv().CaughtUp == nil {
				}
				_ = s.Close()
			}
			reportPerEvent(b, storedEvents)
		})
	}
}

// BenchmarkPipeline measures durable appends of one event each to a hundred streams in turn, through one BatchAppend
// call with a thousand appends in flight.
func BenchmarkPipeline(b *testing.B) {
	log, err := journal.Open(b.TempDir(), journal.Options{Logger: quiet()})
	if err != nil {
		b.Fatal(err)
	}
	s := serveLog(b, log, socketAddress(b), node.Options{})
	b.Cleanup(s.stop)
	ctx, cancel := context.WithTimeout(b.Context(), 2*time.Minute) // whichever side stops, the other learns it
	defer cancel()
	call, err := api.NewStreamsClient(s.conn(b)).BatchAppend(ctx)
	if err != nil {
		b.Fatal(err)
	}
	reqs := make([]*api.BatchAppendReq, b.N)
	for i := range reqs {
		reqs[i] = batch(fmt.Sprintf("bench-%d", i%100), 1)
	}
	window := make(chan struct{}, 1000)
	b.ResetTimer()
	failed := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for range reqs {
			if r, err := call.Recv(); err != nil || r.GetSuccess() == nil {
				b.Error(r, err)
				close(failed)
				cancel()
				return
			}
			<-window
		}
	})
	for _, r := range reqs {
		select {
		case window <- struct{}{}:
		case <-failed:
			b.FailNow()
		}
		if err := call.Send(r); err != nil {
			b.Fatal(err)
		}
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "appends/s")
}
