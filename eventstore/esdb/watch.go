package esdb

import (
	"context"
	"fmt"
	"sync"
	"time"

	"lieudit/eventstore"
	"lieudit/eventstore/clock"
)

// The times of a silence. Each is a step: probe, search for another leader, give up.
const (
	watchInterval  = 100 * time.Millisecond // between two checks of the connection
	probeAfter     = 500 * time.Millisecond // of silence: a probe is sent
	stallAfter     = time.Second            // of silence: the other nodes are asked who leads
	gossipInterval = 250 * time.Millisecond
	lostAfter      = 10 * time.Second // of silence: the connection is given up
)

// connWatcher watches one connection. A server that is silent for seconds keeps its connection, with everything in flight on
// it. Three things end the connection: the end of its transport, ten seconds of silence, and another leader, which a node has
// named in an answer or which the search has reached. Silence is the time since the last answer to any call on the
// connection.
type connWatcher struct {
	*connector
	conn *conn
	ctx  context.Context // ends with the watch
	work sync.WaitGroup  // the probe and the search

	isProbing    bool
	probeResult  chan error         // result of the running probe
	cancelSearch context.CancelFunc // ends the search for another leader; nil: none runs
	newLeader    chan *conn         // has room for one connection that the search found
}

// watch returns when the connection is no longer good, with the reason (cause) and, if another leader was found, the
// connection to it.
func (cr *connector) watch(c *conn) (next *conn, cause error) {
	ctx, cancel := context.WithCancel(cr.ctx)
	w := &connWatcher{connector: cr, conn: c, ctx: ctx, probeResult: make(chan error, 1), newLeader: make(chan *conn, 1)}
	defer func() {
		cancel()
		w.work.Wait()
		w.stopSearch()
	}()
	lost := c.watchTransport()
	tick := time.NewTicker(watchInterval)
	defer tick.Stop()
	for {
		probeNow := false
		select {
		case <-cr.ctx.Done():
			return nil, eventstore.ErrClosed
		case <-lost:
			return nil, fmt.Errorf("%w: connection lost", eventstore.ErrUnavailable)
		case next := <-w.newLeader:
			return next, fmt.Errorf("%w: silent for %v, and another node leads", eventstore.ErrUnavailable, c.silence().Round(time.Millisecond))
		case err := <-w.probeResult:
			w.isProbing = false
			w.handleProbeResult(err)
		case requested := <-cr.probeRequests:
			probeNow = requested == c
		case <-tick.C:
			c.cancelUnresponsivePipelines()
		}
		if err := w.checkHealth(probeNow); err != nil {
			return nil, err
		}
	}
}

// checkHealth returns why the connection is over, or nil. During a silence it starts a probe and the search for another
// leader.
func (w *connWatcher) checkHealth(probeNow bool) error {
	silence := w.conn.silence()
	switch {
	case w.hasLeaderHint():
		return fmt.Errorf("%w: another node leads", eventstore.ErrUnavailable)
	case silence >= lostAfter:
		return fmt.Errorf("%w: no answer for %v", eventstore.ErrUnavailable, lostAfter)
	case silence >= stallAfter:
		w.searchLeader()
	default:
		w.stopSearch()
	}
	if !w.isProbing && (probeNow || silence >= probeAfter) {
		w.isProbing = true
		w.work.Go(func() { w.probeResult <- w.probe() })
	}
	return nil
}

// probe reads the log's last event, and waits for the answer as long as the watch lasts. An answer ends the silence, since it
// is recorded like that of any call. An error does not count if other calls were answered meanwhile.
func (w *connWatcher) probe() error {
	sentAt := time.Now()
	_, _, err := w.conn.readLastEvent(w.ctx)
	if w.conn.hasRespondedSince(sentAt) {
		return nil
	}
	return err
}

// handleProbeResult records the result of a probe, which may name another leader.
func (w *connWatcher) handleProbeResult(err error) {
	if leader, redirected := leaderFrom(err); redirected {
		w.setLeaderHint(leader)
	}
	w.recordProbeResult(err)
}

// searchLeader starts asking the other seeds who leads, each on a connection of its own, unless the search is already
// running.
func (w *connWatcher) searchLeader() {
	if w.cancelSearch != nil || !w.target.usesGossip {
		return
	}
	ctx, cancel := context.WithCancel(w.ctx)
	w.cancelSearch = cancel
	for _, seed := range w.target.seeds {
		if seed != w.conn.address {
			w.work.Go(func() { w.pollLeaderFrom(ctx, seed) })
		}
	}
}

// stopSearch ends the search, and closes a connection that it found and nobody took. It does not wait for the search's
// goroutines.
func (w *connWatcher) stopSearch() {
	if w.cancelSearch != nil {
		w.cancelSearch()
		w.cancelSearch = nil
	}
	select {
	case c := <-w.newLeader:
		c.close()
	default:
	}
}

// pollLeaderFrom asks one seed repeatedly until it names another leader that answers. A named leader that does not answer may
// be the silent node under another address.
func (w *connWatcher) pollLeaderFrom(ctx context.Context, seed string) {
	for ctx.Err() == nil {
		leader, err := w.target.readLeaderFromGossip(ctx, seed)
		if err == nil && leader != w.conn.address {
			if c, err := w.target.dial(ctx, leader); err == nil {
				w.offerConn(c)
				return
			}
		}
		clock.Sleep(ctx, gossipInterval)
	}
}

// offerConn offers a connection to another leader; the first offer wins.
func (w *connWatcher) offerConn(c *conn) {
	select {
	case w.newLeader <- c:
	default:
		c.close()
	}
}
