package projector_test

import (
	"io"
	"net"
	"net/url"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"lieudit/projections/projector/projectortest"
	"lieudit/schemas/event"
	"lieudit/schemas/table/tabletest"
)

// gate is a way to a server that can be shut: connections are cut and new ones refused.
type gate struct {
	network  string
	server   string
	listener net.Listener
	carriers sync.WaitGroup
	mu       sync.Mutex
	shut     bool
	open     map[net.Conn]bool
}

// through gives the address of a Postgres behind a gate.
func through(t *testing.T, address string) (*gate, string) {
	t.Helper()
	server, err := pgconn.ParseConfig(address)
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{open: map[net.Conn]bool{}}
	g.network, g.server = pgconn.NetworkAddress(server.Host, server.Port)
	if g.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	g.carriers.Go(g.accept)
	t.Cleanup(func() {
		g.listener.Close()
		g.set(true)
		g.carriers.Wait()
	})
	u := url.URL{Scheme: "postgres", User: url.UserPassword(server.User, server.Password), Host: g.listener.Addr().String(), Path: server.Database}
	u.RawQuery = url.Values{"sslmode": {"disable"}}.Encode()
	return g, u.String()
}

func (g *gate) accept() {
	for {
		client, err := g.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial(g.network, g.server)
		if err != nil || !g.enter(client, server) {
			client.Close()
			continue
		}
		g.carriers.Go(func() { carry(client, server) })
		g.carriers.Go(func() { carry(server, client) })
	}
}

func carry(to, from net.Conn) {
	io.Copy(to, from)
	to.Close()
	from.Close()
}

func (g *gate) enter(conns ...net.Conn) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range conns {
		g.open[c] = true
		if g.shut {
			c.Close()
		}
	}
	return !g.shut
}

// set shuts the gate, or opens it.
func (g *gate) set(shut bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = shut
	for c := range g.open {
		c.Close()
		delete(g.open, c)
	}
}

func TestDatabaseThatGoesAwayIsResumedWithoutGapOrDouble(t *testing.T) {
	t.Parallel()
	g, address := through(t, tabletest.Postgres(t))
	s := newScene(t, address)
	g.set(true) // away already at the start
	i := s.start(t)
	if err := i.Ready(t.Context()); err == nil {
		t.Error("ready without a database")
	}
	g.set(false)
	i.passed(t, projectortest.Fill(t, s.log, s.codec, 10))
	var writer sync.WaitGroup
	writer.Go(func() { projectortest.FillFrom(t, s.log, s.codec, 10, 300) })
	for range 8 { // in the middle of whatever is going on
		g.set(true)
		g.set(false)
		i.passed(t, projectortest.Append(t, s.log, s.codec, "account-a000000", event.AccountClosed{}))
	}
	writer.Wait()
	g.set(true)
	end := projectortest.Append(t, s.log, s.codec, "account-a000000", event.AccountClosed{})
	i.down(t, end)
	g.set(false)
	i.passed(t, end)
	if got, want := len(i.rows(t).Entries), 300*projectortest.LifeEvents+9; got != want {
		t.Errorf("got %d entries, want %d", got, want)
	}
	if err := i.Ready(t.Context()); err != nil {
		t.Error(err)
	}
}
