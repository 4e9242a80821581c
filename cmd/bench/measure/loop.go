package measure

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sync/errgroup"
)

// Latencies are the durations of calls, to three significant digits. They are not safe for concurrent use: each worker has
// its own.
type Latencies struct{ histogram *hdrhistogram.Histogram }

// The range of a histogram. Shorter durations are not told apart, longer ones count as the longest.
const (
	shortestLatency = 16 * time.Nanosecond
	longestLatency  = time.Hour
)

// NewLatencies returns an empty collection.
func NewLatencies() *Latencies {
	return &Latencies{hdrhistogram.New(int64(shortestLatency), int64(longestLatency), 3)}
}

// Record adds the duration of one call.
func (l *Latencies) Record(d time.Duration) {
	l.histogram.RecordValue(int64(min(d, longestLatency))) // no error: the value is in range
}

// Merge adds the durations of others.
func (l *Latencies) Merge(others ...*Latencies) {
	for _, o := range others {
		l.histogram.Merge(o.histogram)
	}
}

// Quantile is the time in milliseconds within which this share of the calls returned, 0 when there were none.
func (l *Latencies) Quantile(share float64) float64 {
	return milliseconds(l.histogram.ValueAtQuantile(100 * share))
}

// Figure is a figure with the samples and their quantiles alone.
func (l *Latencies) Figure(labels ...Label) Figure {
	if l.histogram.TotalCount() == 0 {
		return Figure{Labels: labels} // the histogram's maximum would not be 0
	}
	return Figure{
		Labels: labels, Samples: int(l.histogram.TotalCount()),
		P50: l.Quantile(0.5), P99: l.Quantile(0.99), Max: milliseconds(l.histogram.Max()),
	}
}

// milliseconds is the unit of all latencies in figures.
func milliseconds(nanoseconds int64) float64 { return float64(nanoseconds) / 1e6 }

// Loop runs workers concurrently. Each calls its operation again and again until duration has passed since the beginning, and
// at least once. The figure has the calls a second of all workers together and the latencies of all calls.
//
// newOperation is called once in each worker, before its first call; n counts the calls of that worker from 0. A worker reads
// the clock once a call, because the end of one call is the beginning of the next.
// The first error of an operation ends its worker, not the others, and is returned when all have ended.
func Loop(ctx context.Context, workers int, duration time.Duration, newOperation func(ctx context.Context, worker int) (operation func(n int) error)) (Figure, error) {
	latencies := make([]*Latencies, workers)
	for w := range latencies {
		latencies[w] = NewLatencies()
	}
	var work errgroup.Group
	began := time.Now()
	for w, ownLatencies := range latencies {
		work.Go(func() error {
			ctx, cancel := context.WithCancel(ctx) // its own, as a request has
			defer cancel()
			operation := newOperation(ctx, w)
			for n, last := 0, time.Now(); n == 0 || last.Sub(began) < duration; n++ {
				if err := ctx.Err(); err != nil {
					return err
				}
				if err := operation(n); err != nil {
					return err
				}
				now := time.Now()
				ownLatencies.Record(now.Sub(last))
				last = now
			}
			return nil
		})
	}
	if err := work.Wait(); err != nil {
		return Figure{}, err
	}
	elapsed := time.Since(began)
	latencies[0].Merge(latencies[1:]...)
	f := latencies[0].Figure()
	f.Value, f.Unit = float64(f.Samples)/elapsed.Seconds(), "/s"
	return f, nil
}

// Load is a load on one HTTP server: on each connection, the next request follows the answer to the last one.
type Load struct {
	Address     string // host and port
	Connections int
	Duration    time.Duration
	Request     func(connection, n int) []byte // the n-th of a connection, as EncodeGet makes it
	Accept      []int                          // statuses that are right; any other ends the load with an error
}

// Run opens all connections, then sends for Duration, and returns requests a second and latencies; see Loop. An answer with a
// status that is not in Accept, or a broken connection, is an error.
func (l Load) Run(ctx context.Context) (Figure, error) {
	clients := make([]*Client, l.Connections)
	for i := range clients {
		c, err := Dial(ctx, l.Address)
		if err != nil {
			return Figure{}, err
		}
		defer c.Close()
		clients[i] = c
	}
	return Loop(ctx, l.Connections, l.Duration, func(_ context.Context, connection int) func(int) error {
		return func(n int) error { return clients[connection].sendExpecting(l.Request(connection, n), l.Accept) }
	})
}

// SendAll sends each request once over one connection. Each must be answered with 200.
func SendAll(ctx context.Context, address string, requests [][]byte) error {
	c, err := Dial(ctx, address)
	if err != nil {
		return err
	}
	defer c.Close()
	for _, r := range requests {
		if err := c.sendExpecting(r, []int{http.StatusOK}); err != nil {
			return err
		}
	}
	return nil
}

// sendExpecting sends a request. Any other status than the accepted ones is an error: a refusal is answered faster than work,
// so it would improve the figure.
func (c *Client) sendExpecting(request []byte, accept []int) error {
	status, err := c.Send(request)
	if err == nil && !slices.Contains(accept, status) {
		line, _, _ := strings.Cut(string(request), "\r\n")
		err = fmt.Errorf("%s is answered %d: %q", line, status, c.Failure())
	}
	return err
}
