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

	"github.com/google/uuid"
	"google.golang.org/grpc/metadata"

	"lieudit/eventstore"
	"lieudit/eventstore/journal"
	"lieudit/eventstore/node"
)

// stalling is a node that can fall silent, behind a proxy that counts connections and a relay that counts calls.
func stalling(t *testing.T) (*node.Silence, *running) {
	t.Helper()
	var silence node.Silence
	dir := t.TempDir()
	j, err := journal.Open(dir, journal.Options{SegmentSize: 4 << 20})
	if err != nil {
		t.Fatal(err)
	}
	ln, err := node.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return &silence, start(t, dir, ln, j, node.Options{Faults: node.Faults{Silence: &silence}})
}

// elapses waits until so much time has gone by: a silence is a time, nothing else tells its end.
func elapses(t *testing.T, d time.Duration) {
	t.Helper()
	select {
	case <-time.After(d):
	case <-t.Context().Done():
	}
}

func TestAStallOfThreeSecondsLosesNeitherTheConnectionNorWhatIsOnItsWay(t *testing.T) {
	t.Parallel()
	silence, r := stalling(t)
	re := newRelay(t, r.at)
	var appends atomic.Int64
	p := newProxy(t, re.ln.Addr())
	s := dial(t, p.connection())
	for range 16 { // every lane has its pipeline
		land(t, s, "a-1", proposals(1))
	}
	ctx := within(t, limit)
	const writers = 64
	mark := here(t, s)
	told := make(chan error, 1)
	var seen []uuid.UUID
	go func() { told <- collect(ctx, s, mark, writers, &seen) }()
	before, calls := p.accepted.Load(), re.batch.Load()
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
	elapses(t, 1500*time.Millisecond)
	var stall *eventstore.StallError
	if err := s.Health(); !errors.As(err, &stall) || stall.For < time.Second {
		t.Errorf("health in the stall: %v, want a StallError", err)
	}
	elapses(t, 1900*time.Millisecond)
	if n := appends.Load(); n != 0 {
		t.Errorf("%d appends were answered in the silence", n)
	}
	silence.End()
	wrote.Wait()
	check(t, s, mark, told, &seen, writers)
	if n := p.accepted.Load() - before; n != 0 {
		t.Errorf("%d new connections", n)
	}
	if n := re.batch.Load() - calls; n != 0 {
		t.Errorf("%d new pipelines", n)
	}
	eventually(t, "health", s.Health)
}

func TestASilenceOfTenSecondsEndsTheConnection(t *testing.T) {
	t.Parallel()
	silence, r := stalling(t)
	p := newProxy(t, r.at)
	s := dial(t, p.connection())
	land(t, s, "a-1", proposals(1))
	silence.Begin()
	began := time.Now()
	batch := proposals(1)
	if _, err := s.Append(within(t, limit), "a-1", 0, batch); !errors.Is(err, eventstore.ErrUnknown) {
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
	if c, err := settle(within(t, limit), s, "a-1", 0, batch); err != nil || c.Revision != 1 {
		t.Errorf("sent again: %+v, %v, want revision 1", c, err)
	}
}

// cluster is three nodes of one log, each behind a proxy that can be silent or dead, and what they say of the leader.
type cluster struct {
	relays  [3]*relay
	proxies [3]*proxy
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	c, r := &cluster{}, serve(t, t.TempDir(), "127.0.0.1:0")
	for i := range c.relays {
		c.relays[i] = newRelay(t, r.at)
		c.proxies[i] = newProxy(t, c.relays[i].ln.Addr())
	}
	c.elect(t, 0)
	return c
}

// elect makes all nodes say that one of them leads.
func (c *cluster) elect(t *testing.T, leader int) {
	t.Helper()
	at := c.proxies[leader].ln.Addr()
	named, elsewhere := members(t, at.(*net.TCPAddr).AddrPort().Port()), redirect(at)
	for i, r := range c.relays {
		r.script(func(method string, md metadata.MD) (metadata.MD, error) {
			if i == leader || len(md.Get("requires-leader")) == 0 { // who asks for gossip takes any node's word
				return nil, nil
			}
			return elsewhere(method, md)
		}, named)
	}
}

func (c *cluster) connection() string {
	return fmt.Sprintf("esdb://%s,%s,%s?tls=false", c.proxies[0].ln.Addr(), c.proxies[1].ln.Addr(), c.proxies[2].ln.Addr())
}

// kill ends a node: nobody listens there any more.
func (c *cluster) kill(node int) {
	c.proxies[node].down.Store(true)
	c.proxies[node].cut()
}

// soon is much less than the ten seconds after which a silent server is given up, on a busy machine too.
const soon = 5 * time.Second

func TestALeaderThatFallsSilentIsLeftForTheOneTheOthersName(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	s := dial(t, c.connection())
	land(t, s, "a-1", proposals(1))
	c.proxies[0].stall()
	elapses(t, 1200*time.Millisecond)
	c.elect(t, 1)
	elected := time.Now()
	land(t, s, "a-1", proposals(1))
	if took := time.Since(elected); took > soon {
		t.Errorf("it took %v from the election, want about a second", took)
	} else {
		t.Logf("%v from the election to the next append", took)
	}
}

func TestASilentLeaderWhomTheOthersStillNameIsKept(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	s := dial(t, c.connection())
	land(t, s, "a-1", proposals(1))
	leader, asked := c.proxies[0].accepted.Load(), c.proxies[1].accepted.Load()
	c.proxies[0].stall()
	wrote := make(chan error, 1)
	go func() {
		_, err := s.Append(within(t, limit), "a-1", 0, proposals(1))
		wrote <- err
	}()
	elapses(t, 3*time.Second)
	c.proxies[0].flow()
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

func TestADeadLeaderIsFollowedAsSoonAsThereIsAnother(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	s := dial(t, c.connection())
	land(t, s, "a-1", proposals(1))
	c.kill(0)
	elapses(t, time.Second) // that the cluster needs to elect another
	c.elect(t, 2)
	elected := time.Now()
	land(t, s, "a-1", proposals(1))
	if took := time.Since(elected); took > soon {
		t.Errorf("it took %v from the election, want about a second", took)
	} else {
		t.Logf("%v from the election to the next append", took)
	}
}

func TestAFollowersDeathIsNotNoticed(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	s := dial(t, c.connection())
	land(t, s, "a-1", proposals(1))
	leader := c.proxies[0].accepted.Load()
	c.kill(1)
	for i := range 100 {
		if _, err := s.Append(within(t, limit), "a-1", eventstore.Revision(i), proposals(1)); err != nil {
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
