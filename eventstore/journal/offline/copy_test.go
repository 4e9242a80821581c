package offline_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"lieudit/eventstore"
	"lieudit/eventstore/journal"
	"lieudit/eventstore/journal/offline"
)

// smallSegmentSize makes a log of a few events span several segments.
const smallSegmentSize = 8 << 10

func openLog(t *testing.T, dir string) *journal.Journal {
	t.Helper()
	j, err := journal.Open(dir, journal.Options{SegmentSize: smallSegmentSize, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	return j
}

// appendBatch appends two events to a stream, the first with data of the given size.
func appendBatch(ctx context.Context, j *journal.Journal, stream string, size int) (eventstore.AppendResult, error) {
	return j.Append(ctx, stream, eventstore.Any, []eventstore.ProposedEvent{
		{ID: uuid.New(), Type: "SiteAdded", Data: []byte(strings.Repeat("x", size)), Metadata: []byte(`{"n":1}`)},
		{ID: uuid.New(), Type: "SiteMoved", Data: []byte(`{"moved":true}`)},
	})
}

// newLogFolder makes a closed log with the given number of appends of two events each, in a folder of its own.
func newLogFolder(t *testing.T, appends int) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "log")
	j := openLog(t, dir)
	for n := range appends {
		if _, err := appendBatch(t.Context(), j, fmt.Sprintf("account-%d", n%7), 1+n*13%700); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// readLog opens a log, verifies it, and returns every event as text, with its position.
func readLog(t *testing.T, dir string) (logID uuid.UUID, all []string) {
	t.Helper()
	j := openLog(t, dir)
	defer func() { _ = j.Close() }()
	logID, err := j.Identity(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for e, err := range j.Scan(t.Context(), 0, eventstore.Forward) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, fmt.Sprintf("%d %s@%d %s %s %s %s %s", e.Position, e.Stream, e.Revision, e.ID, e.Type, e.Time.Format(time.RFC3339Nano), e.Metadata, e.Data))
	}
	if n, err := j.Verify(t.Context()); err != nil || n != len(all) {
		t.Fatalf("verify counts %d events of %d, %v", n, len(all), err)
	}
	return logID, all
}

func TestCopyHoldsTheSameLogAtTheSamePositions(t *testing.T) {
	t.Parallel()
	for name, appends := range map[string]int{"no event": 0, "one append": 1, "many segments": 120} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			src, dst := newLogFolder(t, appends), filepath.Join(t.TempDir(), "copy")
			copied, err := offline.CopyLog(t.Context(), src, dst)
			if err != nil {
				t.Fatal(err)
			}
			if again, err := offline.CopyLog(t.Context(), dst, filepath.Join(t.TempDir(), "again")); err != nil || again != copied {
				t.Errorf("a copy of the copy is %+v, %v; want %+v", again, err, copied)
			}
			gotID, got := readLog(t, dst)
			wantID, want := readLog(t, src)
			if gotID != wantID || copied.LogID != wantID || strings.Join(got, "\n") != strings.Join(want, "\n") {
				t.Errorf("the copy of %d events of log %s holds %d events of %s", len(want), wantID, len(got), gotID)
			}
			if copied.Events != len(want) || appends > 0 && (copied.Last.Position == 0 || copied.FirstTime.IsZero() || copied.LastTime.Before(copied.FirstTime)) {
				t.Errorf("it says of itself %+v, want %d events", copied, len(want))
			}
		})
	}
}

// acknowledgedAppends are writers that remember what was acknowledged.
type acknowledgedAppends struct {
	last    atomic.Uint64 // position of the newest
	running atomic.Int32  // writers that have not ended
	writers sync.WaitGroup
}

// start begins three writers with a number of appends each.
func (a *acknowledgedAppends) start(t *testing.T, j *journal.Journal, appends int) {
	for n := range 3 {
		a.running.Add(1)
		a.writers.Go(func() {
			defer a.running.Add(-1)
			for i := range appends {
				r, err := appendBatch(t.Context(), j, fmt.Sprintf("account-%d", n), i*37%900)
				if err != nil {
					t.Errorf("append: %v", err)
					return
				}
				a.raiseLast(uint64(r.Position))
			}
		})
	}
}

func (a *acknowledgedAppends) raiseLast(position uint64) {
	for last := a.last.Load(); position > last && !a.last.CompareAndSwap(last, position); {
		last = a.last.Load()
	}
}

func TestCopyOfALogThatIsWrittenHoldsAllThatWasAcknowledgedBefore(t *testing.T) {
	t.Parallel()
	src := filepath.Join(t.TempDir(), "log")
	for round := range 3 { // each round begins with a recovery, which cuts tails and removes spares
		j, a := openLog(t, src), &acknowledgedAppends{}
		a.start(t, j, 150)
		for n := 0; n < 2 || a.running.Load() > 0; n++ {
			dst := filepath.Join(t.TempDir(), "copy")
			want := eventstore.Position(a.last.Load())
			copied, err := offline.CopyLog(t.Context(), src, dst)
			if err != nil {
				t.Fatalf("round %d, copy %d: %v", round, n, err)
			}
			if copied.Last.Position < want {
				t.Errorf("round %d, copy %d ends with the event at %d, want that at %d", round, n, copied.Last.Position, want)
			}
			if _, events := readLog(t, dst); len(events) != copied.Events {
				t.Errorf("round %d, copy %d holds %d events, it says %d", round, n, len(events), copied.Events)
			}
		}
		a.writers.Wait()
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestCopyGoesOnWhileTheLogIsOpenedAndClosed(t *testing.T) {
	t.Parallel()
	src := newLogFolder(t, 40)
	var running atomic.Bool
	running.Store(true)
	var restarts sync.WaitGroup
	restarts.Go(func() {
		defer running.Store(false)
		for range 25 {
			j := openLog(t, src)
			for range 9 {
				if _, err := appendBatch(t.Context(), j, "account-1", 800); err != nil {
					t.Errorf("append: %v", err)
				}
			}
			if err := j.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	for running.Load() {
		if _, err := offline.CopyLog(t.Context(), src, filepath.Join(t.TempDir(), "copy")); err != nil {
			t.Error(err)
		}
	}
	restarts.Wait()
}

func TestCopyLeavesNoLogBehindWhenItFails(t *testing.T) {
	t.Parallel()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	damaged := newLogFolder(t, 120)
	flipBit(t, filepath.Join(damaged, segmentName(2)), 300)
	for name, row := range map[string]struct {
		ctx  context.Context
		src  string
		want func(error) bool
	}{
		"damaged":   {t.Context(), damaged, isCorrupt},
		"no log":    {t.Context(), t.TempDir(), func(err error) bool { return errors.Is(err, journal.ErrNoLog) }},
		"no folder": {t.Context(), filepath.Join(t.TempDir(), "none"), func(err error) bool { return errors.Is(err, os.ErrNotExist) }},
		"cancelled": {ended, newLogFolder(t, 3), func(err error) bool { return errors.Is(err, context.Canceled) }},
	} {
		dst := filepath.Join(t.TempDir(), "copy")
		if _, err := offline.CopyLog(row.ctx, row.src, dst); !row.want(err) {
			t.Errorf("%s: copy says %v", name, err)
		}
		if entries, err := os.ReadDir(dst); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: the folder is left behind with %v, %v", name, entries, err)
		}
	}
}

func TestCopyRefusesAFolderThatIsNotEmpty(t *testing.T) {
	t.Parallel()
	src, dst := newLogFolder(t, 1), newLogFolder(t, 2)
	if _, err := offline.CopyLog(t.Context(), src, dst); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("copy onto another log says %v, want that the folder is not empty", err)
	}
	if _, events := readLog(t, dst); len(events) != 4 {
		t.Errorf("the other log holds %d events, want its 4", len(events))
	}
}

func isCorrupt(err error) bool {
	var corrupt *eventstore.CorruptError
	return errors.As(err, &corrupt)
}

func segmentName(n int) string { return fmt.Sprintf("%016x.log", n*smallSegmentSize) }

// flipBit changes one bit of a file.
func flipBit(t *testing.T, path string, at int64) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	var b [1]byte
	if _, err := f.ReadAt(b[:], at); err != nil {
		t.Fatal(err)
	}
	b[0] ^= 1
	if _, err := f.WriteAt(b[:], at); err != nil {
		t.Fatal(err)
	}
}
