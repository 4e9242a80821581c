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

// server is a node that runs on a folder.
type server struct {
	dir  string
	addr string // as node.Listen and esdb.Configuration.Address take it
	log  *journal.Journal
	stop func() // the node first, then its journal; more than once is fine
}

// launch runs a node on a journal until stop is called.
func launch(t testing.TB, dir, listen string) server {
	t.Helper()
	return launchWith(t, dir, listen, node.Options{})
}

func launchWith(t testing.TB, dir, listen string, o node.Options) server {
	t.Helper()
	log := open(t, dir)
	s := serve(t, log, listen, o)
	s.dir, s.log = dir, log
	return s
}

// serve runs a node on a log until stop is called, which closes the log too.
func serve(t testing.TB, log node.Log, listen string, o node.Options) server {
	t.Helper()
	ln, err := node.Listen(t.Context(), listen)
	if err != nil {
		t.Fatal(err)
	}
	o.Logger, o.Grace = quiet(), cmp.Or(o.Grace, grace)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- node.New(log, o).Serve(ctx, ln) }()
	s := server{addr: ln.Addr().String(), stop: sync.OnceFunc(func() {
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

func socket(t testing.TB) string { return "unix:" + filepath.Join(t.TempDir(), "s") }

// start serves a new journal on a Unix socket for the time of a test.
func start(t testing.TB) server {
	t.Helper()
	s := launch(t, t.TempDir(), socket(t))
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
func (s server) client(t testing.TB) *esdb.Client {
	t.Helper()
	return connect(t, "esdb://unused?tls=false", s.addr)
}

// conn is for requests that the official client cannot send.
func (s server) conn(t testing.TB) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(s.addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// started is the client of a node of its own.
func started(t testing.TB) *esdb.Client {
	t.Helper()
	return start(t).client(t)
}

func event(kind string) esdb.EventData {
	return esdb.EventData{EventID: uuid.New(), EventType: kind, ContentType: esdb.ContentTypeJson, Data: []byte(`{"n":1}`), Metadata: []byte(`{"actor":"a"}`)}
}

func events(n int) []esdb.EventData {
	all := make([]esdb.EventData, n)
	for i := range all {
		all[i] = event(fmt.Sprintf("e%d", i))
	}
	return all
}

// put appends and must succeed.
func put(t testing.TB, c *esdb.Client, stream string, expected esdb.ExpectedRevision, all ...esdb.EventData) *esdb.WriteResult {
	t.Helper()
	done, err := c.AppendToStream(t.Context(), stream, esdb.AppendToStreamOptions{ExpectedRevision: expected}, all...)
	if err != nil {
		t.Fatalf("append to %s: %v", stream, err)
	}
	return done
}

// kind is the official client's word for an error.
func kind(err error) esdb.ErrorCode {
	var e *esdb.Error
	if errors.As(err, &e) {
		return e.Code()
	}
	return -1
}

// drain takes what a read gives.
func drain(r *esdb.ReadStream, err error) ([]*esdb.RecordedEvent, error) {
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
	all, err := drain(c.ReadStream(t.Context(), stream, esdb.ReadStreamOptions{}, 10_000))
	if err != nil {
		t.Fatalf("read %s: %v", stream, err)
	}
	numbers := []uint64{}
	for _, e := range all {
		numbers = append(numbers, e.EventNumber)
	}
	return numbers
}
