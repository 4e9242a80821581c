package metering

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

// cutShare is the share of ticks on whose way the connection is cut: half of the times before the node has the tick, half
// of the times after, with the answer on its way.
const cutShare = 0.05

// answerDelay is how long answers are held back before a connection is cut: long enough for a commit.
const answerDelay = 10 * time.Millisecond

// cutProxy stands between an instance and the node and cuts connections as a tick passes.
type cutProxy struct {
	path, nodePath string
	listener       net.Listener
	isPaused       atomic.Bool // cut nothing
	onCut          func(what string)
	work           sync.WaitGroup

	mu       sync.Mutex
	rng      *rand.Rand
	open     map[net.Conn]bool
	isClosed bool
}

func newCutProxy(ctx context.Context, r *run, p *instance, seed uint64) (*cutProxy, error) {
	c := &cutProxy{
		path: r.workDir.SocketPath(fmt.Sprintf("cut-%d", p.number)), nodePath: r.workDir.SocketPath(nodeName),
		onCut: func(what string) { r.logIncident("%s: connection to the node cut, %s", p.name, what) },
		rng:   rand.New(rand.NewPCG(seed, 3)), open: map[net.Conn]bool{},
	}
	c.isPaused.Store(true)
	var lc net.ListenConfig
	var err error
	if c.listener, err = lc.Listen(ctx, "unix", c.path); err != nil {
		return nil, err
	}
	c.work.Go(c.serve)
	return c, nil
}

func (c *cutProxy) serve() {
	for {
		from, err := c.listener.Accept()
		if err != nil {
			return
		}
		c.work.Go(func() { c.relay(from) })
	}
}

// relay passes on what comes from an instance and from the node, until either ends.
func (c *cutProxy) relay(from net.Conn) {
	defer from.Close()
	to, err := net.Dial("unix", c.nodePath)
	if err != nil {
		return
	}
	defer to.Close()
	if !c.addConn(from) {
		return
	}
	defer c.removeConn(from)
	var isMuted atomic.Bool
	var back sync.WaitGroup
	back.Go(func() {
		defer from.Close()
		io.Copy(writerFunc(func(b []byte) (int, error) {
			if isMuted.Load() {
				return len(b), nil
			}
			return from.Write(b)
		}), to)
	})
	c.forward(from, to, &isMuted)
	to.Close()
	back.Wait()
}

var tickType = []byte(event.UsageTicked{}.EventType())

// forward passes on what comes from the instance, until it ends or is cut.
func (c *cutProxy) forward(from, to net.Conn, isMuted *atomic.Bool) {
	for chunk := make([]byte, 64<<10); ; {
		n, err := from.Read(chunk)
		if err != nil {
			return
		}
		chance := c.drawChance(chunk[:n])
		switch {
		case chance < cutShare/2:
			c.onCut("a tick with it")
			return
		case chance < cutShare:
			isMuted.Store(true)
			to.Write(chunk[:n]) // the cut follows, whatever becomes of it
			time.Sleep(answerDelay)
			c.onCut("a tick's answer with it")
			return
		}
		if _, err := to.Write(chunk[:n]); err != nil {
			return
		}
	}
}

// drawChance is a die's fall when a tick passes, else 1.
func (c *cutProxy) drawChance(chunk []byte) float64 {
	if c.isPaused.Load() || !bytes.Contains(chunk, tickType) {
		return 1
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rng.Float64()
}

func (c *cutProxy) addConn(conn net.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open[conn] = true
	return !c.isClosed
}

func (c *cutProxy) removeConn(conn net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.open, conn)
}

// close ends every connection and waits for that.
func (c *cutProxy) close() {
	c.listener.Close()
	c.mu.Lock()
	c.isClosed = true
	for conn := range c.open {
		conn.Close()
	}
	c.mu.Unlock()
	c.work.Wait()
}

type writerFunc func([]byte) (int, error)

func (w writerFunc) Write(b []byte) (int, error) { return w(b) }
