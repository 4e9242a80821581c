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

// server serves a log as lieudit's node does, over connections in memory, to clients of package esdb.
type server struct {
	log     *memory.Log
	slog    *slog.Logger
	faults  faulttest.Faults
	silence faulttest.Silence

	mu       sync.Mutex
	listener *bufconn.Listener // nil: not running
	stop     context.CancelFunc
	ended    chan error
}

// newServer returns a server that does not run yet. Where the node is more lenient than EventStoreDB, it fails as EventStoreDB does, with one
// exception: an EventStoreDB with its database in memory is silent for a minute at a position inside a record, which is longer than a day here.
func newServer(l *memory.Log, seed uint64, log *slog.Logger) *server {
	s := &server{log: l, slog: log}
	answers := []faulttest.InsideRecord{faulttest.InsideRecordRefused, faulttest.InsideRecordFailed}
	s.faults = faulttest.Faults{Silence: &s.silence, RepeatTimeout: repeatTimeout, InsideRecord: answers[seed/serverInterval%uint64(len(answers))]}
	return s
}

// repeatTimeout is the delay after which an EventStoreDB answers an append that it dropped because the first sending is under way.
const repeatTimeout = 2 * time.Second

// bufferSize is the number of bytes that can be under way in each direction of a connection.
const bufferSize = 64 << 10

// start starts the server.
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

// errNoServer is the error of a dialer while no server runs.
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

// endServers ends the servers, if there are any.
func (w *World) endServers() (err error) {
	for _, s := range w.servers {
		err = errors.Join(err, s.end())
	}
	return err
}

// connections are one run's connections to the servers.
type connections struct {
	mu     sync.Mutex
	open   []net.Conn
	isDead bool
}

// dialer returns a function that connects to a server and remembers the connection.
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

// cut closes all connections, even those that are closed already. Data under way is lost.
func (c *connections) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, made := range c.open {
		_ = made.Close() // it always succeeds
	}
	c.open = slices.Delete(c.open, 0, len(c.open))
}

// kill cuts all connections and prevents new ones.
func (c *connections) kill() {
	c.mu.Lock()
	c.isDead = true
	c.mu.Unlock()
	c.cut()
}
