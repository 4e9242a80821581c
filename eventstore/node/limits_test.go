package node_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc/test/bufconn"

	"lieudit/eventstore/node"
)

// The limits of a node, as its clients meet them.
const (
	wantMaxCalls      = 1000
	wantMaxHeaderSize = 16 << 10
	wantHandshakeTime = 10 * time.Second
	wantSilenceTime   = 20 * time.Second // a ping after half of it, and the other half to answer
)

// rawConnection speaks HTTP/2 to a node frame by frame, as no client does that keeps to the protocol.
type rawConnection struct {
	*http2.Framer
	net.Conn
	headers *hpack.Encoder
	encoded bytes.Buffer
}

// newRawConnection sends the preface and the settings, on a connection that is closed with the test.
func newRawConnection(t *testing.T, c net.Conn) *rawConnection {
	t.Helper()
	t.Cleanup(func() { c.Close() })
	r := &rawConnection{Framer: http2.NewFramer(c, c), Conn: c}
	r.headers = hpack.NewEncoder(&r.encoded)
	if _, err := io.WriteString(c, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	if err := r.WriteSettings(); err != nil {
		t.Fatal(err)
	}
	return r
}

func dialRaw(t *testing.T, s nodeServer) *rawConnection {
	t.Helper()
	c, err := (&net.Dialer{}).DialContext(t.Context(), "unix", strings.TrimPrefix(s.addr, "unix:"))
	if err != nil {
		t.Fatal(err)
	}
	return newRawConnection(t, c)
}

// openCall begins a call of a method, with another header of n bytes.
func (r *rawConnection) openCall(stream uint32, method string, n int) error {
	r.encoded.Reset()
	for _, f := range []hpack.HeaderField{
		{Name: ":method", Value: "POST"}, {Name: ":scheme", Value: "http"}, {Name: ":path", Value: method}, {Name: ":authority", Value: "node"},
		{Name: "content-type", Value: "application/grpc"}, {Name: "te", Value: "trailers"}, {Name: "x", Value: strings.Repeat("~", n), Sensitive: true},
	} {
		if err := r.headers.WriteField(f); err != nil {
			return err
		}
	}
	const maxFrame = 16 << 10
	first := r.encoded.Next(maxFrame)
	err := r.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: first, EndHeaders: r.encoded.Len() == 0})
	for err == nil && r.encoded.Len() > 0 {
		fragment := r.encoded.Next(maxFrame)
		err = r.WriteContinuation(stream, r.encoded.Len() == 0, fragment)
	}
	return err
}

// isAnswered makes the first call of a connection, with an empty message, and reports whether it is answered. It is not if the node
// resets the call or closes the connection, perhaps before all was written.
func (r *rawConnection) isAnswered(method string, header int) bool {
	if err := errors.Join(r.openCall(1, method, header), r.WriteData(1, true, make([]byte, 5))); err != nil {
		return false
	}
	for {
		switch f, err := r.ReadFrame(); f.(type) {
		case *http2.HeadersFrame:
			return true
		case *http2.RSTStreamFrame:
			return false
		default:
			if err != nil {
				return false
			}
		}
	}
}

// readUntil reads frames until found returns true. It fails at the connection's end.
func (r *rawConnection) readUntil(t *testing.T, found func(http2.Frame) bool) {
	t.Helper()
	for {
		f, err := r.ReadFrame()
		if err != nil {
			t.Fatal(err)
		}
		if found(f) {
			return
		}
	}
}

const (
	gossipMethod      = "/event_store.client.gossip.Gossip/Read"
	batchAppendMethod = "/event_store.client.streams.Streams/BatchAppend"
)

func TestANodeTellsClientsItsLimits(t *testing.T) {
	t.Parallel()
	r := dialRaw(t, startServer(t))
	r.readUntil(t, func(f http2.Frame) bool {
		settings, ok := f.(*http2.SettingsFrame)
		if !ok || settings.IsAck() {
			return false
		}
		for id, want := range map[http2.SettingID]uint32{http2.SettingMaxConcurrentStreams: wantMaxCalls, http2.SettingMaxHeaderListSize: wantMaxHeaderSize} {
			if got, ok := settings.Value(id); !ok || got != want {
				t.Errorf("%v: got %d, want %d", id, got, want)
			}
		}
		return true
	})
}

func TestACallWithTooLargeHeadersIsRefused(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	for header, want := range map[int]bool{0: true, wantMaxHeaderSize / 2: true, wantMaxHeaderSize: false, 1 << 20: false, 15 << 20: false} {
		if got := dialRaw(t, s).isAnswered(gossipMethod, header); got != want {
			t.Errorf("with a header of %d bytes a call is answered: %t, want %t", header, got, want)
		}
	}
}

func TestMoreCallsThanTheLimitAreRefused(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	r := dialRaw(t, s)
	refused := uint32(2*wantMaxCalls + 1)
	for stream := uint32(1); stream <= refused; stream += 2 {
		if err := r.openCall(stream, batchAppendMethod, 0); err != nil {
			t.Fatal(err)
		}
	}
	r.readUntil(t, func(f http2.Frame) bool {
		reset, ok := f.(*http2.RSTStreamFrame)
		if ok && (reset.StreamID != refused || reset.ErrCode != http2.ErrCodeRefusedStream) {
			t.Errorf("got %v, want that stream %d is refused", reset, refused)
		}
		return ok
	})
	mustAppend(t, s.client(t), "x-1", esdb.Any{}, newEvents(1)...) // others are not affected
}

func TestAClientThatPingsWithoutPauseIsSentAway(t *testing.T) {
	t.Parallel()
	r := dialRaw(t, startServer(t))
	for range 10 {
		if err := r.WritePing(false, [8]byte{}); err != nil {
			t.Fatal(err)
		}
	}
	r.readUntil(t, func(f http2.Frame) bool {
		goAway, ok := f.(*http2.GoAwayFrame)
		if ok && goAway.ErrCode != http2.ErrCodeEnhanceYourCalm {
			t.Errorf("got %v, want %v", goAway.ErrCode, http2.ErrCodeEnhanceYourCalm)
		}
		return ok
	})
}

// serveBuffered runs a node on connections in memory, in the world of a synctest.
func serveBuffered(t *testing.T) *bufconn.Listener {
	t.Helper()
	log := open(t, t.TempDir())
	ln := bufconn.Listen(64 << 10)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- node.New(log, node.Options{Logger: quiet()}).Serve(ctx, ln) }()
	t.Cleanup(func() {
		stop()
		if err := errors.Join(<-ended, log.Close()); err != nil {
			t.Error(err)
		}
	})
	return ln
}

func TestASilentConnectionIsClosed(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		speak func(*testing.T, net.Conn)
		limit time.Duration
	}{
		"before it has spoken HTTP/2": {func(*testing.T, net.Conn) {}, wantHandshakeTime},
		"after the settings":          {func(t *testing.T, c net.Conn) { newRawConnection(t, c) }, wantSilenceTime},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ln := serveBuffered(t)
				c, err := ln.DialContext(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				began := time.Now()
				test.speak(t, c)
				io.Copy(io.Discard, c) // the error is how the connection ended
				if took := time.Since(began); took > test.limit {
					t.Errorf("closed after %v, want %v", took, test.limit)
				}
			})
		})
	}
}
