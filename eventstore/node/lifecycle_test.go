package node_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/google/uuid"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"lieudit/eventstore"
	"lieudit/eventstore/deadlinetest"
	"lieudit/eventstore/journal"
	"lieudit/eventstore/node"
	"lieudit/eventstore/node/faulttest"
)

func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

// grace is the StopTimeout of the nodes of these tests.
const grace = 5 * time.Second

// open opens the journal in dir. Its segments are small, because every test makes new ones.
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
	return serveWith(t, log, listen, o, faulttest.Faults{})
}

// serveFaulty is serveLog by a node with faults, at a socket of its own.
func serveFaulty(t testing.TB, log node.Log, faults faulttest.Faults) nodeServer {
	t.Helper()
	return serveWith(t, log, socketAddress(t), node.Options{}, faults)
}

func serveWith(t testing.TB, log node.Log, listen string, o node.Options, faults faulttest.Faults) nodeServer {
	t.Helper()
	ln, err := node.Listen(t.Context(), listen)
	if err != nil {
		t.Fatal(err)
	}
	o.Logger, o.StopTimeout = quiet(), cmp.Or(o.StopTimeout, grace)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- faults.Serve(ctx, log, o, ln) }()
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

// errorCode is the official client's code of an error.
func errorCode(err error) esdb.ErrorCode {
	var e *esdb.Error
	if errors.As(err, &e) {
		return e.Code()
	}
	return -1
}

// readEvents collects the events of a read.
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

func TestBothConnectionStringsReachANode(t *testing.T) {
	t.Parallel()
	s := serveFolder(t, t.TempDir(), "127.0.0.1:0")
	t.Cleanup(s.stop)
	if _, _, err := net.SplitHostPort(s.addr); err != nil {
		t.Fatal(err)
	}
	for _, scheme := range []string{"esdb://", "esdb+discover://"} {
		mustAppend(t, connect(t, scheme+s.addr+"?tls=false", ""), "a-1", esdb.Any{}, newEvent("e"))
	}
}

func TestANodeReplacesTheSocketOfADeadOneOnly(t *testing.T) {
	t.Parallel()
	path := socketAddress(t)
	ln, err := node.Listen(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := node.Listen(t.Context(), path); err == nil {
		t.Fatal("took the socket of a node that answers")
	}
	ln.(*net.UnixListener).SetUnlinkOnClose(false) // as kill -9 leaves it
	if err := ln.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := node.Listen(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
}

// restart stops a node and starts another on the same folder, at the same address.
func restart(t *testing.T, s nodeServer) nodeServer {
	t.Helper()
	s.stop()
	again := serveFolder(t, s.dir, s.addr)
	t.Cleanup(again.stop)
	return again
}

// reopen is restart for the contract.
func reopen(t *testing.T, s eventstore.Store) eventstore.Store {
	t.Helper()
	old := s.(*officialStore)
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	return restart(t, old.server).asStore(t)
}

func TestWhatANodeKeepsBesideEventsSurvivesARestart(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	c := s.client(t)
	binary := func() esdb.EventData {
		return esdb.EventData{EventType: "e", ContentType: esdb.ContentTypeBinary, Metadata: []byte{0}}
	}
	for _, stream := range []string{"cut-1", "deleted-1", "ended-1", "back-1"} {
		mustAppend(t, c, stream, esdb.NoStream{}, newEvent("e"), newEvent("e"), binary())
	}
	setMetadata(t, c, "cut-1", func(m *esdb.StreamMetadata) { m.SetMaxCount(1) })
	deleteStream(t, c, "deleted-1")
	deleteStream(t, c, "back-1")
	mustAppend(t, c, "back-1", esdb.Any{}, binary())
	if _, err := c.TombstoneStream(t.Context(), "ended-1", esdb.TombstoneStreamOptions{}); err != nil {
		t.Fatal(err)
	}
	c = restart(t, s).client(t)
	for stream, want := range map[string][]uint64{"cut-1": {2}, "back-1": {3}} {
		got, err := readEvents(c.ReadStream(t.Context(), stream, esdb.ReadStreamOptions{}, 99))
		if err != nil || !slices.Equal(revisionsOf(got), want) {
			t.Fatalf("%s: got %v, %v, want %v", stream, revisionsOf(got), err, want)
		}
		if got[0].ContentType != "application/octet-stream" || !slices.Equal(got[0].UserMetadata, []byte{0}) {
			t.Errorf("%s: got %s, %q", stream, got[0].ContentType, got[0].UserMetadata)
		}
	}
	if _, err := readEvents(c.ReadStream(t.Context(), "deleted-1", esdb.ReadStreamOptions{}, 9)); errorCode(err) != esdb.ErrorCodeResourceNotFound {
		t.Errorf("deleted: got %v, want not found", err)
	}
	if _, err := c.AppendToStream(t.Context(), "ended-1", esdb.AppendToStreamOptions{}, binary()); errorCode(err) != esdb.ErrorCodeStreamDeleted {
		t.Errorf("tombstoned: got %v, want stream deleted", err)
	}
}

// A node dies after the append to a softly deleted stream and before it has written the metadata that is due. The stream
// reads as if that metadata were there.
func TestAStreamThatComesBackIsReadWithoutItsMetadata(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	c := s.client(t)
	for _, stream := range []string{"written-1", "set-1"} {
		mustAppend(t, c, stream, esdb.NoStream{}, newEvents(3)...)
		deleteStream(t, c, stream)
	}
	direct := func(stream, kind, data string) {
		t.Helper()
		e := eventstore.ProposedEvent{ID: uuid.New(), Type: kind, Data: []byte(data)}
		if _, err := s.log.Append(t.Context(), stream, eventstore.Any, []eventstore.ProposedEvent{e}); err != nil {
			t.Fatal(err)
		}
	}
	direct("written-1", "e", "{}")
	direct("$$set-1", "$metadata", `{"$maxCount":9}`)
	for stream, want := range map[string][]uint64{"written-1": {3}, "set-1": {}} {
		if got := revisions(t, c, stream); !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", stream, got, want)
		}
		mustAppend(t, c, stream, esdb.Any{}, newEvent("later"))
		m, err := c.GetStreamMetadata(t.Context(), stream, esdb.ReadStreamOptions{})
		if err != nil || m.TruncateBefore() == nil || *m.TruncateBefore() != 3 {
			t.Errorf("%s: metadata %+v, %v, want $tb 3", stream, m, err)
		}
		if got := revisions(t, c, stream); len(got) != len(want)+1 {
			t.Errorf("%s: then got %v", stream, got)
		}
	}
}

// appendUntilKnown sends one append again until its outcome is known.
func appendUntilKnown(ctx context.Context, c *esdb.Client, stream string, expected esdb.ExpectedRevision, e esdb.EventData) error {
	for {
		_, err := c.AppendToStream(ctx, stream, esdb.AppendToStreamOptions{ExpectedRevision: expected}, e)
		if err == nil || ctx.Err() != nil || errorCode(err) == esdb.ErrorCodeWrongExpectedVersion {
			return err
		}
	}
}

func TestNoAcknowledgedAppendIsLostOrDoubledByARestart(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	ctx := deadlinetest.Context(t, deadlinetest.DefaultLimit)
	c := connect(t, "esdb://unused?tls=false&maxDiscoverAttempts=10000&discoveryInterval=5", s.addr)
	const writers, each = 4, 60
	ended := make(chan error, writers)
	for w := range writers {
		go func() {
			var err error
			var expected esdb.ExpectedRevision = esdb.NoStream{}
			for i := 0; i < each && err == nil; i++ {
				err = appendUntilKnown(ctx, c, fmt.Sprintf("w-%d", w), expected, newEvent(fmt.Sprint(i)))
				expected = esdb.Revision(uint64(i))
			}
			ended <- err
		}()
	}
	for range 3 {
		if _, err := s.log.Wait(ctx, s.log.LastCheckpoint().Position); err != nil {
			t.Fatal(err)
		}
		s = restart(t, s)
	}
	for range writers {
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
	}
	for w := range writers {
		if got := revisions(t, c, fmt.Sprintf("w-%d", w)); len(got) != each {
			t.Errorf("writer %d: %d events, want %d", w, len(got), each)
		}
	}
}
