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
			c := &client{run: r, instance: in, latencies: in.latencies[i], nextContract: i}
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

	nextContract int // the contract, counted on and on, whose request is sent next
}

// retryPause is how long a client waits before it sends a request again.
const retryPause = 5 * time.Millisecond

// sendAll takes requests until none is left, and sends each until it is answered. A client whose instance is down waits for it:
// each instance has its own clients, which never change to another.
func (c *client) sendAll(ctx context.Context) {
	defer c.disconnect()
	for a := c.takeRequest(); a != nil; a = c.takeRequest() {
		for !c.sendOnce(ctx, a) {
			select {
			case <-ctx.Done():
				return
			case <-time.After(retryPause):
			}
		}
	}
}

// takeRequest takes a request of each contract in turn, so that requests of all contracts wait at the same time. Clients begin
// with different contracts. It returns nil if no contract has a request left.
func (c *client) takeRequest() *account {
	for range c.contracts {
		next := c.contracts[c.nextContract%len(c.contracts)]
		c.nextContract++
		if a := next.takeRequest(); a != nil {
			return a
		}
	}
	return nil
}

// sendOnce sends a request of an account, counts its result for the process, and reports whether it was answered. After a broken connection
// it is not known whether the request was counted. After a 503 it was not, or its refund follows. An instance appends ticks
// and refunds of an account in order, so a request that is served later shows that the earlier refunds are done.
func (c *client) sendOnce(ctx context.Context, a *account) bool {
	if c.conn == nil && !c.connect(ctx) {
		return false
	}
	t := c.process.tallies[a.number]
	began := time.Now()
	status, err := c.conn.Send(t.request)
	switch {
	case err != nil:
		t.broken.Add(1)
		a.unanswered.Add(1)
		c.disconnect()
		return false
	case status == http.StatusServiceUnavailable:
		t.unavailable.Add(1)
		t.openRefunds.Add(1)
		a.unanswered.Add(1)
		return false
	case status == http.StatusOK:
		t.served.Add(1)
		t.openRefunds.Store(0)
		a.served.Add(1)
		c.served.Add(1)
		c.latencies.Record(time.Since(began))
	case status == http.StatusTooManyRequests:
		t.refused.Add(1)
		c.noteRefusal(a)
	default:
		t.unexpected.Add(1)
	}
	c.answered.Add(1)
	return true
}

// noteRefusal notes whether a request was refused too early. The first 429 ends the time in which PerSecond is measured.
func (c *client) noteRefusal(a *account) {
	if !a.mayBeExhausted(int64(c.Instances * c.Connections)) {
		a.earlyRefused.Add(1)
	}
	if c.firstRefusal.Load() == nil {
		c.firstRefusal.CompareAndSwap(nil, &refusal{time.Since(c.began), c.served.Load()})
	}
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
