package projector_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgconn"

	"lieudit/eventstore"
	"lieudit/eventstore/journal"
	"lieudit/eventstore/sqldb"
	"lieudit/eventstore/sqldb/sqldbtest"
	"lieudit/projections/account"
	"lieudit/projections/audit"
	"lieudit/projections/projector"
	"lieudit/projections/projector/projectortest"
	"lieudit/schemas/event"
	"lieudit/schemas/table"
)

const (
	childAddress = "LIEUDIT_TEST_CHILD_ADDRESS"
	childLog     = "LIEUDIT_TEST_CHILD_LOG"
)

// TestMain lets the test binary also be an instance in a process of its own, which can be killed or paused.
func TestMain(m *testing.M) {
	if address := os.Getenv(childAddress); address != "" {
		fmt.Fprintln(os.Stderr, projectUntilKilled(address, os.Getenv(childLog)))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func projectUntilKilled(address, folder string) error {
	log, err := journal.Open(folder, journal.Options{SegmentSize: 4 << 20})
	if err != nil {
		return err
	}
	registry, err := sqldb.OpenRegistry(address)
	if err != nil {
		return err
	}
	codec := eventstore.NewCodec(&projectortest.Vault{})
	return projector.New(log, codec, registry, account.Model, audit.Model).Run(context.Background())
}

// startChild starts an instance on a log of its own, and returns when it has probably filled part of it.
func startChild(t *testing.T, address, folder string) *os.Process {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(binary)
	c.Env = append(os.Environ(), childAddress+"="+address, childLog+"="+folder)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Process.Kill()
		c.Wait()
	})
	return c.Process
}

// copyLogFolders returns closed copies of one log with the events of many accounts.
func copyLogFolders(t *testing.T, accounts, copies int) []string {
	t.Helper()
	first := filepath.Join(t.TempDir(), "log")
	log, err := journal.Open(first, journal.Options{SegmentSize: 4 << 20})
	if err != nil {
		t.Fatal(err)
	}
	projectortest.AppendAccounts(t, log, eventstore.NewCodec(&projectortest.Vault{}), accounts)
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	folders := []string{first}
	for i := range copies {
		next := fmt.Sprint(first, i)
		if err := os.CopyFS(next, os.DirFS(first)); err != nil {
			t.Fatal(err)
		}
		folders = append(folders, next)
	}
	return folders
}

func openCluster(t *testing.T, address, folder string) *cluster {
	t.Helper()
	log, err := journal.Open(folder, journal.Options{SegmentSize: 4 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	v := &projectortest.Vault{}
	return &cluster{address, log, eventstore.NewCodec(v), v}
}

// lastPosition is the position of the last event of the log.
func (s *cluster) lastPosition(t *testing.T) (end eventstore.Position) {
	t.Helper()
	for signal, err := range s.log.ReadAll(t.Context(), eventstore.Checkpoint{}, account.Model.Categories()) {
		if err != nil {
			t.Fatal(err)
		}
		if signal.Kind == eventstore.EventAppeared {
			end = signal.Checkpoint.Position
		}
	}
	return end
}

func (s *cluster) checkComplete(t *testing.T, i *instance, accounts int) {
	t.Helper()
	i.awaitPosition(t, s.lastPosition(t))
	got := i.readRows(t)
	if want := accounts * projectortest.EventsPerAccount; len(got.Entries) != want {
		t.Errorf("got %d entries, want %d", len(got.Entries), want)
	}
	clean := s.startInstance(t) // another instance, from the same rows
	if diff := cmp.Diff(s.rowsFromScratch(t), clean.readRows(t)); diff != "" {
		t.Errorf("differs from a new generation: %s", diff)
	}
}

// rowsFromScratch returns the expected rows: those of a database that saw no fault.
func (s *cluster) rowsFromScratch(t *testing.T) modelRows {
	t.Helper()
	calm := &cluster{t.TempDir(), s.log, s.codec, s.vault}
	i := calm.startInstance(t)
	i.awaitPosition(t, s.lastPosition(t))
	return i.readRows(t)
}

// awaitProgress waits until the audit trail is past a position, and returns its new one.
func awaitProgress(t *testing.T, address string, before int64) int64 {
	t.Helper()
	registry, err := sqldb.OpenRegistry(address)
	if err != nil {
		t.Fatal(err)
	}
	defer registry.Close()
	now := before
	until(t, "the child projects", func() bool {
		copies, err := registry.Generations(t.Context())
		for _, c := range copies {
			if err != nil || !c.IsOf(table.AuditModel) || c.State == sqldb.Creating {
				continue
			}
			db, release, err := registry.OpenGeneration(t.Context(), c)
			if err != nil {
				continue
			}
			db.QueryRow(t.Context(), "select position from {checkpoint}").Scan(&now)
			release()
		}
		return now > before
	})
	return now
}

// accountsAndKills is how many accounts a log holds, to keep a projector busy for a while, and how often the projector is
// killed meanwhile: many more with LIEUDIT_TEST_LONG=1.
func accountsAndKills() (accounts, kills int) {
	if os.Getenv("LIEUDIT_TEST_LONG") == "1" {
		return 4000, 50
	}
	return 200, 3
}

func TestEachEventIsWrittenOnceWhenProjectorsAreKilled(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		accounts, kills := accountsAndKills()
		folders := copyLogFolders(t, accounts, 0)
		s := openCluster(t, address, folders[0])
		end := int64(s.lastPosition(t))
		s.log.Close() // the child's now
		for at := int64(0); kills > 0 && at < end; kills-- {
			p := startChild(t, address, folders[0])
			at = awaitProgress(t, address, at)
			time.Sleep(rand.N(20 * time.Millisecond)) // anywhere in its next batch
			if err := p.Kill(); err != nil {
				t.Fatal(err)
			}
			p.Wait()
		}
		s = openCluster(t, address, folders[0])
		s.checkComplete(t, s.startInstance(t), accounts)
	})
}

// proxy forwards connections to a server, and can be shut: it cuts connections and refuses new ones.
type proxy struct {
	network  string
	server   string
	listener net.Listener
	copiers  sync.WaitGroup
	mu       sync.Mutex
	isShut   bool
	open     map[net.Conn]bool
}

// startProxy returns a proxy to a Postgres, and the address of that Postgres through it.
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

// setShut shuts the proxy, or opens it.
func (g *proxy) setShut(shut bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.isShut = shut
	for c := range g.open {
		c.Close()
		delete(g.open, c)
	}
}

func TestEachEventIsWrittenOnceWhenTheDatabaseGoesAway(t *testing.T) {
	t.Parallel()
	g, address := startProxy(t, sqldbtest.NewPostgresDatabase(t))
	s := newCluster(t, address)
	g.setShut(true) // unavailable from the start
	i := s.startInstance(t)
	if err := i.Ready(t.Context()); err == nil {
		t.Error("ready without a database")
	}
	g.setShut(false)
	i.awaitPosition(t, projectortest.AppendAccounts(t, s.log, s.codec, 10))
	var writer sync.WaitGroup
	writer.Go(func() { projectortest.AppendAccountRange(t, s.log, s.codec, 10, 300) })
	for range 8 { // at arbitrary moments
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
	var rows modelRows
	until(t, "rows read", func() bool { // a cut connection is noticed only when it is used
		var err error
		rows, err = i.tryReadRows(t.Context())
		return err == nil
	})
	if got, want := len(rows.Entries), 300*projectortest.EventsPerAccount+9; got != want {
		t.Errorf("got %d entries, want %d", got, want)
	}
	if err := i.Ready(t.Context()); err != nil {
		t.Error(err)
	}
}
