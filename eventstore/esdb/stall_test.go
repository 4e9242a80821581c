package esdb_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/gossip"
	"github.com/google/uuid"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"lieudit/eventstore"
	"lieudit/eventstore/journal"
	"lieudit/eventstore/node"
	"lieudit/eventstore/node/faulttest"
)

// serveWithSilence serves a node that a test can make silent.
func serveWithSilence(t *testing.T) (*faulttest.Silence, *runningNode) {
	t.Helper()
	var silence faulttest.Silence
	dir := t.TempDir()
	j, err := journal.Open(dir, journal.Options{SegmentSize: 4 << 20})
	if err != nil {
		t.Fatal(err)
	}
	ln, err := node.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return &silence, serveJournal(t, dir, ln, j, faulttest.Faults{Silence: &silence})
}

// sleepFor waits for a time: no event ends a silence.
func sleepFor(t *testing.T, d time.Duration) {
	t.Helper()
	select {
	case <-time.After(d):
	case <-t.Context().Done():
	}
}

func TestAStallOfThreeSecondsLosesNeitherTheConnectionNorTheCallsInFlight(t *testing.T) {
	t.Parallel()
	silence, r := serveWithSilence(t)
	re := newRelay(t, r.addr)
	var appends atomic.Int64
	p := newProxy(t, re.ln.Addr())
	s := dial(t, p.connection())
	for range 16 { // opens every pipeline
		mustAppend(t, s, "a-1", proposals(1))
	}
	ctx := withTimeout(t, limit)
	const writers = 64
	checkpoint := mustCheckpoint(t, s)
	collected := make(chan error, 1)
	var seen []uuid.UUID
	go func() { collected <- collect(ctx, s, checkpoint, writers, &seen) }()
	before, calls := p.accepted.Load(), re.pipelineCalls.Load()
	silence.Begin()
	var wrote sync.WaitGroup
	for i := range writers {
		wrote.Go(func() {
			c, err := s.Append(ctx, fmt.Sprintf("a-s%d", i), eventstore.NoStream, proposals(1))
			if err != nil || c.Revision != 0 {
				t.Errorf("append %d: %+v, %v", i, c, err)
			}
			appends.Add(1)
		})
	}
	sleepFor(t, 1500*time.Millisecond)
	var stall *eventstore.StallError
	if err := s.Health(); !errors.As(err, &stall) || stall.Duration < time.Second {
		t.Errorf("health in the stall: %v, want a StallError", err)
	}
	sleepFor(t, 1900*time.Millisecond)
	if n := appends.Load(); n != 0 {
		t.Errorf("%d appends were answered in the silence", n)
	}
	silence.End()
	wrote.Wait()
	requireSameEvents(t, s, checkpoint, collected, &seen, writers)
	if n := p.accepted.Load() - before; n != 0 {
		t.Errorf("%d new connections", n)
	}
	if n := re.pipelineCalls.Load() - calls; n != 0 {
		t.Errorf("%d new pipelines", n)
	}
	eventually(t, "health", s.Health)
}

func TestASilenceOfTenSecondsEndsTheConnection(t *testing.T) {
	t.Parallel()
	silence, r := serveWithSilence(t)
	p := newProxy(t, r.addr)
	s := dial(t, p.connection())
	mustAppend(t, s, "a-1", proposals(1))
	silence.Begin()
	began := time.Now()
	batch := proposals(1)
	if _, err := s.Append(withTimeout(t, limit), "a-1", 0, batch); !errors.Is(err, eventstore.ErrUnknown) {
		t.Errorf("the append on its way: %v, want unknown", err)
	}
	if took := time.Since(began); took < 9*time.Second || took > 15*time.Second {
		t.Errorf("given up after %v, want 10 s", took)
	}
	eventually(t, "it is told at once that the log is away", func() error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := s.Append(ctx, "a-2", eventstore.Any, proposals(1)); !errors.Is(err, eventstore.ErrUnavailable) {
			return fmt.Errorf("got %v, want unavailable", err)
		}
		return nil
	})
	silence.End()
	if c, err := appendUntilKnown(withTimeout(t, limit), s, "a-1", 0, batch); err != nil || c.Revision != 1 {
		t.Errorf("sent again: %+v, %v, want revision 1", c, err)
	}
}

// cluster is three nodes of one log. Each is behind a relay that names the leader and a proxy that can be silent or dead.
type cluster struct {
	relays  [3]*relay
	proxies [3]*proxy
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	c, r := &cluster{}, serveFolder(t, t.TempDir(), "127.0.0.1:0")
	for i := range c.relays {
		c.relays[i] = newRelay(t, r.addr)
		c.proxies[i] = newProxy(t, c.relays[i].ln.Addr())
	}
	c.setLeader(t, 0)
	return c
}

// setLeader makes all nodes name one of them as the leader.
func (c *cluster) setLeader(t *testing.T, leader int) {
	t.Helper()
	at := c.proxies[leader].ln.Addr()
	named, notLeader := gossipMembers(t, at.(*net.TCPAddr).AddrPort().Port()), redirectTo(at)
	for i, r := range c.relays {
		r.setScript(func(method string, md metadata.MD) (metadata.MD, error) {
			if i == leader || len(md.Get("requires-leader")) == 0 { // every node answers gossip
				return nil, nil
			}
			return notLeader(method, md)
		}, named)
	}
}

func (c *cluster) connection() string {
	return fmt.Sprintf("esdb://%s,%s,%s?tls=false", c.proxies[0].ln.Addr(), c.proxies[1].ln.Addr(), c.proxies[2].ln.Addr())
}

// killNode ends a node: nobody listens there any more.
func (c *cluster) killNode(node int) {
	c.proxies[node].refusesConnections.Store(true)
	c.proxies[node].closeAll()
}

// maxFailover is much less than the ten seconds after which a silent server is given up, on a busy machine too.
const maxFailover = 5 * time.Second

func TestASilentLeaderIsReplacedByTheOneTheOthersName(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	s := dial(t, c.connection())
	mustAppend(t, s, "a-1", proposals(1))
	c.proxies[0].holdAll()
	sleepFor(t, 1200*time.Millisecond)
	c.setLeader(t, 1)
	elected := time.Now()
	mustAppend(t, s, "a-1", proposals(1))
	if took := time.Since(elected); took > maxFailover {
		t.Errorf("it took %v from the election, want about a second", took)
	} else {
		t.Logf("%v from the election to the next append", took)
	}
}

// awaitConnections returns how many connections the first two nodes have accepted, once that has not changed for a while: a
// store that has found the leader continues while slower nodes, and the leader itself, are still being asked.
func (c *cluster) awaitConnections(t *testing.T) (first, second int32) {
	t.Helper()
	for {
		first, second = c.proxies[0].accepted.Load(), c.proxies[1].accepted.Load()
		if sleepFor(t, 300*time.Millisecond); c.proxies[0].accepted.Load() == first && c.proxies[1].accepted.Load() == second {
			return first, second
		}
	}
}

func TestASilentLeaderThatTheOthersStillNameIsKept(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	s := dial(t, c.connection())
	mustAppend(t, s, "a-1", proposals(1))
	leader, asked := c.awaitConnections(t)
	c.proxies[0].holdAll()
	wrote := make(chan error, 1)
	go func() {
		_, err := s.Append(withTimeout(t, limit), "a-1", 0, proposals(1))
		wrote <- err
	}()
	sleepFor(t, 3*time.Second)
	c.proxies[0].releaseAll()
	if err := <-wrote; err != nil {
		t.Errorf("the append on its way: %v", err)
	}
	if n := c.proxies[0].accepted.Load() - leader; n != 0 {
		t.Errorf("%d new connections to the leader", n)
	}
	if c.proxies[1].accepted.Load() == asked {
		t.Error("nobody was asked who leads")
	}
}

func TestADeadLeaderIsReplacedAsSoonAsAnotherIsElected(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	s := dial(t, c.connection())
	mustAppend(t, s, "a-1", proposals(1))
	c.killNode(0)
	sleepFor(t, time.Second) // that the cluster needs to elect another
	c.setLeader(t, 2)
	elected := time.Now()
	mustAppend(t, s, "a-1", proposals(1))
	if took := time.Since(elected); took > maxFailover {
		t.Errorf("it took %v from the election, want about a second", took)
	} else {
		t.Logf("%v from the election to the next append", took)
	}
}

func TestTheDeathOfAFollowerDisturbsNoCall(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	s := dial(t, c.connection())
	mustAppend(t, s, "a-1", proposals(1))
	leader := c.proxies[0].accepted.Load()
	c.killNode(1)
	for i := range 100 {
		if _, err := s.Append(withTimeout(t, limit), "a-1", eventstore.Revision(i), proposals(1)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Health(); err != nil {
		t.Error(err)
	}
	if n := c.proxies[0].accepted.Load() - leader; n != 0 {
		t.Errorf("%d new connections to the leader", n)
	}
}

func TestFollowsTheLeaderANodeNames(t *testing.T) {
	t.Parallel()
	r := serveFolder(t, t.TempDir(), "127.0.0.1:0")
	leader, other := newRelay(t, r.addr), newRelay(t, r.addr)
	other.setScript(redirectTo(leader.ln.Addr()), nil)
	s := dial(t, other.connection())
	mustAppend(t, s, "a-1", proposals(1))

	leader.setScript(redirectTo(other.ln.Addr()), nil) // the two change roles
	other.setScript(nil, nil)
	for i := range 3 {
		if _, err := s.Append(withTimeout(t, limit), "a-1", eventstore.Revision(i), proposals(1)); err != nil {
			t.Errorf("append %d after the leader changed: %v", i, err)
		}
	}
}

// redirectTo answers like a node that does not lead.
func redirectTo(leader net.Addr) func(string, metadata.MD) (metadata.MD, error) {
	host, port, _ := net.SplitHostPort(leader.String())
	return func(_ string, md metadata.MD) (metadata.MD, error) {
		if len(md.Get("requires-leader")) == 0 {
			return nil, status.Error(codes.InvalidArgument, "requires-leader is missing")
		}
		return metadata.Pairs("exception", "not-leader", "leader-endpoint-host", host, "leader-endpoint-port", port),
			status.Error(codes.NotFound, "Leader info available")
	}
}

func TestFindsTheLeaderByGossip(t *testing.T) {
	t.Parallel()
	r := serveFolder(t, t.TempDir(), "127.0.0.1:0")
	first, second := newRelay(t, r.addr), newRelay(t, r.addr)
	dead := r.addr.(*net.TCPAddr).AddrPort().Port() // nobody listens at port 1
	first.setScript(nil, gossipMembers(t, 1))
	second.setScript(nil, gossipMembers(t, dead))
	list := fmt.Sprintf("esdb://127.0.0.1:1,%s,%s?tls=false", first.ln.Addr(), second.ln.Addr())
	for _, connection := range []string{list, "esdb+discover://" + second.ln.Addr().String() + "?tls=false"} {
		s := dial(t, connection)
		mustAppend(t, s, "a-1", proposals(1))
	}
}

// gossipMembers makes gossip name a follower, a dead leader and the leader at a port.
func gossipMembers(t *testing.T, port uint16) func(string, []byte) ([]byte, error) {
	one := func(state gossip.MemberInfo_VNodeState, alive bool, port uint16) *gossip.MemberInfo {
		return &gossip.MemberInfo{State: state, IsAlive: alive, HttpEndPoint: &gossip.EndPoint{Address: "127.0.0.1", Port: uint32(port)}}
	}
	cluster, err := proto.Marshal(&gossip.ClusterInfo{Members: []*gossip.MemberInfo{
		one(gossip.MemberInfo_Follower, true, 2), one(gossip.MemberInfo_Leader, false, 3), one(gossip.MemberInfo_Leader, true, port),
	}})
	if err != nil {
		t.Fatal(err)
	}
	return func(_ string, payload []byte) ([]byte, error) {
		var was gossip.ClusterInfo
		if proto.Unmarshal(payload, &was) == nil && len(was.GetMembers()) == 1 && was.GetMembers()[0].GetIsAlive() {
			return cluster, nil
		}
		return payload, nil
	}
}
