package console

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// bar shows on a terminal how far a long work has come; elsewhere it is silent. Its zero value is silent too.
type bar struct {
	out io.Writer // nil: silent

	mu    sync.Mutex
	next  time.Time
	shown bool
}

// bar is one on standard error, so that what is printed stays clean.
func (p Program) bar() *bar {
	if !p.Terminal {
		return &bar{}
	}
	return &bar{out: p.Err}
}

const (
	barWidth = 30
	barPause = 100 * time.Millisecond
)

// show draws the bar anew, at most ten times a second. Total 0 is one that is not known.
func (b *bar) show(what string, done, total int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	if b.out == nil || now.Before(b.next) {
		return
	}
	b.next, b.shown = now.Add(barPause), true
	if total <= 0 {
		fmt.Fprintf(b.out, "\r\033[K%s", what)
		return
	}
	part := min(float64(done)/float64(total), 1)
	full := int(part * barWidth)
	fmt.Fprintf(b.out, "\r\033[K[%s%s] %3.0f %%  %s", strings.Repeat("#", full), strings.Repeat(".", barWidth-full), 100*part, what)
}

// clear takes the bar away.
func (b *bar) clear() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.shown {
		fmt.Fprint(b.out, "\r\033[K")
		b.shown = false
	}
}
