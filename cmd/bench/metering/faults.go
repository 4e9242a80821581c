package metering

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"lieudit/cmd/bench/harness"
)

// nodeKills is how often the node is killed in a run with chaos.
const nodeKills = 2

// fault is a kill of a process, which is started again after a pause.
type fault struct {
	afterAnswered int64     // requests that all instances have answered
	instance      *instance // nil: the node
	pause         time.Duration
}

// planFaults draws the kills of a seed, in the order in which they happen: every instance once, the node nodeKills times.
// They happen after 5 to 85 % of the requests, so that there is load before and after each. Caps are met in this time too.
func (r *run) planFaults(rng *rand.Rand) (all []fault) {
	if !r.Chaos {
		return nil
	}
	victims := append(slices.Clone(r.instances), make([]*instance, nodeKills)...)
	for _, i := range victims {
		share := 0.05 + 0.8*rng.Float64()
		all = append(all, fault{int64(share * float64(r.Requests*int64(r.Contracts))), i, time.Duration(rng.Int64N(int64(300 * time.Millisecond)))})
	}
	slices.SortFunc(all, func(a, b fault) int { return cmp.Compare(a.afterAnswered, b.afterAnswered) })
	return all
}

// injectFaults injects the faults, one after another, until the clients are done.
func (r *run) injectFaults(ctx context.Context, faults []fault) error {
	for _, f := range faults {
		if !r.waitAnswered(ctx, f.afterAnswered) {
			return nil
		}
		kill := r.killNode
		if f.instance != nil {
			kill = r.killInstance
		}
		if err := kill(ctx, f); err != nil {
			return err
		}
	}
	return nil
}

// waitAnswered waits until n requests have been answered. It returns false if the clients finished first.
func (r *run) waitAnswered(ctx context.Context, n int64) bool {
	for r.answered.Load() < n {
		select {
		case <-ctx.Done():
			return false
		case <-r.done:
			return false
		case <-time.After(time.Millisecond):
		}
	}
	return true
}

// killInstance kills the first process of an instance and starts the second on the same address, so that the clients find it.
// The clients use the keys of the second process from before its start: the first has ended, so no request with a new key
// can reach it.
func (r *run) killInstance(ctx context.Context, f fault) error {
	i := f.instance
	i.service.Kill()
	i.processes[0].killed = true
	r.logIncident("%s (process %d) killed", i.name, i.service.PID())
	time.Sleep(f.pause)
	i.current.Store(i.processes[1])
	if err := r.startInstance(ctx, i, i.processes[1].address); err != nil {
		return err
	}
	r.logIncident("%s (process %d) started again", i.name, i.service.PID())
	return nil
}

// killNode kills the node and starts it again on the same folder and socket.
func (r *run) killNode(ctx context.Context, f fault) (err error) {
	r.node.Kill()
	r.logIncident("node (process %d) killed", r.node.PID())
	time.Sleep(f.pause)
	if r.node, err = harness.StartNode(ctx, r.workDir, nodeName); err != nil {
		return err
	}
	r.logIncident("node (process %d) started again", r.node.PID())
	return nil
}

// cutShare is the share of ticks at which the connection is cut. Half of the cuts lose the tick before the node has it. The other half lose the
// node's answer, so the instance does not know whether the tick was appended.
const cutShare = 0.05

// answerDelay is how long answers are held back before a connection is cut: long enough for a commit.
const answerDelay = 10 * time.Millisecond

// cutProxy relays between an instance and the node and cuts connections as a tick passes. It listens on a socket in place of the node's. close
// ends it and its goroutines.
type cutProxy struct {
	name     string // of its socket in the work folder
	nodePath string
	listener net.Listener
	isPaused atomic.Bool // nothing is cut
	onCut    func(what string)
	work     sync.WaitGroup

	mu       sync.Mutex
	rng      *rand.Rand
	open     map[net.Conn]bool
	isClosed bool
}

// newCutProxy listens on a socket of the work folder. It cuts nothing until pauseCuts(false), so that no start is cut.
func newCutProxy(ctx context.Context, r *run, i *instance, seed uint64) (*cutProxy, error) {
	c := &cutProxy{
		name: fmt.Sprintf("cut-%d", i.number), nodePath: r.workDir.SocketPath(nodeName),
		onCut: func(what string) {
			r.addIncident(Incident{What: i.name + ": connection to the node cut, " + what, Cut: true})
		},
		rng: rand.New(rand.NewPCG(seed, 3)), open: map[net.Conn]bool{},
	}
	c.isPaused.Store(true)
	var lc net.ListenConfig
	var err error
	if c.listener, err = lc.Listen(ctx, "unix", r.workDir.SocketPath(c.name)); err != nil {
		return nil, err
	}
	c.work.Go(c.serve)
	return c, nil
}

// pauseCuts sets whether all proxies relay without cuts.
func (r *run) pauseCuts(isPaused bool) {
	for _, i := range r.instances {
		if i.proxy != nil {
			i.proxy.isPaused.Store(isPaused)
		}
	}
}

// serve accepts connections until the listener is closed. The node needs no proxy of its own for a restart: a connection that
// cannot be made to it is closed, and the instance connects again.
func (c *cutProxy) serve() {
	for {
		from, err := c.listener.Accept()
		if err != nil {
			return
		}
		c.work.Go(func() { c.relay(from) })
	}
}

// relay relays both directions of a connection until either ends, and then closes both sides. Each connection of the instance
// has its own to the node.
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

// forward relays what the instance sends, until it ends or is cut. It looks for ticks in each chunk that a read returns: a tick whose type is
// split between two chunks passes unseen. If isMuted is set, relay discards what the node sends.
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
			to.Write(chunk[:n]) // the cut follows whether it fails or not
			time.Sleep(answerDelay)
			c.onCut("a tick's answer with it")
			return
		}
		if _, err := to.Write(chunk[:n]); err != nil {
			return
		}
	}
}

// drawChance draws a number from 0 to below 1 if the chunk contains a tick. It returns 1, which never cuts, for any other chunk and while cuts
// are paused.
func (c *cutProxy) drawChance(chunk []byte) float64 {
	if c.isPaused.Load() || !hasTick(chunk) {
		return 1
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rng.Float64()
}

// addConn registers a connection, so that close can close it. It returns false after close: the caller then closes the connection.
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

// close ends every connection and returns when all goroutines of the proxy have ended.
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

// writerFunc is a function as an io.Writer.
type writerFunc func([]byte) (int, error)

func (w writerFunc) Write(b []byte) (int, error) { return w(b) }
