package metering

import (
	"context"
	"net/http"
	"sync"
	"time"

	"lieudit/cmd/bench/measure"
)

// runClients runs all clients, Connections for each instance, and returns when every request is answered or ctx has ended.
func (r *run) runClients(ctx context.Context) {
	var clients sync.WaitGroup
	for _, in := range r.instances {
		for i := range r.Connections {
			c := &client{run: r, instance: in, latencies: in.latencies[i]}
			clients.Go(func() { c.sendAll(ctx) })
		}
	}
	clients.Wait()
}

// client sends requests to one instance, over one connection at a time. It is used by one goroutine.
type client struct {
	*run
	instance  *instance
	latencies *measure.Latencies
	conn      *measure.Client // nil: not connected
	process   *process        // the process that conn leads to
}

// retryPause is how long a client waits before it sends a request again.
const retryPause = 5 * time.Millisecond

// sendAll takes requests off unsent, the number that all clients share, until it is zero, and sends each until it is answered. A client whose
// instance is down waits for it: each instance has its own clients, which never change to another.
func (c *client) sendAll(ctx context.Context) {
	defer c.disconnect()
	for c.unsent.Add(-1) >= 0 {
		for !c.sendOnce(ctx) {
			select {
			case <-ctx.Done():
				return
			case <-time.After(retryPause):
			}
		}
	}
}

// sendOnce sends a request, counts its result for the process, and reports whether it was answered. After a broken connection
// it is not known whether the request was counted. After a 503 it was not, or its refund follows. An instance appends ticks
// and refunds in order, so a request that is served later shows that the earlier refunds are done.
func (c *client) sendOnce(ctx context.Context) bool {
	if c.conn == nil && !c.connect(ctx) {
		return false
	}
	began := time.Now()
	status, err := c.conn.Send(c.process.request)
	switch {
	case err != nil:
		c.process.broken.Add(1)
		c.disconnect()
		return false
	case status == http.StatusServiceUnavailable:
		c.process.unavailable.Add(1)
		c.process.openRefunds.Add(1)
		return false
	case status == http.StatusOK:
		c.process.served.Add(1)
		c.process.openRefunds.Store(0)
		c.served.Add(1)
		c.latencies.Record(time.Since(began))
	case status == http.StatusTooManyRequests:
		// The first 429 ends the time in which PerSecond is measured.
		c.process.refused.Add(1)
		c.firstRefusal.CompareAndSwap(0, int64(time.Since(c.began)))
	default:
		c.process.unexpected.Add(1)
	}
	return true
}

// connect connects to the instance's current process, and reports whether it did. If the process is still the current one afterwards, no other
// process listened at the address meanwhile, so the answers are its own.
func (c *client) connect(ctx context.Context) bool {
	c.process = c.instance.current.Load()
	conn, err := measure.Dial(ctx, c.process.address)
	if err != nil {
		return false
	}
	c.conn = conn
	if c.instance.current.Load() != c.process {
		c.disconnect()
		return false
	}
	return true
}

// disconnect closes the connection, if there is one.
func (c *client) disconnect() {
	if c.conn != nil {
		c.conn.Close()
		c.conn = nil
	}
}
