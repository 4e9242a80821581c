package node_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/google/uuid"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"lieudit/eventstore/journal"
	"lieudit/eventstore/node"
)

func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

// grace is what calls get of a node that stops.
const grace = 5 * time.Second

// open opens the journal in dir; its tests are many and small, so are its segments.
func open(t testing.TB, dir string) *journal.Journal {
	t.Helper()
	j, err := journal.Open(dir, journal.Options{Logger: quiet(), SegmentSize: 4 << 20})
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// nodeServer is a node that runs on a folder.
type nodeServer struct {
	dir  string
	addr string // as node.Listen and esdb.Configuration.Address take it
	log  *journal.Journal
	stop func() // the node first, then its journal; more than once is fine
}

// serveFolder runs a node on a journal until stop is called.
func serveFolder(t testing.TB, dir, listen string) nodeServer {
	t.Helper()
	return serveFolderWith(t, dir, listen, node.Options{})
}

func serveFolderWith(t testing.TB, dir, listen string, o node.Options) nodeServer {
	t.Helper()
	log := open(t, dir)
	s := serveLog(t, log, listen, o)
	s.dir, s.log = dir, log
	return s
}

// serveLog runs a node on a log until stop is called, which closes the log too.
func serveLog(t testing.TB, log node.Log, listen string, o node.Options) nodeServer {
	t.Helper()
	ln, err := node.Listen(t.Context(), listen)
	if err != nil {
		t.Fatal(err)
	}
	o.Logger, o.StopTimeout = quiet(), cmp.Or(o.StopTimeout, grace)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- node.New(log, o).Serve(ctx, ln) }()
	s := nodeServer{addr: ln.Addr().String(), stop: sync.OnceFunc(func() {
		cancel()
		if err := errors.Join(<-done, log.Close()); err != nil {
			t.Errorf("stop: %v", err)
		}
	})}
	if ln.Addr().Network() == "unix" {
		s.addr = "unix:" + s.addr
	}
	return s
}

func socketAddress(t testing.TB) string { return "unix:" + filepath.Join(t.TempDir(), "s") }

// startServer serves a new journal on a Unix socket for the time of a test.
func startServer(t testing.TB) nodeServer {
	t.Helper()
	s := serveFolder(t, t.TempDir(), socketAddress(t))
	t.Cleanup(s.stop)
	return s
}

func connect(t testing.TB, text, addr string) *esdb.Client {
	t.Helper()
	conf, err := esdb.ParseConnectionString(text)
	if err != nil {
		t.Fatal(err)
	}
	if conf.Logger = nil; addr != "" {
		conf.Address = addr
	}
	client, err := esdb.NewClient(conf)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// client is the official one, connected.
func (s nodeServer) client(t testing.TB) *esdb.Client {
	t.Helper()
	return connect(t, "esdb://unused?tls=false", s.addr)
}

// conn is for requests that the official client cannot send.
func (s nodeServer) conn(t testing.TB) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(s.addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// startClient is the client of a node of its own.
func startClient(t testing.TB) *esdb.Client {
	t.Helper()
	return startServer(t).client(t)
}

func newEvent(kind string) esdb.EventData {
	return esdb.EventData{EventID: uuid.New(), EventType: kind, ContentType: esdb.ContentTypeJson, Data: []byte(`{"n":1}`), Metadata: []byte(`{"actor":"a"}`)}
}

func newEvents(n int) []esdb.EventData {
	all := make([]esdb.EventData, n)
	for i := range all {
		all[i] = newEvent(fmt.Sprintf("e%d", i))
	}
	return all
}

// mustAppend appends and must succeed.
func mustAppend(t testing.TB, c *esdb.Client, stream string, expected esdb.ExpectedRevision, all ...esdb.EventData) *esdb.WriteResult {
	t.Helper()
	done, err := c.AppendToStream(t.Context(), stream, esdb.AppendToStreamOptions{ExpectedRevision: expected}, all...)
	if err != nil {
		t.Fatalf("append to %s: %v", stream, err)
	}
	return done
}

// errorCode is the official client's word for an error.
func errorCode(err error) esdb.ErrorCode {
	var e *esdb.Error
	if errors.As(err, &e) {
		return e.Code()
	}
	return -1
}

// readEvents takes what a read gives.
func readEvents(r *esdb.ReadStream, err error) ([]*esdb.RecordedEvent, error) {
	if err != nil {
		return nil, err
	}
	defer r.Close()
	var all []*esdb.RecordedEvent
	for {
		e, err := r.Recv()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		all = append(all, e.OriginalEvent())
	}
}

// revisions reads a stream forwards.
func revisions(t testing.TB, c *esdb.Client, stream string) []uint64 {
	t.Helper()
	all, err := readEvents(c.ReadStream(t.Context(), stream, esdb.ReadStreamOptions{}, 10_000))
	if err != nil {
		t.Fatalf("read %s: %v", stream, err)
	}
	numbers := []uint64{}
	for _, e := range all {
		numbers = append(numbers, e.EventNumber)
	}
	return numbers
}
