package simulation

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/test/bufconn"

	"lieudit/cmd/bench/simulation/faults"
	"lieudit/eventstore/memory"
	eventnode "lieudit/eventstore/node" // a node is a machine in this package
	"lieudit/eventstore/node/faulttest"
)

// server serves a log as lieudit's node does, over connections in memory. Its clients are those of package esdb.
type server struct {
	log     *memory.Log
	slog    *slog.Logger
	faults  faulttest.Faults
	silence faulttest.Silence

	mu       sync.Mutex
	listener *bufconn.Listener // nil: it does not run
	stop     context.CancelFunc
	ended    chan error
}

// newServer makes a server that fails as an EventStoreDB does where a node is kinder. It does not run yet. That an EventStoreDB with its
// database in memory is silent for a minute at a position inside a record is left out: a day is shorter.
func newServer(l *memory.Log, seed uint64, log *slog.Logger) *server {
	s := &server{log: l, slog: log}
	answers := []faulttest.InsideRecord{faulttest.InsideRecordRefused, faulttest.InsideRecordFailed}
	s.faults = faulttest.Faults{Silence: &s.silence, RepeatTimeout: repeatTimeout, InsideRecord: answers[seed/serverInterval%uint64(len(answers))]}
	return s
}

// repeatTimeout is after how long an EventStoreDB answers an append that it dropped, because the first sending is under way.
const repeatTimeout = 2 * time.Second

// bufferSize is how many bytes are on their way in each direction of a connection.
const bufferSize = 64 << 10

// start has the server run.
func (s *server) start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener != nil {
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	listener, ended := bufconn.Listen(bufferSize), make(chan error, 1)
	s.listener, s.stop, s.ended = listener, stop, ended
	go func() {
		ended <- s.faults.Serve(ctx, s.log, eventnode.Options{Logger: s.slog}, listener)
	}()
}

// end stops the server and waits for its end. Calls under way have some seconds to finish.
func (s *server) end() error {
	s.mu.Lock()
	listener, stop, ended := s.listener, s.stop, s.ended
	s.listener = nil
	s.mu.Unlock()
	if listener == nil {
		return nil
	}
	stop()
	return <-ended
}

// errNoServer is what a dialer gets while no server runs.
var errNoServer = errors.New("connection refused")

// dial connects to the server.
func (s *server) dial(ctx context.Context) (net.Conn, error) {
	s.mu.Lock()
	l := s.listener
	s.mu.Unlock()
	if l == nil {
		return nil, errNoServer
	}
	return l.DialContext(ctx)
}

// startServers puts a server before each log. It comes before Start.
func (w *World) startServers() {
	w.servers = map[string]*server{
		faults.CoreServer:  newServer(w.core, w.seed, w.log.With("server", faults.CoreServer)),
		faults.UsageServer: newServer(w.usage, w.seed, w.log.With("server", faults.UsageServer)),
	}
	for _, s := range w.servers {
		s.start()
	}
}

// endServers ends the servers, where there are some.
func (w *World) endServers() (err error) {
	for _, s := range w.servers {
		err = errors.Join(err, s.end())
	}
	return err
}

// connections are those of one run to the servers.
type connections struct {
	mu     sync.Mutex
	open   []net.Conn
	isDead bool
}

// dialer returns a function that connects to a server and keeps the connection in mind.
func (c *connections) dialer(s *server) func(context.Context) (net.Conn, error) {
	return func(ctx context.Context) (net.Conn, error) {
		made, err := s.dial(ctx)
		if err != nil {
			return nil, err
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.isDead {
			return nil, errors.Join(errNoServer, made.Close())
		}
		c.open = append(c.open, made)
		return made, nil
	}
}

// cut closes all connections; a closed one may be closed again. What is on its way is lost.
func (c *connections) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, made := range c.open {
		_ = made.Close() // it always succeeds
	}
	c.open = slices.Delete(c.open, 0, len(c.open))
}

// kill cuts all connections, and no more are made.
func (c *connections) kill() {
	c.mu.Lock()
	c.isDead = true
	c.mu.Unlock()
	c.cut()
}
