package main

import (
	"context"
	"io"
	"net"
	"net/url"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"lieudit/cmd/lieudit/service"
	"lieudit/eventstore/journal"
	"lieudit/eventstore/node"
	"lieudit/eventstore/node/faulttest"
)

// testNode is a node that a test can stop, start again on the same journal and socket, and keep silent.
type testNode struct {
	dir, socket string
	journal     *journal.Journal
	silence     faulttest.Silence
	stop        func()
	faults      faulttest.Faults
}

func (n *testNode) address() string { return "esdb+unix://" + n.socket }

func (n *testNode) start(t *testing.T) {
	t.Helper()
	j, err := journal.Open(n.dir, journal.Options{SegmentSize: 4 << 20})
	if err != nil {
		t.Fatal(err)
	}
	n.journal = j
	end := n.serve(t, n.socket, &n.silence)
	n.stop = func() {
		n.stop = func() {} // the cleanup of a test stops it again
		end()
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	}
}

// serve serves the journal at a socket until stop is called.
func (n *testNode) serve(t *testing.T, socket string, silence *faulttest.Silence) (stop func()) {
	t.Helper()
	ln, err := node.Listen(t.Context(), "unix:"+socket)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		faults := n.faults
		faults.Silence = silence
		ended <- faults.Serve(ctx, n.journal, node.Options{StopTimeout: 10 * time.Millisecond}, ln)
	}()
	return func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

func startNode(t *testing.T) *testNode {
	t.Helper()
	return startNodeWithFaults(t, faulttest.Faults{})
}

func startNodeWithFaults(t *testing.T, faults faulttest.Faults) *testNode {
	t.Helper()
	n := &testNode{dir: t.TempDir(), socket: filepath.Join(t.TempDir(), "node.sock"), faults: faults}
	n.start(t)
	t.Cleanup(func() { n.stop() })
	return n
}

// withServers makes a service run on a node and a Postgres database.
func withServers(n *testNode, postgres string) func(*service.Config) {
	return func(c *service.Config) { c.EventStore, c.Postgres = n.address(), postgres }
}

// withNode makes a service run on a node, with its read models in its data folder.
func withNode(n *testNode) func(*service.Config) {
	return func(c *service.Config) { c.EventStore = n.address() }
}

// silenceFor keeps the node silent for a time.
func (n *testNode) silenceFor(t *testing.T, d time.Duration) {
	t.Helper()
	n.silence.Begin()
	defer n.silence.End()
	sleepFor(t, d)
}

// proxy passes TCP connections on to a server while it is open. Closed, it drops those it has and new ones.
type proxy struct {
	network, server string // where connections go
	address         string // where the proxy listens

	mu          sync.Mutex
	isClosed    bool
	connections map[net.Conn]bool
}

// startProxy starts an open proxy of a server and ends it with the test.
func startProxy(t *testing.T, network, server string) *proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{network: network, server: server, address: listener.Addr().String(), connections: map[net.Conn]bool{}}
	var forwarding sync.WaitGroup
	forwarding.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			forwarding.Go(func() { p.forward(client) })
		}
	})
	t.Cleanup(func() {
		listener.Close()
		p.setClosed(true)
		forwarding.Wait()
	})
	return p
}

// proxyPostgres starts a proxy of a Postgres and returns it with the URL that leads through it.
func proxyPostgres(t *testing.T, address string) (*proxy, string) {
	t.Helper()
	server, err := pgconn.ParseConfig(address)
	if err != nil {
		t.Fatal(err)
	}
	network, target := pgconn.NetworkAddress(server.Host, server.Port)
	p := startProxy(t, network, target)
	u := url.URL{Scheme: "postgres", User: url.UserPassword(server.User, server.Password), Host: p.address, Path: server.Database}
	u.RawQuery = url.Values{"sslmode": {"disable"}}.Encode()
	return p, u.String()
}

// forward copies in both directions until one side ends or the proxy is closed.
func (p *proxy) forward(client net.Conn) {
	defer client.Close()
	server, err := net.Dial(p.network, p.server)
	if err != nil {
		return
	}
	defer server.Close()
	p.mu.Lock()
	if p.isClosed {
		p.mu.Unlock()
		return
	}
	p.connections[client], p.connections[server] = true, true
	p.mu.Unlock()
	var back sync.WaitGroup
	back.Go(func() {
		io.Copy(client, server)
		client.Close()
	})
	io.Copy(server, client)
	server.Close()
	back.Wait()
}

// setClosed closes the proxy or opens it.
func (p *proxy) setClosed(closed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.isClosed = closed
	for connection := range p.connections {
		connection.Close()
	}
	clear(p.connections)
}
