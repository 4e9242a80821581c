package journal_test

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"lieudit/eventstore"
	"lieudit/eventstore/journal"
	"lieudit/schemas/deadlinetest"
)

const small = 16 << 10

func open(t *testing.T, m *machine) *journal.Journal {
	t.Helper()
	return openIn(t, t.TempDir(), journal.Options{SegmentSize: small, FS: m, Logger: quiet()})
}

func openIn(t *testing.T, dir string, o journal.Options) *journal.Journal {
	t.Helper()
	j, err := journal.Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	return j
}

func proposed(data string) []eventstore.Proposed {
	return []eventstore.Proposed{{ID: uuid.New(), Type: "t", Data: []byte(data)}}
}

func add(t *testing.T, j *journal.Journal, stream, data string) eventstore.Committed {
	t.Helper()
	c, err := j.Append(t.Context(), stream, eventstore.Any, proposed(data))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// contents is the data of all events, read to the end.
func contents(t *testing.T, j *journal.Journal) []string {
	t.Helper()
	var got []string
	for s, err := range j.ReadAll(t.Context(), eventstore.Mark{}, nil) {
		if err != nil {
			t.Fatal(err)
		}
		if s.Kind == eventstore.Event {
			got = append(got, string(s.Event.Data))
		}
	}
	return got
}

var errDisk = errors.New("the disk is broken")

func TestAFailedGroupStopsTheWriterForGood(t *testing.T) {
	t.Parallel()
	for _, op := range []string{"write", "sync"} {
		t.Run(op, func(t *testing.T) {
			t.Parallel()
			m := newMachine(1)
			j := open(t, m)
			add(t, j, "a-1", "kept")
			m.breakOnce(op)

			_, err := j.Append(t.Context(), "a-1", 0, proposed("lost"))
			if !errors.Is(err, eventstore.ErrUnknown) || !errors.Is(err, errDisk) {
				t.Errorf("the append in the failed group: %v, want ErrUnknown and the cause", err)
			}
			for range 3 {
				_, err = j.Append(t.Context(), "a-1", eventstore.Any, proposed("late"))
				if !errors.Is(err, eventstore.ErrUnavailable) || !errors.Is(err, errDisk) || errors.Is(err, eventstore.ErrUnknown) {
					t.Errorf("an append after it: %v, want ErrUnavailable and the cause", err)
				}
			}
			if err := j.Health(); !errors.Is(err, errDisk) {
				t.Errorf("health is %v, want the cause", err)
			}
			if got := contents(t, j); len(got) != 1 || got[0] != "kept" {
				t.Errorf("the log holds %q, want what was durable", got)
			}
			if r, ok, err := j.Last(t.Context(), "a-1"); err != nil || !ok || r.Revision != 0 {
				t.Errorf("the stream's last event is %d (%v, %v), want 0", r.Revision, ok, err)
			}
		})
	}
}

// breakOnce makes the next operation of a kind on a segment fail.
func (m *machine) breakOnce(op string) {
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

// A page whose write-back failed looks clean to the next process, which must not believe it.
func TestWhatAFailedSyncLeftInTheCacheIsWrittenAgainBeforeItIsBelieved(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		m := newMachine(seed)
		j := open(t, m)
		add(t, j, "a-1", "kept")
		m.breakOnce("sync")
		if _, err := j.Append(t.Context(), "a-1", 0, proposed("doubtful")); !errors.Is(err, eventstore.ErrUnknown) {
			t.Fatalf("append: %v, want ErrUnknown", err)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		j = open(t, m)
		seen := contents(t, j)
		m.mu.Lock()
		m.left = 0
		m.mu.Unlock()
		_ = j.Close()
		if got := contents(t, open(t, m.restart())); fmt.Sprint(got) != fmt.Sprint(seen) {
			t.Fatalf("after a power cut the log holds %q, a reader had seen %q", got, seen)
		}
	}
}

func TestAFullDiskStopsWritingAndRoomResumesIt(t *testing.T) {
	t.Parallel()
	m := newMachine(1)
	m.room = 2*small + small/2
	j := open(t, m)
	var written []string
	var err error
	for n := 0; err == nil; n++ {
		data := fmt.Sprintf("%d %s", n, strings.Repeat("x", 500))
		if _, err = j.Append(t.Context(), "a-1", eventstore.Any, proposed(data)); err == nil {
			written = append(written, data)
		}
	}
	if !errors.Is(err, eventstore.ErrUnavailable) || !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("append on a full disk: %v, want ErrUnavailable and ENOSPC", err)
	}
	if err := j.Health(); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("health is %v, want ENOSPC", err)
	}
	if got := contents(t, j); fmt.Sprint(got) != fmt.Sprint(written) {
		t.Errorf("%d events are there, want the %d acknowledged", len(got), len(written))
	}
	m.mu.Lock()
	m.room = 0
	m.mu.Unlock()
	again := "again " + strings.Repeat("x", 500)
	add(t, j, "a-1", again)
	if err := j.Health(); err != nil {
		t.Errorf("health is %v once there is room", err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if got := contents(t, open(t, m)); len(got) != len(written)+1 || got[len(written)] != again {
		t.Errorf("%d events after a restart, want %d", len(got), len(written)+1)
	}
}

func TestHealthRecoversWithoutAnAppendOnceThereIsRoom(t *testing.T) {
	t.Parallel()
	m := newMachine(1)
	m.room = small
	j := open(t, m)
	var err error
	for err == nil {
		_, err = j.Append(t.Context(), "a-1", eventstore.Any, proposed(strings.Repeat("x", 500)))
	}
	m.mu.Lock()
	m.room = 0
	m.mu.Unlock()
	ctx := deadlinetest.Context(t, deadlinetest.Hang)
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
