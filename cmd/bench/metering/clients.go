package metering

import (
	"context"
	"net/http"
	"sync"
	"time"

	"lieudit/cmd/bench/loadclient"
)

// runClients lets all clients ask until every request is answered.
func (r *run) runClients(ctx context.Context) {
	var clients sync.WaitGroup
	for _, p := range r.instances {
		for i := range r.Connections {
			c := &client{run: r, instance: p, latencies: &p.latencies[i]}
			clients.Go(func() { c.sendAll(ctx) })
		}
	}
	clients.Wait()
}

// client asks one instance, over one connection at a time.
type client struct {
	*run
	instance  *instance
	latencies *loadclient.Latencies
	conn      *loadclient.Client // nil: not connected
	process   *process           // that the line leads to
}

// retryPause is how long a client waits before it tries again.
const retryPause = 5 * time.Millisecond

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

// sendOnce sends a request and says whether it was answered.
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
		*c.latencies = append(*c.latencies, time.Since(began))
	case status == http.StatusTooManyRequests:
		c.process.refused.Add(1)
		c.firstRefusal.CompareAndSwap(0, int64(time.Since(c.began)))
	default:
		c.process.unexpected.Add(1)
	}
	return true
}

// connect reaches the instance's present life. That it is still the present one afterwards means that no other
// listened in between.
func (c *client) connect(ctx context.Context) bool {
	c.process = c.instance.current.Load()
	conn, err := loadclient.Dial(ctx, c.process.address)
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
