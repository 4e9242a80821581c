package fairness

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"lieudit/cmd/bench/measure"
)

// FloodOptions say how a process floods a server. They are passed to it as JSON.
type FloodOptions struct {
	Address     string // host and port
	Path, Token string
	Connections int
	Rate        int // requests a second; 0: each connection sends the next request once the last one is answered
	Accept      int // the status that is right; any other ends the flood with an error
}

// Report is what a flood has done.
type Report struct {
	PerSecond float64 // requests that were answered
	P50, P99  float64 // milliseconds
}

// The lines of a flood's standard output: the first once all its connections have been answered, the last with a Report as JSON.
const (
	floodingLine = "The flood has begun"
	floodedLine  = "The flood has ended:"
)

// Flood floods a server until ctx ends. options is a FloodOptions as JSON; print prints one line.
func Flood(ctx context.Context, options string, print func(format string, args ...any) error) error {
	var o FloodOptions
	if err := json.Unmarshal([]byte(options), &o); err != nil {
		return err
	}
	var began time.Time
	l := pacedLoad{
		address: o.Address, request: measure.EncodeGet(o.Address, o.Path, o.Token),
		connections: o.Connections, rate: o.Rate, accept: o.Accept,
		onStarted: func() error {
			began = time.Now()
			return print(floodingLine)
		},
	}
	latencies, err := l.run(ctx, math.MaxInt64)
	if err != nil {
		return err
	}
	f := latencies.Figure()
	text, err := json.Marshal(Report{PerSecond: float64(f.Samples) / time.Since(began).Seconds(), P50: f.P50, P99: f.P99})
	if err != nil {
		return err
	}
	return print("%s %s", floodedLine, text)
}

// pacedLoad sends one request again and again over some connections, at a rate that does not depend on how fast it is answered
// unless all connections wait.
type pacedLoad struct {
	address     string
	request     []byte
	connections int
	rate        int // requests a second, over all connections; 0: as fast as they are answered
	accept      int
	onStarted   func() error // called once every connection has had an answer; may be nil
}

// run sends until duration has passed, or ctx ends, which is not an error. A latency begins when the request was due, or when the
// client woke up to send it if a connection was idle: a late timer of the client is not the server's.
func (l pacedLoad) run(ctx context.Context, duration time.Duration) (*measure.Latencies, error) {
	all := make([]*measure.Latencies, l.connections)
	clients := make([]*measure.Client, l.connections)
	for i := range clients {
		// Connections outlive ctx, so that the last request is answered.
		c, err := measure.Dial(context.WithoutCancel(ctx), l.address)
		if err != nil {
			return measure.NewLatencies(), err
		}
		defer c.Close()
		clients[i], all[i] = c, measure.NewLatencies()
		if err := l.send(c); err != nil {
			return measure.NewLatencies(), err
		}
	}
	if l.onStarted != nil {
		if err := l.onStarted(); err != nil {
			return measure.NewLatencies(), err
		}
	}
	var next atomic.Int64 // number of the next request
	var work errgroup.Group
	began := time.Now()
	for i, c := range clients {
		work.Go(func() error {
			for ctx.Err() == nil {
				due, ok := l.awaitDue(ctx, began, next.Add(1)-1)
				if !ok || due.Sub(began) >= duration {
					return nil
				}
				if err := l.send(c); err != nil {
					return err
				}
				all[i].Record(time.Since(due))
			}
			return nil
		})
	}
	err := work.Wait()
	all[0].Merge(all[1:]...)
	return all[0], err
}

// awaitDue waits until the n-th request is due and returns when its latency begins. It returns false if ctx ends first.
func (l pacedLoad) awaitDue(ctx context.Context, began time.Time, n int64) (time.Time, bool) {
	if l.rate == 0 {
		return time.Now(), true
	}
	due := began.Add(time.Duration(float64(n) / float64(l.rate) * float64(time.Second)))
	wait := time.Until(due)
	if wait <= 0 {
		return due, true
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case now := <-timer.C:
		return now, true
	case <-ctx.Done():
		return due, false
	}
}

// send sends the request. Any other status than the accepted one is an error.
func (l pacedLoad) send(c *measure.Client) error {
	status, err := c.Send(l.request)
	if err == nil && status != l.accept {
		err = fmt.Errorf("a request is answered %d, not %d: %q", status, l.accept, c.Failure())
	}
	return err
}
