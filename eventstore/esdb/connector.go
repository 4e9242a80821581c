package esdb

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"lieudit/eventstore"
)

const (
	maxUnknownState    = 700 * time.Millisecond // after which a connection being made counts as down
	minBackoff         = 50 * time.Millisecond  // between attempts to connect
	maxBackoff         = 500 * time.Millisecond
	stableAfter        = 2 * time.Second        // a connection that was lost sooner was hardly one
	maxUnstableBackoff = 250 * time.Millisecond // after such a one: outages are to be over soon all the same
	refusalLifetime    = 5 * time.Second        // how long a refused append counts against health
	downAfter          = 3 * time.Second        // without a connection: until then a new leader may be found
	maxRedirects       = 4                      // not-leader answers followed in a row
)

// connector keeps one connection to the node that leads, from one keeper goroutine: the only place where connections are
// made and closed. Calls take the connection there is and report what looks like its end.
type connector struct {
	target        target
	log           *slog.Logger
	ctx           context.Context
	cancel        context.CancelFunc
	done          chan struct{}
	probeRequests chan *conn // calls that failed ask the keeper to probe

	mu            sync.Mutex
	conn          *conn         // nil while there is none
	connErr       error         // why there is none; nil: not known yet
	changed       chan struct{} // closed when conn or why changes
	lostAt        time.Time     // when conn was lost; zero: there was none yet
	leaderHint    string        // where a node said the leader is
	lastRefusedAt time.Time     // when the server last refused an append it should have taken
	refusedSince  time.Time     // since when it has refused them
	appendErr     error
	probeErr      error // what the server said to the last probe
}

func newConnector(ctx context.Context, t target, log *slog.Logger) *connector {
	cr := &connector{target: t, log: log, done: make(chan struct{}), probeRequests: make(chan *conn, 1), changed: make(chan struct{})}
	cr.ctx, cr.cancel = context.WithCancel(ctx)
	go cr.run()
	return cr
}

func (cr *connector) close() {
	cr.cancel()
	<-cr.done
}

// run connects, watches and connects again, until the link is closed.
func (cr *connector) run() {
	defer close(cr.done)
	var backoff time.Duration
	for c := cr.connectWithRetry(); c != nil; {
		connectedAt := time.Now()
		cr.setConn(c, nil)
		next, cause := cr.watch(c)
		cr.setConn(next, nil)
		c.close()
		if cr.ctx.Err() == nil {
			cr.log.Warn("event log connection lost", "address", c.address, "why", cause)
		}
		if c = next; c != nil {
			continue
		}
		if time.Since(connectedAt) > stableAfter {
			backoff = 0
		} else {
			cr.pauseAfterLoss(backoff, cause)
			backoff = min(max(minBackoff, 2*backoff), maxUnstableBackoff)
		}
		c = cr.connectWithRetry()
	}
	cr.setConn(nil, eventstore.ErrClosed)
}

// pauseAfterLoss is for a server that lets go of every connection: to come back at once would only harm it. Nobody waits meanwhile.
func (cr *connector) pauseAfterLoss(backoff time.Duration, cause error) {
	if backoff > 0 {
		cr.setConn(nil, cause)
		sleep(cr.ctx, backoff/2+rand.N(backoff))
		cr.setConn(nil, nil)
	}
}

// connectWithRetry tries until it has a connection; nil after close.
func (cr *connector) connectWithRetry() *conn {
	for backoff := minBackoff; ; backoff = min(2*backoff, maxBackoff) {
		c, err := cr.connectOnce()
		if err == nil {
			return c
		}
		if cr.ctx.Err() != nil {
			return nil
		}
		if backoff == minBackoff {
			cr.log.Warn("event log unreachable", "why", err)
		}
		cr.setConn(nil, err)
		sleep(cr.ctx, backoff/2+rand.N(backoff))
	}
}

// connectOnce connects once. Those who wait are told that the log is down when it takes long.
func (cr *connector) connectOnce() (*conn, error) {
	timer := time.AfterFunc(maxUnknownState, func() { cr.setErrIfUnknown(fmt.Errorf("%w: no answer while connecting", eventstore.ErrUnavailable)) })
	defer timer.Stop()
	cr.mu.Lock()
	hint := cr.leaderHint
	cr.leaderHint = ""
	cr.mu.Unlock()
	for range maxRedirects {
		c, err := cr.target.connectToLeader(cr.ctx, hint)
		var notLeader *notLeaderError
		if hint = ""; !errors.As(err, &notLeader) {
			return c, err
		}
		hint = notLeader.leader
	}
	return nil, fmt.Errorf("%w: the nodes do not agree on who leads", eventstore.ErrUnavailable)
}

// setConn publishes what is known of the connection.
func (cr *connector) setConn(c *conn, cause error) {
	cr.mu.Lock()
	defer cr.mu.Unlock()
	if cr.conn != nil && c == nil {
		cr.lostAt = time.Now()
	}
	cr.conn, cr.connErr = c, cause
	if c != nil {
		cr.appendErr, cr.probeErr = nil, nil // which were the last connection's
	}
	close(cr.changed)
	cr.changed = make(chan struct{})
}

// setErrIfUnknown says why there is no connection, if nothing is known yet.
func (cr *connector) setErrIfUnknown(cause error) {
	cr.mu.Lock()
	defer cr.mu.Unlock()
	if cr.conn == nil && cr.connErr == nil {
		cr.connErr = cause
		close(cr.changed)
		cr.changed = make(chan struct{})
	}
}

// currentConn is the connection, or why there is none. It waits only while that is not known, which is less than a second.
func (cr *connector) currentConn(ctx context.Context) (*conn, error) {
	for {
		c, changed, cause := cr.loadConn()
		switch {
		case cr.ctx.Err() != nil:
			return nil, eventstore.ErrClosed
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case c != nil || cause != nil:
			return c, cause
		}
		select {
		case <-changed:
		case <-ctx.Done():
		case <-cr.ctx.Done():
		}
	}
}

// waitForConn is get that goes on until there is a connection.
func (cr *connector) waitForConn(ctx context.Context) (*conn, error) {
	for {
		_, changed, _ := cr.loadConn()
		c, err := cr.currentConn(ctx)
		if err == nil || cr.ctx.Err() != nil || ctx.Err() != nil {
			return c, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
		case <-cr.ctx.Done():
		}
	}
}

// waitForReplacement waits until the connection is another one than c, and says whether there is one.
func (cr *connector) waitForReplacement(ctx context.Context, c *conn) bool {
	for {
		current, changed, cause := cr.loadConn()
		if current != c && (current != nil || cause != nil) {
			return current != nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		case <-cr.ctx.Done():
			return false
		}
	}
}

func (cr *connector) loadConn() (c *conn, changed <-chan struct{}, cause error) {
	cr.mu.Lock()
	defer cr.mu.Unlock()
	return cr.conn, cr.changed, cr.connErr
}

// requestProbe asks the keeper to look at a connection on which a call failed.
func (cr *connector) requestProbe(c *conn) {
	select {
	case cr.probeRequests <- c:
	default:
	}
}

// setLeaderHint remembers where a node said the leader is.
func (cr *connector) setLeaderHint(leader string) {
	cr.mu.Lock()
	defer cr.mu.Unlock()
	cr.leaderHint = leader
}

// hasLeaderHint says whether a call was told that another node leads.
func (cr *connector) hasLeaderHint() bool {
	cr.mu.Lock()
	defer cr.mu.Unlock()
	return cr.leaderHint != ""
}

// recordAppendResult remembers whether the server takes appends.
func (cr *connector) recordAppendResult(refusal error) {
	cr.mu.Lock()
	defer cr.mu.Unlock()
	now := time.Now()
	if cr.appendErr == nil || now.Sub(cr.lastRefusedAt) > refusalLifetime {
		cr.refusedSince = now
	}
	cr.appendErr, cr.lastRefusedAt = refusal, now
}

// recordProbeResult remembers what the server said to the last probe.
func (cr *connector) recordProbeResult(refusal error) {
	cr.mu.Lock()
	defer cr.mu.Unlock()
	cr.probeErr = refusal
}

// health is nil while all is well. What may be over in a moment is a *eventstore.StallError.
func (cr *connector) health() error {
	cr.mu.Lock()
	defer cr.mu.Unlock()
	switch {
	case cr.ctx.Err() != nil:
		return eventstore.ErrClosed
	case cr.conn == nil:
		return cr.noConnError()
	case cr.conn.silence() >= stallAfter:
		return &eventstore.StallError{Duration: cr.conn.silence(), Err: cr.probeErr}
	case cr.appendErr != nil && time.Since(cr.lastRefusedAt) < refusalLifetime:
		return stallUntil(time.Since(cr.refusedSince), lostAfter, cr.appendErr)
	}
	return nil
}

// noConnError is why there is no connection.
func (cr *connector) noConnError() error {
	cause := cr.connErr
	if cause == nil {
		cause = fmt.Errorf("%w: connecting", eventstore.ErrUnavailable)
	}
	if cr.lostAt.IsZero() {
		return cause
	}
	return stallUntil(time.Since(cr.lostAt), downAfter, cause)
}

// stallUntil is an error that is a stall until it has lasted for so long.
func stallUntil(lasted, limit time.Duration, cause error) error {
	if lasted < limit {
		return &eventstore.StallError{Duration: lasted, Err: cause}
	}
	return cause
}

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
