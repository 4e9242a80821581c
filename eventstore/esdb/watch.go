package esdb

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"lieudit/eventstore"
)

const (
	lookEvery  = 100 * time.Millisecond // at the connection
	probeAfter = 500 * time.Millisecond // without any other sign of life
	slowAfter  = time.Second            // of silence: the other nodes are asked who leads
	askEvery   = 250 * time.Millisecond
	lostAfter  = 10 * time.Second // of silence: the server is given up
)

// watcher looks after one connection. A server that falls silent for seconds keeps it, with all that is on its way:
// only the end of its transport, ten seconds of silence, or another leader that answers ends it.
type watcher struct {
	*link
	conn *conn
	ctx  context.Context
	work sync.WaitGroup

	probing bool
	probed  chan error         // the answer to the probe on its way
	seeking context.CancelFunc // of the search for another leader; nil: there is none
	found   chan *conn         // to another leader
}

// watch returns why a connection is no longer good, and the one that takes its place if that is there already.
func (l *link) watch(c *conn) (next *conn, why error) {
	ctx, cancel := context.WithCancel(l.ctx)
	w := &watcher{link: l, conn: c, ctx: ctx, probed: make(chan error, 1), found: make(chan *conn, 1)}
	defer func() {
		cancel()
		w.work.Wait()
		w.stopSeeking()
	}()
	lost := c.lost()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		suspected := false
		select {
		case <-l.ctx.Done():
			return nil, eventstore.ErrClosed
		case <-lost:
			return nil, fmt.Errorf("%w: connection lost", eventstore.ErrUnavailable)
		case next := <-w.found:
			return next, fmt.Errorf("%w: silent for %v, and another node leads", eventstore.ErrUnavailable, c.silence().Round(time.Millisecond))
		case err := <-w.probed:
			w.probing = false
			w.heed(err)
		case suspect := <-l.look:
			suspected = suspect == c
		case <-tick.C:
			c.dropForgetfulPipelines()
		}
		if err := w.judge(suspected); err != nil {
			return nil, err
		}
	}
}

// judge says why the connection is over, if it is, and sees to what its silence asks for.
func (w *watcher) judge(suspected bool) error {
	silence := w.conn.silence()
	switch {
	case w.elsewhere():
		return fmt.Errorf("%w: another node leads", eventstore.ErrUnavailable)
	case silence >= lostAfter:
		return fmt.Errorf("%w: no answer for %v", eventstore.ErrUnavailable, lostAfter)
	case silence >= slowAfter:
		w.seekLeader()
	default:
		w.stopSeeking()
	}
	if !w.probing && (suspected || silence >= probeAfter) {
		w.probing = true
		w.work.Go(func() { w.probed <- w.probe() })
	}
	return nil
}

// probe asks for the log's last event, and waits for the answer as long as the watch lasts. An error is forgiven when
// other calls were answered meanwhile.
func (w *watcher) probe() error {
	asked := time.Now()
	_, _, err := w.conn.lastEvent(w.ctx)
	if w.conn.heardSince(asked) {
		return nil
	}
	return err
}

// heed remembers what the answer to a probe says of the leader, or of the server.
func (w *watcher) heed(err error) {
	var elsewhere *notLeaderError
	if errors.As(err, &elsewhere) {
		w.follow(elsewhere.leader)
	}
	w.reads(err)
}

// seekLeader begins to ask the other seeds who leads, each on a connection of its own.
func (w *watcher) seekLeader() {
	if w.seeking != nil || !w.target.gossip {
		return
	}
	ctx, cancel := context.WithCancel(w.ctx)
	w.seeking = cancel
	for _, seed := range w.target.seeds {
		if seed != w.conn.address {
			w.work.Go(func() { w.askUntilAnotherLeads(ctx, seed) })
		}
	}
}

// stopSeeking ends the search, and closes what it found that nobody took.
func (w *watcher) stopSeeking() {
	if w.seeking != nil {
		w.seeking()
		w.seeking = nil
	}
	select {
	case c := <-w.found:
		c.close()
	default:
	}
}

// askUntilAnotherLeads asks one seed until it names another leader that answers as one. Who is named but does not
// answer may be the silent one itself, under another name.
func (w *watcher) askUntilAnotherLeads(ctx context.Context, seed string) {
	for ctx.Err() == nil {
		leader, err := w.target.ask(ctx, seed)
		if err == nil && leader != w.conn.address {
			if c, err := w.target.reach(ctx, leader); err == nil {
				w.offer(c)
				return
			}
		}
		sleep(ctx, askEvery)
	}
}

// offer hands over a connection to another leader, unless there is one already.
func (w *watcher) offer(c *conn) {
	select {
	case w.found <- c:
	default:
		c.close()
	}
}
