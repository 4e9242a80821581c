package journal_test

import (
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
	const rolls, readers = 300, 4
	j := openIn(t, t.TempDir(), journal.Options{SegmentSize: 4 << 10, FS: newMachine(1), Logger: quiet()})
	var done atomic.Bool
	var all sync.WaitGroup
	for range readers {
		all.Go(func() {
			for !done.Load() {
				if _, _, err := j.Last(t.Context(), "a-1"); err != nil {
					t.Errorf("read: %v", err)
					return
				}
			}
		})
	}
	data := strings.Repeat("x", 3<<10)
	for n := range eventstore.Revision(rolls) {
		if c := add(t, j, "a-1", data); c.Revision != n {
			t.Errorf("append went to %d, want %d", c.Revision, n)
		}
	}
	done.Store(true)
	all.Wait()
}
