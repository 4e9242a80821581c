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
	probeEvery  = time.Second            // without any other sign of life
	probeLimit  = 1500 * time.Millisecond
	minPause    = 50 * time.Millisecond // between attempts to connect
	maxPause    = time.Second
	lasting     = 2 * time.Second        // a connection that was lost sooner was hardly one
	maxRest     = 250 * time.Millisecond // after such a one: outages are to be over soon all the same
	refusalFor  = 5 * time.Second        // how long a refused append counts against health
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
	leader  string        // where a node said the leader is
	refused time.Time     // when the server last refused an append it should have taken
	refusal error
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
	for l.ctx.Err() == nil {
		c := l.reconnect()
		if c == nil {
			break
		}
		began := time.Now()
		l.set(c, nil)
		why := l.watch(c)
		l.set(nil, nil)
		c.close()
		if l.ctx.Err() == nil {
			l.log.Warn("event log connection lost", "address", c.address, "why", why)
		}
		if time.Since(began) > lasting {
			pause = 0
			continue
		}
		l.rest(pause, why)
		pause = min(max(minPause, 2*pause), maxRest)
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

// watch returns why the connection is no longer good.
func (l *link) watch(c *conn) error {
	lost := c.lost()
	tick := time.NewTicker(probeEvery)
	defer tick.Stop()
	for {
		select {
		case <-l.ctx.Done():
			return eventstore.ErrClosed
		case <-lost:
			return fmt.Errorf("%w: connection lost", eventstore.ErrUnavailable)
		case suspect := <-l.look:
			if suspect != c {
				continue
			}
		case <-tick.C:
			if c.silence() < probeEvery && !l.elsewhere() {
				continue
			}
		}
		if l.elsewhere() {
			return fmt.Errorf("%w: another node leads", eventstore.ErrUnavailable)
		}
		if err := l.probe(c); err != nil {
			return err
		}
	}
}

// probe asks for the log's last event. Silence is forgiven when other calls were answered meanwhile.
func (l *link) probe(c *conn) error {
	ctx, cancel := context.WithTimeout(l.ctx, probeLimit)
	defer cancel()
	asked := time.Now()
	_, _, err := c.lastEvent(ctx)
	if err == nil || c.heardSince(asked) {
		return nil
	}
	var elsewhere *notLeaderError
	if errors.As(err, &elsewhere) {
		l.follow(elsewhere.leader)
	}
	return err
}

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
