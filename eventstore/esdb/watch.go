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
	watchInterval  = 100 * time.Millisecond // at the connection
	probeAfter     = 500 * time.Millisecond // without any other sign of life
	stallAfter     = time.Second            // of silence: the other nodes are asked who leads
	gossipInterval = 250 * time.Millisecond
	lostAfter      = 10 * time.Second // of silence: the server is given up
)

// connWatcher looks after one connection. A server that falls silent for seconds keeps it, with all that is on its way:
// only the end of its transport, ten seconds of silence, or another leader that answers ends it.
type connWatcher struct {
	*connector
	conn *conn
	ctx  context.Context
	work sync.WaitGroup

	isProbing    bool
	probeResult  chan error         // the answer to the probe on its way
	cancelSearch context.CancelFunc // of the search for another leader; nil: there is none
	newLeader    chan *conn         // to another leader
}

// watch returns why a connection is no longer good, and the one that takes its place if that is there already.
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

// checkHealth says why the connection is over, if it is, and sees to what its silence asks for.
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

// probe asks for the log's last event, and waits for the answer as long as the watch lasts. An error is forgiven when
// other calls were answered meanwhile.
func (w *connWatcher) probe() error {
	sentAt := time.Now()
	_, _, err := w.conn.readLastEvent(w.ctx)
	if w.conn.hasRespondedSince(sentAt) {
		return nil
	}
	return err
}

// handleProbeResult remembers what the answer to a probe says of the leader, or of the server.
func (w *connWatcher) handleProbeResult(err error) {
	var notLeader *notLeaderError
	if errors.As(err, &notLeader) {
		w.setLeaderHint(notLeader.leader)
	}
	w.recordProbeResult(err)
}

// searchLeader begins to ask the other seeds who leads, each on a connection of its own.
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

// stopSearch ends the search, and closes what it found that nobody took.
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

// pollLeaderFrom asks one seed until it names another leader that answers as one. Who is named but does not
// answer may be the silent one itself, under another name.
func (w *connWatcher) pollLeaderFrom(ctx context.Context, seed string) {
	for ctx.Err() == nil {
		leader, err := w.target.readLeaderFromGossip(ctx, seed)
		if err == nil && leader != w.conn.address {
			if c, err := w.target.dial(ctx, leader); err == nil {
				w.offerConn(c)
				return
			}
		}
		sleep(ctx, gossipInterval)
	}
}

// offerConn hands over a connection to another leader, unless there is one already.
func (w *connWatcher) offerConn(c *conn) {
	select {
	case w.newLeader <- c:
	default:
		c.close()
	}
}
