package esdb

import (
	"context"
	"fmt"
	"time"

	"lieudit/eventstore"
)

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
