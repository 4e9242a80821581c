package stranger

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// target is the process of the attacked service, as the measurement sees it.
type target struct {
	address         string                        // host and port of the API
	exited          <-chan struct{}               // closed when the process has ended
	anonymousMemory func() (int64, error)         // bytes
	processorTime   func() (time.Duration, error) // used by the process so far
	kill            func()
}

func (t target) hasEnded() bool {
	select {
	case <-t.exited:
		return true
	default:
		return false
	}
}

// watchInterval is how often the memory is read.
const watchInterval = 100 * time.Millisecond

// watcher reads the anonymous memory of a process, and kills the process at MemoryGuard. It ends with the process or by stop. Its
// methods are safe for concurrent use.
type watcher struct {
	target   target
	stopped  chan struct{}
	ended    chan struct{}
	stopOnce sync.Once

	mu            sync.Mutex
	now, most     int64
	hasKilledHere bool
}

// watch takes the first reading and starts a watcher.
func watch(t target) *watcher {
	w := &watcher{target: t, stopped: make(chan struct{}), ended: make(chan struct{})}
	w.readMemory()
	go w.run()
	return w
}

func (w *watcher) run() {
	defer close(w.ended)
	ticker := time.NewTicker(watchInterval)
	defer ticker.Stop()
	for {
		select {
		case <-w.stopped:
			return
		case <-w.target.exited:
			return
		case <-ticker.C:
			w.readMemory()
		}
	}
}

// readMemory takes one reading. It keeps the last one if the process is about to end and has none.
func (w *watcher) readMemory() {
	n, err := w.target.anonymousMemory()
	if err != nil {
		return
	}
	w.mu.Lock()
	w.now, w.most = n, max(w.most, n)
	isTooMuch := n >= MemoryGuard && !w.hasKilledHere
	w.hasKilledHere = w.hasKilledHere || isTooMuch
	w.mu.Unlock()
	if isTooMuch {
		w.target.kill()
	}
}

// current returns the last reading.
func (w *watcher) current() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

// peak returns the highest reading since resetPeak.
func (w *watcher) peak() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.most
}

// resetPeak forgets all readings except the last.
func (w *watcher) resetPeak() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.most = w.now
}

// killed reports whether the watcher has killed the process.
func (w *watcher) killed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.hasKilledHere
}

// stop ends the watcher and returns when it has ended. It may be called again.
func (w *watcher) stop() {
	w.stopOnce.Do(func() { close(w.stopped) })
	<-w.ended
}

// readAnonymousMemory returns RssAnon of a process in bytes. Only Linux has it.
func readAnonymousMemory(pid int) (int64, error) {
	file := fmt.Sprintf("/proc/%d/status", pid)
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "RssAnon:"); ok {
			kib, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			return kib << 10, err
		}
	}
	return 0, fmt.Errorf("%s has no RssAnon", file)
}

// clockTick is the unit of processor time in /proc, on every architecture that Go runs on.
const clockTick = time.Second / 100

// readProcessorTime returns the processor time that a process has used, in user code and in the kernel.
func readProcessorTime(pid int) (time.Duration, error) {
	file := fmt.Sprintf("/proc/%d/stat", pid)
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	// The name, in parentheses, is the second field and may contain spaces. utime and stime are the 12th and 13th after it.
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) < 13 {
		return 0, fmt.Errorf("%s has %d fields", file, len(fields))
	}
	user, err := strconv.ParseInt(fields[11], 10, 64)
	if err != nil {
		return 0, err
	}
	system, err := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * clockTick, err
}
