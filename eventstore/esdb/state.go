package esdb

import (
	"context"
	"fmt"
	"time"

	"lieudit/eventstore"
)

// set publishes what is known of the connection.
func (l *link) set(c *conn, why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn != nil && c == nil {
		l.since = time.Now()
	}
	l.conn, l.why = c, why
	if c != nil {
		l.refusal, l.unread = nil, nil // which were the last connection's
	}
	close(l.changed)
	l.changed = make(chan struct{})
}

// settle says why there is no connection, if nothing is known yet.
func (l *link) settle(why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn == nil && l.why == nil {
		l.why = why
		close(l.changed)
		l.changed = make(chan struct{})
	}
}

// get is the connection, or why there is none. It waits only while that is not known, which is less than a second.
func (l *link) get(ctx context.Context) (*conn, error) {
	for {
		c, changed, why := l.state()
		switch {
		case l.ctx.Err() != nil:
			return nil, eventstore.ErrClosed
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case c != nil || why != nil:
			return c, why
		}
		select {
		case <-changed:
		case <-ctx.Done():
		case <-l.ctx.Done():
		}
	}
}

// wait is get that goes on until there is a connection.
func (l *link) wait(ctx context.Context) (*conn, error) {
	for {
		_, changed, _ := l.state()
		c, err := l.get(ctx)
		if err == nil || l.ctx.Err() != nil || ctx.Err() != nil {
			return c, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
		case <-l.ctx.Done():
		}
	}
}

// replaced waits until the connection is another one than c, and says whether there is one.
func (l *link) replaced(ctx context.Context, c *conn) bool {
	for {
		now, changed, why := l.state()
		if now != c && (now != nil || why != nil) {
			return now != nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		case <-l.ctx.Done():
			return false
		}
	}
}

func (l *link) state() (c *conn, changed <-chan struct{}, why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.conn, l.changed, l.why
}

// suspect asks the keeper to look at a connection on which a call failed.
func (l *link) suspect(c *conn) {
	select {
	case l.look <- c:
	default:
	}
}

// follow remembers where a node said the leader is.
func (l *link) follow(leader string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.leader = leader
}

// elsewhere says whether a call was told that another node leads.
func (l *link) elsewhere() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.leader != ""
}

// writes remembers whether the server takes appends.
func (l *link) writes(refusal error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if l.refusal == nil || now.Sub(l.refused) > refusalFor {
		l.refuses = now
	}
	l.refusal, l.refused = refusal, now
}

// reads remembers what the server said to the last probe.
func (l *link) reads(refusal error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unread = refusal
}

// health is nil while all is well. What may be over in a moment is a *eventstore.StallError.
func (l *link) health() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.ctx.Err() != nil:
		return eventstore.ErrClosed
	case l.conn == nil:
		return l.unconnected()
	case l.conn.silence() >= slowAfter:
		return &eventstore.StallError{For: l.conn.silence(), Err: l.unread}
	case l.refusal != nil && time.Since(l.refused) < refusalFor:
		return passing(time.Since(l.refuses), lostAfter, l.refusal)
	}
	return nil
}

// unconnected is why there is no connection.
func (l *link) unconnected() error {
	why := l.why
	if why == nil {
		why = fmt.Errorf("%w: connecting", eventstore.ErrUnavailable)
	}
	if l.since.IsZero() {
		return why
	}
	return passing(time.Since(l.since), downAfter, why)
}

// passing is an error that is a stall until it has lasted for so long.
func passing(lasted, limit time.Duration, why error) error {
	if lasted < limit {
		return &eventstore.StallError{For: lasted, Err: why}
	}
	return why
}
