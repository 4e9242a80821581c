package usage

import "sync"

// goroutineGroup runs the workers and shared tasks of a meter. A request that ends late may still start one while Run waits for the last of
// them to end. A sync.WaitGroup could panic then. The zero value is ready for use.
type goroutineGroup struct {
	mu       sync.Mutex
	running  int
	onEnd    func()        // nil until end is called
	hasEnded chan struct{} // closed when nothing runs any more
	isEnded  bool
}

// start runs f in a goroutine, or returns false if everything has ended.
func (g *goroutineGroup) start(f func()) bool {
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

func (g *goroutineGroup) finish() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.running--
	g.endIfIdle()
}

// end waits until nothing runs any more. It calls onEnd before start first returns false. Call it once.
func (g *goroutineGroup) end(onEnd func()) {
	g.mu.Lock()
	g.onEnd, g.hasEnded = onEnd, make(chan struct{})
	g.endIfIdle()
	g.mu.Unlock()
	<-g.hasEnded
}

func (g *goroutineGroup) endIfIdle() {
	if g.onEnd != nil && g.running == 0 {
		g.isEnded = true
		g.onEnd()
		close(g.hasEnded)
	}
}
