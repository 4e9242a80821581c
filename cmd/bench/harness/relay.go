package harness

import (
	"context"
	"io"
	"net"
	"net/url"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Relay stands between one process and a Postgres, and can take that Postgres away from the process while others keep it. It listens on a free
// port of the loopback. Its methods are safe for concurrent use.
type Relay struct {
	URL string // of the same database, through the relay

	network, server string // where the Postgres listens
	listener        net.Listener
	connections     sync.WaitGroup

	mu    sync.Mutex
	open  map[net.Conn]bool
	isCut bool
}

// StartRelay starts a relay to the Postgres at an address. Call Close in the end.
func StartRelay(ctx context.Context, postgres string) (*Relay, error) {
	config, err := pgx.ParseConfig(postgres)
	if err != nil {
		return nil, err
	}
	through, err := url.Parse(postgres)
	if err != nil {
		return nil, err
	}
	r := &Relay{open: map[net.Conn]bool{}}
	r.network, r.server = pgconn.NetworkAddress(config.Host, config.Port)
	var listening net.ListenConfig
	if r.listener, err = listening.Listen(ctx, "tcp", AnyPort); err != nil {
		return nil, err
	}
	query := through.Query()
	query.Del("host")
	query.Del("port")
	through.Host, through.RawQuery = r.listener.Addr().String(), query.Encode()
	r.URL = through.String()
	r.connections.Go(r.serve)
	return r, nil
}

// Cut ends every connection. Later ones end as soon as they are made.
func (r *Relay) Cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.isCut = true
	for conn := range r.open {
		conn.Close()
	}
}

// Close ends the relay and every connection, and returns when its goroutines have ended.
func (r *Relay) Close() error {
	err := r.listener.Close()
	r.Cut()
	r.connections.Wait()
	return err
}

// serve accepts connections until the listener is closed.
func (r *Relay) serve() {
	for {
		from, err := r.listener.Accept()
		if err != nil {
			return
		}
		r.connections.Go(func() { r.relay(from) })
	}
}

// relay passes on what both ends of a connection send until either ends.
func (r *Relay) relay(from net.Conn) {
	defer from.Close()
	to, err := net.Dial(r.network, r.server)
	if err != nil {
		return
	}
	defer to.Close()
	if !r.add(from) {
		return
	}
	defer r.remove(from)
	var back sync.WaitGroup
	back.Go(func() {
		defer from.Close()
		io.Copy(from, to) // however it ends, both ends are closed
	})
	io.Copy(to, from)
	to.Close()
	back.Wait()
}

// add remembers a connection for Cut. It returns false after Cut: the caller then closes the connection.
func (r *Relay) add(conn net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.open[conn] = true
	return !r.isCut
}

func (r *Relay) remove(conn net.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.open, conn)
}
