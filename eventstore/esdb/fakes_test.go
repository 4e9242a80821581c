package esdb_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// proxy copies bytes between a client and a server. A test can make it lose, refuse or hold them.
type proxy struct {
	ln                 net.Listener
	upstream           atomic.Pointer[net.Addr]
	refusesConnections atomic.Bool  // close new connections at once
	holdsRequests      atomic.Bool  // hold what the client sends
	holdsResponses     atomic.Bool  // hold what the server sends
	accepted           atomic.Int32 // connections so far

	mu        sync.Mutex
	released  *sync.Cond // signalled when holding ends
	openConns map[net.Conn]bool
	work      sync.WaitGroup
}

func newProxy(t testing.TB, upstream net.Addr) *proxy {
	t.Helper()
	ln, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{ln: ln, openConns: map[net.Conn]bool{}}
	p.released = sync.NewCond(&p.mu)
	p.upstream.Store(&upstream)
	p.work.Go(p.accept)
	t.Cleanup(func() {
		_ = ln.Close()
		p.releaseAll()
		p.closeAll()
		p.work.Wait()
	})
	return p
}

func (p *proxy) connection() string { return connectionString(p.ln.Addr()) }

func (p *proxy) accept() {
	for {
		c, err := p.ln.Accept()
		if err != nil {
			return
		}
		p.accepted.Add(1)
		up := *p.upstream.Load()
		s, err := net.Dial(up.Network(), up.String())
		if err != nil || p.refusesConnections.Load() {
			_ = c.Close()
			if err == nil {
				_ = s.Close()
			}
			continue
		}
		p.mu.Lock()
		p.openConns[c], p.openConns[s] = true, true
		p.mu.Unlock()
		p.work.Go(func() { p.copyBytes(s, c, &p.holdsRequests) })
		p.work.Go(func() { p.copyBytes(c, s, &p.holdsResponses) })
	}
}

// copyBytes copies one way, and holds what it read while held is set.
func (p *proxy) copyBytes(to, from net.Conn, held *atomic.Bool) {
	defer p.closeConns(to, from)
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		p.mu.Lock()
		for held.Load() && p.openConns[to] {
			p.released.Wait()
		}
		p.mu.Unlock()
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (p *proxy) closeConns(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		_ = c.Close()
		delete(p.openConns, c)
	}
	p.released.Broadcast()
}

// closeAll closes every connection. Bytes that are held are lost.
func (p *proxy) closeAll() {
	p.mu.Lock()
	all := make([]net.Conn, 0, len(p.openConns))
	for c := range p.openConns {
		all = append(all, c)
	}
	p.mu.Unlock()
	p.closeConns(all...)
}

// holdAll holds both directions, like a server that hangs.
func (p *proxy) holdAll() {
	p.holdsRequests.Store(true)
	p.holdsResponses.Store(true)
}

// releaseAll undoes holdAll, holdsRequests and holdsResponses.
func (p *proxy) releaseAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.holdsRequests.Store(false)
	p.holdsResponses.Store(false)
	p.released.Broadcast()
}

// copyFolder makes a copy of a folder as it is now.
func copyFolder(t testing.TB, from string) string {
	t.Helper()
	to := t.TempDir()
	entries, err := os.ReadDir(from)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() || !e.Type().IsRegular() {
			continue
		}
		copyFile(t, from+"/"+e.Name(), to+"/"+e.Name())
	}
	return to
}

func copyFile(t testing.TB, from, to string) {
	t.Helper()
	r, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	w, err := os.Create(to)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(w, r); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// relay passes gRPC calls on to a server, and can answer some itself.
type relay struct {
	ln       net.Listener
	upstream *grpc.ClientConn

	calls           atomic.Int64 // begun so far
	pipelineCalls   atomic.Int64 // of them, pipelines of appends
	unansweredCalls atomic.Int64 // the calls up to here whose appends are not answered

	mu     sync.Mutex
	refuse func(method string, md metadata.MD) (metadata.MD, error) // answers a call instead of the server
	reply  func(method string, payload []byte) ([]byte, error)      // changes a reply; nil bytes: withholds it
}

// rawMessage is a message that the relay passes on without decoding it.
type rawMessage struct{ b []byte }

type rawCodec struct{}

func (rawCodec) Name() string { return "proto" }

func (rawCodec) Marshal(v any) ([]byte, error) { return v.(*rawMessage).b, nil }

func (rawCodec) Unmarshal(b []byte, v any) error {
	v.(*rawMessage).b = append([]byte(nil), b...)
	return nil
}

// newRelay serves at a free port and passes on to upstream, an address or "" for nowhere.
func newRelay(t testing.TB, upstream net.Addr, options ...grpc.ServerOption) *relay {
	t.Helper()
	ln, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := upstream.String()
	if upstream.Network() == "unix" {
		address = "unix:" + address
	}
	cc, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(rawCodec{}), grpc.MaxCallRecvMsgSize(32<<20)))
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{ln: ln, upstream: cc}
	s := grpc.NewServer(append(options, grpc.ForceServerCodec(rawCodec{}), grpc.UnknownServiceHandler(r.handle), grpc.WaitForHandlers(true), grpc.MaxRecvMsgSize(32<<20))...)
	var served sync.WaitGroup
	served.Go(func() { _ = s.Serve(ln) })
	t.Cleanup(func() {
		s.Stop()
		served.Wait()
		_ = cc.Close()
	})
	return r
}

func (r *relay) connection() string { return connectionString(r.ln.Addr()) }

// setScript replaces what the relay does itself.
func (r *relay) setScript(refuse func(string, metadata.MD) (metadata.MD, error), reply func(string, []byte) ([]byte, error)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refuse, r.reply = refuse, reply
}

func (r *relay) loadScript() (refuse func(string, metadata.MD) (metadata.MD, error), reply func(string, []byte) ([]byte, error)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.refuse, r.reply
}

func (r *relay) handle(_ any, call grpc.ServerStream) error {
	full, _ := grpc.MethodFromServerStream(call)
	method, n := full[strings.LastIndex(full, "/")+1:], r.calls.Add(1)
	if method == "BatchAppend" {
		r.pipelineCalls.Add(1)
	}
	md, _ := metadata.FromIncomingContext(call.Context())
	if refuse, _ := r.loadScript(); refuse != nil {
		if trailer, err := refuse(method, md); err != nil {
			call.SetTrailer(trailer)
			return err
		}
	}
	ctx, cancel := context.WithCancel(metadata.NewOutgoingContext(call.Context(), md))
	defer cancel()
	up, err := r.upstream.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, full)
	if err != nil {
		return err
	}
	var asking sync.WaitGroup
	asking.Go(func() {
		if err := forwardMessages(up.SendMsg, call.RecvMsg); errors.Is(err, io.EOF) {
			_ = up.CloseSend()
		} else {
			cancel()
		}
	})
	err = forwardMessages(func(m any) error {
		if method == "BatchAppend" && n <= r.unansweredCalls.Load() {
			return nil
		}
		return r.sendResponse(method, call, m.(*rawMessage))
	}, up.RecvMsg)
	call.SetTrailer(up.Trailer())
	cancel()
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return err
}

func (r *relay) sendResponse(method string, call grpc.ServerStream, m *rawMessage) error {
	if _, reply := r.loadScript(); reply != nil {
		b, err := reply(method, m.b)
		if b == nil || err != nil {
			return err
		}
		m = &rawMessage{b}
	}
	return call.SendMsg(m)
}

// forwardMessages moves messages until either side fails, and returns that error.
func forwardMessages(to, from func(any) error) error {
	for {
		m := &rawMessage{}
		if err := from(m); err != nil {
			return err
		}
		if err := to(m); err != nil {
			if _, ok := status.FromError(err); ok {
				return err
			}
			return fmt.Errorf("passing on: %w", err)
		}
	}
}
