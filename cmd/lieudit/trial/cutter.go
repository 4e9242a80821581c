package trial

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"lieudit/schemas/event"
)

// loss is the share of ticks on whose way the connection is cut: half of the times before the node has the tick, half
// of the times after, with the answer on its way.
const loss = 0.05

// swallow is how long answers are held back before a connection is cut: long enough for a commit.
const swallow = 10 * time.Millisecond

// cutter stands between an instance and the node and cuts connections as a tick passes.
type cutter struct {
	path, node string
	listener   net.Listener
	calm       atomic.Bool // cut nothing
	told       func(what string)
	work       sync.WaitGroup

	mu   sync.Mutex
	dice *rand.Rand
	open map[net.Conn]bool
	over bool
}

func newCutter(ctx context.Context, r *run, p *post, seed uint64) (*cutter, error) {
	c := &cutter{
		path: r.ground.Socket(fmt.Sprintf("cut-%d", p.number)), node: r.ground.Socket(nodeName),
		told: func(what string) { r.note("%s: connection to the node cut, %s", p.name, what) },
		dice: rand.New(rand.NewPCG(seed, 3)), open: map[net.Conn]bool{},
	}
	c.calm.Store(true)
	var lc net.ListenConfig
	var err error
	if c.listener, err = lc.Listen(ctx, "unix", c.path); err != nil {
		return nil, err
	}
	c.work.Go(c.serve)
	return c, nil
}

func (c *cutter) serve() {
	for {
		from, err := c.listener.Accept()
		if err != nil {
			return
		}
		c.work.Go(func() { c.join(from) })
	}
}

// join passes on what comes from an instance and from the node, until either ends.
func (c *cutter) join(from net.Conn) {
	defer from.Close()
	to, err := net.Dial("unix", c.node)
	if err != nil {
		return
	}
	defer to.Close()
	if !c.enter(from) {
		return
	}
	defer c.leave(from)
	var muted atomic.Bool
	var back sync.WaitGroup
	back.Go(func() {
		defer from.Close()
		io.Copy(writer(func(b []byte) (int, error) {
			if muted.Load() {
				return len(b), nil
			}
			return from.Write(b)
		}), to)
	})
	c.forward(from, to, &muted)
	to.Close()
	back.Wait()
}

var tick = []byte(event.UsageTicked{}.EventType())

// forward passes on what comes from the instance, until it ends or is cut.
func (c *cutter) forward(from, to net.Conn, muted *atomic.Bool) {
	for chunk := make([]byte, 64<<10); ; {
		n, err := from.Read(chunk)
		if err != nil {
			return
		}
		chance := c.chance(chunk[:n])
		switch {
		case chance < loss/2:
			c.told("a tick with it")
			return
		case chance < loss:
			muted.Store(true)
			to.Write(chunk[:n]) // the cut follows, whatever becomes of it
			time.Sleep(swallow)
			c.told("a tick's answer with it")
			return
		}
		if _, err := to.Write(chunk[:n]); err != nil {
			return
		}
	}
}

// chance is a die's fall when a tick passes, else 1.
func (c *cutter) chance(chunk []byte) float64 {
	if c.calm.Load() || !bytes.Contains(chunk, tick) {
		return 1
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dice.Float64()
}

func (c *cutter) enter(conn net.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open[conn] = true
	return !c.over
}

func (c *cutter) leave(conn net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.open, conn)
}

// close ends every connection and waits for that.
func (c *cutter) close() {
	c.listener.Close()
	c.mu.Lock()
	c.over = true
	for conn := range c.open {
		conn.Close()
	}
	c.mu.Unlock()
	c.work.Wait()
}

type writer func([]byte) (int, error)

func (w writer) Write(b []byte) (int, error) { return w(b) }
