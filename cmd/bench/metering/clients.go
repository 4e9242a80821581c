package metering

import (
	"context"
	"net/http"
	"sync"
	"time"

	"lieudit/cmd/bench/measure"
)

// runClients runs all clients until every request is answered.
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

// client sends requests to one instance, over one connection at a time.
type client struct {
	*run
	instance  *instance
	latencies *measure.Latencies
	conn      *measure.Client // nil: not connected
	process   *process        // that conn leads to
}

// retryPause is how long a client waits before it sends a request again.
const retryPause = 5 * time.Millisecond

// sendAll takes requests off the common number until none is left, and sends each until it is answered. A client whose
// instance is down waits for it: each instance has its own clients, which do not change to another.
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

// sendOnce sends a request and reports whether it was answered. After a broken connection nobody knows whether the request
// was counted; after a 503 it was not, or its refund follows.
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
		c.process.refused.Add(1)
		c.firstRefusal.CompareAndSwap(0, int64(time.Since(c.began)))
	default:
		c.process.unexpected.Add(1)
	}
	return true
}

// connect connects to the instance's present process. If that is still the present one afterwards, no other process listened
// at the address meanwhile.
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

func (c *client) disconnect() {
	if c.conn != nil {
		c.conn.Close()
		c.conn = nil
	}
}
