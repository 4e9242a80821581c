package esdb

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/gossip"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"github.com/google/uuid"
	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"

	"lieudit/eventstore"
)

// conn is one connection to one node, from when it first answered to when it is lost. It is never repaired.
type conn struct {
	address  string
	cc       *grpc.ClientConn
	streams  streams.StreamsClient
	heard    atomic.Int64 // when the server last answered, Unix nanoseconds
	speaking atomic.Int64 // since when it has answered without a gap
	watcher  sync.WaitGroup

	lanes [lanes]lane
	turn  atomic.Uint32 // whose turn it is

	naming sync.Mutex // held while the identity is found
	id     uuid.UUID

	markPatience time.Duration // see readMark
}

// connect reaches the node that leads: the one named by hint, else the server, else whom gossip names. The error wraps
// a *notLeaderError when a node that was reached names another one.
func (t target) connect(ctx context.Context, hint string) (*conn, error) {
	if hint != "" {
		if c, err := t.reach(ctx, hint); err == nil {
			return c, nil
		}
	}
	c, err := t.reachLeader(ctx)
	var elsewhere *notLeaderError
	if err == nil || errors.As(err, &elsewhere) {
		return c, err
	}
	return nil, fmt.Errorf("%w: %v", eventstore.ErrUnavailable, err) // whose deadlines are not the callers'
}

// reachLeader connects to the server, or asks all seeds at once who leads and connects to the first who answers as
// the leader: a seed that is silent holds up nobody.
func (t target) reachLeader(ctx context.Context) (*conn, error) {
	if !t.gossip {
		return t.reach(ctx, t.seeds[0])
	}
	ctx, cancel := context.WithCancel(ctx)
	var asking sync.WaitGroup
	answers := make(chan reached, len(t.seeds))
	for _, seed := range t.seeds {
		asking.Go(func() { answers <- t.reachNamed(ctx, seed) })
	}
	defer func() {
		cancel()
		asking.Wait()
		close(answers)
		for r := range answers {
			r.drop()
		}
	}()
	var failed error
	for range t.seeds {
		r := <-answers
		var elsewhere *notLeaderError
		if r.err == nil || errors.As(r.err, &elsewhere) {
			return r.conn, r.err
		}
		failed = errors.Join(failed, r.err)
	}
	return nil, failed
}

// reached is what became of an attempt to connect.
type reached struct {
	conn *conn
	err  error
}

// drop closes a connection that nobody needs.
func (r reached) drop() {
	if r.conn != nil {
		r.conn.close()
	}
}

// reachNamed connects to the node that a seed says is the leader.
func (t target) reachNamed(ctx context.Context, seed string) reached {
	leader, err := t.ask(ctx, seed)
	if err != nil {
		return reached{nil, fmt.Errorf("asking %s who leads: %w", seed, err)}
	}
	c, err := t.reach(ctx, leader)
	return reached{c, err}
}

// reach connects to a node and wants an answer from it.
func (t target) reach(ctx context.Context, address string) (*conn, error) {
	ctx, cancel := context.WithTimeout(ctx, t.timeout)
	defer cancel()
	cc, err := grpc.NewClient(address, t.options...)
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", address, err)
	}
	c := &conn{address: address, cc: cc, streams: streams.NewStreamsClient(cc), lanes: newLanes()}
	c.markPatience = t.markPatience
	err = c.greet(ctx)
	if err == nil {
		return c, nil
	}
	c.close()
	var elsewhere *notLeaderError
	if errors.As(err, &elsewhere) {
		return nil, err
	}
	return nil, fmt.Errorf("connecting to %s: %s", address, strings.TrimPrefix(err.Error(), eventstore.ErrUnavailable.Error()+": "))
}

// greet waits for an answer, and for the transport to say that it is there, which it may do a moment later.
func (c *conn) greet(ctx context.Context) error {
	if _, _, err := c.lastEvent(ctx); err != nil {
		return err
	}
	for s := c.cc.GetState(); s != connectivity.Ready; s = c.cc.GetState() {
		if !c.cc.WaitForStateChange(ctx, s) {
			return ctx.Err()
		}
	}
	return nil
}

// ask asks a node who leads.
func (t target) ask(ctx context.Context, address string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, t.timeout)
	defer cancel()
	cc, err := grpc.NewClient(address, t.options...)
	if err != nil {
		return "", err
	}
	defer func() { _ = cc.Close() }()
	cluster, err := gossip.NewGossipClient(cc).Read(ctx, &shared.Empty{})
	if err != nil {
		return "", err
	}
	for _, m := range cluster.GetMembers() {
		if m.GetIsAlive() && m.GetState() == gossip.MemberInfo_Leader {
			end := m.GetHttpEndPoint()
			return join(end.GetAddress(), strconv.FormatUint(uint64(end.GetPort()), 10)), nil
		}
	}
	return "", errors.New("it knows of no leader")
}

// join makes an address of a host, bracketed or not, and a port.
func join(host, port string) string {
	if n := len(host); n > 1 && host[0] == '[' && host[n-1] == ']' {
		host = host[1 : n-1]
	}
	return net.JoinHostPort(host, port)
}

// lost is closed when the transport is gone.
func (c *conn) lost() <-chan struct{} {
	lost := make(chan struct{})
	c.watcher.Go(func() {
		defer close(lost)
		c.cc.WaitForStateChange(context.Background(), connectivity.Ready)
	})
	return lost
}

// close ends the calls of the connection.
func (c *conn) close() {
	_ = c.cc.Close()
	for i := range c.lanes {
		c.lanes[i].stop()
	}
	c.watcher.Wait()
}

// speechGap is the longest silence within which a server still counts as speaking. One that nobody asks anything
// answers a probe every probeAfter.
const speechGap = 900 * time.Millisecond

// answered notes a sign of life.
func (c *conn) answered() {
	now := time.Now().UnixNano()
	if now-c.heard.Swap(now) > int64(speechGap) {
		c.speaking.Store(now)
	}
}

func (c *conn) silence() time.Duration { return time.Since(time.Unix(0, c.heard.Load())) }

func (c *conn) heardSince(t time.Time) bool { return c.heard.Load() >= t.UnixNano() }

// speaksSince is since when the server has answered without a gap.
func (c *conn) speaksSince() time.Time { return time.Unix(0, c.speaking.Load()) }
