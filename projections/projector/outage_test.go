package projector_test

import (
	"io"
	"net"
	"net/url"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"lieudit/eventstore/sqldb/sqldbtest"
	"lieudit/projections/projector/projectortest"
	"lieudit/schemas/event"
)

// proxy is a way to a server that can be shut: connections are cut and new ones refused.
type proxy struct {
	network  string
	server   string
	listener net.Listener
	copiers  sync.WaitGroup
	mu       sync.Mutex
	isShut   bool
	open     map[net.Conn]bool
}

// startProxy gives the address of a Postgres behind a gate.
func startProxy(t *testing.T, address string) (*proxy, string) {
	t.Helper()
	server, err := pgconn.ParseConfig(address)
	if err != nil {
		t.Fatal(err)
	}
	g := &proxy{open: map[net.Conn]bool{}}
	g.network, g.server = pgconn.NetworkAddress(server.Host, server.Port)
	if g.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	g.copiers.Go(g.accept)
	t.Cleanup(func() {
		g.listener.Close()
		g.setShut(true)
		g.copiers.Wait()
	})
	u := url.URL{Scheme: "postgres", User: url.UserPassword(server.User, server.Password), Host: g.listener.Addr().String(), Path: server.Database}
	u.RawQuery = url.Values{"sslmode": {"disable"}}.Encode()
	return g, u.String()
}

func (g *proxy) accept() {
	for {
		client, err := g.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial(g.network, g.server)
		if err != nil || !g.addConns(client, server) {
			client.Close()
			continue
		}
		g.copiers.Go(func() { copyConn(client, server) })
		g.copiers.Go(func() { copyConn(server, client) })
	}
}

func copyConn(to, from net.Conn) {
	io.Copy(to, from)
	to.Close()
	from.Close()
}

func (g *proxy) addConns(conns ...net.Conn) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range conns {
		g.open[c] = true
		if g.isShut {
			c.Close()
		}
	}
	return !g.isShut
}

// setShut shuts the gate, or opens it.
func (g *proxy) setShut(shut bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.isShut = shut
	for c := range g.open {
		c.Close()
		delete(g.open, c)
	}
}

func TestDatabaseThatGoesAwayIsResumedWithoutGapOrDouble(t *testing.T) {
	t.Parallel()
	g, address := startProxy(t, sqldbtest.NewPostgresDatabase(t))
	s := newCluster(t, address)
	g.setShut(true) // away already at the start
	i := s.startInstance(t)
	if err := i.Ready(t.Context()); err == nil {
		t.Error("ready without a database")
	}
	g.setShut(false)
	i.awaitPosition(t, projectortest.AppendAccounts(t, s.log, s.codec, 10))
	var writer sync.WaitGroup
	writer.Go(func() { projectortest.AppendAccountRange(t, s.log, s.codec, 10, 300) })
	for range 8 { // in the middle of whatever is going on
		g.setShut(true)
		g.setShut(false)
		i.awaitPosition(t, projectortest.Append(t, s.log, s.codec, "account-a000000", event.AccountClosed{}))
	}
	writer.Wait()
	g.setShut(true)
	end := projectortest.Append(t, s.log, s.codec, "account-a000000", event.AccountClosed{})
	i.requireDown(t, end)
	g.setShut(false)
	i.awaitPosition(t, end)
	if got, want := len(i.readRows(t).Entries), 300*projectortest.EventsPerAccount+9; got != want {
		t.Errorf("got %d entries, want %d", got, want)
	}
	if err := i.Ready(t.Context()); err != nil {
		t.Error(err)
	}
}
