package journal_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"lieudit/eventstore"
	"lieudit/eventstore/deadlinetest"
	"lieudit/eventstore/journal"
)

// If the two indexes did not change in one step, a stream would be in neither for an instant when its segment is full.
func TestStreamIsReadableWhileItsSegmentBecomesFull(t *testing.T) {
	t.Parallel()
	const rolls, readers = 100, 4
	j := openJournal(t, t.TempDir(), journal.Options{SegmentSize: 4 << 10, FS: newPowerLossFS(1), Logger: discardLogger()})
	var done atomic.Bool
	var all sync.WaitGroup
	for range readers {
		all.Go(func() {
			for !done.Load() {
				if _, _, err := lastEvent(t.Context(), j, "a-1"); err != nil {
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
	m, logged := newPowerLossFS(1), &logLines{}
	m.fault = func(op, name string) error {
		if op == "write" && strings.HasSuffix(name, ".idx.tmp") {
			return errDisk
		}
		return nil
	}
	j := openJournal(t, t.TempDir(), journal.Options{SegmentSize: 4 << 10, FS: m, Logger: slog.New(slog.NewTextHandler(logged, nil))})
	for range 20 {
		appendOne(t, j, "a-1", strings.Repeat("x", 3<<10))
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if got := logged.countContaining("stays in memory"); got != 1 {
		t.Errorf("logged %d times what could not be written 19 times, want once", got)
	}
}

// logLines collects what a logger wrote.
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

// openWithDamagedLastEvent flips a bit in the last event of a log of one segment and returns the error of opening it.
func openWithDamagedLastEvent(t *testing.T, m *powerLossFS) error {
	t.Helper()
	var last frameRange
	for _, p := range findFrames(m.files[segmentFileName(0)].cached) {
		if !p.isMark {
			last = p
		}
	}
	_, err := journal.Open(t.TempDir(), journal.Options{SegmentSize: smallSegmentSize, FS: m.copyWithFlippedBit(segmentFileName(0), last.to-1, 3), Logger: discardLogger()})
	return err
}

func TestClosedLogProvesItsLastEvent(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		m := newPowerLossFS(seed)
		j := openOn(t, m)
		appendOne(t, j, "a-1", "last")
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		var corrupt *eventstore.CorruptError
		if err := openWithDamagedLastEvent(t, m.restart()); !errors.As(err, &corrupt) {
			t.Fatalf("machine %d: its last event is damaged and open says %v", seed, err)
		}
	}
}

func TestIdleLogProvesItsLastEvent(t *testing.T) {
	t.Parallel()
	m := newPowerLossFS(1)
	appendOne(t, openOn(t, m), "a-1", "last")
	tick, deadline := time.NewTicker(time.Millisecond), time.After(deadlinetest.Scale(deadlinetest.DefaultLimit))
	defer tick.Stop()
	for {
		m.mu.Lock()
		seen := m.copyWithFlippedBit("", 0, 0)
		m.mu.Unlock()
		var corrupt *eventstore.CorruptError
		if err := openWithDamagedLastEvent(t, seen); errors.As(err, &corrupt) {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("a log at rest never proved its last event")
		}
	}
}

// Appends too long to be remembered id by id are compared with the events on the log.
func TestRepeatIsRecognisedAfterItsIDsAreForgotten(t *testing.T) {
	t.Parallel()
	j := openJournal(t, t.TempDir(), journal.Options{SegmentSize: 4 << 20, Logger: discardLogger()})
	batch := func(n int) []eventstore.ProposedEvent {
		var all []eventstore.ProposedEvent
		for range n {
			all = append(all, newBatch("x")...)
		}
		return all
	}
	first := batch(3)
	want, err := j.Append(t.Context(), "a-1", eventstore.Any, first)
	if err != nil {
		t.Fatal(err)
	}
	for n := range 14 {
		if _, err := j.Append(t.Context(), fmt.Sprintf("b-%d", n), eventstore.Any, batch(10_000)); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := j.Append(t.Context(), "a-1", eventstore.Any, first); err != nil || got != want {
		t.Errorf("sent again: %+v, %v; want %+v", got, err, want)
	}
	other := append(first[:2:2], newBatch("y")...)
	if _, err := j.Append(t.Context(), "a-1", eventstore.Any, other); !errors.Is(err, eventstore.ErrIDReused) {
		t.Errorf("sent with another event in it: %v, want ErrIDReused", err)
	}
}

func TestLogGoesOnWithSegmentsOfAnotherSize(t *testing.T) {
	t.Parallel()
	m, dir := newPowerLossFS(1), t.TempDir()
	var want []string
	for n, size := range []int64{4 << 10, 64 << 10, 8 << 10} {
		j := openJournal(t, dir, journal.Options{SegmentSize: size, FS: m, Logger: discardLogger()})
		for i := range 30 {
			// The second size begins with an append that no segment of the first could hold.
			data := fmt.Sprintf("%d-%d %0*d", n, i, max(1, int(size)/(2+i)), 0)
			appendOne(t, j, "a-1", data)
			want = append(want, data)
		}
		if got := readContents(t, j); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("with segments of %d bytes the log holds %d events, want %d", size, len(got), len(want))
		}
		if _, err := j.Verify(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestEmptyLogGrowsPastASegmentTooSmallForItsFirstAppend(t *testing.T) {
	t.Parallel()
	m, dir := newPowerLossFS(1), t.TempDir()
	if err := openJournal(t, dir, journal.Options{SegmentSize: 4 << 10, FS: m, Logger: discardLogger()}).Close(); err != nil {
		t.Fatal(err)
	}
	j := openJournal(t, dir, journal.Options{SegmentSize: 64 << 10, FS: m, Logger: discardLogger()})
	data := fmt.Sprintf("%0*d", 20<<10, 0)
	appendOne(t, j, "a-1", data)
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	j = openJournal(t, dir, journal.Options{SegmentSize: 64 << 10, FS: m, Logger: discardLogger()})
	if got := readContents(t, j); len(got) != 1 || got[0] != data {
		t.Errorf("the log holds %d events, want the one", len(got))
	}
	if n, err := j.Verify(t.Context()); err != nil || n != 1 {
		t.Errorf("verify counts %d events, %v", n, err)
	}
}
