package usage

import "sync"

// goroutines are the workers and shared tasks of a meter. A request that ends late may still start one while Run waits for the last: a
// sync.WaitGroup panics then. The zero value is ready for use.
type goroutines struct {
	mu       sync.Mutex
	running  int
	onEnd    func()        // not nil once end was called
	hasEnded chan struct{} // closed when nothing runs any more
	isEnded  bool
}

// start runs f in a goroutine, or returns false if everything has ended.
func (g *goroutines) start(f func()) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.isEnded {
		return false
	}
	g.running++
	go func() {
		defer g.finish()
		f()
	}()
	return true
}

func (g *goroutines) finish() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.running--
	g.endIfIdle()
}

// end waits until nothing runs, and calls onEnd before anybody learns that nothing can be started any more. It is called once.
func (g *goroutines) end(onEnd func()) {
	g.mu.Lock()
	g.onEnd, g.hasEnded = onEnd, make(chan struct{})
	g.endIfIdle()
	g.mu.Unlock()
	<-g.hasEnded
}

func (g *goroutines) endIfIdle() {
	if g.onEnd != nil && g.running == 0 {
		g.isEnded = true
		g.onEnd()
		close(g.hasEnded)
	}
}
