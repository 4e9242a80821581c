package esdb

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
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

// conn is one connection to one node, from the node's first answer until the connection is lost. It is never repaired. Its
// calls are safe for concurrent use; only the connector closes it.
type conn struct {
	address         string
	grpcConn        *grpc.ClientConn
	streams         streams.StreamsClient
	epoch           time.Time    // when the connection was begun; elapsed time counts from here, whatever the wall clock is set to
	lastResponse    atomic.Int64 // time of the last answer, in nanoseconds after epoch
	respondingSince atomic.Int64 // since when answers came without a gap of maxResponseGap, in nanoseconds after epoch
	transportWatch  sync.WaitGroup

	pipelines    [pipelinesPerConn]pipelineSlot
	nextPipeline atomic.Uint32 // counts up; modulo the number of slots

	identityMu sync.Mutex // guards logID
	logID      uuid.UUID  // zero: not read yet

	checkpointTimeout time.Duration // see target
}

// connectToLeader connects to the node that leads: at the address hint if that works, otherwise at the only server or at the
// address from gossip. The error wraps a *notLeaderError if a reached node names another leader.
func (t target) connectToLeader(ctx context.Context, hint string) (*conn, error) {
	if hint != "" {
		if c, err := t.dial(ctx, hint); err == nil {
			return c, nil
		}
	}
	c, err := t.dialLeader(ctx)
	if _, redirected := leaderFrom(err); err == nil || redirected {
		return c, err
	}
	return nil, fmt.Errorf("%w: %v", eventstore.ErrUnavailable, err) // %v, because a deadline of connecting is not the caller's
}

// dialLeader connects to the only server, or asks all seeds at once who leads and takes the first connection that answers as
// the leader: a silent seed delays nothing. An errgroup does not fit, because the first success ends the search and the other
// connections have to be closed.
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
	// End attempts that are still running, and close connections that came second.
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
		if _, redirected := leaderFrom(r.err); r.err == nil || redirected {
			return r.conn, r.err
		}
		failed = errors.Join(failed, r.err)
	}
	return nil, failed
}

// dialResult is the result of one attempt to connect.
type dialResult struct {
	conn *conn
	err  error
}

// closeConn closes a connection that is not needed.
func (r dialResult) closeConn() {
	if r.conn != nil {
		r.conn.close()
	}
}

// dialLeaderNamedBy connects to the node that a seed names as the leader.
func (t target) dialLeaderNamedBy(ctx context.Context, seed string) dialResult {
	leader, err := t.readLeaderFromGossip(ctx, seed)
	if err != nil {
		return dialResult{nil, fmt.Errorf("asking %s who leads: %w", seed, t.explainDialError(ctx, seed, err))}
	}
	c, err := t.dial(ctx, leader)
	return dialResult{c, err}
}

// dial connects to a node and waits for an answer to a read, within the target's timeout. The read requires the
// leader, so a node that does not lead is refused with a *notLeaderError. The caller closes the connection.
func (t target) dial(ctx context.Context, address string) (*conn, error) {
	ctx, cancel := context.WithTimeout(ctx, t.timeout)
	defer cancel()
	grpcConn, err := grpc.NewClient(address, t.dialOptions...)
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", address, err)
	}
	c := &conn{
		address: address, grpcConn: grpcConn, streams: streams.NewStreamsClient(grpcConn), epoch: time.Now(),
		pipelines: newPipelineSlots(), checkpointTimeout: t.checkpointTimeout,
	}
	err = c.waitUntilReady(ctx)
	if err == nil {
		return c, nil
	}
	c.close()
	if _, redirected := leaderFrom(err); redirected {
		return nil, err
	}
	err = t.explainDialError(ctx, address, withoutKind(err))
	return nil, fmt.Errorf("connecting to %s: %v", address, err) // %v, because a status of one server is not the caller's
}

// withoutKind is the cause of an ErrUnavailable, so that a text does not repeat that the log is unavailable.
func withoutKind(err error) error {
	if all, ok := err.(interface{ Unwrap() []error }); ok && len(all.Unwrap()) == 2 && all.Unwrap()[0] == eventstore.ErrUnavailable {
		return all.Unwrap()[1]
	}
	return err
}

// waitUntilReady waits for an answer to a read. It also waits until gRPC reports the transport as ready, which may happen a
// moment later: watchTransport starts from that state.
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

// readLeaderFromGossip asks a node for the address of the leader, on a connection of its own.
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

// joinHostPort makes an address of a host, with or without brackets, and a port.
func joinHostPort(host, port string) string {
	if n := len(host); n > 1 && host[0] == '[' && host[n-1] == ']' {
		host = host[1 : n-1]
	}
	return net.JoinHostPort(host, port)
}

// watchTransport returns a channel that is closed when the transport is gone. The transport must be ready. close ends the
// goroutine.
func (c *conn) watchTransport() <-chan struct{} {
	lost := make(chan struct{})
	c.transportWatch.Go(func() {
		defer close(lost)
		c.grpcConn.WaitForStateChange(context.Background(), connectivity.Ready)
	})
	return lost
}

// close ends the calls of the connection and waits for the goroutines of its pipelines and of watchTransport.
func (c *conn) close() {
	_ = c.grpcConn.Close()
	for i := range c.pipelines {
		c.pipelines[i].stop()
	}
	c.transportWatch.Wait()
}

// maxResponseGap is the longest time between two answers of a server that counts as responsive. It is longer than the
// interval of probes, so an idle connection stays responsive.
const maxResponseGap = 900 * time.Millisecond

// recordResponse records that the server has just answered.
func (c *conn) recordResponse() {
	now := int64(time.Since(c.epoch))
	if now-c.lastResponse.Swap(now) > int64(maxResponseGap) {
		c.respondingSince.Store(now)
	}
}

// silence is the time since the last answer, or since the connection was begun.
func (c *conn) silence() time.Duration {
	return time.Since(c.epoch) - time.Duration(c.lastResponse.Load())
}

// hasRespondedSince reports whether the server has answered anything since t, a time of time.Now.
func (c *conn) hasRespondedSince(t time.Time) bool {
	return time.Duration(c.lastResponse.Load()) >= t.Sub(c.epoch)
}

// responsiveSince is when the present run of answers without a gap began. It can be compared with times of time.Now.
func (c *conn) responsiveSince() time.Time {
	return c.epoch.Add(time.Duration(c.respondingSince.Load()))
}
