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
	address         string
	grpcConn        *grpc.ClientConn
	streams         streams.StreamsClient
	lastResponse    atomic.Int64 // when the server last answered, Unix nanoseconds
	respondingSince atomic.Int64 // since when it has answered without a gap
	transportWatch  sync.WaitGroup

	pipelines    [pipelinesPerConn]pipelineSlot
	nextPipeline atomic.Uint32 // whose turn it is

	identityMu sync.Mutex // held while the identity is found
	logID      uuid.UUID

	checkpointTimeout time.Duration // see readMark
}

// connectToLeader reaches the node that leads: the one named by hint, else the server, else whom gossip names. The error wraps
// a *notLeaderError when a node that was reached names another one.
func (t target) connectToLeader(ctx context.Context, hint string) (*conn, error) {
	if hint != "" {
		if c, err := t.dial(ctx, hint); err == nil {
			return c, nil
		}
	}
	c, err := t.dialLeader(ctx)
	var notLeader *notLeaderError
	if err == nil || errors.As(err, &notLeader) {
		return c, err
	}
	return nil, fmt.Errorf("%w: %v", eventstore.ErrUnavailable, err) // whose deadlines are not the callers'
}

// dialLeader connects to the server, or asks all seeds at once who leads and connects to the first who answers as
// the leader: a seed that is silent holds up nobody.
func (t target) dialLeader(ctx context.Context) (*conn, error) {
	if !t.usesGossip {
		return t.dial(ctx, t.seeds[0])
	}
	ctx, cancel := context.WithCancel(ctx)
	var dials sync.WaitGroup
	results := make(chan dialResult, len(t.seeds))
	for _, seed := range t.seeds {
		dials.Go(func() { results <- t.dialLeaderNamedBy(ctx, seed) })
	}
	defer func() {
		cancel()
		dials.Wait()
		close(results)
		for r := range results {
			r.closeConn()
		}
	}()
	var failed error
	for range t.seeds {
		r := <-results
		var notLeader *notLeaderError
		if r.err == nil || errors.As(r.err, &notLeader) {
			return r.conn, r.err
		}
		failed = errors.Join(failed, r.err)
	}
	return nil, failed
}

// dialResult is what became of an attempt to connect.
type dialResult struct {
	conn *conn
	err  error
}

// closeConn closes a connection that nobody needs.
func (r dialResult) closeConn() {
	if r.conn != nil {
		r.conn.close()
	}
}

// dialLeaderNamedBy connects to the node that a seed says is the leader.
func (t target) dialLeaderNamedBy(ctx context.Context, seed string) dialResult {
	leader, err := t.readLeaderFromGossip(ctx, seed)
	if err != nil {
		return dialResult{nil, fmt.Errorf("asking %s who leads: %w", seed, err)}
	}
	c, err := t.dial(ctx, leader)
	return dialResult{c, err}
}

// dial connects to a node and wants an answer from it.
func (t target) dial(ctx context.Context, address string) (*conn, error) {
	ctx, cancel := context.WithTimeout(ctx, t.timeout)
	defer cancel()
	grpcConn, err := grpc.NewClient(address, t.dialOptions...)
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", address, err)
	}
	c := &conn{address: address, grpcConn: grpcConn, streams: streams.NewStreamsClient(grpcConn), pipelines: newPipelineSlots()}
	c.checkpointTimeout = t.checkpointTimeout
	err = c.waitUntilReady(ctx)
	if err == nil {
		return c, nil
	}
	c.close()
	var notLeader *notLeaderError
	if errors.As(err, &notLeader) {
		return nil, err
	}
	return nil, fmt.Errorf("connecting to %s: %s", address, strings.TrimPrefix(err.Error(), eventstore.ErrUnavailable.Error()+": "))
}

// waitUntilReady waits for an answer, and for the transport to say that it is there, which it may do a moment later.
func (c *conn) waitUntilReady(ctx context.Context) error {
	if _, _, err := c.readLastEvent(ctx); err != nil {
		return err
	}
	for s := c.grpcConn.GetState(); s != connectivity.Ready; s = c.grpcConn.GetState() {
		if !c.grpcConn.WaitForStateChange(ctx, s) {
			return ctx.Err()
		}
	}
	return nil
}

// readLeaderFromGossip asks a node who leads.
func (t target) readLeaderFromGossip(ctx context.Context, address string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, t.timeout)
	defer cancel()
	grpcConn, err := grpc.NewClient(address, t.dialOptions...)
	if err != nil {
		return "", err
	}
	defer func() { _ = grpcConn.Close() }()
	cluster, err := gossip.NewGossipClient(grpcConn).Read(ctx, &shared.Empty{})
	if err != nil {
		return "", err
	}
	for _, m := range cluster.GetMembers() {
		if m.GetIsAlive() && m.GetState() == gossip.MemberInfo_Leader {
			endpoint := m.GetHttpEndPoint()
			return joinHostPort(endpoint.GetAddress(), strconv.FormatUint(uint64(endpoint.GetPort()), 10)), nil
		}
	}
	return "", errors.New("it knows of no leader")
}

// joinHostPort makes an address of a host, bracketed or not, and a port.
func joinHostPort(host, port string) string {
	if n := len(host); n > 1 && host[0] == '[' && host[n-1] == ']' {
		host = host[1 : n-1]
	}
	return net.JoinHostPort(host, port)
}

// watchTransport is closed when the transport is gone.
func (c *conn) watchTransport() <-chan struct{} {
	lost := make(chan struct{})
	c.transportWatch.Go(func() {
		defer close(lost)
		c.grpcConn.WaitForStateChange(context.Background(), connectivity.Ready)
	})
	return lost
}

// close ends the calls of the connection.
func (c *conn) close() {
	_ = c.grpcConn.Close()
	for i := range c.pipelines {
		c.pipelines[i].stop()
	}
	c.transportWatch.Wait()
}

// maxResponseGap is the longest silence within which a server still counts as speaking. One that nobody asks anything
// answers a probe every probeAfter.
const maxResponseGap = 900 * time.Millisecond

// recordResponse notes a sign of life.
func (c *conn) recordResponse() {
	now := time.Now().UnixNano()
	if now-c.lastResponse.Swap(now) > int64(maxResponseGap) {
		c.respondingSince.Store(now)
	}
}

func (c *conn) silence() time.Duration { return time.Since(time.Unix(0, c.lastResponse.Load())) }

func (c *conn) hasRespondedSince(t time.Time) bool { return c.lastResponse.Load() >= t.UnixNano() }

// responsiveSince is since when the server has answered without a gap.
func (c *conn) responsiveSince() time.Time { return time.Unix(0, c.respondingSince.Load()) }
