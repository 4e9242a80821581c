package esdb_test

import (
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"testing"
)

// proxy passes bytes between a client and a server, until it is told to misbehave.
type proxy struct {
	ln                 net.Listener
	upstream           atomic.Pointer[net.Addr]
	refusesConnections atomic.Bool  // hang up on whoever connects
	holdsRequests      atomic.Bool  // read nothing that the client sends
	holdsResponses     atomic.Bool  // send nothing to the client
	accepted           atomic.Int32 // connections so far

	mu        sync.Mutex
	released  *sync.Cond // told when deaf or mute ends
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

// copyBytes copies one way and holds what it read for as long as it is told to.
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

// closeAll ends every connection there is. What is held is lost.
func (p *proxy) closeAll() {
	p.mu.Lock()
	all := make([]net.Conn, 0, len(p.openConns))
	for c := range p.openConns {
		all = append(all, c)
	}
	p.mu.Unlock()
	p.closeConns(all...)
}

// holdAll holds everything, as a server that hangs or a cable that is out.
func (p *proxy) holdAll() {
	p.holdsRequests.Store(true)
	p.holdsResponses.Store(true)
}

// releaseAll ends what stall, deaf and mute did.
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
