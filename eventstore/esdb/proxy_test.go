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
	ln       net.Listener
	upstream atomic.Pointer[net.Addr]
	down     atomic.Bool  // hang up on whoever connects
	deaf     atomic.Bool  // read nothing that the client sends
	mute     atomic.Bool  // send nothing to the client
	accepted atomic.Int32 // connections so far

	mu   sync.Mutex
	free *sync.Cond // told when deaf or mute ends
	open map[net.Conn]bool
	work sync.WaitGroup
}

func newProxy(t testing.TB, upstream net.Addr) *proxy {
	t.Helper()
	ln, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{ln: ln, open: map[net.Conn]bool{}}
	p.free = sync.NewCond(&p.mu)
	p.upstream.Store(&upstream)
	p.work.Go(p.accept)
	t.Cleanup(func() {
		_ = ln.Close()
		p.flow()
		p.cut()
		p.work.Wait()
	})
	return p
}

func (p *proxy) connection() string { return connection(p.ln.Addr()) }

func (p *proxy) accept() {
	for {
		c, err := p.ln.Accept()
		if err != nil {
			return
		}
		p.accepted.Add(1)
		up := *p.upstream.Load()
		s, err := net.Dial(up.Network(), up.String())
		if err != nil || p.down.Load() {
			_ = c.Close()
			if err == nil {
				_ = s.Close()
			}
			continue
		}
		p.mu.Lock()
		p.open[c], p.open[s] = true, true
		p.mu.Unlock()
		p.work.Go(func() { p.pass(s, c, &p.deaf) })
		p.work.Go(func() { p.pass(c, s, &p.mute) })
	}
}

// pass copies one way and holds what it read for as long as it is told to.
func (p *proxy) pass(to, from net.Conn, held *atomic.Bool) {
	defer p.hangUp(to, from)
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		p.mu.Lock()
		for held.Load() && p.open[to] {
			p.free.Wait()
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

func (p *proxy) hangUp(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		_ = c.Close()
		delete(p.open, c)
	}
	p.free.Broadcast()
}

// cut ends every connection there is. What is held is lost.
func (p *proxy) cut() {
	p.mu.Lock()
	all := make([]net.Conn, 0, len(p.open))
	for c := range p.open {
		all = append(all, c)
	}
	p.mu.Unlock()
	p.hangUp(all...)
}

// stall holds everything, as a server that hangs or a cable that is out.
func (p *proxy) stall() {
	p.deaf.Store(true)
	p.mute.Store(true)
}

// flow ends what stall, deaf and mute did.
func (p *proxy) flow() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.deaf.Store(false)
	p.mute.Store(false)
	p.free.Broadcast()
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
