package esdb

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"

	"lieudit/eventstore"
	"lieudit/eventstore/clock"
)

// The times and counts of connecting. The comment on each tells when it applies.
const (
	maxUnknownState    = 700 * time.Millisecond // of connecting, after which calls fail
	minBackoff         = 50 * time.Millisecond  // between attempts to connect
	maxBackoff         = 500 * time.Millisecond
	stableAfter        = 2 * time.Second        // a connection that is lost sooner is followed by a pause
	maxUnstableBackoff = 250 * time.Millisecond // short, so that an outage still ends soon
	refusalLifetime    = 5 * time.Second        // how long Health reports a refused append
	downAfter          = 3 * time.Second        // without a connection; before that it is a stall, because a new leader may be elected
	maxRedirects       = 4                      // redirections to another leader that one call follows
)

// connector keeps one connection to the node that leads. Only its goroutine (run) makes, replaces and closes that connection.
// Calls use the current one (currentConn) and report errors that may be its end (requestProbe, setLeaderHint).
//
// conn and connErr together are the state of the connection:
//
//	conn  connErr
//	set   nil      there is a connection: calls use it
//	nil   nil      unknown, a connection is being made: calls wait, for at most maxUnknownState
//	nil   set      there is none: calls fail at once
type connector struct {
	target        target
	log           *slog.Logger
	ctx           context.Context
	cancel        context.CancelFunc
	done          chan struct{}
	probeRequests chan *conn // from calls that failed

	mu            sync.Mutex
	conn          *conn
	connErr       error
	changed       chan struct{} // closed and replaced when conn or connErr changes
	lostAt        time.Time     // when the last connection was lost; zero: there was none yet
	leaderHint    string        // address at which a node says the leader is
	lastRefusedAt time.Time     // when the server last refused an append
	refusedSince  time.Time     // when the present series of refusals began
	appendErr     error         // the last refusal; nil: the last append succeeded
	probeErr      error         // of the last probe
}

// newConnector starts to connect at once, and returns before there is a connection.
func newConnector(ctx context.Context, t target, log *slog.Logger) *connector {
	cr := &connector{target: t, log: log, done: make(chan struct{}), probeRequests: make(chan *conn, 1), changed: make(chan struct{})}
	cr.ctx, cr.cancel = context.WithCancel(ctx)
	go cr.keepConnected()
	return cr
}

// close ends the goroutine of the connector and closes its connection.
func (cr *connector) close() {
	cr.cancel()
	<-cr.done
}

// keepConnected connects, watches the connection and reconnects, until close. It replaces the first connection that is soon
// lost at once; pauses begin with the second in a row.
func (cr *connector) keepConnected() {
	defer close(cr.done)
	unstable := newBackoff(minBackoff, maxUnstableBackoff)
	var pause time.Duration // after the next loss; none after the first one
	for c := cr.connectWithRetry(); c != nil; {
		connectedAt := time.Now()
		cr.setConn(c, nil)
		next, cause := cr.watch(c)
		cr.setConn(next, nil) // before c is closed: calls that fail because of it find the next one, or wait
		c.close()
		if cr.ctx.Err() == nil {
			cr.log.Warn("event log connection lost", "address", c.address, "why", cause)
		}
		if c = next; c != nil {
			continue
		}
		if time.Since(connectedAt) > stableAfter {
			unstable.Reset()
			pause = 0
		} else {
			cr.pauseAfterLoss(pause, cause)
			pause = unstable.NextBackOff()
		}
		c = cr.connectWithRetry()
	}
	cr.setConn(nil, eventstore.ErrClosed)
}

// pauseAfterLoss waits after a connection that was soon lost, so that a server in trouble is not flooded with new ones. Calls
// fail meanwhile.
func (cr *connector) pauseAfterLoss(pause time.Duration, cause error) {
	if pause > 0 {
		cr.setConn(nil, cause)
		clock.Sleep(cr.ctx, pause)
		cr.setConn(nil, nil)
	}
}

// connectWithRetry tries until it has a connection. It returns nil after close. It logs only the first failure of an outage.
func (cr *connector) connectWithRetry() *conn {
	pauses := newBackoff(minBackoff, maxBackoff)
	for attempt := 1; ; attempt++ {
		c, err := cr.connectOnce()
		if err == nil {
			return c
		}
		if cr.ctx.Err() != nil {
			return nil
		}
		if attempt == 1 {
			cr.log.Warn("event log unreachable", "why", err)
		}
		cr.setConn(nil, err)
		clock.Sleep(cr.ctx, pauses.NextBackOff())
	}
}

// connectOnce tries once, following the nodes that name another leader. It uses up the leader hint: if the node at that
// address does not answer, the next attempt begins with the seeds. After maxUnknownState calls that wait for the result fail.
func (cr *connector) connectOnce() (*conn, error) {
	timer := time.AfterFunc(maxUnknownState, func() { cr.setErrIfUnknown(fmt.Errorf("%w: no answer while connecting", eventstore.ErrUnavailable)) })
	defer timer.Stop()
	cr.mu.Lock()
	hint := cr.leaderHint
	cr.leaderHint = ""
	cr.mu.Unlock()
	for range maxRedirects {
		c, err := cr.target.connectToLeader(cr.ctx, hint)
		var redirected bool
		if hint, redirected = leaderFrom(err); !redirected {
			return c, err
		}
	}
	return nil, fmt.Errorf("%w: the nodes do not agree on who leads", eventstore.ErrUnavailable)
}

// setConn publishes the connection, or why there is none, and wakes all waiters. With neither the state is unknown:
// a connection is being made.
func (cr *connector) setConn(c *conn, cause error) {
	cr.mu.Lock()
	defer cr.mu.Unlock()
	if cr.conn != nil && c == nil {
		cr.lostAt = time.Now()
	}
	cr.conn, cr.connErr = c, cause
	if c != nil {
		cr.appendErr, cr.probeErr = nil, nil // they were about the previous connection
	}
	close(cr.changed)
	cr.changed = make(chan struct{})
}

// setErrIfUnknown publishes why there is no connection, unless the state has become known.
func (cr *connector) setErrIfUnknown(cause error) {
	cr.mu.Lock()
	defer cr.mu.Unlock()
	if cr.conn == nil && cr.connErr == nil {
		cr.connErr = cause
		close(cr.changed)
		cr.changed = make(chan struct{})
	}
}

// currentConn returns the connection, or why there is none. It waits only while that is unknown, for at most
// maxUnknownState.
func (cr *connector) currentConn(ctx context.Context) (*conn, error) {
	return cr.waitUntil(ctx, func(c *conn, cause error) bool { return c != nil || cause != nil })
}

// waitForConn waits until there is a connection. It fails only if ctx ends or the Store is closed.
func (cr *connector) waitForConn(ctx context.Context) (*conn, error) {
	return cr.waitUntil(ctx, func(c *conn, _ error) bool { return c != nil })
}

// waitForReplacement waits until c is replaced or lost, and reports whether there is another connection.
func (cr *connector) waitForReplacement(ctx context.Context, c *conn) bool {
	next, _ := cr.waitUntil(ctx, func(current *conn, cause error) bool { return current != c && (current != nil || cause != nil) })
	return next != nil
}

// waitUntil waits until accept is true of the state of the connection, and returns that state. It fails if ctx ends or the
// Store is closed.
func (cr *connector) waitUntil(ctx context.Context, accept func(c *conn, cause error) bool) (*conn, error) {
	for {
		cr.mu.Lock()
		c, changed, cause := cr.conn, cr.changed, cr.connErr
		cr.mu.Unlock()
		switch {
		case cr.ctx.Err() != nil:
			return nil, eventstore.ErrClosed
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case accept(c, cause):
			return c, cause
		}
		select {
		case <-changed:
		case <-ctx.Done():
		case <-cr.ctx.Done():
		}
	}
}

// requestProbe asks for a probe of the connection because a call on it failed. A request is dropped if one is already
// waiting.
func (cr *connector) requestProbe(c *conn) {
	select {
	case cr.probeRequests <- c:
	default:
	}
}

// setLeaderHint stores the address at which a node says the leader is. At its next check the watcher gives up the connection,
// and connectOnce starts at that address.
func (cr *connector) setLeaderHint(leader string) {
	cr.mu.Lock()
	defer cr.mu.Unlock()
	cr.leaderHint = leader
}

// hasLeaderHint reports whether the answer to a call or probe has named another leader.
func (cr *connector) hasLeaderHint() bool {
	cr.mu.Lock()
	defer cr.mu.Unlock()
	return cr.leaderHint != ""
}

// recordAppendResult records that the server made an append (nil) or refused one that it should have made. Health reports the
// refusal for refusalLifetime. Refusals that follow each other within that time are one series, which ends with the first
// successful append.
func (cr *connector) recordAppendResult(refusal error) {
	cr.mu.Lock()
	defer cr.mu.Unlock()
	now := time.Now()
	if cr.appendErr == nil || now.Sub(cr.lastRefusedAt) > refusalLifetime {
		cr.refusedSince = now
	}
	cr.appendErr, cr.lastRefusedAt = refusal, now
}

// recordProbeResult records the result of the last probe, which Health reports during a silence.
func (cr *connector) recordProbeResult(refusal error) {
	cr.mu.Lock()
	defer cr.mu.Unlock()
	cr.probeErr = refusal
}

// health is Store.Health.
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

// noConnError is why there is no connection, as Health reports it.
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

// stallUntil returns cause as a StallError while it has lasted for less than limit, and unchanged afterwards.
func stallUntil(lasted, limit time.Duration, cause error) error {
	if lasted < limit {
		return &eventstore.StallError{Duration: lasted, Err: cause}
	}
	return cause
}

// newBackoff returns pauses that double from the shortest to the longest. Each varies by half of its length, so that the
// instances of a service do not return at the same instant.
func newBackoff(shortest, longest time.Duration) *backoff.ExponentialBackOff {
	return &backoff.ExponentialBackOff{InitialInterval: shortest, MaxInterval: longest, Multiplier: 2, RandomizationFactor: 0.5}
}
