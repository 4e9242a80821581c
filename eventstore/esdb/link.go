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

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
