package node_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/google/uuid"

	"lieudit/eventstore/node"
)

// served is a node on a log, and how to reach it.
type served struct {
	log  node.Log
	addr string // what esdb.Configuration.Address takes
}

func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

// serve starts a node for the time of a test.
func serve(t testing.TB, log node.Log, listen string) served {
	t.Helper()
	ln, err := node.Listen(t.Context(), listen)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- node.New(log, node.Options{Logger: quiet(), Grace: time.Second}).Serve(ctx, ln) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	if ln.Addr().Network() == "unix" {
		return served{log, "unix:" + ln.Addr().String()}
	}
	return served{log, ln.Addr().String()}
}

func socket(t testing.TB) string { return "unix:" + filepath.Join(t.TempDir(), "s") }

// start serves an empty log on a Unix socket.
func start(t testing.TB) served {
	t.Helper()
	return serve(t, newMemory(), socket(t))
}

func connect(t testing.TB, text string, addr string) *esdb.Client {
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

func (s served) client(t testing.TB) *esdb.Client {
	t.Helper()
	return connect(t, "esdb://unused?tls=false", s.addr)
}

func event(kind string) esdb.EventData {
	return esdb.EventData{EventID: uuid.New(), EventType: kind, ContentType: esdb.ContentTypeJson, Data: []byte(`{"n":1}`), Metadata: []byte(`{"actor":"a"}`)}
}

func TestBothConnectionStringsReachANode(t *testing.T) {
	t.Parallel()
	s := serve(t, newMemory(), "127.0.0.1:0")
	if _, _, err := net.SplitHostPort(s.addr); err != nil {
		t.Fatal(err)
	}
	for _, scheme := range []string{"esdb://", "esdb+discover://"} {
		client := connect(t, scheme+s.addr+"?tls=false", "")
		if _, err := client.AppendToStream(t.Context(), "a-1", esdb.AppendToStreamOptions{}, event("e")); err != nil {
			t.Errorf("%s: %v", scheme, err)
		}
	}
}
