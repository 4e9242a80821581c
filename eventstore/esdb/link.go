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
	stateKnown  = 700 * time.Millisecond // after which a connection being made counts as down
	minPause    = 50 * time.Millisecond  // between attempts to connect
	maxPause    = 500 * time.Millisecond
	lasting     = 2 * time.Second        // a connection that was lost sooner was hardly one
	maxRest     = 250 * time.Millisecond // after such a one: outages are to be over soon all the same
	refusalFor  = 5 * time.Second        // how long a refused append counts against health
	downAfter   = 3 * time.Second        // without a connection: until then a new leader may be found
	leaderHints = 4                      // not-leader answers followed in a row
)

// link keeps one connection to the node that leads, from one keeper goroutine: the only place where connections are
// made and closed. Calls take the connection there is and report what looks like its end.
type link struct {
	target target
	log    *slog.Logger
	ctx    context.Context
	cancel context.CancelFunc
	done   chan struct{}
	look   chan *conn // calls that failed ask the keeper to probe

	mu      sync.Mutex
	conn    *conn         // nil while there is none
	why     error         // why there is none; nil: not known yet
	changed chan struct{} // closed when conn or why changes
	since   time.Time     // when conn was lost; zero: there was none yet
	leader  string        // where a node said the leader is
	refused time.Time     // when the server last refused an append it should have taken
	refuses time.Time     // since when it has refused them
	refusal error
	unread  error // what the server said to the last probe
}

func newLink(ctx context.Context, t target, log *slog.Logger) *link {
	l := &link{target: t, log: log, done: make(chan struct{}), look: make(chan *conn, 1), changed: make(chan struct{})}
	l.ctx, l.cancel = context.WithCancel(ctx)
	go l.keep()
	return l
}

func (l *link) close() {
	l.cancel()
	<-l.done
}

// keep connects, watches and connects again, until the link is closed.
func (l *link) keep() {
	defer close(l.done)
	var pause time.Duration
	for c := l.reconnect(); c != nil; {
		began := time.Now()
		l.set(c, nil)
		next, why := l.watch(c)
		l.set(next, nil)
		c.close()
		if l.ctx.Err() == nil {
			l.log.Warn("event log connection lost", "address", c.address, "why", why)
		}
		if c = next; c != nil {
			continue
		}
		if time.Since(began) > lasting {
			pause = 0
		} else {
			l.rest(pause, why)
			pause = min(max(minPause, 2*pause), maxRest)
		}
		c = l.reconnect()
	}
	l.set(nil, eventstore.ErrClosed)
}

// rest is for a server that lets go of every connection: to come back at once would only harm it. Nobody waits meanwhile.
func (l *link) rest(pause time.Duration, why error) {
	if pause > 0 {
		l.set(nil, why)
		sleep(l.ctx, pause/2+rand.N(pause))
		l.set(nil, nil)
	}
}

// reconnect tries until it has a connection; nil after close.
func (l *link) reconnect() *conn {
	for pause := minPause; ; pause = min(2*pause, maxPause) {
		c, err := l.attempt()
		if err == nil {
			return c
		}
		if l.ctx.Err() != nil {
			return nil
		}
		if pause == minPause {
			l.log.Warn("event log unreachable", "why", err)
		}
		l.set(nil, err)
		sleep(l.ctx, pause/2+rand.N(pause))
	}
}

// attempt connects once. Those who wait are told that the log is down when it takes long.
func (l *link) attempt() (*conn, error) {
	late := time.AfterFunc(stateKnown, func() { l.settle(fmt.Errorf("%w: no answer while connecting", eventstore.ErrUnavailable)) })
	defer late.Stop()
	l.mu.Lock()
	hint := l.leader
	l.leader = ""
	l.mu.Unlock()
	for range leaderHints {
		c, err := l.target.connect(l.ctx, hint)
		var elsewhere *notLeaderError
		if hint = ""; !errors.As(err, &elsewhere) {
			return c, err
		}
		hint = elsewhere.leader
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
