package trial

import (
	"context"
	"net/http"
	"sync"
	"time"

	"lieudit/cmd/lieudit/caller"
)

// ask lets all clients ask until every request is answered.
func (r *run) ask(ctx context.Context) {
	var clients sync.WaitGroup
	for _, p := range r.posts {
		for i := range r.Connections {
			c := &client{run: r, post: p, times: &p.times[i]}
			clients.Go(func() { c.work(ctx) })
		}
	}
	clients.Wait()
}

// client asks one instance, over one connection at a time.
type client struct {
	*run
	post  *post
	times *caller.Times
	line  *caller.Caller // nil: not connected
	life  *life          // that the line leads to
}

// pause is how long a client waits before it tries again.
const pause = 5 * time.Millisecond

func (c *client) work(ctx context.Context) {
	defer c.hangUp()
	for c.tickets.Add(-1) >= 0 {
		for !c.try(ctx) {
			select {
			case <-ctx.Done():
				return
			case <-time.After(pause):
			}
		}
	}
}

// try sends a request and says whether it was answered.
func (c *client) try(ctx context.Context) bool {
	if c.line == nil && !c.connect(ctx) {
		return false
	}
	began := time.Now()
	status, err := c.line.Ask(c.life.request)
	switch {
	case err != nil:
		c.life.broken.Add(1)
		c.hangUp()
		return false
	case status == http.StatusServiceUnavailable:
		c.life.unavailable.Add(1)
		c.life.open.Add(1)
		return false
	case status == http.StatusOK:
		c.life.served.Add(1)
		c.life.open.Store(0)
		c.served.Add(1)
		*c.times = append(*c.times, time.Since(began))
	case status == http.StatusTooManyRequests:
		c.life.spent.Add(1)
		c.full.CompareAndSwap(0, int64(time.Since(c.began)))
	default:
		c.life.strange.Add(1)
	}
	return true
}

// connect reaches the instance's present life. That it is still the present one afterwards means that no other
// listened in between.
func (c *client) connect(ctx context.Context) bool {
	c.life = c.post.current.Load()
	line, err := caller.Dial(ctx, c.life.address)
	if err != nil {
		return false
	}
	c.line = line
	if c.post.current.Load() != c.life {
		c.hangUp()
		return false
	}
	return true
}

func (c *client) hangUp() {
	if c.line != nil {
		c.line.Close()
		c.line = nil
	}
}
