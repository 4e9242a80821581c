package journal_test

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"lieudit/eventstore"
	"lieudit/eventstore/journal"
)

// A reader may look at the very moment when a segment is full: its stream is then in neither index for an instant, unless
// both change in one step.
func TestAStreamIsReadWhileTheSegmentItIsInBecomesFull(t *testing.T) {
	t.Parallel()
	const rolls, readers = 100, 4
	j := openJournal(t, t.TempDir(), journal.Options{SegmentSize: 4 << 10, FS: newPowerLossFS(1), Logger: discardLogger()})
	var done atomic.Bool
	var all sync.WaitGroup
	for range readers {
		all.Go(func() {
			for !done.Load() {
				if _, _, err := j.LastEvent(t.Context(), "a-1"); err != nil {
					t.Errorf("read: %v", err)
					return
				}
			}
		})
	}
	data := strings.Repeat("x", 3<<10)
	for n := range eventstore.Revision(rolls) {
		if c := appendOne(t, j, "a-1", data); c.Revision != n {
			t.Errorf("append went to %d, want %d", c.Revision, n)
		}
	}
	done.Store(true)
	all.Wait()
}

func TestIndexesThatCannotBeWrittenAreLoggedOnce(t *testing.T) {
	t.Parallel()
	m, said := newPowerLossFS(1), &logLines{}
	m.fault = func(op, name string) error {
		if op == "write" && strings.HasSuffix(name, ".idx.tmp") {
			return errDisk
		}
		return nil
	}
	j := openJournal(t, t.TempDir(), journal.Options{SegmentSize: 4 << 10, FS: m, Logger: slog.New(slog.NewTextHandler(said, nil))})
	for range 20 {
		appendOne(t, j, "a-1", strings.Repeat("x", 3<<10))
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if got := said.countContaining("stays in memory"); got != 1 {
		t.Errorf("told %d times of what could not be written 19 times, want once", got)
	}
}

// logLines is what a logger wrote.
type logLines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logLines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logLines) countContaining(words string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), words)
}
