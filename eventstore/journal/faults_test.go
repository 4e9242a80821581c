package journal_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"lieudit/eventstore"
	"lieudit/eventstore/deadlinetest"
	"lieudit/eventstore/journal"
)

const smallSegmentSize = 16 << 10

func openOn(t *testing.T, m *powerLossFS) *journal.Journal {
	t.Helper()
	return openJournal(t, t.TempDir(), journal.Options{SegmentSize: smallSegmentSize, FS: m, Logger: discardLogger()})
}

func openJournal(t *testing.T, dir string, o journal.Options) *journal.Journal {
	t.Helper()
	j, err := journal.Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	return j
}

func newBatch(data string) []eventstore.ProposedEvent {
	return []eventstore.ProposedEvent{{ID: uuid.New(), Type: "t", Data: []byte(data)}}
}

func appendOne(t *testing.T, j *journal.Journal, stream, data string) eventstore.AppendResult {
	t.Helper()
	c, err := j.Append(t.Context(), stream, eventstore.Any, newBatch(data))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// readContents returns the data of all events of a log.
func readContents(t *testing.T, j *journal.Journal) []string {
	t.Helper()
	var got []string
	for s, err := range j.ReadAll(t.Context(), eventstore.Checkpoint{}, nil) {
		if err != nil {
			t.Fatal(err)
		}
		if s.Kind == eventstore.EventAppeared {
			got = append(got, string(s.Event.Data))
		}
	}
	return got
}

// lastEvent is the newest event of a stream; false if the stream is empty.
func lastEvent(ctx context.Context, j *journal.Journal, stream string) (eventstore.RecordedEvent, bool, error) {
	for r, err := range j.ReadStream(ctx, stream, eventstore.End, eventstore.Backward) {
		return r, err == nil, err
	}
	return eventstore.RecordedEvent{}, false, nil
}

var errDisk = errors.New("the disk is broken")

func TestFailedGroupStopsTheWriterForGood(t *testing.T) {
	t.Parallel()
	for _, op := range []string{"write", "sync"} {
		t.Run(op, func(t *testing.T) {
			t.Parallel()
			m := newPowerLossFS(1)
			j := openOn(t, m)
			appendOne(t, j, "a-1", "kept")
			m.failOnce(op)

			_, err := j.Append(t.Context(), "a-1", 0, newBatch("lost"))
			if !errors.Is(err, eventstore.ErrUnknown) || !errors.Is(err, errDisk) {
				t.Errorf("the append in the failed group: %v, want ErrUnknown and the cause", err)
			}
			for range 3 {
				_, err = j.Append(t.Context(), "a-1", eventstore.Any, newBatch("late"))
				if !errors.Is(err, eventstore.ErrUnavailable) || !errors.Is(err, errDisk) || errors.Is(err, eventstore.ErrUnknown) {
					t.Errorf("an append after it: %v, want ErrUnavailable and the cause", err)
				}
			}
			if err := j.Health(); !errors.Is(err, errDisk) {
				t.Errorf("health is %v, want the cause", err)
			}
			if got := readContents(t, j); len(got) != 1 || got[0] != "kept" {
				t.Errorf("the log holds %q, want what was durable", got)
			}
			if r, ok, err := lastEvent(t.Context(), j, "a-1"); err != nil || !ok || r.Revision != 0 {
				t.Errorf("the stream's last event is %d (%v, %v), want 0", r.Revision, ok, err)
			}
		})
	}
}

// failOnce makes the next operation of a kind on a segment fail.
func (m *powerLossFS) failOnce(op string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fault = func(o, name string) error {
		if o != op || !strings.HasSuffix(name, ".tmp") && strings.HasSuffix(name, ".idx") {
			return nil
		}
		m.fault = nil
		return errDisk
	}
}

// A page whose write-back failed looks clean to the next process, although it is not on disk.
func TestRecoveryWritesAgainWhatAFailedSyncLeftInTheCache(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		m := newPowerLossFS(seed)
		j := openOn(t, m)
		appendOne(t, j, "a-1", "kept")
		m.failOnce("sync")
		if _, err := j.Append(t.Context(), "a-1", 0, newBatch("doubtful")); !errors.Is(err, eventstore.ErrUnknown) {
			t.Fatalf("append: %v, want ErrUnknown", err)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		j = openOn(t, m)
		seen := readContents(t, j)
		m.mu.Lock()
		m.opsLeft = 0
		m.mu.Unlock()
		_ = j.Close()
		if got := readContents(t, openOn(t, m.restart())); fmt.Sprint(got) != fmt.Sprint(seen) {
			t.Fatalf("after a power cut the log holds %q, a reader had seen %q", got, seen)
		}
	}
}

func TestFullDiskStopsWritingUntilThereIsRoom(t *testing.T) {
	t.Parallel()
	m := newPowerLossFS(1)
	m.capacity = 2*smallSegmentSize + smallSegmentSize/2
	j := openOn(t, m)
	var written []string
	var err error
	for n := 0; err == nil; n++ {
		data := fmt.Sprintf("%d %s", n, strings.Repeat("x", 500))
		if _, err = j.Append(t.Context(), "a-1", eventstore.Any, newBatch(data)); err == nil {
			written = append(written, data)
		}
	}
	if !errors.Is(err, eventstore.ErrUnavailable) || !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("append on a full disk: %v, want ErrUnavailable and ENOSPC", err)
	}
	if err := j.Health(); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("health is %v, want ENOSPC", err)
	}
	if got := readContents(t, j); fmt.Sprint(got) != fmt.Sprint(written) {
		t.Errorf("%d events are there, want the %d acknowledged", len(got), len(written))
	}
	m.mu.Lock()
	m.capacity = 0
	m.mu.Unlock()
	again := "again " + strings.Repeat("x", 500)
	appendOne(t, j, "a-1", again)
	if err := j.Health(); err != nil {
		t.Errorf("health is %v once there is room", err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if got := readContents(t, openOn(t, m)); len(got) != len(written)+1 || got[len(written)] != again {
		t.Errorf("%d events after a restart, want %d", len(got), len(written)+1)
	}
}

func TestHealthRecoversWithoutAnAppendOnceThereIsRoom(t *testing.T) {
	t.Parallel()
	m := newPowerLossFS(1)
	m.capacity = smallSegmentSize
	j := openOn(t, m)
	var err error
	for err == nil {
		_, err = j.Append(t.Context(), "a-1", eventstore.Any, newBatch(strings.Repeat("x", 500)))
	}
	m.mu.Lock()
	m.capacity = 0
	m.mu.Unlock()
	ctx := deadlinetest.Context(t, deadlinetest.DefaultLimit)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for j.Health() != nil {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("health is still %v", j.Health())
		}
	}
}
