package cli

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// progressBar shows on a terminal how far a long work has come; elsewhere it is silent. Its zero value is silent too.
type progressBar struct {
	out io.Writer // nil: silent

	mu       sync.Mutex
	nextDraw time.Time
	isShown  bool
}

// newProgressBar is one on standard error, so that what is printed stays clean.
func (p Program) newProgressBar() *progressBar {
	if !p.IsTerminal {
		return &progressBar{}
	}
	return &progressBar{out: p.Err}
}

const (
	barWidth    = 30
	barInterval = 100 * time.Millisecond
)

// update draws the bar anew, at most ten times a second. Total 0 is one that is not known.
func (b *progressBar) update(label string, done, total int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	if b.out == nil || now.Before(b.nextDraw) {
		return
	}
	b.nextDraw, b.isShown = now.Add(barInterval), true
	if total <= 0 {
		fmt.Fprintf(b.out, "\r\033[K%s", label)
		return
	}
	part := min(float64(done)/float64(total), 1)
	full := int(part * barWidth)
	fmt.Fprintf(b.out, "\r\033[K[%s%s] %3.0f %%  %s", strings.Repeat("#", full), strings.Repeat(".", barWidth-full), 100*part, label)
}

// clear takes the bar away.
func (b *progressBar) clear() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.isShown {
		fmt.Fprint(b.out, "\r\033[K")
		b.isShown = false
	}
}
